/* Parts of oneDNN's primitives: descriptors of memory and what is fused behind a result. */
#include "backend/dnnl/prim_parts.h"

#include <string.h>

/* ---- Descriptors ----------------------------------------------------------------------------- */

static dnnl_format_tag_t tag_of(qn_layout layout, int32_t rank)
{
    static const struct {
        qn_layout layout;
        /* The tags of ranks 3, 4 and 5 */
        dnnl_format_tag_t by_rank[3];
    } tags[] = {
        {{QN_LAYOUT_ROWS, 0}, {dnnl_abc, dnnl_abcd, dnnl_abcde}},
        {{QN_LAYOUT_CHANNELS_LAST, 0}, {dnnl_acb, dnnl_acdb, dnnl_acdeb}},
        {{QN_LAYOUT_BLOCKED, 8}, {dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b}},
        {{QN_LAYOUT_BLOCKED, 16}, {dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b}},
    };
    for (size_t i = 0; i < QN_COUNT_OF(tags); i++) {
        if (qn_layout_same(tags[i].layout, layout) && rank >= 3 && rank <= 5)
            return tags[i].by_rank[rank - 3];
    }
    return rank == 1 ? dnnl_a : dnnl_ab;
}

dnnl_status_t qn_prim_md(qn_md *out, const qn_prim_tensor *t)
{
    static const qn_md none;
    if (t->rank == 0) {
        *out = none;
        return dnnl_success;
    }
    const dnnl_format_tag_t tag =
        t->format == QN_PRIM_ANY ? dnnl_format_tag_any : tag_of(t->layout, t->rank);
    return qn_md_make(out, t->rank, t->dims, t->format == QN_PRIM_STEPS ? t->steps : NULL, tag);
}

dnnl_status_t qn_prim_tensors(qn_onednn_tensors *out, const qn_prim_spec *spec)
{
    memset(out, 0, sizeof *out); /* all of them empty */
    const qn_prim_tensor *from[] = {&spec->src, &spec->weights, &spec->bias, &spec->dst};
    qn_md *to[] = {&out->src, &out->weights, &out->bias, &out->dst};
    for (size_t i = 0; i < QN_COUNT_OF(from); i++) {
        const dnnl_status_t status = qn_prim_md(to[i], from[i]);
        if (status != dnnl_success)
            return status;
    }
    return dnnl_success;
}

void qn_prim_tensors_drop(qn_onednn_tensors *t)
{
    qn_md_drop(&t->src);
    qn_md_drop(&t->weights);
    qn_md_drop(&t->bias);
    qn_md_drop(&t->dst);
}

/* ---- Posts ----------------------------------------------------------------------------------- */

typedef enum post_kind {
    POST_NONE,
    /* Alpha 0 */
    POST_ZERO,
    /* Alpha a */
    POST_A,
    /* Alpha a, beta b */
    POST_A_B,
    /* Alpha 1, beta a */
    POST_ONE_A,
    /* A x + b, then within 0 and 1 */
    POST_GATE,
    /* Hard swish */
    POST_HARD,
    /* A second tensor */
    POST_OPERAND
} post_kind;

/* Functions that need an exponential are not here: oneDNN's cost more inside than a pass of our
 * own. */
static const struct {
    post_kind kind;
    dnnl_alg_kind_t alg;
} post_table[QN_FN_COUNT] = {
    [QN_FN_RELU] = {POST_ZERO, dnnl_eltwise_relu},
    [QN_FN_LEAKY_RELU] = {POST_A, dnnl_eltwise_relu},
    [QN_FN_CLIP] = {POST_A_B, dnnl_eltwise_clip},
    [QN_FN_LINEAR] = {POST_A_B, dnnl_eltwise_linear},
    [QN_FN_SCALE] = {POST_A, dnnl_eltwise_linear},
    [QN_FN_SHIFT] = {POST_ONE_A, dnnl_eltwise_linear},
    [QN_FN_ABS] = {POST_ZERO, dnnl_eltwise_abs},
    [QN_FN_SQUARE] = {POST_ZERO, dnnl_eltwise_square},
    [QN_FN_HARD_SIGMOID] = {POST_GATE, dnnl_eltwise_linear},
    [QN_FN_HARD_SWISH] = {POST_HARD, dnnl_eltwise_hardswish},
    [QN_FN_ADD] = {POST_OPERAND, dnnl_binary_add},
    [QN_FN_SUB] = {POST_OPERAND, dnnl_binary_sub},
    [QN_FN_MUL] = {POST_OPERAND, dnnl_binary_mul},
    [QN_FN_MAX] = {POST_OPERAND, dnnl_binary_max},
    [QN_FN_MIN] = {POST_OPERAND, dnnl_binary_min},
};

