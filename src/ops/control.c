/* If, Loop and Scan: operators that run subgraphs. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"

static const qn_port variadic_out[] = {{"outputs", 0, QN_SET_ANY, QN_VARIADIC | QN_OPTIONAL}};

/* What is sure of a value that is either a or b. */
static qn_type either(const qn_type *a, const qn_type *b)
{
    qn_type out = *a;
    out.elements = NULL;
    if (a->kind != b->kind || (a->kind == QN_TYPE_TENSOR && a->dtype != b->dtype))
        return (qn_type){.kind = QN_TYPE_UNKNOWN, .rank = -1};
    if (a->rank != b->rank)
        out.rank = -1;
    for (int32_t d = 0; d < out.rank; d++) {
        if (!qn_dim_same(a->dims[d], b->dims[d]))
            out.dims[d] = qn_dim_unknown();
    }
    return out;
}

static bool same_type(const qn_type *a, const qn_type *b)
{
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t d = 0; same && d < a->rank; d++)
        same =
            qn_dim_same(a->dims[d], b->dims[d]) || (a->dims[d].value < 0 && b->dims[d].value < 0);
    return same;
}

static bool is_true(const qn_tensor *tensor)
{
    return *(const uint8_t *)tensor->data != 0;
}

static qn_status check_bool(const qn_eval *self, const qn_tensor *tensor)
{
    if (tensor->dtype != QN_BOOL || qn_tensor_count(tensor) != 1)
        return qn_eval_fail(self, "the condition must be one bool");
    return QN_OK;
}

/* ---- If --------------------------------------------------------------------------------------------------- */

typedef struct if_attrs {
    qn_graph *then_branch, *else_branch;
} if_attrs;
static const qn_attr_spec if_specs[] = {QN_ATTR(if_attrs, then_branch, GRAPH, .required = true),
                                        QN_ATTR(if_attrs, else_branch, GRAPH, .required = true)};
static const qn_port if_in[] = {{"cond", 0, QN_SET_BOOL, 0}};

static qn_status if_infer(qn_infer *self)
{
    const if_attrs *a = self->attrs;
    const size_t n_out = (size_t)self->n_out;
    if (a->then_branch->n_outputs < n_out || a->else_branch->n_outputs < n_out)
        return qn_infer_fail(self, "a branch has fewer outputs than the node");
    if (a->then_branch->n_inputs || a->else_branch->n_inputs)
        return qn_infer_fail(self, "a branch has inputs, it can only capture");
    if (!self->graph)
        return QN_OK;
    QN_TRY(self->graph(self, a->then_branch, NULL));
    QN_TRY(self->graph(self, a->else_branch, NULL));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (qn_infer_wants(self, o))
            *self->out[o] =
                either(&a->then_branch->outputs[o]->type, &a->else_branch->outputs[o]->type);
    }
    return QN_OK;
}

static qn_status if_eval(qn_eval *self)
{
    const if_attrs *a = self->attrs;
    void *block;
    QN_TRY(check_bool(self, self->in[0]));
    const qn_graph *branch = is_true(self->in[0]) ? a->then_branch : a->else_branch;
    QN_TRY(qn_eval_scratch(self, &block, (int64_t)branch->n_outputs + 1, sizeof(qn_tensor *)));
    const qn_tensor **results = block;
    QN_TRY(self->graph(self, branch, NULL, results));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (self->out[o])
            QN_TRY(qn_eval_output_copy(self, o, results[o]));
    }
    return QN_OK;
}

const qn_op qn_op_If = {.name = "If",
                        .domain = "",
                        .since = 1,
                        QN_PORTS(in, if_in),
                        QN_PORTS(out, variadic_out),
                        QN_ATTRS(if_specs, if_attrs),
                        .flags = QN_OP_ALLOCATES,
                        .quant = QN_QUANT_FLOAT,
                        .infer = if_infer,
                        .eval = if_eval,
                        .brief = "one of two subgraphs"};

/* ---- Values gathered over the iterations ---------------------------------------------------------------- */

