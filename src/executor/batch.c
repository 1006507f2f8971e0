/* What an infer function gives: checked against the model, converted, divided. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "executor/batch.h"

/* ---- Words ----------------------------------------------------------------------------------- */

enum { WORDS = 256 };

static void describe(char out[WORDS], qn_dtype dtype, int32_t rank, const int64_t *dims)
{
    qn_type type = {.kind = QN_TYPE_TENSOR, .dtype = dtype, .rank = rank};
    for (int32_t d = 0; d < rank; d++)
        type.dims[d] = (qn_dim){dims[d], NULL};
    qn_type_format(out, WORDS, &type);
}

static qn_status fail_input(qn_context *ctx, const qn_value_info *info, const qn_tensor *given,
                            const char *why)
{
    char expected[WORDS], got[WORDS];
    describe(expected, info->dtype, info->rank, info->dims);
    describe(got, given->dtype, given->rank, given->dims);
    return qn_fail(ctx, QN_E_INVALID, "input '%s': expected %s, got %s%s", info->name, expected,
                   got, why);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static qn_status check_shape(qn_context *ctx, const qn_value_info *info, const qn_tensor *given)
{
    bool fits = info->rank < 0 || info->rank == given->rank;
    for (int32_t d = 0; fits && d < given->rank; d++) {
        const int64_t wanted = info->rank < 0 ? -1 : info->dims[d];
        fits = given->dims[d] >= (d == 0) && (d == 0 ? wanted < 1 || given->dims[0] % wanted == 0
                                                     : wanted < 0 || given->dims[d] == wanted);
    }
    if (fits)
        return QN_OK;
    const bool batch = info->rank == given->rank && given->rank > 0 && info->dims[0] > 1 &&
                       given->dims[0] % info->dims[0];
    return fail_input(ctx, info, given,
                      batch ? ": the batch must be a multiple of the model's" : "");
}

/* How often the batch of the model stands in what is given; 0: any number of samples is one. */
static int64_t ratio(const qn_value_info *info, const qn_tensor *given)
{
    if (info->rank < 1 || info->dims[0] < 0)
        return 0;
    return info->dims[0] ? given->dims[0] / info->dims[0] : 1;
}

/* The model's own batch decides; without one every sample is a piece, if all inputs have as
 * many. */
static int64_t count_pieces(const qn_value_info *infos, const qn_tensor *given, size_t n)
{
    int64_t most = 1, samples = 0;
    bool agreed = true;
    for (size_t i = 0; i < n; i++) {
        most = QN_MAX(most, ratio(&infos[i], &given[i]));
        if (given[i].rank < 1 || infos[i].rank < 1 || ratio(&infos[i], &given[i]) != 0)
            continue;
        agreed = agreed && (samples == 0 || samples == given[i].dims[0]);
        samples = given[i].dims[0];
    }
    return most > 1 || !agreed || samples == 0 ? most : samples;
}

static qn_status divide(qn_batch_inputs *b, qn_context *ctx, const qn_value_info *infos,
                        const qn_tensor *given, size_t n)
{
    b->pieces = count_pieces(infos, given, n);
    b->rows = n && given[0].rank > 0 ? given[0].dims[0] : 1;
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        const int64_t own = ratio(&infos[i], &given[i]);
        const bool open = own == 0 && given[i].rank > 0;
        b->split[i] = b->pieces > 1 && (own == b->pieces || open);
        if (b->pieces > 1 && ((open && given[i].dims[0] % b->pieces) || (own > 1 && !b->split[i])))
            return fail_input(ctx, &infos[i], &given[i],
                              ": the inputs disagree about the number of samples");
        if (b->split[i] && !found)
            b->rows = given[i].dims[0];
        found = found || b->split[i];
    }
    return QN_OK;
}

/* ---- Types ----------------------------------------------------------------------------------- */

static bool is_number(qn_dtype dtype)
{
    const qn_dtype_kind kind = qn_dtype_get(dtype)->kind;
    return kind != QN_KIND_NONE && kind != QN_KIND_COMPLEX && kind != QN_KIND_STRING;
}

enum { PIECE = 1024 };

/* Converts `count` elements from `at` on; returns how many came through before one that did not. */
typedef int64_t convert_fn(void *to, qn_dtype dtype, const qn_tensor *from, int64_t at,
                           int64_t count);

