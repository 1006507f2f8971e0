/* Boxes of detectors: priors, their decoding, and the cells of YOLO. */
#include <math.h>
#include <string.h>

#include "import/paddle/paddle.h"

/* [0, 1, ..., n - 1] as floats, of n as int64[1]. */
static qn_status count_up(qn_value **out, const qn_paddle_layer *l, qn_value *n)
{
    static const int64_t first[] = {0};
    qn_value *zero, *one;
    QN_TRY(qn_paddle_number_of(&zero, l, QN_INT64, 0));
    QN_TRY(qn_paddle_number_of(&one, l, QN_INT64, 1));
    QN_TRY(qn_paddle_squeeze(&n, l, n, first, 1));
    QN_TRY(qn_graph_build(out, l->b, &qn_op_Range, QN_INPUTS(zero, n, one), QN_PLAIN));
    return qn_paddle_cast(out, l, *out, QN_FLOAT32);
}

/* Dimension `axis` of x as a float of rank 1. */
static qn_status float_dim(qn_value **out, const qn_paddle_layer *l, qn_value *x, int64_t axis)
{
    QN_TRY(qn_paddle_dim(out, l, x, axis));
    return qn_paddle_cast(out, l, *out, QN_FLOAT32);
}

/* ---- Prior boxes ----------------------------------------------------------------------------- */

enum { MOST_SIZES = 64, MOST_RATIOS = 64 };

typedef struct priors {
    double ratios[MOST_RATIOS];
    size_t n_ratios;
    /* Half of the width and of the height of each box of a cell */
    double halves[MOST_SIZES * (MOST_RATIOS + 1)][2];
    size_t count;
} priors;

/* 1, then each other ratio, and turned where `flip`. */
static qn_status read_ratios(priors *p, const qn_paddle_layer *l)
{
    const bool flip = qn_paddle_int(l, "flip", 1) != 0;
    const double *given;
    size_t count;
    QN_TRY(qn_paddle_reals(&given, &count, l, "aspect_ratios"));
    p->ratios[0] = 1;
    p->n_ratios = 1;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < p->n_ratios; k++)
            known = known || fabs(given[i] - p->ratios[k]) < 1e-6;
        if (known)
            continue;
        if (p->n_ratios + 2 > MOST_RATIOS || !(given[i] > 0))
            return qn_paddle_fail(l, QN_E_UNSUPPORTED, "too many ratios, or one of 0");
        p->ratios[p->n_ratios++] = given[i];
        if (flip)
            p->ratios[p->n_ratios++] = 1 / given[i];
    }
    return QN_OK;
}

static void add_prior(priors *p, double width, double height)
{
    p->halves[p->count][0] = width / 2;
    p->halves[p->count][1] = height / 2;
    p->count++;
}

static qn_status make_priors(priors *p, const qn_paddle_layer *l)
{
    const bool max_second = qn_paddle_int(l, "min_max_aspect_ratios_order", 0) != 0;
    const double *least, *most;
    size_t n_least, n_most;
    p->count = 0;
    QN_TRY(read_ratios(p, l));
    QN_TRY(qn_paddle_reals(&least, &n_least, l, "min_sizes"));
    QN_TRY(qn_paddle_reals(&most, &n_most, l, "max_sizes"));
    if (n_least > MOST_SIZES || (n_most && n_most != n_least))
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu min_sizes, %zu max_sizes", n_least, n_most);
    for (size_t s = 0; s < n_least; s++) {
        const double geometric = n_most ? sqrt(least[s] * most[s]) : 0;
        for (size_t r = 0; r < p->n_ratios; r++) {
            const double root = sqrt(p->ratios[r]);
            add_prior(p, least[s] * root, least[s] / root);
            if (r == 0 && n_most && max_second)
                add_prior(p, geometric, geometric);
        }
        if (n_most && !max_second)
            add_prior(p, geometric, geometric);
    }
    return QN_OK;
}

/* Where cells have their middle along an axis, [n], in pixels of the picture. */
static qn_status middles(qn_value **out, const qn_paddle_layer *l, qn_value *cells,
                         qn_value *picture, int64_t axis, double step)
{
    qn_value *n, *size, *count;
    QN_TRY(qn_paddle_dim(&n, l, cells, axis));
    QN_TRY(count_up(out, l, n));
    QN_TRY(qn_paddle_with(out, l, &qn_op_Add, *out, qn_paddle_real(l, "offset", 0.5)));
    if (step > 0)
        return qn_paddle_with(out, l, &qn_op_Mul, *out, step);
    QN_TRY(float_dim(&size, l, picture, axis));
    QN_TRY(qn_paddle_cast(&count, l, n, QN_FLOAT32));
    QN_TRY(qn_paddle_make2(&size, l, &qn_op_Div, size, count));
    return qn_paddle_make2(out, l, &qn_op_Mul, *out, size);
}