/* Results of one output, put together along a new axis when the last is known. */
typedef struct stack {
    qn_tensor *items;
    int64_t count, capacity;
} stack;

static qn_status stack_push(qn_eval *self, stack *s, const qn_tensor *item)
{
    if (s->count &&
        (item->dtype != s->items[0].dtype || item->rank != s->items[0].rank ||
         memcmp(item->dims, s->items[0].dims, (size_t)item->rank * sizeof *item->dims) != 0))
        return qn_eval_fail(self, "a scan output changes its shape between iterations");
    if (item->dtype >= QN_SEQUENCE || item->rank >= QN_MAX_RANK)
        return qn_eval_fail(self, "a scan output must be a tensor");
    if (s->count == s->capacity) {
        const int64_t capacity = s->capacity ? s->capacity * 2 : 16;
        void *grown;
        QN_TRY(qn_eval_scratch(self, &grown, capacity, sizeof *s->items));
        if (s->count)
            memcpy(grown, s->items, (size_t)s->count * sizeof *s->items);
        s->items = grown;
        s->capacity = capacity;
    }
    return qn_eval_copy(self, &s->items[s->count++], item);
}

/* Output o = items along `axis`, the last first where `backwards`. Without any item the shape is taken
 * from the subgraph's output as far as it is known. */
static qn_status stack_join(qn_eval *self, int32_t o, const stack *s, int64_t axis, bool backwards,
                            const qn_type *type)
{
    int64_t strides[QN_MAX_RANK];
    qn_tensor shape = {.dtype = type->dtype, .rank = QN_MAX(type->rank, 0)};
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = QN_MAX(type->dims[d].value, 0);
    if (s->count)
        shape = s->items[0];
    const int32_t rank = shape.rank + 1;
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || rank > QN_MAX_RANK)
        return qn_eval_fail(self, "axis %lld is no dimension", (long long)axis);
    memmove(&shape.dims[at + 1], &shape.dims[at], (size_t)(shape.rank - at) * sizeof *shape.dims);
    shape.dims[at] = s->count;
    QN_TRY(qn_eval_output(self, o, shape.dtype, rank, shape.dims));
    qn_dims_strides(strides, rank, shape.dims);
    shape.rank = rank;
    shape.dims[at] = 1;
    for (int64_t i = 0; i < s->count; i++) {
        shape.data = s->items[backwards ? s->count - 1 - i : i].data;
        qn_move_to(self->out[o], &shape, i * strides[at], strides);
    }
    return QN_OK;
}

/* ---- Loop ------------------------------------------------------------------------------------------------- */

typedef struct loop_attrs {
    qn_graph *body;
} loop_attrs;
static const qn_attr_spec loop_specs[] = {QN_ATTR(loop_attrs, body, GRAPH, .required = true)};
static const qn_port loop_in[] = {{"M", 0, QN_SET(QN_INT64), QN_OPTIONAL},
                                  {"cond", 0, QN_SET_BOOL, QN_OPTIONAL},
                                  {"v_initial", 0, QN_SET_ANY, QN_VARIADIC | QN_OPTIONAL}};

/* Body: (iteration, condition, carried..) -> (condition, carried.., scanned..). */
static qn_status loop_check(qn_infer *self, int32_t *carried)
{
    const qn_graph *body = ((const loop_attrs *)self->attrs)->body;
    *carried = QN_MAX(self->n_in - 2, 0);
    if (body->n_inputs != (size_t)*carried + 2)
        return qn_infer_fail(self, "the body has %zu inputs, not %d", body->n_inputs, *carried + 2);
    if (body->n_outputs < (size_t)*carried + 1 || (size_t)self->n_out > body->n_outputs - 1)
        return qn_infer_fail(self, "the body has too few outputs");
    for (int32_t i = 0; i < *carried; i++) {
        if (!qn_infer_has(self, i + 2))
            return qn_infer_fail(self, "initial value %d is missing", i);
    }
    return QN_OK;
}

/* How many graphs the node's own graph lies in. */
static int nesting(const qn_node *node)
{
    int depth = 0;
    for (; node->graph->owner; node = node->graph->owner)
        depth++;
    return depth;
}

