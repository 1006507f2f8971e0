/* Constant, ConstantOfShape, Range, EyeLike, OneHot, Trilu. */
#include <math.h>
#include <string.h>

#include "ops/index.h"
#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

static const qn_port any_out[] = {{"output", 0, QN_SET_TENSOR, 0}};

/* ---- Constant -------------------------------------------------------------------------------- */

/* One of these is given. Sparse values become dense when a file is read. */
typedef struct constant_attrs {
    const qn_tensor *value, *sparse_value;
    int64_t value_int;
    float value_float;
    const char *value_string;
    qn_ints value_ints;
    qn_floats value_floats;
    qn_strings value_strings;
} constant_attrs;

/* NaN stands for an absent float. */
static const qn_attr_spec constant_specs[] = {
    QN_ATTR(constant_attrs, value, TENSOR),
    QN_ATTR(constant_attrs, sparse_value, TENSOR, .since = 11),
    QN_INT_ATTR(constant_attrs, value_int, QN_ABSENT, .since = 12),
    QN_FLOAT_ATTR(constant_attrs, value_float, NAN, .since = 12),
    QN_STRING_ATTR(constant_attrs, value_string, NULL, .since = 12),
    QN_ATTR(constant_attrs, value_ints, INTS, .since = 12),
    QN_ATTR(constant_attrs, value_floats, FLOATS, .since = 12),
    QN_ATTR(constant_attrs, value_strings, STRINGS, .since = 12)};

/* The attribute that is there, as a tensor that borrows its elements; *text is room for a
 * string. */
static bool constant_view(qn_tensor *out, const constant_attrs *a, qn_string *text)
{
    const void *data = NULL;
    size_t count = 0;
    *out = (qn_tensor){.rank = 1};
    if (a->value || a->sparse_value) {
        *out = a->value ? *a->value : *a->sparse_value;
        return true;
    }
    if (a->value_ints.at)
        out->dtype = QN_INT64, data = a->value_ints.at, count = a->value_ints.count;
    else if (a->value_floats.at)
        out->dtype = QN_FLOAT32, data = a->value_floats.at, count = a->value_floats.count;
    else if (a->value_strings.at)
        out->dtype = QN_STRING, data = a->value_strings.at, count = a->value_strings.count;
    else {
        out->rank = 0;
        if (a->value_int != QN_ABSENT)
            out->dtype = QN_INT64, data = &a->value_int;
        else if (a->value_string)
            *text = (qn_string){a->value_string, strlen(a->value_string)}, out->dtype = QN_STRING,
            data = text;
        else
            out->dtype = QN_FLOAT32, data = &a->value_float;
    }
    out->dims[0] = (int64_t)count;
    out->data = (void *)(uintptr_t)data;
    return out->rank == 1 || out->dtype != QN_FLOAT32 || !isnan(a->value_float);
}

static qn_status constant_infer(qn_infer *self)
{
    qn_tensor view;
    qn_string text;
    if (!constant_view(&view, self->attrs, &text))
        return qn_infer_fail(self, "has no value");
    if (qn_infer_wants(self, 0))
        *self->out[0] = qn_type_of(&view);
    return QN_OK;
}

static qn_status constant_eval(qn_eval *self)
{
    qn_tensor view;
    qn_string text;
    if (!constant_view(&view, self->attrs, &text))
        return qn_eval_fail(self, "has no value");
    const size_t bytes = (size_t)qn_tensor_count(&view) * qn_dtype_size(view.dtype);
    if (bytes)
        memcpy(self->out[0]->data, view.data, bytes);
    return QN_OK;
}

const qn_op qn_op_Constant = {.name = "Constant",
                              .domain = "",
                              .since = 1,
                              QN_PORTS(out, any_out),
                              QN_ATTRS(constant_specs, constant_attrs),
                              .quant = QN_QUANT_PASS,
                              .infer = constant_infer,
                              .eval = constant_eval,
                              .brief = "a tensor from the file"};

/* ---- ConstantOfShape ------------------------------------------------------------------------- */

typedef struct fill_attrs {
    const qn_tensor *value;
} fill_attrs;
static const qn_attr_spec fill_specs[] = {QN_ATTR(fill_attrs, value, TENSOR)};
static const qn_type_rule fill_types[] = {{20, QN_SET(QN_BFLOAT16) | QN_SET_FLOAT8}};
static const qn_port fill_in[] = {{"input", 0, QN_SET(QN_INT64), 0}};

