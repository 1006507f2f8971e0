/* From arguments to options and their values, as the tables say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

/* ---- Finding --------------------------------------------------------------------------------- */

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
        return is_among(option->name, name, length) || is_among(option->also, name, length);
    return is_among(option->shorts, name, length);
}

/* An option of a command, its field, and its place among all. */
typedef struct found {
    const cli_option *option;
    void *field;
    size_t place;
} found;

static bool find_option(found *out, void *values, const cli_command *command, const char *name,
                        size_t length, bool is_long)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (is_called(field.option, name, length, is_long)) {
            *out = (found){field.option, (char *)values + field.offset, i};
            return true;
        }
    }
    return false;
}

bool cli_takes_many(const cli_command *command, const char *name)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (is_called(field.option, name, strlen(name), true))
            return field.option->several;
    }
    return false;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/* "-q -v" for "-qv", "-t 4" for "-t4": what other commands let one write together. False where the
 * letters are no short names. */
static bool spell_out(char *out, size_t size, const cli_command *command, const char *letters)
{
    size_t length = 0;
    char unused[1];
    found f;
    for (out[0] = 0; *letters && length < size; letters++) {
        if (!find_option(&f, unused, command, letters, 1, false))
            return false;
        length +=
            (size_t)snprintf(out + length, size - length, "%s-%c", length ? " " : "", *letters);
        if (f.option->type != CLI_FLAG && letters[1] && length < size) {
            snprintf(out + length, size - length, " %s", letters + 1);
            return true;
        }
    }
    return true;
}

