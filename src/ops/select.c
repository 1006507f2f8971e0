/* NonZero, Compress and TopK: elements chosen by their contents. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/order.h"
#include "ops/versions.h"

static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};
static const qn_port index_out[] = {{"indices", 0, QN_SET(QN_INT64), 0}};

/* ---- NonZero --------------------------------------------------------------------------------- */

static const qn_port nonzero_in[] = {{"X", 0, QN_SET_TENSOR, 0}};

static qn_status nonzero_infer(qn_infer *self)
{
    const int32_t rank = self->in[0]->rank;
    const qn_dim dims[2] = {rank < 0 ? qn_dim_unknown() : qn_dim_of(rank), qn_dim_unknown()};
    qn_infer_set(self, 0, QN_INT64, 2, dims);
    return QN_OK;
}

static bool is_zero(const qn_tensor *tensor, int64_t i)
{
    if (tensor->dtype == QN_STRING)
        return ((const qn_string *)tensor->data)[i].length == 0;
    if (qn_dtype_is_float(tensor->dtype))
        return qn_tensor_f64(tensor, i) == 0;
    return qn_tensor_i64(tensor, i) == 0;
}

static qn_status nonzero_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    const int64_t total = qn_tensor_count(in);
    int64_t found = 0;
    for (int64_t i = 0; i < total; i++)
        found += !is_zero(in, i);
    const int64_t dims[2] = {in->rank, found};
    QN_TRY(qn_eval_output(self, 0, QN_INT64, 2, dims));
    int64_t *out = self->out[0]->data, at = 0;
    for (int64_t i = 0; i < total; i++) {
        if (is_zero(in, i))
            continue;
        int64_t rest = i;
        for (int32_t d = in->rank - 1; d >= 0; d--) {
            out[d * found + at] = rest % in->dims[d];
            rest /= in->dims[d];
        }
        at++;
    }
    return QN_OK;
}

const qn_op qn_op_NonZero = {.name = "NonZero",
                             .domain = "",
                             .since = 9,
                             QN_PORTS(in, nonzero_in),
                             QN_PORTS(out, index_out),
                             .flags = QN_OP_ALLOCATES,
                             .quant = QN_QUANT_SHAPE,
                             .infer = nonzero_infer,
                             .eval = nonzero_eval,
                             .brief = "indices of elements that are not zero"};

/* ---- Compress -------------------------------------------------------------------------------- */

typedef struct compress_attrs {
    int64_t axis;
} compress_attrs;
static const qn_attr_spec compress_specs[] = {QN_INT_ATTR(compress_attrs, axis, QN_ABSENT)};
static const qn_port compress_in[] = {{"input", 'T', QN_SET_TENSOR, 0},
                                      {"condition", 0, QN_SET_BOOL, 0}};

static qn_status compress_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axis = ((const compress_attrs *)self->attrs)->axis;
    qn_type out = *in;
    const qn_dim open = qn_dim_unknown();
    qn_infer_set_dtype(self, 0, in->dtype);
    if (axis == QN_ABSENT) {
        qn_infer_set(self, 0, in->dtype, 1, &open);
        return QN_OK;
    }
    if (in->rank < 0)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
    out.dims[axis] = open;
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    return QN_OK;
}

static qn_status compress_eval(qn_eval *self)
{
    const int64_t wanted = ((const compress_attrs *)self->attrs)->axis;
    qn_tensor in = *self->in[0];
    if (wanted == QN_ABSENT) { /* flattened */
        in.dims[0] = qn_tensor_count(&in);
        in.rank = 1;
    }
    const int64_t axis = wanted == QN_ABSENT ? 0 : wanted < 0 ? wanted + in.rank : wanted;
    if (axis < 0 || axis >= in.rank)
        return qn_eval_fail(self, "axis %lld is no dimension", (long long)wanted);
    const uint8_t *keep = self->in[1]->data;
    const int64_t given = qn_tensor_count(self->in[1]), dim = in.dims[axis];
    const int64_t outer = qn_dims_product(in.dims, 0, (int32_t)axis);
    const size_t row =
        (size_t)qn_dims_product(in.dims, (int32_t)axis + 1, in.rank) * qn_dtype_size(in.dtype);
    qn_tensor shape = in;
    shape.dims[axis] = 0;
    for (int64_t i = 0; i < QN_MIN(given, dim); i++)
        shape.dims[axis] += keep[i] != 0;
    QN_TRY(qn_eval_output(self, 0, in.dtype, in.rank, shape.dims));
    char *to = self->out[0]->data;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < QN_MIN(given, dim); i++) {
            if (!keep[i] || row == 0)
                continue;
            memcpy(to, (const char *)in.data + (size_t)(o * dim + i) * row, row);
            to += row;
        }
    }
    return QN_OK;
}

