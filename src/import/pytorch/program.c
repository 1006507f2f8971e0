/* The graph of an exported program: operators of PyTorch by name, their arguments, inputs and
 * outputs. */
#include "import/pytorch/program.h"

#include <stdio.h>
#include <string.h>

/* Graphs within graphs: what runs without gradients, or in another precision. */
enum { MOST_DEPTH = 8 };

static qn_status run_graph(qn_program_graph *g, const qn_json_place *graph);

static qn_status define(qn_program_graph *g, const char *name, const qn_torch_value *value)
{
    const char *kept = qn_arena_text(g->t->arena, name, strlen(name));
    qn_torch_value *copy = qn_arena_copy(g->t->arena, value, sizeof *value);
    QN_TRY_ALLOC(g->t->ctx, kept);
    QN_TRY_ALLOC(g->t->ctx, copy);
    return qn_names_set(&g->values, kept, copy);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* Gives a result its name. */
static qn_status bind_result(qn_program_graph *g, const qn_json_place *output,
                             const qn_torch_value *result)
{
    static const char *const keys[] = {"as_tensor", "as_sym_int", "as_sym_bool", "as_sym_float",
                                       "as_optional_tensor"};
    qn_json_place item, name;
    const char *text;
    for (size_t i = 0; i < QN_COUNT_OF(keys); i++) {
        if (!qn_program_find(&item, output, keys[i]))
            continue;
        if (!qn_program_find(&name, &item, "name") && !qn_program_find(&name, &item, "as_name"))
            return i == 4 ? bind_result(g, &item, result) : QN_OK;
        QN_TRY(qn_json_get_text(&text, &name));
        return define(g, text, result);
    }
    return QN_OK;
}

static qn_torch_value part_of(const qn_torch_value *result, size_t i)
{
    if (qn_torch_is_items(result))
        return i < result->list->count ? result->list->at[i] : QN_TORCH_NOTHING;
    return *result; /* a layer that cannot be read: each of its results is lost */
}

static qn_status bind_list(qn_program_graph *g, const qn_json_place *names,
                           const qn_torch_value *result)
{
    size_t count;
    QN_TRY(qn_json_length(&count, names));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(names, i);
        const qn_torch_value part = part_of(result, i);
        qn_json_place name;
        const char *text;
        if (!qn_program_find(&name, &item, "name")) {
            QN_TRY(bind_result(g, &item, &part));
            continue;
        }
        QN_TRY(qn_json_get_text(&text, &name));
        QN_TRY(define(g, text, &part));
    }
    return QN_OK;
}

static qn_status bind_results(qn_program_graph *g, const qn_json_place *node,
                              const qn_torch_value *result)
{
    qn_json_place outputs, list;
    size_t count;
    QN_TRY(qn_json_member(&outputs, node, "outputs"));
    QN_TRY(qn_json_length(&count, &outputs));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place output = qn_json_element(&outputs, i);
        const qn_torch_value part = count == 1 ? *result : part_of(result, i);
        if (qn_program_find(&list, &output, "as_tensors") ||
            qn_program_find(&list, &output, "as_optional_tensors"))
            QN_TRY(bind_list(g, &list, &part));
        else
            QN_TRY(bind_result(g, &output, &part));
    }
    return QN_OK;
}

/* "torch.ops.aten.conv2d.default" is "conv2d"; of another name space it keeps that. */
static qn_status operator_name(const char **out, qn_torch *t, const char *target)
{
    const char *name = target;
    static const char *const prefixes[] = {"torch.ops.aten.", "torch.ops.", "_operator.",
                                           "math.",           "builtins.",  "torch."};
    for (size_t i = 0; i < QN_COUNT_OF(prefixes); i++) {
        const size_t length = strlen(prefixes[i]);
        if (strncmp(target, prefixes[i], length) != 0)
            continue;
        name = target + length;
        break;
    }
    const char *last = strrchr(name, '.');
    size_t length = strlen(name);
    if (last && strncmp(target, "torch.ops.", 10) == 0 && strncmp(name, "higher_order.", 13) != 0)
        length = (size_t)(last - name);
    *out = qn_arena_text(t->arena, name, length);
    QN_TRY_ALLOC(t->ctx, *out);
    return QN_OK;
}

