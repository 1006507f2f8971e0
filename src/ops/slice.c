/* Slice, Expand and Tile. */
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

/* ---- Slice ----------------------------------------------------------------------------------- */

typedef struct slice_attrs {
    /* Before opset 10 */
    qn_ints starts, ends, axes;
} slice_attrs;

static const qn_attr_spec slice_specs[] = {QN_ATTR(slice_attrs, starts, INTS, .until = 10),
                                           QN_ATTR(slice_attrs, ends, INTS, .until = 10),
                                           QN_ATTR(slice_attrs, axes, INTS, .until = 10)};

static const qn_port slice_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                   {"starts", 'I', QN_SET_INDEX, 0},
                                   {"ends", 'I', QN_SET_INDEX, 0},
                                   {"axes", 'I', QN_SET_INDEX, QN_OPTIONAL},
                                   {"steps", 'I', QN_SET_INDEX, QN_OPTIONAL}};

/* Opset 10: the bounds became inputs. */
static qn_status slice_upgrade(qn_node **node)
{
    slice_attrs *a = (*node)->attrs;
    if (!a->starts.at || !a->ends.at)
        return qn_node_fail(*node, QN_E_FORMAT, "attributes 'starts' and 'ends' are needed");
    QN_TRY(qn_upgrade_ints(*node, &a->starts, 1));
    QN_TRY(qn_upgrade_ints(*node, &a->ends, 2));
    return a->axes.at ? qn_upgrade_ints(*node, &a->axes, 3) : QN_OK;
}

/* From the last slot down, since a downgraded one is cut off. */
static qn_status slice_downgrade(qn_node **node)
{
    slice_attrs *a = (*node)->attrs;
    if ((*node)->n_in > 4 && (*node)->in[4])
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "steps need opset 10");
    if ((*node)->n_in > 3 && (*node)->in[3])
        QN_TRY(qn_downgrade_ints(*node, &a->axes, 3));
    QN_TRY(qn_downgrade_ints(*node, &a->ends, 2));
    return qn_downgrade_ints(*node, &a->starts, 1);
}

static const qn_version_rule slice_versions[] = {{10, slice_upgrade, slice_downgrade}};

/* One axis of a slice. As Python has it, but that going down begins with the first element where it
 * would begin before it: the operator limits starts to 0 .. dim - 1 there. */
typedef struct range {
    int64_t start, step, count;
} range;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static range range_of(int64_t start, int64_t end, int64_t step, int64_t dim)
{
    start += start < 0 ? dim : 0;
    end += end < 0 ? dim : 0;
    /* Going down, -1 is the place before the first element. */
    start = step > 0 ? clamp(start, 0, dim) : clamp(start, QN_MIN(0, dim - 1), dim - 1);
    end = step > 0 ? clamp(end, 0, dim) : clamp(end, -1, dim - 1);
    const int64_t span = step > 0 ? end - start : start - end;
    const uint64_t size = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    const int64_t count = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / size + 1);
    return (range){start, step, count};
}

/* Bounds of the axes that a Slice names; *count is how many. */
typedef struct bounds {
    int64_t starts[QN_MAX_RANK], ends[QN_MAX_RANK], axes[QN_MAX_RANK], steps[QN_MAX_RANK];
    size_t count;
} bounds;

static bool slice_list(const qn_infer *self, int32_t i, int64_t *out, size_t *count)
{
    return qn_infer_ints(self, i, out, QN_MAX_RANK, count);
}

/* False when a bound is not known yet. */
static bool slice_bounds(bounds *b, const qn_infer *self)
{
    size_t n_starts, n_ends, n_axes, n_steps;
    if (!slice_list(self, 1, b->starts, &n_starts) || !slice_list(self, 2, b->ends, &n_ends))
        return false;
    n_axes = n_steps = n_starts;
    for (size_t i = 0; i < n_starts; i++) {
        b->axes[i] = (int64_t)i;
        b->steps[i] = 1;
    }
    if (qn_infer_has(self, 3) && !slice_list(self, 3, b->axes, &n_axes))
        return false;
    if (qn_infer_has(self, 4) && !slice_list(self, 4, b->steps, &n_steps))
        return false;
    const bool fits = n_starts == n_ends && n_starts == n_axes && n_starts == n_steps;
    b->count = fits ? n_starts : SIZE_MAX;
    return true;
}

