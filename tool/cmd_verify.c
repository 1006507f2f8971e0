/* quench verify: prove that the fast kernels compute what the reference does. */
#include <stdlib.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_verify_options verify;
} values;

static qn_status verify(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    qn_verify_options wanted = v->verify;
    if (!wanted.runtime)
        wanted.runtime = getenv("QUENCH_ORT");
    if (wanted.runtime && !*wanted.runtime)
        wanted.runtime = NULL;
    cli_move_batch(&wanted.data, &wanted.plan.graph);
    return qn_verify_files(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    return cli_model_run(cli, verify, &v->origin, v);
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
    .parts = {{.group = &cli_verify_group, .offset = offsetof(values, verify)},
              {.group = &cli_data_group,
               .offset = offsetof(values, verify.data),
               .without = "labels"},
              {.group = &cli_engine_group, .offset = offsetof(values, verify.plan)},
              {.group = &cli_graph_group, .offset = offsetof(values, verify.plan.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
