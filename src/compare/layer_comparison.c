/* A float network and the quantized one run side by side. */
#include "compare/layer_comparison.h"

#include <string.h>

#include "ops/kinds.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"
#include "pass/qdq_nodes.h"
#include "run/session.h"

/* ---- Which tensors --------------------------------------------------------------------------- */

/* The tensor that the node makes integers of: the one that the name of these tells, since a Relu in
 * between may have gone, or else the one that it reads. */
static const char *quantized_name(qn_arena *arena, const qn_node *node)
{
    const char *name = node->out[0]->name;
    const size_t base = qn_qdq_base_length(name);
    return name[base] ? qn_arena_text(arena, name, base) : node->in[0]->name;
}

static bool is_quantize(const qn_node *node)
{
    return qn_op_is_quantize(node->op) && node->n_in >= 2 && node->n_out >= 1 && node->in[0] &&
           node->in[1] && node->out[0] && !node->in[0]->data && node->in[1]->data;
}

/* The first node that makes integers of each tensor. */
static qn_status list_integers(qn_names *out, qn_arena *arena, const qn_graph *graph)
{
    for (qn_node *node = graph->first; node; node = node->next) {
        if (!is_quantize(node))
            continue;
        const char *name = quantized_name(arena, node);
        QN_TRY_ALLOC(graph->ctx, name);
        if (!qn_names_get(out, name))
            QN_TRY(qn_names_set(out, name, node));
    }
    return QN_OK;
}

/* Files may hold anything. */
static bool are_parameters(const qn_tensor *scale, const qn_tensor *zero)
{
    return scale->dtype == QN_FLOAT32 && qn_tensor_count(scale) >= 1 &&
           (!zero ||
            (qn_dtype_is_integer(zero->dtype) && qn_tensor_count(zero) == qn_tensor_count(scale)));
}

static void describe_integers(qn_compared_tensor *p, const qn_node *quantize)
{
    const qn_quantize_attrs *attrs = quantize->attrs;
    const qn_value *zero = quantize->n_in > 2 ? quantize->in[2] : NULL;
    if ((zero && !zero->data) || !are_parameters(quantize->in[1]->data, zero ? zero->data : NULL))
        return;
    p->quantized_name = quantize->out[0]->name;
    p->dtype = zero ? zero->data->dtype : QN_UINT8;
    p->scale = quantize->in[1]->data;
    p->zero = zero ? zero->data : NULL;
    p->axis = (int32_t)attrs->axis;
}

static qn_status add_tensor(qn_layer_comparison *s, const qn_value *value, const qn_node *quantize)
{
    qn_compared_tensor *p = &s->at[s->count++];
    *p = (qn_compared_tensor){
        .name = qn_arena_text(&s->arena, value->name, strlen(value->name)),
        .node = qn_arena_text(&s->arena, value->producer->name, strlen(value->producer->name)),
        .op = value->producer->op->name};
    if (!p->name || !p->node)
        return qn_fail_nomem(s->ctx);
    p->quantized_name = p->name;
    if (quantize)
        describe_integers(p, quantize);
    QN_TRY(qn_names_set(&s->by_name[0], p->name, p));
    return qn_names_set(&s->by_name[1], p->quantized_name, p);
}

static qn_status list_tensors(qn_layer_comparison *s, const qn_graph *real,
                              const qn_names *integers, bool all)
{
    size_t most = 1;
    for (const qn_node *node = real->first; node; node = node->next)
        most += (size_t)node->n_out;
    s->at = qn_arena_array(&s->arena, most, sizeof *s->at);
    QN_TRY_ALLOC(s->ctx, s->at);
    for (const qn_node *node = real->first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_out; i++) {
            const qn_node *quantize =
                node->out[i] ? qn_names_get(integers, node->out[i]->name) : NULL;
            if (node->out[i] && (all || quantize))
                QN_TRY(add_tensor(s, node->out[i], quantize));
        }
    }
    return QN_OK;
}

/* ---- Numbers and the integers that stand for them -------------------------------------------- */

/* Where a tensor has one number for each index of an axis. */
typedef struct spread {
    int64_t count, inner;
} spread;