static qn_status slice_check(qn_infer *self, bounds *b, int32_t rank)
{
    bool seen[QN_MAX_RANK] = {false};
    if (b->count == SIZE_MAX)
        return qn_infer_fail(self, "starts, ends, axes and steps differ in length");
    for (size_t i = 0; i < b->count; i++) {
        QN_TRY(qn_infer_axis(self, &b->axes[i], rank, "axis"));
        if (seen[b->axes[i]])
            return qn_infer_fail(self, "axis %lld stands there twice", (long long)b->axes[i]);
        seen[b->axes[i]] = true;
        if (b->steps[i] == 0)
            return qn_infer_fail(self, "a step is 0");
    }
    return QN_OK;
}

/* A part of a shape being computed. */
static qn_status slice_elements(qn_infer *self, const bounds *b)
{
    qn_dim from[QN_MAX_RANK], to[QN_MAX_RANK];
    size_t count;
    if (self->in[0]->rank != 1 || b->count != 1 || !qn_dtype_is_integer(self->in[0]->dtype) ||
        !qn_infer_elements(self, 0, from, QN_MAX_RANK, &count))
        return QN_OK;
    const range r = range_of(b->starts[0], b->ends[0], b->steps[0], (int64_t)count);
    for (int64_t i = 0; i < r.count; i++)
        to[i] = from[r.start + i * r.step];
    return qn_infer_set_elements(self, 0, to, (size_t)r.count);
}

/* Which axes a slice with unknown bounds touches is known when `axes` is; none: all may change. */
static void slice_open(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    qn_type out = *in;
    const bool known = qn_infer_has(self, 3) && slice_list(self, 3, axes, &count);
    for (int32_t d = 0; !known && d < out.rank; d++)
        out.dims[d] = qn_dim_unknown();
    for (size_t i = 0; known && i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + in->rank : axes[i];
        if (axis >= 0 && axis < in->rank)
            out.dims[axis] = qn_dim_unknown();
    }
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
}

static qn_status slice_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    bounds b;
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    if (!slice_bounds(&b, self)) {
        slice_open(self);
        return QN_OK;
    }
    QN_TRY(slice_check(self, &b, in->rank));
    for (size_t i = 0; i < b.count; i++) {
        const qn_dim dim = in->dims[b.axes[i]];
        const bool whole = b.starts[i] == 0 && b.steps[i] == 1 && b.ends[i] >= INT32_MAX;
        if (dim.value >= 0)
            out.dims[b.axes[i]] =
                qn_dim_of(range_of(b.starts[i], b.ends[i], b.steps[i], dim.value).count);
        else if (!whole)
            out.dims[b.axes[i]] = qn_dim_unknown();
    }
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    return slice_elements(self, &b);
}

bool qn_slice_walk(int64_t *start, int64_t *strides, const qn_tensor *in,
                   const qn_tensor *const lists[4])
{
    const qn_tensor *axes = lists[2], *steps = lists[3];
    const int64_t count = qn_tensor_count(lists[0]);
    *start = 0;
    if (qn_tensor_count(lists[1]) != count || (axes && qn_tensor_count(axes) != count) ||
        (steps && qn_tensor_count(steps) != count))
        return false;
    qn_dims_strides(strides, in->rank, in->dims);
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes ? qn_tensor_i64(axes, i) : i;
        axis += axis < 0 ? in->rank : 0;
        if (axis < 0 || axis >= in->rank)
            return false;
        const range r = range_of(qn_tensor_i64(lists[0], i), qn_tensor_i64(lists[1], i),
                                 steps ? qn_tensor_i64(steps, i) : 1, in->dims[axis]);
        *start += r.start * strides[axis];
        /* The step of an axis with one element is never taken, and may be huge. */
        strides[axis] = r.count > 1 ? strides[axis] * r.step : 0;
    }
    return true;
}

static qn_status slice_eval(qn_eval *self)
{
    const qn_tensor *const lists[4] = {self->in[1], self->in[2], qn_eval_in(self, 3),
                                       qn_eval_in(self, 4)};
    int64_t strides[QN_MAX_RANK], start;
    if (!qn_slice_walk(&start, strides, self->in[0], lists))
        return qn_eval_fail(self, "starts, ends, axes and steps do not fit the input");
    if (qn_tensor_count(self->out[0]) > 0)
        qn_move_from(self->out[0], self->in[0], start, strides);
    return QN_OK;
}

