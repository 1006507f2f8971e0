/* Tensors: weights as they lie in the file, numbers, views, and what is written to them in
 * place. */
#include <string.h>

#include "import/pytorch/torch.h"

/* ---- Weights --------------------------------------------------------------------------------- */

static bool is_row_major(const qn_torch_tensor *tensor)
{
    int64_t stride = 1;
    for (int32_t i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->dims[i] != 1 && tensor->strides[i] != stride)
            return false;
        stride *= tensor->dims[i];
    }
    return true;
}

/* Whether all elements lie in the storage, of which `size` elements are there. */
static bool lies_within(const qn_torch_tensor *tensor, int64_t size)
{
    int64_t last = tensor->offset;
    if (last < 0)
        return false;
    for (int32_t i = 0; i < tensor->rank; i++) {
        int64_t step;
        if (tensor->dims[i] == 0)
            return true;
        if (tensor->strides[i] < 0 ||
            !qn_mul_int64(&step, tensor->dims[i] - 1, tensor->strides[i]) ||
            !qn_add_int64(&last, last, step))
            return false;
    }
    return last < size;
}

/* Elements in the order of the axes: the innermost axis row by row. */
static void gather(uint8_t *to, const uint8_t *from, const qn_torch_tensor *tensor, int64_t count)
{
    const size_t element = qn_dtype_get(tensor->dtype)->size;
    int64_t index[QN_MAX_RANK] = {0}, at = tensor->offset;
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * element, from + (size_t)at * element, element);
        for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
            at += tensor->strides[axis];
            if (++index[axis] < tensor->dims[axis])
                break;
            at -= tensor->strides[axis] * tensor->dims[axis];
            index[axis] = 0;
        }
    }
}

/* A tensor that repeats its elements must not become much larger than what the file holds. */
enum { MOST_REPEATS = 64, FEW_ELEMENTS = 1 << 20 };

static qn_status gather_weight(qn_value **out, qn_torch *t, const qn_torch_tensor *tensor,
                               qn_string bytes, int64_t count)
{
    const qn_type type = qn_type_tensor(tensor->dtype, tensor->rank, tensor->dims);
    const int64_t held = (int64_t)(bytes.length / qn_dtype_get(tensor->dtype)->size);
    qn_tensor *copy;
    if (count > FEW_ELEMENTS && count / MOST_REPEATS > held)
        return qn_graph_builder_fail(&t->b, QN_E_FORMAT, "'%s' repeats its elements too often",
                                     tensor->name ? tensor->name : tensor->storage->key);
    QN_TRY(qn_model_tensor(&copy, t->b.model, &type));
    gather(copy->data, (const uint8_t *)bytes.text, tensor, count);
    return qn_value_constant(out, t->b.graph, tensor->name, copy);
}

static qn_status make_weight(qn_value **out, qn_torch *t, const qn_torch_tensor *tensor)
{
    const qn_type type = qn_type_tensor(tensor->dtype, tensor->rank, tensor->dims);
    const char *name = tensor->name ? tensor->name : tensor->storage->key;
    const size_t element = qn_dtype_get(tensor->dtype)->size;
    qn_string bytes;
    int64_t count;
    if (!qn_dims_count(&count, tensor->rank, tensor->dims) || !element)
        return qn_graph_builder_fail(&t->b, QN_E_FORMAT, "'%s' has an impossible shape", name);
    QN_TRY(qn_torch_archive_storage(&bytes, &t->archive, tensor->storage));
    if (!lies_within(tensor, (int64_t)(bytes.length / element)))
        return qn_graph_builder_fail(&t->b, QN_E_FORMAT,
                                     "'%s' needs more than the %zu bytes of '%s'", name,
                                     bytes.length, tensor->storage->key);
    if (!is_row_major(tensor))
        return gather_weight(out, t, tensor, bytes, count);
    if (count > 0)
        bytes = (qn_string){bytes.text + (size_t)tensor->offset * element, (size_t)count * element};
    else
        bytes.length = 0;
    return qn_graph_build_constant(out, &t->b, tensor->name, &type, bytes);
}

/* ---- Views ----------------------------------------------------------------------------------- */

static qn_status build_view(qn_value **out, qn_torch *t, qn_value *base, const qn_torch_view *view)
{
    qn_value *at, *axes, *start, *end, *step;
    if (view->select) {
        QN_TRY(qn_torch_number(&at, t, QN_INT64, 0, view->start));
        return qn_graph_build(out, &t->b, &qn_op_Gather, QN_INPUTS(base, at),
                              QN_WITH(QN_A_INT("axis", view->axis)));
    }
    QN_TRY(qn_graph_build_ints(&start, &t->b, &view->start, 1));
    QN_TRY(qn_graph_build_ints(&end, &t->b, &view->end, 1));
    QN_TRY(qn_graph_build_ints(&axes, &t->b, &view->axis, 1));
    QN_TRY(qn_graph_build_ints(&step, &t->b, &view->step, 1));
    return qn_graph_build(out, &t->b, &qn_op_Slice, QN_INPUTS(base, start, end, axes, step),
                          QN_PLAIN);
}

