/* What was meant by a word that no table knows. */
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

const char *cli_nearest_command(const char *word)
{
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
