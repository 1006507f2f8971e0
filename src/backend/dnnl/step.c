/* What all steps of the oneDNN backend share: the engine, claims, arguments. */
#include "backend/dnnl/step.h"

#include <string.h>

qn_status qn_dnnl_engine(qn_prim_engine **out, qn_builder *builder)
{
    void **shared = qn_build_shared(builder);
    if (!*shared) {
        qn_prim_engine *engine;
        QN_TRY(qn_prim_engine_create(&engine, qn_build_context(builder)));
        *shared = engine;
    }
    *out = *shared;
    return QN_OK;
}

qn_status qn_dnnl_step_create(qn_dnnl_step **out, const qn_claim *claim)
{
    *out = qn_build_alloc(claim->builder, sizeof **out);
    QN_TRY_ALLOC(qn_build_context(claim->builder), *out);
    (*out)->repeats = 1;
    (*out)->bias_in = -1;
    (*out)->alpha = 1;
    return QN_OK;
}

qn_status qn_dnnl_step_find(qn_dnnl_step *s, const qn_claim *claim)
{
    qn_prim_engine *engine;
    qn_prim_free(s->prim);
    s->prim = NULL;
    QN_TRY(qn_dnnl_engine(&engine, claim->builder));
    return qn_prim_find(&s->prim, qn_build_context(claim->builder), engine, &s->spec);
}

/* ---- The tail as posts ----------------------------------------------------------------------- */

/* The first stage adds a value that ends here: the primitive adds to its memory instead. */
static bool is_sum(const qn_dnnl_step *s, const qn_claim *claim, const qn_stage *stage)
{
    if (stage->fn != QN_FN_ADD || s->spec.n_posts > 0)
        return false;
    const qn_tail_operand *o = &s->tail.operands[stage->operand];
    const qn_node *node = claim->node;
    return o->value && o->value != node->in[0] && (node->n_in < 2 || o->value != node->in[1]) &&
           qn_layout_same(qn_build_layout(claim->builder, o->value), s->tail.layout) &&
           qn_build_dies(claim, o->value);
}

/* Where a second tensor comes out right: not behind pools, and in channels-last layouts not behind
 * convolutions through matrix products. */
static bool takes_operands(const qn_dnnl_step *s)
{
    return s->spec.kind == QN_PRIM_MATMUL ||
           (s->spec.kind == QN_PRIM_CONV && !strstr(qn_prim_name(s->prim), "gemm"));
}

/* Stage i of the tail as the next post; false where it has to stay in the chain. */
static bool add_post(qn_dnnl_step *s, const qn_claim *claim, int32_t i)
{
    const qn_stage *stage = &s->tail.chain.stages[i];
    qn_prim_post *post = &s->spec.posts[s->spec.n_posts];
    /* Padding that oneDNN takes for channels must stay 0. */
    if (!qn_prim_fuses(&s->spec, stage) || (s->is_padded && !qn_stage_keeps_zero(stage)))
        return false;
    *post = (qn_prim_post){.stage = *stage};
    s->post_operands[s->spec.n_posts] = stage->operand;
    if (stage->operand >= 0) {
        if (!qn_tail_is_whole(&s->tail, stage->operand) || !takes_operands(s))
            return false;
        post->is_sum = is_sum(s, claim, stage);
        post->operand = s->spec.dst;
    }
    s->spec.n_posts++;
    return true;
}

/* As many posts as oneDNN takes without falling back to its reference code. */
static qn_status find_posts(qn_dnnl_step *s, const qn_claim *claim)
{
    while (s->spec.n_posts < s->tail.chain.n_stages && add_post(s, claim, s->spec.n_posts))
        continue;
    for (; s->spec.n_posts > 0; s->spec.n_posts--) {
        qn_prim *plain = s->prim;
        s->prim = NULL;
        const qn_status status = qn_dnnl_step_find(s, claim);
        if (status == QN_OK && !s->prim) {
            s->prim = plain;
            continue;
        }
        qn_prim_free(plain);
        return status;
    }
    return QN_OK;
}

