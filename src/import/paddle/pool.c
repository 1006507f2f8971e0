/* Pools. */
#include <string.h>

#include "import/paddle/paddle.h"

typedef struct pool {
    bool max, global, adaptive, ceil, exclusive, same;
    size_t n;
    /* The window, or the sizes that an adaptive pool gives */
    qn_ints kernel;
    int64_t strides[QN_MAX_RANK], pads[2 * QN_MAX_RANK];
} pool;

static qn_status read_pool(pool *p, const qn_paddle_layer *l, int32_t rank)
{
    const qn_ints strides = qn_paddle_ints(l, "strides");
    *p = (pool){.n = (size_t)rank - 2};
    p->max = !qn_paddle_says(l, "pooling_type", "avg");
    p->global = qn_paddle_int(l, "global_pooling", 0) != 0;
    p->adaptive = qn_paddle_int(l, "adaptive", 0) != 0;
    p->ceil = qn_paddle_int(l, "ceil_mode", 0) != 0;
    p->exclusive = qn_paddle_int(l, "exclusive", 1) != 0;
    QN_TRY(qn_paddle_list(&p->kernel, l, "ksize kernel_size"));
    if (rank < 3 || (!p->global && p->kernel.count != p->n))
        return qn_paddle_fail(l, QN_E_FORMAT, "a window of %zu sizes for rank %d", p->kernel.count,
                              rank);
    bool ones = true;
    for (size_t i = 0; i < p->n && !p->global; i++) {
        p->strides[i] = strides.count == p->n ? strides.at[i] : 1;
        ones = ones && p->kernel.at[i] == 1;
        if (p->kernel.at[i] < 1 || p->kernel.at[i] > INT32_MAX || p->strides[i] < 1 ||
            p->strides[i] > INT32_MAX)
            return qn_paddle_fail(l, QN_E_FORMAT, "a window or stride below 1, or too large");
    }
    p->global = p->global || (p->adaptive && ones);
    return qn_paddle_pads(p->pads, &p->same, l, p->n);
}

static qn_status all_axes(qn_value **out, const qn_paddle_layer *l, const pool *p, qn_value *x)
{
    return qn_paddle_make(out, l, p->max ? &qn_op_GlobalMaxPool : &qn_op_GlobalAveragePool, x);
}

/* ---- Adaptive -------------------------------------------------------------------------------- */

/* Bin i of `bins` over `size` numbers is [i * size / bins, ceil((i + 1) * size / bins)); bins are
 * rectangles, so axes can be done one after the other. */
static qn_status adapt_axis(qn_value **x, const qn_paddle_layer *l, const pool *p, size_t i)
{
    enum { MOST_BINS = 256 };
    const int64_t axis = 2 + (int64_t)i, size = (*x)->type.dims[axis].value, bins = p->kernel.at[i];
    qn_value *parts[MOST_BINS], *axes;
    if (size < 0 || bins > MOST_BINS)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED,
                              "adaptive to %lld for an input of unknown size, or to more than %d",
                              (long long)bins, MOST_BINS);
    if (size == bins)
        return QN_OK;
    QN_TRY(qn_graph_build_ints(&axes, l->b, &axis, 1));
    for (int64_t k = 0; k < bins; k++) {
        QN_TRY(qn_paddle_slice(&parts[k], l, *x, axis, k * size / bins,
                               ((k + 1) * size + bins - 1) / bins));
        QN_TRY(qn_paddle_make2(&parts[k], l, p->max ? &qn_op_ReduceMax : &qn_op_ReduceMean,
                               parts[k], axes));
    }
    return qn_paddle_concat(x, l, parts, (size_t)bins, axis);
}

/* True where the bins are windows of one size beside one another. */
static bool is_even(const pool *p, const qn_value *x)
{
    bool even = true;
    for (size_t i = 0; even && i < p->n; i++) {
        const int64_t size = x->type.dims[2 + i].value;
        even = size > 0 && size % p->kernel.at[i] == 0;
    }
    return even;
}

static qn_status adapt(qn_value **out, const qn_paddle_layer *l, const pool *p, qn_value *x)
{
    int64_t window[QN_MAX_RANK];
    *out = x;
    for (size_t i = 0; i < p->n && !is_even(p, x); i++)
        QN_TRY(adapt_axis(out, l, p, i));
    if (*out != x || !is_even(p, x))
        return QN_OK;
    for (size_t i = 0; i < p->n; i++)
        window[i] = x->type.dims[2 + i].value / p->kernel.at[i];
    return qn_graph_build(out, l->b, p->max ? &qn_op_MaxPool : &qn_op_AveragePool, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("kernel_shape", window, p->n),
                                  QN_A_INT_LIST("strides", window, p->n)));
}

