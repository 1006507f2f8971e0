/* oneDNN as the rest of this folder sees it: the calls whose form changed between 2.x and 3.x. All
 * return oneDNN's own status. */
#ifndef QN_ONEDNN_H
#define QN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

/* A memory descriptor: a struct in 2.x, an object in 3.x. */
typedef struct qn_md {
    dnnl_memory_desc_t desc;
} qn_md;
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t qn_md_ref;
#else
typedef const dnnl_memory_desc_t *qn_md_ref;
#endif

/* `strides` NULL: by tag. An empty descriptor (of a bias that is not there) is {0}; descriptors are
 * dropped with qn_md_drop, empty ones too. */
dnnl_status_t qn_md_make(qn_md *out, int rank, const dnnl_dim_t *dims, const dnnl_dim_t *strides,
                         dnnl_format_tag_t tag);
void qn_md_drop(qn_md *md);
/* NULL for an empty one. */
qn_md_ref qn_md_get(const qn_md *md);

/* Geometry of convolutions and pools; dilations are 0 where elements stand side by side. */
typedef struct qn_onednn_window {
    dnnl_dims_t kernel, stride, dilation, pad_begin, pad_end;
} qn_onednn_window;

typedef struct qn_onednn_tensors {
    qn_md src, weights, bias, dst;
} qn_onednn_tensors;

dnnl_status_t qn_onednn_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                             const qn_onednn_tensors *t, const qn_onednn_window *w,
                             const_dnnl_primitive_attr_t attr);
dnnl_status_t qn_onednn_deconv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const qn_onednn_tensors *t, const qn_onednn_window *w,
                               const_dnnl_primitive_attr_t attr);
dnnl_status_t qn_onednn_pool(dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg,
                             const qn_onednn_tensors *t, const qn_onednn_window *w,
                             const_dnnl_primitive_attr_t attr);
dnnl_status_t qn_onednn_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const qn_onednn_tensors *t, const_dnnl_primitive_attr_t attr);

/* The gradient of a convolution by its input, or by its weights and bias: of the tensors, src and
 * dst are those of the convolution, and hold the input's or weights' gradient where that is the
 * result. */
typedef enum qn_onednn_gradient { QN_ONEDNN_BY_INPUT, QN_ONEDNN_BY_WEIGHTS } qn_onednn_gradient;
dnnl_status_t qn_onednn_conv_gradient(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      qn_onednn_gradient by, const qn_onednn_tensors *t,
                                      const qn_onednn_window *w, const_dnnl_primitive_attr_t attr);

typedef struct qn_onednn_lrn {
    dnnl_dim_t size;
    float alpha, beta, bias;
} qn_onednn_lrn;
dnnl_status_t qn_onednn_lrn_across(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const qn_onednn_tensors *t, const qn_onednn_lrn *lrn,
                                   const_dnnl_primitive_attr_t attr);

dnnl_status_t qn_onednn_post_eltwise(dnnl_post_ops_t posts, dnnl_alg_kind_t alg, float alpha,
                                     float beta);
/* x max(0, min(1, x / 6 + 1 / 2)) */
dnnl_status_t qn_onednn_post_hard_swish(dnnl_post_ops_t posts);
dnnl_status_t qn_onednn_post_sum(dnnl_post_ops_t posts);

#endif
