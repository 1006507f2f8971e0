/* Pad and CenterCropPad. */
#include "ops/pad.h"

#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"

static const char *const pad_words[] = {"constant", "reflect", "edge", "wrap", NULL};

static const qn_attr_spec pad_specs[] = {
    QN_ENUM_ATTR(qn_pad_attrs, mode, QN_PAD_CONSTANT, pad_words),
    QN_ATTR(qn_pad_attrs, pads, INTS, .until = 11),
    QN_ATTR(qn_pad_attrs, paddings, INTS, .until = 2),
    QN_FLOAT_ATTR(qn_pad_attrs, value, 0, .until = 11)};

static const qn_type_rule pad_types[] = {
    {11, QN_SET_INT}, {13, QN_SET_TENSOR & ~QN_SET_NUMBER}, {21, QN_SET_FLOAT8}};
static const qn_port pad_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                 {"pads", 0, QN_SET(QN_INT64), 0},
                                 {"constant_value", 'T', QN_SET_TENSOR, QN_OPTIONAL},
                                 {"axes", 0, QN_SET_INDEX, QN_OPTIONAL}};
static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

/* Opset 2 renamed the attribute; opset 11 made pads and value inputs. */
static qn_status pad_rename(qn_node **node)
{
    qn_pad_attrs *a = (*node)->attrs;
    if (!a->pads.at)
        a->pads = a->paddings;
    a->paddings = (qn_ints){NULL, 0};
    return QN_OK;
}

static qn_status pad_rename_back(qn_node **node)
{
    qn_pad_attrs *a = (*node)->attrs;
    a->paddings = a->pads;
    a->pads = (qn_ints){NULL, 0};
    return QN_OK;
}

static qn_status pad_upgrade(qn_node **node)
{
    qn_pad_attrs *a = (*node)->attrs;
    if (!a->pads.at)
        return qn_node_fail(*node, QN_E_FORMAT, "attribute 'pads' is missing");
    QN_TRY(qn_upgrade_ints(*node, &a->pads, 1));
    if (a->value != 0)
        QN_TRY(qn_upgrade_number(*node, (double)a->value, 2));
    a->value = 0;
    return QN_OK;
}

static qn_status pad_downgrade(qn_node **node)
{
    qn_pad_attrs *a = (*node)->attrs;
    double value = 0;
    if ((*node)->n_in > 2 && (*node)->in[2])
        QN_TRY(qn_downgrade_number(&value, *node, 2));
    QN_TRY(qn_downgrade_ints(*node, &a->pads, 1));
    a->value = (float)value;
    return qn_node_resize_inputs(*node, 1);
}

/* Opset 18 brought axes, opset 19 wrap. */
static qn_status pad_downgrade_axes(qn_node **node)
{
    if ((*node)->n_in > 3 && (*node)->in[3])
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "axes need opset 18");
    return (*node)->n_in > 3 ? qn_node_resize_inputs(*node, 3) : QN_OK;
}

static qn_status pad_downgrade_wrap(qn_node **node)
{
    if (((const qn_pad_attrs *)(*node)->attrs)->mode == QN_PAD_WRAP)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "mode wrap needs opset 19");
    return QN_OK;
}

static const qn_version_rule pad_versions[] = {{2, pad_rename, pad_rename_back},
                                               {11, pad_upgrade, pad_downgrade},
                                               {18, NULL, pad_downgrade_axes},
                                               {19, NULL, pad_downgrade_wrap}};

/* ---- Amounts --------------------------------------------------------------------------------- */

/* pads: one number before and one after each of the `n_axes` axes, all befores first. */
static bool spread(qn_pad_amounts *out, int32_t rank, const int64_t *pads, const int64_t *axes,
                   size_t n_axes)
{
    *out = (qn_pad_amounts){{0}, {0}};
    for (size_t i = 0; i < n_axes; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return false;
        out->before[axis] = pads[i];
        out->after[axis] = pads[n_axes + i];
    }
    return true;
}

static void all_axes(int64_t *axes, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++)
        axes[d] = d;
}

bool qn_pad_read(qn_pad_amounts *out, int32_t rank, const qn_tensor *pads, const qn_tensor *axes)
{
    int64_t numbers[2 * QN_MAX_RANK], places[QN_MAX_RANK];
    const int64_t n_axes = axes ? qn_tensor_count(axes) : rank;
    if (n_axes > rank || qn_tensor_count(pads) != 2 * n_axes)
        return false;
    all_axes(places, rank);
    if (axes)
        qn_load_i64(places, axes->dtype, axes->data, 0, n_axes);
    qn_load_i64(numbers, pads->dtype, pads->data, 0, 2 * n_axes);
    return spread(out, rank, numbers, places, (size_t)n_axes);
}