/* [h, w, boxes, 4]: middles and halves added, in parts of the picture. */
static qn_status place_priors(qn_value **out, const qn_paddle_layer *l, const priors *p,
                              qn_value *cells, qn_value *picture)
{
    static const int64_t row[] = {1, -1, 1, 1}, column[] = {-1, 1, 1, 1};
    const int64_t dims[] = {1, 1, (int64_t)p->count, 4};
    double *numbers = qn_arena_array(&l->b->model->arena, 4 * p->count + 1, sizeof *numbers);
    qn_value *x, *y, *ends[4], *size, *shape, *parts[4];
    QN_TRY_ALLOC(l->b->ctx, numbers);
    for (size_t i = 0; i < 4 * p->count; i++)
        numbers[i] = (i % 4 < 2 ? -1 : 1) * p->halves[i / 4][i % 2];
    QN_TRY(middles(&x, l, cells, picture, 3, qn_paddle_real(l, "step_w", 0)));
    QN_TRY(middles(&y, l, cells, picture, 2, qn_paddle_real(l, "step_h", 0)));
    QN_TRY(qn_paddle_reshape(&x, l, x, row, 4));
    QN_TRY(qn_paddle_reshape(&y, l, y, column, 4));
    QN_TRY(qn_paddle_make2(&shape, l, &qn_op_Add, x, y));
    QN_TRY(qn_paddle_make(&shape, l, &qn_op_Shape, shape));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Expand, x, shape));
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_Expand, y, shape));
    ends[0] = ends[2] = x;
    ends[1] = ends[3] = y;
    QN_TRY(qn_paddle_concat(out, l, ends, 4, 3));
    QN_TRY(qn_paddle_numbers(&x, l, QN_FLOAT32, numbers, 4, dims));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Add, *out, x));
    for (size_t i = 0; i < 4; i++)
        QN_TRY(float_dim(&parts[i], l, picture, i % 2 ? 2 : 3));
    QN_TRY(qn_paddle_concat(&size, l, parts, 4, 0));
    return qn_paddle_make2(out, l, &qn_op_Div, *out, size);
}

static qn_status clip_to(qn_value **x, const qn_paddle_layer *l, double least, double most)
{
    qn_value *from, *to;
    QN_TRY(qn_paddle_number_of(&from, l, QN_FLOAT32, least));
    QN_TRY(qn_paddle_number_of(&to, l, QN_FLOAT32, most));
    return qn_graph_build(x, l->b, &qn_op_Clip, QN_INPUTS(*x, from, to), QN_PLAIN);
}

qn_status qn_paddle_prior_box(qn_paddle_layer *l)
{
    const int64_t four[] = {4};
    const double *variances;
    qn_value *cells, *picture, *boxes, *shape, *variance;
    size_t count;
    priors p;
    QN_TRY(qn_paddle_in(&cells, l, "Input"));
    QN_TRY(qn_paddle_in(&picture, l, "Image"));
    QN_TRY(make_priors(&p, l));
    QN_TRY(qn_paddle_reals(&variances, &count, l, "variances"));
    if (count != 4 || p.count == 0)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu variances and %zu boxes for each cell", count,
                              p.count);
    QN_TRY(place_priors(&boxes, l, &p, cells, picture));
    if (qn_paddle_int(l, "clip", 1))
        QN_TRY(clip_to(&boxes, l, 0, 1));
    QN_TRY(qn_paddle_make(&shape, l, &qn_op_Shape, boxes));
    QN_TRY(qn_paddle_numbers(&variance, l, QN_FLOAT32, variances, 1, four));
    QN_TRY(qn_paddle_make2(&variance, l, &qn_op_Expand, variance, shape));
    QN_TRY(qn_paddle_out(l, "Variances", variance));
    return qn_paddle_out(l, "Boxes", boxes);
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* [..., 4] as two halves: the first corner (or middle) and the second (or size). */
static qn_status halve(qn_value **first, qn_value **second, const qn_paddle_layer *l, qn_value *x)
{
    QN_TRY(qn_paddle_slice(first, l, x, -1, 0, 2));
    return qn_paddle_slice(second, l, x, -1, 2, 4);
}

