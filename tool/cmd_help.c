/* quench help: the pages that the tables give. */
#include <string.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    const char *completion;
    int man;
} values;

static const cli_option options[] = {
    {.name = "man",
     .type = CLI_FLAG,
     .offset = offsetof(values, man),
     .help = "the man page, for 'man -l -'"},
    {.name = "completion",
     .type = CLI_TEXT,
     .offset = offsetof(values, completion),
     .value = "SHELL",
     .word = cli_shell_name,
     .help = "completions for a shell: bash, zsh or fish"},
};
static const cli_group own = CLI_GROUP("of help", options);

/* The commands, then the one other topic. */
static const char *topic_name(size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (!cli_cmds[k])
            return NULL;
    }
    return cli_cmds[i] ? cli_cmds[i]->name : "passes";
}

static int show_passes(cli_work *cli)
{
    qn_report *report;
    const qn_status status = qn_passes_report(&report, cli->ctx);
    return status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
}

static int unknown_topic(const char *topic)
{
    const char *best = cli_nearest_command(topic);
    if (best)
        cli_error("help: no command '%s'; did you mean '%s'?", topic, best);
    else
        cli_error("help: no command '%s' ('quench help' lists them)", topic);
    return CLI_USAGE;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    const char *topic = v->common.arguments.count ? v->common.arguments.at[0] : NULL;
    if (v->man)
        return cli_man_page();
    if (v->completion)
        return cli_completion(v->completion);
    if (topic && strcmp(topic, "passes") == 0)
        return show_passes(cli);
    if (topic && !cli_command_find(topic))
        return unknown_topic(topic);
    return cli_help(topic ? cli_command_find(topic) : NULL);
}

const cli_command cli_cmd_help = {
    .name = "help",
    .arguments = "[COMMAND | passes]",
    .least = 0,
    .most = 1,
    .word = topic_name,
    .brief = "explain a command, or list the passes",
    .parts = {{.group = &own}},
    .values_size = sizeof(values),
    .run = run,
};