static void forget_dims(qn_type *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        types[i] = (qn_type){.kind = types[i].kind,
                             .dtype = types[i].dtype,
                             .rank = types[i].kind == QN_TYPE_TENSOR ? -1 : types[i].rank,
                             .element = types[i].element};
}

/* Carried values keep of their type what every iteration leaves as it is: each round drops what
 * changed. Rounds of nested loops multiply, so deep ones, and those that do not settle, get by
 * without shapes. */
static qn_status carried_infer(qn_infer *self, qn_graph *body, qn_type *types, size_t first,
                               size_t first_out, size_t carried)
{
    const int rounds = nesting(self->node) < 2 ? QN_MAX_RANK + 2 : 0;
    for (int round = 0; round < rounds; round++) {
        bool stable = true;
        QN_TRY(self->graph(self, body, types));
        for (size_t i = 0; i < carried; i++) {
            const qn_type next = either(&types[first + i], &body->outputs[first_out + i]->type);
            stable = stable && same_type(&next, &types[first + i]);
            types[first + i] = next;
        }
        if (stable)
            return QN_OK;
    }
    forget_dims(types + first, carried);
    return self->graph(self, body, types);
}

/* Output o: what the body's output b is, with `count` of them along `axis`. */
static void scanned_set(qn_infer *self, int32_t o, const qn_type *one, int64_t axis, qn_dim count)
{
    qn_dim dims[QN_MAX_RANK];
    if (one->kind != QN_TYPE_TENSOR || one->rank < 0 || one->rank >= QN_MAX_RANK) {
        qn_infer_set_dtype(self, o, one->dtype);
        return;
    }
    const int64_t at = axis < 0 ? axis + one->rank + 1 : axis;
    if (at < 0 || at > one->rank) {
        qn_infer_set_dtype(self, o, one->dtype);
        return;
    }
    for (int32_t d = 0, from = 0; d < one->rank + 1; d++)
        dims[d] = d == at ? count : one->dims[from++];
    qn_infer_set(self, o, one->dtype, one->rank + 1, dims);
}

static qn_status loop_infer(qn_infer *self)
{
    qn_graph *body = ((const loop_attrs *)self->attrs)->body;
    int32_t carried;
    QN_TRY(loop_check(self, &carried));
    if (!self->graph)
        return QN_OK;
    qn_type *types = qn_arena_array(self->arena, body->n_inputs, sizeof *types);
    QN_TRY_ALLOC(self->ctx, types);
    types[0] = qn_type_tensor(QN_INT64, 0, NULL);
    types[1] = qn_type_tensor(QN_BOOL, 0, NULL);
    for (int32_t i = 0; i < carried; i++) {
        types[i + 2] = *self->in[i + 2];
        types[i + 2].elements = NULL;
    }
    QN_TRY(carried_infer(self, body, types, 2, 1, (size_t)carried));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!qn_infer_wants(self, o))
            continue;
        if (o < carried)
            *self->out[o] = types[o + 2];
        else
            scanned_set(self, o, &body->outputs[o + 1]->type, 0, qn_dim_unknown());
    }
    return QN_OK;
}

typedef struct loop_run {
    const qn_graph *body;
    int32_t carried;
    const qn_tensor **inputs;
    const qn_tensor **results;
    qn_tensor *kept; /* copies of the carried values */
    stack *scanned;
} loop_run;

static qn_status loop_room(qn_eval *self, loop_run *r)
{
    void *inputs, *results, *kept, *scanned;
    const int64_t n_out = (int64_t)r->body->n_outputs + 1;
    QN_TRY(qn_eval_scratch(self, &inputs, (int64_t)r->body->n_inputs + 1, sizeof(qn_tensor *)));
    QN_TRY(qn_eval_scratch(self, &results, n_out, sizeof(qn_tensor *)));
    QN_TRY(qn_eval_scratch(self, &kept, (int64_t)r->body->n_inputs + 1, sizeof(qn_tensor)));
    QN_TRY(qn_eval_scratch(self, &scanned, n_out, sizeof(stack)));
    memset(scanned, 0, (size_t)n_out * sizeof(stack));
    r->inputs = inputs;
    r->results = results;
    r->kept = kept;
    r->scanned = scanned;
    return QN_OK;
}

