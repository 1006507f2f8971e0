/* From texts to the fields of a command's values. */
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists ----------------------------------------------------------------------------------- */

bool cli_value_is_list(const cli_option *option)
{
    return option->type >= CLI_LIST;
}

bool cli_value_is_repeated(const cli_option *option)
{
    return cli_value_is_list(option) && (!option->several || option->type == CLI_SHAPES);
}

/* A pointer and a number, as they lie in a struct. */
typedef struct items {
    void *at;
    size_t count;
} items;

static items read_list(const void *field)
{
    items l;
    memcpy(&l.at, field, sizeof l.at);
    memcpy(&l.count, (const char *)field + sizeof l.at, sizeof l.count);
    return l;
}

static void write_list(void *field, items l)
{
    memcpy(field, &l.at, sizeof l.at);
    memcpy((char *)field + sizeof l.at, &l.count, sizeof l.count);
}

static bool push(void *field, const void *item, size_t size)
{
    items l = read_list(field);
    char *at = realloc(l.at, (l.count + 1) * size);
    if (!at) {
        cli_error("out of memory");
        return false;
    }
    memcpy(at + l.count * size, item, size);
    write_list(field, (items){at, l.count + 1});
    return true;
}

bool cli_list_push(cli_list *list, const char *text)
{
    return push(list, &text, sizeof text);
}

void cli_list_free(cli_list *list)
{
    free(read_list(list).at);
    list->at = NULL;
}

void cli_value_free(const cli_option *option, void *field)
{
    const items l = cli_value_is_list(option) ? read_list(field) : (items){NULL, 0};
    for (size_t i = 0; option->type == CLI_SHAPES && i < l.count; i++) {
        void *name;
        memcpy(&name, &((qn_input_shape *)l.at)[i].name, sizeof name);
        free(name);
    }
    free(l.at);
}

/* ---- Names in messages ---------------------------------------------------------------------- */