qn_status qn_torch_tensor_value(qn_value **out, qn_torch *t, qn_torch_tensor *tensor)
{
    qn_torch_view *view = &tensor->view;
    if (!tensor->value && tensor->storage)
        QN_TRY(make_weight(&tensor->value, t, tensor));
    if (view->base && view->seen != view->base->writes) {
        qn_value *base;
        QN_TRY(qn_torch_tensor_value(&base, t, view->base));
        QN_TRY(build_view(&tensor->value, t, base, view));
        view->seen = view->base->writes;
    }
    *out = tensor->value;
    return QN_OK;
}

/* The base with its part [start, end) along the axis replaced, for steps of one: the parts before
 * and behind stay. */
static qn_status replace_part(qn_value **out, qn_torch *t, qn_value *base, qn_value *part,
                              const qn_torch_view *view)
{
    qn_value *parts[3];
    int32_t rank;
    size_t n = 0;
    QN_TRY(qn_torch_rank(&rank, t, base));
    const int64_t size = view->axis < rank ? base->type.dims[view->axis].value : -1;
    if (size < 0 || view->step != 1 || view->start < 0 ||
        (!view->select && view->end < view->start))
        return qn_graph_builder_fail(&t->b, QN_E_UNSUPPORTED,
                                     "writes to a part of an axis whose size is not known");
    const int64_t end = view->select ? view->start + 1 : QN_MIN(view->end, size);
    const qn_torch_view before = {.axis = view->axis, .start = 0, .end = view->start, .step = 1};
    const qn_torch_view behind = {.axis = view->axis, .start = end, .end = size, .step = 1};
    if (view->start > 0)
        QN_TRY(build_view(&parts[n++], t, base, &before));
    if (view->select) {
        qn_value *axes;
        QN_TRY(qn_graph_build_ints(&axes, &t->b, &view->axis, 1));
        QN_TRY(qn_graph_build(&part, &t->b, &qn_op_Unsqueeze, QN_INPUTS(part, axes), QN_PLAIN));
    }
    parts[n++] = part;
    if (end < size)
        QN_TRY(build_view(&parts[n++], t, base, &behind));
    return qn_graph_build(out, &t->b, &qn_op_Concat, (qn_graph_build_inputs){parts, n},
                          QN_WITH(QN_A_INT("axis", view->axis)));
}

/* Views of views end: each was taken of a tensor that was there before. */
qn_status qn_torch_write(qn_torch *t, qn_torch_tensor *tensor, qn_value *value)
{
    qn_torch_tensor *at = tensor;
    for (;;) {
        at->value = value;
        at->writes++;
        qn_torch_tensor *base = at->view.base;
        if (!base)
            return QN_OK;
        qn_value *whole;
        QN_TRY(qn_torch_tensor_value(&whole, t, base));
        QN_TRY(replace_part(&value, t, whole, value, &at->view));
        at->view.seen = base->writes + 1;
        at = base;
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

qn_status qn_torch_number(qn_value **out, qn_torch *t, qn_dtype dtype, double real, int64_t number)
{
    const qn_type type = qn_type_tensor(dtype, 0, NULL);
    uint8_t *bytes = qn_arena_alloc(t->arena, 16);
    QN_TRY_ALLOC(t->ctx, bytes);
    if (qn_dtype_is_float(dtype))
        qn_store_f64(bytes, dtype, 0, &real, 1);
    else
        qn_store_i64(bytes, dtype, 0, &number, 1);
    return qn_graph_build_constant(out, &t->b, NULL, &type,
                                   (qn_string){(const char *)bytes, qn_dtype_get(dtype)->size});
}

qn_status qn_torch_value_of(qn_value **out, qn_torch *t, const qn_torch_value *value)
{
    static const int64_t first[1] = {0};
    qn_value *axes;
    switch (value->kind) {
    case QN_TORCH_TENSOR: return qn_torch_tensor_value(out, t, value->tensor);
    case QN_TORCH_INT: return qn_torch_number(out, t, QN_INT64, 0, value->number);
    case QN_TORCH_BOOL: return qn_torch_number(out, t, QN_BOOL, 0, value->truth);
    case QN_TORCH_REAL: return qn_torch_number(out, t, QN_FLOAT32, value->real, 0);
    case QN_TORCH_SIZE:
        QN_TRY(qn_graph_build_ints(&axes, &t->b, first, 1));
        return qn_graph_build(out, &t->b, &qn_op_Squeeze, QN_INPUTS(value->size, axes), QN_PLAIN);
    default:
        return qn_graph_builder_fail(&t->b, QN_E_UNSUPPORTED, "%s where a tensor is wanted",
                                     qn_torch_kind_name(value->kind));
    }
}

qn_status qn_torch_make(qn_torch_value *out, qn_torch *t, qn_value *value)
{
    return qn_torch_of(out, t->ctx, t->arena, value);
}

/* An input of unknown rank is asked for in the message of the whole. */
qn_status qn_torch_rank(int32_t *out, qn_torch *t, const qn_value *value)
{
    *out = value->type.rank;
    if (value->type.kind == QN_TYPE_TENSOR && *out >= 0)
        return QN_OK;
    const qn_value *from = value;
    if (t->hint.rank < 0)
        t->hint = t->expected;
    while (from->producer && from->producer->n_in > 0 && from->producer->in[0]) {
        if (!(from->producer->op->flags & QN_OP_ELEMENTWISE))
            t->hint.rank = -1;
        from = from->producer->in[0];
    }
    t->unranked = from->is_input ? from : NULL;
    return qn_graph_builder_fail(&t->b, QN_E_UNSUPPORTED, "the rank of its input is not known");
}
