/* Attention: softmax(Q K' * scale + bias) V in heads, with a cache of earlier keys and values. */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/nn_attrs.h"

static const qn_attr_spec specs[] = {
    QN_INT_ATTR(qn_attention_attrs, is_causal, 0),
    QN_INT_ATTR(qn_attention_attrs, q_num_heads, QN_ABSENT),
    QN_INT_ATTR(qn_attention_attrs, kv_num_heads, QN_ABSENT),
    QN_INT_ATTR(qn_attention_attrs, qk_matmul_output_mode, 0),
    QN_INT_ATTR(qn_attention_attrs, softmax_precision, QN_ABSENT),
    QN_INT_ATTR(qn_attention_attrs, left_window_size, -1, .since = 25),
    QN_INT_ATTR(qn_attention_attrs, right_window_size, -1, .since = 25),
    QN_FLOAT_ATTR(qn_attention_attrs, scale, 0),
    QN_FLOAT_ATTR(qn_attention_attrs, softcap, 0)};

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };
static const qn_port ports_in[] = {
    {"Q", 'T', QN_SET_FLOAT, 0},
    {"K", 'T', QN_SET_FLOAT, 0},
    {"V", 'V', QN_SET_FLOAT, 0},
    {"attn_mask", '\0', QN_SET_NUMBER | QN_SET_BOOL, QN_OPTIONAL},
    {"past_key", 'T', QN_SET_FLOAT, QN_OPTIONAL},
    {"past_value", 'V', QN_SET_FLOAT, QN_OPTIONAL},
    {"nonpad_kv_seqlen", '\0', QN_SET(QN_INT64), QN_OPTIONAL}}; /* opset 24 */
static const qn_port ports_out[] = {{"Y", 'T', QN_SET_FLOAT, 0},
                                    {"present_key", 'T', QN_SET_FLOAT, QN_OPTIONAL},
                                    {"present_value", 'V', QN_SET_FLOAT, QN_OPTIONAL},
                                    {"qk_matmul_output", 'T', QN_SET_FLOAT, QN_OPTIONAL}};

static qn_status downgrade_24(qn_node **node)
{
    if ((*node)->n_explicit > LENGTHS && (*node)->in[LENGTHS])
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "nonpad_kv_seqlen came with opset 24");
    return QN_OK;
}

static const qn_version_rule versions[] = {{24, NULL, downgrade_24}};

/* ---- Inference ------------------------------------------------------------------------------- */

/* Dims of one of Q, K, V, whether [batch, heads, length, size] or [batch, length, heads * size]. */
typedef struct part {
    qn_dim batch, heads, length, size;
} part;

static qn_status read_part(part *out, const qn_infer *self, int32_t i, int64_t heads)
{
    const qn_type *x = self->in[i];
    if (x->rank != 3 && x->rank != 4)
        return qn_infer_fail(self, "input %d has %d dimensions instead of 3 or 4", i, x->rank);
    if (x->rank == 4) {
        *out = (part){x->dims[0], x->dims[1], x->dims[2], x->dims[3]};
        return QN_OK;
    }
    if (heads < 1 || (x->dims[2].value >= 0 && x->dims[2].value % heads))
        return qn_infer_fail(self, "input %d of %lld numbers cannot be split into %lld heads", i,
                             (long long)x->dims[2].value, (long long)heads);
    *out = (part){x->dims[0], qn_dim_of(heads), x->dims[1],
                  x->dims[2].value >= 0 ? qn_dim_of(x->dims[2].value / heads) : qn_dim_unknown()};
    return QN_OK;
}

static qn_status check_parts(const qn_infer *self, part *q, part *k, part *v)
{
    qn_dim merged;
    if (!qn_dim_merge(&merged, q->batch, k->batch) || !qn_dim_merge(&merged, k->batch, v->batch) ||
        !qn_dim_merge(&merged, k->heads, v->heads) ||
        !qn_dim_merge(&merged, k->length, v->length) || !qn_dim_merge(&merged, q->size, k->size))
        return qn_infer_fail(self, "the dimensions of Q, K and V do not go together");
    if (q->heads.value >= 0 && k->heads.value >= 0 &&
        (k->heads.value == 0 || q->heads.value % k->heads.value))
        return qn_infer_fail(self, "%lld heads of Q cannot share %lld of K",
                             (long long)q->heads.value, (long long)k->heads.value);
    return QN_OK;
}

