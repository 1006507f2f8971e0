/* From arguments to values, as the tables say. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

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
    /* How messages call it, with its dashes */
    char typed[CLI_TYPED_SIZE];
} found;

static bool find_option(found *out, void *values, const cli_command *command, const char *name,
                        size_t length, bool is_long)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (is_called(field.option, name, length, is_long)) {
            *out = (found){field.option, (char *)values + field.offset, i, ""};
            snprintf(out->typed, sizeof out->typed, "%s%.*s", is_long ? "--" : "-", (int)length,
                     name);
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
            return field.option->type == CLI_WORDS || field.option->type == CLI_ROWS ||
                   field.option->several;
    }
    return false;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool is_list(const cli_option *option)
{
    return option->type == CLI_LIST || option->type == CLI_WORDS || option->type == CLI_ROWS;
}

static bool is_many(const cli_option *option)
{
    return option->type == CLI_WORDS || option->type == CLI_ROWS || option->several;
}

static bool is_whole(const cli_option *option)
{
    return option->type == CLI_INT || option->type == CLI_INT32 || option->number == CLI_WHOLE;
}

/* The library's structs have lists too: a pointer and a number one behind the other. */
static cli_list read_list(const void *field)
{
    cli_list list;
    memcpy(&list.at, field, sizeof list.at);
    memcpy(&list.count, (const char *)field + sizeof list.at, sizeof list.count);
    return list;
}

static bool push_field(void *field, const char *text)
{
    cli_list list = read_list(field);
    const bool pushed = cli_list_push(&list, text);
    memcpy(field, &list.at, sizeof list.at);
    memcpy((char *)field + sizeof list.at, &list.count, sizeof list.count);
    return pushed;
}

void cli_list_free(cli_list *list)
{
    void *block;
    memcpy(&block, &list->at, sizeof block);
    free(block);
    list->at = NULL;
}

bool cli_list_push(cli_list *list, const char *text)
{
    const char **at = calloc(list->count + 2, sizeof *at);
    if (!at) {
        cli_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < list->count; i++)
        at[i] = list->at[i];
    at[list->count++] = text;
    cli_list_free(list);
    list->at = at;
    return true;
}

static bool bad_number(const cli_option *option, const char *typed, const char *text)
{
    if (is_whole(option))
        cli_error("%s: '%s' is not an integer from %.0f to %.0f", typed, text, option->least,
                  option->most);
    else if (option->least < option->most)
        cli_error("%s: '%s' is not a number from %.15g to %.15g", typed, text, option->least,
                  option->most);
    else
        cli_error("%s: '%s' is not a number", typed, text);
    return false;
}

static bool read_int(int64_t *out, const cli_option *option, const char *text)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && !errno && (double)*out >= option->least &&
           (double)*out <= option->most;
}

static bool read_real(double *out, const cli_option *option, const char *text)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out) &&
           (option->least >= option->most || (*out >= option->least && *out <= option->most));
}

static bool bad_word(const cli_option *option, const char *typed, const char *text)
{
    const char *best = cli_nearest_value(option, text);
    char all[512] = "";
    size_t length = 0;
    for (size_t i = 0; cli_word_at(option, i) && length < sizeof all; i++)
        length +=
            (size_t)snprintf(all + length, sizeof all - length, " %s", cli_word_at(option, i));
    cli_error("%s: '%s' is none of:%s%s%s%s", typed, text, all, best ? "; did you mean " : "",
              best ? best : "", best ? "?" : "");
    return false;
}

static bool is_word(const cli_option *option, const char *text)
{
    if (option->open || (option->known && option->known(text)))
        return true;
    for (size_t i = 0; cli_word_at(option, i); i++) {
        if (strcmp(cli_word_at(option, i), text) == 0)
            return true;
    }
    return false;
}

/* No text that an option takes makes sense when it is empty: mostly a variable was, in a script. */
static bool check_text(const found *to, const char *text)
{
    const cli_option *option = to->option;
    int64_t whole;
    double real;
    if (!*text) {
        cli_error("%s: the value is empty (%s)", to->typed, option->value);
        return false;
    }
    if ((option->number == CLI_WHOLE && !read_int(&whole, option, text)) ||
        (option->number == CLI_DECIMAL && !read_real(&real, option, text)))
        return bad_number(option, to->typed, text);
    return !cli_has_words(option) || is_word(option, text) || bad_word(option, to->typed, text);
}

