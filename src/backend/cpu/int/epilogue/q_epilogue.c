/* Which nodes behind a product its epilogue takes, and the parameters of the epilogue. */
#include "backend/cpu/int/epilogue/q_epilogue.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/float/elementwise/stage.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "ops/quantize.h"

double qn_q_element(const qn_tensor *list, int64_t i)
{
    const size_t size = qn_dtype_size(list->dtype);
    const int64_t at = qn_tensor_count(list) == 1 ? 0 : i;
    uint64_t aligned = 0;
    double x = 0;
    memcpy(&aligned, (const char *)list->data + (size_t)at * size, size);
    qn_load_f64(&x, list->dtype, &aligned, 0, 1);
    return x;
}

bool qn_q_number(double *out, const qn_node *node, int32_t i)
{
    const qn_tensor *data = i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
    if (!data || qn_tensor_count(data) != 1)
        return false;
    *out = qn_q_element(data, 0);
    return true;
}

/* The same where the input may be left out. */
static bool number_or(double *out, const qn_node *node, int32_t i, double otherwise)
{
    *out = otherwise;
    return i >= node->n_in || !node->in[i] || qn_q_number(out, node, i);
}

void qn_q_tail_begin(qn_q_tail *tail, qn_value *value, int64_t zero)
{
    const qn_dtype dtype = value->type.dtype;
    *tail = (qn_q_tail){.residual = -1, .out = value};
    if (dtype == QN_FLOAT32) {
        tail->epilogue.floats = true;
    } else {
        tail->epilogue.first = qn_q_round_of(dtype, zero);
    }
    tail->epilogue.is_signed = dtype == QN_INT8;
    tail->epilogue.is_int16 = qn_dtype_size(dtype) == 2;
}

/* ---- Growing --------------------------------------------------------------------------------- */

/* The operand that is not the result. */
static qn_value *other_of(const qn_q_tail *tail, const qn_node *node)
{
    return node->in[node->in[0] == tail->out ? 3 : 0];
}

/* The other operand is a tensor of the same shape that is ready. */
static bool is_residual(const qn_q_tail *tail, const qn_claim *claim, const qn_node *node)
{
    const qn_value *b = other_of(tail, node);
    qn_tensor shape, other;
    if (b == tail->out || b->data || !qn_build_ready(claim->builder, b) ||
        !qn_build_shape(&shape, claim->builder, tail->out) ||
        !qn_build_shape(&other, claim->builder, b) || shape.rank != other.rank)
        return false;
    for (int32_t d = 0; d < shape.rank; d++) {
        if (shape.dims[d] != other.dims[d])
            return false;
    }
    return true;
}

bool qn_q_fixed_point_ratios(float ratios[2], const double zeros[3])
{
    qn_normal normal[2];
    qn_normal_pair(normal, (double)ratios[0], (double)ratios[1]);
    for (int i = 0; i < 2; i++)
        ratios[i] = (float)qn_normal_value(normal[i]);
    return zeros[0] == 0 && zeros[1] == 0 && zeros[2] == 0;
}

static bool take_sum(qn_q_tail *tail, const qn_claim *claim, const qn_node *node)
{
    qn_q_epilogue *f = &tail->epilogue;
    const qn_value *b = other_of(tail, node);
    double scales[3], zeros[3];
    if (tail->alone || f->has_sum || !is_residual(tail, claim, node) ||
        !qn_q_is_integer(b->type.dtype) || !qn_q_is_integer(node->out[0]->type.dtype))
        return false;
    for (int i = 0; i < 3; i++) {
        const int32_t at = i == 2 ? 6 : 3 * i + 1;
        if (!qn_q_number(&scales[i], node, at) || !number_or(&zeros[i], node, at + 1, 0))
            return false;
    }
    const int a = node->in[0] == tail->out ? 0 : 1;
    if ((int32_t)zeros[a] != f->first.zero)
        return false;
    float ratios[2] = {(float)(scales[0] / scales[2]), (float)(scales[1] / scales[2])};
    if (qn_node_is_fixed_point(node) && (!qn_q_fixed_point_ratios(ratios, zeros) || f->is_int16 ||
                                         qn_dtype_size(b->type.dtype) == 2))
        return false;
    f->has_sum = true;
    f->sum.r_signed = qn_dtype_get(b->type.dtype)->kind == QN_KIND_INT;
    f->sum.r_is_int16 = qn_dtype_size(b->type.dtype) == 2;
    f->is_signed = node->out[0]->type.dtype == QN_INT8;
    f->is_int16 = qn_dtype_size(node->out[0]->type.dtype) == 2;
    f->sum.a_first = a == 0;
    f->sum.a_scale = ratios[a];
    f->sum.b_scale = ratios[1 - a];
    f->sum.offset = qn_sum_offset(
        ratios, (const int64_t[3]){(int64_t)zeros[0], (int64_t)zeros[1], (int64_t)zeros[2]});
    f->second = qn_q_round_of(node->out[0]->type.dtype, 0);
    return true;
}

