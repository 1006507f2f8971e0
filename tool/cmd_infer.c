/* quench infer: run a model once, or over many samples. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_infer_options infer;
} values;

static qn_status infer(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    qn_infer_options wanted = v->infer;
    cli_move_batch(&wanted.data, &wanted.plan.graph);
    return qn_infer_files(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, infer, &v->origin, v);
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
    .parts = {{.group = &cli_infer_group, .offset = offsetof(values, infer)},
              {.group = &cli_data_group,
               .offset = offsetof(values, infer.data),
               .without = "labels"},
              {.group = &cli_engine_group, .offset = offsetof(values, infer.plan)},
              {.group = &cli_graph_group, .offset = offsetof(values, infer.plan.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