static qn_status read_node_arguments(qn_aten_argument **out, size_t *count, qn_program_graph *g,
                                     const qn_json_place *inputs)
{
    QN_TRY(qn_json_length(count, inputs));
    *out = qn_arena_array(g->t->arena, *count + 1, sizeof **out);
    QN_TRY_ALLOC(g->t->ctx, *out);
    for (size_t i = 0; i < *count; i++) {
        const qn_json_place input = qn_json_element(inputs, i);
        qn_json_place argument;
        const char *name;
        QN_TRY(qn_json_member(&argument, &input, "arg"));
        QN_TRY(qn_json_member_text(&name, &input, "name"));
        (*out)[i].name = *name ? qn_arena_text(g->t->arena, name, strlen(name)) : NULL;
        QN_TRY(qn_program_argument(&(*out)[i].value, g, &argument));
    }
    return QN_OK;
}

/* Operators that run a graph of their own once: it is inlined. Their inputs are settings, the
 * graph, and its inputs. */
static qn_status run_inner(qn_torch_value *out, qn_program_graph *g, const qn_json_place *inputs,
                           size_t at, const qn_json_place *inner)
{
    qn_program_graph own = {.t = g->t, .depth = g->depth + 1};
    qn_json_place graph, names, outputs, argument, tensor, name;
    qn_status status = QN_OK;
    qn_torch_value value;
    size_t count, n_inputs;
    const char *text;
    if (own.depth > MOST_DEPTH)
        return qn_json_fail(inner, QN_E_FORMAT, "is nested too deep");
    qn_names_init(&own.values, g->t->ctx);
    QN_TRY_OR_DONE(qn_json_member(&graph, inner, "graph"));
    QN_TRY_OR_DONE(qn_json_member(&names, &graph, "inputs"));
    QN_TRY_OR_DONE(qn_json_length(&count, &names));
    QN_TRY_OR_DONE(qn_json_length(&n_inputs, inputs));
    for (size_t i = 0; i < count && at + 1 + i < n_inputs; i++) {
        const qn_json_place input = qn_json_element(inputs, at + 1 + i);
        const qn_json_place own_input = qn_json_element(&names, i);
        QN_TRY_OR_DONE(qn_json_member(&argument, &input, "arg"));
        QN_TRY_OR_DONE(qn_program_argument(&value, g, &argument));
        if (!qn_program_find(&tensor, &own_input, "as_tensor") ||
            !qn_program_find(&name, &tensor, "name"))
            continue;
        QN_TRY_OR_DONE(qn_json_get_text(&text, &name));
        QN_TRY_OR_DONE(define(&own, text, &value));
    }
    QN_TRY_OR_DONE(run_graph(&own, &graph));
    QN_TRY_OR_DONE(qn_json_member(&outputs, &graph, "outputs"));
    QN_TRY_OR_DONE(qn_json_length(&count, &outputs));
    QN_TRY_OR_DONE(qn_torch_new_list(out, g->t->ctx, g->t->arena, QN_TORCH_TUPLE));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place output = qn_json_element(&outputs, i);
        QN_TRY_OR_DONE(qn_program_argument(&value, &own, &output));
        QN_TRY_OR_DONE(qn_torch_push(out->list, g->t->ctx, g->t->arena, &value));
    }
    if (count == 1)
        *out = out->list->at[0];
done:
    qn_names_free(&own.values);
    return status;
}

/* Where among the inputs the graph stands; false where there is none. */
static bool find_inner(qn_json_place *out, size_t *at, const qn_json_place *inputs, size_t count)
{
    qn_json_place argument;
    for (*at = 0; *at < count && *at < 8; ++*at) {
        /* Places refer to the one that they were found in, which lives in the caller. */
        const qn_json_place input = qn_json_element(inputs, *at);
        if (qn_program_find(&argument, &input, "arg") &&
            qn_program_find(out, &argument, "as_graph")) {
            out->parent = inputs;
            return true;
        }
    }
    return false;
}

