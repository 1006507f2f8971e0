/* QLinearAdd, QLinearMul and QPRelu with any broadcast: dims that both operands go through alike
 * are one. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/elementwise.h"
#include "ops/quantize.h"

typedef enum operation { SUM, PRODUCT, SLOPES } operation;

typedef struct state {
    const qn_q_kernels *kernels;
    operation how;
    /* The plan of a sum or product. */
    qn_q_pair pair;
    /* The slopes of QPRelu, whose second operand has them. */
    qn_q_slopes slopes;
    /* Bytes of an element. */
    int64_t y_size, a_size, b_size;
    /* The number of dims outside the rows, joined. */
    int32_t rank;
    /* The last two are rows and their width. */
    int64_t dims[QN_MAX_RANK];
    int64_t a[QN_MAX_RANK], b[QN_MAX_RANK];
    /* Items: `chunk` rows or elements of a row each. */
    int64_t outer, chunk, chunks;
} state;

typedef struct work {
    const state *s;
    uint8_t *y;
    const uint8_t *a, *b;
} work;

/* ---- Running --------------------------------------------------------------------------------- */

static void run_rows(const state *s, uint8_t *y, const uint8_t *a, const uint8_t *b,
                     const qn_q_rows *rows)
{
    switch (s->how) {
    case SUM: s->kernels->add(y, a, b, &s->pair, rows); break;
    case PRODUCT: s->kernels->multiply(y, a, b, &s->pair, rows); break;
    case SLOPES: s->kernels->prelu(y, a, (const float *)(const void *)b, &s->slopes, rows); break;
    }
}

static void binary_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    const int32_t end = s->rank - 1;
    const int64_t rows = s->dims[end - 1], width = s->dims[end];
    for (int64_t i = first; i < last; i++) {
        int64_t rest = i / s->chunks, a = 0, b = 0;
        const int64_t start = i % s->chunks * s->chunk;
        int64_t y = rest * rows * width;
        for (int32_t d = end - 2; d >= 0; d--) {
            a += rest % s->dims[d] * s->a[d];
            b += rest % s->dims[d] * s->b[d];
            rest /= s->dims[d];
        }
        qn_q_rows r = {rows, width, s->a[end - 1], s->b[end - 1], s->a[end] == 0, s->b[end] == 0};
        const int32_t cut = rows > 1 ? end - 1 : end; /* which dim the chunks cut */
        *(rows > 1 ? &r.rows : &r.width) = QN_MIN(s->chunk, s->dims[cut] - start);
        a += start * s->a[cut];
        b += start * s->b[cut];
        y += start * (rows > 1 ? width : 1);
        run_rows(s, w->y + y * s->y_size, w->a + a * s->a_size, w->b + b * s->b_size, &r);
    }
}

static qn_status binary_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->out[0]->data, io->in[0]->data, io->in[1]->data};
    (void)bound;
    const int64_t each = s->dims[s->rank - 2] * s->dims[s->rank - 1] / s->chunks + 1;
    qn_parallel(io->threads, s->outer * s->chunks, QN_Q_CHUNK * QN_Q_ALONE / each + 1, binary_range,
                &w);
    return QN_OK;
}

static const qn_kernel binary_kernels[] = {[SUM] = {.name = "int add", .run = binary_run},
                                           [PRODUCT] = {.name = "int mul", .run = binary_run},
                                           [SLOPES] = {.name = "int prelu", .run = binary_run}};

/* ---- Claiming -------------------------------------------------------------------------------- */

/* Dims of x as part of `rank` dims, in the order of memory: [N, spatial..., C] where last. */
static void in_order(int64_t *dims, const qn_tensor *x, int32_t rank, bool last)
{
    int64_t padded[QN_MAX_RANK];
    for (int32_t d = 0; d < rank; d++)
        padded[d] = d < rank - x->rank ? 1 : x->dims[d - (rank - x->rank)];
    for (int32_t d = 0; d < rank; d++)
        dims[d] = padded[!last || d == 0 ? d : d == rank - 1 ? 1 : d + 1];
}

static void strides_of(int64_t *strides, const int64_t *dims, const int64_t *out, int32_t rank)
{
    int64_t next = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = dims[d] == 1 && out[d] != 1 ? 0 : next;
        next *= dims[d];
    }
}

