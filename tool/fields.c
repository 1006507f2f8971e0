/* Which options a command has: those of its parts, and behind them those of every command. */
#include <stdio.h>
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
     .help = "only results and errors; of commands that make files only errors"},
    {.name = "help",
     .shorts = "h",
     .type = CLI_FLAG,
     .offset = offsetof(cli_common, help),
     .help = "this text"},
};
static const cli_group common_group = CLI_GROUP("of every command", common_options);

const cli_part *cli_part_at(const cli_command *command, size_t i)
{
    static const cli_part common = {&common_group, 0, NULL};
    size_t own = 0;
    while (command->parts[own].group)
        own++;
    if (i < own)
        return &command->parts[i];
    return i == own ? &common : NULL;
}

static bool is_among(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; at && *at;) {
        const size_t own = strcspn(at, " ");
        if (own == length && strncmp(at, word, length) == 0)
            return true;
        at += own + strspn(at + own, " ");
    }
    return false;
}

bool cli_part_has(const cli_part *part, const cli_option *option)
{
    return option->name && !(option->field && is_among(part->without, option->field));
}

bool cli_field_at(cli_field *out, const cli_command *command, size_t i)
{
    const cli_part *part;
    for (size_t p = 0; (part = cli_part_at(command, p)) != NULL; p++) {
        for (size_t k = 0; k < part->group->count; k++) {
            const cli_option *option = &part->group->options[k];
            if (!cli_part_has(part, option) || i--)
                continue;
            *out = (cli_field){option, part->offset + option->offset};
            return true;
        }
    }
    return false;
}

bool cli_has_words(const cli_option *option)
{
    return option->word || option->words;
}

const char *cli_word_at(const cli_option *option, size_t i)
{
    size_t own = 0;
    while (option->word && option->word(own)) {
        if (own++ == i)
            return option->word(i);
    }
    for (const char *const *word = option->words; word && *word; word++) {
        if (own++ == i)
            return *word;
    }
    return NULL;
}

static const char *given_as(const void *values, const cli_command *command, const char *name)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (strcmp(field.option->name, name) == 0)
            return ((const cli_common *)values)->given[i];
    }
    return NULL;
}

bool cli_given(const void *values, const cli_command *command, const char *name)
{
    return given_as(values, command, name) != NULL;
}

const char *cli_typed(char out[CLI_TYPED_SIZE], const void *values, const cli_command *command,
                      const char *name)
{
    const char *word = values ? given_as(values, command, name) : NULL;
    if (word && *word)
        snprintf(out, CLI_TYPED_SIZE, "%.*s", (int)strcspn(word, "="), word);
    else
        snprintf(out, CLI_TYPED_SIZE, "--%s", name);
    return out;
}
