/* quench version: what this build is and sees. */
#include "cli.h"

static int run(cli_work *cli, const void *parsed)
{
    qn_report *report;
    (void)parsed;
    const qn_status status = qn_build_report(&report, cli->ctx);
    return status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
}

const cli_command cli_cmd_version = {
    .name = "version",
    .arguments = "",
    .brief = "show version, backends and what quench sees of this CPU",
    .values_size = sizeof(cli_common),
    .run = run,
};
