/* quench infer: run a model once, or over many samples. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_list inputs, data;
    const char *output_dir, *backend;
    int64_t threads, batch, seed;
} values;

static const cli_option options[] = {
    {.name = "input",
     .shorts = "i",
     .type = CLI_LIST,
     .offset = offsetof(values, inputs),
     .value = "NAME=FILE",
     .help = "an input from a .npy, .npz or raw file"},
    {.name = "data",
     .shorts = "d",
     .type = CLI_LIST,
     .offset = offsetof(values, data),
     .value = "[NAME=]FILE",
     .help = "samples along the first axis of the file: all are run"},
    {.name = "output-dir",
     .shorts = "o",
     .type = CLI_TEXT,
     .offset = offsetof(values, output_dir),
     .value = "FOLDER",
     .help = "write each output as FOLDER/<name, / as _>.npy"},
    {.name = "batch",
     .shorts = "b",
     .type = CLI_INT,
     .offset = offsetof(values, batch),
     .value = "N",
     .least = 1,
     .most = 65536,
     .help = "samples to run at once where the model leaves it open; default: 8 of --data, else 1"},
    {.name = "seed",
     .type = CLI_INT,
     .offset = offsetof(values, seed),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "of the random numbers that inputs without a file get"},
    {.name = "threads",
     .shorts = "t",
     .type = CLI_INT,
     .offset = offsetof(values, threads),
     .value = "N",
     .least = 1,
     .most = 1024,
     .help = "threads to run with; default: one per core"},
    {.name = "backend",
     .type = CLI_TEXT,
     .offset = offsetof(values, backend),
     .value = "NAME",
     .help = "use only this backend ('quench version' lists them)"},
    CLI_GRAPH_OPTIONS(values, graph),
};

static int infer(cli_work *cli, const values *v, const qn_graph_options *graph)
{
    qn_infer_options wanted = {
        .plan = {.threads = (int)v->threads, .backend = v->backend, .graph = *graph},
        .inputs = v->inputs.at,
        .n_inputs = v->inputs.count,
        .data = v->data.at,
        .n_data = v->data.count,
        .batch = v->batch,
        .seed = (uint64_t)v->seed,
        .output_dir = v->output_dir};
    wanted.plan.graph.batch = v->data.count ? 0 : v->batch;
    qn_model *model = NULL;
    qn_report *report = NULL;
    qn_status status = qn_model_load(&model, cli->ctx, v->common.arguments.at[0]);
    if (status == QN_OK)
        status = qn_infer_files(&report, cli->ctx, model, &wanted);
    const int code = status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
    qn_model_free(model);
    return code;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    cli_graph graph;
    const int code = cli_graph_make(&graph, &v->graph) ? infer(cli, v, &graph.options) : CLI_USAGE;
    cli_graph_free(&graph);
    return code;
}

const cli_command cli_cmd_infer = {
    .name = "infer",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "run a model with inputs from files",
    .notes = "Inputs without a file get random numbers. A model's only input needs no name, and a "
             ".npz without one gives every input it has an array for. Files with other endings "
             "than .npy and .npz are raw bytes of the input's type and shape.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .values_size = sizeof(values),
    .run = run,
};
