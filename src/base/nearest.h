/* What was meant by a word that no table knows, and what the table has. */
#ifndef QN_NEAREST_H
#define QN_NEAREST_H

#include "base/base.h"

/* The best guess among the words (the last is NULL), or NULL; by qn_word_distance. */
const char *qn_word_nearest(const char *const *words, const char *word);
/* Puts one more behind "a, b" in list[size], a text that may be empty; what finds no room is cut
 * off. */
void qn_word_list(char *list, size_t size, const char *format, ...) QN_PRINTF(3, 4);

#endif