static qn_status run_node(qn_program_graph *g, const qn_json_place *node)
{
    qn_json_place inputs, inner, place;
    qn_aten_argument *arguments;
    const char *target, *name, *layer;
    qn_torch_value result;
    size_t count, at;
    QN_TRY(qn_json_member_text(&target, node, "target"));
    QN_TRY(operator_name(&name, g->t, target));
    layer = name;
    if (qn_program_find(&place, node, "name") && qn_json_is_text(&place))
        QN_TRY(qn_json_member_copy(&layer, g->t->arena, node, "name"));
    qn_graph_builder_layer(&g->t->b, layer, name);
    QN_TRY(qn_json_member(&inputs, node, "inputs"));
    QN_TRY(qn_json_length(&count, &inputs));
    const bool nested =
        strncmp(name, "higher_order", 12) == 0 && find_inner(&inner, &at, &inputs, count);
    if (nested && strncmp(name, "higher_order.wrap", 17) == 0) {
        QN_TRY(run_inner(&result, g, &inputs, at, &inner));
    } else if (nested) {
        QN_TRY(qn_aten_run(&result, g->t, name, NULL, 0));
    } else {
        QN_TRY(read_node_arguments(&arguments, &count, g, &inputs));
        QN_TRY(qn_aten_run(&result, g->t, name, arguments, count));
    }
    return bind_results(g, node, &result);
}

static qn_status run_graph(qn_program_graph *g, const qn_json_place *graph)
{
    qn_json_place nodes;
    size_t count;
    QN_TRY(qn_json_member(&nodes, graph, "nodes"));
    QN_TRY(qn_json_length(&count, &nodes));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place node = qn_json_element(&nodes, i);
        QN_TRY(run_node(g, &node));
    }
    return QN_OK;
}

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

static qn_status input_type(qn_type *out, qn_torch *t, const qn_json_place *values,
                            const char *name)
{
    qn_json_place meta, dtype, sizes;
    int64_t number;
    size_t count;
    QN_TRY(qn_json_member(&meta, values, name));
    QN_TRY(qn_json_member(&dtype, &meta, "dtype"));
    QN_TRY(qn_json_get_int(&number, &dtype, 0, 1000));
    QN_TRY(qn_json_member(&sizes, &meta, "sizes"));
    QN_TRY(qn_json_length(&count, &sizes));
    if (count > QN_MAX_RANK)
        return qn_json_fail(&sizes, QN_E_UNSUPPORTED, "%zu axes", count);
    *out = (qn_type){
        .kind = QN_TYPE_TENSOR, .dtype = qn_program_dtype(number), .rank = (int32_t)count};
    for (size_t i = 0; i < count; i++) {
        const qn_json_place size = qn_json_element(&sizes, i);
        QN_TRY(qn_program_size(&out->dims[i], t, &size));
    }
    return QN_OK;
}

static qn_status read_user_input(qn_program_graph *g, const qn_json_place *spec,
                                 const qn_json_place *values)
{
    qn_json_place argument, tensor, name;
    qn_torch_value value;
    const char *text;
    qn_value *input;
    qn_type type;
    QN_TRY(qn_json_member(&argument, spec, "arg"));
    if (!qn_program_find(&tensor, &argument, "as_tensor"))
        return QN_OK; /* a number that the program was made for */
    QN_TRY(qn_json_member(&name, &tensor, "name"));
    QN_TRY(qn_json_get_text(&text, &name));
    QN_TRY(input_type(&type, g->t, values, text));
    QN_TRY(qn_graph_build_input(&input, &g->t->b, text, &type));
    QN_TRY(qn_torch_make(&value, g->t, input));
    return define(g, text, &value);
}

/* Parameters, buffers and constants: {"arg": {"name": ...}, "parameter_name": ...}. */
static qn_status read_weight(qn_program_graph *g, const qn_json_place *spec, const char *key,
                             const qn_names *weights)
{
    qn_json_place argument;
    const char *name, *target;
    QN_TRY(qn_json_member(&argument, spec, "arg"));
    QN_TRY(qn_json_member_text(&name, &argument, "name"));
    QN_TRY(qn_json_member_text(&target, spec, key));
    const qn_torch_value *value = qn_names_get(weights, target);
    if (!value)
        return qn_json_fail(spec, QN_E_FORMAT, "the archive has no tensor '%s'", target);
    return define(g, name, value);
}