const qn_op qn_op_Slice = {.name = "Slice",
                           .domain = "",
                           .since = 1,
                           QN_PORTS(in, slice_in),
                           QN_PORTS(out, any_out),
                           QN_ATTRS(slice_specs, slice_attrs),
                           QN_VERSIONS(slice_versions),
                           .flags = QN_OP_MOVES,
                           .quant = QN_QUANT_PASS,
                           .infer = slice_infer,
                           .eval = slice_eval,
                           .brief = "every step-th element between bounds"};

/* ---- Expand ---------------------------------------------------------------------------------- */

static const qn_port expand_in[] = {{"input", 'T', QN_SET_TENSOR, 0},
                                    {"shape", 0, QN_SET(QN_INT64), 0}};

static qn_status expand_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    qn_dim shape[QN_MAX_RANK], dims[QN_MAX_RANK];
    size_t count;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    if (!qn_infer_elements(self, 1, shape, QN_MAX_RANK, &count)) {
        if (self->data[1])
            return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
        return QN_OK;
    }
    const int32_t rank = QN_MAX(in->rank, (int32_t)count);
    for (int32_t d = 0; d < rank; d++) {
        const int32_t a = d - (rank - in->rank), b = d - (rank - (int32_t)count);
        const qn_dim wanted = b >= 0 ? shape[b] : qn_dim_of(1);
        if (qn_element_known(wanted) && wanted.value < 0)
            return qn_infer_fail(self, "the shape has a dimension %lld", (long long)wanted.value);
        if (!qn_dim_broadcast(&dims[d], a >= 0 ? in->dims[a] : qn_dim_of(1),
                              qn_dim_of_element(wanted)))
            return qn_infer_fail(self, "dimension %d does not broadcast to %lld", a,
                                 (long long)wanted.value);
    }
    qn_infer_set(self, 0, in->dtype, rank, dims);
    return QN_OK;
}

static qn_status expand_eval(qn_eval *self)
{
    int64_t strides[QN_MAX_RANK];
    qn_broadcast_strides(strides, self->in[0], self->out[0]->rank, self->out[0]->dims);
    qn_move_from(self->out[0], self->in[0], 0, strides);
    return QN_OK;
}

const qn_op qn_op_Expand = {.name = "Expand",
                            .domain = "",
                            .since = 8,
                            QN_PORTS(in, expand_in),
                            QN_PORTS(out, any_out),
                            .quant = QN_QUANT_PASS,
                            .flags = QN_OP_MOVES,
                            .infer = expand_infer,
                            .eval = expand_eval,
                            .brief = "broadcast to a shape"};

/* ---- Tile ------------------------------------------------------------------------------------ */

static const qn_port tile_in[] = {{"input", 'T', QN_SET_TENSOR, 0},
                                  {"repeats", 0, QN_SET(QN_INT64), 0},
                                  {"axis", 0, QN_SET_TENSOR, QN_OPTIONAL}}; /* until opset 6 */
static const qn_type_rule tile_types[] = {{6, QN_SET_TENSOR & ~QN_SET_FLOAT}};

static qn_status tile_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t repeats[QN_MAX_RANK];
    size_t count;
    qn_type out = *in;
    if (qn_infer_has(self, 2))
        return qn_infer_fail(self, "its input axis left with opset 6");
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    const bool known = qn_infer_ints(self, 1, repeats, QN_MAX_RANK, &count);
    if (known && count != (size_t)in->rank)
        return qn_infer_fail(self, "%zu repeats for %d dimensions", count, in->rank);
    for (int32_t d = 0; d < in->rank; d++) {
        if (known && repeats[d] < 0)
            return qn_infer_fail(self, "repeats has a negative number");
        out.dims[d] = known ? qn_dim_mul(in->dims[d], qn_dim_of(repeats[d])) : qn_dim_unknown();
        if (known && in->dims[d].value > 0 && repeats[d] > 0 && out.dims[d].value < 0)
            return qn_infer_fail(self, "dimension %d grows too large", d);
    }
    qn_infer_set(self, 0, in->dtype, in->rank, out.dims);
    return QN_OK;
}

/* out[x] = in[x mod dims], row by row. */
static qn_status tile_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int32_t last = out->rank - 1;
    const int64_t row = last < 0 ? 1 : in->dims[last], count = qn_tensor_count(out);
    const int64_t repeats = last < 0 || !count ? 1 : out->dims[last] / row;
    const size_t size = qn_dtype_size(out->dtype);
    int64_t strides[QN_MAX_RANK];
    qn_dims_strides(strides, in->rank, in->dims);
    for (int64_t i = 0; i < count; i += row * repeats) {
        int64_t rest = i / (row * repeats), from = 0;
        for (int32_t d = last - 1; d >= 0; d--) {
            from += rest % out->dims[d] % in->dims[d] * strides[d];
            rest /= out->dims[d];
        }
        qn_fill((char *)out->data + (size_t)i * size, repeats,
                (const char *)in->data + from * (int64_t)size, (size_t)row * size);
    }
    return QN_OK;
}