const qn_op qn_op_Compress = {.name = "Compress",
                              .domain = "",
                              .since = 9,
                              QN_PORTS(in, compress_in),
                              QN_PORTS(out, any_out),
                              QN_ATTRS(compress_specs, compress_attrs),
                              QN_TYPE_RULES(qn_bfloat16_28),
                              .flags = QN_OP_ALLOCATES,
                              .quant = QN_QUANT_FLOAT,
                              .infer = compress_infer,
                              .eval = compress_eval,
                              .brief = "slices where a condition holds"};

/* ---- TopK ------------------------------------------------------------------------------------ */

typedef struct topk_attrs {
    int64_t axis, largest, sorted, k;
} topk_attrs;
static const qn_attr_spec topk_specs[] = {QN_INT_ATTR(topk_attrs, axis, -1),
                                          QN_INT_ATTR(topk_attrs, largest, 1, .since = 11),
                                          QN_INT_ATTR(topk_attrs, sorted, 1, .since = 11),
                                          QN_INT_ATTR(topk_attrs, k, QN_ABSENT, .until = 10)};
static const qn_type_rule topk_types[] = {{11, QN_SET_INT}, {24, QN_SET(QN_BFLOAT16)}};
static const qn_port topk_in[] = {{"X", 'T', QN_SET_NUMBER, 0}, {"K", 0, QN_SET(QN_INT64), 0}};
static const qn_port topk_out[] = {{"Values", 'T', QN_SET_NUMBER, QN_OPTIONAL},
                                   {"Indices", 0, QN_SET(QN_INT64), QN_OPTIONAL}};

/* Opset 10: k became an input. */
static qn_status topk_upgrade(qn_node **node)
{
    topk_attrs *a = (*node)->attrs;
    qn_value *k;
    if (a->k == QN_ABSENT)
        return qn_node_fail(*node, QN_E_FORMAT, "attribute 'k' is missing");
    QN_TRY(qn_value_ints(&k, (*node)->graph, &a->k, 1));
    a->k = QN_ABSENT;
    QN_TRY(qn_node_resize_inputs(*node, 2));
    return qn_node_set_input(*node, 1, k);
}

static qn_status topk_downgrade(qn_node **node)
{
    const qn_value *k = (*node)->in[1];
    if (!k->data || qn_tensor_count(k->data) != 1)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "before opset 10 k must be constant");
    ((topk_attrs *)(*node)->attrs)->k = qn_tensor_i64(k->data, 0);
    return qn_node_resize_inputs(*node, 1);
}

static const qn_version_rule topk_versions[] = {{10, topk_upgrade, topk_downgrade}};

static qn_status topk_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axis = ((const topk_attrs *)self->attrs)->axis, k;
    size_t count;
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    qn_infer_set_dtype(self, 1, QN_INT64);
    if (in->rank < 0)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
    const qn_dim dim = in->dims[axis];
    out.dims[axis] = qn_dim_unknown();
    if (qn_infer_ints(self, 1, &k, 1, &count)) {
        if (count != 1 || k < 0 || (dim.value >= 0 && k > dim.value))
            return qn_infer_fail(self, "K does not fit a dimension of %lld", (long long)dim.value);
        out.dims[axis] = qn_dim_of(k);
    } else if (self->data[1])
        return qn_infer_fail(self, "K must be one number");
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    qn_infer_set(self, 1, QN_INT64, in->rank, out.dims);
    return QN_OK;
}

