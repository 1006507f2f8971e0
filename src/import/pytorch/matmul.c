/* Products of matrices and attention. */
#include <math.h>
#include <string.h>

#include "import/pytorch/aten.h"

/* ---- Products -------------------------------------------------------------------------------- */

/* x W^T + b: one node for matrices, a product with the transposed weights else. */
static qn_status linear(qn_value **out, qn_aten_call *c, qn_value *x, qn_value *w, qn_value *bias)
{
    int32_t rank;
    c->t->hint = (qn_type){.kind = QN_TYPE_TENSOR,
                           .dtype = QN_FLOAT32,
                           .rank = 2,
                           .dims = {qn_dim_unknown(), w->type.dims[w->type.rank - 1]}};
    QN_TRY(qn_torch_rank(&rank, c->t, x));
    if (rank == 2 && w->type.rank == 2)
        return qn_graph_build(
            out, c->b, &qn_op_Gemm,
            (qn_graph_build_inputs){(qn_value *const[]){x, w, bias}, bias ? 3 : 2},
            QN_WITH(QN_A_INT("transB", 1)));
    if (w->type.rank == 2)
        QN_TRY(qn_aten_transpose(&w, c, w, 0, 1));
    QN_TRY(qn_aten_binary_node(out, c, &qn_op_MatMul, x, w));
    return bias ? qn_aten_binary_node(out, c, &qn_op_Add, *out, bias) : QN_OK;
}

qn_status qn_aten_linear(qn_aten_call *c)
{
    qn_value *x, *w, *bias;
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_tensor(&w, c, "weight"));
    QN_TRY(qn_aten_optional(&bias, c, "bias"));
    if (w->type.rank < 1)
        return qn_aten_unsupported(c, "its weights have no axes");
    QN_TRY(linear(&x, c, x, w, bias));
    return qn_aten_return(c, x);
}

qn_status qn_aten_matmul(qn_aten_call *c)
{
    qn_value *a, *b;
    QN_TRY(qn_aten_tensor(&a, c, "self"));
    QN_TRY(qn_aten_tensor(&b, c, "other"));
    QN_TRY(qn_aten_binary_node(&a, c, &qn_op_MatMul, a, b));
    return qn_aten_return(c, a);
}

/* beta self + alpha mat1 mat2, of matrices in one node. */
qn_status qn_aten_addmm(qn_aten_call *c)
{
    const bool matrices = strcmp(c->op->name, "addmm") == 0;
    qn_value *x, *a, *b, *y;
    double beta, alpha;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_tensor(&a, c, "mat1"));
    QN_TRY(qn_aten_tensor(&b, c, "mat2"));
    QN_TRY(qn_aten_real(&beta, c, "beta"));
    QN_TRY(qn_aten_real(&alpha, c, "alpha"));
    if (matrices) {
        QN_TRY(qn_graph_build(
            &y, c->b, &qn_op_Gemm, QN_INPUTS(a, b, x),
            QN_WITH(QN_A_REAL("alpha", (float)alpha), QN_A_REAL("beta", (float)beta))));
        return qn_aten_return(c, y);
    }
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_MatMul, a, b));
    if (alpha != 1)
        QN_TRY(qn_aten_with_number(&y, c, &qn_op_Mul, y, alpha));
    if (beta != 1)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Mul, x, beta));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Add, x, y));
    return qn_aten_return(c, y);
}

qn_status qn_aten_outer(qn_aten_call *c)
{
    qn_value *a, *b;
    QN_TRY(qn_aten_tensor(&a, c, "self"));
    QN_TRY(qn_aten_tensor(&b, c, "vec2"));
    QN_TRY(qn_aten_unsqueeze(&a, c, a, 1));
    QN_TRY(qn_aten_unsqueeze(&b, c, b, 0));
    QN_TRY(qn_aten_binary_node(&a, c, &qn_op_Mul, a, b));
    return qn_aten_return(c, a);
}

qn_status qn_aten_einsum(qn_aten_call *c)
{
    const qn_torch_value *equation = qn_aten_value(c, "equation");
    qn_value **tensors, *y;
    size_t count;
    if (equation->kind != QN_TORCH_TEXT)
        return qn_aten_unsupported(c, "its equation is not known");
    QN_TRY(qn_aten_tensors(&tensors, &count, c, "tensors"));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_Einsum, (qn_graph_build_inputs){tensors, count},
                          QN_WITH(QN_A_TEXT("equation", equation->text))));
    return qn_aten_return(c, y);
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* What stands for minus infinity in scores: with it a row of nothing but masked scores stays a row
 * of numbers. */