/* Opset 6: repeats of every axis instead of a count along one axis. */
static qn_status tile_upgrade(qn_node **node)
{
    const qn_value *tiles = (*node)->n_in > 1 ? (*node)->in[1] : NULL;
    const qn_value *axis = (*node)->n_in > 2 ? (*node)->in[2] : NULL;
    const int32_t rank = (*node)->in[0] ? (*node)->in[0]->type.rank : -1;
    int64_t repeats[QN_MAX_RANK];
    qn_value *value;
    if (!tiles || !axis)
        return QN_OK;
    if (!tiles->data || !axis->data || rank < 0 || qn_tensor_count(tiles->data) != 1 ||
        qn_tensor_count(axis->data) != 1)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "of opset 1 needs constant tiles and axis");
    for (int32_t d = 0; d < rank; d++)
        repeats[d] = 1;
    const int64_t at = qn_tensor_i64(axis->data, 0);
    if (at < 0 || at >= rank)
        return qn_node_fail(*node, QN_E_FORMAT, "axis %lld is no dimension", (long long)at);
    repeats[at] = qn_tensor_i64(tiles->data, 0);
    QN_TRY(qn_value_ints(&value, (*node)->graph, repeats, (size_t)rank));
    QN_TRY(qn_node_resize_inputs(*node, 2));
    return qn_node_set_input(*node, 1, value);
}

/* The last axis that is repeated, or 0; *others: one before it is, too. */
static int32_t last_repeated(bool *others, const int64_t *repeats, int32_t rank)
{
    int32_t axis = 0;
    *others = false;
    for (int32_t d = 0; d < rank; d++) {
        if (repeats[d] == 1)
            continue;
        *others = repeats[axis] != 1 && axis != d;
        axis = d;
    }
    return axis;
}

static qn_status set_number(qn_node *node, int32_t slot, int64_t number)
{
    qn_value *value;
    QN_TRY(qn_value_number(&value, node->graph, node->in[0]->type.dtype, (double)number));
    if (qn_tensor_i64(value->data, 0) != number)
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "before opset 6 %lld must be a number of input's type",
                            (long long)number);
    return qn_node_set_input(node, slot, value);
}

/* One axis stays with the node; the others go to a Tile before it, which has its own turn. */
static qn_status tile_downgrade(qn_node **node)
{
    const qn_tensor *repeats = (*node)->in[1]->data;
    const int32_t rank = (*node)->in[0]->type.rank;
    int64_t numbers[QN_MAX_RANK];
    bool others;
    if (!repeats || rank < 1 || qn_tensor_count(repeats) != rank)
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "before opset 6 needs constant repeats, of one axis at least");
    qn_load_i64(numbers, repeats->dtype, repeats->data, 0, rank);
    const int32_t axis = last_repeated(&others, numbers, rank);
    const int64_t count = numbers[axis];
    if (others) {
        qn_node *first;
        qn_value *rest;
        numbers[axis] = 1;
        QN_TRY(qn_node_prepend(&first, *node, 0, &qn_op_Tile));
        QN_TRY(qn_value_ints(&rest, (*node)->graph, numbers, (size_t)rank));
        QN_TRY(qn_node_resize_inputs(first, 2));
        QN_TRY(qn_node_set_input(first, 1, rest));
        QN_TRY(qn_node_infer(first));
    }
    QN_TRY(qn_node_resize_inputs(*node, 3));
    QN_TRY(set_number(*node, 1, count));
    return set_number(*node, 2, axis);
}

static const qn_version_rule tile_versions[] = {{6, tile_upgrade, tile_downgrade}};

const qn_op qn_op_Tile = {.name = "Tile",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, tile_in),
                          QN_PORTS(out, any_out),
                          QN_VERSIONS(tile_versions),
                          QN_TYPE_RULES(tile_types),
                          .flags = QN_OP_MOVES,
                          .quant = QN_QUANT_PASS,
                          .infer = tile_infer,
                          .eval = tile_eval,
                          .brief = "repeats along every axis"};
