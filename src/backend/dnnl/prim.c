/* Primitives of oneDNN with what is fused behind them: created, bound to memory, run. */
#include "backend/dnnl/prim.h"

#include <string.h>

#include "backend/dnnl/prim_parts.h"

enum { MOST_ARGS = 5 + QN_PRIM_POSTS };

qn_status qn_prim_check(qn_context *ctx, dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return QN_OK;
    if (status == dnnl_out_of_memory)
        return qn_fail_nomem(ctx);
    return qn_fail(ctx, QN_E_UNSUPPORTED, "oneDNN failed to %s (status %d)", what, (int)status);
}

qn_status qn_prim_engine_create(qn_prim_engine **out, qn_context *ctx)
{
    *out = NULL;
    qn_prim_engine *e = qn_alloc_zero(ctx, 1, sizeof *e);
    QN_TRY_ALLOC(ctx, e);
    e->ctx = ctx;
    const qn_status status =
        qn_prim_check(ctx, dnnl_engine_create(&e->engine, dnnl_cpu, 0), "start its CPU engine");
    if (status == QN_OK)
        *out = e;
    else
        qn_free(ctx, e);
    return status;
}

void qn_prim_engine_free(qn_prim_engine *engine)
{
    dnnl_engine_destroy(engine->engine);
    qn_free(engine->ctx, engine);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void window_of(qn_onednn_window *out, const qn_prim_spec *spec)
{
    *out = (qn_onednn_window){.kernel = {0}};
    for (int d = 0; d < QN_PRIM_SPATIAL; d++) {
        out->kernel[d] = spec->kernel[d];
        out->stride[d] = spec->stride[d];
        out->dilation[d] = spec->dilation[d] - 1;
        out->pad_begin[d] = spec->pad_begin[d];
        out->pad_end[d] = spec->pad_end[d];
    }
}

static dnnl_status_t desc_make(qn_prim *prim, const qn_prim_spec *spec, const qn_onednn_tensors *t,
                               const_dnnl_primitive_attr_t attr)
{
    qn_onednn_window w;
    dnnl_primitive_desc_t *out = &prim->desc;
    window_of(&w, spec);
    switch (spec->kind) {
    case QN_PRIM_CONV: return qn_onednn_conv(out, prim->engine, t, &w, attr);
    case QN_PRIM_DECONV: return qn_onednn_deconv(out, prim->engine, t, &w, attr);
    case QN_PRIM_MATMUL: return qn_onednn_matmul(out, prim->engine, t, attr);
    case QN_PRIM_MAX_POOL: return qn_onednn_pool(out, prim->engine, dnnl_pooling_max, t, &w, attr);
    case QN_PRIM_AVERAGE_POOL:
        return qn_onednn_pool(out, prim->engine, dnnl_pooling_avg_exclude_padding, t, &w, attr);
    case QN_PRIM_AVERAGE_POOL_PADDED:
        return qn_onednn_pool(out, prim->engine, dnnl_pooling_avg_include_padding, t, &w, attr);
    case QN_PRIM_LRN: {
        const qn_onednn_lrn lrn = {spec->lrn_size, spec->lrn_alpha, spec->lrn_beta, spec->lrn_bias};
        return qn_onednn_lrn_across(out, prim->engine, t, &lrn, attr);
    }
    case QN_PRIM_CONV_BY_INPUT:
        return qn_onednn_conv_gradient(out, prim->engine, QN_ONEDNN_BY_INPUT, t, &w, attr);
    case QN_PRIM_CONV_BY_WEIGHTS:
        return qn_onednn_conv_gradient(out, prim->engine, QN_ONEDNN_BY_WEIGHTS, t, &w, attr);
    }
    return dnnl_unimplemented;
}

/* late_bias: as a post behind the sums. */
static dnnl_status_t find(qn_prim *prim, const qn_prim_spec *spec, bool late_bias)
{
    qn_onednn_tensors tensors;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = qn_prim_tensors(&tensors, spec);
    if (late_bias)
        qn_md_drop(&tensors.bias);
    if (status == dnnl_success)
        status = qn_prim_attr(&attr, &prim->posts, spec, late_bias);
    if (status == dnnl_success)
        status = desc_make(prim, spec, &tensors, attr);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    qn_prim_tensors_drop(&tensors);
    return status;
}

const char *qn_prim_name(const qn_prim *prim)
{
    const char *name = "";
    dnnl_primitive_desc_query(prim->desc, dnnl_query_impl_info_str, 0, &name);
    return name;
}

/* Finds a kernel that is not oneDNN's reference code. Below AVX2
 * its kernels add a second tensor wrongly (2.6). */
static dnnl_status_t find_fast(qn_prim *prim, const qn_prim_spec *spec, bool late_bias)
{
    const dnnl_status_t status = find(prim, spec, late_bias);
    if (status != dnnl_success)
        return status;
    const char *name = qn_prim_name(prim);
    if (strncmp(name, "ref", 3) != 0 && !(late_bias && !strstr(name, "avx")))
        return status;
    dnnl_primitive_desc_destroy(prim->desc);
    prim->desc = NULL;
    return dnnl_unimplemented;
}

/* oneDNN's convolutions begin their sums with the bias, so that every step is rounded at its
 * magnitude; where inputs are of one sign and the bias takes their mean away again, that is several
 * times the error of sums that begin with 0 and get the bias last. A post with a tensor costs some
 * microseconds of preparation in each run: only where it does not show. */
static bool is_worth_late_bias(const qn_prim_spec *spec)
{
    enum { LEAST_MACS = 1 << 20 };
    double macs = 1;
    for (int32_t d = 0; d < spec->weights.rank; d++)
        macs *= (double)spec->weights.dims[d];
    for (int32_t d = 2; d < spec->dst.rank; d++)
        macs *= (double)spec->dst.dims[d];
    return spec->kind == QN_PRIM_CONV && macs >= LEAST_MACS;
}

qn_status qn_prim_find(qn_prim **out, qn_context *ctx, qn_prim_engine *engine,
                       const qn_prim_spec *spec)
{
    *out = NULL;
    qn_prim *prim = qn_alloc_zero(ctx, 1, sizeof *prim);
    QN_TRY_ALLOC(ctx, prim);
    prim->ctx = ctx;
    prim->engine = engine->engine;
    prim->kind = spec->kind;
    prim->has_weights = spec->weights.rank > 0;
    prim->has_bias = spec->bias.rank > 0;
    const bool late_bias = prim->has_bias && is_worth_late_bias(spec);
    dnnl_status_t status = find_fast(prim, spec, late_bias);
    if (late_bias && status != dnnl_success && status != dnnl_out_of_memory)
        status = find_fast(prim, spec, false);
    if (status == dnnl_success) {
        *out = prim;
        return QN_OK;
    }
    qn_prim_free(prim);
    return status == dnnl_out_of_memory ? qn_fail_nomem(ctx) : QN_OK;
}

void qn_prim_free(qn_prim *prim)
{
    if (!prim)
        return;
    if (prim->primitive)
        dnnl_primitive_destroy(prim->primitive);
    if (prim->desc)
        dnnl_primitive_desc_destroy(prim->desc);
    qn_free(prim->ctx, prim);
}

qn_status qn_prim_compile(qn_prim *prim)
{
    return qn_prim_check(prim->ctx, dnnl_primitive_create(&prim->primitive, prim->desc),
                         "make a primitive");
}

/* ---- Weights --------------------------------------------------------------------------------- */

static size_t query_bytes(const qn_prim *prim, dnnl_query_t what)
{
    const qn_md_ref md = dnnl_primitive_desc_query_md(prim->desc, what, 0);
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

size_t qn_prim_scratch(const qn_prim *prim)
{
    return query_bytes(prim, dnnl_query_scratchpad_md);
}

size_t qn_prim_weight_bytes(const qn_prim *prim)
{
    return query_bytes(prim, qn_prim_weights_query(prim));
}

typedef struct reorder {
    qn_md plain;
    dnnl_memory_t from, to;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
} reorder;

static dnnl_status_t reorder_run(reorder *r, const qn_prim *prim, void *to,
                                 const qn_prim_tensor *plain, const void *from)
{
    const qn_md_ref wanted = dnnl_primitive_desc_query_md(prim->desc, dnnl_query_weights_md, 0);
    void *source = (void *)(uintptr_t)from;
    dnnl_status_t status = qn_prim_md(&r->plain, plain);
    if (status == dnnl_success)
        status = dnnl_memory_create(&r->from, qn_md_get(&r->plain), prim->engine, source);
    if (status == dnnl_success)
        status = dnnl_memory_create(&r->to, wanted, prim->engine, to);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&r->desc, qn_md_get(&r->plain), prim->engine,
                                                    wanted, prim->engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&r->primitive, r->desc);
    if (status == dnnl_success)
        status = dnnl_stream_create(&r->stream, prim->engine, dnnl_stream_default_flags);
    if (status != dnnl_success)
        return status;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, r->from}, {DNNL_ARG_TO, r->to}};
    status = dnnl_primitive_execute(r->primitive, r->stream, 2, args);
    return status == dnnl_success ? dnnl_stream_wait(r->stream) : status;
}

