/* Parts of tensors: slices, paddings, and blocks of pixels. */
#include <string.h>

#include "import/tflite/tflite.h"

enum {
    STRIDED_BEGIN = 0,
    STRIDED_END = 1,
    STRIDED_ELLIPSIS = 2,
    STRIDED_NEW_AXIS = 3,
    STRIDED_SHRINK = 4,
    STRIDED_OFFSET = 5
};
enum { MIRROR_MODE = 0 };

/* From and to of each axis, in ONNX's words. */
typedef struct tfl_range {
    size_t count;
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], step[QN_MAX_RANK], axis[QN_MAX_RANK];
} tfl_range;

static qn_status build_slice(qn_value **y, tfl_layer *l, qn_value *x, const tfl_range *r)
{
    qn_value *from, *to, *axes, *steps;
    *y = x;
    if (r->count == 0)
        return qn_tfl_unary(y, l, &qn_op_Identity, x);
    QN_TRY(qn_graph_build_ints(&from, l->b, r->from, r->count));
    QN_TRY(qn_graph_build_ints(&to, l->b, r->to, r->count));
    QN_TRY(qn_graph_build_ints(&axes, l->b, r->axis, r->count));
    QN_TRY(qn_graph_build_ints(&steps, l->b, r->step, r->count));
    return qn_graph_build(y, l->b, &qn_op_Slice, QN_INPUTS(x, from, to, axes, steps), QN_PLAIN);
}

static void add_range(tfl_range *r, int64_t axis, int64_t from, int64_t to, int64_t step)
{
    /* The whole axis is no part of it. */
    if (from == 0 && to == INT64_MAX && step == 1)
        return;
    r->from[r->count] = from;
    r->to[r->count] = to;
    r->step[r->count] = step;
    r->axis[r->count++] = axis;
}

/* ---- SLICE ----------------------------------------------------------------------------------- */

/* Begins and sizes that the model computes. */
static qn_status slice_by_values(tfl_layer *l)
{
    qn_value *x, *from, *size, *to, *rest, *end, *y;
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_indices(&from, l, 1));
    QN_TRY(qn_tfl_indices(&size, l, 2));
    QN_TRY(qn_tfl_binary(&to, l, &qn_op_Add, from, size));
    QN_TRY(qn_tfl_with(&rest, l, &qn_op_Less, size, 0));
    QN_TRY(qn_tfl_number(&end, l, QN_INT64, INT32_MAX));
    QN_TRY(qn_graph_build(&to, l->b, &qn_op_Where, QN_INPUTS(rest, end, to), QN_PLAIN));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Slice, QN_INPUTS(x, from, to), QN_PLAIN));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

qn_status qn_tfl_slice(tfl_layer *l)
{
    int64_t from[QN_TFL_MAX_INTS], size[QN_TFL_MAX_INTS];
    size_t count, sizes;
    bool known, known_size;
    qn_axis_order order;
    qn_value *x, *y;
    tfl_range r = {.count = 0};
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_ints(from, &count, &known, l, 1));
    QN_TRY(qn_tfl_ints(size, &sizes, &known_size, l, 2));
    if (!known || !known_size)
        return slice_by_values(l);
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    if (rank < 0 || count != (size_t)rank || sizes != count)
        return qn_tfl_wrong(l, "%zu begins and %zu sizes of %d axes", count, sizes, (int)rank);
    for (int32_t i = 0; i < rank; i++) {
        int64_t to = INT64_MAX;
        if (from[i] < 0 || size[i] < -1 || (size[i] >= 0 && !qn_add_int64(&to, from[i], size[i])))
            return qn_tfl_wrong(l, "%lld from %lld on", (long long)size[i], (long long)from[i]);
        add_range(&r, qn_layout_axis(order, rank, i), from[i], to, 1);
    }
    QN_TRY(build_slice(&y, l, x, &r));
    return qn_tfl_put(l, 0, y, order);
}

/* ---- STRIDED_SLICE --------------------------------------------------------------------------- */

typedef struct tfl_strided {
    int64_t begin[QN_TFL_MAX_INTS], end[QN_TFL_MAX_INTS], stride[QN_TFL_MAX_INTS];
    size_t count;
    /* Axes of the input that single places are taken of, and places of new axes in the output. */
    int64_t shrunk[QN_MAX_RANK], fresh[QN_MAX_RANK];
    size_t n_shrunk, n_fresh;
} tfl_strided;

static bool is_set(const tfl_layer *l, unsigned mask, size_t i)
{
    return i < 32 && (uint32_t)qn_tfl_int(l, mask, 0) >> i & 1;
}