static bool spread_over(spread *out, const qn_tensor *shape, int32_t axis, int64_t count)
{
    *out = (spread){count, 1};
    if (count == 1)
        return true;
    axis += axis < 0 ? shape->rank : 0;
    if (axis < 0 || axis >= shape->rank || shape->dims[axis] != count)
        return false;
    for (int32_t d = axis + 1; d < shape->rank; d++)
        out->inner *= shape->dims[d];
    return true;
}

typedef struct meaning {
    const qn_compared_tensor *tensor;
    spread scales, factors;
    qn_limits limits;
} meaning;

/* False where the tensor has another shape than the parameters are for. */
static bool find_meaning(meaning *out, const qn_compared_tensor *p, const qn_tensor *shape)
{
    *out = (meaning){.tensor = p};
    if (p->dtype != QN_UNDEFINED)
        out->limits = qn_limits_of(p->dtype);
    return (!p->scale || spread_over(&out->scales, shape, p->axis, qn_tensor_count(p->scale))) &&
           (!p->factor || spread_over(&out->factors, shape, p->factor_axis, p->n_factors));
}

static float factor_at(const meaning *m, int64_t i)
{
    return m->tensor->factor ? m->tensor->factor[i / m->factors.inner % m->factors.count] : 1.0F;
}

static qn_qparams params_at(const meaning *m, int64_t i)
{
    const int64_t k = i / m->scales.inner % m->scales.count;
    qn_qparams q = qn_qparams_of_type(m->tensor->dtype);
    q.scale = ((const float *)m->tensor->scale->data)[k];
    if (m->tensor->zero)
        qn_load_i64(&q.zero, m->tensor->zero->dtype, m->tensor->zero->data, k, 1);
    return q;
}

enum { BLOCK = 256 };

static int64_t rest_of(const spread *s, int64_t i)
{
    return s->count > 1 ? s->inner - i % s->inner : BLOCK;
}

/* How many numbers from i on, of a block at most, have one scale and one factor: nothing is looked
 * up for each. */
static int64_t run_at(const meaning *m, int64_t i, int64_t count)
{
    return QN_MIN(QN_MIN(count - i, BLOCK),
                  QN_MIN(rest_of(&m->scales, i), rest_of(&m->factors, i)));
}

static void dequantize(float *out, const meaning *m, const qn_tensor *rows)
{
    int64_t block[BLOCK];
    const int64_t count = qn_tensor_count(rows);
    for (int64_t first = 0, n; first < count; first += n) {
        const qn_qparams q = params_at(m, first);
        const float factor = factor_at(m, first);
        n = run_at(m, first, count);
        qn_load_i64(block, rows->dtype, rows->data, first, n);
        for (int64_t i = 0; i < n; i++)
            out[first + i] = qn_dequantize(block[i], &q) * factor;
    }
}

/* real: float32 */
static void quantize(void *out, const meaning *m, const qn_tensor *real)
{
    int64_t block[BLOCK];
    const int64_t count = qn_tensor_count(real);
    const float *x = real->data;
    for (int64_t first = 0, n; first < count; first += n) {
        const qn_qparams q = params_at(m, first);
        const float factor = factor_at(m, first);
        n = run_at(m, first, count);
        for (int64_t i = 0; i < n; i++)
            block[i] = qn_quantize(x[first + i] / factor, &q, m->limits);
        qn_store_i64(out, m->tensor->dtype, first, block, n);
    }
}

static void scale_floats(float *out, const meaning *m, const float *x, int64_t count, bool divide)
{
    for (int64_t first = 0, n; first < count; first += n) {
        const float factor = factor_at(m, first);
        n = run_at(m, first, count);
        for (int64_t i = first; i < first + n; i++)
            out[i] = divide ? x[i] / factor : x[i] * factor;
    }
}

/* ---- Values as they pass --------------------------------------------------------------------- */

static size_t bytes_of(const qn_tensor *tensor)
{
    return (size_t)qn_tensor_count(tensor) * qn_dtype_size(tensor->dtype);
}

static qn_status grow(qn_context *ctx, void **block, size_t *room, size_t size)
{
    if (size <= *room && *block)
        return QN_OK;
    qn_free(ctx, *block);
    *room = 0;
    *block = qn_alloc(ctx, QN_MAX(size, 1));
    if (!*block)
        return qn_fail_bytes(ctx, size, "a copy of a tensor");
    *room = QN_MAX(size, 1);
    return QN_OK;
}