qn_status qn_prim_pack(const qn_prim *prim, void *to, const qn_prim_tensor *plain, const void *from)
{
    reorder r = {.from = NULL};
    const dnnl_status_t status = reorder_run(&r, prim, to, plain, from);
    if (r.primitive)
        dnnl_primitive_destroy(r.primitive);
    if (r.desc)
        dnnl_primitive_desc_destroy(r.desc);
    if (r.from)
        dnnl_memory_destroy(r.from);
    if (r.to)
        dnnl_memory_destroy(r.to);
    if (r.stream)
        dnnl_stream_destroy(r.stream);
    qn_md_drop(&r.plain);
    return qn_prim_check(prim->ctx, status, "pack weights");
}

/* ---- Running --------------------------------------------------------------------------------- */

struct qn_prim_run {
    qn_context *ctx;
    const qn_prim *prim;
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[MOST_ARGS];
    /* Where in qn_prim_data its address stands */
    size_t from[MOST_ARGS];
    const void *at[MOST_ARGS];
    int n_args;
};

static const void *address_of(const qn_prim_data *data, size_t from)
{
    const void *address;
    memcpy(&address, (const char *)data + from, sizeof address);
    return address;
}

/* `from`: the member of `data` that has its address. */
static dnnl_status_t add_arg(qn_prim_run *run, int arg, qn_md_ref md, const qn_prim_data *data,
                             size_t from)
{
    const int i = run->n_args;
    if (!md || dnnl_memory_desc_get_size(md) == 0)
        return dnnl_success;
    run->from[i] = from;
    run->at[i] = address_of(data, from);
    run->args[i].arg = arg;
    const dnnl_status_t status = dnnl_memory_create(&run->args[i].memory, md, run->prim->engine,
                                                    (void *)(uintptr_t)run->at[i]);
    if (status == dnnl_success)
        run->n_args++;
    return status;
}