static qn_status fill_infer(qn_infer *self)
{
    const fill_attrs *a = self->attrs;
    const qn_dtype dtype = a->value ? a->value->dtype : QN_FLOAT32;
    qn_dim dims[QN_MAX_RANK];
    size_t count;
    if (a->value && qn_tensor_count(a->value) != 1)
        return qn_infer_fail(self, "the value must be one element");
    qn_infer_set_dtype(self, 0, dtype);
    if (!qn_infer_elements(self, 0, dims, QN_MAX_RANK, &count)) {
        if (self->data[0])
            return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
        return QN_OK;
    }
    for (size_t d = 0; d < count; d++) {
        if (qn_element_known(dims[d]) && dims[d].value < 0)
            return qn_infer_fail(self, "dimension %zu is %lld", d, (long long)dims[d].value);
        dims[d] = qn_dim_of_element(dims[d]);
    }
    qn_infer_set(self, 0, dtype, (int32_t)count, dims);
    return QN_OK;
}

static qn_status fill_eval(qn_eval *self)
{
    const fill_attrs *a = self->attrs;
    const qn_tensor *out = self->out[0];
    qn_fill(out->data, qn_tensor_count(out), a->value ? a->value->data : NULL,
            qn_dtype_size(out->dtype));
    return QN_OK;
}

const qn_op qn_op_ConstantOfShape = {.name = "ConstantOfShape",
                                     .domain = "",
                                     .since = 9,
                                     QN_PORTS(in, fill_in),
                                     QN_PORTS(out, any_out),
                                     QN_ATTRS(fill_specs, fill_attrs),
                                     QN_TYPE_RULES(fill_types),
                                     .quant = QN_QUANT_SHAPE,
                                     .infer = fill_infer,
                                     .eval = fill_eval,
                                     .brief = "a shape filled with one value"};

/* ---- Range ----------------------------------------------------------------------------------- */

static const qn_type_rule range_types[] = {{27, QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16)}};
static const qn_port range_in[] = {{"start", 'T', QN_SET_NUMBER, 0},
                                   {"limit", 'T', QN_SET_NUMBER, 0},
                                   {"delta", 'T', QN_SET_NUMBER, 0}};

static const char endless[] = "start, limit and delta give no finite range",
                  too_long[] = "start, limit and delta give a range too large for any tensor";

/* max(ceil((limit - start) / delta), 0). Returns why there is no such number: delta is 0 or the
 * count NaN, infinite or too large; NULL: there is. */
static const char *range_count(int64_t *out, const qn_tensor *const *in)
{
    if (qn_dtype_is_integer(in[0]->dtype)) {
        const int64_t start = qn_tensor_i64(in[0], 0), limit = qn_tensor_i64(in[1], 0);
        const int64_t delta = qn_tensor_i64(in[2], 0);
        if (delta == 0)
            return endless;
        const bool any = delta > 0 ? start < limit : start > limit;
        const uint64_t span =
            delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
        const uint64_t step = delta > 0 ? (uint64_t)delta : (uint64_t)0 - (uint64_t)delta;
        const uint64_t count = any ? (span - 1) / step + 1 : 0;
        *out = (int64_t)count;
        return count <= INT64_MAX ? NULL : too_long;
    }
    const double count =
        ceil((qn_tensor_f64(in[1], 0) - qn_tensor_f64(in[0], 0)) / qn_tensor_f64(in[2], 0));
    *out = count > 0 && count < 0x1p62 ? (int64_t)count : 0;
    return count < 0x1p62 ? NULL : isfinite(count) ? too_long : endless;
}

static qn_status range_infer(qn_infer *self)
{
    qn_dim length = qn_dim_unknown();
    bool known = true;
    for (int32_t i = 0; i < 3; i++) {
        known = known && self->data[i];
        if (self->data[i] && qn_tensor_count(self->data[i]) != 1)
            return qn_infer_fail(self, "start, limit and delta must be single numbers");
    }
    const char *why = known ? range_count(&length.value, self->data) : NULL;
    if (why)
        return qn_infer_fail(self, "%s", why);
    qn_infer_set(self, 0, self->in[0]->dtype, 1, &length);
    return QN_OK;
}

