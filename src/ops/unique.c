/* Unique: distinct elements, or distinct slices along an axis. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/order.h"
#include "ops/versions.h"

typedef struct unique_attrs {
    int64_t axis, sorted;
} unique_attrs;
static const qn_attr_spec unique_specs[] = {QN_INT_ATTR(unique_attrs, axis, QN_ABSENT),
                                            QN_INT_ATTR(unique_attrs, sorted, 1)};
static const qn_port unique_in[] = {{"X", 'T', QN_SET_TENSOR, 0}};
static const qn_port unique_out[] = {{"Y", 'T', QN_SET_TENSOR, QN_OPTIONAL},
                                     {"indices", 0, QN_SET(QN_INT64), QN_OPTIONAL},
                                     {"inverse_indices", 0, QN_SET(QN_INT64), QN_OPTIONAL},
                                     {"counts", 0, QN_SET(QN_INT64), QN_OPTIONAL}};

static qn_status unique_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axis = ((const unique_attrs *)self->attrs)->axis;
    const qn_dim open = qn_dim_unknown();
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (axis == QN_ABSENT)
        qn_infer_set(self, 0, in->dtype, 1, &open);
    else if (in->rank >= 0) {
        QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
        out.dims[axis] = open;
        qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    }
    for (int32_t o = 1; o < 4; o++)
        qn_infer_set(self, o, QN_INT64, 1, &open);
    return QN_OK;
}

/* The input as [outer, count, inner]: slice i is every element with i in the middle. */
typedef struct slices {
    const qn_tensor *in;
    int64_t outer, count, inner;
} slices;

static int compare_slices(const void *what, int64_t a, int64_t b)
{
    const slices *s = what;
    for (int64_t o = 0; o < s->outer; o++) {
        for (int64_t i = 0; i < s->inner; i++) {
            const int order = qn_order_compare(s->in, (o * s->count + a) * s->inner + i,
                                               (o * s->count + b) * s->inner + i);
            if (order)
                return order;
        }
    }
    return 0;
}

/* Distinct slices: where each first stands, how often, and which one every slice is. */
typedef struct distinct {
    int64_t *first, *counts, *inverse;
    int64_t count;
} distinct;

static qn_status distinct_make(qn_eval *self, distinct *d, const slices *s)
{
    void *blocks[4];
    for (int i = 0; i < 4; i++)
        QN_TRY(qn_eval_scratch(self, &blocks[i], s->count + 1, sizeof(int64_t)));
    int64_t *order = blocks[0];
    *d = (distinct){blocks[1], blocks[2], blocks[3], 0};
    for (int64_t i = 0; i < s->count; i++)
        order[i] = i;
    QN_TRY(qn_order_sort(self, compare_slices, s, order, s->count));
    for (int64_t i = 0; i < s->count; i++) {
        if (i == 0 || compare_slices(s, order[i - 1], order[i]) != 0) {
            d->first[d->count] = order[i];
            d->counts[d->count++] = 0;
        }
        d->counts[d->count - 1]++;
        d->inverse[order[i]] = d->count - 1;
    }
    return QN_OK;
}

/* In the order in which they first stand in the input, instead of sorted. */
static qn_status distinct_by_place(qn_eval *self, distinct *d, int64_t total)
{
    void *blocks[3];
    for (int i = 0; i < 3; i++)
        QN_TRY(qn_eval_scratch(self, &blocks[i], total + 1, sizeof(int64_t)));
    int64_t *rank = blocks[0], *first = blocks[1], *counts = blocks[2], seen = 0;
    for (int64_t i = 0; i < d->count; i++)
        rank[i] = -1;
    for (int64_t i = 0; i < total; i++) {
        const int64_t which = d->inverse[i];
        if (rank[which] < 0) {
            rank[which] = seen;
            first[seen] = i;
            counts[seen++] = d->counts[which];
        }
        d->inverse[i] = rank[which];
    }
    d->first = first;
    d->counts = counts;
    return QN_OK;
}

static qn_status put_list(qn_eval *self, int32_t o, const int64_t *values, int64_t count)
{
    if (!qn_eval_out(self, o))
        return QN_OK;
    QN_TRY(qn_eval_output(self, o, QN_INT64, 1, &count));
    if (count)
        memcpy(self->out[o]->data, values, (size_t)count * sizeof *values);
    return QN_OK;
}

static qn_status put_slices(qn_eval *self, const slices *s, const distinct *d, int64_t axis)
{
    if (!qn_eval_out(self, 0))
        return QN_OK;
    qn_tensor shape = *s->in;
    shape.dims[axis] = d->count;
    QN_TRY(qn_eval_output(self, 0, shape.dtype, shape.rank, shape.dims));
    const size_t row = (size_t)s->inner * qn_dtype_size(shape.dtype);
    for (int64_t o = 0; o < s->outer && row; o++) {
        for (int64_t i = 0; i < d->count; i++)
            memcpy((char *)self->out[0]->data + (size_t)(o * d->count + i) * row,
                   (const char *)s->in->data + (size_t)(o * s->count + d->first[i]) * row, row);
    }
    return QN_OK;
}

static qn_status unique_eval(qn_eval *self)
{
    const unique_attrs *a = self->attrs;
    qn_tensor in = *self->in[0];
    int64_t axis = a->axis < 0 ? a->axis + in.rank : a->axis;
    if (a->axis == QN_ABSENT) { /* flattened */
        in.dims[0] = qn_tensor_count(&in);
        in.rank = 1;
        axis = 0;
    }
    if (axis < 0 || axis >= in.rank)
        return qn_eval_fail(self, "axis %lld is no dimension", (long long)a->axis);
    const slices s = {&in, qn_dims_product(in.dims, 0, (int32_t)axis), in.dims[axis],
                      qn_dims_product(in.dims, (int32_t)axis + 1, in.rank)};
    distinct d;
    QN_TRY(distinct_make(self, &d, &s));
    if (!a->sorted)
        QN_TRY(distinct_by_place(self, &d, s.count));
    QN_TRY(put_slices(self, &s, &d, axis));
    QN_TRY(put_list(self, 1, d.first, d.count));
    QN_TRY(put_list(self, 2, d.inverse, s.count));
    return put_list(self, 3, d.counts, d.count);
}

const qn_op qn_op_Unique = {.name = "Unique",
                            .domain = "",
                            .since = 11,
                            QN_PORTS(in, unique_in),
                            QN_PORTS(out, unique_out),
                            QN_ATTRS(unique_specs, unique_attrs),
                            QN_TYPE_RULES(qn_bfloat16_28),
                            .flags = QN_OP_ALLOCATES,
                            .quant = QN_QUANT_SHAPE,
                            .infer = unique_infer,
                            .eval = unique_eval,
                            .brief = "distinct elements or slices"};
