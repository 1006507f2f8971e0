/* quench inspect: what is in a model. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_inspect_options inspect;
} values;

static qn_status inspect(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    return qn_model_inspect(out, cli->ctx, model, &v->inspect);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, inspect, &v->origin, v);
}

const cli_command cli_cmd_inspect = {
    .name = "inspect",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "show inputs, outputs, operators, sizes and what the passes do",
    .notes = "Counts of multiply-accumulates and types are those of the shapes that the model or "
             "--input-shape gives; open dimensions count as 1.",
    .parts = {{.group = &cli_inspect_group, .offset = offsetof(values, inspect)},
              {.group = &cli_graph_group, .offset = offsetof(values, inspect.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
