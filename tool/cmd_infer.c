/* quench infer: run a model once, or over many samples. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_engine_values engine;
    cli_feed_values feed;
    qn_data_options data;
    const char *output_dir;
} values;

static const cli_option options[] = {
    {.name = "output-dir",
     .shorts = "o",
     .type = CLI_TEXT,
     .offset = offsetof(values, output_dir),
     .value = "FOLDER",
     .help = "write each output as FOLDER/<name, / as _>.npy"},
};
static const cli_group own = CLI_GROUP("of infer", options);

static qn_status infer(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    qn_infer_options wanted = {QN_OPTIONS_VERSION,
                               .plan = cli_plan_options(&v->engine, graph),
                               .inputs = v->feed.inputs.at,
                               .n_inputs = v->feed.inputs.count,
                               .seed = (uint64_t)v->feed.seed,
                               .output_dir = v->output_dir};
    wanted.data = cli_data_options(&v->data, &wanted.plan.graph);
    return qn_infer_files(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, infer, &v->graph, v);
}

const cli_command cli_cmd_infer = {
    .name = "infer",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "run a model with inputs from files",
    .notes = "A model's only input needs no name, and a .npz without one gives every input it has "
             "an array for. Files with other endings than .npy and .npz are raw bytes of the "
             "input's type and shape. Samples are run 8 at once, or as many as --batch says, where "
             "neither the model nor --input-shape fixes their number.",
    .parts = {{.group = &own},
              {.group = &cli_data_group, .offset = offsetof(values, data), .without = "labels"},
              {.group = &cli_feed_group, .offset = offsetof(values, feed)},
              {.group = &cli_engine_group, .offset = offsetof(values, engine)},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
