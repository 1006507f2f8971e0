/* quench lint: what in a quantized model would not run as integers on a target. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    const char *target;
} values;

/* Targets, and chips behind them. */
static const char *target_word(size_t i)
{
    size_t targets = 0;
    while (qn_target_name(targets))
        targets++;
    return i < targets ? qn_target_name(i) : qn_chip_name(i - targets);
}

static int is_chip(const char *text)
{
    qn_chip_info chip;
    return qn_chip_find(&chip, text);
}

static const cli_option options[] = {
    {.name = "target",
     .type = CLI_TEXT,
     .offset = offsetof(values, target),
     .value = "NAME",
     .word = target_word,
     .known = is_chip,
     .help = "the engine or chip that is to run it"},
};
static const cli_group own = CLI_GROUP("of lint", options);

typedef struct work {
    const values *values;
    size_t *findings;
} work;

static qn_status lint(qn_report **out, cli_work *cli, qn_model *model,
                      const qn_graph_options *graph, const void *all)
{
    const work *w = all;
    const qn_lint_options wanted = {QN_OPTIONS_VERSION, .graph = *graph,
                                    .target = w->values->target};
    return qn_model_lint(out, w->findings, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    size_t findings = 0;
    const work w = {v, &findings};
    const int code = cli_model_run(cli, lint, &v->graph, &w);
    return code == CLI_DONE && findings ? CLI_GOAL : code;
}

const cli_command cli_cmd_lint = {
    .name = "lint",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "tell what in a quantized model would not run as integers",
    .notes = "Works on files of any tool. The exit code is 0 where nothing is found, else 4.",
    .parts = {{.group = &own},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