static bool uses(const qn_stage *stage, dnnl_alg_kind_t alg)
{
    return post_table[stage->fn].alg == alg ||
           (post_table[stage->fn].kind == POST_GATE && alg == dnnl_eltwise_clip);
}

/* The posts have the same function: oneDNN 2.6 does both with the parameters of one. */
static bool clashes(const qn_stage *a, const qn_stage *b)
{
    const bool with_operand = post_table[a->fn].kind == POST_OPERAND;
    return !with_operand && (uses(b, post_table[a->fn].alg) || uses(a, post_table[b->fn].alg));
}

bool qn_prim_fuses(const qn_prim_spec *spec, const qn_stage *stage)
{
    if (spec->n_posts == QN_PRIM_POSTS || post_table[stage->fn].kind == POST_NONE)
        return false;
    for (int32_t i = 0; i < spec->n_posts; i++) {
        if (clashes(&spec->posts[i].stage, stage))
            return false;
    }
    return true;
}

static dnnl_status_t append_binary(dnnl_post_ops_t posts, dnnl_alg_kind_t alg,
                                   const qn_prim_tensor *operand)
{
    qn_md md;
    dnnl_status_t status = qn_prim_md(&md, operand);
    if (status == dnnl_success)
        status = dnnl_post_ops_append_binary(posts, alg, qn_md_get(&md));
    qn_md_drop(&md);
    return status;
}

static dnnl_status_t append_post(dnnl_post_ops_t posts, const qn_prim_post *post)
{
    const qn_stage *s = &post->stage;
    const dnnl_alg_kind_t alg = post_table[s->fn].alg;
    if (post->is_sum)
        return qn_onednn_post_sum(posts);
    switch (post_table[s->fn].kind) {
    case POST_ZERO: return qn_onednn_post_eltwise(posts, alg, 0, 0);
    case POST_A: return qn_onednn_post_eltwise(posts, alg, s->a, 0);
    case POST_A_B: return qn_onednn_post_eltwise(posts, alg, s->a, s->b);
    case POST_ONE_A: return qn_onednn_post_eltwise(posts, alg, 1, s->a);
    case POST_HARD: return qn_onednn_post_hard_swish(posts);
    case POST_OPERAND: return append_binary(posts, alg, &post->operand);
    case POST_GATE: {
        const dnnl_status_t status = qn_onednn_post_eltwise(posts, alg, s->a, s->b);
        if (status != dnnl_success)
            return status;
        return qn_onednn_post_eltwise(posts, dnnl_eltwise_clip, 0, 1);
    }
    case POST_NONE: break;
    }
    return dnnl_unimplemented;
}

/* [1, filters, 1...] */
static dnnl_status_t append_bias(dnnl_post_ops_t posts, qn_prim_posts *placed,
                                 const qn_prim_spec *spec)
{
    const qn_prim_tensor bias = {.rank = spec->dst.rank, .dims = {1, spec->bias.dims[0], 1, 1, 1}};
    placed->bias = dnnl_post_ops_len(posts);
    return append_binary(posts, dnnl_binary_add, &bias);
}

/* The bias comes before all other posts but a sum, which oneDNN wants first. */
static dnnl_status_t append_posts(dnnl_post_ops_t posts, qn_prim_posts *placed,
                                  const qn_prim_spec *spec, bool late_bias)
{
    placed->count = spec->n_posts;
    placed->bias = -1;
    const int32_t place = spec->n_posts > 0 && spec->posts[0].is_sum ? 1 : 0;
    for (int32_t i = 0; i < spec->n_posts; i++) {
        if (late_bias && i == place && append_bias(posts, placed, spec) != dnnl_success)
            return dnnl_unimplemented;
        placed->at[i].index = dnnl_post_ops_len(posts);
        placed->at[i].has_operand = spec->posts[i].operand.rank > 0 && !spec->posts[i].is_sum;
        const dnnl_status_t status = append_post(posts, &spec->posts[i]);
        if (status != dnnl_success)
            return status;
    }
    return late_bias && place == spec->n_posts ? append_bias(posts, placed, spec) : dnnl_success;
}

dnnl_status_t qn_prim_attr(dnnl_primitive_attr_t *out, qn_prim_posts *placed,
                           const qn_prim_spec *spec, bool late_bias)
{
    dnnl_post_ops_t posts = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_post_ops_create(&posts);
    if (status == dnnl_success)
        status = append_posts(posts, placed, spec, late_bias);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*out, posts);
    if (posts)
        dnnl_post_ops_destroy(posts);
    return status;
}