static int64_t convert_integers(void *to, qn_dtype dtype, const qn_tensor *from, int64_t at,
                                int64_t count)
{
    int64_t before[PIECE], after[PIECE], i = 0;
    const bool wraps = (from->dtype == QN_UINT64) != (dtype == QN_UINT64);
    qn_load_i64(before, from->dtype, from->data, at, count);
    qn_store_i64(to, dtype, at, before, count);
    qn_load_i64(after, dtype, to, at, count);
    while (i < count && before[i] == after[i] && !(wraps && before[i] < 0))
        i++;
    return i;
}

/* Integers of 64 bits above 2^53 are not numbers of float64. */
static bool is_exact(const qn_tensor *from, int64_t i, double value)
{
    int64_t bits;
    if (qn_dtype_size(from->dtype) < 8 || !qn_dtype_is_integer(from->dtype))
        return true;
    qn_load_i64(&bits, from->dtype, from->data, i, 1);
    return fabs(value) <= 0x1p53 && (double)bits == value;
}

static int64_t convert_reals(void *to, qn_dtype dtype, const qn_tensor *from, int64_t at,
                             int64_t count)
{
    double before[PIECE], after[PIECE];
    int64_t i = 0;
    qn_load_f64(before, from->dtype, from->data, at, count);
    qn_store_f64(to, dtype, at, before, count);
    qn_load_f64(after, dtype, to, at, count);
    while (i < count && (before[i] == after[i] || (isnan(before[i]) && isnan(after[i]))) &&
           is_exact(from, at + i, before[i]))
        i++;
    return i;
}

/* -1: all of them came through; else the place of the first that did not. */
static int64_t convert_all(void *to, qn_dtype dtype, const qn_tensor *from)
{
    const bool whole = qn_dtype_is_integer(from->dtype) && qn_dtype_is_integer(dtype);
    convert_fn *const convert = whole ? convert_integers : convert_reals;
    const int64_t count = qn_tensor_count(from);
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE), done = convert(to, dtype, from, at, n);
        if (done < n)
            return at + done;
    }
    return -1;
}

static void convert_pixels(float *to, const uint8_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)from[i];
}

static qn_status make_room(void **buffer, size_t *size, qn_context *ctx, size_t bytes)
{
    if (*size >= bytes && *buffer)
        return QN_OK;
    qn_free_aligned(&ctx->allocator, *buffer);
    *size = 0;
    *buffer = qn_alloc_aligned(&ctx->allocator, QN_MAX(bytes, 64));
    QN_TRY_ALLOC(ctx, *buffer);
    *size = bytes;
    return QN_OK;
}

/* Floats of the input's type are the nearest there are; infinities must have been such before. */
static bool round_all(float *to, const qn_tensor *from)
{
    const int64_t count = qn_tensor_count(from);
    for (int64_t at = 0; at < count; at += PIECE) {
        double before[PIECE];
        const int64_t n = QN_MIN(count - at, PIECE);
        qn_load_f64(before, from->dtype, from->data, at, n);
        for (int64_t i = 0; i < n; i++) {
            to[at + i] = (float)before[i];
            if (isinf(to[at + i]) && !isinf(before[i]))
                return false;
        }
    }
    return true;
}

static qn_status convert(bool *rounded, qn_tensor *out, void *to, qn_context *ctx,
                         const qn_value_info *info, const qn_tensor *given)
{
    int64_t lost = -1;
    out->dtype = info->dtype;
    out->data = to;
    if (given->dtype == QN_UINT8 && info->dtype == QN_FLOAT32)
        convert_pixels(to, given->data, qn_tensor_count(given));
    else
        lost = convert_all(to, info->dtype, given);
    *rounded = lost >= 0 && info->dtype == QN_FLOAT32 && round_all(to, given);
    if (lost < 0 || *rounded)
        return QN_OK;
    double value;
    char why[96];
    qn_load_f64(&value, given->dtype, given->data, lost, 1);
    snprintf(why, sizeof why, ", and %.17g at place %lld is no %s", value, (long long)lost,
             qn_dtype_name(info->dtype));
    return fail_input(ctx, info, given, why);
}