/* past_key and past_value go before K and V. */
static qn_status add_past(const qn_infer *self, const part *k, const part *v, qn_dim *total)
{
    const bool has = qn_infer_has(self, PAST_KEY);
    qn_dim merged, past = qn_dim_of(0);
    *total = k->length;
    if (has != qn_infer_has(self, PAST_VALUE))
        return qn_infer_fail(self, "past_key and past_value must be given together");
    if (!has)
        return QN_OK;
    const part *const parts[2] = {k, v};
    past = qn_dim_unknown();
    for (int i = 0; i < 2; i++) {
        const qn_type *x = self->in[PAST_KEY + i];
        if (x->rank < 0)
            continue;
        if (x->rank != 4 || !qn_dim_merge(&merged, x->dims[0], parts[i]->batch) ||
            !qn_dim_merge(&merged, x->dims[1], parts[i]->heads) ||
            !qn_dim_merge(&past, past, x->dims[2]) ||
            !qn_dim_merge(&merged, x->dims[3], parts[i]->size))
            return qn_infer_fail(self, "the cache of input %d does not fit", PAST_KEY + i);
    }
    *total = qn_dim_add(past, k->length);
    return QN_OK;
}

/* The mask broadcasts to the scores; it may end before the last keys, which are masked then. */
static qn_status check_mask(const qn_infer *self, const qn_dim *scores)
{
    const int32_t rank = qn_infer_rank(self, MASK);
    qn_dim wanted[4];
    if (rank < 0)
        return QN_OK;
    if (rank < 1 || rank > 4)
        return qn_infer_fail(self, "the mask has %d dimensions", rank);
    memcpy(wanted, scores, sizeof wanted);
    const int64_t own = self->in[MASK]->dims[rank - 1].value;
    if (own >= 0 && scores[3].value >= own)
        wanted[3] = qn_dim_of(own);
    return qn_infer_broadcast_to(self, MASK, 4, wanted);
}

