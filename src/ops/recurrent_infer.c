/* What RNN, GRU and LSTM infer alike, as floats and as integers. */
#include "ops/recurrent.h"

#include "ops/infer.h"

int64_t qn_recurrent_directions(const qn_recurrent_attrs *a)
{
    return a->direction == QN_DIRECTION_BOTH ? 2 : 1;
}

qn_status qn_recurrent_check_dims(const qn_infer *self, int32_t i, int32_t rank, const qn_dim *dims)
{
    qn_dim merged;
    const int32_t own = qn_infer_rank(self, i);
    if (own >= 0 && own != rank)
        return qn_infer_fail(self, "input %d has %d dimensions instead of %d", i, own, rank);
    for (int32_t d = 0; d < own; d++) {
        if (!qn_dim_merge(&merged, self->in[i]->dims[d], dims[d]))
            return qn_infer_fail(self, "dimension %d of input %d is %lld instead of %lld", d, i,
                                 (long long)self->in[i]->dims[d].value, (long long)dims[d].value);
    }
    return QN_OK;
}

qn_status qn_recurrent_find_sizes(qn_recurrent_sizes *out, const qn_infer *self,
                                  const qn_recurrent_slots *slots)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_type *x = self->in[slots->x], *r = self->in[slots->r];
    const int first = a->layout ? 1 : 0;
    if ((x->rank >= 0 && x->rank != 3) || (r->rank >= 0 && r->rank != 3))
        return qn_infer_fail(self, "the sequence and the recurrent weights need 3 dimensions");
    *out = (qn_recurrent_sizes){qn_dim_unknown(), qn_dim_unknown(), qn_dim_unknown(),
                                qn_dim_unknown(), qn_dim_of(qn_recurrent_directions(a))};
    if (x->rank == 3) {
        out->sequence = x->dims[first];
        out->batch = x->dims[1 - first];
        out->input = x->dims[2];
    }
    if (r->rank == 3)
        out->hidden = r->dims[2];
    if (a->hidden_size != QN_ABSENT &&
        (a->hidden_size < 1 || !qn_dim_merge(&out->hidden, out->hidden, qn_dim_of(a->hidden_size))))
        return qn_infer_fail(self, "hidden_size is %lld, the weights have %lld",
                             (long long)a->hidden_size, (long long)out->hidden.value);
    return QN_OK;
}

static void state_dims(qn_dim out[3], const qn_recurrent_attrs *a, const qn_recurrent_sizes *s)
{
    out[0] = a->layout ? s->batch : s->directions;
    out[1] = a->layout ? s->directions : s->batch;
    out[2] = s->hidden;
}

qn_status qn_recurrent_check_inputs(const qn_infer *self, const qn_recurrent_slots *slots,
                                    const qn_recurrent_sizes *s, int64_t gates)
{
    const qn_dim rows = qn_dim_mul(s->hidden, qn_dim_of(gates));
    const qn_dim w[3] = {s->directions, rows, s->input}, r[3] = {s->directions, rows, s->hidden};
    const qn_dim b[2] = {s->directions, qn_dim_mul(rows, qn_dim_of(2))};
    const qn_dim p[2] = {s->directions, qn_dim_mul(s->hidden, qn_dim_of(3))};
    qn_dim state[3];
    state_dims(state, self->attrs, s);
    QN_TRY(qn_recurrent_check_dims(self, slots->w, 3, w));
    QN_TRY(qn_recurrent_check_dims(self, slots->r, 3, r));
    QN_TRY(qn_recurrent_check_dims(self, slots->b, 2, b));
    QN_TRY(qn_recurrent_check_dims(self, slots->lengths, 1, &s->batch));
    QN_TRY(qn_recurrent_check_dims(self, slots->initial_h, 3, state));
    QN_TRY(qn_recurrent_check_dims(self, slots->initial_c, 3, state));
    return qn_recurrent_check_dims(self, slots->peephole, 2, p);
}

qn_status qn_recurrent_check_scale(const qn_infer *self, int32_t i, const qn_recurrent_sizes *s,
                                   int64_t gates)
{
    const qn_dim rows = qn_dim_mul(s->hidden, qn_dim_of(gates));
    const qn_type *type = self->in[i];
    if (type->rank == 0 || (type->rank == 1 && type->dims[0].value == 1))
        return QN_OK;
    return qn_recurrent_check_dims(self, i, 1, &rows);
}

void qn_recurrent_set_outputs(qn_infer *self, const qn_recurrent_sizes *s, qn_dtype state,
                              qn_dtype cell)
{
    const qn_recurrent_attrs *a = self->attrs;
    const qn_dim plain[4] = {s->sequence, s->directions, s->batch, s->hidden};
    const qn_dim by_batch[4] = {s->batch, s->sequence, s->directions, s->hidden};
    qn_dim dims[3];
    state_dims(dims, a, s);
    qn_infer_set(self, 0, state, 4, a->layout ? by_batch : plain);
    qn_infer_set(self, 1, state, 3, dims);
    qn_infer_set(self, 2, cell, 3, dims);
}

int64_t qn_recurrent_macs(const qn_infer *self, const qn_recurrent_slots *slots)
{
    int64_t x[QN_MAX_RANK], w[QN_MAX_RANK], r[QN_MAX_RANK], steps, each;
    if (!qn_type_is_static(self->in[slots->x], x) || !qn_type_is_static(self->in[slots->w], w) ||
        !qn_type_is_static(self->in[slots->r], r) || !qn_mul_int64(&steps, x[0], x[1]) ||
        !qn_mul_int64(&each, w[0] * w[1], w[2] + r[2]) || !qn_mul_int64(&each, each, steps))
        return 0;
    return each;
}
