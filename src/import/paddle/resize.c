/* Operators that change the size of pictures, and padding. */
#include <string.h>

#include "import/paddle/paddle.h"

/* ---- Resize ---------------------------------------------------------------------------------- */

/* Sizes of the result as attributes, 0 where it has none: the last axes are depth, height,
 * width. */
static size_t fixed_sizes(int64_t *sizes, const qn_paddle_layer *l, size_t n)
{
    static const char *const names[] = {"out_d", "out_h", "out_w"};
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        sizes[i] = qn_paddle_int(l, names[3 - n + i], 0);
        known += sizes[i] > 0;
    }
    return known;
}

/* Factors of the attribute or of a value, for each axis; 0: there is none. */
static qn_status read_factors(float *factors, size_t *count, const qn_paddle_layer *l, size_t n)
{
    const double *list;
    double one;
    *count = 0;
    if (qn_paddle_has(l, "Scale")) {
        QN_TRY(qn_paddle_scalar(&one, l, "Scale", 0));
        list = &one;
        *count = 1;
    } else {
        QN_TRY(qn_paddle_reals(&list, count, l, "scale"));
    }
    if (*count != 0 && *count != 1 && *count != n)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu factors for %zu axes", *count, n);
    for (size_t i = 0; i < n && *count; i++) {
        factors[i] = (float)list[*count == 1 ? 0 : i];
        if (!(factors[i] > 0))
            *count = 0;
    }
    return QN_OK;
}

typedef struct resize {
    size_t n;
    bool corners;
    const char *mode, *coordinates, *nearest;
    /* int64[n] or NULL: the sizes; else the factors */
    qn_value *sizes;
    float factors[3];
} resize;

/* Values of sizes come before factors, those before the attributes. */
static qn_status read_sizes(resize *r, const qn_paddle_layer *l)
{
    int64_t fixed[3];
    size_t factors;
    QN_TRY(qn_paddle_shape(&r->sizes, l, "SizeTensor OutSize"));
    if (r->sizes)
        return QN_OK;
    const size_t known = fixed_sizes(fixed, l, r->n);
    QN_TRY(read_factors(r->factors, &factors, l, r->n));
    if (factors)
        return QN_OK;
    if (known != r->n)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has neither sizes nor factors");
    return qn_graph_build_ints(&r->sizes, l->b, fixed, r->n);
}

static void read_mode(resize *r, const qn_paddle_layer *l)
{
    const char *type = l->op->type;
    const bool nearest = strncmp(type, "nearest", 7) == 0, cubic = strncmp(type, "bicubic", 7) == 0;
    const bool corners = qn_paddle_int(l, "align_corners", 1) != 0;
    const bool half = cubic || qn_paddle_int(l, "align_mode", 1) == 0;
    r->mode = nearest ? "nearest" : cubic ? "cubic" : "linear";
    r->nearest = corners ? "round_prefer_ceil" : "floor";
    r->coordinates = corners ? "align_corners" : half && !nearest ? "half_pixel" : "asymmetric";
}

/* One number for each axis of the picture, ONNX's for all axes: 1 or their own size before. */
static qn_status build(qn_value **out, const qn_paddle_layer *l, const resize *r, qn_value *x)
{
    qn_value *parts[2], *sizes = NULL, *scales = NULL;
    float factors[5] = {1, 1};
    if (r->sizes) {
        QN_TRY(qn_graph_build(&parts[0], l->b, &qn_op_Shape, QN_INPUTS(x),
                              QN_WITH(QN_A_INT("end", 2))));
        parts[1] = r->sizes;
        QN_TRY(qn_paddle_concat(&sizes, l, parts, 2, 0));
    } else {
        memcpy(factors + 2, r->factors, r->n * sizeof *factors);
        QN_TRY(qn_graph_build_reals(&scales, l->b, factors, 2 + r->n));
    }
    return qn_graph_build(out, l->b, &qn_op_Resize, QN_INPUTS(x, NULL, scales, sizes),
                          QN_WITH(QN_A_TEXT("mode", r->mode),
                                  QN_A_TEXT("coordinate_transformation_mode", r->coordinates),
                                  QN_A_TEXT("nearest_mode", r->nearest)));
}

qn_status qn_paddle_interp(qn_paddle_layer *l)
{
    qn_value *x;
    int32_t rank;
    resize r = {0};
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (rank < 3 || rank > 5)
        return qn_paddle_fail(l, QN_E_FORMAT, "a picture of rank %d", rank);
    r.n = (size_t)rank - 2;
    QN_TRY(read_sizes(&r, l));
    read_mode(&r, l);
    QN_TRY(build(&x, l, &r, x));
    QN_TRY(qn_paddle_from_first(&x, l));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Channels and places --------------------------------------------------------------------- */

qn_status qn_paddle_pixel_shuffle(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_DepthToSpace, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("blocksize", qn_paddle_int(l, "upscale_factor", 1)),
                                  QN_A_TEXT("mode", "CRD"))));
    QN_TRY(qn_paddle_from_first(&x, l));
    return qn_paddle_out(l, "Out", x);
}

