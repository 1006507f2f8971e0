/* Element-wise nodes behind another one's result: which are taken, and how they are run. */
#include "backend/cpu/float/elementwise/tail.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/float/elementwise/stage.h"
#include "backend/cpu/float/kernels.h"
#include "ops/nn_attrs.h"

qn_layout qn_layout_native(void)
{
    return (qn_layout){QN_LAYOUT_BLOCKED, (uint8_t)qn_kernels_get()->width};
}

/* From the order [N, C, spatial...] to [N, spatial..., C]. */
static void channel_to_end(int64_t *list, int32_t rank)
{
    const int64_t channel = list[1];
    memmove(list + 1, list + 2, (size_t)(rank - 2) * sizeof *list);
    list[rank - 1] = channel;
}

bool qn_tail_begin(qn_tail *t, const qn_claim *claim, qn_value *x, qn_layout layout)
{
    *t = (qn_tail){.layout = layout, .x = x, .out = x};
    t->chain.kernels = qn_kernels_get();
    if (!qn_build_shape(&t->shape, claim->builder, x) || t->shape.dtype != QN_FLOAT32 ||
        (layout.kind == QN_LAYOUT_BLOCKED && layout.block != t->chain.kernels->width))
        return false;
    if (t->shape.rank)
        memcpy(t->dims, t->shape.dims, (size_t)t->shape.rank * sizeof *t->dims);
    if (layout.kind == QN_LAYOUT_CHANNELS_LAST)
        channel_to_end(t->dims, t->shape.rank);
    return true;
}

/* ---- Geometry -------------------------------------------------------------------------------- */

/* x in a blocked layout: [N, blocks, area * block]. */
static void blocked_geometry(qn_tail *t)
{
    qn_chain *c = &t->chain;
    const int64_t block = t->layout.block;
    c->samples = t->shape.dims[0];
    c->planes = (t->shape.dims[1] + block - 1) / block;
    c->length = block;
    for (int32_t d = 2; d < t->shape.rank; d++)
        c->length *= t->shape.dims[d];
    c->lanes = block;
    c->tail = t->shape.dims[1] - (c->planes - 1) * block;
    for (int32_t i = 0; i < c->n_operands; i++) {
        const qn_tail_operand *o = &t->operands[i];
        qn_operand *to = &c->operands[i];
        if (to->spread == QN_SPREAD_ONE)
            continue;
        to->plane_stride = to->spread == QN_SPREAD_FULL ? c->length : block;
        if (to->spread == QN_SPREAD_LANES && o->value && o->value->type.dims[0].value > 1)
            to->sample_stride = c->planes * block;
    }
}

/* A run of dims of x through which every operand goes evenly. */
typedef struct group {
    int64_t size;
    int64_t steps[QN_MOST_OPERANDS];
} group;

static bool can_join(const group *outer, const group *inner, int32_t n_operands)
{
    for (int32_t i = 0; i < n_operands; i++) {
        if (outer->steps[i] != inner->steps[i] * inner->size)
            return false;
    }
    return true;
}

/* Groups of dims, innermost first; returns how many, or 4 where there are more than 3. */
static int group_dims(group *groups, const qn_tail *t)
{
    int count = 0;
    for (int32_t d = t->shape.rank - 1; d >= 0; d--) {
        group g = {.size = t->dims[d]};
        if (g.size == 1)
            continue;
        for (int32_t i = 0; i < t->chain.n_operands; i++)
            g.steps[i] = t->operands[i].steps[d];
        if (count > 0 && can_join(&g, &groups[count - 1], t->chain.n_operands))
            groups[count - 1].size *= g.size;
        else if (count == 3)
            return 4;
        else
            groups[count++] = g;
    }
    for (int i = count; i < 3; i++)
        groups[i] = (group){.size = 1};
    return count;
}

static bool rows_geometry(qn_tail *t)
{
    group groups[3];
    qn_chain *c = &t->chain;
    if (group_dims(groups, t) > 3)
        return false;
    c->length = groups[0].size;
    c->planes = groups[1].size;
    c->samples = groups[2].size;
    c->lanes = c->tail = 1;
    c->x_stride = c->y_stride = c->planes * c->length;
    for (int32_t i = 0; i < c->n_operands; i++) {
        const int64_t step = groups[0].size > 1 ? groups[0].steps[i] : 0;
        c->operands[i] = (qn_operand){step ? QN_SPREAD_FULL : QN_SPREAD_ONE, groups[2].steps[i],
                                      groups[1].steps[i]};
        if (step > 1)
            return false;
    }
    return true;
}

