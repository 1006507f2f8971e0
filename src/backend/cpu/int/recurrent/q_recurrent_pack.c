/* Weights and lists of recurrent layers of integers, packed for their kernels. */
#include <string.h>

#include "backend/cpu/int/recurrent/q_recurrent_layer.h"
#include "ops/dynamic_lstm.h"
#include "ops/eval.h"

void qn_qrl_constants(const qn_tensor *in[QN_QREC_INPUTS], const qn_node *node)
{
    const qn_tensor *own[QN_QREC_INPUTS];
    for (int32_t i = 0; i < QN_QREC_INPUTS; i++)
        own[i] = qn_qrl_constant(node, i);
    if (node->op == &qn_op_ms_DynamicQuantizeLSTM)
        qn_dlstm_inputs(in, own);
    else
        memcpy(in, own, sizeof own);
}

int64_t qn_qrl_weight(const qn_qrl *s, int part, int64_t d, int64_t row, int64_t j)
{
    const int64_t rows = s->n.gates * s->n.hidden;
    if (!s->is_dynamic) {
        const qn_tensor *w = qn_qrl_constant(s->node, part ? QN_QREC_R : QN_QREC_W);
        return qn_tensor_i64(w, (d * rows + row) * w->dims[2] + j);
    }
    const qn_tensor *w = qn_qrl_constant(s->node, part ? QN_DLSTM_R : QN_DLSTM_W);
    const qn_tensor *zero = qn_qrl_constant(s->node, QN_DLSTM_W_ZERO + 2 * part);
    return qn_tensor_i64(w, (d * w->dims[1] + j) * rows + row) -
           qn_tensor_i64(zero, zero->rank == 1 ? d : d * rows + row);
}

/* Number k of the weights of a lane whose vector begins at `to`. */
static void put_weight(uint8_t *to, const qn_qrl *s, int64_t lane, int64_t k, int64_t w)
{
    enum { BYTE = 256 };
    const int64_t dot = qn_qrl_dot(s), lanes = s->kernels->lanes, group = k / dot * lanes * dot;
    const int64_t i = lane * dot + k % dot, low = w & (BYTE - 1), high = (w - low) / BYTE;
    if (s->has_double_sums) {
        qn_store_i64(to, QN_INT16, 2 * group + i, &high, 1);
        qn_store_i64(to, QN_INT16, 2 * group + lanes * dot + i, &low, 1);
    } else {
        qn_store_i64(to, s->weight_bytes == 1 ? QN_INT8 : QN_INT16, group + i, &w, 1);
    }
}

static qn_status pack(qn_qrl_packed *to, const qn_qrl *s, qn_claim *claim, int64_t d, int part)
{
    const int64_t depth = part ? s->n.hidden : s->n.inputs;
    const int64_t groups = part ? s->n.groups_h : s->n.groups_x;
    const int64_t lanes = s->kernels->lanes, columns = s->n.gates * s->n.pitch;
    const int64_t vector = qn_qrl_vector(s, groups);
    const size_t bytes = (size_t)(columns / lanes * vector);
    to->weights = qn_build_alloc_weights(claim->builder, bytes);
    to->sums = qn_build_alloc_weights(claim->builder, (size_t)columns * sizeof(double));
    if (!to->weights || !to->sums)
        return qn_fail_nomem(qn_build_context(claim->builder));
    memset(to->weights, 0, bytes);
    for (int64_t i = 0; i < columns; i++) {
        const int64_t gate = i / s->n.pitch, k = i % s->n.pitch;
        int64_t sum = 0;
        for (int64_t j = 0; k < s->n.hidden && j < depth; j++) {
            const int64_t w = qn_qrl_weight(s, part, d, gate * s->n.hidden + k, j);
            put_weight(to->weights + i / lanes * vector, s, i % lanes, j, w);
            sum += w;
        }
        to->sums[i] = (double)sum;
    }
    return QN_OK;
}

/* `gates` lists of `hidden` numbers, padded. */
static qn_status pad(float **list, const qn_qrl *s, qn_claim *claim, int64_t gates)
{
    const size_t bytes = (size_t)(gates * s->n.pitch) * sizeof(float);
    float *to = qn_build_alloc_weights(claim->builder, bytes);
    QN_TRY_ALLOC(qn_build_context(claim->builder), to);
    memset(to, 0, bytes);
    for (int64_t g = 0; g < gates; g++)
        memcpy(to + g * s->n.pitch, *list + g * s->n.hidden, (size_t)s->n.hidden * sizeof *to);
    *list = to;
    return QN_OK;
}

static qn_status prepare_direction(qn_qrl *s, qn_claim *claim, int64_t d)
{
    enum { PEEPHOLES = 3 };
    const int64_t room = qn_qcell_room(s->node->op, s->n.hidden);
    const qn_tensor *in[QN_QREC_INPUTS];
    qn_qcell *cell = &s->dir[d].cell;
    float *lists = qn_build_alloc(claim->builder, (size_t)room * sizeof *lists);
    QN_TRY_ALLOC(qn_build_context(claim->builder), lists);
    qn_qrl_constants(in, s->node);
    qn_qcell_make(cell, lists, s->node->op, s->node->attrs, in, d);
    QN_TRY(pad(&cell->x, s, claim, s->n.gates));
    QN_TRY(pad(&cell->r, s, claim, s->n.gates));
    QN_TRY(pad(&cell->bias, s, claim, s->n.gates));
    QN_TRY(pad(&cell->peephole, s, claim, PEEPHOLES));
    QN_TRY(pad(&cell->bias_r, s, claim, 1));
    QN_TRY(pack(&s->dir[d].x, s, claim, d, 0));
    return pack(&s->dir[d].h, s, claim, d, 1);
}

qn_status qn_qrl_prepare(qn_claim *claim)
{
    qn_qrl *s = claim->state;
    for (int64_t d = 0; d < s->n.directions; d++)
        QN_TRY(prepare_direction(s, claim, d));
    return QN_OK;
}