#define MASKED (-1e30)

/* True where a query may look: itself and what is before. */
static qn_status causal_mask(qn_value **out, qn_aten_call *c, qn_value *scores, int32_t rank)
{
    qn_torch_value dims[2];
    qn_value *shape, *one;
    QN_TRY(qn_torch_dim(&dims[0], c->t, scores, rank - 2));
    QN_TRY(qn_torch_dim(&dims[1], c->t, scores, rank - 1));
    QN_TRY(qn_torch_shape(&shape, c->t, dims, 2));
    QN_TRY(qn_torch_number(&one, c->t, QN_INT32, 0, 1));
    QN_TRY(qn_aten_binary_node(&one, c, &qn_op_Expand, one, shape));
    QN_TRY(qn_graph_build(&one, c->b, &qn_op_Trilu, QN_INPUTS(one), QN_WITH(QN_A_INT("upper", 0))));
    return qn_aten_cast(out, c, one, QN_BOOL);
}

/* A mask of truths says where one may look, a mask of reals is added. */
static qn_status mask_scores(qn_value **out, qn_aten_call *c, qn_value *scores, qn_value *mask)
{
    qn_value *masked;
    *out = scores;
    if (!mask)
        return QN_OK;
    if (qn_dtype_of(mask) != QN_BOOL)
        return qn_aten_binary_node(out, c, &qn_op_Add, scores, mask);
    QN_TRY(qn_aten_number_like(&masked, c, scores, MASKED));
    return qn_graph_build(out, c->b, &qn_op_Where, QN_INPUTS(mask, scores, masked), QN_PLAIN);
}

/* softmax(scale q k^T + mask) v over the last two axes. */
static qn_status attend(qn_value **out, qn_aten_call *c, qn_value *const *qkv, qn_value *mask,
                        double scale)
{
    qn_value *scores, *keys;
    int32_t rank;
    QN_TRY(qn_torch_rank(&rank, c->t, qkv[1]));
    if (rank < 2)
        return qn_aten_unsupported(c, "its keys have %d axes", rank);
    QN_TRY(qn_aten_transpose(&keys, c, qkv[1], rank - 2, rank - 1));
    QN_TRY(qn_aten_with_number(&scores, c, &qn_op_Mul, qkv[0], scale));
    QN_TRY(qn_aten_binary_node(&scores, c, &qn_op_MatMul, scores, keys));
    if (!mask && qn_aten_flag(c, "is_causal"))
        QN_TRY(causal_mask(&mask, c, scores, rank));
    QN_TRY(mask_scores(&scores, c, scores, mask));
    QN_TRY(qn_graph_build(&scores, c->b, &qn_op_Softmax, QN_INPUTS(scores),
                          QN_WITH(QN_A_INT("axis", -1))));
    return qn_aten_binary_node(out, c, &qn_op_MatMul, scores, qkv[2]);
}

qn_status qn_aten_attention(qn_aten_call *c)
{
    qn_value *qkv[3], *mask, *results[2] = {NULL, NULL};
    int32_t rank;
    double scale;
    QN_TRY(qn_aten_ranked(&qkv[0], &rank, c, "query"));
    QN_TRY(qn_aten_tensor(&qkv[1], c, "key"));
    QN_TRY(qn_aten_tensor(&qkv[2], c, "value"));
    QN_TRY(qn_aten_optional(&mask, c, "attn_mask"));
    if (qn_aten_flag(c, "enable_gqa"))
        return qn_aten_unsupported(c, "queries that share their keys");
    const int64_t width = rank > 0 ? qkv[0]->type.dims[rank - 1].value : -1;
    if (qn_aten_has(c, "scale"))
        QN_TRY(qn_aten_real(&scale, c, "scale"));
    else if (width > 0)
        scale = 1 / sqrt((double)width);
    else
        return qn_aten_unsupported(c, "the width of its heads is not known");
    QN_TRY(attend(&results[0], c, qkv, mask, scale));
    return c->op->name[0] == '_' ? qn_aten_return_tuple(c, results, 2)
                                 : qn_aten_return(c, results[0]);
}

/* ---- Layers of transformers in one operator -------------------------------------------------- */

/* [N, L, heads x width] to [N, heads, L, width]. */
static qn_status split_heads(qn_value **out, qn_aten_call *c, qn_value *x, int64_t heads)
{
    QN_TRY(qn_aten_reshape(&x, c, x, (const int64_t[]){0, 0, heads, -1}, 4));
    return qn_aten_transpose(out, c, x, 1, 2);
}

