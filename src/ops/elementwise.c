#include "ops/elementwise.h"

enum { BLOCK = 256 }; /* elements converted at a time */

void qn_broadcast_strides(int64_t *strides, const qn_tensor *tensor, int32_t out_rank,
                          const int64_t *out_dims)
{
    const int32_t lead = out_rank - tensor->rank;
    int64_t stride = 1;
    for (int32_t d = out_rank - 1; d >= 0; d--) {
        const int64_t dim = d >= lead ? tensor->dims[d - lead] : 1;
        strides[d] = dim == 1 && out_dims[d] != 1 ? 0 : stride;
        stride *= dim;
    }
}

int64_t qn_offset_of(int64_t i, int32_t rank, const int64_t *dims, const int64_t *strides)
{
    int64_t offset = 0;
    for (int32_t d = rank - 1; d >= 0; d--) {
        offset += i % dims[d] * strides[d];
        i /= dims[d];
    }
    return offset;
}

/* ---- Unary ------------------------------------------------------------------------------------------ */

static void map_f64(const qn_tensor *out, const qn_tensor *in, qn_unary_f64 *f, const void *params)
{
    double x[BLOCK];
    const int64_t total = qn_tensor_count(out);
    for (int64_t first = 0; first < total; first += BLOCK) {
        const int64_t count = QN_MIN(BLOCK, total - first);
        qn_load_f64(x, in->dtype, in->data, first, count);
        for (int64_t i = 0; i < count; i++)
            x[i] = f(x[i], params);
        qn_store_f64(out->data, out->dtype, first, x, count);
    }
}

static void map_i64(const qn_tensor *out, const qn_tensor *in, qn_unary_i64 *g, const void *params)
{
    int64_t x[BLOCK];
    const int64_t total = qn_tensor_count(out);
    for (int64_t first = 0; first < total; first += BLOCK) {
        const int64_t count = QN_MIN(BLOCK, total - first);
        qn_load_i64(x, in->dtype, in->data, first, count);
        for (int64_t i = 0; i < count; i++)
            x[i] = g(x[i], params);
        qn_store_i64(out->data, out->dtype, first, x, count);
    }
}

void qn_tensor_map(const qn_tensor *out, const qn_tensor *in, qn_unary_f64 *f, qn_unary_i64 *g,
                   const void *params)
{
    if (qn_dtype_is_float(in->dtype) || !g)
        map_f64(out, in, f, params);
    else
        map_i64(out, in, g, params);
}

qn_status qn_eval_unary(qn_eval *self, qn_unary_f64 *f, qn_unary_i64 *g)
{
    qn_tensor_map(self->out[0], self->in[0], f, g, self->attrs);
    return QN_OK;
}

/* ---- Binary ------------------------------------------------------------------------------------------ */

/* Where the operands of one binary operation lie. */
typedef struct operands {
    const qn_tensor *a, *b;
    int64_t a_strides[QN_MAX_RANK], b_strides[QN_MAX_RANK];
} operands;

static void binary_f64(const qn_eval *self, const operands *o, qn_binary_f64 *f, int64_t i)
{
    const qn_tensor *out = self->out[0];
    double a, b;
    qn_load_f64(&a, o->a->dtype, o->a->data, qn_offset_of(i, out->rank, out->dims, o->a_strides),
                1);
    qn_load_f64(&b, o->b->dtype, o->b->data, qn_offset_of(i, out->rank, out->dims, o->b_strides),
                1);
    const double result = f(a, b, self->attrs);
    qn_store_f64(out->data, out->dtype, i, &result, 1);
}

static void binary_i64(const qn_eval *self, const operands *o, qn_binary_i64 *g, int64_t i)
{
    const qn_tensor *out = self->out[0];
    int64_t a, b;
    qn_load_i64(&a, o->a->dtype, o->a->data, qn_offset_of(i, out->rank, out->dims, o->a_strides),
                1);
    qn_load_i64(&b, o->b->dtype, o->b->data, qn_offset_of(i, out->rank, out->dims, o->b_strides),
                1);
    const bool is_unsigned = qn_dtype_get(o->a->dtype)->kind != QN_KIND_INT;
    const int64_t result = g(a, b, is_unsigned, self->attrs);
    qn_store_i64(out->data, out->dtype, i, &result, 1);
}

qn_status qn_eval_binary(qn_eval *self, qn_binary_f64 *f, qn_binary_i64 *g)
{
    const qn_tensor *out = self->out[0];
    operands o = {.a = self->in[0], .b = self->in[1]};
    qn_broadcast_strides(o.a_strides, o.a, out->rank, out->dims);
    qn_broadcast_strides(o.b_strides, o.b, out->rank, out->dims);
    const bool wide_float = qn_dtype_is_float(o.a->dtype) || !g;
    const int64_t total = qn_tensor_count(out);
    for (int64_t i = 0; i < total; i++) {
        if (wide_float)
            binary_f64(self, &o, f, i);
        else
            binary_i64(self, &o, g, i);
    }
    return QN_OK;
}