/* One iteration: carried values are copied, since the results live only until the next one. */
static qn_status iterate(qn_eval *self, loop_run *r, int32_t first_in, int32_t first_out)
{
    QN_TRY(self->graph(self, r->body, r->inputs, r->results));
    for (int32_t i = 0; i < r->carried; i++) {
        QN_TRY(qn_eval_copy(self, &r->kept[i], r->results[first_out + i]));
        r->inputs[first_in + i] = &r->kept[i];
    }
    for (size_t o = (size_t)(first_out + r->carried); o < r->body->n_outputs; o++)
        QN_TRY(stack_push(self, &r->scanned[o], r->results[o]));
    return QN_OK;
}

static qn_status loop_iterate(qn_eval *self, loop_run *r)
{
    const qn_tensor *most = qn_eval_in(self, 0), *cond = qn_eval_in(self, 1);
    int64_t iteration = 0, limit = INT64_MAX;
    uint8_t go_on = 1;
    if (cond) {
        QN_TRY(check_bool(self, cond));
        go_on = is_true(cond);
    }
    if (most && qn_tensor_count(most) != 1)
        return qn_eval_fail(self, "M must be one number");
    if (most)
        limit = qn_tensor_i64(most, 0);
    const qn_tensor number = {.dtype = QN_INT64, .data = &iteration};
    const qn_tensor condition = {.dtype = QN_BOOL, .data = &go_on};
    r->inputs[0] = &number;
    r->inputs[1] = &condition;
    for (; iteration < limit && go_on; iteration++) {
        QN_TRY(qn_check_cancel(self->ctx));
        QN_TRY(iterate(self, r, 2, 1));
        QN_TRY(check_bool(self, r->results[0]));
        go_on = is_true(r->results[0]);
    }
    return QN_OK;
}

static qn_status loop_eval(qn_eval *self)
{
    loop_run r = {.body = ((const loop_attrs *)self->attrs)->body,
                  .carried = QN_MAX(self->n_in - 2, 0)};
    QN_TRY(loop_room(self, &r));
    for (int32_t i = 0; i < r.carried; i++)
        r.inputs[i + 2] = self->in[i + 2];
    QN_TRY(loop_iterate(self, &r));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!self->out[o])
            continue;
        if (o < r.carried)
            QN_TRY(qn_eval_output_copy(self, o, r.inputs[o + 2]));
        else
            QN_TRY(stack_join(self, o, &r.scanned[o + 1], 0, false, &r.body->outputs[o + 1]->type));
    }
    return QN_OK;
}

const qn_op qn_op_Loop = {.name = "Loop",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, loop_in),
                          QN_PORTS(out, variadic_out),
                          QN_ATTRS(loop_specs, loop_attrs),
                          .flags = QN_OP_ALLOCATES,
                          .quant = QN_QUANT_FLOAT,
                          .infer = loop_infer,
                          .eval = loop_eval,
                          .brief = "a subgraph again and again"};

/* ---- Scan ------------------------------------------------------------------------------------------------- */

typedef struct scan_attrs {
    qn_graph *body;
    int64_t num_scan_inputs;
    qn_ints scan_input_axes, scan_input_directions, scan_output_axes, scan_output_directions;
    qn_ints directions; /* opset 8 */
} scan_attrs;
static const qn_attr_spec scan_specs[] = {
    QN_ATTR(scan_attrs, body, GRAPH, .required = true),
    QN_INT_ATTR(scan_attrs, num_scan_inputs, 0, .required = true),
    QN_ATTR(scan_attrs, scan_input_axes, INTS),
    QN_ATTR(scan_attrs, scan_input_directions, INTS),
    QN_ATTR(scan_attrs, scan_output_axes, INTS),
    QN_ATTR(scan_attrs, scan_output_directions, INTS),
    QN_ATTR(scan_attrs, directions, INTS, .until = 9)};
