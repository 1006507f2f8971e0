/* quench bench: how fast a model runs here. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_list inputs;
    const char *backend;
    int64_t threads, seed;
    double seconds;
    int profile;
} values;

static const cli_option options[] = {
    {.name = "threads",
     .shorts = "t",
     .type = CLI_INT,
     .offset = offsetof(values, threads),
     .value = "N",
     .least = 1,
     .most = 1024,
     .help = "threads to run with; default: one per core"},
    {.name = "batch",
     .shorts = "b",
     .type = CLI_INT,
     .offset = offsetof(values, graph.batch),
     .value = "N",
     .least = 1,
     .most = 65536,
     .help = "first dimension of the inputs that leave it open; default: 1"},
    {.name = "input",
     .shorts = "i",
     .type = CLI_LIST,
     .offset = offsetof(values, inputs),
     .value = "NAME=FILE",
     .help = "an input from a .npy, .npz or raw file; the others get random numbers"},
    {.name = "seconds",
     .shorts = "s",
     .type = CLI_REAL,
     .offset = offsetof(values, seconds),
     .value = "S",
     .standard = "1",
     .least = 0.001,
     .most = 86400,
     .help = "how long to measure, after a warm-up"},
    {.name = "profile",
     .shorts = "p",
     .type = CLI_FLAG,
     .offset = offsetof(values, profile),
     .help = "times of operators and steps, with backend and kernel"},
    {.name = "seed",
     .type = CLI_INT,
     .offset = offsetof(values, seed),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "of the random numbers"},
    {.name = "backend",
     .type = CLI_TEXT,
     .offset = offsetof(values, backend),
     .value = "NAME",
     .help = "use only this backend ('quench version' lists them)"},
    CLI_GRAPH_OPTIONS(values, graph),
};

static int bench(cli_work *cli, const values *v, const qn_graph_options *graph)
{
    const qn_bench_options wanted = {
        .plan = {.threads = (int)v->threads, .backend = v->backend, .graph = *graph},
        .inputs = v->inputs.at,
        .n_inputs = v->inputs.count,
        .seconds = v->seconds,
        .profile = v->profile,
        .seed = (uint64_t)v->seed};
    qn_model *model = NULL;
    qn_report *report = NULL;
    qn_status status = qn_model_load(&model, cli->ctx, v->common.arguments.at[0]);
    if (status == QN_OK)
        status = qn_bench_run(&report, cli->ctx, model, &wanted);
    const int code = status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
    qn_model_free(model);
    return code;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    cli_graph graph;
    const int code = cli_graph_make(&graph, &v->graph) ? bench(cli, v, &graph.options) : CLI_USAGE;
    cli_graph_free(&graph);
    return code;
}

const cli_command cli_cmd_bench = {
    .name = "bench",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "time a model: median, percentiles, GMAC/s, share of the CPU's peak",
    .notes =
        "gmacs is 1e9 multiply-accumulates a second at the median; peak_share compares it with "
        "what a loop of multiply-adds reaches on the same threads. In a profile 'ref (slow)' "
        "marks operators for which no fast kernel exists.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .values_size = sizeof(values),
    .run = run,
};
