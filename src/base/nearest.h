/* What was meant by a word that no table knows. */
#ifndef QN_NEAREST_H
#define QN_NEAREST_H

#include "base/base.h"

/* Letters to insert, delete or replace to get from one text to the other; long ones count as far apart. */
size_t qn_word_distance(const char *a, const char *b);
/* The best guess among the words (the last is NULL), or NULL. */
const char *qn_word_nearest(const char *const *words, const char *word);

#endif
