/* Graphs made layer by layer: names, nodes, constants, and the layers that cannot be read. */
#include "import/builder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/infer.h"

/* How messages begin: the layer and its type. */
#define LAYER_FORMAT "layer '%s' (%s): "

/* What a model is written as where nothing else is asked for, unless it takes a later one to say
 * it. */
enum { LOWEST_OPSET = 14 };

struct qn_unsupported {
    const char *layer, *type, *why;
};

/* ---- The whole ------------------------------------------------------------------------------- */

qn_status qn_graph_builder_open(qn_graph_builder *b, qn_model_source *source, const char *title)
{
    qn_context *ctx = source->ctx;
    *b = (qn_graph_builder){.ctx = ctx, .title = title, .layer = "", .type = ""};
    qn_names_init(&b->named, ctx);
    QN_TRY(qn_model_create(&b->model, ctx));
    b->graph = b->model->graph;
    b->model->producer = title;
    b->model->path = qn_arena_text(&b->model->arena, source->path, strlen(source->path));
    QN_TRY_ALLOC(ctx, b->model->path);
    QN_TRY(qn_model_set_opset(b->model, "", LOWEST_OPSET));
    return source->map.data ? qn_import_keep_map(b->model, &source->map) : QN_OK;
}

qn_model *qn_graph_builder_take(qn_graph_builder *b)
{
    qn_model *model = b->model;
    b->model = NULL;
    return model;
}

void qn_graph_builder_close(qn_graph_builder *b)
{
    qn_names_free(&b->named);
    qn_free(b->ctx, b->unsupported);
    qn_model_free(b->model);
    b->model = NULL;
}

void qn_graph_builder_layer(qn_graph_builder *b, const char *name, const char *type)
{
    b->layer = name;
    b->type = type;
}

qn_status qn_graph_builder_fail(const qn_graph_builder *b, qn_status status, const char *format,
                                ...)
{
    char text[QN_ERROR_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!*b->type)
        return qn_fail(b->ctx, status, "%s", text);
    return qn_fail(b->ctx, status, LAYER_FORMAT "%s", b->layer, b->type, text);
}

/* ---- Layers that cannot be read -------------------------------------------------------------- */

/* The message behind the layer's own name, which the list names itself. */
static const char *reason_of(const qn_graph_builder *b)
{
    const char *text = qn_context_error(b->ctx);
    char own[QN_ERROR_SIZE];
    snprintf(own, sizeof own, LAYER_FORMAT, b->layer, b->type);
    return strncmp(text, own, strlen(own)) == 0 ? text + strlen(own) : text;
}

static qn_status note_unsupported(qn_graph_builder *b)
{
    const char *why = reason_of(b);
    QN_TRY_GROW(b->ctx, b->unsupported, b->unsupported_capacity, b->n_unsupported + 1);
    why = qn_arena_text(&b->model->arena, why, strlen(why));
    QN_TRY_ALLOC(b->ctx, why);
    b->unsupported[b->n_unsupported++] =
        (qn_unsupported){.layer = b->layer, .type = b->type, .why = why};
    return QN_OK;
}

qn_status qn_graph_builder_settle(qn_graph_builder *b, qn_status status, const char *const *outputs,
                                  size_t n_outputs)
{
    qn_value *value;
    if (status == QN_OK || status == QN_E_NOMEM || status == QN_E_CANCELLED)
        return status;
    if (status != QN_E_UNSUPPORTED)
        return b->n_unsupported ? qn_graph_builder_finish(b) : status;
    QN_TRY(note_unsupported(b));
    for (size_t i = 0; i < n_outputs; i++) {
        QN_TRY(qn_value_create(&value, b->graph, outputs[i]));
        QN_TRY(qn_graph_build_define(b, outputs[i], value));
    }
    return QN_OK;
}

qn_status qn_graph_builder_finish(qn_graph_builder *b)
{
    char list[QN_ERROR_SIZE / 2];
    size_t at = 0, named = 0;
    list[0] = 0;
    for (size_t i = 0; i < b->n_unsupported; i++) {
        const qn_unsupported *u = &b->unsupported[i];
        qn_log(b->ctx, QN_LOG_WARN, "layer '%s' (%s) cannot be read: %s", u->layer, u->type,
               u->why);
        const int wanted = snprintf(list + at, sizeof list - at, "%s'%s' (%s: %s)", at ? ", " : "",
                                    u->layer, u->type, u->why);
        if (at + (size_t)wanted >= sizeof list) {
            list[at] = 0;
            at = sizeof list - 1; /* nothing more has room */
            continue;
        }
        at += (size_t)wanted;
        named++;
    }
    if (b->n_unsupported == 0)
        return QN_OK;
    return qn_fail(b->ctx, QN_E_UNSUPPORTED, "%zu layer%s cannot be read: %s%s", b->n_unsupported,
                   b->n_unsupported == 1 ? "" : "s", list, named < b->n_unsupported ? ", ..." : "");
}

