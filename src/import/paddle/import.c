/* A PaddlePaddle model into a graph: its program, its parameters, then layer by layer. */
#include <string.h>

#include "import/paddle/paddle.h"

typedef struct paddle_import {
    qn_graph_builder builder;
    qn_paddle_program program;
    const qn_model_source *source;
} paddle_import;

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* The shape that the options give the input number i; those without a name go by their order. */
static const qn_input_shape *shape_of(const qn_model_load_options *options, const char *name,
                                      size_t i)
{
    size_t unnamed = 0;
    for (size_t s = 0; s < options->n_shapes; s++) {
        const qn_input_shape *shape = &options->shapes[s];
        if (shape->name ? strcmp(shape->name, name) == 0 : unnamed++ == i)
            return shape;
    }
    return NULL;
}

/* Only open dimensions may be set; the others must agree. */
static qn_status bind(qn_paddle_port *port, const paddle_import *import, size_t i)
{
    const qn_input_shape *shape = shape_of(import->source->options, port->name, i);
    char text[128];
    if (!shape)
        return QN_OK;
    qn_type_format(text, sizeof text, &port->type);
    if (shape->rank != port->type.rank)
        return qn_fail(import->builder.ctx, QN_E_INVALID,
                       "the input '%s' is %s; the shape given has %d dimensions", port->name, text,
                       shape->rank);
    for (int32_t d = 0; d < shape->rank; d++) {
        const int64_t have = port->type.dims[d].value, want = shape->dims[d];
        if (want < 0 || have == want)
            continue;
        if (have >= 0)
            return qn_fail(import->builder.ctx, QN_E_INVALID,
                           "the input '%s' is %s: dimension %d is %lld and cannot become %lld; "
                           "only dimensions that the model leaves open can be set",
                           port->name, text, d, (long long)have, (long long)want);
        port->type.dims[d] = qn_dim_of(want);
    }
    return QN_OK;
}

static qn_status check_shapes(const paddle_import *import)
{
    const qn_model_load_options *options = import->source->options;
    const qn_paddle_program *p = &import->program;
    size_t unnamed = 0;
    for (size_t s = 0; s < options->n_shapes; s++) {
        const char *name = options->shapes[s].name;
        size_t i = 0;
        unnamed += !name;
        while (name && i < p->n_inputs && strcmp(p->inputs[i].name, name) != 0)
            i++;
        if (name && i == p->n_inputs)
            return qn_fail(p->ctx, QN_E_INVALID, "the model has no input '%s'", name);
    }
    if (unnamed > p->n_inputs)
        return qn_fail(p->ctx, QN_E_INVALID, "%zu shapes are given, the model has %zu input%s",
                       unnamed, p->n_inputs, p->n_inputs == 1 ? "" : "s");
    return QN_OK;
}

static qn_status add_inputs(paddle_import *import)
{
    qn_paddle_program *p = &import->program;
    qn_value *value;
    QN_TRY(check_shapes(import));
    for (size_t i = 0; i < p->n_inputs; i++) {
        if (qn_graph_build_has(&import->builder, p->inputs[i].var))
            return qn_fail(p->ctx, QN_E_FORMAT, "the input '%s' is there twice", p->inputs[i].name);
        QN_TRY(bind(&p->inputs[i], import, i));
        QN_TRY(
            qn_graph_build_input(&value, &import->builder, p->inputs[i].var, &p->inputs[i].type));
    }
    return QN_OK;
}

