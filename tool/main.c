#include <stdio.h>
#include <string.h>

#include "cli.h"

extern const cli_command cli_cmd_inspect, cli_cmd_infer, cli_cmd_eval, cli_cmd_verify,
    cli_cmd_bench, cli_cmd_convert, cli_cmd_calibrate, cli_cmd_quant, cli_cmd_lint, cli_cmd_ops,
    cli_cmd_version, cli_cmd_help;

const cli_command *const cli_cmds[] = {
    &cli_cmd_inspect, &cli_cmd_infer,     &cli_cmd_eval,  &cli_cmd_verify, &cli_cmd_bench,
    &cli_cmd_convert, &cli_cmd_calibrate, &cli_cmd_quant, &cli_cmd_lint,   &cli_cmd_ops,
    &cli_cmd_version, &cli_cmd_help,      NULL,
};

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_cmds[i]; i++) {
        if (strcmp(cli_cmds[i]->name, name) == 0)
            return cli_cmds[i];
    }
    return NULL;
}

/* "--help" and "--version" where a command is expected. */
static const char *command_name(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    return strcmp(word, "--version") == 0 ? "version" : word;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        cli_error("no command; 'quench help' lists them");
        return CLI_USAGE;
    }
    const char *name = command_name(argv[1]);
    const cli_command *command = cli_command_find(name);
    if (command)
        return cli_run(command, argc - 2, argv + 2);
    const char *best = cli_nearest_command(name);
    if (best)
        cli_error("unknown command '%s'; did you mean '%s'?", name, best);
    else
        cli_error("unknown command '%s' ('quench help' lists them)", name);
    return CLI_USAGE;
}
