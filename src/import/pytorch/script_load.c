/* TorchScript files: modules from data.pkl, code, and the forward method run into a graph. */
#include <string.h>

#include "base/json.h"
#include "import/pytorch/script_run.h"

/* What a file of our own says of its inputs and outputs, in an entry that PyTorch leaves alone:
 * {"inputs": {"x": {"0": "batch"}}, "types": {"x": {"dtype": "float32", "shape": [1, 3]}},
 * "outputs": ["y"]}. */
#define NOTES "extra/quench.json"

typedef struct script_loader {
    qn_script_run run;
    qn_torch_value root;
    /* Tensors that the model was traced with, or None */
    qn_torch_value traced;
    qn_json_document *notes;
    size_t n_outputs;
} script_loader;

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* Shapes that options give, by name, or in the order of the inputs. */
static const qn_input_shape *given_shape(const qn_torch *t, const char *name, size_t place)
{
    size_t unnamed = 0;
    for (size_t i = 0; i < t->options->n_shapes; i++) {
        const qn_input_shape *shape = &t->options->shapes[i];
        if (shape->name ? strcmp(shape->name, name) == 0 : unnamed++ == place)
            return shape;
    }
    return NULL;
}

static const qn_torch_tensor *traced_input(const script_loader *l, size_t place)
{
    const qn_torch_value *list =
        l->traced.kind == QN_TORCH_DICT ? qn_torch_get_text(l->traced.list, "forward") : &l->traced;
    if (!list || !qn_torch_is_items(list) || place >= list->list->count ||
        list->list->at[place].kind != QN_TORCH_TENSOR)
        return NULL;
    return list->list->at[place].tensor;
}

/* What the notes say that the input was: older PyTorch keeps no tensors that it traced with. */
static qn_status read_noted_type(qn_type *out, const script_loader *l, const char *name)
{
    qn_json_place root, types, own, shape;
    const char *dtype;
    size_t rank;
    if (!l->notes)
        return QN_OK;
    root = qn_json_root(l->notes);
    if (!qn_json_find(&types, &root, "types") || !qn_json_find(&own, &types, name))
        return QN_OK;
    QN_TRY(qn_json_member_text(&dtype, &own, "dtype"));
    QN_TRY(qn_json_member(&shape, &own, "shape"));
    QN_TRY(qn_json_length(&rank, &shape));
    if (rank > QN_MAX_RANK || qn_dtype_by_name(dtype) == QN_UNDEFINED)
        return qn_json_fail(&own, QN_E_UNSUPPORTED, "%s of %zu axes", dtype, rank);
    out->dtype = qn_dtype_by_name(dtype);
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        const qn_json_place size = qn_json_element(&shape, i);
        out->dims[i] = qn_dim_unknown();
        QN_TRY(qn_json_get_int(&out->dims[i].value, &size, 0, INT64_MAX));
    }
    return QN_OK;
}

/* Names of dimensions that stay open. */
static qn_status read_open_dims(qn_type *type, const script_loader *l, const char *name)
{
    qn_json_place root, inputs, own, dim;
    if (!l->notes)
        return QN_OK;
    root = qn_json_root(l->notes);
    if (!qn_json_find(&inputs, &root, "inputs") || !qn_json_find(&own, &inputs, name))
        return QN_OK;
    for (int32_t i = 0; i < type->rank && i < 10; i++) {
        const char key[2] = {(char)('0' + i), 0};
        const char *symbol;
        if (!qn_json_find(&dim, &own, key))
            continue;
        QN_TRY(qn_json_get_text(&symbol, &dim));
        type->dims[i] = qn_dim_unknown();
        type->dims[i].symbol = qn_arena_text(l->run.t->arena, symbol, strlen(symbol));
        QN_TRY_ALLOC(l->run.t->ctx, type->dims[i].symbol);
    }
    return QN_OK;
}

