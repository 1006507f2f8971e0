/* From arguments to values, as the tables say. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- Guessing ------------------------------------------------------------------------------------------- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to insert, delete or replace to get from a to b. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST + 1];
    const size_t n = strlen(b);
    if (n > LONGEST)
        return n;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; *a; a++, i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t replaced = corner + (*a != b[j - 1]);
            corner = row[j];
            row[j] = smaller(replaced, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[n];
}

typedef struct guess {
    const char *word, *best;
    size_t distance;
} guess;

static void consider(guess *g, const char *candidate)
{
    const size_t d = distance(g->word, candidate);
    const size_t most = strlen(candidate) > 5 ? 3 : 2;
    if (d <= most && (!g->best || d < g->distance)) {
        g->best = candidate;
        g->distance = d;
    }
}

const char *cli_nearest_command(const char *word)
{
    guess g = {word, NULL, 0};
    for (size_t i = 0; cli_cmds[i]; i++)
        consider(&g, cli_cmds[i]->name);
    return g.best;
}

static const char *nearest_option(const cli_command *command, const char *word)
{
    guess g = {word, NULL, 0};
    for (size_t i = 0; i < command->n_options; i++)
        consider(&g, command->options[i].name);
    for (size_t i = 0; i < cli_common_count; i++)
        consider(&g, cli_common_options[i].name);
    return g.best;
}

/* ---- Finding -------------------------------------------------------------------------------------------- */

static bool is_among(const char *words, const char *word, size_t length)
{
    while (words && *words) {
        const size_t own = strcspn(words, " ");
        if (own == length && strncmp(words, word, length) == 0)
            return true;
        words += own + strspn(words + own, " ");
    }
    return false;
}

static bool is_called(const cli_option *option, const char *name, size_t length, bool is_long)
{
    if (is_long)
        return strlen(option->name) == length && strncmp(option->name, name, length) == 0;
    return is_among(option->shorts, name, length);
}

static const cli_option *find_option(const cli_command *command, const char *name, size_t length,
                                     bool is_long)
{
    for (size_t i = 0; i < command->n_options; i++) {
        if (is_called(&command->options[i], name, length, is_long))
            return &command->options[i];
    }
    for (size_t i = 0; i < cli_common_count; i++) {
        if (is_called(&cli_common_options[i], name, length, is_long))
            return &cli_common_options[i];
    }
    return NULL;
}

/* ---- Values --------------------------------------------------------------------------------------------- */

static bool bad_number(const cli_option *option, const char *text, const char *kind)
{
    cli_error("--%s: '%s' is not %s from %.15g to %.15g", option->name, text, kind, option->least,
              option->most);
    return false;
}

static bool set_int(void *field, const cli_option *option, const char *text)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)value < option->least ||
        (double)value > option->most)
        return bad_number(option, text, "an integer");
    *(int64_t *)field = value;
    return true;
}

static bool set_real(void *field, const cli_option *option, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < option->least || value > option->most)
        return bad_number(option, text, "a number");
    *(double *)field = value;
    return true;
}

static bool set_text(void *field, const cli_option *option, const char *text)
{
    if (option->words && !is_among(option->words, text, strlen(text))) {
        cli_error("--%s: '%s' is none of: %s", option->name, text, option->words);
        return false;
    }
    *(const char **)field = text;
    return true;
}

static bool set_value(void *values, const cli_option *option, const char *text)
{
    void *field = (char *)values + option->offset;
    switch (option->type) {
    case CLI_FLAG: ++*(int *)field; return true;
    case CLI_INT: return set_int(field, option, text);
    case CLI_REAL: return set_real(field, option, text);
    case CLI_TEXT: return set_text(field, option, text);
    default: {
        cli_list *list = field;
        list->at[list->count++] = text;
        return true;
    }
    }
}

/* ---- Arguments ------------------------------------------------------------------------------------------ */

static bool unknown_option(const cli_command *command, const char *argument, const char *name)
{
    const char *best = nearest_option(command, name);
    if (best)
        cli_error("%s: unknown option %s; did you mean --%s?", command->name, argument, best);
    else
        cli_error("%s: unknown option %s ('quench %s --help' lists them)", command->name, argument,
                  command->name);
    return false;
}

/* argv[*i] is an option; its value may be the next argument. */
static bool parse_option(void *values, const cli_command *command, int argc, char **argv, int *i)
{
    const char *argument = argv[*i];
    const bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    const size_t length = strcspn(name, "=");
    const char *text = name[length] ? name + length + 1 : NULL;
    const cli_option *option = find_option(command, name, length, is_long);
    if (!option)
        return unknown_option(command, argument, name);
    if (option->type == CLI_FLAG && text) {
        cli_error("%s: --%s takes no value", command->name, option->name);
        return false;
    }
    if (option->type != CLI_FLAG && !text) {
        if (*i + 1 >= argc) {
            cli_error("%s: --%s needs a value (%s)", command->name, option->name, option->value);
            return false;
        }
        text = argv[++*i];
    }
    return set_value(values, option, text);
}

/* Lists get room for as many values as there are arguments, the others their standard value. */
static bool set_standards(void *values, const cli_option *options, size_t count, int argc)
{
    for (size_t i = 0; i < count; i++) {
        cli_list *list = (cli_list *)((char *)values + options[i].offset);
        if (options[i].type == CLI_LIST)
            list->at = calloc((size_t)argc + 1, sizeof *list->at);
        if (options[i].type == CLI_LIST && !list->at)
            return false;
        if (options[i].standard && !set_value(values, &options[i], options[i].standard))
            return false;
    }
    return true;
}

static bool check_arguments(const cli_common *common, const cli_command *command)
{
    const int given = (int)common->arguments.count;
    if (common->help || (given >= command->least && given <= command->most))
        return true;
    if (given < command->least)
        cli_error("%s: missing argument; usage: quench %s [options] %s", command->name,
                  command->name, command->arguments);
    else
        cli_error("%s: unexpected argument '%s'", command->name,
                  common->arguments.at[command->most]);
    return false;
}

bool cli_parse(void *values, const cli_command *command, int argc, char **argv)
{
    cli_common *common = values;
    bool ended = false;
    common->arguments.at = calloc((size_t)argc + 1, sizeof *common->arguments.at);
    if (!common->arguments.at ||
        !set_standards(values, command->options, command->n_options, argc)) {
        cli_error("out of memory");
        return false;
    }
    for (int i = 0; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0)
            ended = true;
        else if (ended || argv[i][0] != '-' || argv[i][1] == 0)
            common->arguments.at[common->arguments.count++] = argv[i];
        else if (!parse_option(values, command, argc, argv, &i))
            return false;
    }
    return check_arguments(common, command);
}

void cli_values_free(void *values, const cli_command *command)
{
    free(((cli_common *)values)->arguments.at);
    for (size_t i = 0; i < command->n_options; i++) {
        const cli_option *option = &command->options[i];
        if (option->type == CLI_LIST)
            free(((cli_list *)((char *)values + option->offset))->at);
    }
}
