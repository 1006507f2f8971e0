/* A step that is one primitive of oneDNN and the element-wise nodes behind it: what convolutions,
 * matrix products and pools have in common. */
#ifndef QN_DNNL_STEP_H
#define QN_DNNL_STEP_H

#include "backend/cpu/float/elementwise/tail.h"
#include "backend/dnnl/prim.h"

typedef struct qn_dnnl_step {
    qn_prim_spec spec;
    qn_prim *prim;
    /* Constant, to be packed as `plain` says; NULL: input 1, or none */
    const qn_tensor *weights;
    qn_prim_tensor plain;
    void *packed;
    /* Weights that change are packed in every run, into scratch memory from here on. */
    bool repacks;
    size_t packed_at;
    /* The bias as spec.bias wants it, or NULL; -1, or the input of the claim that has it */
    float *bias;
    int32_t bias_in;
    /* Channels are rounded up to whole blocks */
    bool is_padded;
    /* The next node, which is in the primitive already (a bias), or NULL */
    qn_node *extra;
    /* The factor that the result of a product is multiplied by */
    float alpha;
    qn_tail tail;
    /* Stages of the tail that are posts of the primitive */
    int32_t n_fused;
    /* By post: operand of the tail, -1: none */
    int32_t post_operands[QN_PRIM_POSTS];
    /* The layout of the result is one for chains */
    bool has_tail;
    /* Samples lie apart: the primitive computes one and is run once for each. */
    int64_t repeats;
    size_t src_stride, dst_stride, operand_strides[QN_PRIM_POSTS];
} qn_dnnl_step;

/* The engine of this plan. */
QN_MUST_CHECK qn_status qn_dnnl_engine(qn_prim_engine **out, qn_builder *builder);
/* A step in the plan's memory with nothing in it. */
QN_MUST_CHECK qn_status qn_dnnl_step_create(qn_dnnl_step **out, const qn_claim *claim);
/* Looks for a primitive for step->spec; step->prim stays NULL where there is none. */
QN_MUST_CHECK qn_status qn_dnnl_step_find(qn_dnnl_step *step, const qn_claim *claim);
/* After step->prim is found: takes element-wise nodes behind the claim's node into it, as posts
 * where oneDNN can, and gives the claim its inputs, its output and its kernel. Input 0 of the node
 * is the source; input 1 is read while running where there are weights that are not constant. */
QN_MUST_CHECK qn_status qn_dnnl_step_finish(qn_dnnl_step *step, qn_claim *claim,
                                            const qn_kernel *kernel);

/* Brings the constant weights to step->packed; the primitive must be final. (weights.c) */
QN_MUST_CHECK qn_status qn_dnnl_pack(qn_dnnl_step *step, const qn_claim *claim);

/* For the kernels, whose state is the step. */
QN_MUST_CHECK qn_status qn_dnnl_step_prepare(qn_claim *claim);
QN_MUST_CHECK qn_status qn_dnnl_step_bind(void **bound, const void *state, const qn_step_io *io);
QN_MUST_CHECK qn_status qn_dnnl_step_run(const void *state, void *bound, const qn_step_io *io);
void qn_dnnl_step_unbind(qn_context *ctx, const void *state, void *bound);
void qn_dnnl_step_free(void *state);
#define QN_DNNL_KERNEL(NAME)                                                                       \
    {                                                                                              \
        .name = (NAME), .prepare = qn_dnnl_step_prepare, .bind = qn_dnnl_step_bind,                \
        .run = qn_dnnl_step_run, .unbind = qn_dnnl_step_unbind, .free = qn_dnnl_step_free          \
    }

#endif
