/* The tools with which operators infer types, dims and contents. */
#include "ops/infer.h"

#include <string.h>

/* ---- Failing --------------------------------------------------------------------------------- */

qn_status qn_infer_fail(const qn_infer *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const qn_status status = qn_node_vfail(self->ctx, self->node, QN_E_INVALID, format, args);
    va_end(args);
    return status;
}

/* ---- Setting outputs ------------------------------------------------------------------------- */

void qn_infer_set(qn_infer *self, int32_t o, qn_dtype dtype, int32_t rank, const qn_dim *dims)
{
    if (!qn_infer_wants(self, o))
        return;
    qn_type *out = self->out[o];
    *out = (qn_type){.kind = QN_TYPE_TENSOR, .dtype = dtype, .rank = rank};
    if (rank > 0)
        memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
}

void qn_infer_set_dtype(qn_infer *self, int32_t o, qn_dtype dtype)
{
    qn_infer_set(self, o, dtype, -1, NULL);
}

void qn_infer_copy(qn_infer *self, int32_t o, int32_t i)
{
    if (!qn_infer_wants(self, o) || !qn_infer_has(self, i))
        return;
    *self->out[o] = *self->in[i];
    self->out[o]->elements = NULL;
}

void qn_infer_copy_dims(qn_infer *self, int32_t o, int32_t i, qn_dtype dtype)
{
    if (qn_infer_has(self, i))
        qn_infer_set(self, o, dtype, self->in[i]->rank, self->in[i]->dims);
}

qn_status qn_infer_set_elements(qn_infer *self, int32_t o, const qn_dim *elements, size_t count)
{
    if (!qn_infer_wants(self, o))
        return QN_OK;
    /* One spare, so that the elements of an empty list are not NULL, which means unknown. */
    qn_dim *copy = qn_arena_array(self->arena, count + 1, sizeof *copy);
    QN_TRY_ALLOC(self->ctx, copy);
    if (count)
        memcpy(copy, elements, count * sizeof *copy);
    self->out[o]->elements = copy;
    return QN_OK;
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

bool qn_dim_merge(qn_dim *out, qn_dim a, qn_dim b)
{
    if (a.value >= 0 && b.value >= 0 && a.value != b.value)
        return false;
    *out = a.value >= 0 || (b.value < 0 && a.symbol) ? a : b;
    return true;
}

bool qn_dim_broadcast(qn_dim *out, qn_dim a, qn_dim b)
{
    if (a.value == 1 || b.value == 1) {
        *out = a.value == 1 ? b : a;
        return true;
    }
    if (a.value >= 0 || b.value >= 0)
        return qn_dim_merge(out, a, b);
    /* Two unknown ones: the same name stays, else one of them may turn out to be 1. */
    *out = qn_dim_same(a, b) ? a : qn_dim_unknown();
    return true;
}

qn_dim qn_dim_add(qn_dim a, qn_dim b)
{
    if (a.value == 0 || b.value == 0)
        return a.value == 0 ? b : a;
    int64_t sum;
    if (a.value < 0 || b.value < 0 || !qn_add_int64(&sum, a.value, b.value))
        return qn_dim_unknown();
    return qn_dim_of(sum);
}

qn_dim qn_dim_mul(qn_dim a, qn_dim b)
{
    if (a.value == 1 || b.value == 1)
        return a.value == 1 ? b : a;
    if (a.value == 0 || b.value == 0)
        return qn_dim_of(0);
    int64_t product;
    if (a.value < 0 || b.value < 0 || !qn_mul_int64(&product, a.value, b.value))
        return qn_dim_unknown();
    return qn_dim_of(product);
}

qn_status qn_infer_broadcast(qn_infer *self, int32_t o, qn_dtype dtype, int32_t first,
                             int32_t count)
{
    qn_dim dims[QN_MAX_RANK];
    int32_t rank = 0;
    for (int32_t i = first; i < first + count; i++) {
        if (!qn_infer_has(self, i))
            continue;
        if (self->in[i]->rank < 0) {
            qn_infer_set_dtype(self, o, dtype);
            return QN_OK;
        }
        rank = QN_MAX(rank, self->in[i]->rank);
    }
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = qn_dim_of(1);
        for (int32_t i = first; i < first + count; i++) {
            const int32_t at = qn_infer_has(self, i) ? d - (rank - self->in[i]->rank) : -1;
            if (at >= 0 && !qn_dim_broadcast(&dims[d], dims[d], self->in[i]->dims[at]))
                return qn_infer_fail(self,
                                     "input %d does not broadcast: dimension %d is %lld, "
                                     "others have %lld",
                                     i, at, (long long)self->in[i]->dims[at].value,
                                     (long long)dims[d].value);
        }
    }
    qn_infer_set(self, o, dtype, rank, dims);
    return QN_OK;
}

qn_status qn_infer_broadcast_to(const qn_infer *self, int32_t i, int32_t rank, const qn_dim *dims)
{
    if (!qn_infer_has(self, i) || self->in[i]->rank < 0 || rank < 0)
        return QN_OK;
    const qn_type *in = self->in[i];
    if (in->rank > rank)
        return qn_infer_fail(self, "input %d has %d dimensions, more than the %d to fill", i,
                             in->rank, rank);
    for (int32_t d = 0; d < in->rank; d++) {
        const int64_t own = in->dims[d].value, wanted = dims[rank - in->rank + d].value;
        if (own >= 0 && wanted >= 0 && own != 1 && own != wanted)
            return qn_infer_fail(self,
                                 "dimension %d of input %d is %lld and does not broadcast "
                                 "to %lld",
                                 d, i, (long long)own, (long long)wanted);
    }
    return QN_OK;
}

