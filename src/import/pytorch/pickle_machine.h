/* The state of a pickle at work, shared by its opcodes and its globals. */
#ifndef QN_PICKLE_MACHINE_H
#define QN_PICKLE_MACHINE_H

#include "import/pytorch/pickle.h"

typedef struct qn_pickle {
    qn_context *ctx;
    qn_arena *arena;
    const char *name, *folder;
    qn_names *storages;
    const uint8_t *data;
    size_t size, at;
    qn_torch_value *stack;
    size_t n_stack, stack_capacity;
    /* Heights of the stack */
    size_t *marks;
    size_t n_marks, marks_capacity;
    qn_torch_value *memo;
    size_t n_memo, memo_capacity;
} qn_pickle;

typedef struct qn_pickle_opcode {
    qn_status (*run)(qn_pickle *p, const struct qn_pickle_opcode *op);
    /* Bytes, elements, or the kind of what is made */
    int argument;
} qn_pickle_opcode;

QN_MUST_CHECK qn_status qn_pickle_fail(const qn_pickle *p, qn_status status, const char *format,
                                       ...) QN_PRINTF(3, 4);
QN_MUST_CHECK qn_status qn_pickle_push(qn_pickle *p, const qn_torch_value *value);
QN_MUST_CHECK qn_status qn_pickle_pop(qn_torch_value *out, qn_pickle *p);

/* Pushes the global, or refuses it. */
QN_MUST_CHECK qn_status qn_pickle_global(qn_pickle *p, const char *module, const char *name);
/* Opcodes: a global applied to a tuple, an object without contents, its contents, a storage. */
QN_MUST_CHECK qn_status qn_pickle_reduce(qn_pickle *p, const qn_pickle_opcode *op);
QN_MUST_CHECK qn_status qn_pickle_new_object(qn_pickle *p, const qn_pickle_opcode *op);
QN_MUST_CHECK qn_status qn_pickle_build(qn_pickle *p, const qn_pickle_opcode *op);
QN_MUST_CHECK qn_status qn_pickle_persistent(qn_pickle *p, const qn_pickle_opcode *op);

#endif
