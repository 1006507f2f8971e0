/* Commands of the Knight tool beside quant: what is the chip vendor's to do. */
#include <string.h>

#include "quant.h"

bool cli_is_vendors(const char *name)
{
    static const char *const names[] = {"compile", "run", "profiling", "demo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

int cli_leave_to_vendor(void)
{
    cli_error("compiling for a chip, and running and profiling there, is done by the chip vendor's "
              "tools");
    return CLI_UNSUPPORTED;
}

static int run_build(cli_work *cli, const void *values)
{
    const int code = quant_run(cli, values);
    return code == CLI_DONE ? cli_leave_to_vendor() : code;
}

const cli_command cli_cmd_build = {
    .name = "build",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .brief = "quantize a model; compiling it is the chip vendor's",
    .parts = QUANT_PARTS,
    .values_size = sizeof(quant_values),
    .check = quant_check,
    .run = run_build,
    .section = "quant",
};