/* Middle and size of boxes, whose second corner lies within where they are not normalized. */
static qn_status measure(qn_value **middle, qn_value **size, const qn_paddle_layer *l,
                         qn_value *boxes, double within)
{
    qn_value *from, *to, *half;
    QN_TRY(halve(&from, &to, l, boxes));
    QN_TRY(qn_paddle_make2(size, l, &qn_op_Sub, to, from));
    if (within != 0)
        QN_TRY(qn_paddle_with(size, l, &qn_op_Add, *size, within));
    QN_TRY(qn_paddle_with(&half, l, &qn_op_Mul, *size, 0.5));
    return qn_paddle_make2(middle, l, &qn_op_Add, from, half);
}

/* Variances of each prior, or the same four of all; NULL: there are none. */
static qn_status read_variance(qn_value **out, const qn_paddle_layer *l, int64_t axis)
{
    const int64_t four[] = {4};
    const double *numbers;
    size_t count;
    QN_TRY(qn_paddle_maybe(out, l, "PriorBoxVar"));
    if (*out)
        return (*out)->type.rank == 1 ? QN_OK : qn_paddle_unsqueeze(out, l, *out, &axis, 1);
    QN_TRY(qn_paddle_reals(&numbers, &count, l, "variance"));
    if (count != 0 && count != 4)
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu variances", count);
    return count ? qn_paddle_numbers(out, l, QN_FLOAT32, numbers, 1, four) : QN_OK;
}

/* middle = variance * t * prior's size + prior's middle, size = exp(variance * t) * prior's size */
qn_status qn_paddle_box_coder(qn_paddle_layer *l)
{
    const double within = qn_paddle_int(l, "box_normalized", 1) ? 0 : 1;
    const int64_t axis = qn_paddle_int(l, "axis", 0) ? 1 : 0;
    qn_value *prior, *variance, *target, *middle, *size, *move, *grow, *ends[2];
    const char *type = qn_paddle_text(l, "code_type", "");
    if (strcmp(type, "decode_center_size") != 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "code_type '%s'", type);
    QN_TRY(qn_paddle_in(&prior, l, "PriorBox"));
    QN_TRY(qn_paddle_in(&target, l, "TargetBox"));
    QN_TRY(read_variance(&variance, l, axis));
    QN_TRY(qn_paddle_unsqueeze(&prior, l, prior, &axis, 1));
    QN_TRY(measure(&middle, &size, l, prior, within));
    if (variance)
        QN_TRY(qn_paddle_make2(&target, l, &qn_op_Mul, target, variance));
    QN_TRY(halve(&move, &grow, l, target));
    QN_TRY(qn_paddle_make2(&move, l, &qn_op_Mul, move, size));
    QN_TRY(qn_paddle_make2(&middle, l, &qn_op_Add, move, middle));
    QN_TRY(qn_paddle_make(&grow, l, &qn_op_Exp, grow));
    QN_TRY(qn_paddle_make2(&size, l, &qn_op_Mul, grow, size));
    QN_TRY(qn_paddle_with(&size, l, &qn_op_Mul, size, 0.5));
    QN_TRY(qn_paddle_make2(&ends[0], l, &qn_op_Sub, middle, size));
    QN_TRY(qn_paddle_make2(&ends[1], l, &qn_op_Add, middle, size));
    if (within != 0)
        QN_TRY(qn_paddle_with(&ends[1], l, &qn_op_Sub, ends[1], within));
    QN_TRY(qn_paddle_concat(&target, l, ends, 2, -1));
    return qn_paddle_out(l, "OutputBox", target);
}

/* ---- YOLO ------------------------------------------------------------------------------------ */

typedef struct yolo {
    int64_t anchors, classes;
    double threshold, scale, stride;
    /* [N, anchors, 5 + classes, H, W]; [N, 1, 1, 1] each; [H] and [W] as floats */
    qn_value *cells, *picture_h, *picture_w, *rows, *columns;
    /* [N, anchors, 1, H, W] */
    qn_value *confidence, *kept;
} yolo;

/* Channels [from, to) of each anchor. */
static qn_status channels(qn_value **out, const qn_paddle_layer *l, const yolo *y, int64_t from,
                          int64_t to)
{
    return qn_paddle_slice(out, l, y->cells, 2, from, to);
}

