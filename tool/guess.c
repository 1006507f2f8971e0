/* What was meant by a word that no table knows. */
#include <string.h>

#include "cli.h"

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

const char *cli_nearest_option(const cli_command *command, const char *word)
{
    guess g = {word, NULL, 0};
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++)
        consider(&g, field.option->name);
    return g.best;
}

const char *cli_nearest_word(cli_word_fn *word_at, const char *word)
{
    guess g = {word, NULL, 0};
    for (size_t i = 0; word_at(i); i++)
        consider(&g, word_at(i));
    return g.best;
}
