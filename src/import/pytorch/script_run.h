/* TorchScript interpreted: what depends on tensors becomes nodes, all else is computed. */
#ifndef QN_SCRIPT_RUN_H
#define QN_SCRIPT_RUN_H

#include "import/pytorch/aten.h"
#include "import/pytorch/script.h"

/* Calls within calls, and steps altogether: what is beyond is no program that ends. */
enum { QN_SCRIPT_MOST_CALLS = 100, QN_SCRIPT_MOST_STEPS = 4000000 };

/* A file of the code. */
typedef struct qn_script_file {
    qn_script_block block;
} qn_script_file;

typedef struct qn_script_run {
    qn_torch *t;
    /* Paths of the code's files -> qn_script_file */
    qn_names files;
    /* The tuple of tensors in constants.pkl */
    qn_torch_value constants;
    int depth, steps;
    /* The module at work, for names of layers */
    const char *path;
} qn_script_run;

/* A function at work: names -> qn_torch_value. */
typedef struct qn_script_scope {
    qn_script_run *run;
    qn_names values;
    /* The file, for messages */
    const char *file;
    qn_torch_value result;
} qn_script_scope;

QN_MUST_CHECK qn_status qn_script_run_fail(const qn_script_run *run, qn_status status,
                                           const char *format, ...) QN_PRINTF(3, 4);
QN_MUST_CHECK qn_status qn_script_define(qn_script_scope *scope, const char *name,
                                         const qn_torch_value *value);
/* Counts a step. */
QN_MUST_CHECK qn_status qn_script_tick(qn_script_run *run);
QN_MUST_CHECK qn_status qn_script_eval(qn_torch_value *out, qn_script_scope *scope,
                                       const qn_script_expr *expr);
/* Calls a function or method: `self` NULL for a function. */
QN_MUST_CHECK qn_status qn_script_call(qn_torch_value *out, qn_script_run *run,
                                       const qn_script_statement *function,
                                       const qn_torch_value *self,
                                       const qn_aten_argument *arguments, size_t count);
/* The statement of a class or function by its whole name "__torch__.a.b.C"; NULL: none. */
QN_MUST_CHECK qn_status qn_script_lookup(const qn_script_statement **out, qn_script_run *run,
                                         const char *name, qn_script_step step);
QN_MUST_CHECK qn_status qn_script_execute(bool *returned, qn_script_scope *scope,
                                          const qn_script_block *block);
/* Whether the value is known to be true or false. */
bool qn_script_truth(bool *out, const qn_torch_value *value);
/* A field of an object: its own, or a constant of its class. */
QN_MUST_CHECK qn_status qn_script_field(qn_torch_value *out, qn_script_run *run,
                                        const qn_torch_value *object, const char *name);
/* A call of a global name ("torch.add", "annotate", "__torch__.f"). */
QN_MUST_CHECK qn_status qn_script_call_global(qn_torch_value *out, qn_script_run *run,
                                              const char *name, qn_aten_argument *arguments,
                                              size_t count);
/* Functions of Python and of the interpreter itself; *done is false where the name is none, or the
 * arguments are not of its kind. */
QN_MUST_CHECK qn_status qn_script_builtin(qn_torch_value *out, bool *done, qn_script_run *run,
                                          const char *name, qn_aten_argument *arguments,
                                          size_t count);

#endif