/* Size of the pictures, [N, 1, 1, 1, 1], along y (0) and x (1). */
static qn_status picture_size(qn_value **out, const qn_paddle_layer *l, qn_value *sizes, int64_t i)
{
    static const int64_t shape[] = {-1, 1, 1, 1, 1};
    QN_TRY(qn_paddle_slice(out, l, sizes, 1, i, i + 1));
    QN_TRY(qn_paddle_cast(out, l, *out, QN_FLOAT32));
    return qn_paddle_reshape(out, l, *out, shape, 5);
}

/* The channels of overlaps, one for each anchor, stand before all others. */
static qn_status read_overlaps(qn_value **x, qn_value **overlaps, const qn_paddle_layer *l,
                               const yolo *y)
{
    static const int64_t axes[] = {2};
    QN_TRY(qn_paddle_slice(overlaps, l, *x, 1, 0, y->anchors));
    QN_TRY(qn_paddle_slice(x, l, *x, 1, y->anchors, INT64_MAX));
    QN_TRY(qn_paddle_unsqueeze(overlaps, l, *overlaps, axes, 1));
    return qn_paddle_make(overlaps, l, &qn_op_Sigmoid, *overlaps);
}

/* confidence^(1 - factor) * overlap^factor */
static qn_status weigh(qn_value **confidence, const qn_paddle_layer *l, qn_value *overlaps)
{
    const double factor = qn_paddle_real(l, "iou_aware_factor", 0.5);
    QN_TRY(qn_paddle_with(confidence, l, &qn_op_Pow, *confidence, 1 - factor));
    QN_TRY(qn_paddle_with(&overlaps, l, &qn_op_Pow, overlaps, factor));
    return qn_paddle_make2(confidence, l, &qn_op_Mul, *confidence, overlaps);
}

static qn_status read_yolo(yolo *y, const qn_paddle_layer *l)
{
    qn_value *x, *sizes, *overlaps = NULL, *n, *h, *w, *middle, *shape, *threshold;
    const qn_ints anchors = qn_paddle_ints(l, "anchors");
    *y = (yolo){.anchors = (int64_t)(anchors.count / 2),
                .classes = qn_paddle_int(l, "class_num", 1),
                .threshold = qn_paddle_real(l, "conf_thresh", 0.01),
                .scale = qn_paddle_real(l, "scale_x_y", 1),
                .stride = (double)qn_paddle_int(l, "downsample_ratio", 32)};
    const int64_t parts[] = {y->anchors, 5 + y->classes};
    if (y->anchors < 1 || y->anchors > 64 || y->classes < 1 || y->classes > INT16_MAX)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld anchors and %lld classes",
                              (long long)y->anchors, (long long)y->classes);
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&sizes, l, "ImgSize"));
    QN_TRY(picture_size(&y->picture_h, l, sizes, 0));
    QN_TRY(picture_size(&y->picture_w, l, sizes, 1));
    if (qn_paddle_int(l, "iou_aware", 0))
        QN_TRY(read_overlaps(&x, &overlaps, l, y));
    QN_TRY(qn_paddle_dim(&n, l, x, 0));
    QN_TRY(qn_paddle_dim(&h, l, x, 2));
    QN_TRY(qn_paddle_dim(&w, l, x, 3));
    QN_TRY(qn_graph_build_ints(&middle, l->b, parts, 2));
    QN_TRY(qn_paddle_concat(&shape, l, (qn_value *const[]){n, middle, h, w}, 4, 0));
    QN_TRY(qn_paddle_make2(&y->cells, l, &qn_op_Reshape, x, shape));
    QN_TRY(count_up(&y->rows, l, h));
    QN_TRY(count_up(&y->columns, l, w));
    QN_TRY(channels(&y->confidence, l, y, 4, 5));
    QN_TRY(qn_paddle_make(&y->confidence, l, &qn_op_Sigmoid, y->confidence));
    if (overlaps)
        QN_TRY(weigh(&y->confidence, l, overlaps));
    QN_TRY(qn_paddle_number_of(&threshold, l, QN_FLOAT32, y->threshold));
    QN_TRY(qn_paddle_make2(&y->kept, l, &qn_op_GreaterOrEqual, y->confidence, threshold));
    return qn_paddle_cast(&y->kept, l, y->kept, QN_FLOAT32);
}

/* Middle of the boxes along an axis: (place + sigmoid(t) * scale - (scale - 1) / 2) * picture /
 * n */
