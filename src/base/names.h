/* A map from text to pointer: names of values, dimensions, options. */
#ifndef QN_NAMES_H
#define QN_NAMES_H

#include "base/base.h"

typedef struct qn_names_entry qn_names_entry;
typedef struct qn_names {
    qn_context *ctx;
    /* Open addressing, size a power of two */
    qn_names_entry *entries;
    size_t size, count;
} qn_names;

void qn_names_init(qn_names *names, qn_context *ctx);
void qn_names_free(qn_names *names);
/* The item stored under `name`, or NULL. */
void *qn_names_get(const qn_names *names, const char *name);
/* Stores `item` (not NULL) under `name`, which must stay alive; replaces an earlier item. */
QN_MUST_CHECK qn_status qn_names_set(qn_names *names, const char *name, void *item);
void qn_names_remove(qn_names *names, const char *name);

#endif
