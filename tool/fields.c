/* Which options a command has: those of its parts, and behind them those of every command. */
#include <string.h>

#include "cli.h"

static const cli_option common_options[] = {
    {.name = "json",
     .type = CLI_FLAG,
     .offset = offsetof(cli_common, json),
     .help = "results as JSON"},
    {.name = "markdown",
     .type = CLI_FLAG,
     .offset = offsetof(cli_common, markdown),
     .help = "results as Markdown"},
    {.name = "verbose",
     .shorts = "v",
     .type = CLI_FLAG,
     .offset = offsetof(cli_common, verbose),
     .help = "tell more on stderr; -vv: everything"},
    {.name = "quiet",
     .shorts = "q",
     .type = CLI_FLAG,
     .offset = offsetof(cli_common, quiet),
     .help = "only results and errors"},
    {.name = "help",
     .shorts = "h",
     .type = CLI_FLAG,
     .offset = offsetof(cli_common, help),
     .help = "this text"},
};
static const cli_group common_group = CLI_GROUP("of every command", common_options);

const cli_part *cli_part_at(const cli_command *command, size_t i)
{
    static const cli_part common = {&common_group, 0};
    size_t own = 0;
    while (command->parts[own].group)
        own++;
    if (i < own)
        return &command->parts[i];
    return i == own ? &common : NULL;
}

bool cli_field_at(cli_field *out, const cli_command *command, size_t i)
{
    const cli_part *part;
    for (size_t p = 0; (part = cli_part_at(command, p)) != NULL; p++) {
        if (i < part->group->count) {
            out->option = &part->group->options[i];
            out->offset = part->offset + out->option->offset;
            return true;
        }
        i -= part->group->count;
    }
    return false;
}

bool cli_given(const void *values, const cli_command *command, const char *name)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (strcmp(field.option->name, name) == 0)
            return ((const cli_common *)values)->given[i];
    }
    return false;
}
