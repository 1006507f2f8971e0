/* RotaryEmbedding: pairs of numbers turned by an angle that depends on the position. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"

static const qn_attr_spec specs[] = {QN_INT_ATTR(qn_rotary_attrs, interleaved, 0),
                                     QN_INT_ATTR(qn_rotary_attrs, num_heads, QN_ABSENT),
                                     QN_INT_ATTR(qn_rotary_attrs, rotary_embedding_dim, 0)};
static const qn_port ports_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"cos_cache", 'T', QN_SET_FLOAT, 0},
                                   {"sin_cache", 'T', QN_SET_FLOAT, 0},
                                   {"position_ids", '\0', QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port ports_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

/* X as [batch, heads, length, size] or [batch, length, heads * size]. */
typedef struct layout {
    int64_t batch, heads, length, size, pairs;
    bool flat;
} layout;

/* What is wrong, or NULL. */
static const char *read_layout(layout *l, const qn_rotary_attrs *a, int32_t rank,
                               const int64_t *dims)
{
    if (rank != 3 && rank != 4)
        return "the input needs 3 or 4 dimensions";
    l->flat = rank == 3;
    if (l->flat && (a->num_heads < 1 || dims[2] % a->num_heads))
        return "num_heads must divide the last dimension";
    l->batch = dims[0];
    l->heads = l->flat ? a->num_heads : dims[1];
    l->length = dims[l->flat ? 1 : 2];
    l->size = l->flat ? dims[2] / a->num_heads : dims[3];
    const int64_t turned = a->rotary_embedding_dim ? a->rotary_embedding_dim : l->size;
    if (turned < 0 || turned > l->size || turned % 2)
        return "the number of turned elements must be even and fit the head";
    l->pairs = turned / 2;
    return NULL;
}

/* Caches are [positions, pairs] with position_ids, else [batch, length, pairs]. */
static qn_status check_cache(const qn_infer *self, int32_t i, const layout *l, bool by_position)
{
    const qn_dim by_item[3] = {qn_dim_of(l->batch), qn_dim_of(l->length), qn_dim_of(l->pairs)};
    const qn_dim listed[2] = {qn_dim_unknown(), qn_dim_of(l->pairs)};
    const int32_t rank = qn_infer_rank(self, i);
    qn_dim merged;
    if (rank >= 0 && rank != (by_position ? 2 : 3))
        return qn_infer_fail(self, "input %d has %d dimensions", i, rank);
    for (int32_t d = 0; d < rank; d++) {
        if (!qn_dim_merge(&merged, self->in[i]->dims[d], by_position ? listed[d] : by_item[d]))
            return qn_infer_fail(self, "dimension %d of input %d is %lld and does not fit", d, i,
                                 (long long)self->in[i]->dims[d].value);
    }
    return QN_OK;
}

static qn_status infer(qn_infer *self)
{
    int64_t dims[QN_MAX_RANK];
    layout l;
    const qn_type *x = self->in[0];
    qn_infer_copy(self, 0, 0);
    if (!qn_type_is_static(x, dims))
        return QN_OK;
    const char *problem = read_layout(&l, self->attrs, x->rank, dims);
    if (problem)
        return qn_infer_fail(self, "%s", problem);
    const bool by_position = qn_infer_has(self, 3);
    QN_TRY(check_cache(self, 1, &l, by_position));
    QN_TRY(check_cache(self, 2, &l, by_position));
    const qn_dim wanted[2] = {qn_dim_of(l.batch), qn_dim_of(l.length)};
    qn_dim merged;
    for (int32_t d = 0; d < qn_infer_rank(self, 3); d++) {
        if (self->in[3]->rank != 2 || !qn_dim_merge(&merged, self->in[3]->dims[d], wanted[d]))
            return qn_infer_fail(self, "position_ids must be one number per token");
    }
    return QN_OK;
}

/* Turns the pairs of one head of one token: (a, b) -> (a cos - b sin, a sin + b cos). */
static void turn(double *x, const qn_eval *self, const layout *l, int64_t row)
{
    const bool interleaved = ((const qn_rotary_attrs *)self->attrs)->interleaved;
    for (int64_t p = 0; p < l->pairs; p++) {
        const double c = qn_tensor_f64(self->in[1], row * l->pairs + p);
        const double s = qn_tensor_f64(self->in[2], row * l->pairs + p);
        double *first = x + (interleaved ? 2 * p : p);
        double *second = interleaved ? first + 1 : first + l->pairs;
        const double a = *first, b = *second;
        *first = a * c - b * s;
        *second = a * s + b * c;
    }
}

static qn_status eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0], *ids = qn_eval_in(self, 3);
    layout l = {.batch = 0};
    double *x;
    const char *problem = read_layout(&l, self->attrs, in->rank, in->dims);
    if (problem)
        return qn_eval_fail(self, "%s", problem);
    QN_TRY(qn_eval_doubles(self, &x, in));
    const int64_t vectors = qn_tensor_count(in) ? l.batch * l.heads * l.length : 0;
    for (int64_t i = 0; i < vectors; i++) {
        const int64_t b = i / l.heads / l.length;
        const int64_t t = l.flat ? i / l.heads % l.length : i % l.length;
        const int64_t token = b * l.length + t;
        const int64_t row = ids ? qn_tensor_i64(ids, token) : token;
        if (ids && (row < 0 || row >= self->in[1]->dims[0] || row >= self->in[2]->dims[0]))
            return qn_eval_fail(self, "position %lld is outside the caches", (long long)row);
        turn(x + i * l.size, self, &l, row);
    }
    qn_store_f64(out->data, out->dtype, 0, x, qn_tensor_count(in));
    return QN_OK;
}

const qn_op qn_op_RotaryEmbedding = {.name = "RotaryEmbedding",
                                     .domain = "",
                                     .since = 23,
                                     QN_PORTS(in, ports_in),
                                     QN_PORTS(out, ports_out),
                                     QN_ATTRS(specs, qn_rotary_attrs),
                                     .quant = QN_QUANT_FLOAT,
                                     .infer = infer,
                                     .eval = eval,
                                     .brief = "pairs of elements turned by the token's position"};