static qn_status input_type(qn_type *out, const script_loader *l, const char *name, size_t place)
{
    const qn_torch *t = l->run.t;
    const qn_torch_tensor *traced = traced_input(l, place);
    const qn_input_shape *shape = given_shape(t, name, place);
    *out = (qn_type){.kind = QN_TYPE_TENSOR, .dtype = QN_FLOAT32, .rank = -1};
    for (size_t i = 0; i < t->n_guesses; i++) {
        if (strcmp(t->guesses[i].name, name) == 0)
            *out = t->guesses[i].type;
    }
    if (traced)
        *out = qn_type_tensor(traced->dtype, traced->rank, traced->dims);
    for (int32_t i = 0; traced && i < traced->rank; i++) {
        if (traced->dims[i] < 0)
            return qn_fail(t->ctx, QN_E_FORMAT, "traced input '%s' has an impossible shape", name);
    }
    if (!traced)
        QN_TRY(read_noted_type(out, l, name));
    QN_TRY(read_open_dims(out, l, name));
    if (!shape)
        return QN_OK;
    out->rank = shape->rank;
    for (int32_t i = 0; i < shape->rank; i++)
        out->dims[i] = shape->dims[i] < 0 ? qn_dim_unknown() : qn_dim_of(shape->dims[i]);
    return QN_OK;
}

static bool is_tensor(const qn_script_parameter *p)
{
    return !p->type || (p->type->kind == QN_EXPR_NAME && strcmp(p->type->text, "Tensor") == 0);
}

