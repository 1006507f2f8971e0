/* quench bench: how fast a model runs here. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_engine_values engine;
    cli_feed_values feed;
    double seconds;
    int profile;
} values;

static const cli_option options[] = {
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
};
static const cli_group own = CLI_GROUP("of bench", options);

static qn_status bench(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    const qn_bench_options wanted = {QN_OPTIONS_VERSION,
                                     .plan = cli_plan_options(&v->engine, graph),
                                     .inputs = v->feed.inputs.at,
                                     .n_inputs = v->feed.inputs.count,
                                     .seconds = v->seconds,
                                     .profile = v->profile,
                                     .seed = (uint64_t)v->feed.seed};
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
    .parts = {{&own, 0},
              {&cli_feed_group, offsetof(values, feed)},
              {&cli_engine_group, offsetof(values, engine)},
              {&cli_graph_group, offsetof(values, graph)},
              {&cli_origin_group, offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