static const qn_port scan_in[] = {{"initial_state_and_scan_inputs", 0, QN_SET_TENSOR, QN_VARIADIC}};

/* Opset 8 had a batch dimension in front of everything, which no later form can say. */
static qn_status scan_upgrade(qn_node **node)
{
    return qn_node_fail(*node, QN_E_UNSUPPORTED, "the batched Scan of opset 8 is not supported");
}

static const qn_version_rule scan_versions[] = {{9, scan_upgrade, NULL}};

static int64_t item_of(qn_ints list, size_t i)
{
    return list.at ? list.at[i] : 0;
}

typedef struct scan_counts {
    int32_t states, scanned; /* inputs; states come first */
    size_t outputs;          /* scan outputs of the body */
} scan_counts;

static qn_status scan_check(qn_infer *self, scan_counts *c)
{
    const scan_attrs *a = self->attrs;
    if (a->num_scan_inputs < 1 || a->num_scan_inputs > self->n_in)
        return qn_infer_fail(self, "num_scan_inputs %lld does not fit %d inputs",
                             (long long)a->num_scan_inputs, self->n_in);
    c->scanned = (int32_t)a->num_scan_inputs;
    c->states = self->n_in - c->scanned;
    if (a->body->n_inputs != (size_t)self->n_in || a->body->n_outputs < (size_t)c->states ||
        (size_t)self->n_out > a->body->n_outputs)
        return qn_infer_fail(self, "the body's inputs or outputs do not fit the node's");
    c->outputs = a->body->n_outputs - (size_t)c->states;
    const qn_ints of_inputs[] = {a->scan_input_axes, a->scan_input_directions};
    const qn_ints of_outputs[] = {a->scan_output_axes, a->scan_output_directions};
    for (int i = 0; i < 2; i++) {
        if ((of_inputs[i].at && of_inputs[i].count != (size_t)c->scanned) ||
            (of_outputs[i].at && of_outputs[i].count != c->outputs))
            return qn_infer_fail(self, "axes or directions have the wrong number of entries");
    }
    return QN_OK;
}

/* The type of one slice of scan input i; *length is merged with its axis. */
static qn_status slice_type(qn_type *out, qn_infer *self, int32_t i, int64_t axis, qn_dim *length)
{
    const qn_type *in = self->in[i];
    *out = (qn_type){.kind = QN_TYPE_TENSOR, .dtype = in->dtype, .rank = -1};
    if (in->rank < 0)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, &axis, in->rank, "scan_input_axes"));
    if (!qn_dim_merge(length, *length, in->dims[axis]))
        return qn_infer_fail(self, "scan inputs differ in length");
    out->rank = in->rank - 1;
    for (int32_t d = 0, to = 0; d < in->rank; d++) {
        if (d != axis)
            out->dims[to++] = in->dims[d];
    }
    return QN_OK;
}

static qn_status scan_infer(qn_infer *self)
{
    const scan_attrs *a = self->attrs;
    scan_counts c = {0, 0, 0};
    qn_dim length = qn_dim_unknown();
    QN_TRY(scan_check(self, &c));
    if (!self->graph)
        return QN_OK;
    qn_type *types = qn_arena_array(self->arena, a->body->n_inputs, sizeof *types);
    QN_TRY_ALLOC(self->ctx, types);
    for (int32_t i = 0; i < c.states; i++) {
        types[i] = *self->in[i];
        types[i].elements = NULL;
    }
    for (int32_t i = 0; i < c.scanned; i++)
        QN_TRY(slice_type(&types[c.states + i], self, c.states + i,
                          item_of(a->scan_input_axes, (size_t)i), &length));
    QN_TRY(carried_infer(self, a->body, types, 0, 0, (size_t)c.states));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!qn_infer_wants(self, o))
            continue;
        if (o < c.states)
            *self->out[o] = types[o];
        else
            scanned_set(self, o, &a->body->outputs[o]->type,
                        item_of(a->scan_output_axes, (size_t)(o - c.states)), length);
    }
    return QN_OK;
}