static qn_status take_strided(tfl_strided *s, tfl_layer *l)
{
    size_t ends, strides;
    QN_TRY(qn_tfl_known_ints(s->begin, &s->count, l, 1));
    QN_TRY(qn_tfl_known_ints(s->end, &ends, l, 2));
    QN_TRY(qn_tfl_known_ints(s->stride, &strides, l, 3));
    if (ends != s->count || strides != s->count || s->count > 2 * QN_MAX_RANK)
        return qn_tfl_wrong(l, "%zu begins, %zu ends and %zu strides", s->count, ends, strides);
    for (size_t i = 0; i < s->count; i++) {
        if (s->stride[i] == 0)
            return qn_tfl_wrong(l, "a stride of 0");
        if (qn_tfl_byte(l, STRIDED_OFFSET) && !is_set(l, STRIDED_END, i) &&
            !qn_add_int64(&s->end[i], s->begin[i], s->end[i]))
            return qn_tfl_wrong(l, "an end of %lld", (long long)s->end[i]);
    }
    return QN_OK;
}

/* One place of an axis: the number of axes does not change before a Squeeze. */
static void add_place(tfl_range *r, tfl_strided *s, int64_t axis, int64_t place)
{
    add_range(r, axis, place, place == -1 ? INT64_MAX : place + 1, 1);
    s->shrunk[s->n_shrunk++] = axis;
}

static qn_status resolve(tfl_range *r, tfl_strided *s, tfl_layer *l, int32_t rank)
{
    int64_t axis = 0, place = 0, named = 0;
    bool spread = false;
    for (size_t i = 0; i < s->count; i++)
        named += !is_set(l, STRIDED_NEW_AXIS, i) && !is_set(l, STRIDED_ELLIPSIS, i);
    for (size_t i = 0; i < s->count; i++) {
        if (is_set(l, STRIDED_ELLIPSIS, i) && !spread) {
            axis += rank - named;
            place += rank - named;
            spread = true;
            continue;
        }
        if (is_set(l, STRIDED_NEW_AXIS, i)) {
            if (s->n_fresh == QN_MAX_RANK)
                return qn_tfl_wrong(l, "more than %d new axes", QN_MAX_RANK);
            s->fresh[s->n_fresh++] = place++;
            continue;
        }
        if (axis < 0 || axis >= rank)
            return qn_tfl_wrong(l, "places of more than %d axes", (int)rank);
        if (is_set(l, STRIDED_SHRINK, i)) {
            add_place(r, s, axis++, s->begin[i]);
            continue;
        }
        const bool back = s->stride[i] < 0;
        const int64_t first = back ? INT64_MAX : 0, last = back ? INT64_MIN : INT64_MAX;
        add_range(r, axis++, is_set(l, STRIDED_BEGIN, i) ? first : s->begin[i],
                  is_set(l, STRIDED_END, i) ? last : s->end[i], s->stride[i]);
        place++;
    }
    return QN_OK;
}

qn_status qn_tfl_strided_slice(tfl_layer *l)
{
    tfl_strided s = {.count = 0};
    tfl_range r = {.count = 0};
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 4, 1));
    QN_TRY(take_strided(&s, l));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    if (rank < 0)
        return qn_tfl_unsupported(l, "the rank of its input is not known");
    QN_TRY(resolve(&r, &s, l, rank));
    if (s.n_shrunk || s.n_fresh) {
        order = QN_ORDER_OWN;
        QN_TRY(qn_tfl_take(&x, l, 0, order));
    }
    for (size_t i = 0; i < r.count; i++)
        r.axis[i] = qn_layout_axis(order, rank, r.axis[i]);
    QN_TRY(build_slice(&y, l, x, &r));
    if (s.n_shrunk)
        QN_TRY(qn_tfl_along(&y, l, &qn_op_Squeeze, y, s.shrunk, s.n_shrunk));
    if (s.n_fresh)
        QN_TRY(qn_tfl_along(&y, l, &qn_op_Unsqueeze, y, s.fresh, s.n_fresh));
    return qn_tfl_put(l, 0, y, order);
}

/* ---- Padding --------------------------------------------------------------------------------- */

/* Paddings [rank, 2]; *edge is one more where the border itself is mirrored. */
static qn_status take_pads(int64_t *pads, tfl_layer *l, qn_axis_order order, int32_t rank)
{
    int64_t list[QN_TFL_MAX_INTS], pairs[QN_MAX_RANK][2];
    size_t count;
    QN_TRY(qn_tfl_known_ints(list, &count, l, 1));
    if (rank < 0 || count != 2 * (size_t)rank)
        return qn_tfl_wrong(l, "%zu paddings for %d axes", count, (int)rank);
    for (size_t i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] > INT32_MAX)
            return qn_tfl_wrong(l, "a padding of %lld", (long long)list[i]);
        pairs[i / 2][i % 2] = list[i];
    }
    qn_layout_pads(pads, rank, order, (const int64_t(*)[2])pairs);
    return QN_OK;
}

