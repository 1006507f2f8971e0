/* oneDNN's descriptors and primitives behind one interface for its versions 2 and 3. */
#include "backend/dnnl/onednn.h"

#include <stddef.h>

static const dnnl_prop_kind_t inference = dnnl_forward_inference;

/* oneDNN makes a gradient with the description of the convolution that it belongs to. */
typedef struct gradient_of {
    const_dnnl_primitive_desc_t forward;
    const_dnnl_primitive_attr_t attr;
} gradient_of;

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t qn_md_make(qn_md *out, int rank, const dnnl_dim_t *dims, const dnnl_dim_t *strides,
                         dnnl_format_tag_t tag)
{
    out->desc = NULL;
    if (strides)
        return dnnl_memory_desc_create_with_strides(&out->desc, rank, dims, dnnl_f32, strides);
    return dnnl_memory_desc_create_with_tag(&out->desc, rank, dims, dnnl_f32, tag);
}

void qn_md_drop(qn_md *md)
{
    if (md->desc)
        dnnl_memory_desc_destroy(md->desc);
    md->desc = NULL;
}

qn_md_ref qn_md_get(const qn_md *md)
{
    return md->desc;
}

dnnl_status_t qn_onednn_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                             const qn_onednn_tensors *t, const qn_onednn_window *w,
                             const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, inference, dnnl_convolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
        qn_md_get(&t->bias), qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin, w->pad_end,
        attr);
}

static dnnl_status_t gradient_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   qn_onednn_gradient by, const qn_onednn_tensors *t,
                                   const qn_onednn_window *w, const gradient_of *of)
{
    if (by == QN_ONEDNN_BY_INPUT)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, dnnl_convolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
            qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin, w->pad_end, of->forward,
            of->attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, engine, dnnl_convolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
        qn_md_get(&t->bias), qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin, w->pad_end,
        of->forward, of->attr);
}

dnnl_status_t qn_onednn_deconv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const qn_onednn_tensors *t, const qn_onednn_window *w,
                               const_dnnl_primitive_attr_t attr)
{
    return dnnl_deconvolution_forward_primitive_desc_create(
        out, engine, inference, dnnl_deconvolution_direct, qn_md_get(&t->src),
        qn_md_get(&t->weights), qn_md_get(&t->bias), qn_md_get(&t->dst), w->stride, w->dilation,
        w->pad_begin, w->pad_end, attr);
}

dnnl_status_t qn_onednn_pool(dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg,
                             const qn_onednn_tensors *t, const qn_onednn_window *w,
                             const_dnnl_primitive_attr_t attr)
{
    return dnnl_pooling_forward_primitive_desc_create(
        out, engine, inference, alg, qn_md_get(&t->src), qn_md_get(&t->dst), w->stride, w->kernel,
        w->dilation, w->pad_begin, w->pad_end, attr);
}

dnnl_status_t qn_onednn_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const qn_onednn_tensors *t, const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(out, engine, qn_md_get(&t->src),
                                             qn_md_get(&t->weights), qn_md_get(&t->bias),
                                             qn_md_get(&t->dst), attr);
}

dnnl_status_t qn_onednn_lrn_across(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const qn_onednn_tensors *t, const qn_onednn_lrn *lrn,
                                   const_dnnl_primitive_attr_t attr)
{
    return dnnl_lrn_forward_primitive_desc_create(out, engine, inference, dnnl_lrn_across_channels,
                                                  qn_md_get(&t->src), qn_md_get(&t->dst), lrn->size,
                                                  lrn->alpha, lrn->beta, lrn->bias, attr);
}

dnnl_status_t qn_onednn_post_eltwise(dnnl_post_ops_t posts, dnnl_alg_kind_t alg, float alpha,
                                     float beta)
{
    return dnnl_post_ops_append_eltwise(posts, alg, alpha, beta);
}

