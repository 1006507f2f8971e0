/* Convolutions whose results a Concat joins by channels, in one step: each writes its part of every
 * pixel, and the threads meet once. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_layer.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/tensor_attrs.h"

enum { MOST_PARTS = 8, MOST_NODES = 6 }; /* MOST_NODES: of one part */

typedef struct join {
    int32_t n_parts;
    struct part {
        qn_q_layer *layer;
        /* Bytes into a pixel. */
        int64_t offset;
        /* Bytes into the step's. */
        size_t scratch;
    } parts[MOST_PARTS];
    int64_t shares;
} join;

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct work {
    const join *j;
    const qn_step_io *io;
} work;

static void run_shares(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const join *j = w->j;
    for (int32_t i = 0; i < j->n_parts; i++) {
        const struct part *p = &j->parts[i];
        const qn_q_conv *c = &p->layer->conv;
        const qn_q_conv_data data = {.x = w->io->in[p->layer->x]->data,
                                     .y = (uint8_t *)w->io->out[0]->data + p->offset,
                                     .scratch = (uint8_t *)w->io->scratch + p->scratch};
        for (int64_t k = first; k < last && k < qn_q_conv_parts(c); k++)
            qn_q_conv_run_part(c, &data, k);
    }
}

static qn_status join_run(const void *state, void *bound, const qn_step_io *io)
{
    const work w = {state, io};
    (void)bound;
    qn_parallel(io->threads, w.j->shares, 2, run_shares, &w);
    return QN_OK;
}

static qn_status join_prepare(qn_claim *claim)
{
    join *j = claim->state;
    size_t bytes;
    for (int32_t i = 0; i < j->n_parts; i++) {
        struct part *p = &j->parts[i];
        p->scratch = claim->scratch;
        QN_TRY(qn_q_layer_pack(&bytes, p->layer, claim));
        claim->scratch += (bytes + 63) / 64 * 64;
        j->shares = QN_MAX(j->shares, qn_q_conv_parts(&p->layer->conv));
    }
    return QN_OK;
}

static const qn_kernel join_kernel = {
    .name = "int8 convs", .prepare = join_prepare, .run = join_run};

/* ---- Claiming -------------------------------------------------------------------------------- */

static bool is_tail(const qn_node *node)
{
    return node->op == &qn_op_Clip || node->op == &qn_op_qn_QTable;
}

/* The Concat that alone reads what comes of the node's result. */
static qn_node *concat_behind(const qn_builder *builder, const qn_node *node)
{
    for (int i = 0; node && i < MOST_NODES; i++) {
        node = qn_build_fusible(builder, node->out[0]);
        if (node && node->op == &qn_op_Concat)
            return (qn_node *)(uintptr_t)node;
        if (node && !is_tail(node))
            return NULL;
    }
    return NULL;
}

/* The convolution that a part comes from, if it can be computed now. */
static qn_node *conv_of(const qn_builder *builder, const qn_value *value)
{
    qn_node *node = value->producer;
    for (int i = 1; node && is_tail(node) && i < MOST_NODES; i++)
        node = node->in[0] ? node->in[0]->producer : NULL;
    return node && node->op == &qn_op_QLinearConv && !qn_build_taken(builder, node) &&
                   qn_build_ready(builder, node->in[0])
               ? node
               : NULL;
}

/* Bytes by channels of maps, each part from a convolution of its own that nobody else reads. */
static bool is_wanted(const qn_builder *builder, const qn_node *concat)
{
    const qn_value *y = concat->out[0];
    const int64_t axis = ((const qn_concat_attrs *)concat->attrs)->axis;
    qn_tensor shape;
    if (concat->n_in < 2 || concat->n_in > MOST_PARTS || !qn_build_shape(&shape, builder, y) ||
        shape.rank != 4 || (axis != 1 && axis != -3) || !qn_q_is_byte(y))
        return false;
    for (int32_t i = 0; i < concat->n_in; i++) {
        const qn_node *conv = conv_of(builder, concat->in[i]);
        if (!conv || concat_behind(builder, conv) != concat)
            return false;
    }
    return true;
}

/* One part; *fits false where its convolution cannot be one. */
static qn_status add_part(bool *fits, join *j, qn_claim *claim, const qn_node *concat, int32_t i)
{
    struct part *p = &j->parts[i];
    *fits = false;
    QN_TRY(qn_q_conv_create(&p->layer, claim));
    if (!p->layer || p->layer->conv.shape.groups != 1)
        return QN_OK;
    p->layer->tail.alone = true;
    p->layer->conv.memory.y_pitch = concat->out[0]->type.dims[1].value;
    for (int32_t k = 0; k < i; k++)
        p->offset += concat->in[k]->type.dims[1].value;
    QN_TRY(qn_q_layer_open(fits, p->layer, claim));
    *fits = *fits && p->layer->tail.out == concat->in[i];
    return QN_OK;
}

/* All parts in the order of the Concat, but that of the claim's own node first. */
static qn_status add_parts(bool *fit, join *j, qn_claim *claim, const qn_node *concat)
{
    qn_node *own = claim->node;
    qn_status status = QN_OK;
    *fit = true;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < concat->n_in && *fit && status == QN_OK; i++) {
            claim->node = conv_of(claim->builder, concat->in[i]);
            if ((claim->node == own) != (pass == 0))
                continue;
            if (pass > 0)
                qn_claim_add(claim, claim->node);
            status = add_part(fit, j, claim, concat, i);
        }
    }
    claim->node = own;
    return status;
}

qn_status qn_claim_q_conv_concat(bool *taken, qn_claim *claim)
{
    qn_node *concat = concat_behind(claim->builder, claim->node);
    const qn_claim before = *claim;
    bool fit = false;
    if (!concat || !is_wanted(claim->builder, concat))
        return QN_OK;
    join *j = qn_build_alloc(claim->builder, sizeof *j);
    QN_TRY_ALLOC(qn_build_context(claim->builder), j);
    j->n_parts = concat->n_in;
    QN_TRY(add_parts(&fit, j, claim, concat));
    if (!fit) {
        *claim = before;
        return QN_OK;
    }
    qn_claim_add(claim, concat);
    qn_claim_out(claim, concat->out[0], QN_LAST)->strided = true;
    claim->state = j;
    claim->kernel = &join_kernel;
    *taken = true;
    return QN_OK;
}