bool qn_pad_read_node(qn_pad_amounts *out, const qn_node *node)
{
    const qn_value *axes = node->n_in > 3 ? node->in[3] : NULL;
    return node->in[0]->type.rank >= 0 && node->in[1]->data && (!axes || axes->data) &&
           qn_pad_read(out, node->in[0]->type.rank, node->in[1]->data, axes ? axes->data : NULL);
}

/* *known is false when the amounts are not constant. */
static qn_status infer_amounts(bool *known, qn_infer *self, qn_pad_amounts *out)
{
    const int32_t rank = self->in[0]->rank;
    int64_t pads[2 * QN_MAX_RANK], axes[QN_MAX_RANK];
    size_t n_pads, n_axes = (size_t)rank;
    all_axes(axes, rank);
    *known = qn_infer_ints(self, 1, pads, 2 * QN_MAX_RANK, &n_pads) &&
             (!qn_infer_has(self, 3) || qn_infer_ints(self, 3, axes, QN_MAX_RANK, &n_axes));
    if (!*known)
        return QN_OK;
    if (n_pads != 2 * n_axes || !spread(out, rank, pads, axes, n_axes))
        return qn_infer_fail(self, "%zu pads for %zu axes of %d dimensions", n_pads, n_axes, rank);
    return QN_OK;
}

/* What reflect can take from the other side of the border is one less than there is. */
static qn_status pad_check(qn_infer *self, int32_t d, int64_t before, int64_t after)
{
    const int64_t dim = self->in[0]->dims[d].value;
    const int64_t mode = ((const qn_pad_attrs *)self->attrs)->mode;
    if (mode != QN_PAD_CONSTANT && dim == 0 && (before > 0 || after > 0))
        return qn_infer_fail(self, "dimension %d is empty, there is nothing to repeat", d);
    return QN_OK;
}

static qn_status pad_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    qn_pad_amounts amounts;
    const int64_t *before = amounts.before, *after = amounts.after;
    int64_t sum;
    bool known;
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    QN_TRY(infer_amounts(&known, self, &amounts));
    for (int32_t d = 0; d < in->rank; d++) {
        const qn_dim dim = in->dims[d];
        out.dims[d] = qn_dim_unknown();
        if (!known)
            continue;
        QN_TRY(pad_check(self, d, before[d], after[d]));
        if (before[d] == 0 && after[d] == 0)
            out.dims[d] = dim;
        else if (dim.value >= 0) {
            if (!qn_add_int64(&sum, before[d], after[d]) || !qn_add_int64(&sum, sum, dim.value) ||
                sum < 0)
                return qn_infer_fail(self, "pads of dimension %d leave no valid size", d);
            out.dims[d] = qn_dim_of(sum);
        }
    }
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    return QN_OK;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

int64_t qn_pad_source(int64_t mode, int64_t x, int64_t dim)
{
    if (x >= 0 && x < dim)
        return x;
    switch (mode) {
    case QN_PAD_EDGE: return x < 0 ? 0 : dim - 1;
    case QN_PAD_WRAP: return ((x % dim) + dim) % dim;
    case QN_PAD_REFLECT: {
        if (dim == 1)
            return 0;
        const int64_t period = 2 * (dim - 1), at = ((x % period) + period) % period;
        return at < dim ? at : period - at;
    }
    default: return -1;
    }
}

/* One row of the output from the row x of the input (NULL: it is all border). */
static void pad_row(char *y, const qn_eval *self, const char *x, int64_t before, const void *value)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t mode = ((const qn_pad_attrs *)self->attrs)->mode;
    const int64_t length = out->dims[out->rank - 1], dim = in->dims[in->rank - 1];
    const int64_t first = QN_MIN(QN_MAX(before, 0), length);
    const int64_t last = QN_MAX(QN_MIN(dim + before, length), first); /* of the inside */
    const size_t size = qn_dtype_size(in->dtype);
    if (!x) {
        qn_fill(y, length, value, size);
        return;
    }
    for (int64_t i = first ? 0 : last; i < length; i = i + 1 == first ? last : i + 1) {
        const int64_t at = qn_pad_source(mode, i - before, dim);
        qn_fill(y + (size_t)i * size, 1, at < 0 ? value : x + (size_t)at * size, size);
    }
    if (last > first)
        memcpy(y + (size_t)first * size, x + (first - before) * (int64_t)size,
               (size_t)(last - first) * size);
}

