/* A float network and the quantized one side by side: what every tensor is in both, sample by
 * sample. */
#ifndef QN_LAYER_COMPARISON_H
#define QN_LAYER_COMPARISON_H

#include "ir/qparams.h"
#include "model/prepare.h"

/* A tensor that nodes of both networks compute. */
typedef struct qn_compared_tensor {
    /* The tensor, its node and operator in the float graph */
    const char *name, *node, *op;
    /* Its name in the quantized one: of the integers, or of the floats */
    const char *quantized_name;
    /* The type of the integers; QN_UNDEFINED: it is float there too */
    qn_dtype dtype;
    /* Their parameters; zero may be NULL */
    const qn_tensor *scale, *zero;
    /* The axis of the scales, where there are several */
    int32_t axis;
    /* The factors that channels are divided by in the quantized network; NULL: none */
    const float *factor;
    int64_t n_factors;
    int32_t factor_axis;
    /* The function that reads it does not care for all of its values */
    bool through;
    /* The tensor of the sample at hand, row-major; data NULL: the float plan does not have it */
    qn_tensor real;
    /* Bytes there */
    size_t room;
    /* The quantized plan of the sample at hand had it */
    bool met;
    /* The nodes of the float model as its file has it that make this tensor of other compared ones;
     * see qn_layer_comparison_find_nodes */
    const qn_node **inside;
    size_t n_inside;
} qn_compared_tensor;

/* Which network: in SINGLE each layer of the quantized one reads the float network's values, as
 * integers where it wants these. */
typedef enum qn_compared_side {
    QN_SIDE_FLOAT,
    QN_SIDE_QUANTIZED,
    QN_SIDE_SINGLE,
    QN_SIDES
} qn_compared_side;

/* Gets each tensor as it is computed: float32 where it stands for real numbers as integers or
 * floats of 32 bits, else of its own type. Row-major, valid during the call. */
typedef qn_status qn_compared_tensor_fn(void *user, const qn_compared_tensor *tensor,
                                        qn_compared_side side, const qn_tensor *rows);

typedef struct qn_layer_comparison {
    qn_context *ctx;
    qn_arena arena;
    /* The tensors in the order of the float graph */
    qn_compared_tensor *at;
    size_t count;
    /* Tensor of an observed value of each network */
    qn_names by_name[2];
    qn_plan *plan[2];
    /* The plans are another's */
    bool forked;
    qn_session *session[2];
    /* An observed value row-major, and the numbers that it stands for */
    void *scratch[2];
    size_t room[2];
    qn_compared_tensor_fn *take;
    void *user;
    /* The side at hand */
    qn_compared_side side;
} qn_layer_comparison;

typedef struct qn_layer_comparison_options {
    const qn_graph_options *graph;
    /* Tensors that stay float too */
    bool all;
    /* The threads of a plan; 0: the context's */
    int threads;
    /* Nothing is run but forks */
    bool only_plans;
} qn_layer_comparison_options;

/* The tensors that two graphs have in common (passes done as for quantization and for a file), and
 * their plans. Direct, so that what is measured does not depend on the number of threads.
 * qn_layer_comparison_close in any case. */
QN_MUST_CHECK qn_status qn_layer_comparison_open(qn_layer_comparison *out, qn_context *ctx,
                                                 qn_model *real, qn_model *quantized,
                                                 const qn_layer_comparison_options *options);
/* One more that runs beside `from`, with its plans and tensors, whose strings it shares: `from` is
 * closed last. qn_layer_comparison_close in any case. */
QN_MUST_CHECK qn_status qn_layer_comparison_fork(qn_layer_comparison *out, qn_context *ctx,
                                                 const qn_layer_comparison *from);
/* The key of metadata whose value is JSON: {"tensor": {"axis": 1, "factor": [...], "through":
 * true}, ...}, factors of channels and such tensors as are cut off where the function behind them
 * does not care. */
#define QN_TENSORS_KEY "quench.tensors"
/* Factors and other facts that the model's metadata have, see QN_TENSORS_KEY; done by
 * qn_layer_comparison_open. (tensor_metadata.c) */
QN_MUST_CHECK qn_status qn_layer_comparison_read_metadata(qn_layer_comparison *comparison,
                                                          const qn_model *quantized);
/* Runs one sample through both networks, and a third time layer by layer where `single`. */
QN_MUST_CHECK qn_status qn_layer_comparison_run(qn_layer_comparison *comparison,
                                                const qn_tensor *inputs, size_t n_inputs,
                                                bool single);
/* After a run: fills `inside` of the tensors that it met from the graph of the file, whose nodes
 * must live as long, and names products before what was fused with them: `op` "Conv+Clip".
 * (fused_layers.c) */
QN_MUST_CHECK qn_status qn_layer_comparison_find_nodes(qn_layer_comparison *comparison,
                                                       const qn_graph *graph);
void qn_layer_comparison_close(qn_layer_comparison *comparison);

#endif
