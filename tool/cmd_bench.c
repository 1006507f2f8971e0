/* quench bench: how fast a model runs here. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_bench_options bench;
} values;

static qn_status bench(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    return qn_bench_run(out, cli->ctx, model, &v->bench);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, bench, &v->origin, v);
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
    .parts = {{.group = &cli_bench_group, .offset = offsetof(values, bench)},
              {.group = &cli_engine_group, .offset = offsetof(values, bench.plan)},
              {.group = &cli_graph_group, .offset = offsetof(values, bench.plan.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
