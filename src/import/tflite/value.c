/* Values of tensors: constants, integers and the real numbers that they stand for. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/tflite/tflite.h"

/* ---- Messages -------------------------------------------------------------------------------- */

QN_PRINTF(3, 0)
static qn_status fail(const tfl_layer *l, qn_status status, const char *format, va_list arguments)
{
    char text[QN_ERROR_SIZE / 2];
    vsnprintf(text, sizeof text, format, arguments);
    return qn_graph_builder_fail(l->b, status, "%s", text);
}

qn_status qn_tfl_unsupported(const tfl_layer *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const qn_status status = fail(l, QN_E_UNSUPPORTED, format, arguments);
    va_end(arguments);
    return status;
}

qn_status qn_tfl_wrong(const tfl_layer *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const qn_status status = fail(l, QN_E_FORMAT, format, arguments);
    va_end(arguments);
    return status;
}

qn_status qn_tfl_expect(const tfl_layer *l, size_t inputs, size_t outputs)
{
    for (size_t i = 0; i < inputs; i++) {
        if (!qn_tfl_has(l, i))
            return qn_tfl_wrong(l, "input %zu is missing", i);
    }
    for (size_t i = 0; i < outputs; i++) {
        if (i >= l->n_out || !l->out[i])
            return qn_tfl_wrong(l, "output %zu is missing", i);
    }
    return QN_OK;
}

/* ---- Scales ---------------------------------------------------------------------------------- */

bool qn_tfl_is_quantized(const tfl_tensor *t)
{
    return t->scales.count > 0 &&
           (t->dtype == QN_INT8 || t->dtype == QN_UINT8 || t->dtype == QN_INT16);
}

float qn_tfl_scale(const tfl_tensor *t, size_t i)
{
    return qn_flat_item_real(&t->scales, t->scales.count > 1 ? i : 0);
}

int64_t qn_tfl_zero(const tfl_tensor *t, size_t i)
{
    if (i >= t->zeros.count)
        i = 0;
    return t->zeros.count ? qn_flat_item_int(&t->zeros, i) : 0;
}

bool qn_tfl_is_alike(const tfl_tensor *a, const tfl_tensor *b)
{
    if (a->dtype != b->dtype || qn_tfl_is_quantized(a) != qn_tfl_is_quantized(b))
        return false;
    return !qn_tfl_is_quantized(a) ||
           (a->scales.count == 1 && b->scales.count == 1 &&
            !(qn_tfl_scale(a, 0) < qn_tfl_scale(b, 0)) &&
            !(qn_tfl_scale(a, 0) > qn_tfl_scale(b, 0)) && qn_tfl_zero(a, 0) == qn_tfl_zero(b, 0));
}

/* Scales and zero points as constants; one number, or one for each index of an axis. */
static qn_status parameters(qn_value **scale, qn_value **zero, tfl_layer *l, const tfl_tensor *t)
{
    const size_t count = t->scales.count;
    const int32_t rank = count > 1;
    const int64_t dims[] = {(int64_t)count};
    const qn_type real = qn_type_tensor(QN_FLOAT32, rank, dims);
    const qn_type whole = qn_type_tensor(t->dtype, rank, dims);
    const size_t size = qn_dtype_get(t->dtype)->size;
    float *scales = qn_arena_array(&l->b->model->arena, count, sizeof *scales);
    char *zeros = qn_arena_array(&l->b->model->arena, count, size);
    QN_TRY_ALLOC(l->b->ctx, scales);
    QN_TRY_ALLOC(l->b->ctx, zeros);
    for (size_t i = 0; i < count; i++) {
        const int64_t z = qn_tfl_zero(t, i);
        scales[i] = qn_tfl_scale(t, i);
        if (!(scales[i] >= 0) || isinf(scales[i]))
            return qn_tfl_wrong(l, "'%s' has the scale %g", t->name, (double)scales[i]);
        qn_store_i64(zeros, t->dtype, (int64_t)i, &z, 1);
    }
    QN_TRY(qn_graph_build_constant(scale, l->b, NULL, &real,
                                   (qn_string){(const char *)scales, count * sizeof *scales}));
    return qn_graph_build_constant(zero, l->b, NULL, &whole, (qn_string){zeros, count * size});
}