/* A picture [N, C, H, W] whose last three dimensions are known. */
static qn_status read_picture(qn_value **x, int64_t *dims, qn_paddle_layer *l)
{
    QN_TRY(qn_paddle_in(x, l, "X"));
    QN_TRY(qn_paddle_to_first(x, l));
    if ((*x)->type.kind != QN_TYPE_TENSOR || (*x)->type.rank != 4)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "its input is no picture");
    for (int32_t i = 1; i < 4; i++) {
        dims[i] = (*x)->type.dims[i].value;
        if (dims[i] < 0)
            return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a picture of unknown size");
    }
    return QN_OK;
}

/* The inverse: [N, C, H/r, r, W/r, r] -> [N, C, r, r, H/r, W/r] */
qn_status qn_paddle_pixel_unshuffle(qn_paddle_layer *l)
{
    static const int64_t perm[] = {0, 1, 3, 5, 2, 4};
    const int64_t r = qn_paddle_int(l, "downscale_factor", 1);
    int64_t d[4];
    qn_value *x;
    QN_TRY(read_picture(&x, d, l));
    if (r < 1 || r > INT16_MAX)
        return qn_paddle_fail(l, QN_E_FORMAT, "a factor of %lld", (long long)r);
    const int64_t apart[] = {0, d[1], d[2] / r, r, d[3] / r, r};
    const int64_t joined[] = {0, d[1] * r * r, d[2] / r, d[3] / r};
    QN_TRY(qn_paddle_reshape(&x, l, x, apart, 6));
    QN_TRY(qn_paddle_transpose(&x, l, x, perm, 6));
    QN_TRY(qn_paddle_reshape(&x, l, x, joined, 4));
    QN_TRY(qn_paddle_from_first(&x, l));
    return qn_paddle_out(l, "Out", x);
}

/* [N, g, C/g, H, W] -> [N, C/g, g, H, W] */
qn_status qn_paddle_channel_shuffle(qn_paddle_layer *l)
{
    static const int64_t perm[] = {0, 2, 1, 3, 4};
    const int64_t g = qn_paddle_int(l, "group groups", 1);
    int64_t d[4];
    qn_value *x;
    QN_TRY(read_picture(&x, d, l));
    if (g < 1)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld groups", (long long)g);
    const int64_t apart[] = {0, g, d[1] / g, d[2], d[3]}, joined[] = {0, d[1], d[2], d[3]};
    QN_TRY(qn_paddle_reshape(&x, l, x, apart, 5));
    QN_TRY(qn_paddle_transpose(&x, l, x, perm, 5));
    QN_TRY(qn_paddle_reshape(&x, l, x, joined, 4));
    QN_TRY(qn_paddle_from_first(&x, l));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Padding --------------------------------------------------------------------------------- */

static qn_status pad(qn_value **x, const qn_paddle_layer *l, const int64_t *pads, size_t count,
                     const char *mode)
{
    qn_value *list, *number = NULL;
    double value;
    QN_TRY(qn_graph_build_ints(&list, l->b, pads, count));
    if (strcmp(mode, "constant") == 0) {
        QN_TRY(qn_paddle_scalar(&value, l, "pad_value value", 0));
        QN_TRY(qn_paddle_number_of(&number, l, (*x)->type.dtype, value));
    }
    return qn_graph_build(x, l->b, &qn_op_Pad, QN_INPUTS(*x, list, number),
                          QN_WITH(QN_A_TEXT("mode", mode)));
}

/* Beginning and end of each axis. */
qn_status qn_paddle_pad(qn_paddle_layer *l)
{
    const qn_ints given = qn_paddle_ints(l, "paddings");
    int64_t pads[2 * QN_MAX_RANK];
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (given.count != 2 * (size_t)rank)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu paddings for rank %d", given.count, rank);
    for (int32_t i = 0; i < rank; i++) {
        pads[i] = given.at[2 * i];
        pads[rank + i] = given.at[2 * i + 1];
    }
    QN_TRY(pad(&x, l, pads, 2 * (size_t)rank, "constant"));
    return qn_paddle_out(l, "Out", x);
}

/* left, right, top, bottom, front, back: the last axis first. */
qn_status qn_paddle_pad3d(qn_paddle_layer *l)
{
    static const struct {
        const char *word, *onnx;
    } modes[] = {{"constant", "constant"},
                 {"reflect", "reflect"},
                 {"replicate", "edge"},
                 {"circular", "wrap"}};
    const char *word = qn_paddle_text(l, "mode", "constant"), *mode = NULL;
    int64_t pads[2 * QN_MAX_RANK] = {0};
    qn_value *x;
    qn_ints given;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_list(&given, l, "Paddings paddings"));
    for (size_t i = 0; i < QN_COUNT_OF(modes); i++) {
        if (strcmp(modes[i].word, word) == 0)
            mode = modes[i].onnx;
    }
    if (!mode || rank < 3 || given.count != 2 * ((size_t)rank - 2))
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu paddings by '%s' for rank %d", given.count, word,
                              rank);
    const int32_t first = qn_paddle_is_last(l) ? 1 : 2;
    for (int32_t i = 0; i < rank - 2; i++) {
        const size_t from = given.count - 2 * (size_t)(i + 1);
        pads[first + i] = given.at[from];
        pads[rank + first + i] = given.at[from + 1];
    }
    QN_TRY(pad(&x, l, pads, 2 * (size_t)rank, mode));
    return qn_paddle_out(l, "Out", x);
}
