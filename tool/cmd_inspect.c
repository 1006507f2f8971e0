/* quench inspect: what is in a model. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    qn_inspect_options inspect;
} values;

#define CLI_OWNER qn_inspect_options
static const qn_inspect_options own_standard = QN_INSPECT_OPTIONS_INIT;
static const cli_option own_rows[] = {QN_INSPECT_OPTIONS(CLI_ROW)};
static const cli_group own = CLI_LIBRARY_GROUP("of inspect", own_rows, own_standard);
#undef CLI_OWNER

static qn_status inspect(qn_report **out, cli_work *cli, qn_model *model,
                         const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    qn_inspect_options wanted = v->inspect;
    wanted.graph = *graph;
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
    .parts = {{.group = &own, .offset = offsetof(values, inspect)},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