static bool unknown_option(const cli_command *command, const char *argument, const char *name)
{
    const char *best = cli_nearest_option(command, name);
    char apart[128];
    if (cli_is_program_option(argument))
        cli_error("%s: %s stands before the command: quench %s CHIP %s ...", command->name,
                  argument, argument, command->name);
    else if (argument[1] != '-' && (!best || strcmp(best, name) != 0) &&
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
static bool find_repeated(found *out, void *values, const cli_command *command, const char *letters)
{
    return letters[0] && strspn(letters, (const char[]){letters[0], 0}) == strlen(letters) &&
           find_option(out, values, command, letters, 1, false) && out->option->type == CLI_FLAG;
}

/* Behind "quant." where the name begins so; else NULL. */
static const char *behind(const char *name, const char *prefix)
{
    const size_t length = prefix ? strlen(prefix) : 0;
    return length && strncmp(name, prefix, length) == 0 && name[length] == '.' ? name + length + 1
                                                                               : NULL;
}

/* The name of argv[i] without dashes and without its command, as in "--quant.bit-width". */
static const char *plain_name(const char *argument, const cli_command *command)
{
    const bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    const char *own = is_long ? behind(name, command->name) : NULL;
    if (is_long && !own)
        own = behind(name, command->section);
    return own ? own : name;
}

/* Words of an argument list, one after the other. */
typedef struct words {
    int argc;
    char **argv;
    int at;
    /* That the words before `at` belong to; NULL: none */
    const cli_option *last;
} words;

static bool take_values(const found *to, const cli_command *command, words *w, const char *text)
{
    const cli_option *option = to->option;
    char name[CLI_TYPED_SIZE];
    if (option->type == CLI_FLAG) {
        if (text)
            cli_error("%s: %s takes no value", command->name, cli_value_called(name, option));
        return !text && cli_value_set(to->option, to->field, NULL);
    }
    if (option->several && !cli_value_begin(to->option, to->field))
        return false;
    const bool is_apart = !text;
    if (is_apart && w->at + 1 < w->argc)
        text = w->argv[++w->at];
    if (!text || (is_apart && option->several && cli_value_is_option(text))) {
        cli_error("%s: %s needs a value (%s)", command->name, cli_value_called(name, option),
                  option->value);
        return false;
    }
    if (!cli_value_set(option, to->field, text))
        return false;
    while (option->several && w->at + 1 < w->argc &&
           cli_value_goes_on(option, w->argv[w->at + 1])) {
        if (!cli_value_set(option, to->field, w->argv[++w->at]))
            return false;
    }
    return true;
}

/* w is at an option of the vendor's, with all that may be its values. In an interpreter it was told
 * before. */
static void leave_out(const cli_common *common, words *w)
{
    const char *argument = w->argv[w->at];
    const int length = (int)strcspn(argument, "=");
    if (!common->program->run)
        cli_note("%.*s is for the vendor's compiler and left out", length, argument);
    while (!argument[length] && w->at + 1 < w->argc && !cli_value_is_option(w->argv[w->at + 1]))
        w->at++;
}

/* w is at an option; its values may be the next words. */
static bool parse_option(void *values, const cli_command *command, words *w)
{
    const char *argument = w->argv[w->at], *name = plain_name(argument, command);
    const bool is_long = argument[1] == '-';
    const size_t length = strcspn(name, "=");
    const char *text = name[length] ? name + length + 1 : NULL;
    found f;
    if (is_long && command->section && cli_is_vendors_option(name)) {
        leave_out(values, w);
        return true;
    }
    if (!find_option(&f, values, command, name, length, is_long)) {
        if (is_long || !find_repeated(&f, values, command, name))
            return unknown_option(command, argument, name);
        *(int *)f.field += (int)length - 1;
    }
    ((cli_common *)values)->given[f.place] = argument;
    w->last = f.option;
    cli_option named = *f.option;
    named.typed = argument;
    f.option = &named;
    return take_values(&f, command, w, text);
}

static bool set_standards(void *values, const cli_command *command)
{
    const cli_part *part;
    cli_field field;
    size_t count = 0;
    for (size_t i = 0; (part = cli_part_at(command, i)) != NULL; i++) {
        if (part->group->standard)
            memcpy((char *)values + part->offset, part->group->standard, part->group->size);
    }
    for (; cli_field_at(&field, command, count); count++) {
        if (field.option->standard && !field.option->library &&
            !cli_value_set(field.option, (char *)values + field.offset, field.option->standard))
            return false;
    }
    const char **given = calloc(count + 1, sizeof *given);
    ((cli_common *)values)->given = given;
    if (!given)
        cli_error("out of memory");
    return given != NULL;
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
    if (cli_refuse_stray(common, command))
        return false;
    if (given < command->least)
        cli_error("%s: missing argument; usage: quench %s [options] %s", command->name,
                  command->name, command->arguments);
    else
        cli_error("%s: unexpected argument '%s'%s", command->name,
                  common->arguments.at[command->most],
                  cli_data_hint(command, common->arguments.at[command->most]));
    return false;
}

bool cli_refuse_stray(const cli_common *common, const cli_command *command)
{
    char typed[CLI_TYPED_SIZE];
    if (!common->before)
        return false;
    cli_option named = *common->before;
    named.typed = cli_typed(typed, common, command, named.name);
    cli_value_refuse(&named, common->arguments.at[common->arguments.count - 1]);
    return true;
}

/* `w` is at an argument. */
static bool take_argument(cli_common *common, words *w)
{
    common->before = w->last && w->last->several && cli_value_is_number(w->last) ? w->last : NULL;
    w->last = NULL;
    return cli_list_push(&common->arguments, w->argv[w->at]);
}

bool cli_parse(void *values, const cli_command *command, int argc, char **argv)
{
    cli_common *common = values;
    words w = {argc, argv, 0, NULL};
    bool ended = false;
    if (!set_standards(values, command))
        return false;
    for (; w.at < argc; w.at++) {
        const char *word = argv[w.at];
        bool fits = true;
        if (!ended && strcmp(word, "--") == 0)
            ended = true;
        else if (ended || word[0] != '-' || word[1] == 0)
            fits = take_argument(common, &w);
        else
            fits = parse_option(values, command, &w);
        if (!fits)
            return false;
    }
    return check_arguments(common, command);
}

/* ---- Options of a file ----------------------------------------------------------------------- */

static bool set_flag(const found *to, const cli_list *texts, const char *where)
{
    static const char *const no[] = {"false", "False", "0"}, *const yes[] = {"true", "True", "1"};
    for (size_t i = 0; texts->count == 1 && i < sizeof no / sizeof *no; i++) {
        if (strcmp(texts->at[0], no[i]) == 0)
            return true;
        if (strcmp(texts->at[0], yes[i]) == 0)
            return cli_value_set(to->option, to->field, NULL);
    }
    cli_error("%s: is a switch: it is true or false", where);
    return false;
}

static bool set_texts(const found *to, const cli_list *texts, const char *where)
{
    if (!cli_value_is_list(to->option) && texts->count != 1) {
        cli_error("%s: takes one value, not %zu", where, texts->count);
        return false;
    }
    if (to->option->several && !cli_value_begin(to->option, to->field))
        return false;
    for (size_t i = 0; i < texts->count; i++) {
        if (!(texts->at[i] ? cli_value_set(to->option, to->field, texts->at[i])
                           : cli_value_begin(to->option, to->field))) {
            cli_error("%s: so it stands in the file", where);
            return false;
        }
    }
    return true;
}

bool cli_set(void *values, const cli_command *command, const char *name, const cli_list *texts,
             const char *where)
{
    const char **given = ((cli_common *)values)->given;
    found f;
    if (!find_option(&f, values, command, name, strlen(name), true)) {
        const char *best = cli_nearest_option(command, name);
        cli_error("%s: there is no such option%s%s%s", where, best ? "; did you mean " : "",
                  best ? best : "", best ? "?" : "");
        return false;
    }
    if (given[f.place])
        return true;
    if (f.option->type == CLI_FLAG) {
        const bool good = set_flag(&f, texts, where);
        given[f.place] = *(const int *)f.field > 0 ? "" : NULL;
        return good;
    }
    given[f.place] = "";
    return set_texts(&f, texts, where);
}

void cli_values_free(void *values, const cli_command *command)
{
    cli_common *common = values;
    cli_field field;
    cli_list_free(&common->arguments);
    free(common->given);
    cli_config_free(common->config);
    for (size_t i = 0; cli_field_at(&field, command, i); i++)
        cli_value_free(field.option, (char *)values + field.offset);
}
