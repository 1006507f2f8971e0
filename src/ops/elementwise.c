/* Broadcasting, and reference kernels that work element by element. */
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

/* ---- Unary ----------------------------------------------------------------------------------- */

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

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Trailing dims along which every operand goes on, or repeats, as in the last one. */
static int64_t join_dims(int32_t *rank, const qn_tensor *out, int64_t strides[][QN_MAX_RANK],
                         int32_t n_in)
{
    int64_t length = out->rank ? out->dims[out->rank - 1] : 1;
    int32_t d = out->rank - 2;
    for (bool joined = true; d >= 0 && joined; d -= joined) {
        for (int32_t i = 0; i < n_in; i++)
            joined = joined && strides[i][d] == strides[i][d + 1] * out->dims[d + 1];
        length *= joined ? out->dims[d] : 1;
    }
    *rank = d + 1;
    return length;
}

void qn_eval_rows(const qn_eval *self, qn_row_fn *fn, const void *user)
{
    const qn_tensor *out = self->out[0];
    const int64_t total = qn_tensor_count(out);
    int64_t strides[QN_ROW_OPERANDS][QN_MAX_RANK];
    int32_t rank;
    for (int32_t i = 0; i < self->n_in; i++)
        qn_broadcast_strides(strides[i], self->in[i], out->rank, out->dims);
    qn_row row = {.count = join_dims(&rank, out, strides, self->n_in)};
    for (int64_t first = 0; first < total; first += row.count) {
        row.first = first;
        for (int32_t i = 0; i < self->n_in; i++) {
            row.at[i] = qn_offset_of(first / row.count, rank, out->dims, strides[i]);
            row.repeats[i] = out->rank && strides[i][out->rank - 1] == 0;
        }
        fn(self, &row, user);
    }
}

/* ---- Binary ---------------------------------------------------------------------------------- */

typedef struct functions {
    qn_binary_f64 *f;
    qn_binary_i64 *g;
} functions;

/* Elements [first, first + count) of operand i of the row; where it repeats the first is all of
 * them. */
static void load_f64(double *x, const qn_eval *self, const qn_row *row, int32_t i, int64_t first,
                     int64_t count)
{
    const qn_tensor *in = self->in[i];
    qn_load_f64(x, in->dtype, in->data, row->at[i] + (row->repeats[i] ? 0 : first),
                row->repeats[i] ? 1 : count);
}

static void load_i64(int64_t *x, const qn_eval *self, const qn_row *row, int32_t i, int64_t first,
                     int64_t count)
{
    const qn_tensor *in = self->in[i];
    qn_load_i64(x, in->dtype, in->data, row->at[i] + (row->repeats[i] ? 0 : first),
                row->repeats[i] ? 1 : count);
}

static void row_f64(const qn_eval *self, const qn_row *row, const void *user)
{
    qn_binary_f64 *f = ((const functions *)user)->f;
    const int64_t a_step = !row->repeats[0], b_step = !row->repeats[1];
    double a[BLOCK], b[BLOCK], y[BLOCK];
    for (int64_t first = 0; first < row->count; first += BLOCK) {
        const int64_t count = QN_MIN(BLOCK, row->count - first);
        load_f64(a, self, row, 0, first, count);
        load_f64(b, self, row, 1, first, count);
        for (int64_t i = 0; i < count; i++)
            y[i] = f(a[i * a_step], b[i * b_step], self->attrs);
        qn_store_f64(self->out[0]->data, self->out[0]->dtype, row->first + first, y, count);
    }
}

static void row_i64(const qn_eval *self, const qn_row *row, const void *user)
{
    qn_binary_i64 *g = ((const functions *)user)->g;
    const bool is_unsigned = qn_dtype_get(self->in[0]->dtype)->kind != QN_KIND_INT;
    const int64_t a_step = !row->repeats[0], b_step = !row->repeats[1];
    int64_t a[BLOCK], b[BLOCK], y[BLOCK];
    for (int64_t first = 0; first < row->count; first += BLOCK) {
        const int64_t count = QN_MIN(BLOCK, row->count - first);
        load_i64(a, self, row, 0, first, count);
        load_i64(b, self, row, 1, first, count);
        for (int64_t i = 0; i < count; i++)
            y[i] = g(a[i * a_step], b[i * b_step], is_unsigned, self->attrs);
        qn_store_i64(self->out[0]->data, self->out[0]->dtype, row->first + first, y, count);
    }
}

qn_status qn_eval_binary(qn_eval *self, qn_binary_f64 *f, qn_binary_i64 *g)
{
    const functions both = {f, g};
    qn_eval_rows(self, qn_dtype_is_float(self->in[0]->dtype) || !g ? row_f64 : row_i64, &both);
    return QN_OK;
}
