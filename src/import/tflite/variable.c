/* Variables by name: CALL_ONCE runs what sets them at first, and reading one gives what the model
 * wrote last. They begin anew in every run. */
#include "import/tflite/tflite.h"

enum { HANDLE_CONTAINER = 0, HANDLE_NAME = 1, CALL_SUBGRAPH = 0 };

/* A handle stands for no value, but for a name. */
qn_status qn_tfl_handle(tfl_layer *l)
{
    const qn_string container = qn_flat_text(&l->options, HANDLE_CONTAINER);
    const qn_string name = qn_flat_text(&l->options, HANDLE_NAME);
    if (l->n_out != 1 || !l->out[0] || container.length > 1000 || name.length > 1000)
        return qn_tfl_wrong(l, "a handle needs an output and a name");
    l->out[0]->handle = qn_arena_format(&l->b->model->arena, "%.*s/%.*s", (int)container.length,
                                        container.length ? container.text : "", (int)name.length,
                                        name.length ? name.text : "");
    QN_TRY_ALLOC(l->b->ctx, l->out[0]->handle);
    l->out[0]->known = true;
    return QN_OK;
}

qn_status qn_tfl_assign(tfl_layer *l)
{
    qn_value *value;
    QN_TRY(qn_tfl_expect(l, 2, 0));
    if (!l->in[0]->handle)
        return qn_tfl_unsupported(l, "a handle that the model passes on");
    QN_TRY(qn_tfl_raw(&value, l, 1, QN_ORDER_OWN));
    return qn_names_set(&l->reader->variables, l->in[0]->handle, value);
}

qn_status qn_tfl_read(tfl_layer *l)
{
    qn_value *value;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    if (!l->in[0]->handle)
        return qn_tfl_unsupported(l, "a handle that the model passes on");
    value = qn_names_get(&l->reader->variables, l->in[0]->handle);
    if (!value || value->graph != l->b->graph)
        return qn_tfl_unsupported(l, "a variable that nothing has set before");
    QN_TRY(qn_tfl_unary(&value, l, &qn_op_Identity, value));
    return qn_tfl_give_raw(l, 0, value, QN_ORDER_OWN);
}

/* The subgraph has neither inputs nor outputs. */
qn_status qn_tfl_call_once(tfl_layer *l)
{
    tfl_scope scope = {.n_tensors = 0};
    const char *layer = l->b->layer, *type = l->b->type;
    l->reader->depth++;
    qn_status status = qn_tfl_scope_open(&scope, l->reader, qn_tfl_int(l, CALL_SUBGRAPH, 0));
    if (status == QN_OK)
        status = qn_tfl_convert(l->reader, &scope);
    qn_tfl_scope_close(&scope);
    l->reader->depth--;
    qn_graph_builder_layer(l->b, layer, type);
    return status;
}