/* 0, which is the zero point among integers. */
static qn_status take_zero(qn_value **out, tfl_layer *l, const qn_value *x)
{
    const bool raw = l->raw && qn_tfl_is_quantized(l->in[0]);
    return qn_tfl_number(out, l, x->type.dtype, raw ? (double)qn_tfl_zero(l->in[0], 0) : 0);
}

static qn_status take_filling(qn_value **out, tfl_layer *l, const qn_value *x)
{
    if (!qn_tfl_has(l, 2))
        return take_zero(out, l, x);
    QN_TRY(qn_tfl_take(out, l, 2, QN_ORDER_OWN));
    return qn_tfl_rank(*out) == 0 ? QN_OK : qn_tfl_reshape(out, l, *out, NULL, 0);
}

qn_status qn_tfl_pad(tfl_layer *l)
{
    int64_t pads[2 * QN_MAX_RANK];
    qn_axis_order order;
    qn_value *x, *list, *filling, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    if (qn_tfl_has(l, 2) && !qn_tfl_is_alike(l->in[0], l->in[2]))
        l->raw = false;
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    QN_TRY(take_pads(pads, l, order, qn_tfl_rank(x)));
    QN_TRY(qn_graph_build_ints(&list, l->b, pads, 2 * (size_t)qn_tfl_rank(x)));
    QN_TRY(take_filling(&filling, l, x));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Pad, QN_INPUTS(x, list, filling), QN_PLAIN));
    return qn_tfl_put(l, 0, y, order);
}

/* SYMMETRIC shows the border too, which no Pad does: the places are gathered. */
static qn_status gather_mirrored(qn_value **x, tfl_layer *l, int64_t axis, int64_t begin,
                                 int64_t end)
{
    const int64_t size = qn_tfl_dim(*x, axis), count = size + begin + end;
    qn_value *list;
    if (size < 0 || count > INT32_MAX)
        return qn_tfl_unsupported(l, "the size of its input is not known");
    if (begin > size || end > size)
        return qn_tfl_wrong(l, "paddings of %lld and %lld for %lld", (long long)begin,
                            (long long)end, (long long)size);
    int64_t *places = qn_arena_array(&l->b->model->arena, (size_t)count, sizeof *places);
    QN_TRY_ALLOC(l->b->ctx, places);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i - begin;
        places[i] = at < 0 ? -1 - at : at < size ? at : 2 * size - 1 - at;
    }
    QN_TRY(qn_graph_build_ints(&list, l->b, places, (size_t)count));
    return qn_graph_build(x, l->b, &qn_op_Gather, QN_INPUTS(*x, list),
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_tfl_mirror_pad(tfl_layer *l)
{
    int64_t pads[2 * QN_MAX_RANK];
    qn_axis_order order;
    qn_value *x, *list, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    const int32_t rank = qn_tfl_rank(x);
    QN_TRY(take_pads(pads, l, order, rank));
    if (qn_tfl_byte(l, MIRROR_MODE) == 0) {
        QN_TRY(qn_graph_build_ints(&list, l->b, pads, 2 * (size_t)rank));
        QN_TRY(qn_graph_build(&y, l->b, &qn_op_Pad, QN_INPUTS(x, list),
                              QN_WITH(QN_A_TEXT("mode", "reflect"))));
        return qn_tfl_put(l, 0, y, order);
    }
    for (int32_t i = 0; i < rank; i++) {
        if (pads[i] || pads[rank + i])
            QN_TRY(gather_mirrored(&x, l, i, pads[i], pads[rank + i]));
    }
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Identity, x));
    return qn_tfl_put(l, 0, y, order);
}

/* ---- Blocks of pixels ------------------------------------------------------------------------ */

/* Block sizes of up to three spatial axes and begins and ends of each. */
typedef struct tfl_blocks {
    int32_t rank;
    int64_t n;
    int64_t size[QN_TFL_MAX_INTS], edges[QN_TFL_MAX_INTS];
} tfl_blocks;

static qn_status take_blocks(tfl_blocks *k, tfl_layer *l, const qn_value *x)
{
    size_t count, edges;
    QN_TRY(qn_tfl_known_ints(k->size, &count, l, 1));
    QN_TRY(qn_tfl_known_ints(k->edges, &edges, l, 2));
    k->rank = qn_tfl_rank(x);
    k->n = (int64_t)count;
    if (count < 1 || count > 3 || edges != 2 * count || k->rank < (int32_t)count + 1)
        return qn_tfl_wrong(l, "%zu blocks for %d axes", count, (int)k->rank);
    for (size_t i = 0; i < count; i++) {
        if (k->size[i] < 1 || k->size[i] > INT32_MAX || k->edges[2 * i] < 0 ||
            k->edges[2 * i + 1] < 0 || k->edges[2 * i] > INT32_MAX ||
            k->edges[2 * i + 1] > INT32_MAX)
            return qn_tfl_wrong(l, "a block of %lld", (long long)k->size[i]);
    }
    for (int32_t i = 0; i < k->rank; i++) {
        if (qn_tfl_dim(x, i) < 0 && (i == 0 || i <= (int32_t)count))
            return qn_tfl_unsupported(l, "the size of its input is not known");
    }
    return QN_OK;
}