static qn_status range_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = out->dims[0];
    const bool integer = qn_dtype_is_integer(out->dtype);
    for (int64_t i = 0; i < count; i++) {
        const int64_t whole = (int64_t)((uint64_t)qn_tensor_i64(self->in[0], 0) +
                                        (uint64_t)i * (uint64_t)qn_tensor_i64(self->in[2], 0));
        const double real =
            qn_tensor_f64(self->in[0], 0) + (double)i * qn_tensor_f64(self->in[2], 0);
        if (integer)
            qn_store_i64(out->data, out->dtype, i, &whole, 1);
        else
            qn_store_f64(out->data, out->dtype, i, &real, 1);
    }
    return QN_OK;
}

const qn_op qn_op_Range = {.name = "Range",
                           .domain = "",
                           .since = 11,
                           QN_PORTS(in, range_in),
                           QN_PORTS(out, any_out),
                           QN_TYPE_RULES(range_types),
                           .quant = QN_QUANT_SHAPE,
                           .infer = range_infer,
                           .eval = range_eval,
                           .brief = "start, start + delta, ... below limit"};

/* ---- EyeLike --------------------------------------------------------------------------------- */

typedef struct eye_attrs {
    int64_t dtype, k;
} eye_attrs;
static const qn_attr_spec eye_specs[] = {QN_INT_ATTR(eye_attrs, dtype, QN_ABSENT),
                                         QN_INT_ATTR(eye_attrs, k, 0)};
static const qn_port eye_in[] = {{"input", 0, QN_SET_NUMBER | QN_SET_BOOL, 0}};

static qn_status eye_infer(qn_infer *self)
{
    const eye_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    const int64_t dtype = a->dtype == QN_ABSENT ? (int64_t)in->dtype : a->dtype;
    if (in->rank >= 0 && in->rank != 2)
        return qn_infer_fail(self, "the input must have two dimensions");
    if (dtype < 0 || dtype >= QN_DTYPE_COUNT ||
        !(QN_SET(dtype) & (QN_SET_NUMBER | QN_SET_BOOL | QN_SET(QN_UNDEFINED))))
        return qn_infer_fail(self, "dtype %lld is no number type", (long long)dtype);
    qn_infer_copy_dims(self, 0, 0, (qn_dtype)dtype);
    return QN_OK;
}

static qn_status eye_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const int64_t k = ((const eye_attrs *)self->attrs)->k, rows = out->dims[0], one = 1;
    const int64_t columns = out->dims[1];
    qn_fill(out->data, qn_tensor_count(out), NULL, qn_dtype_size(out->dtype));
    for (int64_t r = 0; r < rows; r++) {
        /* Compared before adding: k may be anything. */
        if (k >= -r && k < columns - r)
            qn_store_i64(out->data, out->dtype, r * columns + r + k, &one, 1);
    }
    return QN_OK;
}

const qn_op qn_op_EyeLike = {.name = "EyeLike",
                             .domain = "",
                             .since = 9,
                             QN_PORTS(in, eye_in),
                             QN_PORTS(out, any_out),
                             QN_ATTRS(eye_specs, eye_attrs),
                             QN_TYPE_RULES(qn_bfloat16_22),
                             .quant = QN_QUANT_SHAPE,
                             .infer = eye_infer,
                             .eval = eye_eval,
                             .brief = "ones on a diagonal"};

/* ---- OneHot ---------------------------------------------------------------------------------- */

typedef struct hot_attrs {
    int64_t axis;
} hot_attrs;
static const qn_attr_spec hot_specs[] = {QN_INT_ATTR(hot_attrs, axis, -1)};
static const qn_port hot_in[] = {{"indices", 0, QN_SET_NUMBER, 0},
                                 {"depth", 0, QN_SET_NUMBER, 0},
                                 {"values", 0, QN_SET_TENSOR, 0}};