/* The table by the byte itself, in the plan's memory. */
static qn_status take_table(bool *taken, qn_q_tail *tail, const qn_claim *claim,
                            const qn_node *node)
{
    const qn_tensor *from = node->in[1] ? node->in[1]->data : NULL;
    const int flip = tail->out->type.dtype == QN_INT8 ? 128 : 0;
    if (!from || qn_tensor_count(from) != 256 || qn_dtype_size(from->dtype) != 1)
        return QN_OK;
    uint8_t *table = qn_build_alloc(claim->builder, 256);
    QN_TRY_ALLOC(qn_build_context(claim->builder), table);
    for (int i = 0; i < 256; i++)
        table[i] = ((const uint8_t *)from->data)[i ^ flip];
    tail->epilogue.table = table;
    tail->epilogue.look_up = qn_q_look_up_get();
    *taken = true;
    return QN_OK;
}

/* Takes a Relu behind a float result. */
static void take_relu(qn_q_tail *tail, qn_claim *claim)
{
    qn_node *node = qn_build_fusible(claim->builder, tail->out);
    if (!node || node->op != &qn_op_Relu)
        return;
    tail->epilogue.relu = true;
    qn_claim_add(claim, node);
    tail->out = node->out[0];
}

/* Any other function of one number, where the kernel does them. */
static void take_stage(qn_q_tail *tail, qn_claim *claim)
{
    qn_node *node = qn_build_fusible(claim->builder, tail->out);
    qn_node_stage s;
    if (!tail->maps || !node || !qn_stage_of(&s, node, tail->out) || s.other)
        return;
    tail->epilogue.stage = s.stage;
    tail->epilogue.map = qn_kernels_get()->map[s.stage.fn];
    qn_claim_add(claim, node);
    tail->out = node->out[0];
}

/* Takes a function behind a float result, which becomes bytes by that. */
static bool take_function(qn_q_tail *tail, qn_claim *claim)
{
    qn_node *node = qn_build_fusible(claim->builder, tail->out);
    double scale, zero;
    if (!node || node->op != &qn_op_qn_QFunction || !qn_q_is_byte(node->out[0]) ||
        !qn_q_number(&scale, node, 1) || !qn_q_number(&zero, node, 2))
        return false;
    qn_q_tail_begin(tail, node->out[0], (int64_t)zero);
    tail->epilogue.has_function = true;
    tail->epilogue.function = *(const qn_qfunction_attrs *)node->attrs;
    tail->epilogue.function.gain /= (float)scale;
    tail->epilogue.function.offset /= (float)scale;
    qn_claim_add(claim, node);
    return true;
}

