/* quench inspect: what is in a model. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    int nodes, optimized, passes;
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
    {.name = "passes",
     .type = CLI_FLAG,
     .offset = offsetof(values, passes),
     .help = "a line per node that a pass added, changed or removed"},
};
static const cli_group own = CLI_GROUP("of inspect", options);

static qn_status inspect(qn_report **out, cli_work *cli, qn_model *model,
                         const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    const qn_inspect_options wanted = {QN_OPTIONS_VERSION, .graph = *graph, .nodes = v->nodes,
                                       .optimized = v->optimized, .passes = v->passes};
    return qn_model_inspect(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, inspect, &v->graph, v);
}

const cli_command cli_cmd_inspect = {
    .name = "inspect",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "show inputs, outputs, operators, sizes and what the passes do",
    .notes = "Counts of multiply-accumulates and types are those of the shapes that the model or "
             "--input-shape gives; open dimensions count as 1.",
    .parts = {{&own, 0},
              {&cli_graph_group, offsetof(values, graph)},
              {&cli_origin_group, offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