/* Of those whose ranges fit an int. */
static bool set_int32(const found *to, const char *text)
{
    int64_t number = 0;
    if (!read_int(&number, to->option, text) || number > INT32_MAX || number < INT32_MIN)
        return bad_number(to->option, to->typed, text);
    *(int *)to->field = (int)number;
    return true;
}

static bool set_value(const found *to, const char *text)
{
    switch (to->option->type) {
    case CLI_FLAG: ++*(int *)to->field; return true;
    case CLI_INT:
        return read_int(to->field, to->option, text) || bad_number(to->option, to->typed, text);
    case CLI_INT32: return set_int32(to, text);
    case CLI_REAL:
        return read_real(to->field, to->option, text) || bad_number(to->option, to->typed, text);
    case CLI_TEXT: *(const char **)to->field = text; return check_text(to, text);
    default: return check_text(to, text) && push_field(to->field, text);
    }
}

/* ---- Several values behind one name ---------------------------------------------------------- */

/* A word that can be no value: an option, unless it is a negative number. */
static bool is_option_like(const char *text)
{
    char *end;
    if (text[0] != '-' || text[1] == 0)
        return false;
    strtod(text, &end);
    return end == text || *end;
}

/* Whether a further word belongs to the values: what is nearly one does, so that a slip is told of
 * and not taken for an argument. */
static bool is_further(const cli_option *option, const char *text)
{
    int64_t whole;
    double real;
    if (is_option_like(text))
        return false;
    if (cli_has_words(option))
        return is_word(option, text) || cli_nearest_value(option, text);
    switch (option->number) {
    case CLI_WHOLE: return read_int(&whole, option, text) || strchr("+-0123456789", text[0]);
    case CLI_DECIMAL: return read_real(&real, option, text) || strchr("+-.0123456789", text[0]);
    default: return true;
    }
}

/* A new time that the option is given. */
static bool begin_values(const found *to)
{
    const size_t none = 0, count = read_list(to->field).count;
    if (to->option->type == CLI_ROWS)
        return !count || push_field(to->field, NULL);
    memcpy((char *)to->field + sizeof(const char *const *), &none, sizeof none);
    return true;
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
    if (option->type == CLI_FLAG) {
        if (text)
            cli_error("%s: %s takes no value", command->name, to->typed);
        return !text && set_value(to, NULL);
    }
    if (is_many(option) && !begin_values(to))
        return false;
    const bool is_apart = !text;
    if (is_apart && w->at + 1 < w->argc)
        text = w->argv[++w->at];
    if (!text || (is_apart && is_many(option) && is_option_like(text))) {
        cli_error("%s: %s needs a value (%s)", command->name, to->typed, option->value);
        return false;
    }
    if (!set_value(to, text))
        return false;
    while (is_many(option) && w->at + 1 < w->argc && is_further(option, w->argv[w->at + 1])) {
        if (!set_value(to, w->argv[++w->at]))
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
    while (!argument[length] && w->at + 1 < w->argc && !is_option_like(w->argv[w->at + 1]))
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
        const found to = {field.option, (char *)values + field.offset, count, ""};
        if (field.option->standard && !field.option->library &&
            !set_value(&to, field.option->standard))
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
    if (common->before)
        bad_number(common->before, cli_typed(typed, common, command, common->before->name),
                   common->arguments.at[common->arguments.count - 1]);
    return common->before != NULL;
}

/* `w` is at an argument. */
static bool take_argument(cli_common *common, words *w)
{
    common->before = w->last && is_many(w->last) && w->last->number ? w->last : NULL;
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
            return set_value(to, NULL);
    }
    cli_error("%s: is a switch: it is true or false", where);
    return false;
}

static bool set_texts(const found *to, const cli_list *texts, const char *where)
{
    if (!is_list(to->option) && texts->count != 1) {
        cli_error("%s: takes one value, not %zu", where, texts->count);
        return false;
    }
    if (is_many(to->option) && !begin_values(to))
        return false;
    for (size_t i = 0; i < texts->count; i++) {
        if (!(texts->at[i] ? set_value(to, texts->at[i]) : begin_values(to))) {
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
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        cli_list list = {NULL, 0};
        if (is_list(field.option))
            list = read_list((const char *)values + field.offset);
        cli_list_free(&list);
    }
}
