/* quench convert: the model after the passes, as ONNX. */
#include <sys/stat.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    const char *output;
    qn_convert_options convert;
} values;

static const cli_option options[] = {
    {.name = "output",
     .shorts = "o",
     .type = CLI_TEXT,
     .offset = offsetof(values, output),
     .value = "FILE",
     .help = "where to write; the same as the second argument"},
};
static const cli_group own = CLI_GROUP("of convert", options);

#define CLI_OWNER qn_convert_options
static const qn_convert_options convert_standard = QN_CONVERT_OPTIONS_INIT;
static const cli_option convert_rows[] = {QN_CONVERT_OPTIONS(CLI_ROW)};
static const cli_group converting = CLI_LIBRARY_GROUP("of convert", convert_rows, convert_standard);
#undef CLI_OWNER

#define CLI_OWNER qn_save_options
static const qn_save_options save_standard = QN_SAVE_OPTIONS_INIT;
static const cli_option save_rows[] = {QN_SAVE_OPTIONS(CLI_ROW)};
static const cli_group save = CLI_LIBRARY_GROUP("of convert", save_rows, save_standard);
#undef CLI_OWNER

static const char *output_of(const values *v)
{
    return v->common.arguments.count > 1 ? v->common.arguments.at[1] : v->output;
}

static qn_status convert(qn_report **out, cli_work *cli, qn_model *model,
                         const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    cli_origin_values from = v->graph.origin;
    qn_convert_options wanted = v->convert;
    wanted.graph = *graph;
    wanted.runtime = cli_runtime_run;
    wanted.runtime_user = &from;
    return qn_convert_file(out, cli->ctx, model, output_of(v), &wanted);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    if (!output_of(v) || (v->common.arguments.count > 1 && v->output)) {
        cli_error("convert: name one output file: quench convert MODEL OUTPUT");
        return CLI_USAGE;
    }
    if (is_same_file(v->common.arguments.at[0], output_of(v))) {
        cli_error("convert: %s is the model itself, which is not written over: choose another name",
                  output_of(v));
        return CLI_USAGE;
    }
    cli->aside = is_same_file(output_of(v), "/dev/stdout");
    return cli_model_run(cli, convert, &v->graph, v);
}

const cli_command cli_cmd_convert = {
    .name = "convert",
    .arguments = "MODEL OUTPUT",
    .least = 1,
    .most = 2,
    .brief = "write a model as ONNX after the passes",
    .notes = "The file appears under its name only when it is complete. Where the opset asked for "
             "cannot say what the graph does, the node that prevents it is named (exit code 3).",
    .parts = {{.group = &own},
              {.group = &converting, .offset = offsetof(values, convert)},
              {.group = &save, .offset = offsetof(values, convert.save)},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
