/* quench lint: what in a quantized model would not run as integers on a target. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_lint_options lint;
} values;

typedef struct work {
    const values *values;
    size_t *findings;
} work;

static qn_status lint(qn_report **out, cli_work *cli, qn_model *model, const void *all)
{
    const work *w = all;
    return qn_model_lint(out, w->findings, cli->ctx, model, &w->values->lint);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    size_t findings = 0;
    const work w = {v, &findings};
    const int code = cli_model_run(cli, lint, &v->origin, &w);
    return code == CLI_DONE && findings ? CLI_GOAL : code;
}

const cli_command cli_cmd_lint = {
    .name = "lint",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "tell what in a quantized model would not run as integers",
    .notes = "Works on files of any tool. The exit code is 0 where nothing is found, else 4.",
    .parts = {{.group = &cli_lint_group, .offset = offsetof(values, lint)},
              {.group = &cli_graph_group, .offset = offsetof(values, lint.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
