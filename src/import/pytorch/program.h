/* Exported programs: a graph in JSON, and weights beside it. */
#ifndef QN_TORCH_PROGRAM_H
#define QN_TORCH_PROGRAM_H

#include "base/json.h"
#include "import/pytorch/aten.h"

/* False where there is none, or null, which older programs have for what is not there. */
bool qn_program_find(qn_json_place *out, const qn_json_place *object, const char *key);
/* Weights, buffers and constants by their names in the model: qn_torch_value of a tensor. */
QN_MUST_CHECK qn_status qn_program_weights(qn_names *out, qn_torch *t, bool flat);
/* The number that programs have for an element type, which is another one than PyTorch's own. */
qn_dtype qn_program_dtype(int64_t number);
/* A size: a number, or a symbol. */
QN_MUST_CHECK qn_status qn_program_size(qn_dim *out, qn_torch *t, const qn_json_place *size);

/* A graph at work: names -> qn_torch_value. */
typedef struct qn_program_graph {
    qn_torch *t;
    qn_names values;
    int depth;
} qn_program_graph;

/* {"as_int": 3}: the one member says what it is. */
QN_MUST_CHECK qn_status qn_program_argument(qn_torch_value *out, qn_program_graph *g,
                                            const qn_json_place *argument);
/* {"name": ...} of what was computed. */
QN_MUST_CHECK qn_status qn_program_tensor(qn_torch_value *out, qn_program_graph *g,
                                          const qn_json_place *item);

#endif