static int ascending(const void *tensor, int64_t a, int64_t b)
{
    return qn_order_compare(tensor, a, b);
}

static int descending(const void *tensor, int64_t a, int64_t b)
{
    return qn_order_compare(tensor, b, a);
}

static void topk_put(const qn_eval *self, int64_t to, int64_t from, int64_t place)
{
    const qn_tensor *in = self->in[0];
    const size_t size = qn_dtype_size(in->dtype);
    const qn_tensor *values = qn_eval_out(self, 0), *indices = qn_eval_out(self, 1);
    if (values)
        memcpy((char *)values->data + (size_t)to * size,
               (const char *)in->data + (size_t)from * size, size);
    if (indices)
        ((int64_t *)indices->data)[to] = place;
}

/* A lane of the input: element d of it is at first + d * step. */
typedef struct lane {
    const qn_tensor *in;
    int64_t first, step, count;
    qn_order_fn *compare;
} lane;

/* Element `at` does not come before `worst`, whose place is an earlier one: most of a long lane, so
 * floats are compared here. NaN is left to the order itself. */
static bool is_behind(const lane *l, int64_t at, int64_t worst)
{
    if (l->in->dtype == QN_FLOAT32) {
        const float *x = l->in->data;
        if (l->compare == descending ? x[at] <= x[worst] : x[at] >= x[worst])
            return true;
    }
    return l->compare(l->in, worst, at) <= 0;
}

/* The first k of the lane in order: candidates are gathered and, whenever there is no room for
 * more, sorted and cut to k. The sort is stable and they come in the lane's order, so of equal ones
 * the first stay. */
static void topk_lane(int64_t *at, int64_t *spare, int64_t room, int64_t k, const lane *l)
{
    int64_t n = 0, worst = -1;
    for (int64_t d = 0; d < l->count; d++) {
        const int64_t element = l->first + d * l->step;
        if (worst >= 0 && is_behind(l, element, worst))
            continue;
        at[n++] = element;
        if (n < room)
            continue;
        qn_order_merge(l->compare, l->in, at, spare, n);
        n = k;
        worst = at[k - 1];
    }
    qn_order_merge(l->compare, l->in, at, spare, n);
}

static qn_status topk_eval(qn_eval *self)
{
    enum { SPARE_ROOM = 64 };
    const topk_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0];
    const qn_tensor *shape = qn_eval_out(self, 0) ? self->out[0] : qn_eval_out(self, 1);
    const int64_t axis = a->axis < 0 ? a->axis + in->rank : a->axis, dim = in->dims[axis];
    const int64_t inner = qn_dims_product(in->dims, (int32_t)axis + 1, in->rank);
    const int64_t outer = qn_dims_product(in->dims, 0, (int32_t)axis);
    void *index;
    if (!shape || qn_tensor_count(shape) == 0)
        return QN_OK;
    const int64_t k = shape->dims[axis], room = k < dim / 4 ? 2 * k + SPARE_ROOM : dim + 1;
    QN_TRY(qn_eval_scratch(self, &index, room, 2 * sizeof(int64_t)));
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t *at = index;
        const lane l = {in, i / inner * dim * inner + i % inner, inner, dim,
                        a->largest ? descending : ascending};
        topk_lane(at, at + room, room, k, &l);
        for (int64_t d = 0; d < k; d++)
            topk_put(self, (i / inner * k + d) * inner + i % inner, at[d], at[d] / inner % dim);
    }
    return QN_OK;
}

const qn_op qn_op_TopK = {.name = "TopK",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, topk_in),
                          QN_PORTS(out, topk_out),
                          QN_ATTRS(topk_specs, topk_attrs),
                          QN_VERSIONS(topk_versions),
                          QN_TYPE_RULES(topk_types),
                          .quant = QN_QUANT_FLOAT,
                          .infer = topk_infer,
                          .eval = topk_eval,
                          .brief = "the k largest or smallest along an axis"};
