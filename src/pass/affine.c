/* Affine maps per channel, read from nodes and folded into the weights of neighbours. */
#include "pass/affine.h"

#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/window.h"
#include "pass/rewrite.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static qn_status affine_room(qn_affine *out, qn_context *ctx, qn_arena *arena, int64_t channels)
{
    out->channels = channels;
    out->scale = qn_arena_array(arena, (size_t)channels, sizeof *out->scale);
    out->shift = qn_arena_array(arena, (size_t)channels, sizeof *out->shift);
    return out->scale && out->shift ? QN_OK : qn_fail_nomem(ctx);
}

qn_status qn_affine_of_batchnorm(bool *found, qn_affine *out, qn_arena *arena, const qn_node *node)
{
    const qn_batchnorm_attrs *a = node->attrs;
    *found = false;
    for (int32_t i = 1; i < 5; i++) {
        if (!node->in[i]->data || a->training_mode)
            return QN_OK;
    }
    const int64_t channels = qn_tensor_count(node->in[1]->data);
    QN_TRY(affine_room(out, node->graph->ctx, arena, channels));
    for (int64_t c = 0; c < channels; c++) {
        const double variance = qn_tensor_f64(node->in[4]->data, c);
        out->scale[c] = qn_tensor_f64(node->in[1]->data, c) / sqrt(variance + (double)a->epsilon);
        out->shift[c] = qn_tensor_f64(node->in[2]->data, c) -
                        qn_tensor_f64(node->in[3]->data, c) * out->scale[c];
    }
    out->x = node->in[0];
    *found = true;
    return QN_OK;
}

/* A constant that broadcasts along the channels (axis 1) of a value of that rank: one number, or
 * one per channel, [C, 1...], [1, C, 1...]. */
static bool is_per_channel(const qn_tensor *constant, int32_t rank, int64_t channels)
{
    const int64_t count = qn_tensor_count(constant);
    if (constant->dtype != QN_FLOAT32 || constant->rank > rank)
        return false;
    if (count == 1)
        return true;
    const int32_t axis = 1 - (rank - constant->rank);
    return count == channels && axis >= 0 && axis < constant->rank &&
           constant->dims[axis] == channels;
}

static int64_t channels_of(const qn_value *value)
{
    const qn_type *type = &value->type;
    return type->kind == QN_TYPE_TENSOR && type->dtype == QN_FLOAT32 && type->rank >= 2
               ? type->dims[1].value
               : -1;
}

static void read_arithmetic(const qn_affine *out, const qn_node *node, const qn_tensor *constant)
{
    const bool single = qn_tensor_count(constant) == 1;
    const bool first = node->in[0] != out->x;
    for (int64_t c = 0; c < out->channels; c++) {
        const double k = qn_tensor_f64(constant, single ? 0 : c);
        out->scale[c] = node->op == &qn_op_Mul            ? k
                        : node->op == &qn_op_Div          ? 1 / k
                        : node->op == &qn_op_Sub && first ? -1
                                                          : 1;
        out->shift[c] = node->op == &qn_op_Add ? k : node->op == &qn_op_Sub ? (first ? k : -k) : 0;
    }
}

qn_status qn_affine_of_arithmetic(bool *found, qn_affine *out, qn_arena *arena, const qn_node *node)
{
    *found = false;
    for (int side = 0; side < 2; side++) {
        const qn_value *constant = node->in[side];
        qn_value *x = node->in[1 - side];
        if (!constant->data || x->data || (side == 0 && node->op == &qn_op_Div))
            continue;
        const int64_t channels = channels_of(x);
        if (channels < 1 || node->out[0]->type.rank != x->type.rank ||
            !is_per_channel(constant->data, x->type.rank, channels))
            continue;
        QN_TRY(affine_room(out, node->graph->ctx, arena, channels));
        out->x = x;
        read_arithmetic(out, node, constant->data);
        *found = true;
        return QN_OK;
    }
    return QN_OK;
}

/* ---- Weights that are rewritten -------------------------------------------------------------- */

/* How the weights of an operator lie: element i belongs to output channel and input channel. */
typedef struct weights {
    qn_node *node;
    const qn_tensor *w;
    /* The channels of the node's output and input. */
    int64_t filters, channels;
    int64_t group;
} weights;