/* ---- Names ----------------------------------------------------------------------------------- */

qn_status qn_graph_build_define(qn_graph_builder *b, const char *name, qn_value *value)
{
    const char *kept = qn_arena_text(&b->model->arena, name, strlen(name));
    QN_TRY_ALLOC(b->ctx, kept);
    return qn_names_set(&b->named, kept, value);
}

bool qn_graph_build_has(const qn_graph_builder *b, const char *name)
{
    return qn_names_get(&b->named, name) != NULL;
}

qn_status qn_graph_build_find(qn_value **out, const qn_graph_builder *b, const char *name)
{
    *out = qn_names_get(&b->named, name);
    return *out ? QN_OK : qn_graph_builder_fail(b, QN_E_FORMAT, "nothing computes '%s'", name);
}

qn_status qn_graph_build_input(qn_value **out, qn_graph_builder *b, const char *name,
                               const qn_type *type)
{
    QN_TRY(qn_value_create(out, b->graph, name));
    (*out)->type = *type;
    QN_TRY(qn_graph_add_input(b->graph, *out));
    return qn_graph_build_define(b, name, *out);
}

/* Who has the name of an output gives it up, unless it is an input or output itself. */
static qn_status take_name(qn_graph_builder *b, qn_value *value, const char *name)
{
    qn_value *holder = qn_graph_value(b->graph, name);
    if (holder == value || (holder && (holder->is_input || holder->is_output)))
        return QN_OK;
    if (holder)
        QN_TRY(qn_value_rename(holder, name)); /* a taken name gets a number */
    return qn_value_rename(value, name);
}