static qn_status infer(qn_infer *self)
{
    const qn_attention_attrs *a = self->attrs;
    part q, k, v;
    qn_dim total, merged;
    qn_infer_set_dtype(self, Y, self->in[Q]->dtype);
    qn_infer_set_dtype(self, PRESENT_KEY, self->in[K]->dtype);
    qn_infer_set_dtype(self, PRESENT_VALUE, self->in[V]->dtype);
    qn_infer_set_dtype(self, SCORES, self->in[Q]->dtype);
    if (self->in[Q]->rank < 0 || self->in[K]->rank < 0 || self->in[V]->rank < 0)
        return QN_OK;
    QN_TRY(read_part(&q, self, Q, a->q_num_heads));
    QN_TRY(read_part(&k, self, K, a->kv_num_heads));
    QN_TRY(read_part(&v, self, V, a->kv_num_heads));
    QN_TRY(check_parts(self, &q, &k, &v));
    QN_TRY(add_past(self, &k, &v, &total));
    if (qn_infer_rank(self, LENGTHS) >= 0 &&
        (self->in[LENGTHS]->rank != 1 ||
         !qn_dim_merge(&merged, self->in[LENGTHS]->dims[0], q.batch)))
        return qn_infer_fail(self, "nonpad_kv_seqlen must have one number per batch item");
    const qn_dim scores[4] = {q.batch, q.heads, q.length, total};
    const qn_dim y4[4] = {q.batch, q.heads, q.length, v.size};
    const qn_dim y3[3] = {q.batch, q.length, qn_dim_mul(q.heads, v.size)};
    const qn_dim keys[4] = {k.batch, k.heads, total, k.size};
    const qn_dim values[4] = {v.batch, v.heads, total, v.size};
    QN_TRY(check_mask(self, scores));
    const bool flat = self->in[Q]->rank == 3;
    qn_infer_set(self, Y, self->in[Q]->dtype, flat ? 3 : 4, flat ? y3 : y4);
    qn_infer_set(self, PRESENT_KEY, self->in[K]->dtype, 4, keys);
    qn_infer_set(self, PRESENT_VALUE, self->in[V]->dtype, 4, values);
    qn_infer_set(self, SCORES, self->in[Q]->dtype, 4, scores);
    return QN_OK;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

/* A tensor of vectors by batch, head and position. */
typedef struct heads {
    int64_t batch, heads, length, size;
    /* [batch, heads, length, size] */
    double *data;
} heads;

/* Input i with its heads in front, behind the cache of input `past`. */
static qn_status heads_make(heads *out, qn_eval *self, int32_t i, int64_t count, int32_t past)
{
    const qn_tensor *x = self->in[i], *cache = past ? qn_eval_in(self, past) : NULL;
    const bool flat = x->rank == 3;
    const int64_t earlier = cache ? cache->dims[2] : 0, fresh = x->dims[flat ? 1 : 2];
    *out = (heads){.batch = x->dims[0],
                   .heads = flat ? count : x->dims[1],
                   .length = earlier + fresh,
                   .size = flat ? x->dims[2] / count : x->dims[3]};
    double *from, *before = NULL;
    void *block;
    QN_TRY(qn_eval_doubles(self, &from, x));
    if (cache)
        QN_TRY(qn_eval_doubles(self, &before, cache));
    const int64_t vectors = out->batch * out->heads * out->length;
    QN_TRY(qn_eval_scratch(self, &block, vectors * out->size, sizeof(double)));
    out->data = block;
    for (int64_t at = 0; at < vectors; at++) {
        const int64_t t = at % out->length, h = at / out->length % out->heads;
        const int64_t b = at / out->length / out->heads;
        const int64_t row = flat ? (b * fresh + t - earlier) * out->heads + h
                                 : (b * out->heads + h) * fresh + t - earlier;
        const double *source = t < earlier
                                   ? before + ((b * out->heads + h) * earlier + t) * out->size
                                   : from + row * out->size;
        memcpy(out->data + at * out->size, source, (size_t)out->size * sizeof(double));
    }
    return QN_OK;
}

typedef struct attention {
    const qn_attention_attrs *attrs;
    heads q, k, v;
    double scale;
    int64_t past;
    int64_t mask_strides[QN_MAX_RANK];
    /* Keys that the mask speaks of */
    int64_t mask_length;
    /* Scores of one query */
    double *row;
} attention;

/* Position of query i on the axis of the keys, minus i. */
static int64_t frontier(const qn_eval *self, const attention *a, int64_t b)
{
    const qn_tensor *lengths = qn_eval_in(self, LENGTHS);
    return lengths && !qn_eval_in(self, PAST_KEY) ? qn_tensor_i64(lengths, b) - a->q.length
                                                  : a->past;
}

/* What is added to the score of query i and key j; -infinity: not attended. */
static double bias(const qn_eval *self, const attention *a, const int64_t at[3], int64_t j)
{
    const qn_tensor *mask = qn_eval_in(self, MASK), *lengths = qn_eval_in(self, LENGTHS);
    const int64_t position = at[2] + frontier(self, a, at[0]);
    const int64_t left = a->attrs->left_window_size, right = a->attrs->right_window_size;
    const double never = -(double)INFINITY;
    if ((a->attrs->is_causal && j > position) || (left >= 0 && position - j > left) ||
        (right >= 0 && j - position > right) || (lengths && j >= qn_tensor_i64(lengths, at[0])))
        return never;
    if (!mask)
        return 0;
    if (j >= a->mask_length)
        return never;
    const int64_t *s = a->mask_strides;
    const int64_t from = at[0] * s[0] + at[1] * s[1] + at[2] * s[2] + j * s[3];
    if (mask->dtype == QN_BOOL)
        return qn_tensor_i64(mask, from) ? 0 : never;
    return qn_tensor_f64(mask, from);
}

/* In place; a row without any key to attend becomes zeros. */
static void softmax_row(double *x, int64_t count)
{
    double max = -(double)INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++)
        max = fmax(max, x[j]);
    for (int64_t j = 0; j < count; j++) {
        x[j] = max == -(double)INFINITY ? 0 : exp(x[j] - max);
        sum += x[j];
    }
    for (int64_t j = 0; j < count && sum != 0; j++)
        x[j] /= sum;
}

/* qk_matmul_output shows the scores after step `mode`. */
static void show(const qn_eval *self, const attention *a, int64_t mode, int64_t row)
{
    const qn_tensor *out = qn_eval_out(self, SCORES);
    if (out && a->attrs->qk_matmul_output_mode == mode)
        qn_store_f64(out->data, out->dtype, row * a->k.length, a->row, a->k.length);
}

/* The weights with which query at[] = (b, h, i) sees the values, into a->row. */
static void weigh(const qn_eval *self, const attention *a, const int64_t at[3])
{
    const int64_t shared = a->q.heads / a->k.heads, count = a->k.length, size = a->q.size;
    const int64_t row = (at[0] * a->q.heads + at[1]) * a->q.length + at[2];
    const double *query = a->q.data + row * size, cap = (double)a->attrs->softcap;
    const double *keys = a->k.data + (at[0] * a->k.heads + at[1] / shared) * count * size;
    for (int64_t j = 0; j < count; j++) {
        double sum = 0;
        for (int64_t d = 0; d < size; d++)
            sum += query[d] * keys[j * size + d];
        a->row[j] = sum * a->scale;
    }
    show(self, a, 0, row);
    for (int64_t j = 0; j < count && cap > 0; j++)
        a->row[j] = cap * tanh(a->row[j] / cap);
    show(self, a, 1, row);
    for (int64_t j = 0; j < count; j++)
        a->row[j] += bias(self, a, at, j);
    show(self, a, 2, row);
    softmax_row(a->row, count);
    show(self, a, 3, row);
}

