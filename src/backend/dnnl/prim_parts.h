/* What a primitive is made of, in oneDNN's own terms: descriptors of its tensors, and what it does
 * behind the product. */
#ifndef QN_PRIM_PARTS_H
#define QN_PRIM_PARTS_H

#include "backend/dnnl/onednn.h"
#include "backend/dnnl/prim.h"

/* To be dropped with qn_md_drop; empty where there is no tensor. */
dnnl_status_t qn_prim_md(qn_md *out, const qn_prim_tensor *t);
/* To be dropped, whatever the status. */
dnnl_status_t qn_prim_tensors(qn_onednn_tensors *out, const qn_prim_spec *spec);
void qn_prim_tensors_drop(qn_onednn_tensors *t);

/* Where the posts of a spec, and the bias, stand among oneDNN's own: a stage can be two of them. */
typedef struct qn_prim_posts {
    /* -1: an argument of the primitive */
    int bias;
    struct {
        bool has_operand;
        int index;
    } at[QN_PRIM_POSTS];
    int32_t count;
} qn_prim_posts;

/* Attributes: scratch memory is ours, and the posts; `late_bias`: the bias is one of them. */
dnnl_status_t qn_prim_attr(dnnl_primitive_attr_t *out, qn_prim_posts *placed,
                           const qn_prim_spec *spec, bool late_bias);

/* ---- A primitive ----------------------------------------------------------------------------- */

struct qn_prim_engine {
    qn_context *ctx;
    dnnl_engine_t engine;
};

struct qn_prim {
    qn_context *ctx;
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    qn_prim_kind kind;
    bool has_weights, has_bias;
    qn_prim_posts posts;
};

/* What asks for the descriptor of its weights, or of their gradient. */
static inline dnnl_query_t qn_prim_weights_query(const qn_prim *prim)
{
    return prim->kind == QN_PRIM_CONV_BY_WEIGHTS ? dnnl_query_diff_weights_md
                                                 : dnnl_query_weights_md;
}

/* A status of oneDNN's as one of ours, which failed to do that. */
QN_MUST_CHECK qn_status qn_prim_check(qn_context *ctx, dnnl_status_t status, const char *what);

#endif