static dnnl_status_t add_operand(qn_prim_run *run, int post, const qn_prim_data *data, size_t from)
{
    const int arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post) | DNNL_ARG_SRC_1;
    const qn_md_ref md = dnnl_primitive_desc_query_md(run->prim->desc, dnnl_query_exec_arg_md, arg);
    return add_arg(run, arg, md, data, from);
}

static dnnl_status_t add_operands(qn_prim_run *run, const qn_prim_data *data)
{
    const qn_prim *prim = run->prim;
    dnnl_status_t status = dnnl_success;
    if (prim->posts.bias >= 0)
        status = add_operand(run, prim->posts.bias, data, offsetof(qn_prim_data, bias));
    for (int32_t i = 0; i < prim->posts.count && status == dnnl_success; i++) {
        const size_t from = offsetof(qn_prim_data, operands) + (size_t)i * sizeof(void *);
        if (prim->posts.at[i].has_operand)
            status = add_operand(run, prim->posts.at[i].index, data, from);
    }
    return status;
}

/* An argument: oneDNN's number, the question for its descriptor, and where its address stands. */
typedef struct arg_row {
    int arg;
    dnnl_query_t query;
    int index;
    size_t from;
} arg_row;

#define AT(member) offsetof(qn_prim_data, member)
static const arg_row forward[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0, AT(src)},
                                  {DNNL_ARG_DST, dnnl_query_dst_md, 0, AT(dst)},
                                  {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0, AT(weights)},
                                  {DNNL_ARG_BIAS, dnnl_query_weights_md, 1, AT(bias)}};
