/* quench bench: how fast a model runs here. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_engine_values engine;
    cli_feed_values feed;
    qn_bench_options bench;
} values;

#define CLI_OWNER qn_bench_options
static const qn_bench_options own_standard = QN_BENCH_OPTIONS_INIT;
static const cli_option own_rows[] = {QN_BENCH_OPTIONS(CLI_ROW)};
static const cli_group own = CLI_LIBRARY_GROUP("of bench", own_rows, own_standard);
#undef CLI_OWNER

static qn_status bench(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    qn_bench_options wanted = v->bench;
    wanted.plan = cli_plan_options(&v->engine, graph);
    wanted.inputs = v->feed.inputs.at;
    wanted.n_inputs = v->feed.inputs.count;
    wanted.seed = (uint64_t)v->feed.seed;
    return qn_bench_run(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, bench, &v->graph, v);
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
    .parts = {{.group = &own, .offset = offsetof(values, bench)},
              {.group = &cli_feed_group, .offset = offsetof(values, feed)},
              {.group = &cli_engine_group, .offset = offsetof(values, engine)},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