/* Conv [K, C/g, k..], ConvTranspose [C, K/g, k..], Gemm and MatMul [C, K] or [K, C]. */
static bool weights_of(weights *out, qn_node *node)
{
    const bool conv = node->op == &qn_op_Conv, transposed = node->op == &qn_op_ConvTranspose;
    const bool gemm = node->op == &qn_op_Gemm;
    if ((!conv && !transposed && !gemm) || node->n_in < 2 || !node->in[1]->data ||
        node->in[1]->data->dtype != QN_FLOAT32 || node->in[1]->data->rank < 2)
        return false;
    if (node->n_in > 2 && node->in[2] && !node->in[2]->data)
        return false;
    const qn_tensor *w = node->in[1]->data;
    *out = (weights){.node = node, .w = w, .group = 1};
    if (gemm) {
        const qn_gemm_attrs *a = node->attrs;
        out->filters = w->dims[a->transB ? 0 : 1];
        out->channels = w->dims[a->transB ? 1 : 0];
        return !a->transA && a->alpha == 1 && a->beta == 1;
    }
    out->group = ((const qn_window_attrs *)node->attrs)->group;
    out->filters = conv ? w->dims[0] : w->dims[1] * out->group;
    out->channels = conv ? w->dims[1] * out->group : w->dims[0];
    return out->group > 0 && w->dims[0] % out->group == 0 && w->dims[0] > 0;
}

/* The first axis of the weights counts one side's channels, the second the other's, within a
 * group. */
static bool outer_is_filter(const weights *s)
{
    const bool rows =
        s->node->op == &qn_op_Gemm && ((const qn_gemm_attrs *)s->node->attrs)->transB != 0;
    return s->node->op == &qn_op_Conv || rows;
}

/* Channel of the other side at which the second axis starts for place `outer` of the first. */
static int64_t inner_base(const weights *s, int64_t outer)
{
    return outer / (s->w->dims[0] / s->group) * s->w->dims[1];
}

static int64_t kernel_size(const weights *s)
{
    int64_t size = 1;
    for (int32_t d = 2; d < s->w->rank; d++)
        size *= s->w->dims[d];
    return size;
}

/* Weights stay where a mapped file has them, at any address. */
static double weight_at(const weights *s, int64_t i)
{
    float weight;
    memcpy(&weight, (const char *)s->w->data + (size_t)i * sizeof weight, sizeof weight);
    return (double)weight;
}

/* out = w * factor of the channel, which is the filter or the input channel as `by_filter` says. */
static void scale_weights(float *out, const weights *s, const double *factor, bool by_filter)
{
    const int64_t kernel = kernel_size(s), inner = s->w->dims[1];
    const bool by_outer = by_filter == outer_is_filter(s);
    for (int64_t o = 0; o < s->w->dims[0]; o++) {
        const int64_t base = inner_base(s, o);
        for (int64_t i = 0; i < inner * kernel; i++) {
            const double f = factor[by_outer ? o : base + (kernel == 1 ? i : i / kernel)];
            out[o * inner * kernel + i] = (float)(weight_at(s, o * inner * kernel + i) * f);
        }
    }
}

/* sums[filter] += w * shift[channel] over all weights of the filter. */
static void sum_shifts(double *sums, const weights *s, const double *shift)
{
    const int64_t kernel = kernel_size(s), inner = s->w->dims[1];
    const bool outer = outer_is_filter(s);
    for (int64_t o = 0; o < s->w->dims[0]; o++) {
        for (int64_t i = 0; i < inner; i++) {
            const int64_t other = inner_base(s, o) + i;
            for (int64_t k = 0; k < kernel; k++)
                sums[outer ? o : other] +=
                    weight_at(s, (o * inner + i) * kernel + k) * shift[outer ? other : o];
        }
    }
}

static double bias_at(const weights *s, int64_t filter)
{
    const qn_value *bias = s->node->n_in > 2 ? s->node->in[2] : NULL;
    if (!bias)
        return 0;
    return qn_tensor_f64(bias->data, qn_tensor_count(bias->data) == 1 ? 0 : filter);
}

/* Gemm's C may be a full matrix: only a row or a number is a bias. */
static bool bias_fits(const weights *s)
{
    const qn_value *bias = s->node->n_in > 2 ? s->node->in[2] : NULL;
    if (!bias)
        return true;
    const int64_t count = qn_tensor_count(bias->data);
    const bool row = bias->data->rank >= 1 && bias->data->dims[bias->data->rank - 1] == s->filters;
    return bias->data->dtype == QN_FLOAT32 && (count == 1 || (count == s->filters && row));
}

/* New weights and bias, not yet filled. */
typedef struct fresh {
    qn_tensor *w, *bias;
} fresh;

static qn_status fresh_make(fresh *out, const weights *s)
{
    qn_model *model = s->node->graph->model;
    const qn_type w = qn_type_of(s->w), bias = qn_type_tensor(QN_FLOAT32, 1, &s->filters);
    QN_TRY(qn_model_tensor(&out->w, model, &w));
    return qn_model_tensor(&out->bias, model, &bias);
}

static qn_status put_constant(qn_node *node, int32_t slot, const qn_tensor *tensor,
                              const char *name)
{
    qn_value *value, *old = slot < node->n_in ? node->in[slot] : NULL;
    QN_TRY(qn_value_constant(&value, node->graph, old ? old->name : name, tensor));
    if (slot >= node->n_in)
        QN_TRY(qn_node_resize_inputs(node, slot + 1));
    QN_TRY(qn_node_set_input(node, slot, value));
    if (old && old->n_users == 0 && !old->is_output)
        qn_model_release(node->graph->model, old->data);
    return QN_OK;
}

