/* quench convert: the model after the passes, as ONNX. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    const char *output;
    int64_t opset, external;
} values;

static const cli_option options[] = {
    {.name = "output",
     .shorts = "o",
     .type = CLI_TEXT,
     .offset = offsetof(values, output),
     .value = "FILE",
     .help = "where to write; the same as the second argument"},
    {.name = "opset",
     .type = CLI_INT,
     .offset = offsetof(values, opset),
     .value = "N",
     .least = 1,
     .most = 23,
     .help = "opset to write; default: the model's own where it has a form for every node"},
    {.name = "external",
     .type = CLI_INT,
     .offset = offsetof(values, external),
     .value = "BYTES",
     .least = 1,
     .most = 1e15,
     .help = "put tensors of at least this size into FILE.data"},
    {.name = "batch",
     .shorts = "b",
     .type = CLI_INT,
     .offset = offsetof(values, graph.batch),
     .value = "N",
     .least = 1,
     .most = 65536,
     .help = "fix the first dimension of the inputs that leave it open"},
    CLI_GRAPH_OPTIONS(values, graph),
};

static int convert(cli_work *cli, const values *v, const char *output,
                   const qn_graph_options *graph)
{
    const qn_convert_options wanted = {
        .graph = *graph, .save = {.opset = (int)v->opset, .external_from = (size_t)v->external}};
    qn_model *model = NULL;
    qn_report *report = NULL;
    qn_status status = qn_model_load(&model, cli->ctx, v->common.arguments.at[0]);
    if (status == QN_OK)
        status = qn_convert_file(&report, cli->ctx, model, output, &wanted);
    const int code = status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
    qn_model_free(model);
    return code;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    const cli_list *arguments = &v->common.arguments;
    const char *output = arguments->count > 1 ? arguments->at[1] : v->output;
    cli_graph graph = {.shapes = NULL};
    int code = CLI_USAGE;
    if (!output || (arguments->count > 1 && v->output))
        cli_error("convert: name one output file: quench convert MODEL OUTPUT");
    else if (cli_graph_make(&graph, &v->graph))
        code = convert(cli, v, output, &graph.options);
    cli_graph_free(&graph);
    return code;
}

const cli_command cli_cmd_convert = {
    .name = "convert",
    .arguments = "MODEL OUTPUT",
    .least = 1,
    .most = 2,
    .brief = "write a model as ONNX after the passes",
    .notes = "The file appears under its name only when it is complete. Where the opset asked for "
             "cannot say what the graph does, the node that prevents it is named (exit code 3).",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .values_size = sizeof(values),
    .run = run,
};
