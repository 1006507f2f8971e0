/* The tools with which reference kernels make outputs and fail. */
#include "ops/eval.h"

#include <string.h>

#include "ops/infer.h"

qn_status qn_eval_fail(const qn_eval *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const qn_status status = qn_node_vfail(self->ctx, self->node, QN_E_INVALID, format, args);
    va_end(args);
    return status;
}

static qn_status fail_bytes(const qn_eval *self, size_t bytes, const char *what)
{
    return qn_fail_bytes(self->ctx, bytes, "%s of node '%s' (%s)", what, self->node->name,
                         self->node->op->name);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

qn_status qn_eval_output(qn_eval *self, int32_t o, qn_dtype dtype, int32_t rank,
                         const int64_t *dims)
{
    size_t bytes;
    if (!qn_tensor_bytes(&bytes, dtype, rank, dims))
        return qn_eval_fail(self, "output %d would be too large", o);
    qn_tensor *out = self->out[o];
    out->dtype = dtype;
    out->rank = rank;
    if (rank)
        memmove(out->dims, dims, (size_t)rank * sizeof *dims);
    out->data = self->keep(self, bytes);
    if (!out->data)
        return fail_bytes(self, bytes, "an output");
    return QN_OK;
}

static qn_status copy_strings(qn_eval *self, qn_string *strings, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char *text = self->keep(self, strings[i].length);
        QN_TRY_ALLOC(self->ctx, text);
        if (strings[i].length)
            memcpy(text, strings[i].text, strings[i].length);
        strings[i].text = text;
    }
    return QN_OK;
}

static qn_status make_sequence(qn_eval *self, qn_tensor *out, int64_t count)
{
    size_t bytes;
    if (count < 0 || !qn_mul_size(&bytes, (size_t)count, sizeof(qn_tensor)))
        return qn_fail_nomem(self->ctx);
    qn_sequence *sequence = self->keep(self, sizeof *sequence);
    QN_TRY_ALLOC(self->ctx, sequence);
    sequence->items = self->keep(self, bytes);
    QN_TRY_ALLOC(self->ctx, sequence->items);
    sequence->count = count;
    for (int64_t i = 0; i < count; i++)
        sequence->items[i] = (qn_tensor){.dtype = QN_NONE};
    *out = (qn_tensor){.dtype = QN_SEQUENCE, .data = sequence};
    return QN_OK;
}

qn_status qn_eval_output_sequence(qn_eval *self, int32_t o, int64_t count)
{
    return make_sequence(self, self->out[o], count);
}

qn_status qn_eval_copy(qn_eval *self, qn_tensor *out, const qn_tensor *tensor)
{
    if (tensor->dtype == QN_SEQUENCE) {
        const qn_sequence *from = tensor->data;
        QN_TRY(make_sequence(self, out, from->count));
        for (int64_t i = 0; i < from->count; i++) {
            qn_tensor *item = &((qn_sequence *)out->data)->items[i];
            QN_TRY(qn_eval_copy(self, item, &from->items[i]));
        }
        return QN_OK;
    }
    *out = *tensor;
    if (tensor->dtype == QN_NONE)
        return QN_OK;
    const int64_t count = qn_tensor_count(tensor);
    const size_t bytes = (size_t)count * qn_dtype_size(tensor->dtype);
    out->data = self->keep(self, bytes);
    if (!out->data)
        return fail_bytes(self, bytes, "an output");
    if (bytes)
        memcpy(out->data, tensor->data, bytes);
    return tensor->dtype == QN_STRING ? copy_strings(self, out->data, count) : QN_OK;
}

qn_status qn_eval_output_copy(qn_eval *self, int32_t o, const qn_tensor *tensor)
{
    return qn_eval_copy(self, self->out[o], tensor);
}

/* ---- Inputs as numbers ----------------------------------------------------------------------- */

qn_status qn_eval_scratch(qn_eval *self, void **out, int64_t count, size_t size)
{
    size_t bytes = SIZE_MAX;
    *out = NULL;
    if (count >= 0 && qn_mul_size(&bytes, (size_t)count, size))
        *out = self->scratch(self, bytes);
    return *out ? QN_OK : fail_bytes(self, bytes, "scratch");
}

qn_status qn_eval_doubles(qn_eval *self, double **out, const qn_tensor *tensor)
{
    void *block;
    const int64_t count = qn_tensor_count(tensor);
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    *out = block;
    qn_load_f64(*out, tensor->dtype, tensor->data, 0, count);
    return QN_OK;
}

qn_status qn_eval_ints(qn_eval *self, int64_t **out, const qn_tensor *tensor)
{
    void *block;
    const int64_t count = qn_tensor_count(tensor);
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(int64_t)));
    *out = block;
    qn_load_i64(*out, tensor->dtype, tensor->data, 0, count);
    return QN_OK;
}

double qn_tensor_f64_any(const qn_tensor *tensor, int64_t i)
{
    double value = 0;
    qn_load_f64(&value, tensor->dtype, tensor->data, i, 1);
    return value;
}

int64_t qn_tensor_i64_any(const qn_tensor *tensor, int64_t i)
{
    int64_t value = 0;
    qn_load_i64(&value, tensor->dtype, tensor->data, i, 1);
    return value;
}