/* [N, H, W, ...] padded -> [N, H/b, b, W/c, c, ...] -> [b, c, N, H/b, W/c, ...]. */
qn_status qn_tfl_space_to_batch(tfl_layer *l)
{
    tfl_blocks k;
    int64_t pads[2 * QN_MAX_RANK] = {0}, split[2 * QN_MAX_RANK], perm[2 * QN_MAX_RANK];
    int64_t joined[QN_MAX_RANK], rest = 0;
    qn_value *x, *list, *filling, *y;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(take_blocks(&k, l, x));
    split[rest++] = joined[0] = qn_tfl_dim(x, 0);
    for (int64_t i = 1; i < k.rank; i++) {
        joined[i] = qn_tfl_dim(x, i);
        if (i <= k.n) {
            pads[i] = k.edges[2 * i - 2];
            pads[k.rank + i] = k.edges[2 * i - 1];
            const int64_t whole = joined[i] + pads[i] + pads[k.rank + i];
            if (whole % k.size[i - 1])
                return qn_tfl_wrong(l, "%lld in blocks of %lld", (long long)whole,
                                    (long long)k.size[i - 1]);
            joined[i] = whole / k.size[i - 1];
            joined[0] *= k.size[i - 1];
            split[rest++] = joined[i];
            split[rest++] = k.size[i - 1];
        } else {
            split[rest++] = joined[i];
        }
    }
    if (rest > QN_MAX_RANK)
        return qn_tfl_unsupported(l, "%lld axes", (long long)rest);
    for (int64_t i = 0; i < rest; i++)
        perm[i] = i < k.n ? 2 * i + 2 : i == k.n ? 0 : i <= 2 * k.n ? 2 * (i - k.n) - 1 : i;
    QN_TRY(qn_graph_build_ints(&list, l->b, pads, 2 * (size_t)k.rank));
    QN_TRY(take_zero(&filling, l, x));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Pad, QN_INPUTS(x, list, filling), QN_PLAIN));
    QN_TRY(qn_tfl_reshape(&y, l, y, split, (size_t)rest));
    QN_TRY(qn_tfl_transpose(&y, l, y, perm, (size_t)rest));
    QN_TRY(qn_tfl_reshape(&y, l, y, joined, (size_t)k.rank));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}

/* [b * c * N, H, W, ...] -> [b, c, N, H, W, ...] -> [N, H, b, W, c, ...], then cut. */
qn_status qn_tfl_batch_to_space(tfl_layer *l)
{
    tfl_blocks k;
    int64_t split[2 * QN_MAX_RANK], perm[2 * QN_MAX_RANK], joined[QN_MAX_RANK], count = 0;
    tfl_range r = {.count = 0};
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_take(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(take_blocks(&k, l, x));
    joined[0] = qn_tfl_dim(x, 0);
    for (int64_t i = 0; i < k.n; i++) {
        split[count++] = k.size[i];
        if (joined[0] % k.size[i])
            return qn_tfl_wrong(l, "a batch of %lld", (long long)joined[0]);
        joined[0] /= k.size[i];
    }
    split[count++] = joined[0];
    for (int64_t i = 1; i < k.rank; i++) {
        joined[i] = qn_tfl_dim(x, i);
        split[count++] = joined[i];
        if (i > k.n)
            continue;
        joined[i] *= k.size[i - 1];
        const int64_t cut = k.edges[2 * i - 1];
        add_range(&r, i, k.edges[2 * i - 2], cut ? -cut : INT64_MAX, 1);
    }
    if (count > QN_MAX_RANK)
        return qn_tfl_unsupported(l, "%lld axes", (long long)count);
    for (int64_t i = 0; i < count; i++)
        perm[i] = i == 0 ? k.n : i > 2 * k.n ? i : i % 2 ? k.n + 1 + i / 2 : i / 2 - 1;
    QN_TRY(qn_tfl_reshape(&y, l, x, split, (size_t)count));
    QN_TRY(qn_tfl_transpose(&y, l, y, perm, (size_t)count));
    QN_TRY(qn_tfl_reshape(&y, l, y, joined, (size_t)k.rank));
    QN_TRY(build_slice(&y, l, y, &r));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}