/* As the QuantizeLinear would that stood in front of the input: clamp(rint(x / scale) + zero). */
static void quantize_all(void *to, qn_dtype dtype, const qn_batch_scale *by, const qn_tensor *from)
{
    const int bits = qn_dtype_get(dtype)->bits;
    const bool is_signed = dtype != QN_UINT8;
    const double least = is_signed ? -(double)(1 << (bits - 1)) : 0;
    const double most = is_signed ? (double)(1 << (bits - 1)) - 1 : (double)(1 << bits) - 1;
    const int64_t count = qn_tensor_count(from);
    for (int64_t at = 0; at < count; at += PIECE) {
        double numbers[PIECE];
        const int64_t n = QN_MIN(count - at, PIECE);
        qn_load_f64(numbers, from->dtype, from->data, at, n);
        for (int64_t i = 0; i < n; i++) {
            const double q = (double)rintf((float)numbers[i] / by->scale) + (double)by->zero;
            numbers[i] = q >= least ? QN_MIN(q, most) : least;
        }
        qn_store_f64(to, dtype, at, numbers, n);
    }
}

static qn_status take_input(qn_batch_inputs *b, qn_context *ctx, const qn_value_info *info,
                            const qn_tensor *given, size_t i)
{
    size_t bytes;
    b->tensors[i] = *given;
    if (info->dtype == QN_UNDEFINED || given->dtype == info->dtype)
        return QN_OK;
    if (!is_number(given->dtype) || !is_number(info->dtype) ||
        !qn_tensor_bytes(&bytes, info->dtype, given->rank, given->dims))
        return fail_input(ctx, info, given, "");
    QN_TRY(make_room(&b->buffers[i], &b->sizes[i], ctx, bytes));
    if (b->scales && b->scales[i].scale > 0 && qn_dtype_is_float(given->dtype)) {
        quantize_all(b->buffers[i], info->dtype, &b->scales[i], given);
        b->tensors[i].dtype = info->dtype;
        b->tensors[i].data = b->buffers[i];
        return QN_OK;
    }
    bool rounded;
    QN_TRY(convert(&rounded, &b->tensors[i], b->buffers[i], ctx, info, given));
    if (rounded && !b->noted)
        qn_log(ctx, QN_LOG_NOTE,
               "input '%s' is float32: the numbers of %s that it is given are rounded", info->name,
               qn_dtype_name(given->dtype));
    b->noted = b->noted || rounded;
    return QN_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

qn_status qn_batch_take(qn_batch_inputs *b, qn_context *ctx, const qn_value_info *infos,
                        const qn_tensor *given, size_t n_inputs)
{
    for (size_t i = 0; i < n_inputs; i++) {
        QN_TRY(check_shape(ctx, &infos[i], &given[i]));
        QN_TRY(take_input(b, ctx, &infos[i], &given[i], i));
    }
    return divide(b, ctx, infos, given, n_inputs);
}

void qn_batch_piece(qn_tensor *out, const qn_batch_inputs *b, size_t n_inputs, int64_t piece)
{
    for (size_t i = 0; i < n_inputs; i++) {
        out[i] = b->tensors[i];
        if (!b->split[i])
            continue;
        out[i].dims[0] /= b->pieces;
        out[i].data = (char *)b->tensors[i].data +
                      piece * qn_tensor_count(&out[i]) * (int64_t)qn_dtype_size(out[i].dtype);
    }
}

qn_fingerprint qn_batch_print(const qn_tensor *inputs, size_t n_inputs)
{
    enum { LOOKED_AT = 4096 };
    qn_fingerprint print = {{0, 0}};
    for (size_t i = 0; i < n_inputs; i++) {
        const qn_tensor *t = &inputs[i];
        const int64_t rows = t->rank > 0 && t->dims[0] > 0 ? t->dims[0] : 1;
        const size_t bytes = (size_t)(qn_tensor_count(t) / rows) * qn_dtype_size(t->dtype);
        qn_fingerprint_int(&print, t->dtype);
        if (t->dtype != QN_STRING && t->dtype < QN_SEQUENCE)
            qn_fingerprint_bytes(&print, t->data, QN_MIN(bytes, LOOKED_AT));
    }
    return print;
}