/* Slice t of scan input i, dense, in *slice, whose memory is there. */
static void take_slice(qn_tensor *slice, const qn_tensor *in, int64_t axis, int64_t t)
{
    int64_t strides[QN_MAX_RANK], left[QN_MAX_RANK];
    qn_dims_strides(strides, in->rank, in->dims);
    int32_t rank = 0;
    for (int32_t d = 0; d < in->rank; d++) {
        if (d == axis)
            continue;
        slice->dims[rank] = in->dims[d];
        left[rank++] = strides[d];
    }
    slice->rank = rank;
    qn_move_from(slice, in, t * strides[axis], left);
}

static qn_status scan_slices(qn_eval *self, loop_run *r, qn_tensor *slices, int64_t *length)
{
    const scan_attrs *a = self->attrs;
    *length = -1;
    for (int32_t i = r->carried; i < self->n_in; i++) {
        const qn_tensor *in = self->in[i];
        const int64_t given = item_of(a->scan_input_axes, (size_t)(i - r->carried));
        const int64_t axis = given < 0 ? given + in->rank : given;
        void *block;
        if (axis < 0 || axis >= in->rank || (*length >= 0 && in->dims[axis] != *length))
            return qn_eval_fail(self, "scan inputs do not fit each other");
        *length = in->dims[axis];
        QN_TRY(qn_eval_scratch(self, &block, qn_tensor_count(in) / QN_MAX(*length, 1) + 1,
                               qn_dtype_size(in->dtype)));
        slices[i] = (qn_tensor){.dtype = in->dtype, .data = block};
        r->inputs[i] = &slices[i];
    }
    return QN_OK;
}

static qn_status scan_iterate(qn_eval *self, loop_run *r)
{
    const scan_attrs *a = self->attrs;
    int64_t length;
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, self->n_in, sizeof(qn_tensor)));
    qn_tensor *slices = block;
    QN_TRY(scan_slices(self, r, slices, &length));
    for (int64_t t = 0; t < length; t++) {
        QN_TRY(qn_check_cancel(self->ctx));
        for (int32_t i = r->carried; i < self->n_in; i++) {
            const size_t k = (size_t)(i - r->carried);
            const int64_t given = item_of(a->scan_input_axes, k);
            const int64_t axis = given < 0 ? given + self->in[i]->rank : given;
            const bool backwards = item_of(a->scan_input_directions, k) != 0;
            take_slice(&slices[i], self->in[i], axis, backwards ? length - 1 - t : t);
        }
        QN_TRY(iterate(self, r, 0, 0));
    }
    return QN_OK;
}

static qn_status scan_eval(qn_eval *self)
{
    const scan_attrs *a = self->attrs;
    loop_run r = {.body = a->body, .carried = self->n_in - (int32_t)a->num_scan_inputs};
    QN_TRY(loop_room(self, &r));
    for (int32_t i = 0; i < r.carried; i++)
        r.inputs[i] = self->in[i];
    QN_TRY(scan_iterate(self, &r));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!self->out[o])
            continue;
        const size_t k = (size_t)(o - r.carried);
        if (o < r.carried)
            QN_TRY(qn_eval_output_copy(self, o, r.inputs[o]));
        else
            QN_TRY(stack_join(self, o, &r.scanned[o], item_of(a->scan_output_axes, k),
                              item_of(a->scan_output_directions, k) != 0,
                              &r.body->outputs[o]->type));
    }
    return QN_OK;
}

const qn_op qn_op_Scan = {.name = "Scan",
                          .domain = "",
                          .since = 8,
                          QN_PORTS(in, scan_in),
                          QN_PORTS(out, variadic_out),
                          QN_ATTRS(scan_specs, scan_attrs),
                          QN_VERSIONS(scan_versions),
                          .flags = QN_OP_ALLOCATES,
                          .quant = QN_QUANT_FLOAT,
                          .infer = scan_infer,
                          .eval = scan_eval,
                          .brief = "a subgraph over the slices of tensors"};