static qn_status read_inputs(qn_program_graph *g, const qn_json_place *module,
                             const qn_names *weights)
{
    static const char *const kinds[][2] = {{"parameter", "parameter_name"},
                                           {"buffer", "buffer_name"},
                                           {"tensor_constant", "tensor_constant_name"}};
    qn_json_place graph, values, signature, specs, own;
    size_t count;
    QN_TRY(qn_json_member(&graph, module, "graph"));
    QN_TRY(qn_json_member(&values, &graph, "tensor_values"));
    QN_TRY(qn_json_member(&signature, module, "signature"));
    QN_TRY(qn_json_member(&specs, &signature, "input_specs"));
    QN_TRY(qn_json_length(&count, &specs));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place spec = qn_json_element(&specs, i);
        if (qn_program_find(&own, &spec, "user_input"))
            QN_TRY(read_user_input(g, &own, &values));
        for (size_t k = 0; k < QN_COUNT_OF(kinds); k++) {
            if (qn_program_find(&own, &spec, kinds[k][0]))
                QN_TRY(read_weight(g, &own, kinds[k][1], weights));
        }
    }
    return QN_OK;
}

/* What buffers become is no output. */
static qn_status read_outputs(qn_program_graph *g, const qn_json_place *module)
{
    qn_json_place signature, specs, own, argument, tensor;
    const char *name;
    size_t count;
    QN_TRY(qn_json_member(&signature, module, "signature"));
    QN_TRY(qn_json_member(&specs, &signature, "output_specs"));
    QN_TRY(qn_json_length(&count, &specs));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place spec = qn_json_element(&specs, i);
        qn_torch_value result;
        qn_value *value;
        if (!qn_program_find(&own, &spec, "user_output") ||
            !qn_program_find(&argument, &own, "arg") ||
            !qn_program_find(&tensor, &argument, "as_tensor"))
            continue;
        QN_TRY(qn_json_member_text(&name, &tensor, "name"));
        QN_TRY(qn_program_tensor(&result, g, &tensor));
        QN_TRY(qn_torch_value_of(&value, g->t, &result));
        QN_TRY(qn_graph_build_define(&g->t->b, name, value));
        QN_TRY(qn_graph_build_output(&g->t->b, name));
    }
    return QN_OK;
}

static qn_status load(qn_torch *t, const qn_json_document *document, bool flat)
{
    const qn_json_place root = qn_json_root(document);
    qn_program_graph g = {.t = t};
    qn_json_place module, graph;
    qn_names weights;
    qn_status status = QN_OK;
    qn_names_init(&weights, t->ctx);
    qn_names_init(&g.values, t->ctx);
    QN_TRY_OR_DONE(qn_program_weights(&weights, t, flat));
    QN_TRY_OR_DONE(qn_json_member(&module, &root, "graph_module"));
    QN_TRY_OR_DONE(read_inputs(&g, &module, &weights));
    QN_TRY_OR_DONE(qn_json_member(&graph, &module, "graph"));
    QN_TRY_OR_DONE(run_graph(&g, &graph));
    qn_graph_builder_layer(&t->b, "", "");
    QN_TRY_OR_DONE(qn_graph_builder_finish(&t->b));
    QN_TRY_OR_DONE(read_outputs(&g, &module));
done:
    qn_names_free(&g.values);
    qn_names_free(&weights);
    return status;
}

qn_status qn_torch_load_program(qn_torch *t)
{
    const bool flat = qn_torch_archive_has(&t->archive, "serialized_exported_program.json");
    const char *name = flat ? "serialized_exported_program.json" : "models/model.json";
    qn_json_document *document;
    qn_string text;
    QN_TRY(qn_torch_archive_read(&text, &t->archive, name));
    QN_TRY(qn_json_read(&document, t->ctx, text.text, text.length, name));
    const qn_status status = load(t, document, flat);
    qn_json_document_free(document);
    return status;
}