qn_status qn_graph_build_output(qn_graph_builder *b, const char *name)
{
    qn_value *value;
    QN_TRY(qn_graph_build_find(&value, b, name));
    /* What is an input, a constant or an output already is one through a node of its own. */
    if (!value->producer || value->is_output)
        QN_TRY(qn_graph_build(&value, b, &qn_op_Identity, QN_INPUTS(value), QN_PLAIN));
    QN_TRY(take_name(b, value, name));
    return qn_graph_add_output(b->graph, value);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static qn_status set_word(int64_t *out, const qn_graph_builder *b, const qn_attr_spec *spec,
                          const char *word)
{
    for (*out = 0; spec->words[*out]; ++*out) {
        if (strcmp(spec->words[*out], word) == 0)
            return QN_OK;
    }
    return qn_graph_builder_fail(b, QN_E_INVALID, "'%s' is no %s", word, spec->name);
}

static qn_status set_attr(qn_node *node, const qn_graph_builder *b, const qn_graph_build_attr *attr)
{
    const qn_attr_spec *spec = qn_op_attr(node->op, attr->name, QN_LATEST_OPSET);
    qn_arena *arena = node->graph->arena;
    assert(spec);
    assert(spec->kind == attr->kind ||
           (spec->kind == QN_ATTR_ENUM && attr->kind == QN_ATTR_STRING));
    void *field = qn_attr_field(node, spec);
    switch (spec->kind) {
    case QN_ATTR_INT: *(int64_t *)field = attr->number; return QN_OK;
    case QN_ATTR_FLOAT: *(float *)field = attr->real; return QN_OK;
    case QN_ATTR_ENUM: return set_word(field, b, spec, attr->text);
    case QN_ATTR_STRING: {
        const char *text = qn_arena_text(arena, attr->text, strlen(attr->text));
        QN_TRY_ALLOC(b->ctx, text);
        *(const char **)field = text;
        return QN_OK;
    }
    case QN_ATTR_INTS: {
        const int64_t *ints = qn_arena_copy(arena, attr->ints, attr->count * sizeof *ints);
        QN_TRY_ALLOC(b->ctx, ints);
        *(qn_ints *)field = (qn_ints){ints, attr->count};
        return QN_OK;
    }
    case QN_ATTR_FLOATS: {
        const float *reals = qn_arena_copy(arena, attr->reals, attr->count * sizeof *reals);
        QN_TRY_ALLOC(b->ctx, reals);
        *(qn_floats *)field = (qn_floats){reals, attr->count};
        return QN_OK;
    }
    case QN_ATTR_TENSOR:
    case QN_ATTR_GRAPH:
    case QN_ATTR_TYPE: *(const void **)field = attr->object; return QN_OK;
    case QN_ATTR_STRINGS: {
        const qn_strings *list = attr->object;
        const qn_string *strings = qn_arena_copy(arena, list->at, list->count * sizeof *strings);
        QN_TRY_ALLOC(b->ctx, strings);
        *(qn_strings *)field = (qn_strings){strings, list->count};
        return QN_OK;
    }
    }
    return QN_OK;
}

static qn_status infer(const qn_graph_builder *b, qn_node *node)
{
    const qn_status status = qn_node_infer(node);
    if (status == QN_OK || !*b->type)
        return status;
    return qn_fail_within(b->ctx, status, "layer '%s' (%s)", b->layer, b->type);
}

qn_status qn_graph_build_several(qn_value **out, size_t n_out, qn_graph_builder *b, const qn_op *op,
                                 qn_graph_build_inputs inputs, qn_graph_build_attrs attrs)
{
    qn_node *node;
    const char *name = *b->layer ? b->layer : NULL;
    QN_TRY(qn_node_add(&node, b->graph, op, name, (int32_t)inputs.count, (int32_t)n_out));
    for (size_t i = 0; i < inputs.count; i++)
        QN_TRY(qn_node_set_input(node, (int32_t)i, inputs.at[i]));
    for (size_t i = 0; i < attrs.count; i++)
        QN_TRY(set_attr(node, b, &attrs.at[i]));
    for (size_t i = 0; i < n_out; i++) {
        QN_TRY(qn_value_create(&out[i], b->graph, name));
        qn_node_set_output(node, (int32_t)i, out[i]);
    }
    return infer(b, node);
}

qn_status qn_graph_build(qn_value **out, qn_graph_builder *b, const qn_op *op,
                         qn_graph_build_inputs inputs, qn_graph_build_attrs attrs)
{
    return qn_graph_build_several(out, 1, b, op, inputs, attrs);
}

/* ---- Constants ------------------------------------------------------------------------------- */

/* From this size on numbers stay where the file has them, at whatever address that is. */
enum { LARGE = 64 * 1024 };

static qn_status add_constant(qn_value **out, qn_graph_builder *b, const char *name,
                              const qn_tensor *contents)
{
    qn_tensor *tensor = qn_arena_copy(&b->model->arena, contents, sizeof *contents);
    QN_TRY_ALLOC(b->ctx, tensor);
    return qn_value_constant(out, b->graph, name, tensor);
}

qn_status qn_graph_build_constant(qn_value **out, qn_graph_builder *b, const char *name,
                                  const qn_type *type, qn_string bytes)
{
    qn_tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    char shape[128];
    size_t wanted;
    qn_type_format(shape, sizeof shape, type);
    if (!qn_type_is_static(type, tensor.dims) ||
        !qn_tensor_bytes(&wanted, tensor.dtype, tensor.rank, tensor.dims))
        return qn_graph_builder_fail(b, QN_E_FORMAT, "'%s' cannot be a constant %s", name, shape);
    if (wanted != bytes.length)
        return qn_graph_builder_fail(b, QN_E_FORMAT, "'%s' has %zu bytes where %s asks for %zu",
                                     name, bytes.length, shape, wanted);
    tensor.data = (void *)(uintptr_t)bytes.text;
    if (!qn_tensor_is_aligned(&tensor) && bytes.length < LARGE) {
        tensor.data = qn_arena_copy(&b->model->arena, bytes.text, bytes.length);
        QN_TRY_ALLOC(b->ctx, tensor.data);
    }
    return add_constant(out, b, name, &tensor);
}

qn_status qn_graph_build_ints(qn_value **out, qn_graph_builder *b, const int64_t *values,
                              size_t count)
{
    return qn_value_ints(out, b->graph, values, count);
}

qn_status qn_graph_build_reals(qn_value **out, qn_graph_builder *b, const float *values,
                               size_t count)
{
    qn_tensor tensor = {.dtype = QN_FLOAT32, .rank = 1, .dims = {(int64_t)count}};
    tensor.data = qn_arena_copy(&b->model->arena, values, count * sizeof *values);
    QN_TRY_ALLOC(b->ctx, tensor.data);
    return add_constant(out, b, NULL, &tensor);
}

qn_status qn_graph_build_real(qn_value **out, qn_graph_builder *b, float value)
{
    return qn_value_float(out, b->graph, value);
}