static void pad_fill(const qn_eval *self, const int64_t *before, const void *value)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t mode = ((const qn_pad_attrs *)self->attrs)->mode;
    const size_t size = qn_dtype_size(in->dtype);
    const int32_t last = out->rank - 1;
    const int64_t count = qn_tensor_count(out);
    int64_t strides[QN_MAX_RANK];
    if (last < 0)
        memcpy(out->data, in->data, size);
    qn_dims_strides(strides, in->rank, in->dims);
    for (int64_t i = 0; last >= 0 && i < count; i += out->dims[last]) {
        int64_t rest = i / out->dims[last], from = 0;
        bool inside = true;
        for (int32_t d = last - 1; d >= 0 && inside; d--) {
            const int64_t at = qn_pad_source(mode, rest % out->dims[d] - before[d], in->dims[d]);
            inside = at >= 0;
            from += at * strides[d];
            rest /= out->dims[d];
        }
        pad_row((char *)out->data + (size_t)i * size, self,
                inside ? (const char *)in->data + (size_t)from * size : NULL, before[last], value);
    }
}

static qn_status pad_eval(qn_eval *self)
{
    const qn_tensor *value = qn_eval_in(self, 2);
    qn_pad_amounts amounts;
    if (value && qn_tensor_count(value) != 1)
        return qn_eval_fail(self, "the constant value must be one element");
    if (!qn_pad_read(&amounts, self->in[0]->rank, self->in[1], qn_eval_in(self, 3)))
        return qn_eval_fail(self, "pads must hold two numbers for each axis of %d dimensions",
                            self->in[0]->rank);
    pad_fill(self, amounts.before, value ? value->data : NULL);
    return QN_OK;
}

const qn_op qn_op_Pad = {.name = "Pad",
                         .domain = "",
                         .since = 1,
                         QN_PORTS(in, pad_in),
                         QN_PORTS(out, any_out),
                         QN_ATTRS(pad_specs, qn_pad_attrs),
                         QN_VERSIONS(pad_versions),
                         QN_TYPE_RULES(pad_types),
                         .quant = QN_QUANT_PASS,
                         .infer = pad_infer,
                         .eval = pad_eval,
                         .brief = "a border of constants or repeated elements; negative crops"};

/* ---- CenterCropPad --------------------------------------------------------------------------- */

typedef struct crop_attrs {
    qn_ints axes;
} crop_attrs;
static const qn_attr_spec crop_specs[] = {QN_ATTR(crop_attrs, axes, INTS)};
static const qn_port crop_in[] = {{"input_data", 'T', QN_SET_TENSOR, 0},
                                  {"shape", 0, QN_SET_INDEX, 0}};

static qn_status crop_infer(qn_infer *self)
{
    const crop_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    qn_dim shape[QN_MAX_RANK];
    size_t count;
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    const size_t n_axes = a->axes.at ? a->axes.count : (size_t)in->rank;
    const bool known = qn_infer_elements(self, 1, shape, QN_MAX_RANK, &count);
    if (n_axes > QN_MAX_RANK || (known && count != n_axes) || (!known && self->data[1]))
        return qn_infer_fail(self, "the shape does not have one size for each of %zu axes", n_axes);
    for (size_t i = 0; i < n_axes; i++) {
        int64_t axis = a->axes.at ? a->axes.at[i] : (int64_t)i;
        QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
        if (known && qn_element_known(shape[i]) && shape[i].value < 0)
            return qn_infer_fail(self, "size %lld is negative", (long long)shape[i].value);
        out.dims[axis] = known ? qn_dim_of_element(shape[i]) : qn_dim_unknown();
    }
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    return QN_OK;
}

/* The middle of the larger lies on the middle of the smaller; an odd rest goes behind. */
static qn_status crop_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    qn_tensor *out = self->out[0];
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], start_in = 0, start_out = 0;
    qn_tensor window = *out;
    qn_dims_strides(from, in->rank, in->dims);
    qn_dims_strides(to, out->rank, out->dims);
    for (int32_t d = 0; d < out->rank; d++) {
        const int64_t difference = out->dims[d] - in->dims[d];
        window.dims[d] = QN_MIN(out->dims[d], in->dims[d]);
        start_out += difference > 0 ? difference / 2 * to[d] : 0;
        start_in += difference < 0 ? -difference / 2 * from[d] : 0;
    }
    qn_fill(out->data, qn_tensor_count(out), NULL, qn_dtype_size(out->dtype));
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, qn_tensor_count(&window), qn_dtype_size(in->dtype)));
    window.data = block;
    qn_move_from(&window, in, start_in, from);
    qn_move_to(out, &window, start_out, to);
    return QN_OK;
}

const qn_op qn_op_CenterCropPad = {.name = "CenterCropPad",
                                   .domain = "",
                                   .since = 18,
                                   QN_PORTS(in, crop_in),
                                   QN_PORTS(out, any_out),
                                   QN_ATTRS(crop_specs, crop_attrs),
                                   .quant = QN_QUANT_PASS,
                                   .infer = crop_infer,
                                   .eval = crop_eval,
                                   .brief = "crops or pads around the middle to a shape"};