static qn_status fresh_put(const fresh *f, const weights *s)
{
    QN_TRY(put_constant(s->node, 1, f->w, "weight"));
    return put_constant(s->node, 2, f->bias, "bias");
}

/* ---- Forward: scale and shift behind the node ------------------------------------------------ */

qn_status qn_affine_fold_forward(bool *done, qn_node *node, const qn_affine *affine)
{
    weights s;
    fresh f;
    qn_node *before = affine->x->producer;
    *done = false;
    if (!before || !qn_value_only_user(affine->x) || !weights_of(&s, before) ||
        s.filters != affine->channels || !bias_fits(&s))
        return QN_OK;
    QN_TRY(fresh_make(&f, &s));
    scale_weights(f.w->data, &s, affine->scale, true);
    for (int64_t k = 0; k < s.filters; k++)
        ((float *)f.bias->data)[k] = (float)(bias_at(&s, k) * affine->scale[k] + affine->shift[k]);
    QN_TRY(fresh_put(&f, &s));
    /* The node's value becomes the convolution's. */
    qn_value *value = node->out[0];
    node->out[0] = NULL;
    qn_node_set_output(before, 0, value);
    qn_node_remove(node);
    *done = true;
    return QN_OK;
}

/* ---- Backward: scale and shift in front of the node ------------------------------------------ */

static bool all_zero(const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (x[i] != 0)
            return false;
    }
    return true;
}

/* A border of zeros is not shifted, so that a shift cannot go through a padded convolution. */
static bool is_padded(const qn_node *node)
{
    const qn_window_attrs *a = node->attrs;
    bool padded = a->auto_pad == QN_AUTO_PAD_SAME_UPPER || a->auto_pad == QN_AUTO_PAD_SAME_LOWER;
    for (size_t i = 0; a->pads.at && i < a->pads.count; i++)
        padded = padded || a->pads.at[i] != 0;
    return padded;
}

qn_status qn_affine_fold_backward(bool *done, qn_node *node, const qn_affine *affine)
{
    weights s;
    fresh f;
    qn_node *behind = qn_value_only_user(node->out[0]);
    *done = false;
    if (!behind || behind->in[0] != node->out[0] || behind->op == &qn_op_ConvTranspose ||
        !weights_of(&s, behind) || s.channels != affine->channels || !bias_fits(&s))
        return QN_OK;
    if (behind->op == &qn_op_Conv && is_padded(behind) &&
        !all_zero(affine->shift, affine->channels))
        return QN_OK;
    QN_TRY(fresh_make(&f, &s));
    float *bias = f.bias->data;
    double *sums = qn_alloc_zero(node->graph->ctx, (size_t)s.filters, sizeof *sums);
    QN_TRY_ALLOC(node->graph->ctx, sums);
    scale_weights(f.w->data, &s, affine->scale, false);
    sum_shifts(sums, &s, affine->shift);
    for (int64_t k = 0; k < s.filters; k++)
        bias[k] = (float)(bias_at(&s, k) + sums[k]);
    qn_free(node->graph->ctx, sums);
    QN_TRY(fresh_put(&f, &s));
    QN_TRY(qn_node_set_input(behind, 0, affine->x));
    qn_node_remove(node);
    *done = true;
    return QN_OK;
}

/* ---- All of a graph -------------------------------------------------------------------------- */

static qn_status fold_node(qn_pass_context *self, qn_node *node, qn_affine_reader *read,
                           qn_arena *arena)
{
    qn_affine affine;
    bool found, done = false;
    QN_TRY(read(&found, &affine, arena, node));
    if (found)
        QN_TRY(qn_affine_fold_forward(&done, node, &affine));
    if (found && !done)
        QN_TRY(qn_affine_fold_backward(&done, node, &affine));
    self->changes += done;
    return QN_OK;
}

static bool is_one_of(const qn_node *node, const qn_op *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (node->op == ops[i])
            return node->out[0] != NULL && channels_of(node->out[0]) > 0;
    }
    return false;
}

qn_status qn_affine_fold_all(qn_pass_context *self, const qn_op *const *ops, size_t count,
                             qn_affine_reader *read)
{
    qn_status status = QN_OK;
    qn_arena arena;
    qn_arena_init(&arena, &self->ctx->allocator);
    for (qn_node *node = self->graph->first, *next; node && status == QN_OK; node = next) {
        next = node->next;
        if (is_one_of(node, ops, count))
            status = fold_node(self, node, read, &arena);
        qn_arena_reset(&arena);
    }
    qn_arena_free(&arena);
    return status;
}
