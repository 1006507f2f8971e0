/* quench inspect: what is in a model. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    int nodes, optimized;
} values;

static const cli_option options[] = {
    {.name = "nodes",
     .shorts = "n",
     .type = CLI_FLAG,
     .offset = offsetof(values, nodes),
     .help = "a line per node with shapes and types"},
    {.name = "optimized",
     .type = CLI_FLAG,
     .offset = offsetof(values, optimized),
     .help = "show the graph as it is after the passes"},
    CLI_GRAPH_OPTIONS(values, graph),
};

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    cli_graph graph;
    qn_model *model = NULL;
    qn_report *report = NULL;
    int code = CLI_USAGE;
    if (cli_graph_make(&graph, &v->graph)) {
        const qn_inspect_options wanted = {
            .graph = graph.options, .nodes = v->nodes, .optimized = v->optimized};
        qn_status status = qn_model_load(&model, cli->ctx, v->common.arguments.at[0]);
        if (status == QN_OK)
            status = qn_model_inspect(&report, cli->ctx, model, &wanted);
        code = status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
        qn_model_free(model);
    }
    cli_graph_free(&graph);
    return code;
}

const cli_command cli_cmd_inspect = {
    .name = "inspect",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "show inputs, outputs, operators, sizes and what the passes do",
    .notes = "Counts of multiply-accumulates and types are those of the shapes that the model or "
             "--input-shape gives; open dimensions count as 1.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .values_size = sizeof(values),
    .run = run,
};
