/* What was meant by a word that no table knows. */
#include <string.h>

#include "cli.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

enum { LONGEST = 64 };

/* Letters to insert, delete, replace or swap with their neighbour. */
static size_t changes(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] =
                smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* "trt" for "tensorrt": the first letter, then others in their order. */
static bool is_short_for(const char *word, size_t length, const char *name)
{
    if (length < 3 || strlen(name) > 3 * length || *word != *name)
        return false;
    for (; *name && *word; name++)
        word += *word == *name;
    return !*word;
}

/* Less is nearer, what the word abbreviates is nearest; SIZE_MAX: more than a third is other letters. */
static size_t distance(const char *word, const char *name)
{
    const size_t n = strlen(word), m = strlen(name);
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    const size_t d = changes(word, n, name, m);
    if (is_short_for(word, n, name))
        return d;
    return 3 * d <= (n > m ? n : m) ? LONGEST + d : SIZE_MAX;
}

typedef struct guess {
    const char *word, *best;
    size_t distance;
} guess;

static void consider(guess *g, const char *candidate)
{
    const size_t d = distance(g->word, candidate);
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

const char *cli_nearest_word(cli_word_fn *word_at, const char *word)
{
    guess g = {word, NULL, SIZE_MAX};
    for (size_t i = 0; word_at(i); i++)
        consider(&g, word_at(i));
    return g.best;
}