/* ---- Windows --------------------------------------------------------------------------------- */

static qn_status slide(qn_value **out, const qn_paddle_layer *l, const pool *p, qn_value *x)
{
    qn_graph_build_attrs attrs =
        QN_WITH(QN_A_INT_LIST("kernel_shape", p->kernel.at, p->n),
                QN_A_INT_LIST("strides", p->strides, p->n),
                QN_A_TEXT("auto_pad", p->same ? "SAME_UPPER" : "NOTSET"),
                QN_A_INT("ceil_mode", p->ceil), QN_A_INT_LIST("pads", p->pads, 2 * p->n));
    attrs.count -= p->same; /* with auto_pad there must be no pads */
    return qn_graph_build(out, l->b, p->max ? &qn_op_MaxPool : &qn_op_AveragePool, QN_INPUTS(x),
                          attrs);
}

/* A mean that counts the zeros around: they are put there first. What rounding up adds beyond them
 * does not count. */
static qn_status slide_with_zeros(qn_value **out, const qn_paddle_layer *l, pool *p, qn_value *x)
{
    int64_t pads[2 * QN_MAX_RANK] = {0};
    const size_t rank = p->n + 2;
    qn_value *list;
    for (size_t i = 0; i < p->n; i++) {
        if (p->pads[i] != p->pads[p->n + i])
            return qn_paddle_fail(l, QN_E_UNSUPPORTED,
                                  "a mean that counts zeros of uneven padding");
        pads[2 + i] = p->pads[i];
        pads[rank + 2 + i] = p->pads[p->n + i];
        p->pads[i] = p->pads[p->n + i] = 0;
    }
    QN_TRY(qn_graph_build_ints(&list, l->b, pads, 2 * rank));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Pad, x, list));
    return slide(out, l, p, x);
}

static bool is_padded(const pool *p)
{
    bool padded = false;
    for (size_t i = 0; i < 2 * p->n; i++)
        padded = padded || p->pads[i] > 0;
    return padded;
}

qn_status qn_paddle_pool(qn_paddle_layer *l)
{
    qn_value *x, *y;
    int32_t rank;
    pool p;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(read_pool(&p, l, rank));
    if (p.global)
        QN_TRY(all_axes(&y, l, &p, x));
    else if (p.adaptive)
        QN_TRY(adapt(&y, l, &p, x));
    else if (!p.max && !p.exclusive && !p.same && is_padded(&p))
        QN_TRY(slide_with_zeros(&y, l, &p, x));
    else
        QN_TRY(slide(&y, l, &p, x));
    QN_TRY(qn_paddle_from_first(&y, l));
    return qn_paddle_out(l, "Out", y);
}

/* Indices count within a picture, ONNX's within the whole tensor. */
qn_status qn_paddle_max_pool_with_index(qn_paddle_layer *l)
{
    static const int64_t first[] = {0};
    qn_value *x, *made[2], *size, *axes;
    int32_t rank;
    pool p;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(read_pool(&p, l, rank));
    p.max = true;
    if (p.adaptive || p.global) {
        if (qn_paddle_wants(l, "Mask"))
            return qn_paddle_fail(l, QN_E_UNSUPPORTED, "indices of an adaptive or global pool");
        QN_TRY(p.global ? all_axes(&made[0], l, &p, x) : adapt(&made[0], l, &p, x));
        return qn_paddle_out(l, "Out", made[0]);
    }
    QN_TRY(qn_graph_build_several(made, 2, l->b, &qn_op_MaxPool, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT_LIST("kernel_shape", p.kernel.at, p.n),
                                          QN_A_INT_LIST("strides", p.strides, p.n),
                                          QN_A_INT_LIST("pads", p.pads, 2 * p.n),
                                          QN_A_INT("ceil_mode", p.ceil))));
    QN_TRY(qn_graph_build(&size, l->b, &qn_op_Shape, QN_INPUTS(x), QN_WITH(QN_A_INT("start", 2))));
    QN_TRY(qn_graph_build_ints(&axes, l->b, first, 1));
    QN_TRY(qn_paddle_make2(&size, l, &qn_op_ReduceProd, size, axes));
    QN_TRY(qn_paddle_make2(&made[1], l, &qn_op_Mod, made[1], size));
    QN_TRY(qn_paddle_cast(&made[1], l, made[1], QN_INT32));
    QN_TRY(qn_paddle_out(l, "Mask", made[1]));
    return qn_paddle_out(l, "Out", made[0]);
}