static qn_status add_parameters(paddle_import *import)
{
    qn_graph_builder *b = &import->builder;
    qn_value *value;
    for (size_t i = 0; i < import->program.n_parameters; i++) {
        const qn_paddle_parameter *parameter = &import->program.parameters[i];
        QN_TRY(qn_graph_build_constant(&value, b, parameter->name, &parameter->type,
                                       parameter->bytes));
        QN_TRY(qn_graph_build_define(b, parameter->name, value));
    }
    return QN_OK;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* All variables that the layer gives; the first is its name. */
static qn_status outputs_of(const char *const **out, size_t *count, const qn_paddle_program *p,
                            const qn_paddle_op *op)
{
    size_t most = 1;
    for (size_t i = 0; i < op->n_out; i++)
        most += op->out[i].count;
    const char **names = qn_arena_array(p->arena, most, sizeof *names);
    QN_TRY_ALLOC(p->ctx, names);
    *count = 0;
    for (size_t i = 0; i < op->n_out; i++) {
        for (size_t k = 0; k < op->out[i].count; k++) {
            if (op->out[i].vars[k][0])
                names[(*count)++] = op->out[i].vars[k];
        }
    }
    *out = names;
    return QN_OK;
}

static qn_status convert_op(paddle_import *import, const qn_paddle_op *op)
{
    qn_graph_builder *b = &import->builder;
    qn_paddle_layer layer = {b, op, &import->program, (uint32_t)b->graph->n_values};
    const char *const *names = NULL;
    size_t count = 0;
    QN_TRY(outputs_of(&names, &count, &import->program, op));
    qn_graph_builder_layer(b, count ? names[0] : op->type, op->type);
    const qn_status status =
        op->row ? op->row->convert(&layer)
                : qn_graph_builder_fail(b, QN_E_UNSUPPORTED, "this operator is not known");
    return qn_graph_builder_settle(b, status, names, count);
}

static qn_status convert(paddle_import *import)
{
    qn_graph_builder *b = &import->builder;
    const qn_paddle_program *p = &import->program;
    qn_value *value;
    QN_TRY(add_parameters(import));
    QN_TRY(add_inputs(import));
    for (size_t i = 0; i < p->n_ops; i++) {
        QN_TRY(qn_check_cancel(b->ctx));
        QN_TRY(convert_op(import, &p->ops[i]));
    }
    QN_TRY(qn_graph_builder_finish(b));
    qn_graph_builder_layer(b, "", "");
    for (size_t i = 0; i < p->n_outputs; i++) {
        QN_TRY(qn_graph_build_find(&value, b, p->outputs[i].var));
        QN_TRY(qn_graph_build_define(b, p->outputs[i].name, value));
        QN_TRY(qn_graph_build_output(b, p->outputs[i].name));
    }
    return QN_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* The program of a folder, mapped. */
static qn_status open_in_folder(const char **path, paddle_import *import)
{
    static const char *const usual[] = {"__model__", "inference.pdmodel", "inference.json",
                                        "model.pdmodel"};
    qn_context *ctx = import->builder.ctx;
    qn_map map = {.data = NULL};
    for (size_t i = 0; i < QN_COUNT_OF(usual); i++) {
        *path = qn_arena_format(import->program.arena, "%s/%s", import->source->path, usual[i]);
        QN_TRY_ALLOC(ctx, *path);
        if (qn_map_open(&map, ctx, *path) != QN_OK)
            continue;
        const qn_status status = qn_import_keep_map(import->builder.model, &map);
        qn_map_close(&map);
        return status;
    }
    return qn_fail(ctx, QN_E_FORMAT, "no model is in the folder; name its file");
}

static bool is_json(qn_string text)
{
    size_t at = 0;
    while (at < text.length && text.text[at] && strchr(" \t\r\n", text.text[at]))
        at++;
    return at < text.length && text.text[at] == '{';
}

static qn_status read_program(paddle_import *import, qn_string program)
{
    qn_paddle_program *p = &import->program;
    QN_TRY(is_json(program) ? qn_paddle_read_pir(p, program.text, program.length)
                            : qn_paddle_read_program(p, program.text, program.length));
    qn_paddle_sort_ports(p);
    return QN_OK;
}

static qn_status read(paddle_import *import)
{
    qn_paddle_program *p = &import->program;
    qn_model *model = import->builder.model;
    const char *path = import->source->path, *weights;
    if (import->source->is_folder)
        QN_TRY(open_in_folder(&path, import));
    if (model->n_maps == 0)
        return qn_fail(p->ctx, QN_E_FORMAT, "the file is empty");
    QN_TRY(
        read_program(import, (qn_string){(const char *)model->maps[0].data, model->maps[0].size}));
    QN_TRY(qn_paddle_find_parameters(&weights, p, import->source, path));
    return qn_paddle_load_parameters(p, model, weights);
}

/* Parameters of which nothing is said come from files. */
static qn_status load(qn_model **out, qn_model_source *source, const qn_paddle_bytes *bytes)
{
    paddle_import import = {.source = source, .program = {.ctx = source->ctx}};
    qn_status status;
    QN_TRY_OR_DONE(qn_graph_builder_open(&import.builder, source, "PaddlePaddle"));
    qn_paddle_program_init(&import.program, source->ctx, &import.builder.model->arena);
    if (bytes) {
        QN_TRY_OR_DONE(read_program(&import, bytes->program));
        QN_TRY_OR_DONE(qn_paddle_read_parameters(&import.program, bytes->parameters.text,
                                                 bytes->parameters.length));
    } else {
        QN_TRY_OR_DONE(read(&import));
    }
    QN_TRY_OR_DONE(convert(&import));
    *out = qn_graph_builder_take(&import.builder);
done:
    qn_paddle_program_free(&import.program);
    qn_graph_builder_close(&import.builder);
    return status;
}

qn_status qn_paddle_load(qn_model **out, qn_model_source *source)
{
    if (qn_paddle_is_parameters(source))
        return qn_fail(source->ctx, QN_E_FORMAT,
                       "these are parameters of PaddlePaddle; give the .pdmodel or inference.json "
                       "beside them as the model, and this file with `weights`");
    return load(out, source, NULL);
}

qn_status qn_paddle_load_bytes(qn_model **out, qn_context *ctx, const qn_paddle_bytes *bytes)
{
    static const qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    qn_model_source source = {.ctx = ctx, .path = "", .options = &options};
    *out = NULL;
    return load(out, &source, bytes);
}
