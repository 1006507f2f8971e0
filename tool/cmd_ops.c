/* quench ops: the operators that quench knows. */
#include "cli.h"

typedef struct values {
    cli_common common;
    const char *framework;
} values;

static const cli_option options[] = {
    {.name = "framework",
     .shorts = "f",
     .type = CLI_TEXT,
     .offset = offsetof(values, framework),
     .value = "NAME",
     .word = qn_framework_name,
     .help = "those that models of this framework may have; default: onnx"},
};
static const cli_group own = CLI_GROUP("of ops", options);

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    qn_report *report;
    const qn_status status =
        qn_framework_ops_report(&report, cli->ctx, v->framework ? v->framework : "onnx");
    return status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
}

const cli_command cli_cmd_ops = {
    .name = "ops",
    .arguments = "",
    .brief = "list the operators with their opsets and how they are quantized",
    .parts = {{.group = &own}},
    .values_size = sizeof(values),
    .run = run,
};
