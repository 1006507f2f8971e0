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
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++)
        consider(&g, field.option->name);
    return g.best;
}

static const char *nearest_word(cli_word_fn *word_at, const char *word)
{
    guess g = {word, NULL, 0};
    for (size_t i = 0; word_at(i); i++)
        consider(&g, word_at(i));
    return g.best;
}

/* ---- Walking --------------------------------------------------------------------------------------------- */

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

static bool find_option(cli_field *out, const cli_command *command, const char *name, size_t length,
                        bool is_long)
{
    for (size_t i = 0; cli_field_at(out, command, i); i++) {
        if (is_called(out->option, name, length, is_long))
            return true;
    }
    return false;
}

/* ---- Values --------------------------------------------------------------------------------------------- */

static bool bad_number(const cli_option *option, const char *text)
{
    if (option->type == CLI_INT)
        cli_error("--%s: '%s' is not an integer from %.0f to %.0f", option->name, text,
                  option->least, option->most);
    else
        cli_error("--%s: '%s' is not a number from %.15g to %.15g", option->name, text,
                  option->least, option->most);
    return false;
}

static bool set_int(void *field, const cli_option *option, const char *text)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)value < option->least ||
        (double)value > option->most)
        return bad_number(option, text);
    *(int64_t *)field = value;
    return true;
}

static bool set_real(void *field, const cli_option *option, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < option->least || value > option->most)
        return bad_number(option, text);
    *(double *)field = value;
    return true;
}

static bool bad_word(const cli_option *option, const char *text)
{
    const char *best = nearest_word(option->word, text);
    char all[512] = "";
    size_t length = 0;
    for (size_t i = 0; option->word(i) && length < sizeof all; i++)
        length += (size_t)snprintf(all + length, sizeof all - length, " %s", option->word(i));
    cli_error("--%s: '%s' is none of:%s%s%s%s", option->name, text, all,
              best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    return false;
}

static bool check_word(const cli_option *option, const char *text)
{
    for (size_t i = 0; option->word && option->word(i); i++) {
        if (strcmp(option->word(i), text) == 0)
            return true;
    }
    return !option->word || bad_word(option, text);
}

/* No text that an option takes makes sense when it is empty: mostly a variable was, in a script. */
static bool check_text(const cli_option *option, const char *text)
{
    if (*text)
        return check_word(option, text);
    cli_error("--%s: the value is empty (%s)", option->name, option->value);
    return false;
}

static bool set_value(void *values, const cli_field *to, const char *text)
{
    void *field = (char *)values + to->offset;
    switch (to->option->type) {
    case CLI_FLAG: ++*(int *)field; return true;
    case CLI_INT: return set_int(field, to->option, text);
    case CLI_REAL: return set_real(field, to->option, text);
    case CLI_TEXT: *(const char **)field = text; return check_text(to->option, text);
    default: {
        cli_list *list = field;
        list->at[list->count++] = text;
        return check_text(to->option, text);
    }
    }
}

/* ---- Arguments ------------------------------------------------------------------------------------------ */

/* "-q -v" for "-qv", "-t 4" for "-t4": what other commands let one write together. False where the
 * letters are no short names. */
static bool spell_out(char *out, size_t size, const cli_command *command, const char *letters)
{
    size_t length = 0;
    cli_field field;
    for (out[0] = 0; *letters && length < size; letters++) {
        if (!find_option(&field, command, letters, 1, false))
            return false;
        length +=
            (size_t)snprintf(out + length, size - length, "%s-%c", length ? " " : "", *letters);
        if (field.option->type != CLI_FLAG && letters[1] && length < size) {
            snprintf(out + length, size - length, " %s", letters + 1);
            return true;
        }
    }
    return true;
}

static bool unknown_option(const cli_command *command, const char *argument, const char *name)
{
    const char *best = nearest_option(command, name);
    char apart[128];
    if (argument[1] != '-' && (!best || strcmp(best, name) != 0) &&
        spell_out(apart, sizeof apart, command, name))
        cli_error("%s: unknown option %s; did you mean %s?", command->name, argument, apart);
    else if (best)
        cli_error("%s: unknown option %s; did you mean --%s?", command->name, argument, best);
    else
        cli_error("%s: unknown option %s ('quench %s --help' lists them)", command->name, argument,
                  command->name);
    return false;
}

/* "-vv": the letter of a flag, again and again. */
static bool find_repeated(cli_field *out, const cli_command *command, const char *letters)
{
    return letters[0] && strspn(letters, (const char[]){letters[0], 0}) == strlen(letters) &&
           find_option(out, command, letters, 1, false) && out->option->type == CLI_FLAG;
}

/* argv[*i] is an option; its value may be the next argument. */
static bool parse_option(void *values, const cli_command *command, int argc, char **argv, int *i)
{
    const char *argument = argv[*i];
    const bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    const size_t length = strcspn(name, "=");
    const char *text = name[length] ? name + length + 1 : NULL;
    cli_field field;
    if (!find_option(&field, command, name, length, is_long)) {
        if (is_long || !find_repeated(&field, command, name))
            return unknown_option(command, argument, name);
        *(int *)((char *)values + field.offset) += (int)length - 1;
    }
    const cli_option *option = field.option;
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
    return set_value(values, &field, text);
}

static bool make_list(cli_list *list, int argc)
{
    list->at = calloc((size_t)argc + 1, sizeof *list->at);
    if (!list->at)
        cli_error("out of memory");
    return list->at != NULL;
}

/* Lists get room for as many values as there are arguments, the others their standard value. */
static bool set_standards(void *values, const cli_command *command, int argc)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (field.option->type == CLI_LIST &&
            !make_list((cli_list *)((char *)values + field.offset), argc))
            return false;
        if (field.option->standard && !set_value(values, &field, field.option->standard))
            return false;
    }
    return make_list(&((cli_common *)values)->arguments, argc);
}

static bool check_arguments(const cli_common *common, const cli_command *command)
{
    const int given = (int)common->arguments.count;
    if (common->json && common->markdown) {
        cli_error("%s: --json and --markdown exclude each other", command->name);
        return false;
    }
    for (int i = 0; i < given; i++) {
        if (!*common->arguments.at[i]) {
            cli_error("%s: argument %d is empty; usage: quench %s [options] %s", command->name,
                      i + 1, command->name, command->arguments);
            return false;
        }
    }
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
    if (!set_standards(values, command, argc))
        return false;
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
    cli_field field;
    free(((cli_common *)values)->arguments.at);
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (field.option->type == CLI_LIST)
            free(((cli_list *)((char *)values + field.offset))->at);
    }
}