qn_status qn_tfl_dequantize(qn_value **out, tfl_layer *l, qn_value *value, const tfl_tensor *t,
                            int64_t axis)
{
    qn_value *scale, *zero;
    *out = value;
    if (!qn_tfl_is_quantized(t))
        return QN_OK;
    QN_TRY(parameters(&scale, &zero, l, t));
    if (t->scales.count == 1)
        return qn_graph_build(out, l->b, &qn_op_DequantizeLinear, QN_INPUTS(value, scale, zero),
                              QN_PLAIN);
    if (axis < 0 || axis >= qn_tfl_rank(value))
        return qn_tfl_wrong(l, "'%s' has scales along an axis %lld that it lacks", t->name,
                            (long long)axis);
    return qn_graph_build(out, l->b, &qn_op_DequantizeLinear, QN_INPUTS(value, scale, zero),
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_tfl_quantize(qn_value **out, tfl_layer *l, qn_value *value, const tfl_tensor *t)
{
    qn_value *scale, *zero;
    if (t->scales.count != 1)
        return qn_tfl_unsupported(l, "its output '%s' has several scales", t->name);
    QN_TRY(parameters(&scale, &zero, l, t));
    return qn_graph_build(out, l->b, &qn_op_QuantizeLinear, QN_INPUTS(value, scale, zero),
                          QN_PLAIN);
}

/* ---- Constants ------------------------------------------------------------------------------- */

/* One number of 4 bits in each byte, as DequantizeLinear and Conv are known to engines. */
static qn_status unpack(qn_string *bytes, tfl_layer *l, const tfl_tensor *t, size_t count)
{
    if (bytes->length != count / 2 + count % 2)
        return qn_tfl_wrong(l, "'%s' has %zu bytes for %zu numbers of 4 bits", t->name,
                            bytes->length, count);
    char *numbers = qn_arena_alloc(&l->b->model->arena, QN_MAX(count, 1u));
    QN_TRY_ALLOC(l->b->ctx, numbers);
    for (size_t i = 0; i < count; i++) {
        const int four = ((unsigned char)bytes->text[i / 2] >> (i % 2 * 4)) & 15;
        numbers[i] = (char)(four < 8 ? four : four - 16);
    }
    *bytes = (qn_string){numbers, count};
    return QN_OK;
}

/* A variable begins with zeros. */
static qn_status make_constant(qn_value **out, tfl_layer *l, const tfl_tensor *t)
{
    qn_type type = qn_tfl_type(t);
    qn_string bytes = t->bytes;
    size_t wanted;
    int64_t count;
    if (t->dtype == QN_UNDEFINED)
        return qn_tfl_unsupported(l, "'%s' has a type that graphs lack", t->name);
    if (!qn_dims_count(&count, t->rank, t->dims) ||
        !qn_tensor_bytes(&wanted, t->dtype, t->rank, t->dims))
        return qn_tfl_wrong(l, "'%s' is a constant whose shape is open", t->name);
    if (!bytes.length && count && !t->variable)
        return qn_tfl_wrong(l, "nothing computes '%s'", t->name);
    if (!bytes.length) {
        char *zeros = qn_arena_alloc(&l->b->model->arena, QN_MAX(wanted, 1u));
        QN_TRY_ALLOC(l->b->ctx, zeros);
        bytes = (qn_string){zeros, wanted};
    }
    if (t->packed)
        QN_TRY(unpack(&bytes, l, t, (size_t)count));
    return qn_graph_build_constant(out, l->b, t->name, &type, bytes);
}

qn_status qn_tfl_hold(tfl_layer *l, tfl_tensor *t)
{
    qn_value *value;
    if (t->known)
        return QN_OK;
    if (t->sparsity.flat)
        return qn_tfl_unsupported(l, "'%s' is sparse, which only DENSIFY reads", t->name);
    QN_TRY(make_constant(&value, l, t));
    t->known = true;
    return qn_layout_define(l->layouts, t->name, value, QN_ORDER_OWN);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

qn_status qn_tfl_raw(qn_value **out, tfl_layer *l, size_t i, qn_axis_order order)
{
    if (!qn_tfl_has(l, i))
        return qn_tfl_wrong(l, "input %zu is missing", i);
    QN_TRY(qn_tfl_hold(l, l->in[i]));
    return qn_layout_find(out, l->layouts, l->in[i]->name, order);
}

static qn_status real_of(qn_value **value, tfl_layer *l, const tfl_tensor *t, qn_axis_order order)
{
    return qn_tfl_dequantize(value, l, *value, t, qn_layout_axis(order, t->rank, t->axis));
}

qn_status qn_tfl_real(qn_value **out, tfl_layer *l, size_t i, qn_axis_order order)
{
    QN_TRY(qn_tfl_raw(out, l, i, order));
    return real_of(out, l, l->in[i], order);
}

/* [N, C, 1, ...] and [N, 1, spatial...] have their numbers where the file's order has them. */
static bool is_flat(const qn_value *value)
{
    int32_t wide = 0;
    for (int32_t i = 2; i < qn_tfl_rank(value); i++)
        wide += qn_tfl_dim(value, i) != 1;
    return wide == 0 || qn_tfl_dim(value, 1) == 1;
}

qn_status qn_tfl_take_flat(qn_value **out, tfl_layer *l, size_t i)
{
    qn_axis_order order;
    const bool raw = l->raw;
    l->raw = true;
    const qn_status status = qn_tfl_take_any(out, &order, l, i);
    l->raw = raw;
    QN_TRY(status);
    if (order != QN_ORDER_OWN && is_flat(*out))
        return raw ? QN_OK : real_of(out, l, l->in[i], order);
    return qn_tfl_take(out, l, i, QN_ORDER_OWN);
}

qn_status qn_tfl_take(qn_value **out, tfl_layer *l, size_t i, qn_axis_order order)
{
    return l->raw ? qn_tfl_raw(out, l, i, order) : qn_tfl_real(out, l, i, order);
}

qn_status qn_tfl_take_any(qn_value **out, qn_axis_order *order, tfl_layer *l, size_t i)
{
    if (!qn_tfl_has(l, i))
        return qn_tfl_wrong(l, "input %zu is missing", i);
    QN_TRY(qn_tfl_hold(l, l->in[i]));
    QN_TRY(qn_layout_any(out, order, l->layouts, l->in[i]->name));
    return l->raw ? QN_OK : real_of(out, l, l->in[i], *order);
}

qn_status qn_tfl_take_agreed(qn_value **out, qn_axis_order *order, tfl_layer *l, size_t count)
{
    const char **names = qn_arena_array(&l->b->model->arena, count, sizeof *names);
    QN_TRY_ALLOC(l->b->ctx, names);
    QN_TRY(qn_tfl_expect(l, count, 1));
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_tfl_hold(l, l->in[i]));
        names[i] = l->in[i]->name;
    }
    QN_TRY(qn_layout_agree(out, order, l->layouts, names, count));
    for (size_t i = 0; i < count && !l->raw; i++)
        QN_TRY(real_of(&out[i], l, l->in[i], *order));
    return QN_OK;
}

/* ---- Outputs --------------------------------------------------------------------------------- */

/* What holds a tensor has its name, unless it holds another one already: nodes before it, that an
 * activation or rounding stands behind, were given it. */
static qn_status take_name(const tfl_layer *l, qn_value *value, const char *name)
{
    qn_value *holder = qn_graph_value(l->b->graph, name);
    const tfl_tensor *held = qn_names_get(&l->reader->taken, value->name);
    if (holder == value || !value->producer || (held && held->known && held->holder == value))
        return QN_OK;
    if (holder && (holder->is_input || holder->is_output))
        return QN_OK;
    if (holder)
        QN_TRY(qn_value_rename(holder, name)); /* a taken name gets a number */
    return qn_value_rename(value, name);
}

/* A file knows at least the rank of what has a shape that the model computes. */
static qn_status declare_rank(const tfl_layer *l, qn_value *value, const tfl_tensor *t)
{
    if (value->type.kind != QN_TYPE_TENSOR || value->type.rank >= 0)
        return QN_OK;
    qn_type *type = qn_arena_copy(&l->b->model->arena, &value->type, sizeof value->type);
    QN_TRY_ALLOC(l->b->ctx, type);
    type->rank = t->rank;
    for (int32_t i = 0; i < t->rank; i++)
        type->dims[i] = qn_dim_unknown();
    value->declared = type;
    value->type = *type;
    return QN_OK;
}

qn_status qn_tfl_give_raw(tfl_layer *l, size_t o, qn_value *value, qn_axis_order order)
{
    if (o >= l->n_out || !l->out[o])
        return QN_OK;
    QN_TRY(take_name(l, value, l->out[o]->name));
    QN_TRY(declare_rank(l, value, l->out[o]));
    l->out[o]->known = true;
    l->out[o]->holder = value;
    return qn_layout_define(l->layouts, l->out[o]->name, value, order);
}

qn_status qn_tfl_put(tfl_layer *l, size_t o, qn_value *value, qn_axis_order order)
{
    if (o < l->n_out && l->out[o] && !l->raw && qn_tfl_is_quantized(l->out[o]))
        QN_TRY(qn_tfl_quantize(&value, l, value, l->out[o]));
    return qn_tfl_give_raw(l, o, value, order);
}

/* ---- Integers -------------------------------------------------------------------------------- */

int32_t qn_tfl_rank(const qn_value *value)
{
    return value->type.kind == QN_TYPE_TENSOR ? value->type.rank : -1;
}

int64_t qn_tfl_dim(const qn_value *value, int64_t axis)
{
    return axis >= 0 && axis < qn_tfl_rank(value) ? value->type.dims[axis].value : -1;
}

static bool elements_known(int64_t *out, size_t *count, const qn_value *value)
{
    const int64_t n = value->type.rank == 0 ? 1 : qn_tfl_dim(value, 0);
    if (!value->type.elements || n < 0 || n > QN_TFL_MAX_INTS)
        return false;
    *count = (size_t)n;
    for (size_t i = 0; i < *count; i++) {
        out[i] = value->type.elements[i].value;
        if (!qn_element_known(value->type.elements[i]))
            return false;
    }
    return true;
}

qn_status qn_tfl_ints(int64_t *out, size_t *count, bool *known, tfl_layer *l, size_t i)
{
    qn_value *value;
    QN_TRY(qn_tfl_raw(&value, l, i, QN_ORDER_OWN));
    const qn_tensor *data = value->data;
    *known = false;
    *count = 0;
    if (!data) {
        *known = elements_known(out, count, value);
        return QN_OK;
    }
    const int64_t n = qn_tensor_count(data);
    if (!qn_dtype_is_integer(data->dtype) || n > QN_TFL_MAX_INTS)
        return qn_tfl_wrong(l, "'%s' has no list of at most %d integers", l->in[i]->name,
                            QN_TFL_MAX_INTS);
    qn_load_i64(out, data->dtype, data->data, 0, n);
    *count = (size_t)n;
    *known = true;
    return QN_OK;
}

qn_status qn_tfl_known_ints(int64_t *out, size_t *count, tfl_layer *l, size_t i)
{
    bool known;
    QN_TRY(qn_tfl_ints(out, count, &known, l, i));
    return known ? QN_OK
                 : qn_tfl_unsupported(l, "'%s' is computed by the model, not a constant",
                                      l->in[i]->name);
}

qn_status qn_tfl_indices(qn_value **out, tfl_layer *l, size_t i)
{
    QN_TRY(qn_tfl_raw(out, l, i, QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(out, l, *out, QN_INT64));
    if (qn_tfl_rank(*out) == 1)
        return QN_OK;
    return qn_tfl_reshape(out, l, *out, (const int64_t[]){-1}, 1);
}
