/* Scan: a subgraph over the slices of tensors. */
#include "ops/infer.h"
#include "ops/iterate.h"
#include "ops/move.h"

static const qn_port variadic_out[] = {{"outputs", 0, QN_SET_ANY, QN_VARIADIC | QN_OPTIONAL}};

typedef struct scan_attrs {
    qn_graph *body;
    int64_t num_scan_inputs;
    qn_ints scan_input_axes, scan_input_directions, scan_output_axes, scan_output_directions;
    /* Opset 8 */
    qn_ints directions;
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

static qn_status drop_first_input(qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        QN_TRY(qn_node_set_input(node, i, i + 1 < node->n_in ? node->in[i + 1] : NULL));
    node->n_in--;
    node->n_explicit--;
    return QN_OK;
}

/* A value of `graph` that stands for `of`, which is outside of it. */
static qn_status item_value(qn_value **out, qn_graph *graph, const qn_value *of)
{
    const char *name = qn_arena_format(graph->arena, "%s_item", of ? of->name : "batch");
    QN_TRY_ALLOC(graph->ctx, name);
    return qn_value_create(out, graph, name);
}

/* The Scan that is left for one item of the batch gets its inputs from `graph`, and makes its
 * outputs. */
static qn_status connect_item(qn_node *item, qn_graph *graph, const qn_node *batched)
{
    for (int32_t i = 0; i < batched->n_in; i++) {
        const qn_value *from = batched->in[i];
        qn_value *value;
        if (i < batched->n_explicit) {
            QN_TRY(item_value(&value, graph, from));
            QN_TRY(qn_graph_add_input(graph, value));
            QN_TRY(qn_node_set_input(item, i, value));
            continue;
        }
        QN_TRY(qn_value_create(&value, graph, from->name));
        value->type = from->type;
        value->data = from->data;
        QN_TRY(qn_graph_add_capture(graph, value, i));
        QN_TRY(qn_node_add_input(item, value));
    }
    for (int32_t o = 0; o < batched->n_out; o++) {
        qn_value *value;
        QN_TRY(item_value(&value, graph, batched->out[o]));
        qn_node_set_output(item, o, value);
        QN_TRY(qn_graph_add_output(graph, value));
    }
    return QN_OK;
}

/* Opset 8 had a batch dimension in front of everything: that becomes a Scan over the batch, with
 * the Scan of one item as its body. */
static qn_status scan_upgrade(qn_node **node)
{
    qn_node *batched = *node, *item;
    scan_attrs *a = batched->attrs, *inner;
    qn_graph *body;
    if (batched->n_explicit < 2 || batched->in[0])
        return qn_node_fail(
            batched, QN_E_UNSUPPORTED,
            "sequence_lens of opset 8 are not supported: export with opset 9 or later");
    QN_TRY(drop_first_input(batched));
    QN_TRY(qn_graph_create(&body, batched->graph->model, "subgraph"));
    body->owner = batched;
    QN_TRY(
        qn_node_add(&item, body, &qn_op_Scan, batched->name, batched->n_explicit, batched->n_out));
    inner = item->attrs;
    *inner = (scan_attrs){.body = a->body,
                          .num_scan_inputs = a->num_scan_inputs,
                          .scan_input_directions = a->directions};
    for (size_t i = 0; i < a->body->n_captures; i++)
        a->body->captures[i].slot--; /* as the inputs */
    a->body->owner = item;
    *a = (scan_attrs){.body = body, .num_scan_inputs = batched->n_explicit};
    return connect_item(item, body, batched);
}

static qn_status scan_downgrade(qn_node **node)
{
    return qn_node_fail(*node, QN_E_UNSUPPORTED,
                        "before opset 9 it had batches, which are not written");
}

static const qn_version_rule scan_versions[] = {{9, scan_upgrade, scan_downgrade}};

static int64_t item_of(qn_ints list, size_t i)
{
    return list.at ? list.at[i] : 0;
}

typedef struct scan_counts {
    /* Inputs; states come first */
    int32_t states, scanned;
    /* Scan outputs of the body */
    size_t outputs;
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
    QN_TRY(qn_infer_carried(self, a->body, types, 0, 0, (size_t)c.states));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!qn_infer_wants(self, o))
            continue;
        if (o < c.states)
            *self->out[o] = types[o];
        else
            qn_infer_scanned(self, o, &a->body->outputs[o]->type,
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

static qn_status scan_slices(qn_eval *self, qn_iteration *r, qn_tensor *slices, int64_t *length)
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

static qn_status scan_iterate(qn_eval *self, qn_iteration *r)
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
        QN_TRY(qn_iterate(self, r, 0, 0));
    }
    return QN_OK;
}

static qn_status scan_eval(qn_eval *self)
{
    const scan_attrs *a = self->attrs;
    qn_iteration r = {.body = a->body, .carried = self->n_in - (int32_t)a->num_scan_inputs};
    QN_TRY(qn_iteration_room(self, &r));
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
            QN_TRY(qn_stack_join(self, o, &r.scanned[o], item_of(a->scan_output_axes, k),
                                 item_of(a->scan_output_directions, k) != 0,
                                 &r.body->outputs[o]->type));
    }
    return QN_OK;
}

static const qn_type_rule scan_types[] = {{16, QN_SET(QN_BFLOAT16)}};

const qn_op qn_op_Scan = {.name = "Scan",
                          .domain = "",
                          .since = 8,
                          QN_PORTS(in, scan_in),
                          QN_PORTS(out, variadic_out),
                          QN_ATTRS(scan_specs, scan_attrs),
                          QN_VERSIONS(scan_versions),
                          QN_TYPE_RULES(scan_types),
                          .flags = QN_OP_ALLOCATES,
                          .quant = QN_QUANT_FLOAT,
                          .infer = scan_infer,
                          .eval = scan_eval,
                          .brief = "a subgraph over the slices of tensors"};