const char *cli_value_called(char out[CLI_TYPED_SIZE], const cli_option *option)
{
    if (option->typed && *option->typed)
        snprintf(out, CLI_TYPED_SIZE, "%.*s", (int)strcspn(option->typed, "="), option->typed);
    else
        snprintf(out, CLI_TYPED_SIZE, "--%s", option->name);
    return out;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static bool refuse_word(const cli_option *option, const char *text)
{
    char name[CLI_TYPED_SIZE];
    const char *best = cli_nearest_value(option, text);
    char all[512] = "";
    size_t length = 0;
    for (size_t i = 0; cli_word_at(option, i) && length < sizeof all; i++)
        length +=
            (size_t)snprintf(all + length, sizeof all - length, " %s", cli_word_at(option, i));
    cli_error("%s: '%s' is none of:%s%s%s%s", cli_value_called(name, option), text, all,
              best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
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

/* ---- Numbers --------------------------------------------------------------------------------- */

bool cli_value_is_whole(const cli_option *option)
{
    return option->type == CLI_INT || option->type == CLI_INT32 || option->type == CLI_LONGS ||
           (option->type == CLI_SHAPES && option->several);
}

bool cli_value_is_number(const cli_option *option)
{
    return cli_value_is_whole(option) || option->type == CLI_REAL || option->type == CLI_REALS;
}

bool cli_value_refuse(const cli_option *option, const char *text)
{
    char name[CLI_TYPED_SIZE];
    if (cli_value_is_whole(option))
        cli_error("%s: '%s' is not an integer from %.0f to %.0f", cli_value_called(name, option),
                  text, option->least, option->most);
    else if (option->least < option->most)
        cli_error("%s: '%s' is not a number from %.15g to %.15g", cli_value_called(name, option),
                  text, option->least, option->most);
    else
        cli_error("%s: '%s' is not a number", cli_value_called(name, option), text);
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

/* Of options whose ranges fit an int. */
static bool set_int32(const cli_option *option, int *field, const char *text)
{
    int64_t number = 0;
    if (cli_has_words(option) && !is_word(option, text))
        return refuse_word(option, text);
    if (!read_int(&number, option, text) || number > INT32_MAX || number < INT32_MIN)
        return cli_value_refuse(option, text);
    *field = (int)number;
    return true;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static bool refuse_shape(const cli_option *option, const char *text)
{
    char name[CLI_TYPED_SIZE];
    cli_error("%s: '%s' is not NAME:DIM,DIM,... with dimensions from 0 on",
              cli_value_called(name, option), text);
    return false;
}

/* "NAME:DIM,DIM,...". The last ':' ends the name, which may hold others. */
static bool push_shape(const cli_option *option, void *field, const char *text)
{
    const char *colon = strrchr(text, ':');
    qn_input_shape shape = {.name = NULL};
    if (!colon || colon == text)
        return refuse_shape(option, text);
    for (const char *at = colon + 1; *at;) {
        char *end;
        errno = 0;
        const long long dim = strtoll(at, &end, 10);
        if (end == at || errno || dim < 0 || shape.rank == QN_MAX_RANK || (*end && *end != ',') ||
            (*end == ',' && !end[1]))
            return refuse_shape(option, text);
        shape.dims[shape.rank++] = dim;
        at = *end ? end + 1 : end;
    }
    char *name = strndup(text, (size_t)(colon - text));
    shape.name = name;
    if (name && push(field, &shape, sizeof shape))
        return true;
    if (!name)
        cli_error("out of memory");
    free(name);
    return false;
}

/* A further dimension of the last shape. */
static bool push_dim(const cli_option *option, void *field, const char *text)
{
    char name[CLI_TYPED_SIZE];
    const items l = read_list(field);
    qn_input_shape *shape = (qn_input_shape *)l.at + l.count - 1;
    int64_t dim;
    if (!read_int(&dim, option, text))
        return cli_value_refuse(option, text);
    if (shape->rank == QN_MAX_RANK) {
        cli_error("%s: a shape has at most %d dimensions", cli_value_called(name, option),
                  QN_MAX_RANK);
        return false;
    }
    shape->dims[shape->rank++] = dim;
    return true;
}

/* ---- Setting --------------------------------------------------------------------------------- */

static bool set_text(const cli_option *option, void *field, const char *text)
{
    if (cli_has_words(option) && !is_word(option, text))
        return refuse_word(option, text);
    if (option->type == CLI_LIST)
        return push(field, &text, sizeof text);
    *(const char **)field = text;
    return true;
}

static bool push_number(const cli_option *option, void *field, const char *text)
{
    int64_t whole;
    double real;
    if (option->type == CLI_LONGS && read_int(&whole, option, text))
        return push(field, &whole, sizeof whole);
    if (option->type == CLI_REALS && read_real(&real, option, text))
        return push(field, &real, sizeof real);
    return cli_value_refuse(option, text);
}

bool cli_value_set(const cli_option *option, void *field, const char *text)
{
    char name[CLI_TYPED_SIZE];
    if (option->type == CLI_FLAG) {
        ++*(int *)field;
        return true;
    }
    /* No value makes sense when it is empty: mostly a variable was, in a script. */
    if (!*text && (option->type == CLI_TEXT || cli_value_is_list(option))) {
        cli_error("%s: the value is empty (%s)", cli_value_called(name, option), option->value);
        return false;
    }
    switch (option->type) {
    case CLI_INT: return read_int(field, option, text) || cli_value_refuse(option, text);
    case CLI_INT32: return set_int32(option, field, text);
    case CLI_REAL: return read_real(field, option, text) || cli_value_refuse(option, text);
    case CLI_REALS:
    case CLI_LONGS: return push_number(option, field, text);
    case CLI_SHAPES:
        return option->several ? push_dim(option, field, text) : push_shape(option, field, text);
    default: return set_text(option, field, text);
    }
}

bool cli_value_begin(const cli_option *option, void *field)
{
    const qn_input_shape none = {.name = NULL};
    if (option->type == CLI_SHAPES)
        return push(field, &none, sizeof none);
    write_list(field, (items){read_list(field).at, 0});
    return true;
}

/* ---- Words behind a name --------------------------------------------------------------------- */

bool cli_value_is_option(const char *text)
{
    char *end;
    if (text[0] != '-' || text[1] == 0)
        return false;
    strtod(text, &end);
    return end == text || *end;
}

bool cli_value_goes_on(const cli_option *option, const char *text)
{
    int64_t whole;
    double real;
    if (cli_value_is_option(text))
        return false;
    if (cli_has_words(option))
        return is_word(option, text) || cli_nearest_value(option, text);
    if (cli_value_is_whole(option))
        return read_int(&whole, option, text) || strchr("+-0123456789", text[0]);
    if (cli_value_is_number(option))
        return read_real(&real, option, text) || strchr("+-.0123456789", text[0]);
    return true;
}