/* ---- Operands -------------------------------------------------------------------------------- */

static bool same_dims(const qn_tensor *a, const qn_tensor *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* Broadcasts to x without making it larger. */
static bool rows_steps(int64_t *steps, const qn_tensor *x, const qn_tensor *other)
{
    int64_t step = 1;
    if (other->rank > x->rank)
        return false;
    for (int32_t d = x->rank - 1, o = other->rank - 1; d >= 0; d--, o--) {
        const int64_t dim = o >= 0 ? other->dims[o] : 1;
        if (dim != 1 && dim != x->dims[d])
            return false;
        steps[d] = dim == 1 ? 0 : step;
        step *= dim;
    }
    return true;
}

/* [1 or N, C, 1, ...]: one number per channel. */
static bool is_per_channel(const qn_tensor *x, const qn_tensor *other)
{
    int64_t steps[QN_MAX_RANK];
    if (!rows_steps(steps, x, other) || other->rank < x->rank - 1)
        return false;
    for (int32_t d = 2; d < x->rank; d++) {
        if (other->dims[other->rank - x->rank + d] != 1)
            return false;
    }
    return other->dims[other->rank - x->rank + 1] == x->dims[1];
}

/* One number per channel with the layout's padding; `data` may lie at any address. */
static float *pack_channels(qn_builder *builder, const qn_tail *t, const void *data)
{
    const int64_t block = t->layout.block;
    const int64_t planes = (t->shape.dims[1] + block - 1) / block;
    float *numbers = qn_build_alloc(builder, (size_t)(planes * block) * sizeof *numbers);
    if (numbers)
        memcpy(numbers, data, (size_t)t->shape.dims[1] * sizeof *numbers);
    return numbers;
}

static qn_status blocked_operand(bool *fits, qn_tail *t, const qn_claim *claim,
                                 const qn_tensor *other)
{
    qn_tail_operand *o = &t->operands[t->chain.n_operands];
    qn_operand *c = &t->chain.operands[t->chain.n_operands];
    const bool is_constant = o->value->data != NULL;
    *fits = true;
    o->layout = t->layout;
    c->spread = QN_SPREAD_LANES;
    if (same_dims(&t->shape, other) && !is_constant) {
        c->spread = QN_SPREAD_FULL;
    } else if (qn_tensor_count(other) == 1) {
        c->spread = QN_SPREAD_ONE;
        o->layout = QN_ROWS;
    } else if (is_per_channel(&t->shape, other) && is_constant &&
               qn_tensor_count(other) == t->shape.dims[1]) {
        o->numbers = pack_channels(claim->builder, t, o->value->data->data);
        QN_TRY_ALLOC(qn_build_context(claim->builder), o->numbers);
        o->value = NULL;
    } else {
        *fits = !is_constant && other->rank == t->shape.rank && is_per_channel(&t->shape, other);
    }
    return QN_OK;
}

/* Channels last: what has all elements, or the same for every position. */
static bool last_operand(qn_tail *t, const qn_tensor *other)
{
    qn_tail_operand *o = &t->operands[t->chain.n_operands];
    const int64_t count = qn_tensor_count(other);
    if (same_dims(&t->shape, other) && !o->value->data) {
        qn_dims_strides(o->steps, t->shape.rank, t->dims);
        o->layout = t->layout;
        return true;
    }
    if (count == t->shape.dims[1] && is_per_channel(&t->shape, other)) {
        o->steps[t->shape.rank - 1] = 1;
        return true;
    }
    return count == 1;
}

static qn_status operand_add(bool *fits, qn_tail *t, const qn_claim *claim, qn_value *value)
{
    qn_tensor other;
    *fits = t->chain.n_operands < QN_MOST_OPERANDS && qn_build_ready(claim->builder, value) &&
            qn_build_shape(&other, claim->builder, value) && other.dtype == QN_FLOAT32;
    if (!*fits)
        return QN_OK;
    qn_tail_operand *o = &t->operands[t->chain.n_operands];
    *o = (qn_tail_operand){.value = value, .in = -1, .layout = QN_ROWS};
    t->chain.operands[t->chain.n_operands] = (qn_operand){.spread = QN_SPREAD_ONE};
    if (t->layout.kind == QN_LAYOUT_BLOCKED) {
        QN_TRY(blocked_operand(fits, t, claim, &other));
        t->chain.n_operands += *fits;
        return QN_OK;
    }
    *fits = t->layout.kind == QN_LAYOUT_ROWS ? rows_steps(o->steps, &t->shape, &other)
                                             : last_operand(t, &other);
    t->chain.n_operands += *fits;
    if (*fits && !rows_geometry(t)) {
        t->chain.n_operands--;
        *fits = false;
    }
    return QN_OK;
}

/* An operand of one number per channel, in plan memory. */
static bool channels_add(qn_tail *t, float *numbers)
{
    qn_tail_operand *o = &t->operands[t->chain.n_operands];
    if (t->chain.n_operands == QN_MOST_OPERANDS)
        return false;
    *o = (qn_tail_operand){.in = -1, .numbers = numbers, .layout = t->layout};
    t->chain.operands[t->chain.n_operands++] = (qn_operand){.spread = QN_SPREAD_LANES};
    if (t->layout.kind == QN_LAYOUT_BLOCKED)
        return true;
    o->steps[t->layout.kind == QN_LAYOUT_ROWS ? 1 : t->shape.rank - 1] = 1;
    if (rows_geometry(t))
        return true;
    t->chain.n_operands--;
    return false;
}

/* ---- Growing --------------------------------------------------------------------------------- */

/* A factor and then a sum are one stage. */
static void add_stage(qn_tail *t, const qn_stage *stage)
{
    qn_chain *c = &t->chain;
    qn_stage *last = c->n_stages ? &c->stages[c->n_stages - 1] : NULL;
    if (last && last->fn == QN_FN_SCALE && stage->fn == QN_FN_SHIFT) {
        last->fn = QN_FN_LINEAR;
        last->b = stage->a;
        return;
    }
    c->stages[c->n_stages++] = *stage;
}

/* y = scale x + shift of a BatchNormalization by constants. */
static bool batchnorm_numbers(float *scale, float *shift, const qn_node *node, int64_t channels)
{
    const qn_batchnorm_attrs *a = node->attrs;
    for (int32_t i = 1; i < 5; i++) {
        const qn_tensor *data = node->in[i]->data;
        if (!data || data->dtype != QN_FLOAT32 || qn_tensor_count(data) != channels)
            return false;
    }
    for (int64_t c = 0; c < channels; c++) {
        float p[4];
        for (int i = 0; i < 4; i++)
            memcpy(&p[i], (const char *)node->in[1 + i]->data->data + (size_t)c * sizeof *p,
                   sizeof *p);
        const double factor = (double)p[0] / sqrt((double)p[3] + (double)a->epsilon);
        scale[c] = (float)factor;
        shift[c] = (float)((double)p[1] - (double)p[2] * factor);
    }
    return !a->training_mode && !(node->n_out > 1 && node->out[1]);
}

static qn_status batchnorm_take(bool *taken, qn_tail *t, const qn_claim *claim, const qn_node *node)
{
    const int32_t before = t->chain.n_operands;
    float *numbers[2];
    *taken = false;
    if (t->shape.rank < 2 || node->in[0] != t->out || t->chain.n_stages + 2 > QN_MOST_STAGES)
        return QN_OK;
    for (int i = 0; i < 2; i++) {
        const int64_t padded = t->shape.dims[1] + t->layout.block;
        numbers[i] = qn_build_alloc(claim->builder, (size_t)padded * sizeof(float));
        QN_TRY_ALLOC(qn_build_context(claim->builder), numbers[i]);
    }
    if (!batchnorm_numbers(numbers[0], numbers[1], node, t->shape.dims[1]) ||
        !channels_add(t, numbers[0]) || !channels_add(t, numbers[1])) {
        t->chain.n_operands = before;
        return QN_OK;
    }
    t->chain.stages[t->chain.n_stages++] = (qn_stage){.fn = QN_FN_MUL, .operand = before};
    t->chain.stages[t->chain.n_stages++] = (qn_stage){.fn = QN_FN_ADD, .operand = before + 1};
    t->out = node->out[0];
    *taken = true;
    return QN_OK;
}

qn_status qn_tail_take(bool *taken, qn_tail *t, qn_claim *claim, qn_node *node)
{
    qn_node_stage found;
    qn_tensor after;
    if (node->op == &qn_op_BatchNormalization)
        return batchnorm_take(taken, t, claim, node);
    *taken = t->chain.n_stages < QN_MOST_STAGES && qn_stage_of(&found, node, t->out) &&
             qn_build_shape(&after, claim->builder, node->out[0]) && same_dims(&after, &t->shape);
    if (*taken && found.other) {
        found.stage.operand = t->chain.n_operands;
        QN_TRY(operand_add(taken, t, claim, found.other));
    }
    if (!*taken)
        return QN_OK;
    add_stage(t, &found.stage);
    t->out = node->out[0];
    return QN_OK;
}

qn_status qn_tail_grow(qn_tail *t, qn_claim *claim)
{
    bool taken = true;
    while (taken && claim->n_nodes < QN_CLAIM_SPARE) {
        qn_node *next = qn_build_fusible(claim->builder, t->out);
        if (!next)
            break;
        QN_TRY(qn_tail_take(&taken, t, claim, next));
        if (taken)
            qn_claim_add(claim, next);
    }
    return QN_OK;
}

void qn_tail_close(qn_tail *t, qn_claim *claim)
{
    const bool strided = t->layout.kind == QN_LAYOUT_BLOCKED;
    for (int32_t i = 0; i < t->chain.n_operands; i++) {
        qn_tail_operand *o = &t->operands[i];
        if (!o->value)
            continue;
        o->in = claim->n_in;
        qn_claim_in(claim, o->value, o->layout)->strided =
            strided && t->chain.operands[i].spread != QN_SPREAD_ONE;
    }
    qn_claim_out(claim, t->out, t->layout)->strided = strided;
}

/* ---- Preparing and running ------------------------------------------------------------------- */

static int64_t floats(size_t bytes)
{
    return (int64_t)(bytes / sizeof(float));
}

void qn_tail_prepare(qn_tail *t, const qn_claim *claim, int32_t x_in)
{
    qn_chain *c = &t->chain;
    if (t->layout.kind != QN_LAYOUT_BLOCKED) {
        (void)rows_geometry(t);
        return;
    }
    blocked_geometry(t);
    c->y_stride = floats(claim->out[0].stride);
    c->x_stride = x_in < 0 ? c->y_stride : floats(claim->in[x_in].stride);
    for (int32_t i = 0; i < c->n_operands; i++) {
        qn_operand *o = &c->operands[i];
        if (o->spread == QN_SPREAD_FULL || o->sample_stride)
            o->sample_stride = floats(claim->in[t->operands[i].in].stride);
    }
}

void qn_tail_data(const float **data, const qn_tail *t, const qn_step_io *io)
{
    for (int32_t i = 0; i < t->chain.n_operands; i++)
        data[i] = t->operands[i].value ? io->in[t->operands[i].in]->data : t->operands[i].numbers;
}

void qn_tail_run(const qn_tail *t, const float *x, const qn_step_io *io)
{
    const float *data[QN_MOST_OPERANDS];
    qn_tail_data(data, t, io);
    qn_chain_run(&t->chain, io->out[0]->data, x, data, io->threads);
}

bool qn_tail_is_whole(const qn_tail *t, int32_t i)
{
    const qn_tail_operand *o = &t->operands[i];
    qn_tensor shape = {.rank = 0};
    return o->value && qn_layout_same(o->layout, t->layout) &&
           qn_type_is_static(&o->value->type, shape.dims) &&
           (shape.rank = o->value->type.rank, same_dims(&shape, &t->shape));
}

void qn_tail_skip(qn_tail *t, int32_t count)
{
    t->chain.n_stages -= count;
    memmove(t->chain.stages, t->chain.stages + count,
            (size_t)t->chain.n_stages * sizeof *t->chain.stages);
}
