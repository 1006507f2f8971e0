/* Convolutions. */
#include <string.h>

#include "import/paddle/paddle.h"

/* The window of a convolution or a pool over its spatial axes. */
typedef struct window {
    size_t n;
    int64_t strides[QN_MAX_RANK], dilations[QN_MAX_RANK];
    /* ONNX's order: all beginnings, then all ends */
    int64_t pads[2 * QN_MAX_RANK];
    bool same;
} window;

static qn_status read_numbers(int64_t *out, const qn_paddle_layer *l, const char *name, size_t n,
                              int64_t least)
{
    const qn_ints ints = qn_paddle_ints(l, name);
    if (ints.count != 0 && ints.count != 1 && ints.count != n)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu %s for %zu axes", ints.count, name, n);
    for (size_t i = 0; i < n; i++) {
        out[i] = ints.count == 0 ? 1 : ints.at[ints.count == 1 ? 0 : i];
        if (out[i] < least || out[i] > INT32_MAX)
            return qn_paddle_fail(l, QN_E_FORMAT, "%s has %lld", name, (long long)out[i]);
    }
    return QN_OK;
}

/* One number per axis, or beginning and end of each; SAME and VALID say it otherwise. */
qn_status qn_paddle_pads(int64_t *pads, bool *same, const qn_paddle_layer *l, size_t n)
{
    const qn_ints ints = qn_paddle_ints(l, "paddings");
    *same = qn_paddle_says(l, "padding_algorithm", "SAME");
    memset(pads, 0, 2 * n * sizeof *pads);
    if (*same || qn_paddle_says(l, "padding_algorithm", "VALID") || ints.count == 0)
        return QN_OK;
    if (ints.count != n && ints.count != 2 * n)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu paddings for %zu axes", ints.count, n);
    for (size_t i = 0; i < n; i++) {
        pads[i] = ints.count == n ? ints.at[i] : ints.at[2 * i];
        pads[n + i] = ints.count == n ? ints.at[i] : ints.at[2 * i + 1];
        if (pads[i] < 0 || pads[n + i] < 0 || pads[i] > INT32_MAX || pads[n + i] > INT32_MAX)
            return qn_paddle_fail(l, QN_E_FORMAT, "paddings below 0 or too large");
    }
    return QN_OK;
}

/* SAME goes with a dilation of 1, whatever the attribute says. */
static qn_status read_window(window *w, const qn_paddle_layer *l, int32_t rank)
{
    *w = (window){.n = (size_t)rank - 2};
    QN_TRY(read_numbers(w->strides, l, "strides", w->n, 1));
    QN_TRY(read_numbers(w->dilations, l, "dilations", w->n, 1));
    QN_TRY(qn_paddle_pads(w->pads, &w->same, l, w->n));
    for (size_t i = 0; w->same && i < w->n; i++)
        w->dilations[i] = 1;
    return QN_OK;
}

static qn_status read_inputs(qn_value **x, qn_value **filter, int32_t *rank,
                             const qn_paddle_layer *l)
{
    int32_t other;
    QN_TRY(qn_paddle_in(x, l, "Input"));
    QN_TRY(qn_paddle_in(filter, l, "Filter"));
    QN_TRY(qn_paddle_to_first(x, l));
    QN_TRY(qn_paddle_rank(rank, l, *x));
    QN_TRY(qn_paddle_rank(&other, l, *filter));
    if (*rank < 3 || other != *rank)
        return qn_paddle_fail(l, QN_E_FORMAT, "its input has rank %d, its filter %d", *rank, other);
    return QN_OK;
}

qn_status qn_paddle_conv(qn_paddle_layer *l)
{
    qn_value *x, *filter, *bias, *y;
    int32_t rank;
    window w;
    QN_TRY(read_inputs(&x, &filter, &rank, l));
    QN_TRY(qn_paddle_maybe(&bias, l, "Bias"));
    QN_TRY(read_window(&w, l, rank));
    qn_graph_build_attrs attrs = QN_WITH(
        QN_A_INT_LIST("strides", w.strides, w.n), QN_A_INT_LIST("dilations", w.dilations, w.n),
        QN_A_TEXT("auto_pad", w.same ? "SAME_UPPER" : "NOTSET"),
        QN_A_INT("group", qn_paddle_int(l, "groups", 1)), QN_A_INT_LIST("pads", w.pads, 2 * w.n));
    attrs.count -= w.same; /* with auto_pad there must be no pads */
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Conv, QN_INPUTS(x, filter, bias), attrs));
    QN_TRY(qn_paddle_from_first(&y, l));
    return qn_paddle_out(l, "Output", y);
}