dnnl_status_t qn_onednn_post_hard_swish(dnnl_post_ops_t posts)
{
    return dnnl_post_ops_append_eltwise(posts, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
}

dnnl_status_t qn_onednn_post_sum(dnnl_post_ops_t posts)
{
    return dnnl_post_ops_append_sum(posts, 1, 0, dnnl_data_type_undef);
}

#else

dnnl_status_t qn_md_make(qn_md *out, int rank, const dnnl_dim_t *dims, const dnnl_dim_t *strides,
                         dnnl_format_tag_t tag)
{
    /* The functions read whole dnnl_dims_t. */
    dnnl_dims_t all = {0}, steps = {0};
    for (int d = 0; d < rank; d++) {
        all[d] = dims[d];
        steps[d] = strides ? strides[d] : 0;
    }
    if (strides)
        return dnnl_memory_desc_init_by_strides(&out->desc, rank, all, dnnl_f32, steps);
    return dnnl_memory_desc_init_by_tag(&out->desc, rank, all, dnnl_f32, tag);
}

void qn_md_drop(qn_md *md)
{
    md->desc.ndims = 0;
}

qn_md_ref qn_md_get(const qn_md *md)
{
    return md->desc.ndims ? &md->desc : NULL;
}

dnnl_status_t qn_onednn_conv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                             const qn_onednn_tensors *t, const qn_onednn_window *w,
                             const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t desc;
    const dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &desc, inference, dnnl_convolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
        qn_md_get(&t->bias), qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin, w->pad_end);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

static dnnl_status_t gradient_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   qn_onednn_gradient by, const qn_onednn_tensors *t,
                                   const qn_onednn_window *w, const gradient_of *of)
{
    dnnl_convolution_desc_t desc;
    const dnnl_status_t status =
        by == QN_ONEDNN_BY_INPUT
            ? dnnl_dilated_convolution_backward_data_desc_init(
                  &desc, dnnl_convolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
                  qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin, w->pad_end)
            : dnnl_dilated_convolution_backward_weights_desc_init(
                  &desc, dnnl_convolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
                  qn_md_get(&t->bias), qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin,
                  w->pad_end);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &desc, of->attr, engine, of->forward);
}

dnnl_status_t qn_onednn_deconv(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const qn_onednn_tensors *t, const qn_onednn_window *w,
                               const_dnnl_primitive_attr_t attr)
{
    dnnl_deconvolution_desc_t desc;
    const dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
        &desc, inference, dnnl_deconvolution_direct, qn_md_get(&t->src), qn_md_get(&t->weights),
        qn_md_get(&t->bias), qn_md_get(&t->dst), w->stride, w->dilation, w->pad_begin, w->pad_end);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

dnnl_status_t qn_onednn_pool(dnnl_primitive_desc_t *out, dnnl_engine_t engine, dnnl_alg_kind_t alg,
                             const qn_onednn_tensors *t, const qn_onednn_window *w,
                             const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_v2_desc_t desc;
    const dnnl_status_t status = dnnl_pooling_v2_forward_desc_init(
        &desc, inference, alg, qn_md_get(&t->src), qn_md_get(&t->dst), w->stride, w->kernel,
        w->dilation, w->pad_begin, w->pad_end);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

dnnl_status_t qn_onednn_matmul(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const qn_onednn_tensors *t, const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t desc;
    const dnnl_status_t status = dnnl_matmul_desc_init(
        &desc, qn_md_get(&t->src), qn_md_get(&t->weights), qn_md_get(&t->bias), qn_md_get(&t->dst));
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

dnnl_status_t qn_onednn_lrn_across(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                   const qn_onednn_tensors *t, const qn_onednn_lrn *lrn,
                                   const_dnnl_primitive_attr_t attr)
{
    dnnl_lrn_desc_t desc;
    const dnnl_status_t status =
        dnnl_lrn_forward_desc_init(&desc, inference, dnnl_lrn_across_channels, qn_md_get(&t->src),
                                   lrn->size, lrn->alpha, lrn->beta, lrn->bias);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(out, &desc, attr, engine, NULL);
}

dnnl_status_t qn_onednn_post_eltwise(dnnl_post_ops_t posts, dnnl_alg_kind_t alg, float alpha,
                                     float beta)
{
    return dnnl_post_ops_append_eltwise(posts, 1, alg, alpha, beta);
}

dnnl_status_t qn_onednn_post_hard_swish(dnnl_post_ops_t posts)
{
    return dnnl_post_ops_append_eltwise(posts, 1, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
}

dnnl_status_t qn_onednn_post_sum(dnnl_post_ops_t posts)
{
    return dnnl_post_ops_append_sum(posts, 1);
}

#endif

/* ---- For both -------------------------------------------------------------------------------- */

dnnl_status_t qn_onednn_conv_gradient(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                      qn_onednn_gradient by, const qn_onednn_tensors *t,
                                      const qn_onednn_window *w, const_dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t forward;
    dnnl_status_t status = qn_onednn_conv(&forward, engine, t, w, NULL);
    if (status != dnnl_success)
        return status;
    const gradient_of of = {forward, attr};
    status = gradient_desc(out, engine, by, t, w, &of);
    dnnl_primitive_desc_destroy(forward);
    return status;
}
