/* The word that somebody meant, and lists of words for messages. */
#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 255 };

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
                QN_MIN(QN_MIN(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = QN_MIN(row[j], before[j - 2] + 1);
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

size_t qn_word_distance(const char *word, const char *name)
{
    const size_t n = strlen(word), m = strlen(name);
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    const size_t d = changes(word, n, name, m);
    if (is_short_for(word, n, name))
        return d;
    return 3 * d <= QN_MAX(n, m) ? LONGEST + d : SIZE_MAX;
}

const char *qn_word_nearest(const char *const *words, const char *word)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; words[i]; i++) {
        const size_t d = qn_word_distance(word, words[i]);
        if (d < least) {
            best = words[i];
            least = d;
        }
    }
    return best;
}

void qn_word_list(char *list, size_t size, const char *format, ...)
{
    size_t used = strlen(list);
    if (used)
        snprintf(list + used, size - used, ", ");
    used = strlen(list);
    va_list args;
    va_start(args, format);
    vsnprintf(list + used, size - used, format, args);
    va_end(args);
}