static void convert(void *rows, const qn_observation *seen, bool back)
{
    const int64_t samples = seen->tensor->rank > 0 ? QN_MAX(seen->tensor->dims[0], 1) : 1;
    const qn_laid_out there = {seen->tensor->data, seen->layout, seen->stride},
                      here = {rows, QN_ROWS, bytes_of(seen->tensor) / (size_t)samples};
    if (bytes_of(seen->tensor))
        qn_layout_convert(back ? &there : &here, back ? &here : &there, seen->tensor);
}

static bool is_plain(const qn_tensor *tensor)
{
    return tensor->dtype < QN_SEQUENCE && tensor->dtype != QN_STRING;
}

static bool same_shape(const qn_tensor *a, const qn_tensor *b)
{
    bool same = a->rank == b->rank;
    for (int32_t d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

static qn_status keep_real(void *user, const qn_observation *seen)
{
    qn_layer_comparison *s = user;
    qn_compared_tensor *p = qn_names_get(&s->by_name[0], seen->value->name);
    if (!p || !is_plain(seen->tensor))
        return QN_OK;
    void *data = p->real.data;
    p->real.data = NULL;
    const qn_status status = grow(s->ctx, &data, &p->room, bytes_of(seen->tensor));
    p->real = *seen->tensor;
    p->real.data = data;
    QN_TRY(status);
    convert(data, seen, false);
    return s->take(s->user, p, QN_SIDE_FLOAT, &p->real);
}

/* scratch[1] = the numbers that those of scratch[0] stand for. */
static qn_status find_numbers(qn_tensor *out, qn_layer_comparison *s, const meaning *m,
                              const qn_tensor *rows)
{
    const int64_t count = qn_tensor_count(rows);
    const qn_compared_tensor *p = m->tensor;
    *out = *rows;
    if (p->dtype == QN_UNDEFINED && (!p->factor || rows->dtype != QN_FLOAT32))
        return QN_OK;
    QN_TRY(grow(s->ctx, &s->scratch[1], &s->room[1], (size_t)count * sizeof(float)));
    out->dtype = QN_FLOAT32;
    out->data = s->scratch[1];
    if (p->dtype == QN_UNDEFINED)
        scale_floats(out->data, m, rows->data, count, false);
    else
        dequantize(out->data, m, rows);
    return QN_OK;
}

/* What the float network has, in the place of what the quantized one computed. */
static void put_exact(qn_layer_comparison *s, const meaning *m, const qn_observation *seen)
{
    const qn_compared_tensor *p = m->tensor;
    if (p->dtype != QN_UNDEFINED)
        quantize(s->scratch[0], m, &p->real);
    else if (p->factor && p->real.dtype == QN_FLOAT32)
        scale_floats(s->scratch[0], m, p->real.data, qn_tensor_count(&p->real), true);
    else
        memcpy(s->scratch[0], p->real.data, bytes_of(&p->real));
    convert(s->scratch[0], seen, true);
}

/* A plan of the quantized network may call something else by the name of a tensor that it has no
 * more. */
static bool is_same(const qn_compared_tensor *p, const qn_tensor *tensor)
{
    if (!p->real.data || !is_plain(tensor) || !same_shape(&p->real, tensor))
        return false;
    return p->dtype == QN_UNDEFINED ? tensor->dtype == p->real.dtype
                                    : tensor->dtype == p->dtype && p->real.dtype == QN_FLOAT32;
}

static qn_status meet_quantized(void *user, const qn_observation *seen)
{
    qn_layer_comparison *s = user;
    qn_compared_tensor *p = qn_names_get(&s->by_name[1], seen->value->name);
    qn_tensor rows = *seen->tensor, numbers;
    meaning m;
    if (!p || !is_same(p, seen->tensor) || !find_meaning(&m, p, seen->tensor))
        return QN_OK;
    QN_TRY(grow(s->ctx, &s->scratch[0], &s->room[0], bytes_of(&rows)));
    rows.data = s->scratch[0];
    convert(rows.data, seen, false);
    QN_TRY(find_numbers(&numbers, s, &m, &rows));
    p->met = true;
    QN_TRY(s->take(s->user, p, s->side, &numbers));
    if (s->side == QN_SIDE_SINGLE)
        put_exact(s, &m, seen);
    return QN_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool is_named(const void *user, const qn_value *value)
{
    return qn_names_get(user, value->name) != NULL;
}

static qn_status make_plan(qn_layer_comparison *s, int which, qn_model *model,
                           const qn_layer_comparison_options *asked)
{
    const qn_plan_options options = {QN_OPTIONS_VERSION, .threads = asked->threads,
                                     .graph = *asked->graph};
    const qn_observe_options watch = {.purpose = which ? QN_PURPOSE_RUN : QN_PURPOSE_QUANTIZE,
                                      .passed = which == 0,
                                      .direct = true,
                                      .observe = is_named,
                                      .user = &s->by_name[which]};
    QN_TRY(qn_plan_create_observed(&s->plan[which], s->ctx, model, &options, &watch));
    return asked->only_plans ? QN_OK
                             : qn_session_create(&s->session[which], s->ctx, s->plan[which]);
}

static void init(qn_layer_comparison *s, qn_context *ctx)
{
    *s = (qn_layer_comparison){.ctx = ctx};
    qn_arena_init(&s->arena, &ctx->allocator);
    for (int i = 0; i < 2; i++)
        qn_names_init(&s->by_name[i], ctx);
}

qn_status qn_layer_comparison_open(qn_layer_comparison *out, qn_context *ctx, qn_model *real,
                                   qn_model *quantized, const qn_layer_comparison_options *options)
{
    qn_names integers;
    init(out, ctx);
    qn_names_init(&integers, ctx);
    qn_status status = list_integers(&integers, &out->arena, quantized->graph);
    if (status == QN_OK)
        status = list_tensors(out, real->graph, &integers, options->all);
    qn_names_free(&integers);
    if (status == QN_OK)
        status = qn_layer_comparison_read_metadata(out, quantized);
    if (status == QN_OK)
        status = make_plan(out, 0, real, options);
    return status == QN_OK ? make_plan(out, 1, quantized, options) : status;
}

qn_status qn_layer_comparison_fork(qn_layer_comparison *out, qn_context *ctx,
                                   const qn_layer_comparison *from)
{
    init(out, ctx);
    out->forked = true;
    out->take = from->take;
    out->at = qn_arena_array(&out->arena, from->count + 1, sizeof *out->at);
    QN_TRY_ALLOC(ctx, out->at);
    for (out->count = 0; out->count < from->count; out->count++) {
        qn_compared_tensor *p = &out->at[out->count];
        *p = from->at[out->count];
        p->real.data = NULL;
        p->room = 0;
        QN_TRY(qn_names_set(&out->by_name[0], p->name, p));
        QN_TRY(qn_names_set(&out->by_name[1], p->quantized_name, p));
    }
    for (int i = 0; i < 2; i++) {
        out->plan[i] = from->plan[i];
        QN_TRY(qn_session_create(&out->session[i], ctx, out->plan[i]));
    }
    return QN_OK;
}

qn_status qn_layer_comparison_run(qn_layer_comparison *s, const qn_tensor *inputs, size_t n_inputs,
                                  bool single)
{
    const qn_session_hooks real = {.user = s, .seen = keep_real},
                           fixed = {.user = s, .seen = meet_quantized};
    for (size_t i = 0; i < s->count; i++)
        s->at[i].met = false;
    QN_TRY(qn_session_run_hooked(s->session[0], inputs, n_inputs, &real));
    s->side = QN_SIDE_QUANTIZED;
    QN_TRY(qn_session_run_hooked(s->session[1], inputs, n_inputs, &fixed));
    s->side = QN_SIDE_SINGLE;
    return single ? qn_session_run_hooked(s->session[1], inputs, n_inputs, &fixed) : QN_OK;
}

void qn_layer_comparison_close(qn_layer_comparison *s)
{
    if (!s->ctx)
        return;
    for (size_t i = 0; i < s->count; i++)
        qn_free(s->ctx, s->at[i].real.data);
    for (int i = 0; i < 2; i++) {
        qn_session_free(s->session[i]);
        if (!s->forked)
            qn_plan_free(s->plan[i]);
        qn_free(s->ctx, s->scratch[i]);
        qn_names_free(&s->by_name[i]);
    }
    qn_arena_free(&s->arena);
}
