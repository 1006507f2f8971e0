/* Weights that change: from how the graph has them to how a primitive wants them, in every run, and
 * back for their gradients. */
#include "backend/dnnl/prim_parts.h"

struct qn_prim_reorder {
    qn_context *ctx;
    qn_md plain;
    dnnl_memory_t from, to;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    /* From the primitive's form to the plain one */
    bool back;
};

static dnnl_status_t make(qn_prim_reorder *r, const qn_prim *prim)
{
    const qn_md_ref packed =
        dnnl_primitive_desc_query_md(prim->desc, qn_prim_weights_query(prim), 0);
    const qn_md_ref plain = qn_md_get(&r->plain);
    const qn_md_ref from = r->back ? packed : plain, to = r->back ? plain : packed;
    dnnl_status_t status = dnnl_memory_create(&r->from, from, prim->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&r->to, to, prim->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&r->desc, from, prim->engine, to, prim->engine,
                                                    NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&r->primitive, r->desc);
    if (status == dnnl_success)
        status = dnnl_stream_create(&r->stream, prim->engine, dnnl_stream_default_flags);
    return status;
}

static bool is_plain(const qn_prim_reorder *r, const qn_prim *prim)
{
    return dnnl_memory_desc_equal(
        qn_md_get(&r->plain),
        dnnl_primitive_desc_query_md(prim->desc, qn_prim_weights_query(prim), 0));
}

qn_status qn_prim_reorder_bind(qn_prim_reorder **out, qn_context *ctx, const qn_prim *prim,
                               const qn_prim_tensor *plain)
{
    qn_prim_reorder *r = qn_alloc_zero(ctx, 1, sizeof *r);
    *out = NULL;
    QN_TRY_ALLOC(ctx, r);
    r->ctx = ctx;
    r->back = prim->kind == QN_PRIM_CONV_BY_WEIGHTS;
    dnnl_status_t status = qn_prim_md(&r->plain, plain);
    if (status == dnnl_success && is_plain(r, prim)) {
        qn_prim_reorder_unbind(ctx, r);
        return QN_OK;
    }
    if (status == dnnl_success)
        status = make(r, prim);
    if (status == dnnl_success)
        *out = r;
    else
        qn_prim_reorder_unbind(ctx, r);
    return qn_prim_check(ctx, status, "reorder weights");
}

qn_status qn_prim_reorder_run(qn_prim_reorder *r, const void *plain, const void *packed)
{
    void *const from = (void *)(uintptr_t)(r->back ? packed : plain);
    void *const to = (void *)(uintptr_t)(r->back ? plain : packed);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, r->from}, {DNNL_ARG_TO, r->to}};
    dnnl_status_t status = dnnl_memory_set_data_handle(r->from, from);
    if (status == dnnl_success)
        status = dnnl_memory_set_data_handle(r->to, to);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(r->primitive, r->stream, 2, args);
    return qn_prim_check(r->ctx, status, "reorder weights");
}

void qn_prim_reorder_unbind(qn_context *ctx, qn_prim_reorder *r)
{
    if (!r)
        return;
    if (r->primitive)
        dnnl_primitive_destroy(r->primitive);
    if (r->desc)
        dnnl_primitive_desc_destroy(r->desc);
    if (r->from)
        dnnl_memory_destroy(r->from);
    if (r->to)
        dnnl_memory_destroy(r->to);
    if (r->stream)
        dnnl_stream_destroy(r->stream);
    qn_md_drop(&r->plain);
    qn_free(ctx, r);
}
