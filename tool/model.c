/* What commands about a model share: groups of options, and the way from file to report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- Where the model comes from -------------------------------------------------------------- */

static const cli_option origin_options[] = {
    {.name = "framework",
     .field = "framework",
     .shorts = "f",
     .type = CLI_TEXT,
     .offset = offsetof(cli_graph_values, origin.framework),
     .value = "NAME",
     .word = qn_framework_name,
     .help = "that the model was made with; default: what the file looks like"},
    {.name = "weight",
     .field = "weights",
     .shorts = "w",
     .type = CLI_TEXT,
     .offset = offsetof(cli_graph_values, origin.weights),
     .value = "FILE",
     .help = "weights, where the model's file has none (pytorch, caffe, paddle)"},
    {.name = "start-node-names",
     .field = "first_nodes",
     .shorts = "snn",
     .type = CLI_WORDS,
     .offset = offsetof(cli_graph_values, origin.first_nodes),
     .value = "NODE...",
     .help = "where a tensorflow model begins"},
    {.name = "end-node-names",
     .field = "last_nodes",
     .shorts = "enn",
     .type = CLI_WORDS,
     .offset = offsetof(cli_graph_values, origin.last_nodes),
     .value = "NODE...",
     .help = "where a tensorflow model ends"},
    {.name = "convert2chw",
     .field = "channels_first",
     .shorts = "c2chw",
     .type = CLI_FLAG,
     .offset = offsetof(cli_graph_values, origin.channels_first),
     .help = "give a tensorflow model NCHW inputs"},
    {.name = "input-shapes",
     .field = "load.shapes",
     .shorts = "is",
     .type = CLI_ROWS,
     .offset = offsetof(cli_graph_values, origin.shapes),
     .value = "DIM...",
     .number = CLI_WHOLE,
     .least = 1,
     .most = 1e9,
     .help = "shape of a paddle or pytorch model's input; once for each input, in their order"},
};
const cli_group cli_origin_group = CLI_GROUP("for models that are no ONNX", origin_options);

/* The library's options made of the values; `shapes` has room for all rows. */
static qn_model_load_options load_options(qn_input_shape *shapes, const cli_origin_values *v)
{
    qn_model_load_options o = {QN_OPTIONS_VERSION,
                               .framework = v->framework,
                               .weights = v->weights,
                               .first_nodes = v->first_nodes.at,
                               .n_first_nodes = v->first_nodes.count,
                               .last_nodes = v->last_nodes.at,
                               .n_last_nodes = v->last_nodes.count,
                               .channels_first = v->channels_first,
                               .shapes = shapes,
                               .n_shapes = v->shapes.count > 0};
    for (size_t i = 0; i < v->shapes.count; i++) {
        const char *text = v->shapes.at[i];
        qn_input_shape *shape = &shapes[o.n_shapes - 1];
        if (!text)
            o.n_shapes++;
        else if (shape->rank < QN_MAX_RANK)
            shape->dims[shape->rank++] = strtoll(text, NULL, 10);
    }
    return o;
}

qn_status cli_model_load(qn_model **out, cli_work *cli, const char *path,
                         const cli_origin_values *origin)
{
    qn_input_shape *shapes = calloc(origin->shapes.count + 1, sizeof *shapes);
    *out = NULL;
    if (!shapes)
        return QN_E_NOMEM;
    const qn_model_load_options from = load_options(shapes, origin);
    const qn_status status = qn_model_load_with(out, cli->ctx, path, &from);
    free(shapes);
    return status;
}

/* ---- The graph ------------------------------------------------------------------------------- */

/* The passes, and behind them what leaves all of them out. */
static const char *pass_word(size_t i)
{
    const char *name = qn_pass_name(i);
    if (name)
        return name;
    return i == 0 || qn_pass_name(i - 1) ? "all" : NULL;
}

static int is_known_pass(const char *text)
{
    return qn_pass_is_known(text) != 0;
}

static const cli_option graph_options[] = {
    {.name = "input-shape",
     .field = "shapes",
     .type = CLI_LIST,
     .offset = offsetof(cli_graph_values, shapes),
     .value = "NAME:DIMS",
     .help = "bind the dimensions of an input, as in x:1,3,48,320"},
    {.name = "no-pass",
     .field = "skip",
     .type = CLI_LIST,
     .offset = offsetof(cli_graph_values, skip),
     .value = "PASS",
     .word = pass_word,
     .known = is_known_pass,
     .help = "a pass to leave out ('quench help passes'), or all"},
    {.name = "batch",
     .field = "batch",
     .shorts = "b",
     .type = CLI_INT,
     .offset = offsetof(cli_graph_values, batch),
     .value = "N",
     .least = 1,
     .most = 65536,
     .help = "first dimension of the inputs that leave it open"},
};
const cli_group cli_graph_group = CLI_GROUP("for the graph", graph_options);
/* Without the batch, whose short name others use for bits. */
const cli_group cli_shape_group = {
    .title = "for the graph",
    .options = graph_options,
    .count = sizeof graph_options / sizeof *graph_options - 1,
};