static qn_status yolo_middle(qn_value **out, const qn_paddle_layer *l, const yolo *y, int64_t i)
{
    static const int64_t places[2][2] = {{1, -1}, {-1, 1}};
    qn_value *place = i ? y->rows : y->columns, *n;
    QN_TRY(channels(out, l, y, i, i + 1));
    QN_TRY(qn_paddle_make(out, l, &qn_op_Sigmoid, *out));
    if (y->scale != 1) {
        QN_TRY(qn_paddle_with(out, l, &qn_op_Mul, *out, y->scale));
        QN_TRY(qn_paddle_with(out, l, &qn_op_Sub, *out, (y->scale - 1) / 2));
    }
    QN_TRY(float_dim(&n, l, place, 0));
    QN_TRY(qn_paddle_reshape(&place, l, place, places[i], 2));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Add, *out, place));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Mul, *out, i ? y->picture_h : y->picture_w));
    return qn_paddle_make2(out, l, &qn_op_Div, *out, n);
}

/* Half of their size: exp(t) * anchor * picture / (stride * n) / 2 */
static qn_status yolo_half(qn_value **out, const qn_paddle_layer *l, const yolo *y, int64_t i)
{
    const qn_ints anchors = qn_paddle_ints(l, "anchors");
    const int64_t dims[] = {1, y->anchors, 1, 1, 1};
    double halves[64];
    qn_value *sizes, *n;
    for (int64_t a = 0; a < y->anchors; a++)
        halves[a] = (double)anchors.at[2 * a + i] / y->stride / 2;
    QN_TRY(channels(out, l, y, 2 + i, 3 + i));
    QN_TRY(qn_paddle_make(out, l, &qn_op_Exp, *out));
    QN_TRY(qn_paddle_numbers(&sizes, l, QN_FLOAT32, halves, 5, dims));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Mul, *out, sizes));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_Mul, *out, i ? y->picture_h : y->picture_w));
    QN_TRY(float_dim(&n, l, i ? y->rows : y->columns, 0));
    return qn_paddle_make2(out, l, &qn_op_Div, *out, n);
}

/* Both ends along an axis, within the picture where asked for. */
static qn_status yolo_ends(qn_value **from, qn_value **to, const qn_paddle_layer *l, const yolo *y,
                           int64_t i)
{
    qn_value *middle, *half, *last;
    QN_TRY(yolo_middle(&middle, l, y, i));
    QN_TRY(yolo_half(&half, l, y, i));
    QN_TRY(qn_paddle_make2(from, l, &qn_op_Sub, middle, half));
    QN_TRY(qn_paddle_make2(to, l, &qn_op_Add, middle, half));
    if (!qn_paddle_int(l, "clip_bbox", 1))
        return QN_OK;
    QN_TRY(qn_paddle_with(from, l, &qn_op_Max, *from, 0));
    QN_TRY(qn_paddle_with(&last, l, &qn_op_Sub, i ? y->picture_h : y->picture_w, 1));
    return qn_paddle_make2(to, l, &qn_op_Min, *to, last);
}

/* [N, anchors, n, H, W] -> [N, anchors * H * W, n], zeros where the confidence is too low */
static qn_status yolo_rows(qn_value **x, const qn_paddle_layer *l, const yolo *y, int64_t n)
{
    static const int64_t perm[] = {0, 1, 3, 4, 2};
    const int64_t shape[] = {0, -1, n};
    QN_TRY(qn_paddle_make2(x, l, &qn_op_Mul, *x, y->kept));
    QN_TRY(qn_paddle_transpose(x, l, *x, perm, 5));
    return qn_paddle_reshape(x, l, *x, shape, 3);
}

qn_status qn_paddle_yolo_box(qn_paddle_layer *l)
{
    qn_value *ends[4], *boxes, *scores;
    yolo y;
    QN_TRY(read_yolo(&y, l));
    QN_TRY(yolo_ends(&ends[0], &ends[2], l, &y, 0));
    QN_TRY(yolo_ends(&ends[1], &ends[3], l, &y, 1));
    QN_TRY(qn_paddle_concat(&boxes, l, ends, 4, 2));
    QN_TRY(yolo_rows(&boxes, l, &y, 4));
    QN_TRY(channels(&scores, l, &y, 5, 5 + y.classes));
    QN_TRY(qn_paddle_make(&scores, l, &qn_op_Sigmoid, scores));
    QN_TRY(qn_paddle_make2(&scores, l, &qn_op_Mul, scores, y.confidence));
    QN_TRY(yolo_rows(&scores, l, &y, y.classes));
    QN_TRY(qn_paddle_out(l, "Boxes", boxes));
    return qn_paddle_out(l, "Scores", scores);
}
