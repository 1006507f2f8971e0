/* Choices between subgraphs and loops over them. */
#include "import/tflite/tflite.h"
#include "ops/infer.h"

enum { IF_THEN = 0, IF_ELSE = 1, WHILE_CONDITION = 0, WHILE_BODY = 1 };

/* Where a subgraph is made: the graph around it, and what is known of the layer. */
typedef struct tfl_frame {
    qn_graph *graph;
    const char *layer, *type;
} tfl_frame;

static tfl_frame enter(tfl_layer *l, qn_graph *inside)
{
    qn_graph_builder *b = l->b;
    const tfl_frame outside = {b->graph, b->layer, b->type};
    b->graph = inside ? inside : b->graph;
    l->reader->depth++;
    return outside;
}

static void leave(tfl_layer *l, const tfl_frame *outside)
{
    l->b->graph = outside->graph;
    qn_graph_builder_layer(l->b, outside->layer, outside->type);
    l->reader->depth--;
}

/* Nodes of a subgraph with these values for its inputs; its outputs. */
static qn_status convert_with(qn_value **outputs, tfl_layer *l, tfl_scope *scope,
                              qn_value *const *inputs, const size_t counts[2])
{
    const qn_flat_list from = qn_flat_items(&scope->table, QN_TFL_GRAPH_INPUTS, 4);
    const qn_flat_list to = qn_flat_items(&scope->table, QN_TFL_GRAPH_OUTPUTS, 4);
    tfl_layer inner = {.reader = l->reader, .b = l->b, .layouts = &scope->layouts, .scope = scope};
    tfl_tensor *t;
    if (from.count != counts[0] || to.count != counts[1])
        return qn_tfl_wrong(l, "a subgraph has %zu inputs and %zu outputs", from.count, to.count);
    for (size_t i = 0; i < from.count; i++) {
        QN_TRY(qn_tfl_tensor(&t, scope, qn_flat_item_int(&from, i)));
        if (!t)
            return qn_tfl_wrong(l, "a subgraph lacks an input");
        t->known = true;
        t->holder = inputs[i];
        QN_TRY(qn_layout_define(&scope->layouts, t->name, inputs[i], QN_ORDER_OWN));
    }
    QN_TRY(qn_tfl_convert(l->reader, scope));
    for (size_t i = 0; i < to.count; i++) {
        QN_TRY(qn_tfl_tensor(&t, scope, qn_flat_item_int(&to, i)));
        if (!t)
            return qn_tfl_wrong(l, "a subgraph lacks an output");
        QN_TRY(qn_tfl_hold(&inner, t));
        QN_TRY(qn_layout_find(&outputs[i], &scope->layouts, t->name, QN_ORDER_OWN));
    }
    return QN_OK;
}

static qn_status call(qn_value **outputs, tfl_layer *l, int64_t number, qn_value *const *inputs,
                      const size_t counts[2])
{
    tfl_scope scope = {.n_tensors = 0};
    qn_status status = qn_tfl_scope_open(&scope, l->reader, number);
    if (status == QN_OK)
        status = convert_with(outputs, l, &scope, inputs, counts);
    qn_tfl_scope_close(&scope);
    return status;
}

/* What a subgraph gives is made in it, and once. */
static qn_status add_outputs(tfl_layer *l, qn_graph *graph, qn_value **values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!values[i]->producer || values[i]->is_output || values[i]->graph != graph)
            QN_TRY(qn_tfl_unary(&values[i], l, &qn_op_Identity, values[i]));
        QN_TRY(qn_graph_add_output(graph, values[i]));
    }
    return QN_OK;
}

static qn_status array_of(qn_value ***out, const tfl_layer *l, size_t count)
{
    *out = qn_arena_array(&l->b->model->arena, count, sizeof **out);
    QN_TRY_ALLOC(l->b->ctx, *out);
    return QN_OK;
}

static qn_status take_all(qn_value **out, tfl_layer *l, size_t first)
{
    for (size_t i = first; i < l->n_in; i++)
        QN_TRY(qn_tfl_raw(&out[i - first], l, i, QN_ORDER_OWN));
    return QN_OK;
}

static qn_status put_all(tfl_layer *l, qn_value *const *values)
{
    for (size_t o = 0; o < l->n_out; o++)
        QN_TRY(qn_tfl_give_raw(l, o, values[o], QN_ORDER_OWN));
    return QN_OK;
}

/* ---- WHILE ----------------------------------------------------------------------------------- */

static qn_status add_body_input(qn_value **out, qn_graph *body, const qn_type *type)
{
    QN_TRY(qn_value_create(out, body, NULL));
    (*out)->type = *type;
    (*out)->type.elements = NULL;
    return qn_graph_add_input(body, *out);
}

/* What is carried may change its size from step to step: the subgraph says what it does not. */
static qn_status carried_type(qn_type *out, tfl_layer *l, const qn_value *value, size_t i)
{
    const tfl_tensor *t = l->out[i];
    *out = value->type;
    if (out->kind != QN_TYPE_TENSOR || !t || out->rank != t->rank)
        return out->kind == QN_TYPE_TENSOR
                   ? QN_OK
                   : qn_tfl_unsupported(l, "the type of what it carries is not known");
    for (int32_t d = 0; d < out->rank; d++) {
        if (t->dims[d] != out->dims[d].value)
            out->dims[d] = qn_dim_unknown();
    }
    return QN_OK;
}

