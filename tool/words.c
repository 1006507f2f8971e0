/* What the library says of its options, in the command's words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The budget of accuracy is a struct of its own; people know its limit. */
static const char *const budget[] = {"accuracy_budget", "max_drop"};

static bool is_called(const cli_option *option, const char *field, size_t length)
{
    return option->field && strlen(option->field) == length &&
           strncmp(option->field, field, length) == 0;
}

/* Of a group that the command has; NULL: it has not. */
static const cli_option *option_in(const cli_command *command, const cli_group *group,
                                   const char *field, size_t length)
{
    const cli_part *part;
    for (size_t i = 0; (part = cli_part_at(command, i)) != NULL; i++) {
        for (size_t k = 0; part->group == group && k < group->count; k++) {
            if (cli_part_has(part, &group->options[k]) &&
                is_called(&group->options[k], field, length))
                return &group->options[k];
        }
    }
    return NULL;
}

const cli_option *cli_option_of(const cli_command *command, const char *field, size_t length)
{
    /* Fields of qn_model_load_options are called so where others have the same name. */
    static const char load[] = "load.";
    const size_t prefix = sizeof load - 1;
    cli_field found;
    if (strlen(budget[0]) == length && strncmp(field, budget[0], length) == 0)
        return cli_option_of(command, budget[1], strlen(budget[1]));
    if (length > prefix && strncmp(field, load, prefix) == 0)
        return option_in(command, &cli_origin_group, field + prefix, length - prefix);
    for (size_t i = 0; cli_field_at(&found, command, i); i++) {
        if (is_called(found.option, field, length))
            return found.option;
    }
    return NULL;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static bool check_rule(const void *values, const cli_command *command, const qn_option_rule *rule)
{
    const cli_option *one = cli_option_of(command, rule->field, strlen(rule->field));
    const cli_option *other = cli_option_of(command, rule->other, strlen(rule->other));
    if (!one || !other || !cli_given(values, command, one->name))
        return true;
    const bool both = cli_given(values, command, other->name);
    if (both && rule->relation == QN_OPTION_EXCLUDES) {
        cli_error("%s: --%s and --%s exclude each other: %s", command->name, one->name, other->name,
                  rule->why);
        return false;
    }
    if (((const cli_common *)values)->program->run) /* said before the interpreter was started */
        return true;
    if (both && rule->relation == QN_OPTION_WITHOUT)
        cli_note("--%s has no effect here: it needs a run without --%s, %s", one->name, other->name,
                 rule->why);
    if (!both && rule->relation == QN_OPTION_NEEDS)
        cli_note("--%s has no effect here: it needs --%s, %s", one->name, other->name, rule->why);
    return true;
}

bool cli_check_rules(const void *values, const cli_command *command)
{
    const cli_part *part;
    for (size_t i = 0; (part = cli_part_at(command, i)) != NULL; i++) {
        for (size_t k = 0; k < part->group->n_rules; k++) {
            if (!check_rule(values, command, &part->group->rules[k]))
                return false;
        }
    }
    return true;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* A message on its way. */
typedef struct wording {
    char *out;
    size_t size;
    const cli_command *command;
    const void *values;
} wording;

/* Puts the words for a field behind `out`; false: nobody has such an option. */
static bool put_field(const wording *w, const char *field, size_t length)
{
    const cli_option *option = cli_option_of(w->command, field, length);
    const size_t at = strlen(w->out), size = w->size - at;
    char *out = w->out + at, typed[CLI_TYPED_SIZE];
    if (option)
        snprintf(out, size, "%s", cli_typed(typed, w->values, w->command, option->name));
    for (size_t i = 0; !option && cli_cmds[i]; i++) {
        option = cli_option_of(cli_cmds[i], field, length);
        if (option)
            snprintf(out, size, "'quench %s --%s'", cli_cmds[i]->name, option->name);
    }
    return option != NULL;
}

/* The words that "name: " in front of a message stands for. */
static const char *skip_prefix(const wording *w, const char *message)
{
    const size_t length = strcspn(message, ": `");
    if (!length || strncmp(message + length, ": ", 2) != 0 ||
        !cli_option_of(w->command, message, length))
        return message;
    put_field(w, message, length);
    return message + length;
}

char *cli_in_words(const cli_command *command, const void *values, const char *message,
                   bool of_option)
{
    const size_t size = 4 * strlen(message) + 2 * CLI_TYPED_SIZE;
    char *out = calloc(size, 1);
    if (!out)
        return NULL;
    const wording w = {out, size - 1, command, values};
    const char *at = of_option ? skip_prefix(&w, message) : message;
    while (*at) {
        const size_t length = *at == '`' ? strcspn(at + 1, "` \n") : 0;
        const size_t end = strlen(out);
        if (length && at[1 + length] == '`' && put_field(&w, at + 1, length)) {
            at += length + 2;
            continue;
        }
        if (end + 1 < size)
            out[end] = *at;
        at++;
    }
    return out;
}