/* One part of the weights of queries, keys and values, which stand in one matrix. */
static qn_status project(qn_value **out, qn_aten_call *c, qn_value *x, int64_t part, int64_t width)
{
    qn_value *w, *bias;
    QN_TRY(qn_aten_tensor(&w, c, "qkv_weight"));
    QN_TRY(qn_aten_tensor(&bias, c, "qkv_bias"));
    QN_TRY(qn_aten_slice(&w, c, w, 0, part * width, (part + 1) * width));
    QN_TRY(qn_aten_slice(&bias, c, bias, 0, part * width, (part + 1) * width));
    return linear(out, c, x, w, bias);
}

static qn_status self_attention(qn_value **out, qn_aten_call *c, qn_value *const *from)
{
    qn_value *qkv[3], *y, *w, *bias;
    int64_t width, heads;
    QN_TRY(qn_aten_int(&width, c, "embed_dim"));
    QN_TRY(qn_aten_int(&heads, c, "num_heads"));
    if (qn_aten_has(c, "mask"))
        return qn_aten_unsupported(c, "a mask");
    if (width < 1 || heads < 1 || width > INT32_MAX)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "it has no heads");
    for (int64_t i = 0; i < 3; i++) {
        QN_TRY(project(&qkv[i], c, from[i], i, width));
        QN_TRY(split_heads(&qkv[i], c, qkv[i], heads));
    }
    QN_TRY(attend(&y, c, qkv, NULL, 1 / sqrt((double)width / (double)heads)));
    QN_TRY(qn_aten_transpose(&y, c, y, 1, 2));
    QN_TRY(qn_aten_reshape(&y, c, y, (const int64_t[]){0, 0, width}, 3));
    QN_TRY(qn_aten_tensor(&w, c, "proj_weight"));
    QN_TRY(qn_aten_tensor(&bias, c, "proj_bias"));
    return linear(out, c, y, w, bias);
}

qn_status qn_aten_multi_head_attention(qn_aten_call *c)
{
    qn_value *from[3], *results[2] = {NULL, NULL};
    QN_TRY(qn_aten_tensor(&from[0], c, "query"));
    QN_TRY(qn_aten_tensor(&from[1], c, "key"));
    QN_TRY(qn_aten_tensor(&from[2], c, "value"));
    QN_TRY(self_attention(&results[0], c, from));
    return qn_aten_return_tuple(c, results, 2);
}

static qn_status layer_norm(qn_value **out, qn_aten_call *c, qn_value *x, bool second)
{
    qn_value *w, *bias;
    double eps;
    QN_TRY(qn_aten_tensor(&w, c, second ? "norm_weight_2" : "norm_weight_1"));
    QN_TRY(qn_aten_tensor(&bias, c, second ? "norm_bias_2" : "norm_bias_1"));
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    return qn_graph_build(out, c->b, &qn_op_LayerNormalization, QN_INPUTS(x, w, bias),
                          QN_WITH(QN_A_REAL("epsilon", (float)eps), QN_A_INT("axis", -1)));
}

static qn_status feed_forward(qn_value **out, qn_aten_call *c, qn_value *x)
{
    qn_value *w, *bias;
    QN_TRY(qn_aten_tensor(&w, c, "ffn_weight_1"));
    QN_TRY(qn_aten_tensor(&bias, c, "ffn_bias_1"));
    QN_TRY(linear(&x, c, x, w, bias));
    QN_TRY(qn_aten_unary_node(&x, c, qn_aten_flag(c, "use_gelu") ? &qn_op_Gelu : &qn_op_Relu, x));
    QN_TRY(qn_aten_tensor(&w, c, "ffn_weight_2"));
    QN_TRY(qn_aten_tensor(&bias, c, "ffn_bias_2"));
    return linear(out, c, x, w, bias);
}

/* What nn.TransformerEncoderLayer becomes when it is traced in evaluation: normalized before each
 * half, or behind it. */
qn_status qn_aten_encoder_layer(qn_aten_call *c)
{
    const bool first = qn_aten_flag(c, "norm_first");
    qn_value *x, *y;
    QN_TRY(qn_aten_tensor(&x, c, "src"));
    for (int half = 0; half < 2; half++) {
        y = x;
        if (first)
            QN_TRY(layer_norm(&y, c, x, half));
        QN_TRY(half ? feed_forward(&y, c, y) : self_attention(&y, c, (qn_value *const[]){y, y, y}));
        QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Add, x, y));
        if (!first)
            QN_TRY(layer_norm(&x, c, x, half));
    }
    return qn_aten_return(c, x);
}