static qn_status hot_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axis = ((const hot_attrs *)self->attrs)->axis;
    qn_dim dims[QN_MAX_RANK], depth = qn_dim_unknown();
    qn_infer_set_dtype(self, 0, self->in[2]->dtype);
    if (in->rank < 0)
        return QN_OK;
    if (in->rank + 1 > QN_MAX_RANK)
        return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
    QN_TRY(qn_infer_axis(self, &axis, in->rank + 1, "axis"));
    if (self->data[1]) {
        if (qn_tensor_count(self->data[1]) != 1 || qn_tensor_i64(self->data[1], 0) < 0)
            return qn_infer_fail(self, "depth must be one number, not negative");
        depth = qn_dim_of(qn_tensor_i64(self->data[1], 0));
    }
    for (int32_t d = 0, from = 0; d < in->rank + 1; d++)
        dims[d] = d == axis ? depth : in->dims[from++];
    qn_infer_set(self, 0, self->in[2]->dtype, in->rank + 1, dims);
    return QN_OK;
}

static qn_status hot_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *values = self->in[2], *out = self->out[0];
    int64_t axis = ((const hot_attrs *)self->attrs)->axis;
    axis += axis < 0 ? out->rank : 0;
    const int64_t depth = out->dims[axis], count = qn_tensor_count(in);
    const int64_t inner = qn_dims_product(out->dims, (int32_t)axis + 1, out->rank);
    const size_t size = qn_dtype_size(out->dtype);
    if (qn_tensor_count(values) != 2)
        return qn_eval_fail(self, "values must be [off, on]");
    qn_fill(out->data, qn_tensor_count(out), values->data, size);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = qn_tensor_i64(in, i);
        at += at < 0 ? depth : 0;
        if (at < 0 || at >= depth)
            continue; /* outside: all off */
        const int64_t to = (i / inner * depth + at) * inner + i % inner;
        memcpy((char *)out->data + (size_t)to * size, (const char *)values->data + size, size);
    }
    return QN_OK;
}

const qn_op qn_op_OneHot = {.name = "OneHot",
                            .domain = "",
                            .since = 9,
                            QN_PORTS(in, hot_in),
                            QN_PORTS(out, any_out),
                            QN_ATTRS(hot_specs, hot_attrs),
                            QN_TYPE_RULES(qn_bfloat16_28),
                            .quant = QN_QUANT_FLOAT,
                            .infer = hot_infer,
                            .eval = hot_eval,
                            .brief = "on at the index, off elsewhere"};

/* ---- Trilu ----------------------------------------------------------------------------------- */

typedef struct trilu_attrs {
    int64_t upper;
} trilu_attrs;
static const qn_attr_spec trilu_specs[] = {QN_INT_ATTR(trilu_attrs, upper, 1)};
static const qn_port trilu_in[] = {{"input", 'T', QN_SET_TENSOR, 0},
                                   {"k", 0, QN_SET(QN_INT64), QN_OPTIONAL}};

static qn_status trilu_infer(qn_infer *self)
{
    if (self->in[0]->rank >= 0 && self->in[0]->rank < 2)
        return qn_infer_fail(self, "the input must have two dimensions or more");
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

static qn_status trilu_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *given = qn_eval_in(self, 1);
    const bool upper = ((const trilu_attrs *)self->attrs)->upper != 0;
    const int64_t columns = out->dims[out->rank - 1], rows = out->dims[out->rank - 2];
    const int64_t count = qn_tensor_count(out);
    const size_t size = qn_dtype_size(out->dtype);
    if (given && qn_tensor_count(given) != 1)
        return qn_eval_fail(self, "k must be one number");
    const int64_t wanted = given ? qn_tensor_i64(given, 0) : 0;
    const int64_t k = QN_MIN(QN_MAX(wanted, -rows), columns);
    QN_TRY(qn_eval_move_all(self));
    for (int64_t i = 0; i < count; i++) {
        const int64_t diagonal = i % columns - i / columns % rows;
        if (upper ? diagonal < k : diagonal > k)
            memset((char *)out->data + (size_t)i * size, 0, size);
    }
    return QN_OK;
}

const qn_op qn_op_Trilu = {.name = "Trilu",
                           .domain = "",
                           .since = 14,
                           QN_PORTS(in, trilu_in),
                           QN_PORTS(out, any_out),
                           QN_ATTRS(trilu_specs, trilu_attrs),
                           .quant = QN_QUANT_FLOAT,
                           .infer = trilu_infer,
                           .eval = trilu_eval,
                           .brief = "upper or lower triangle"};