static qn_status make_inputs(qn_aten_argument *arguments, size_t *count, const script_loader *l,
                             const qn_script_statement *forward)
{
    qn_torch *t = l->run.t;
    size_t place = 0;
    *count = 0;
    for (size_t i = 1; i < forward->n_parameters; i++) {
        const qn_script_parameter *p = &forward->parameters[i];
        qn_value *input;
        qn_type type;
        if (!is_tensor(p) && p->fallback)
            continue;
        if (!is_tensor(p) || *count == QN_TORCH_INPUTS)
            return qn_fail(
                t->ctx, QN_E_UNSUPPORTED,
                "input '%s' is not one tensor: a module around the model whose forward takes "
                "tensors alone can be read",
                p->name);
        QN_TRY(input_type(&type, l, p->name, place++));
        QN_TRY(qn_graph_build_input(&input, &t->b, p->name, &type));
        arguments[*count].name = p->name;
        QN_TRY(qn_torch_make(&arguments[(*count)++].value, t, input));
    }
    return QN_OK;
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static size_t count_outputs(const qn_torch_value *result, int depth)
{
    const bool object = result->kind == QN_TORCH_OBJECT;
    const size_t value = object || result->kind == QN_TORCH_DICT;
    size_t count = 0;
    if (!value && !qn_torch_is_items(result))
        return !qn_torch_is_none(result);
    const qn_torch_list *list = object ? &result->object->fields : result->list;
    for (size_t i = 0; depth < 8 && i + value < list->count; i += 1 + value)
        count += count_outputs(&list->at[i + value], depth + 1);
    return count;
}

/* The name that the notes give, the key, or "output" with a number where there are several. */
static qn_status output_name(const char **out, script_loader *l, const char *key, size_t all)
{
    qn_json_place root, list;
    size_t count;
    *out = key;
    if (l->notes) {
        root = qn_json_root(l->notes);
        if (qn_json_find(&list, &root, "outputs")) {
            QN_TRY(qn_json_length(&count, &list));
            const qn_json_place item = qn_json_element(&list, l->n_outputs);
            if (l->n_outputs < count)
                QN_TRY(qn_json_get_text(out, &item));
        }
    }
    if (!*out)
        *out = all == 1 ? "output" : qn_arena_format(l->run.t->arena, "output%zu", l->n_outputs);
    QN_TRY_ALLOC(l->run.t->ctx, *out);
    l->n_outputs++;
    return QN_OK;
}

static qn_status make_outputs(script_loader *l, const qn_torch_value *result, const char *key,
                              size_t all, int depth)
{
    qn_torch *t = l->run.t;
    const bool pairs = result->kind == QN_TORCH_DICT || result->kind == QN_TORCH_OBJECT;
    const qn_torch_list *list =
        result->kind == QN_TORCH_OBJECT ? &result->object->fields : result->list;
    qn_value *value;
    const char *name;
    if (qn_torch_is_none(result) || depth > 8)
        return QN_OK;
    if (pairs || qn_torch_is_items(result)) {
        for (size_t i = 0; i + pairs < list->count; i += 1 + (size_t)pairs) {
            const char *own = pairs && list->at[i].kind == QN_TORCH_TEXT ? list->at[i].text : NULL;
            QN_TRY(make_outputs(l, &list->at[i + pairs], own, all, depth + 1));
        }
        return QN_OK;
    }
    QN_TRY(qn_torch_value_of(&value, t, result));
    QN_TRY(output_name(&name, l, key, all));
    QN_TRY(qn_graph_build_define(&t->b, name, value));
    return qn_graph_build_output(&t->b, name);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status read_files(script_loader *l)
{
    qn_torch *t = l->run.t;
    qn_string text;
    QN_TRY(qn_torch_archive_pickle(&l->root, &t->archive, "data.pkl", "data/"));
    QN_TRY(qn_torch_archive_pickle(&l->run.constants, &t->archive, "constants.pkl", "constants/"));
    if (qn_torch_archive_has(&t->archive, "traced_inputs.pkl"))
        QN_TRY(qn_torch_archive_pickle(&l->traced, &t->archive, "traced_inputs.pkl",
                                       "traced_inputs/"));
    if (l->root.kind != QN_TORCH_OBJECT)
        return qn_fail(t->ctx, QN_E_FORMAT, "data.pkl has no module");
    l->root.object->path = "";
    if (!qn_torch_archive_has(&t->archive, NOTES))
        return QN_OK;
    QN_TRY(qn_torch_archive_read(&text, &t->archive, NOTES));
    return qn_json_read(&l->notes, t->ctx, text.text, text.length, NOTES);
}

static qn_status find_forward(const qn_script_statement **out, script_loader *l)
{
    const qn_script_statement *class;
    QN_TRY(qn_script_lookup(&class, &l->run, l->root.object->type, QN_STEP_CLASS));
    *out = class ? qn_script_find(&class->body, QN_STEP_DEF, "forward") : NULL;
    if (!*out)
        return qn_fail(l->run.t->ctx, QN_E_FORMAT, "the module '%s' has no method 'forward'",
                       l->root.object->type);
    return QN_OK;
}

static qn_status load(script_loader *l)
{
    qn_torch *t = l->run.t;
    qn_aten_argument arguments[QN_TORCH_INPUTS];
    const qn_script_statement *forward;
    qn_torch_value result;
    size_t count;
    QN_TRY(read_files(l));
    QN_TRY(find_forward(&forward, l));
    QN_TRY(make_inputs(arguments, &count, l, forward));
    qn_status status = qn_script_call(&result, &l->run, forward, &l->root, arguments, count);
    if (status != QN_OK && t->unranked)
        return status;
    qn_graph_builder_layer(&t->b, "", "");
    if (status != QN_OK && status != QN_E_NOMEM && status != QN_E_CANCELLED && t->b.n_unsupported)
        return qn_graph_builder_finish(&t->b);
    QN_TRY(status);
    QN_TRY(qn_graph_builder_finish(&t->b));
    for (size_t i = 0; i < t->b.graph->n_inputs; i++) {
        int32_t rank;
        t->hint.rank = -1;
        QN_TRY(qn_torch_rank(&rank, t, t->b.graph->inputs[i]));
    }
    return make_outputs(l, &result, NULL, count_outputs(&result, 0), 0);
}

qn_status qn_torch_load_script(qn_torch *t)
{
    script_loader l = {.run = {.t = t, .path = "", .constants = QN_TORCH_NOTHING},
                       .traced = QN_TORCH_NOTHING};
    qn_names_init(&l.run.files, t->ctx);
    const qn_status status = load(&l);
    qn_json_document_free(l.notes);
    qn_names_free(&l.run.files);
    return status;
}
