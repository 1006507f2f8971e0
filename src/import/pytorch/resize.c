/* Pictures made larger and smaller, and sampled along a grid. */
#include <math.h>
#include <string.h>

#include "import/pytorch/aten.h"

/* Factors for all axes, from a list or from one argument for each axis; false where none are
 * given. */
static qn_status read_factors(float *out, bool *given, qn_aten_call *c, size_t spatial)
{
    static const char *const single[] = {"scales_d", "scales_h", "scales_w"};
    const qn_torch_value *items;
    size_t count;
    out[0] = out[1] = 1;
    qn_aten_items(&items, &count, c, "scale_factors");
    *given = count == spatial;
    for (size_t i = 0; i < spatial; i++) {
        const qn_torch_value *item =
            count == spatial ? &items[i] : qn_aten_value(c, single[3 - spatial + i]);
        if (count != spatial && item->kind == QN_TORCH_NONE)
            return QN_OK;
        if (item->kind != QN_TORCH_REAL && item->kind != QN_TORCH_INT)
            return qn_aten_unsupported(c, "its factors are not known");
        out[2 + i] = (float)(item->kind == QN_TORCH_REAL ? item->real : (double)item->number);
        *given = *given || i + 1 == spatial;
    }
    return QN_OK;
}

/* The whole shape of the result. */
static qn_status read_sizes(qn_value **out, qn_aten_call *c, qn_value *x, size_t spatial)
{
    qn_torch_value sizes[QN_MAX_RANK];
    const qn_torch_value *items;
    size_t count;
    qn_aten_items(&items, &count, c, "output_size");
    if (count != spatial)
        return qn_aten_unsupported(c, "%zu sizes", count);
    for (int32_t i = 0; i < 2; i++)
        QN_TRY(qn_torch_dim(&sizes[i], c->t, x, i));
    memcpy(sizes + 2, items, count * sizeof *items);
    return qn_torch_shape(out, c->t, sizes, count + 2);
}

typedef struct resize_way {
    const char *mode, *coordinates, *nearest;
    bool antialias;
} resize_way;

static resize_way way_of(const qn_aten_call *c)
{
    const char *name = c->op->name;
    const bool exact = strstr(name, "exact") != NULL, corners = qn_aten_flag(c, "align_corners");
    resize_way way = {.mode = strstr(name, "nearest")   ? "nearest"
                              : strstr(name, "bicubic") ? "cubic"
                                                        : "linear",
                      .coordinates = corners ? "align_corners" : "half_pixel",
                      .nearest = "floor",
                      .antialias = strstr(name, "_aa") != NULL};
    if (strstr(name, "nearest") && !exact)
        way.coordinates = "asymmetric";
    if (exact)
        way.nearest = "round_prefer_ceil";
    return way;
}

qn_status qn_aten_upsample(qn_aten_call *c)
{
    const resize_way way = way_of(c);
    const char *digit = strpbrk(c->op->name, "123");
    const size_t spatial = (size_t)(*digit - '0');
    qn_value *x, *scales = NULL, *sizes = NULL, *y;
    float factors[QN_MAX_RANK];
    bool given = false;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "input"));
    if ((size_t)rank != spatial + 2)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "its input has %d axes", rank);
    if (qn_aten_has(c, "output_size"))
        QN_TRY(read_sizes(&sizes, c, x, spatial));
    else {
        QN_TRY(read_factors(factors, &given, c, spatial));
        if (!given)
            return qn_aten_unsupported(c, "neither sizes nor factors are known");
        QN_TRY(qn_graph_build_reals(&scales, c->b, factors, spatial + 2));
    }
    QN_TRY(qn_graph_build(
        &y, c->b, &qn_op_Resize, QN_INPUTS(x, NULL, scales, sizes),
        QN_WITH(QN_A_TEXT("mode", way.mode),
                QN_A_TEXT("coordinate_transformation_mode", way.coordinates),
                QN_A_TEXT("nearest_mode", way.nearest), QN_A_REAL("cubic_coeff_a", -0.75f),
                QN_A_INT("antialias", way.antialias), QN_A_INT("exclude_outside", way.antialias))));
    return qn_aten_return(c, y);
}

/* PyTorch's numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection. */
qn_status qn_aten_grid_sampler(qn_aten_call *c)
{
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    qn_value *x, *grid, *y;
    int64_t mode, padding;
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_tensor(&grid, c, "grid"));
    QN_TRY(qn_aten_int(&mode, c, "interpolation_mode"));
    QN_TRY(qn_aten_int(&padding, c, "padding_mode"));
    if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
        return qn_aten_unsupported(c, "mode %lld, padding %lld", (long long)mode,
                                   (long long)padding);
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_GridSample, QN_INPUTS(x, grid),
                          QN_WITH(QN_A_TEXT("mode", modes[mode]),
                                  QN_A_TEXT("padding_mode", paddings[padding]),
                                  QN_A_INT("align_corners", qn_aten_flag(c, "align_corners")))));
    return qn_aten_return(c, y);
}

qn_status qn_aten_affine_grid(qn_aten_call *c)
{
    const qn_torch_value *items;
    qn_value *theta, *size, *y;
    size_t count;
    QN_TRY(qn_aten_tensor(&theta, c, "theta"));
    qn_aten_items(&items, &count, c, "size");
    QN_TRY(qn_torch_shape(&size, c->t, items, count));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_AffineGrid, QN_INPUTS(theta, size),
                          QN_WITH(QN_A_INT("align_corners", qn_aten_flag(c, "align_corners")))));
    return qn_aten_return(c, y);
}
