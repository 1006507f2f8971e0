/* Primitives of oneDNN: what to compute on which tensors, made once a plan, bound once a
 * session. */
#ifndef QN_PRIM_H
#define QN_PRIM_H

#include "backend/cpu/float/elementwise/chain.h"
#include "run/layout.h"

typedef struct qn_prim_engine qn_prim_engine;
typedef struct qn_prim qn_prim;
typedef struct qn_prim_run qn_prim_run;

QN_MUST_CHECK qn_status qn_prim_engine_create(qn_prim_engine **out, qn_context *ctx);
void qn_prim_engine_free(qn_prim_engine *engine);

typedef enum qn_prim_kind {
    QN_PRIM_CONV,
    QN_PRIM_DECONV,
    QN_PRIM_MATMUL,
    QN_PRIM_MAX_POOL,
    /* Over what lies inside */
    QN_PRIM_AVERAGE_POOL,
    /* Pads count as zeros */
    QN_PRIM_AVERAGE_POOL_PADDED,
    QN_PRIM_LRN,
    /* Gradients of a convolution: src and dst are its input and output, and where one of them, or
     * weights and bias, are the result, that is their gradient */
    QN_PRIM_CONV_BY_INPUT,
    QN_PRIM_CONV_BY_WEIGHTS
} qn_prim_kind;

enum { QN_PRIM_RANK = 6, QN_PRIM_SPATIAL = 3, QN_PRIM_POSTS = 4 };

typedef enum qn_prim_format {
    /* The order that `layout` says */
    QN_PRIM_LAYOUT,
    /* The order that `steps` says, floats along each dim */
    QN_PRIM_STEPS,
    /* oneDNN chooses: weights that are packed */
    QN_PRIM_ANY
} qn_prim_format;

typedef struct qn_prim_tensor {
    /* 0: there is none */
    int32_t rank;
    int64_t dims[QN_PRIM_RANK];
    qn_prim_format format;
    qn_layout layout;
    int64_t steps[QN_PRIM_RANK];
} qn_prim_tensor;

typedef struct qn_prim_post {
    qn_stage stage;
    /* ADD of what lies in dst */
    bool is_sum;
    /* Where the stage has one and is no sum */
    qn_prim_tensor operand;
} qn_prim_post;

typedef struct qn_prim_spec {
    qn_prim_kind kind;
    qn_prim_tensor src, weights, bias, dst;
    int64_t kernel[QN_PRIM_SPATIAL], stride[QN_PRIM_SPATIAL], dilation[QN_PRIM_SPATIAL];
    int64_t pad_begin[QN_PRIM_SPATIAL], pad_end[QN_PRIM_SPATIAL];
    int64_t lrn_size;
    float lrn_alpha, lrn_beta, lrn_bias;
    qn_prim_post posts[QN_PRIM_POSTS];
    int32_t n_posts;
} qn_prim_spec;

/* oneDNN can do the stage behind those posts that spec has, at no cost worth naming. */
bool qn_prim_fuses(const qn_prim_spec *spec, const qn_stage *stage);

/* *out NULL: oneDNN has nothing for this, or only its reference code. */
QN_MUST_CHECK qn_status qn_prim_find(qn_prim **out, qn_context *ctx, qn_prim_engine *engine,
                                     const qn_prim_spec *spec);
/* Makes it ready to run. */
QN_MUST_CHECK qn_status qn_prim_compile(qn_prim *prim);
void qn_prim_free(qn_prim *prim);
/* oneDNN's name of the implementation. */
const char *qn_prim_name(const qn_prim *prim);
size_t qn_prim_scratch(const qn_prim *prim);
/* Bytes of the weights as the primitive wants them. */
size_t qn_prim_weight_bytes(const qn_prim *prim);
/* Brings the weights there from `from`, which lies as `plain` says. */
QN_MUST_CHECK qn_status qn_prim_pack(const qn_prim *prim, void *to, const qn_prim_tensor *plain,
                                     const void *from);

/* The same in every run, for weights that change, and back, for their gradient. *out is NULL where
 * the primitive takes weights that lie as `plain` says. (reorder.c) */
typedef struct qn_prim_reorder qn_prim_reorder;
QN_MUST_CHECK qn_status qn_prim_reorder_bind(qn_prim_reorder **out, qn_context *ctx,
                                             const qn_prim *prim, const qn_prim_tensor *plain);
/* `packed` is how the primitive has it. */
QN_MUST_CHECK qn_status qn_prim_reorder_run(qn_prim_reorder *reorder, const void *plain,
                                            const void *packed);
void qn_prim_reorder_unbind(qn_context *ctx, qn_prim_reorder *reorder);

/* What a primitive reads and writes. */
typedef struct qn_prim_data {
    const void *src, *weights, *bias;
    void *dst, *scratch;
    /* By post */
    const void *operands[QN_PRIM_POSTS];
} qn_prim_data;

QN_MUST_CHECK qn_status qn_prim_bind(qn_prim_run **out, qn_context *ctx, const qn_prim *prim,
                                     const qn_prim_data *data);
/* Costs more where something lies elsewhere than the last time. */
QN_MUST_CHECK qn_status qn_prim_execute(qn_prim_run *run, const qn_prim_data *data);
void qn_prim_unbind(qn_context *ctx, qn_prim_run *run);

#endif
