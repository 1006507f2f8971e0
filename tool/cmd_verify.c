/* quench verify: prove that the fast kernels compute what the reference does. */
#include <stdlib.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_engine_values engine;
    cli_feed_values feed;
    qn_data_options data;
    const char *runtime;
} values;

static const cli_option options[] = {
    {.name = "ort",
     .type = CLI_TEXT,
     .offset = offsetof(values, runtime),
     .value = "LIBRARY",
     .help = "compare with ONNX Runtime too: its libonnxruntime.so; default: $QUENCH_ORT"},
};
static const cli_group own = CLI_GROUP("of verify", options);

static qn_status verify(qn_report **out, cli_work *cli, qn_model *model,
                        const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    qn_verify_options wanted = {QN_OPTIONS_VERSION,
                                .plan = cli_plan_options(&v->engine, graph),
                                .inputs = v->feed.inputs.at,
                                .n_inputs = v->feed.inputs.count,
                                .seed = (uint64_t)v->feed.seed,
                                .runtime = v->runtime ? v->runtime : getenv("QUENCH_ORT")};
    if (wanted.runtime && !*wanted.runtime)
        wanted.runtime = NULL;
    wanted.data = cli_data_options(&v->data, &wanted.plan.graph);
    return qn_verify_files(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, verify, &v->graph, v);
}

const cli_command cli_cmd_verify = {
    .name = "verify",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "compare the fast kernels with the reference, tensor by tensor",
    .notes =
        "Every tensor that does not lie behind arithmetic in float must be equal bit for bit: as "
        "the fast kernels compute it alone, and as the plan leaves it that fuses them, with the "
        "threads asked for and with one. Without data the inputs are random numbers. "
        "ONEDNN_MAX_CPU_ISA limits the instruction set.",
    .parts = {{.group = &own},
              {.group = &cli_data_group, .offset = offsetof(values, data), .without = "labels"},
              {.group = &cli_feed_group, .offset = offsetof(values, feed)},
              {.group = &cli_engine_group, .offset = offsetof(values, engine)},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