static bool bad_shape(const char *text)
{
    cli_error("--input-shape: '%s' is not NAME:DIM,DIM,... with dimensions from 0 on", text);
    return false;
}

/* The last ':' ends the name, which may hold others. */
static bool parse_shape(qn_input_shape *out, char **names, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return bad_shape(text);
    const size_t length = (size_t)(colon - text);
    memcpy(*names, text, length);
    out->name = *names;
    *names += length + 1;
    for (const char *at = colon + 1; *at;) {
        char *end;
        errno = 0;
        const long long dim = strtoll(at, &end, 10);
        if (end == at || errno || dim < 0 || out->rank == QN_MAX_RANK || (*end && *end != ',') ||
            (*end == ',' && !end[1]))
            return bad_shape(text);
        out->dims[out->rank++] = dim;
        at = *end ? end + 1 : end;
    }
    return true;
}

/* The library's options made of the command's values. */
typedef struct prepared {
    qn_input_shape *shapes;
    /* Of the shapes, one after the other */
    char *names;
    qn_graph_options options;
} prepared;

/* False, with a message, where a value is wrong. prepared_free in any case. */
static bool prepared_make(prepared *out, const cli_graph_values *values)
{
    size_t bytes = 1;
    for (size_t i = 0; i < values->shapes.count; i++)
        bytes += strlen(values->shapes.at[i]) + 1;
    out->shapes = calloc(values->shapes.count + 1, sizeof *out->shapes);
    out->names = calloc(bytes, 1);
    if (!out->shapes || !out->names) {
        cli_error("out of memory");
        return false;
    }
    char *names = out->names;
    for (size_t i = 0; i < values->shapes.count; i++) {
        if (!parse_shape(&out->shapes[i], &names, values->shapes.at[i]))
            return false;
    }
    out->options = (qn_graph_options){
        QN_OPTIONS_VERSION,     .shapes = out->shapes,   .n_shapes = values->shapes.count,
        .batch = values->batch, .skip = values->skip.at, .n_skip = values->skip.count};
    return true;
}

static void prepared_free(prepared *p)
{
    free(p->shapes);
    free(p->names);
}

/* ---- Running it ------------------------------------------------------------------------------ */

/* Only the library knows which backends plug-ins bring. */
static int may_be_plugin(const char *name)
{
    return *name != '\0';
}

static const cli_option engine_options[] = {
    {.name = "threads",
     .field = "threads",
     .shorts = "t",
     .type = CLI_INT,
     .offset = offsetof(cli_engine_values, threads),
     .value = "N",
     .least = 1,
     .most = 1024,
     .help = "threads to run with; default: one per core"},
    {.name = "backend",
     .field = "backend",
     .type = CLI_TEXT,
     .offset = offsetof(cli_engine_values, backend),
     .value = "NAME",
     .word = qn_backend_name,
     .known = may_be_plugin,
     .help = "use only this backend ('quench version' lists them)"},
};
const cli_group cli_engine_group = CLI_GROUP("for the engine", engine_options);

qn_plan_options cli_plan_options(const cli_engine_values *engine, const qn_graph_options *graph)
{
    return (qn_plan_options){QN_OPTIONS_VERSION, .threads = (int)engine->threads,
                             .backend = engine->backend, .graph = *graph};
}

static const cli_option feed_options[] = {
    {.name = "input",
     .field = "inputs",
     .shorts = "i",
     .type = CLI_LIST,
     .offset = offsetof(cli_feed_values, inputs),
     .value = "NAME=FILE",
     .help = "an input from a .npy, .npz or raw file; the others get random numbers"},
    {.name = "seed",
     .field = "seed",
     .type = CLI_INT,
     .offset = offsetof(cli_feed_values, seed),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "of the random numbers"},
};
const cli_group cli_feed_group = CLI_GROUP("for the inputs", feed_options);

/* ---- From file to report --------------------------------------------------------------------- */

int cli_model_file_run(cli_work *cli, const char *path, cli_job *job,
                       const cli_graph_values *values, const void *all)
{
    prepared p = {.shapes = NULL};
    qn_model *model = NULL;
    qn_report *report = NULL;
    int code = CLI_USAGE;
    if (prepared_make(&p, values)) {
        qn_status status = cli_model_load(&model, cli, path, &values->origin);
        if (status == QN_OK)
            status = job(&report, cli, model, &p.options, all);
        if (status == QN_OK || report)
            code = cli_show(cli, report);
        if (status != QN_OK)
            code = cli_fail(cli, status);
    }
    qn_model_free(model);
    prepared_free(&p);
    return code;
}

int cli_model_run(cli_work *cli, cli_job *job, const cli_graph_values *values, const void *all)
{
    return cli_model_file_run(cli, cli->common->arguments.at[0], job, values, all);
}
