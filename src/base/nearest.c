#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 255 };

size_t qn_word_distance(const char *a, const char *b)
{
    size_t row[LONGEST + 1];
    const size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = QN_MIN(QN_MIN(row[j], row[j - 1]) + 1, change);
        }
    }
    return row[m];
}

const char *qn_word_nearest(const char *const *words, const char *word)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; words[i]; i++) {
        const size_t d = qn_word_distance(word, words[i]);
        if (d < least && d <= (strlen(words[i]) > 5 ? 3 : 2)) {
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
