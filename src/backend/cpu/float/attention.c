/* Attention without caches, with any mask. Where Q, K and V are split off one tensor along its last
 * axis, the Split belongs to the step: the kernel reads them where they lie. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/elementwise.h"
#include "ops/nn_attrs.h"
#include "ops/tensor_attrs.h"

enum { Q, K, V, PARTS, MASK = PARTS };

/* Where the heads of one operand lie, in floats. */
typedef struct operand {
    /* The input of the step. */
    int32_t in;
    /* The place of the first element. */
    int64_t offset;
    int64_t batch, head, row;
} operand;

typedef struct attention_state {
    const qn_kernels *kernels;
    /* Heads of Q, and how many of them share one of K and V. */
    int64_t batches, heads, shared;
    int64_t queries, keys, size, value_size;
    float scale, softcap;
    operand parts[PARTS], y;
    /* Some key is hidden, or scores are moved. */
    bool masked;
    qn_attention_mask mask;
    /* The mask among the inputs of the step, -1: none; its elements from batch to batch and from
     * head to head. */
    int32_t mask_in;
    int64_t mask_batch, mask_head;
    /* Floats of one thread. */
    int64_t scratch;
} attention_state;

typedef struct work {
    const attention_state *s;
    const qn_step_io *io;
} work;

static void attend_one(const void *opaque, int64_t item, int thread)
{
    const work *w = opaque;
    const attention_state *s = w->s;
    const qn_step_io *io = w->io;
    const int64_t b = item / s->heads, i = item % s->heads;
    const float *at[PARTS];
    for (int p = 0; p < PARTS; p++) {
        const operand *o = &s->parts[p];
        const int64_t own = p == Q ? i : i / s->shared;
        at[p] = (const float *)io->in[o->in]->data + o->offset + b * o->batch + own * o->head;
    }
    qn_attention_mask mask = s->mask;
    if (s->mask_in >= 0)
        mask.data = (const char *)io->in[s->mask_in]->data +
                    (b * s->mask_batch + i * s->mask_head) *
                        (int64_t)(mask.is_bool ? sizeof(bool) : sizeof(float));
    const qn_attention_head head = {.q = at[Q],
                                    .k = at[K],
                                    .v = at[V],
                                    .y = (float *)io->out[0]->data + b * s->y.batch + i * s->y.head,
                                    .q_stride = s->parts[Q].row,
                                    .k_stride = s->parts[K].row,
                                    .v_stride = s->parts[V].row,
                                    .y_stride = s->y.row,
                                    .queries = s->queries,
                                    .keys = s->keys,
                                    .size = s->size,
                                    .value_size = s->value_size,
                                    .scale = s->scale,
                                    .softcap = s->softcap,
                                    .mask = s->masked ? &mask : NULL,
                                    .scratch = (float *)io->scratch + thread * s->scratch};
    s->kernels->attend(&head);
}

static qn_status attention_run(const void *state, void *bound, const qn_step_io *io)
{
    const attention_state *s = state;
    const work w = {s, io};
    (void)bound;
    qn_parallel_items(io->threads, s->batches * s->heads, attend_one, &w);
    return QN_OK;
}