/* Joins neighbours that both operands go through as one, drops dims of 1, and pads to two dims. */
static void join(state *s, const int64_t *dims, const int64_t *a, const int64_t *b, int32_t rank)
{
    int64_t joined[3][QN_MAX_RANK];
    int32_t n = 0;
    for (int32_t d = 0; d < rank; d++) {
        if (dims[d] == 1)
            continue;
        if (n > 0 && joined[1][n - 1] == a[d] * dims[d] && joined[2][n - 1] == b[d] * dims[d]) {
            joined[0][n - 1] *= dims[d];
            joined[1][n - 1] = a[d];
            joined[2][n - 1] = b[d];
            continue;
        }
        joined[0][n] = dims[d];
        joined[1][n] = a[d];
        joined[2][n++] = b[d];
    }
    const int32_t missing = n < 2 ? 2 - n : 0;
    s->rank = n + missing;
    for (int32_t d = 0; d < s->rank; d++) {
        const bool real = d >= missing;
        s->dims[d] = real ? joined[0][d - missing] : 1;
        s->a[d] = real ? joined[1][d - missing] : 1;
        s->b[d] = real ? joined[2][d - missing] : 1;
    }
}

static void cut(state *s)
{
    const int64_t rows = s->dims[s->rank - 2], width = s->dims[s->rank - 1];
    s->outer = 1;
    for (int32_t d = 0; d < s->rank - 2; d++)
        s->outer *= s->dims[d];
    s->chunk = rows > 1 ? QN_MAX(QN_Q_CHUNK / width, 1) : QN_Q_CHUNK;
    s->chunks = ((rows > 1 ? rows : width) + s->chunk - 1) / s->chunk;
}

/* Sets the pair from types and parameters of a, b and the result. */
static void float_pair(state *s, const qn_dtype types[3], const qn_qparams p[3])
{
    const float ratios[2] = {(p[0].scale / p[2].scale), (p[1].scale / p[2].scale)};
    const int64_t zeros[3] = {p[0].zero, p[1].zero, p[2].zero};
    if (s->how == SUM)
        s->pair = (qn_q_pair){.a = qn_q_side_of(types[0], 0),
                              .b = qn_q_side_of(types[1], 0),
                              .a_scale = ratios[0],
                              .b_scale = ratios[1],
                              .offset = qn_sum_offset(ratios, zeros),
                              .round = qn_q_round_of(types[2], 0)};
    else
        s->pair = (qn_q_pair){.a = qn_q_side_of(types[0], zeros[0]),
                              .b = qn_q_side_of(types[1], zeros[1]),
                              .a_scale = qn_multiplier(p[0].scale, p[1].scale, p[2].scale),
                              .round = qn_q_round_of(types[2], zeros[2])};
}

/* Floats hold the sum of two bytes times 15 bits, where no zero points come in. */
static void set_fixed_point(state *s, const qn_dtype types[3], const qn_qparams p[3])
{
    float ratios[2] = {(p[0].scale / p[2].scale), (p[1].scale / p[2].scale)};
    const double zeros[3] = {(double)p[0].zero, (double)p[1].zero, (double)p[2].zero};
    const float product = qn_multiplier(p[0].scale, p[1].scale, p[2].scale);
    const bool plain = qn_q_fixed_point_ratios(ratios, zeros) && qn_dtype_size(types[0]) == 1;
    s->pair = (qn_q_pair){.a = qn_q_side_of(types[0], p[0].zero),
                          .b = qn_q_side_of(types[1], p[1].zero),
                          .a_scale = s->how == SUM
                                         ? ratios[0]
                                         : (float)qn_normal_value(qn_normal_of((double)product)),
                          .b_scale = ratios[1],
                          .round = qn_q_round_of(types[2], p[2].zero),
                          .exact = s->how != SUM || !plain};
}

/* Constant scales and zero points; types of one width. */
static bool read_pair(state *s, const qn_node *node)
{
    qn_qparams a, b, c;
    const qn_dtype types[3] = {node->in[0]->type.dtype, node->in[3]->type.dtype,
                               node->out[0]->type.dtype};
    for (int i = 0; i < 3; i++) {
        if (!qn_q_is_integer(types[i]) || qn_dtype_size(types[i]) != qn_dtype_size(types[0]))
            return false;
    }
    if (!qn_q_param_of(&a, node, 1, 2) || !qn_q_param_of(&b, node, 4, 5) ||
        !qn_q_param_of(&c, node, 6, 7))
        return false;
    const qn_qparams params[3] = {a, b, c};
    if (qn_qparams_is_fixed_point(&c))
        set_fixed_point(s, types, params);
    else
        float_pair(s, types, params);
    s->y_size = s->a_size = s->b_size = (int64_t)qn_dtype_size(types[0]);
    return true;
}

