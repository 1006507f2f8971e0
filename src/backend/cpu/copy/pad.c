/* Pad with constants, row-major or of integers channels last: the border is filled, the inside
 * copied row by row. */
#include <string.h>

#include "backend/cpu/copy/parts.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "ops/eval.h"
#include "ops/move.h"
#include "ops/pad.h"
#include "ops/tensor_attrs.h"

typedef struct pad_state {
    /* The place of the inside, in elements of the output. */
    int64_t start;
    /* The strides of the output. */
    int64_t strides[QN_MAX_RANK];
    /* One element. */
    uint8_t value[16];
    /* Dims in the order [N, spatial..., C]. */
    bool last;
} pad_state;

static qn_status pad_run(const void *state, void *bound, const qn_step_io *io)
{
    const pad_state *s = state;
    qn_tensor *out = io->out[0];
    (void)bound;
    qn_tensor in = *io->in[0];
    if (s->last)
        qn_dims_last(in.dims, io->in[0]->dims, in.rank);
    qn_fill(out->data, qn_tensor_count(out), s->value, qn_dtype_size(out->dtype));
    qn_move_to(out, &in, s->start, s->strides);
    return QN_OK;
}

static const qn_kernel pad_kernel = {.name = "pad", .run = pad_run};

/* False where the amounts are not constant or something is cut off. */
static bool only_adds(qn_pad_amounts *amounts, const qn_node *node)
{
    if (!qn_pad_read_node(amounts, node))
        return false;
    for (int32_t d = 0; d < node->in[0]->type.rank; d++) {
        if (amounts->before[d] < 0 || amounts->after[d] < 0)
            return false;
    }
    return true;
}

/* The element that fills the border; zero where none is given. */
static bool read_value(uint8_t *value, const qn_node *node, size_t size)
{
    const qn_value *given = node->n_in > 2 ? node->in[2] : NULL;
    if (given && (!given->data || qn_tensor_count(given->data) != 1))
        return false;
    if (given)
        memcpy(value, given->data->data, size);
    return true;
}

static qn_layout layout_for(const qn_claim *claim, const qn_tensor *x)
{
    return x->rank > 2 && qn_q_is_integer(x->dtype) ? qn_q_layout(claim, claim->node->in[0])
                                                    : QN_ROWS;
}

qn_status qn_claim_pad(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_tensor in, out;
    qn_pad_amounts amounts;
    if (((const qn_pad_attrs *)node->attrs)->mode != QN_PAD_CONSTANT ||
        !qn_build_shape(&in, claim->builder, node->in[0]) || in.dtype == QN_STRING ||
        !qn_build_shape(&out, claim->builder, node->out[0]) || !only_adds(&amounts, node))
        return QN_OK;
    pad_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    if (!read_value(s->value, node, qn_dtype_size(in.dtype)))
        return QN_OK;
    const qn_layout layout = layout_for(claim, &in);
    int64_t dims[QN_MAX_RANK], before[QN_MAX_RANK];
    s->last = layout.kind == QN_LAYOUT_CHANNELS_LAST;
    memcpy(dims, out.dims, sizeof dims);
    memcpy(before, amounts.before, sizeof before);
    if (s->last) {
        qn_dims_last(dims, out.dims, out.rank);
        qn_dims_last(before, amounts.before, out.rank);
    }
    qn_dims_strides(s->strides, out.rank, dims);
    for (int32_t d = 0; d < out.rank; d++)
        s->start += before[d] * s->strides[d];
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, node->out[0], layout);
    claim->state = s;
    claim->kernel = &pad_kernel;
    *taken = true;
    return QN_OK;
}