/* ---- Contents of inputs ---------------------------------------------------------------------- */

bool qn_infer_elements(const qn_infer *self, int32_t i, qn_dim *out, size_t capacity, size_t *count)
{
    if (!qn_infer_has(self, i))
        return false;
    const qn_type *type = self->in[i];
    const qn_tensor *data = self->data[i];
    if (data && qn_dtype_is_integer(data->dtype)) {
        const int64_t n = qn_tensor_count(data);
        if (n < 0 || (size_t)n > capacity)
            return false;
        for (int64_t k = 0; k < n; k++) {
            out[k].symbol = NULL;
            qn_load_i64(&out[k].value, data->dtype, data->data, k, 1);
        }
        *count = (size_t)n;
        return true;
    }
    if (!type->elements || type->rank < 0 || type->rank > 1 ||
        (type->rank == 1 && (type->dims[0].value < 0 || (size_t)type->dims[0].value > capacity)))
        return false;
    *count = type->rank == 0 ? 1 : (size_t)type->dims[0].value;
    memcpy(out, type->elements, *count * sizeof *out);
    return true;
}

bool qn_infer_ints(const qn_infer *self, int32_t i, int64_t *out, size_t capacity, size_t *count)
{
    if (!qn_infer_has(self, i))
        return false;
    const qn_tensor *data = self->data[i];
    if (data) {
        const int64_t n = qn_tensor_count(data);
        if (!qn_dtype_is_integer(data->dtype) || n < 0 || (size_t)n > capacity)
            return false;
        qn_load_i64(out, data->dtype, data->data, 0, n);
        *count = (size_t)n;
        return true;
    }
    qn_dim elements[QN_MAX_RANK];
    if (!qn_infer_elements(self, i, elements, QN_MIN(capacity, QN_MAX_RANK), count))
        return false;
    for (size_t k = 0; k < *count; k++) {
        if (!qn_element_known(elements[k]))
            return false;
        out[k] = elements[k].value;
    }
    return true;
}

qn_status qn_infer_axis(const qn_infer *self, int64_t *axis, int32_t rank, const char *what)
{
    if (*axis < -(int64_t)rank || *axis >= rank)
        return qn_infer_fail(self, "%s %lld is outside [-%d, %d)", what, (long long)*axis, rank,
                             rank);
    if (*axis < 0)
        *axis += rank;
    return QN_OK;
}

/* ---- Checking inputs ------------------------------------------------------------------------- */

static const qn_port *port_of(const qn_op *op, int32_t i)
{
    if (i < op->n_in)
        return &op->in[i];
    const qn_port *last = op->n_in ? &op->in[op->n_in - 1] : NULL;
    return last && (last->flags & QN_VARIADIC) ? last : NULL;
}

static qn_status check_arity(const qn_infer *self)
{
    const qn_op *op = self->node->op;
    if (self->n_in > 0 && !port_of(op, self->n_in - 1))
        return qn_infer_fail(self, "has %d inputs, the operator takes %d", self->n_in, op->n_in);
    for (int32_t i = 0; i < op->n_in; i++) {
        const bool needed = !(op->in[i].flags & QN_OPTIONAL);
        if (needed && !qn_infer_has(self, i))
            return qn_infer_fail(self, "input %d (%s) is missing", i, op->in[i].name);
    }
    return QN_OK;
}

uint32_t qn_type_set(const qn_type *type)
{
    static const uint32_t sets[] = {[QN_TYPE_UNKNOWN] = 0,
                                    [QN_TYPE_SEQUENCE] = QN_SET_SEQUENCE,
                                    [QN_TYPE_OPTIONAL] = QN_SET_OPTIONAL,
                                    [QN_TYPE_MAP] = 0};
    return type->kind == QN_TYPE_TENSOR ? QN_SET(type->dtype) : sets[type->kind];
}

static bool type_known(const qn_type *type)
{
    return type->kind != QN_TYPE_UNKNOWN &&
           !(type->kind == QN_TYPE_TENSOR && type->dtype == QN_UNDEFINED);
}

static qn_status check_types(const qn_infer *self)
{
    const qn_type *bound[128] = {NULL};
    for (int32_t i = 0; i < self->n_in; i++) {
        const qn_type *type = self->in[i];
        const qn_port *port = port_of(self->node->op, i);
        if (!type || !type_known(type))
            continue;
        char text[128];
        qn_type_format(text, sizeof text, type);
        if (!(qn_type_set(type) & port->types))
            return qn_infer_fail(self, "input %d (%s) cannot be %s", i, port->name, text);
        const qn_type **first = &bound[port->letter & 127];
        if (port->letter && *first && (*first)->dtype != type->dtype)
            return qn_infer_fail(self, "input %d (%s) is %s, but must be %s as the others", i,
                                 port->name, text, qn_dtype_name((*first)->dtype));
        *first = type;
    }
    return QN_OK;
}

/* No shape that inference finds may be one that nothing can hold: who multiplies dims need not
 * ask. */
static qn_status check_sizes(const qn_infer *self)
{
    for (int32_t o = 0; o < self->n_out; o++) {
        char text[256];
        if (!self->out[o] || qn_type_fits(self->out[o]))
            continue;
        qn_type_format(text, sizeof text, self->out[o]);
        return qn_infer_fail(self, "output %d would be %s, which no memory can hold", o, text);
    }
    return QN_OK;
}

qn_status qn_infer_run(qn_infer *self)
{
    QN_TRY(check_arity(self));
    QN_TRY(check_types(self));
    QN_TRY(self->node->op->infer(self));
    return check_sizes(self);
}