/* (number of the step, true, carried) -> (whether to go on, carried). */
static qn_status make_body(tfl_layer *l, qn_graph *body, qn_value *const *carried, size_t count)
{
    qn_value **inputs, **outputs, *unused;
    const size_t both[] = {count, count}, one[] = {count, 1};
    qn_type type = qn_type_tensor(QN_INT64, 0, NULL);
    QN_TRY(array_of(&inputs, l, count));
    QN_TRY(array_of(&outputs, l, count + 1));
    QN_TRY(add_body_input(&unused, body, &type));
    type = qn_type_tensor(QN_BOOL, 0, NULL);
    QN_TRY(add_body_input(&unused, body, &type));
    for (size_t i = 0; i < count; i++) {
        QN_TRY(carried_type(&type, l, carried[i], i));
        QN_TRY(add_body_input(&inputs[i], body, &type));
    }
    QN_TRY(call(outputs + 1, l, qn_tfl_int(l, WHILE_BODY, 0), inputs, both));
    QN_TRY(call(outputs, l, qn_tfl_int(l, WHILE_CONDITION, 0), outputs + 1, one));
    if (qn_tfl_rank(outputs[0]) != 0)
        QN_TRY(qn_tfl_reshape(&outputs[0], l, outputs[0], NULL, 0));
    return add_outputs(l, body, outputs, count + 1);
}

static qn_status add_loop(tfl_layer *l, qn_value *first, qn_value *const *carried, size_t count)
{
    qn_node *node;
    qn_graph *body;
    qn_value **y;
    QN_TRY(array_of(&y, l, count));
    QN_TRY(qn_node_add(&node, l->b->graph, &qn_op_Loop, l->b->layer, (int32_t)count + 2,
                       (int32_t)count));
    QN_TRY(qn_node_set_input(node, 1, first));
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_node_set_input(node, (int32_t)i + 2, carried[i]));
        QN_TRY(qn_value_create(&y[i], l->b->graph, l->b->layer));
        qn_node_set_output(node, (int32_t)i, y[i]);
    }
    QN_TRY(qn_graph_create(&body, l->b->model, "body"));
    body->owner = node;
    *(qn_graph **)qn_attr_field(node, qn_op_attr(&qn_op_Loop, "body", QN_LATEST_OPSET)) = body;
    const tfl_frame outside = enter(l, body);
    const qn_status status = make_body(l, body, carried, count);
    leave(l, &outside);
    QN_TRY(status);
    QN_TRY(qn_node_infer(node));
    return put_all(l, y);
}

qn_status qn_tfl_while(tfl_layer *l)
{
    qn_value **carried, *first;
    const size_t counts[] = {l->n_in, 1};
    if (l->n_in != l->n_out || l->n_in == 0 || l->n_in > 1 << 16)
        return qn_tfl_wrong(l, "%zu inputs and %zu outputs", l->n_in, l->n_out);
    QN_TRY(array_of(&carried, l, l->n_in));
    QN_TRY(take_all(carried, l, 0));
    const tfl_frame outside = enter(l, NULL);
    const qn_status status = call(&first, l, qn_tfl_int(l, WHILE_CONDITION, 0), carried, counts);
    leave(l, &outside);
    QN_TRY(status);
    if (qn_tfl_rank(first) != 0)
        QN_TRY(qn_tfl_reshape(&first, l, first, NULL, 0));
    return add_loop(l, first, carried, l->n_in);
}

/* ---- IF -------------------------------------------------------------------------------------- */

/* A branch sees the inputs of the node behind its condition. */
static qn_status make_branch(tfl_layer *l, qn_node *node, const char *name, int64_t number)
{
    qn_graph *graph;
    qn_value **inputs, **outputs;
    const size_t count = l->n_in - 1, counts[] = {count, l->n_out};
    QN_TRY(array_of(&inputs, l, count));
    QN_TRY(array_of(&outputs, l, l->n_out));
    QN_TRY(qn_graph_create(&graph, l->b->model, name));
    graph->owner = node;
    *(qn_graph **)qn_attr_field(node, qn_op_attr(&qn_op_If, name, QN_LATEST_OPSET)) = graph;
    for (size_t i = 0; i < count; i++) {
        const qn_value *outer = node->in[i + 1];
        QN_TRY(qn_value_create(&inputs[i], graph, outer->name));
        inputs[i]->type = outer->type;
        QN_TRY(qn_graph_add_capture(graph, inputs[i], (int32_t)i + 1));
    }
    const tfl_frame outside = enter(l, graph);
    qn_status status = call(outputs, l, number, inputs, counts);
    if (status == QN_OK)
        status = add_outputs(l, graph, outputs, l->n_out);
    leave(l, &outside);
    return status;
}

qn_status qn_tfl_if(tfl_layer *l)
{
    qn_value **values, **y, *condition;
    qn_node *node;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(array_of(&values, l, l->n_in));
    QN_TRY(array_of(&y, l, l->n_out));
    QN_TRY(take_all(values, l, 0));
    condition = values[0];
    if (qn_tfl_rank(condition) != 0)
        QN_TRY(qn_tfl_reshape(&condition, l, condition, NULL, 0));
    QN_TRY(qn_node_add(&node, l->b->graph, &qn_op_If, l->b->layer, 1, (int32_t)l->n_out));
    QN_TRY(qn_node_set_input(node, 0, condition));
    for (size_t i = 1; i < l->n_in; i++)
        QN_TRY(qn_node_add_input(node, values[i]));
    node->n_explicit = 1;
    for (size_t o = 0; o < l->n_out; o++) {
        QN_TRY(qn_value_create(&y[o], l->b->graph, l->b->layer));
        qn_node_set_output(node, (int32_t)o, y[o]);
    }
    QN_TRY(make_branch(l, node, "then_branch", qn_tfl_int(l, IF_THEN, 0)));
    QN_TRY(make_branch(l, node, "else_branch", qn_tfl_int(l, IF_ELSE, 0)));
    QN_TRY(qn_node_infer(node));
    return put_all(l, y);
}