/* A function of floats, limits, a sum with limits behind it, a table: each may be missing. */
qn_status qn_q_tail_grow(qn_q_tail *tail, qn_claim *claim, qn_layout layout)
{
    qn_q_epilogue *f = &tail->epilogue;
    bool taken = false;
    if (f->floats && !take_function(tail, claim)) {
        take_relu(tail, claim);
        take_stage(tail, claim);
        return QN_OK;
    }
    qn_q_take_clips(claim, &tail->out, &f->first);
    qn_node *node = qn_build_fusible(claim->builder, tail->out);
    if (node && node->op == &qn_op_ms_QLinearAdd && take_sum(tail, claim, node)) {
        tail->residual = claim->n_in;
        qn_claim_in(claim, other_of(tail, node), layout)->strided =
            layout.kind == QN_LAYOUT_CHANNELS_LAST;
        qn_claim_add(claim, node);
        tail->out = node->out[0];
        qn_q_take_clips(claim, &tail->out, &f->second);
        node = qn_build_fusible(claim->builder, tail->out);
    }
    if (node && node->op == &qn_op_qn_QTable)
        QN_TRY(take_table(&taken, tail, claim, node));
    if (taken) {
        qn_claim_add(claim, node);
        tail->out = node->out[0];
    }
    return QN_OK;
}

static qn_q_epilogue_path path_of(const qn_q_epilogue *f)
{
    if (f->floats)
        return QN_Q_EPILOGUE_BY_TILE;
    if (!f->bounded || f->is_int16 || f->sum.r_is_int16)
        return QN_Q_EPILOGUE_BY_LANE;
    return f->has_function || f->has_sum || f->exact ? QN_Q_EPILOGUE_BY_TILE
                                                     : QN_Q_EPILOGUE_IN_REGISTERS;
}

void qn_q_epilogue_bound(qn_q_epilogue *epilogue, double most, int64_t count)
{
    const double limit = 0x1p30;
    const qn_q_epilogue_sum *sum = &epilogue->sum;
    const double scales = fabs((double)sum->a_scale) + fabs((double)sum->b_scale);
    epilogue->bounded = !epilogue->has_sum || 512 * scales + fabs((double)sum->offset) < limit;
    for (int64_t i = 0; i < count; i++) /* no number is not bounded either */
        epilogue->bounded = epilogue->bounded && most * fabs((double)epilogue->scale[i]) < limit;
    const qn_q_round *end = epilogue->has_sum ? &epilogue->second : &epilogue->first;
    epilogue->usual = !epilogue->has_function && !epilogue->floats && !epilogue->exact &&
                      !epilogue->is_signed && !epilogue->is_int16 && end->zero == 0 &&
                      end->low <= 0 && end->high >= 255;
    epilogue->path = path_of(epilogue);
}

qn_status qn_q_fixed_point_make(qn_q_fixed_point *out, const qn_claim *claim, int64_t count)
{
    qn_builder *builder = claim->builder;
    *out =
        (qn_q_fixed_point){.multipliers = qn_build_alloc(builder, (size_t)count * sizeof(double)),
                           .bias = qn_build_alloc(builder, (size_t)count * sizeof(double)),
                           .zeros = qn_build_alloc(builder, (size_t)count * sizeof(float)),
                           .ones = qn_build_alloc(builder, (size_t)count * sizeof(float))};
    if (!out->multipliers || !out->bias || !out->zeros || !out->ones)
        return qn_fail_nomem(qn_build_context(builder));
    for (int64_t i = 0; i < count; i++)
        out->ones[i] = 1;
    return QN_OK;
}

void qn_q_fixed_point_set(qn_q_epilogue *epilogue, const qn_q_fixed_point *fixed_point,
                          int64_t count)
{
    const double most = 0x1p22; /* QD_MOST of the kernels */
    epilogue->exact = fixed_point->multipliers;
    epilogue->exact_bias = fixed_point->bias;
    epilogue->bias = fixed_point->zeros;
    epilogue->scale = fixed_point->ones;
    qn_q_epilogue_bound(epilogue, most, count);
}

void qn_q_tail_close(const qn_q_tail *tail, qn_claim *claim, qn_layout layout)
{
    qn_claim_out(claim, tail->out, layout)->strided = layout.kind != QN_LAYOUT_ROWS;
    if (tail->residual >= 0 && tail->epilogue.sum.r_is_int16 == tail->epilogue.is_int16 &&
        claim->in[tail->residual].value != claim->in[0].value &&
        qn_build_dies(claim, claim->in[tail->residual].value))
        claim->in_place = tail->residual;
}
