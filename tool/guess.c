/* What was meant by a word that no table knows. */
#include <string.h>

#include "cli.h"

typedef struct guess {
    const char *word, *best;
    size_t distance;
} guess;

static void consider(guess *g, const char *candidate)
{
    const size_t d = qn_word_distance(g->word, candidate);
    if (d < g->distance) {
        g->best = candidate;
        g->distance = d;
    }
}

/* What other tools call a command. */
static const struct {
    const char *word, *command;
} other_words[] = {
    {"quantize", "quant"},  {"quantise", "quant"},   {"run", "infer"},    {"predict", "infer"},
    {"benchmark", "bench"}, {"evaluate", "eval"},    {"info", "inspect"}, {"show", "inspect"},
    {"export", "convert"},  {"optimize", "convert"}, {"check", "verify"}, {"diff", "compare"},
};

const char *cli_nearest_command(const char *word)
{
    for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++) {
        if (strcmp(other_words[i].word, word) == 0)
            return other_words[i].command;
    }
    guess g = {word, NULL, SIZE_MAX};
    for (size_t i = 0; cli_cmds[i]; i++)
        consider(&g, cli_cmds[i]->name);
    return g.best;
}

const char *cli_nearest_option(const cli_command *command, const char *word)
{
    guess g = {word, NULL, SIZE_MAX};
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++)
        consider(&g, field.option->name);
    return g.best;
}

const char *cli_nearest_value(const cli_option *option, const char *word)
{
    guess g = {word, NULL, SIZE_MAX};
    for (size_t i = 0; cli_word_at(option, i); i++)
        consider(&g, cli_word_at(option, i));
    return g.best;
}

const char *cli_nearest_word(cli_word_fn *word_at, const char *word)
{
    guess g = {word, NULL, SIZE_MAX};
    for (size_t i = 0; word_at(i); i++)
        consider(&g, word_at(i));
    return g.best;
}

/* A file of numbers or pictures, by its name. */
static bool is_data(const char *word)
{
    static const char *const ends[] = {".npy", ".npz", ".png", ".jpg", ".jpeg", ".bin"};
    const size_t length = strlen(word);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t tail = strlen(ends[i]);
        if (length > tail && strcmp(word + length - tail, ends[i]) == 0)
            return true;
    }
    return false;
}

static bool takes_data(const cli_command *command)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        if (strcmp(field.option->name, "data") == 0)
            return true;
    }
    return false;
}

const char *cli_data_hint(const cli_command *command, const char *word)
{
    return is_data(word) && takes_data(command)
               ? "; files of samples stand behind -d, of one input behind --input"
               : "";
}
