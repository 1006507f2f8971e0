/* RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR. */
#include "import/tflite/tflite.h"

enum { BILINEAR_CORNERS = 2, BILINEAR_HALF = 3, NEAREST_CORNERS = 0, NEAREST_HALF = 1 };

/* Height and width that are known, or taken from the input with the batch and channels. */
static qn_status take_size(qn_value **out, tfl_layer *l, const qn_value *x)
{
    static const int64_t first[] = {0}, last[] = {2};
    int64_t size[QN_TFL_MAX_INTS];
    size_t count;
    bool known;
    qn_value *from, *to, *rest, *both;
    QN_TRY(qn_tfl_ints(size, &count, &known, l, 1));
    if (known && count != 2)
        return qn_tfl_wrong(l, "%zu sizes", count);
    if (known && qn_tfl_dim(x, 0) >= 0 && qn_tfl_dim(x, 1) >= 0) {
        const int64_t sizes[] = {qn_tfl_dim(x, 0), qn_tfl_dim(x, 1), size[0], size[1]};
        return qn_graph_build_ints(out, l->b, sizes, 4);
    }
    QN_TRY(qn_tfl_unary(&both, l, &qn_op_Shape, (qn_value *)(uintptr_t)x));
    QN_TRY(qn_graph_build_ints(&from, l->b, first, 1));
    QN_TRY(qn_graph_build_ints(&to, l->b, last, 1));
    QN_TRY(qn_graph_build(&both, l->b, &qn_op_Slice, QN_INPUTS(both, from, to), QN_PLAIN));
    QN_TRY(qn_tfl_indices(&rest, l, 1));
    return qn_graph_build(out, l->b, &qn_op_Concat, QN_INPUTS(both, rest),
                          QN_WITH(QN_A_INT("axis", 0)));
}

static qn_status resize(tfl_layer *l, const char *mode, bool corners, bool half)
{
    qn_value *x, *sizes, *y;
    const char *coordinates = corners ? "align_corners" : half ? "half_pixel" : "asymmetric";
    const char *nearest = corners || half ? "round_prefer_ceil" : "floor";
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_CHANNELS_FIRST));
    if (qn_tfl_rank(x) != 4)
        return qn_tfl_wrong(l, "its input has %d axes", (int)qn_tfl_rank(x));
    QN_TRY(take_size(&sizes, l, x));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Resize, QN_INPUTS(x, NULL, NULL, sizes),
                          QN_WITH(QN_A_TEXT("mode", mode), QN_A_TEXT("nearest_mode", nearest),
                                  QN_A_TEXT("coordinate_transformation_mode", coordinates))));
    return qn_tfl_put(l, 0, y, QN_ORDER_CHANNELS_FIRST);
}

qn_status qn_tfl_resize_bilinear(tfl_layer *l)
{
    return resize(l, "linear", qn_tfl_byte(l, BILINEAR_CORNERS) != 0,
                  qn_tfl_byte(l, BILINEAR_HALF) != 0);
}

qn_status qn_tfl_resize_nearest(tfl_layer *l)
{
    return resize(l, "nearest", qn_tfl_byte(l, NEAREST_CORNERS) != 0,
                  qn_tfl_byte(l, NEAREST_HALF) != 0);
}
