/* A model of PyTorch on its way into a graph: what exported programs and TorchScript have in
 * common. */
#ifndef QN_TORCH_H
#define QN_TORCH_H

#include "import/builder.h"
#include "import/pytorch/archive.h"

enum { QN_TORCH_INPUTS = 32 };

/* What is known, or guessed, of an input that the file says nothing of. */
typedef struct qn_torch_guess {
    char name[64];
    qn_type type;
} qn_torch_guess;

typedef struct qn_torch {
    qn_graph_builder b;
    qn_context *ctx;
    /* The model's */
    qn_arena *arena;
    const qn_model_load_options *options;
    qn_torch_archive archive;
    /* What earlier attempts learnt of inputs */
    const qn_torch_guess *guesses;
    size_t n_guesses;
    /* The input whose rank was asked for and is not known, or NULL */
    const qn_value *unranked;
    /* What a layer that wanted it can say of that input, and what the class of the module at work
     * can; rank -1: nothing */
    qn_type hint, expected;
} qn_torch;

/* The graph's value of a tensor: computed, or the weight's numbers in the file. A view of a tensor
 * that was written to is taken again. */
QN_MUST_CHECK qn_status qn_torch_tensor_value(qn_value **out, qn_torch *t, qn_torch_tensor *tensor);
/* The same for whatever can be a tensor: numbers and sizes become tensors without axes. */
QN_MUST_CHECK qn_status qn_torch_value_of(qn_value **out, qn_torch *t, const qn_torch_value *value);
QN_MUST_CHECK qn_status qn_torch_make(qn_torch_value *out, qn_torch *t, qn_value *value);
/* Writes to a tensor in place: it has this value from now on, and so have the tensors that it is a
 * view of. */
QN_MUST_CHECK qn_status qn_torch_write(qn_torch *t, qn_torch_tensor *tensor, qn_value *value);
/* A constant without axes. */
QN_MUST_CHECK qn_status qn_torch_number(qn_value **out, qn_torch *t, qn_dtype dtype, double real,
                                        int64_t number);

/* An integer of the graph (int64, one element, one axis) as a size: the number itself where it is
 * known. */
QN_MUST_CHECK qn_status qn_torch_size(qn_torch_value *out, qn_value *value);
/* The number of elements along an axis (>= 0). */
QN_MUST_CHECK qn_status qn_torch_dim(qn_torch_value *out, qn_torch *t, qn_value *value,
                                     int32_t axis);
/* int64[n] of integers and sizes. */
QN_MUST_CHECK qn_status qn_torch_shape(qn_value **out, qn_torch *t, const qn_torch_value *items,
                                       size_t count);
/* Arithmetic of Python on numbers, truths and sizes: "add", "floordiv", "lt", ... *done is false
 * where it has no such word or they are something else. */
QN_MUST_CHECK qn_status qn_torch_arithmetic(qn_torch_value *out, bool *done, qn_torch *t,
                                            const char *word, const qn_torch_value *operands,
                                            size_t count);
/* Whether it has the word at all. */
bool qn_torch_is_arithmetic(const char *word);
/* Fails where the rank is not known. */
QN_MUST_CHECK qn_status qn_torch_rank(int32_t *out, qn_torch *t, const qn_value *value);

/* ---- Kinds of files -------------------------------------------------------------------------- */

/* An exported program: today's archives, and the flat ones of torch 2.1 to 2.6. */
QN_MUST_CHECK qn_status qn_torch_load_program(qn_torch *t);
/* TorchScript: code, and the modules that it is run with. */
QN_MUST_CHECK qn_status qn_torch_load_script(qn_torch *t);

#endif