/* Any widths: in fixed point too x and y become float and are rounded as they are without. */
static bool read_slopes(state *s, const qn_node *node)
{
    const qn_dtype from = node->in[0]->type.dtype, to = node->out[0]->type.dtype;
    qn_qparams x, y;
    if (!qn_q_is_integer(from) || !qn_q_is_integer(to) || !qn_q_param_of(&x, node, 1, 2) ||
        !qn_q_param_of(&y, node, 4, 5))
        return false;
    s->slopes = (qn_q_slopes){.cast = {.from = qn_q_side_of(from, x.zero),
                                       .scale = x.scale,
                                       .round = qn_q_round_of(to, y.zero),
                                       .is_int16 = qn_dtype_size(to) == 2},
                              .y_scale = y.scale};
    s->y_size = (int64_t)qn_dtype_size(to);
    s->a_size = (int64_t)qn_dtype_size(from);
    s->b_size = sizeof(float);
    return true;
}

/* All its numbers lie along one dim: they have the same order in every layout. */
static bool is_line(const qn_tensor *x)
{
    int32_t dims = 0;
    for (int32_t d = 0; d < x->rank; d++)
        dims += x->dims[d] != 1;
    return dims < 2;
}

/* Operand i has the layout of the result; else it stays as it is, as a line of fewer dims does. */
static bool transposes(const state *s, const qn_tensor *const *shapes, int i)
{
    return qn_tensor_count(shapes[i]) != 1 && !(i == 1 && s->how == SLOPES) &&
           !(is_line(shapes[i]) && shapes[i]->rank < shapes[2]->rank);
}

/* Channels last where an operand of the full shape is and the other has an order in that. */
static qn_layout layout_for(const state *s, const qn_claim *claim, const qn_tensor *const *shapes)
{
    bool ordered = s->how != SLOPES || is_line(shapes[1]);
    for (int i = 0; i < 2; i++)
        ordered = ordered && (shapes[i]->rank == shapes[2]->rank || !transposes(s, shapes, i));
    for (int i = 0; i < 2 && ordered; i++) {
        const qn_value *value = claim->node->in[3 * i];
        if (shapes[2]->rank > 2 && qn_tensor_count(shapes[i]) == qn_tensor_count(shapes[2]) &&
            qn_build_layout(claim->builder, value).kind == QN_LAYOUT_CHANNELS_LAST)
            return QN_LAST;
    }
    return QN_ROWS;
}

/* How loops go over both operands. */
static void plan_loops(state *s, const qn_tensor *const *shapes, bool last)
{
    const int32_t rank = shapes[2]->rank;
    int64_t dims[3][QN_MAX_RANK], strides[2][QN_MAX_RANK];
    for (int i = 0; i < 3; i++)
        in_order(dims[i], shapes[i], rank, last);
    for (int i = 0; i < 2; i++)
        strides_of(strides[i], dims[i], dims[2], rank);
    join(s, dims[2], strides[0], strides[1], rank);
    cut(s);
}

/* The operand in whose memory the result may lie. */
static int in_place(const state *s, const qn_tensor *const *shapes)
{
    const int64_t sizes[2] = {s->a_size, s->b_size};
    for (int i = 0; i < 2; i++) {
        if (sizes[i] == s->y_size && qn_tensor_count(shapes[i]) == qn_tensor_count(shapes[2]))
            return i;
    }
    return -1;
}

static qn_status claim_binary(bool *taken, qn_claim *claim, operation how)
{
    const qn_node *node = claim->node;
    qn_value *value = node->out[0];
    qn_tensor a, b, y;
    if (!qn_build_shape(&a, claim->builder, node->in[0]) ||
        !qn_build_shape(&b, claim->builder, node->in[3]) ||
        !qn_build_shape(&y, claim->builder, value) || qn_tensor_count(&y) == 0)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->how = how;
    if (!(how == SLOPES ? read_slopes : read_pair)(s, node))
        return QN_OK;
    const qn_tensor *const shapes[3] = {&a, &b, &y};
    const qn_layout layout = layout_for(s, claim, shapes);
    plan_loops(s, shapes, layout.kind == QN_LAYOUT_CHANNELS_LAST);
    qn_q_take_clips(claim, &value, how == SLOPES ? &s->slopes.cast.round : &s->pair.round);
    for (int i = 0; i < 2; i++)
        qn_claim_in(claim, node->in[3 * i], transposes(s, shapes, i) ? layout : QN_ROWS);
    qn_claim_out(claim, value, layout);
    claim->in_place = in_place(s, shapes);
    claim->state = s;
    claim->kernel = &binary_kernels[how];
    *taken = true;
    return QN_OK;
}

qn_status qn_claim_q_add(bool *taken, qn_claim *claim)
{
    return claim_binary(taken, claim, SUM);
}

qn_status qn_claim_q_multiply(bool *taken, qn_claim *claim)
{
    return claim_binary(taken, claim, PRODUCT);
}

qn_status qn_claim_q_prelu(bool *taken, qn_claim *claim)
{
    return claim_binary(taken, claim, SLOPES);
}
