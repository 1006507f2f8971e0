/* quench ops: the operators that quench knows. */
#include "cli.h"

static int run(cli_work *cli, const void *parsed)
{
    qn_report *report;
    (void)parsed;
    const qn_status status = qn_ops_report(&report, cli->ctx);
    return status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
}

const cli_command cli_cmd_ops = {
    .name = "ops",
    .arguments = "",
    .brief = "list the operators with their opsets and how they are quantized",
    .values_size = sizeof(cli_common),
    .run = run,
};