static const arg_row by_input[] = {{DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0, AT(src)},
                                   {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0, AT(dst)},
                                   {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0, AT(weights)},
                                   {0}};
static const arg_row by_weights[] = {
    {DNNL_ARG_SRC, dnnl_query_src_md, 0, AT(src)},
    {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0, AT(dst)},
    {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, 0, AT(weights)},
    {DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, 1, AT(bias)}};

static const arg_row *rows_of(qn_prim_kind kind)
{
    return kind == QN_PRIM_CONV_BY_INPUT     ? by_input
           : kind == QN_PRIM_CONV_BY_WEIGHTS ? by_weights
                                             : forward;
}

static dnnl_status_t add_args(qn_prim_run *run, const qn_prim_data *data)
{
    const qn_prim *prim = run->prim;
    const arg_row *rows = rows_of(prim->kind);
    const arg_row scratch = {DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, 0, AT(scratch)};
    const bool is_there[] = {true, true, prim->has_weights, prim->has_bias && prim->posts.bias < 0,
                             true};
    for (size_t i = 0; i < QN_COUNT_OF(is_there); i++) {
        const arg_row *row = i < 4 ? &rows[i] : &scratch;
        if (!is_there[i])
            continue;
        const qn_md_ref md = dnnl_primitive_desc_query_md(prim->desc, row->query, row->index);
        const dnnl_status_t status = add_arg(run, row->arg, md, data, row->from);
        if (status != dnnl_success)
            return status;
    }
    return add_operands(run, data);
}

qn_status qn_prim_bind(qn_prim_run **out, qn_context *ctx, const qn_prim *prim,
                       const qn_prim_data *data)
{
    *out = NULL;
    qn_prim_run *run = qn_alloc_zero(ctx, 1, sizeof *run);
    QN_TRY_ALLOC(ctx, run);
    run->ctx = ctx;
    run->prim = prim;
    dnnl_status_t status =
        dnnl_stream_create(&run->stream, prim->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = add_args(run, data);
    if (status == dnnl_success) {
        *out = run;
        return QN_OK;
    }
    qn_prim_unbind(ctx, run);
    return qn_prim_check(ctx, status, "bind a primitive");
}

qn_status qn_prim_execute(qn_prim_run *run, const qn_prim_data *data)
{
    for (int i = 0; i < run->n_args; i++) {
        const void *at = address_of(data, run->from[i]);
        if (at == run->at[i])
            continue;
        QN_TRY(qn_prim_check(
            run->ctx, dnnl_memory_set_data_handle(run->args[i].memory, (void *)(uintptr_t)at),
            "set an address"));
        run->at[i] = at;
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(run->prim->primitive, run->stream, run->n_args, run->args);
    return qn_prim_check(run->ctx, status, "run a primitive");
}

void qn_prim_unbind(qn_context *ctx, qn_prim_run *run)
{
    if (!run)
        return;
    for (int i = 0; i < run->n_args; i++)
        dnnl_memory_destroy(run->args[i].memory);
    if (run->stream)
        dnnl_stream_destroy(run->stream);
    qn_free(ctx, run);
}