qn_status qn_dnnl_step_finish(qn_dnnl_step *s, qn_claim *claim, const qn_kernel *kernel)
{
    qn_node *node = claim->node, *last = s->extra ? s->extra : node;
    const qn_layout layout = s->spec.dst.layout;
    const bool strided = s->spec.dst.format == QN_PRIM_LAYOUT;
    qn_claim_in(claim, node->in[0], s->spec.src.layout)->strided = strided;
    if (s->spec.weights.rank && !s->weights)
        qn_claim_in(claim, node->in[1], QN_ROWS);
    if (s->spec.bias.rank && !s->bias) {
        s->bias_in = claim->n_in;
        qn_claim_in(claim, node->in[2], QN_ROWS);
    }
    if (s->extra)
        qn_claim_add(claim, s->extra);
    claim->kernel = kernel;
    claim->state = s;
    s->has_tail = qn_tail_begin(&s->tail, claim, last->out[0], layout);
    if (!s->has_tail) {
        qn_claim_out(claim, last->out[0], layout)->strided = strided;
        return QN_OK;
    }
    if (s->alpha != 1)
        s->tail.chain.stages[s->tail.chain.n_stages++] =
            (qn_stage){.fn = QN_FN_SCALE, .a = s->alpha, .operand = -1};
    QN_TRY(qn_tail_grow(&s->tail, claim));
    QN_TRY(find_posts(s, claim));
    qn_tail_close(&s->tail, claim);
    claim->out[0].strided = claim->out[0].strided && strided;
    s->n_fused = s->spec.n_posts;
    if (s->n_fused > 0 && s->spec.posts[0].is_sum) {
        claim->in_place = s->tail.operands[s->post_operands[0]].in;
        claim->must_share = true;
    }
    return QN_OK;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

static size_t dense_stride(const qn_prim_tensor *t)
{
    int64_t count = 1;
    for (int32_t d = 1; d < t->rank; d++)
        count *= d == 1 && t->layout.block
                     ? (t->dims[d] + t->layout.block - 1) / t->layout.block * t->layout.block
                     : t->dims[d];
    return (size_t)count * sizeof(float);
}

static bool is_apart(const qn_prim_tensor *t, size_t stride)
{
    return t->format == QN_PRIM_LAYOUT && t->dims[0] > 1 && stride != dense_stride(t);
}

/* One sample a time where some tensor has them apart. */
static qn_status split_samples(qn_dnnl_step *s, const qn_claim *claim)
{
    bool apart =
        is_apart(&s->spec.src, claim->in[0].stride) || is_apart(&s->spec.dst, claim->out[0].stride);
    s->src_stride = claim->in[0].stride;
    s->dst_stride = claim->out[0].stride;
    for (int32_t i = 0; i < s->n_fused; i++) {
        const int32_t o = s->post_operands[i];
        if (o < 0 || s->spec.posts[i].is_sum)
            continue;
        s->operand_strides[i] = claim->in[s->tail.operands[o].in].stride;
        apart = apart || is_apart(&s->spec.dst, s->operand_strides[i]);
    }
    if (!apart)
        return QN_OK;
    s->repeats = s->spec.src.dims[0];
    s->spec.src.dims[0] = s->spec.dst.dims[0] = 1;
    for (int32_t i = 0; i < s->n_fused; i++)
        s->spec.posts[i].operand.dims[0] = 1;
    QN_TRY(qn_dnnl_step_find(s, claim));
    if (!s->prim)
        return qn_node_fail(claim->node, QN_E_UNSUPPORTED, "oneDNN cannot run its samples apart");
    return QN_OK;
}

qn_status qn_dnnl_step_prepare(qn_claim *claim)
{
    qn_dnnl_step *s = claim->state;
    QN_TRY(split_samples(s, claim));
    QN_TRY(qn_prim_compile(s->prim));
    claim->scratch = qn_prim_scratch(s->prim);
    if (s->repacks) {
        s->packed_at = (claim->scratch + 63) / 64 * 64;
        claim->scratch = s->packed_at + qn_prim_weight_bytes(s->prim);
    }
    if (s->has_tail) {
        qn_tail_prepare(&s->tail, claim, -1);
        qn_tail_skip(&s->tail, s->n_fused);
    }
    return s->weights ? qn_dnnl_pack(s, claim) : QN_OK;
}

typedef struct bound {
    /* NULL: weights are taken as they are, or packed */
    qn_prim_reorder *reorder;
    /* The number of runs[] made */
    int64_t count;
    qn_prim_run *runs[];
} bound;

static void data_of(qn_prim_data *out, const qn_dnnl_step *s, const qn_step_io *io, size_t sample)
{
    *out = (qn_prim_data){.weights = s->packed, .bias = s->bias, .scratch = io->scratch};
    if (s->spec.weights.rank && !s->packed)
        out->weights = io->in[1]->data;
    if (s->repacks)
        out->weights = (char *)io->scratch + s->packed_at;
    if (s->bias_in >= 0)
        out->bias = io->in[s->bias_in]->data;
    out->src = (const char *)io->in[0]->data + sample * s->src_stride;
    out->dst = (char *)io->out[0]->data + sample * s->dst_stride;
    for (int32_t i = 0; i < s->n_fused; i++) {
        const int32_t o = s->post_operands[i];
        if (o >= 0 && !s->spec.posts[i].is_sum)
            out->operands[i] =
                (const char *)io->in[s->tail.operands[o].in]->data + sample * s->operand_strides[i];
    }
}

qn_status qn_dnnl_step_bind(void **out, const void *state, const qn_step_io *io)
{
    const qn_dnnl_step *s = state;
    bound *b = qn_alloc_zero(io->ctx, 1, sizeof *b + (size_t)s->repeats * sizeof b->runs[0]);
    QN_TRY_ALLOC(io->ctx, b);
    qn_status status = QN_OK;
    if (s->repacks)
        status = qn_prim_reorder_bind(&b->reorder, io->ctx, s->prim, &s->plain);
    for (; status == QN_OK && b->count < s->repeats; b->count++) {
        qn_prim_data data;
        data_of(&data, s, io, (size_t)b->count);
        if (s->repacks && !b->reorder)
            data.weights = io->in[1]->data;
        status = qn_prim_bind(&b->runs[b->count], io->ctx, s->prim, &data);
        if (status != QN_OK)
            break;
    }
    if (status == QN_OK)
        *out = b;
    else
        qn_dnnl_step_unbind(io->ctx, s, b);
    return status;
}

qn_status qn_dnnl_step_run(const void *state, void *own, const qn_step_io *io)
{
    const qn_dnnl_step *s = state;
    const bound *b = own;
    if (b->reorder)
        QN_TRY(
            qn_prim_reorder_run(b->reorder, io->in[1]->data, (char *)io->scratch + s->packed_at));
    for (int64_t i = 0; i < s->repeats; i++) {
        qn_prim_data data;
        data_of(&data, s, io, (size_t)i);
        if (s->repacks && !b->reorder)
            data.weights = io->in[1]->data;
        QN_TRY(qn_prim_execute(b->runs[i], &data));
    }
    if (s->has_tail && s->tail.chain.n_stages > 0)
        qn_tail_run(&s->tail, io->out[0]->data, io);
    return QN_OK;
}

void qn_dnnl_step_unbind(qn_context *ctx, const void *state, void *own)
{
    bound *b = own;
    (void)state;
    for (int64_t i = 0; b && i < b->count; i++)
        qn_prim_unbind(ctx, b->runs[i]);
    if (b)
        qn_prim_reorder_unbind(ctx, b->reorder);
    qn_free(ctx, b);
}

void qn_dnnl_step_free(void *state)
{
    qn_dnnl_step *s = state;
    qn_prim_free(s->prim);
    s->prim = NULL;
}