/* ---- Transposed ------------------------------------------------------------------------------ */

/* The padding of SAME follows from the input's size, as for a convolution. */
static qn_status same_pads(window *w, const qn_paddle_layer *l, const qn_value *x,
                           const qn_value *filter)
{
    for (size_t i = 0; w->same && i < w->n; i++) {
        const int64_t size = x->type.dims[2 + i].value, kernel = filter->type.dims[2 + i].value;
        if (size < 0 || kernel < 0)
            return qn_paddle_fail(l, QN_E_UNSUPPORTED, "SAME for an input of unknown size");
        const int64_t outputs = (size + w->strides[i] - 1) / w->strides[i];
        const int64_t total = QN_MAX((outputs - 1) * w->strides[i] + kernel - size, INT64_C(0));
        w->pads[i] = total / 2;
        w->pads[w->n + i] = total - total / 2;
    }
    return QN_OK;
}

/* output_padding, or what is missing to output_size. */
static qn_status output_padding(int64_t *out, const window *w, const qn_paddle_layer *l,
                                const qn_value *x, const qn_value *filter)
{
    const qn_ints given = qn_paddle_ints(l, "output_padding");
    qn_ints sizes;
    QN_TRY(qn_paddle_list(&sizes, l, "output_size"));
    for (size_t i = 0; i < w->n; i++) {
        const int64_t size = x->type.dims[2 + i].value, kernel = filter->type.dims[2 + i].value;
        out[i] = given.count == w->n ? given.at[i] : given.count == 1 ? given.at[0] : 0;
        if (sizes.count == w->n && (size < 0 || kernel < 0))
            return qn_paddle_fail(l, QN_E_UNSUPPORTED, "output_size for an input of unknown size");
        if (sizes.count == w->n)
            out[i] = sizes.at[i] - ((size - 1) * w->strides[i] - w->pads[i] - w->pads[w->n + i] +
                                    w->dilations[i] * (kernel - 1) + 1);
        if (out[i] < 0 || out[i] >= QN_MAX(w->strides[i], w->dilations[i]))
            return qn_paddle_fail(l, QN_E_FORMAT, "output padding of %lld", (long long)out[i]);
    }
    return QN_OK;
}

qn_status qn_paddle_conv_transpose(qn_paddle_layer *l)
{
    qn_value *x, *filter, *bias, *y;
    int64_t extra[QN_MAX_RANK];
    int32_t rank;
    window w;
    QN_TRY(read_inputs(&x, &filter, &rank, l));
    QN_TRY(qn_paddle_maybe(&bias, l, "Bias"));
    QN_TRY(read_window(&w, l, rank));
    QN_TRY(same_pads(&w, l, x, filter));
    QN_TRY(output_padding(extra, &w, l, x, filter));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_ConvTranspose, QN_INPUTS(x, filter, bias),
                          QN_WITH(QN_A_INT_LIST("strides", w.strides, w.n),
                                  QN_A_INT_LIST("dilations", w.dilations, w.n),
                                  QN_A_INT_LIST("pads", w.pads, 2 * w.n),
                                  QN_A_INT_LIST("output_padding", extra, w.n),
                                  QN_A_INT("group", qn_paddle_int(l, "groups", 1)))));
    QN_TRY(qn_paddle_from_first(&y, l));
    return qn_paddle_out(l, "Output", y);
}

/* ---- Deformable ------------------------------------------------------------------------------ */

/* Version 1 has no mask. The offsets of both stand in pairs (y, x), as ONNX has them. */
qn_status qn_paddle_deformable_conv(qn_paddle_layer *l)
{
    qn_value *x, *filter, *offset, *mask, *y;
    int32_t rank;
    window w;
    QN_TRY(read_inputs(&x, &filter, &rank, l));
    QN_TRY(qn_paddle_in(&offset, l, "Offset"));
    QN_TRY(qn_paddle_maybe(&mask, l, "Mask"));
    QN_TRY(read_window(&w, l, rank));
    QN_TRY(qn_graph_build(
        &y, l->b, &qn_op_DeformConv, QN_INPUTS(x, filter, offset, NULL, mask),
        QN_WITH(QN_A_INT_LIST("strides", w.strides, w.n),
                QN_A_INT_LIST("dilations", w.dilations, w.n),
                QN_A_INT_LIST("pads", w.pads, 2 * w.n),
                QN_A_INT("group", qn_paddle_int(l, "groups", 1)),
                QN_A_INT("offset_group", qn_paddle_int(l, "deformable_groups", 1)))));
    return qn_paddle_out(l, "Output", y);
}