static void mix(const qn_eval *self, const attention *a, const int64_t at[3])
{
    const qn_tensor *out = qn_eval_out(self, Y);
    const int64_t shared = a->q.heads / a->k.heads, size = a->v.size;
    const double *values = a->v.data + (at[0] * a->v.heads + at[1] / shared) * a->v.length * size;
    const int64_t to = self->in[Q]->rank == 3 ? (at[0] * a->q.length + at[2]) * a->q.heads + at[1]
                                              : (at[0] * a->q.heads + at[1]) * a->q.length + at[2];
    for (int64_t d = 0; out && d < size; d++) {
        double sum = 0;
        for (int64_t j = 0; j < a->v.length; j++)
            sum += a->row[j] * values[j * size + d];
        qn_store_f64(out->data, out->dtype, to * size + d, &sum, 1);
    }
}

static qn_status attention_make(attention *a, qn_eval *self)
{
    const qn_tensor *mask = qn_eval_in(self, MASK), *past = qn_eval_in(self, PAST_KEY);
    void *row;
    a->attrs = self->attrs;
    QN_TRY(heads_make(&a->q, self, Q, a->attrs->q_num_heads, 0));
    QN_TRY(heads_make(&a->k, self, K, a->attrs->kv_num_heads, PAST_KEY));
    QN_TRY(heads_make(&a->v, self, V, a->attrs->kv_num_heads, PAST_VALUE));
    QN_TRY(qn_eval_scratch(self, &row, a->k.length, sizeof(double)));
    a->row = row;
    a->past = past ? past->dims[2] : 0;
    a->scale = a->attrs->scale != 0 ? (double)a->attrs->scale : 1 / sqrt((double)a->q.size);
    if (!mask)
        return QN_OK;
    const int64_t own = mask->dims[mask->rank - 1];
    a->mask_length = own == 1 ? a->k.length : own;
    const int64_t dims[4] = {a->q.batch, a->q.heads, a->q.length, a->mask_length};
    qn_broadcast_strides(a->mask_strides, mask, 4, dims);
    return QN_OK;
}

static void present(const qn_eval *self, int32_t o, const heads *h)
{
    const qn_tensor *out = qn_eval_out(self, o);
    if (out)
        qn_store_f64(out->data, out->dtype, 0, h->data, h->batch * h->heads * h->length * h->size);
}

static qn_status eval(qn_eval *self)
{
    attention a;
    QN_TRY(attention_make(&a, self));
    present(self, PRESENT_KEY, &a.k);
    present(self, PRESENT_VALUE, &a.v);
    int64_t at[3];
    for (at[0] = 0; at[0] < a.q.batch; at[0]++) {
        for (at[1] = 0; at[1] < a.q.heads; at[1]++) {
            for (at[2] = 0; at[2] < a.q.length; at[2]++) {
                weigh(self, &a, at);
                mix(self, &a, at);
            }
        }
    }
    return QN_OK;
}

static int64_t macs(const qn_infer *self)
{
    const qn_attention_attrs *a = self->attrs;
    int64_t count;
    part q = {.batch = {-1, NULL}}, k = q, v = q;
    qn_dim total = {-1, NULL};
    if (self->in[Q]->rank < 0 || self->in[K]->rank < 0 || self->in[V]->rank < 0 ||
        read_part(&q, self, Q, a->q_num_heads) != QN_OK ||
        read_part(&k, self, K, a->kv_num_heads) != QN_OK ||
        read_part(&v, self, V, a->kv_num_heads) != QN_OK || add_past(self, &k, &v, &total) != QN_OK)
        return 0;
    const int64_t dims[5] = {q.batch.value, q.heads.value, q.length.value, total.value,
                             k.size.value < 0 || v.size.value < 0 ? -1
                                                                  : k.size.value + v.size.value};
    return qn_dims_count(&count, 5, dims) ? count : 0;
}

const qn_op qn_op_Attention = {.name = "Attention",
                               .domain = "",
                               .since = 23,
                               QN_PORTS(in, ports_in),
                               QN_PORTS(out, ports_out),
                               QN_ATTRS(specs, qn_attention_attrs),
                               QN_VERSIONS(versions),
                               .quant = QN_QUANT_FLOAT,
                               .infer = infer,
                               .eval = eval,
                               .macs = macs,
                               .brief = "softmax(Q K' * scale + bias) V in heads"};
