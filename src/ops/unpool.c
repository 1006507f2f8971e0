/* MaxUnpool: puts elements back where MaxPool found them. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/versions.h"
#include "ops/window.h"

static const qn_attr_spec specs[] = {QN_KERNEL_SHAPE_ATTR(.required = true),
                                     QN_ATTR(qn_window_attrs, strides, INTS),
                                     QN_ATTR(qn_window_attrs, pads, INTS)};
static const qn_port ports_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"I", '\0', QN_SET(QN_INT64), 0},
                                   {"output_shape", '\0', QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port ports_out[] = {{"output", 'T', QN_SET_FLOAT, 0}};

/* The shape that MaxPool had as its input, as far as the attributes have it. */
static bool pooled_dims(qn_window *w, qn_dim *dims, const qn_window_attrs *a, int32_t rank,
                        const qn_dim *x)
{
    if (!qn_window_resolve_transposed(w, a, rank - 2, x + 2, NULL))
        return false;
    memcpy(dims, x, 2 * sizeof *dims);
    memcpy(dims + 2, w->out, (size_t)w->rank * sizeof *dims);
    return true;
}

/* The dims that input 2 asks for, where given; at least as large as those pooled. */
static qn_status wanted_dims(qn_infer *self, qn_dim *dims, int32_t rank)
{
    qn_dim wanted[QN_MAX_RANK];
    size_t count;
    if (!qn_infer_has(self, 2))
        return QN_OK;
    if (!qn_infer_elements(self, 2, wanted, QN_MAX_RANK, &count)) {
        for (int32_t d = 0; d < rank; d++)
            dims[d] = qn_dim_unknown();
        return QN_OK;
    }
    if (count != (size_t)rank)
        return qn_infer_fail(self, "output_shape has %zu numbers for %d dimensions", count, rank);
    for (int32_t d = 0; d < rank; d++) {
        if (qn_element_known(wanted[d]) && wanted[d].value < dims[d].value)
            return qn_infer_fail(self, "output_shape asks for %lld where at least %lld are needed",
                                 (long long)wanted[d].value, (long long)dims[d].value);
        dims[d] = qn_dim_of_element(wanted[d]);
    }
    return QN_OK;
}

static qn_status infer(qn_infer *self)
{
    const qn_type *x = self->in[0], *indices = self->in[1];
    qn_dim dims[QN_MAX_RANK], merged;
    qn_window window;
    qn_infer_set_dtype(self, 0, x->dtype);
    if (x->rank < 0)
        return QN_OK;
    if (x->rank < 3)
        return qn_infer_fail(self, "the input has %d dimensions, 3 are the least", x->rank);
    for (int32_t d = 0; d < indices->rank; d++) {
        if (indices->rank != x->rank || !qn_dim_merge(&merged, x->dims[d], indices->dims[d]))
            return qn_infer_fail(self, "there must be one index per element");
    }
    if (!pooled_dims(&window, dims, self->attrs, x->rank, x->dims))
        return qn_infer_fail(self, "%s", window.problem);
    QN_TRY(wanted_dims(self, dims, x->rank));
    qn_infer_set(self, 0, x->dtype, x->rank, dims);
    return QN_OK;
}

/* Indices count elements of the pooled shape, which may be smaller than the output's. */
static qn_status eval(qn_eval *self)
{
    const qn_tensor *x = self->in[0], *out = self->out[0];
    const int64_t *indices = self->in[1]->data, count = qn_tensor_count(x);
    const size_t size = qn_dtype_size(x->dtype);
    qn_dim in[QN_MAX_RANK], pooled[QN_MAX_RANK];
    int64_t dims[QN_MAX_RANK], strides[QN_MAX_RANK], total = 1;
    qn_window window;
    for (int32_t d = 0; d < x->rank; d++)
        in[d] = qn_dim_of(x->dims[d]);
    if (qn_tensor_count(self->in[1]) != count)
        return qn_eval_fail(self, "there must be one index per element");
    if (!pooled_dims(&window, pooled, self->attrs, x->rank, in))
        return qn_eval_fail(self, "%s", window.problem);
    qn_dims_strides(strides, out->rank, out->dims);
    for (int32_t d = 0; d < x->rank; d++) {
        dims[d] = pooled[d].value;
        total *= dims[d];
        if (dims[d] > out->dims[d])
            return qn_eval_fail(self, "the output is smaller than what was pooled");
    }
    memset(out->data, 0, (size_t)qn_tensor_count(out) * size);
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= total)
            return qn_eval_fail(self, "index %lld is outside [0, %lld)", (long long)indices[i],
                                (long long)total);
        const int64_t to = qn_offset_of(indices[i], x->rank, dims, strides);
        memcpy((char *)out->data + (size_t)to * size, (const char *)x->data + (size_t)i * size,
               size);
    }
    return QN_OK;
}

const qn_op qn_op_MaxUnpool = {.name = "MaxUnpool",
                               .domain = "",
                               .since = 9,
                               QN_PORTS(in, ports_in),
                               QN_PORTS(out, ports_out),
                               QN_ATTRS(specs, qn_window_attrs),
                               QN_TYPE_RULES(qn_bfloat16_22),
                               .quant = QN_QUANT_FLOAT,
                               .infer = infer,
                               .eval = eval,
                               .brief =
                                   "puts elements back where MaxPool found them, zeros elsewhere"};