static const qn_kernel attention_kernel = {.name = "attention", .run = attention_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

/* No cache, no lengths, and one result. */
static bool is_plain(const qn_node *node)
{
    bool plain = node->out[0];
    for (int32_t i = MASK + 1; i < node->n_explicit; i++)
        plain = plain && !node->in[i];
    for (int32_t o = 1; o < node->n_out; o++)
        plain = plain && !node->out[o];
    return plain;
}

/* [batch, heads, length, size], or [batch, length, heads * size] with the number of heads. */
typedef struct extent {
    int64_t batch, heads, length, size;
    bool four;
} extent;

static bool extent_of(extent *out, const qn_claim *claim, const qn_value *value, int64_t heads)
{
    qn_tensor t;
    if (!qn_build_shape(&t, claim->builder, value) || t.dtype != QN_FLOAT32 ||
        (t.rank != 3 && t.rank != 4) || qn_tensor_count(&t) == 0)
        return false;
    if (t.rank == 4)
        *out = (extent){t.dims[0], t.dims[1], t.dims[2], t.dims[3], true};
    else if (heads < 1 || t.dims[2] % heads)
        return false;
    else
        *out = (extent){t.dims[0], heads, t.dims[1], t.dims[2] / heads, false};
    return true;
}

static operand operand_of(const extent *e)
{
    if (e->four)
        return (operand){
            .batch = e->heads * e->length * e->size, .head = e->length * e->size, .row = e->size};
    const int64_t row = e->heads * e->size;
    return (operand){.batch = e->length * row, .head = e->size, .row = row};
}

/* What of the keys the attributes leave, and how the mask broadcasts. */
static bool describe_mask(attention_state *s, const qn_claim *claim, const qn_node *node)
{
    const qn_attention_attrs *a = node->attrs;
    const qn_value *value = node->n_explicit > MASK ? node->in[MASK] : NULL;
    int64_t strides[QN_MAX_RANK];
    qn_tensor t;
    const int64_t behind = a->right_window_size;
    s->mask_in = -1;
    s->mask.before = QN_MAX(a->left_window_size, -1);
    s->mask.behind = a->is_causal ? 0 : QN_MAX(behind, -1);
    s->masked = value || s->mask.before >= 0 || s->mask.behind >= 0;
    if (!value)
        return true;
    if (!qn_build_shape(&t, claim->builder, value) || qn_tensor_count(&t) == 0 ||
        (t.dtype != QN_FLOAT32 && t.dtype != QN_BOOL))
        return false;
    const int64_t own = t.dims[t.rank - 1], keys = own == 1 ? s->keys : own;
    qn_broadcast_strides(strides, &t, 4,
                         (const int64_t[4]){s->batches, s->heads, s->queries, keys});
    s->mask.is_bool = t.dtype == QN_BOOL;
    s->mask.keys = keys;
    s->mask_batch = strides[0];
    s->mask_head = strides[1];
    s->mask.query_step = strides[2];
    s->mask.key_step = strides[3];
    return true;
}

static void take_mask(attention_state *s, qn_claim *claim, const qn_node *node)
{
    if (node->n_explicit <= MASK || !node->in[MASK])
        return;
    s->mask_in = claim->n_in;
    qn_claim_in(claim, node->in[MASK], QN_ROWS);
}

/* Fills everything but where the inputs are. */
static bool describe(attention_state *s, const qn_claim *claim, const qn_node *node)
{
    const qn_attention_attrs *a = node->attrs;
    extent e[PARTS], y;
    for (int p = 0; p < PARTS; p++) {
        if (!extent_of(&e[p], claim, node->in[p], p == Q ? a->q_num_heads : a->kv_num_heads))
            return false;
        s->parts[p] = operand_of(&e[p]);
    }
    if (!extent_of(&y, claim, node->out[0], a->q_num_heads) || e[Q].heads % e[K].heads ||
        e[K].heads != e[V].heads || e[Q].size != e[K].size || e[K].length != e[V].length)
        return false;
    s->kernels = qn_kernels_get();
    s->y = operand_of(&y);
    s->batches = e[Q].batch;
    s->heads = e[Q].heads;
    s->shared = e[Q].heads / e[K].heads;
    s->queries = e[Q].length;
    s->keys = e[K].length;
    s->size = e[Q].size;
    s->value_size = e[V].size;
    s->softcap = a->softcap;
    s->scale = a->scale != 0 ? a->scale : 1 / sqrtf((float)s->size);
    /* Turned keys and the scores of four queries, in whole cache lines. */
    s->scratch = (s->size + 4) * ((s->keys + 15) / 16 * 16);
    return describe_mask(s, claim, node);
}

static void finish(qn_claim *claim, attention_state *s, const qn_node *node)
{
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->scratch = (size_t)(s->scratch * qn_build_threads(claim->builder)) * sizeof(float);
    claim->state = s;
    claim->kernel = &attention_kernel;
}

qn_status qn_claim_attention(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    attention_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    if (!is_plain(node) || !describe(s, claim, node))
        return QN_OK;
    for (int32_t p = 0; p < PARTS; p++) {
        qn_claim_in(claim, node->in[p], QN_ROWS);
        s->parts[p].in = p;
    }
    take_mask(s, claim, node);
    finish(claim, s, node);
    *taken = true;
    return QN_OK;
}

/* The Attention that alone reads the three outputs of a Split; NULL: none. */
static qn_node *attention_behind(const qn_claim *claim)
{
    const qn_node *split = claim->node;
    qn_node *node = NULL;
    for (int32_t o = 0; o < split->n_out; o++) {
        qn_node *user = split->out[o] ? qn_build_fusible(claim->builder, split->out[o]) : NULL;
        if (!user || user->op != &qn_op_Attention || (node && user != node) || split->n_out != 3)
            return NULL;
        node = user;
    }
    return node;
}

qn_status qn_claim_split_attention(bool *taken, qn_claim *claim)
{
    const qn_node *split = claim->node;
    qn_node *node = attention_behind(claim);
    qn_tensor whole;
    if (!node || !is_plain(node) || !qn_build_shape(&whole, claim->builder, split->in[0]))
        return QN_OK;
    const int64_t given = ((const qn_split_attrs *)split->attrs)->axis;
    const int64_t axis = given < 0 ? given + whole.rank : given;
    attention_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    if (whole.rank != 3 || axis != 2 || !describe(s, claim, node))
        return QN_OK;
    for (int32_t p = 0; p < PARTS; p++) {
        operand *o = &s->parts[p];
        for (int32_t before = 0; before < node->in[p]->producer_slot; before++)
            o->offset += split->out[before]->type.dims[2].value;
        o->row = whole.dims[2];
        o->batch = whole.dims[1] * whole.dims[2];
    }
    qn_claim_add(claim, node);
    qn_claim_in(claim, split->in[0], QN_ROWS);
    take_mask(s, claim, node);
    finish(claim, s, node);
    *taken = true;
    return QN_OK;
}
