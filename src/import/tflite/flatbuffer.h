/* Flatbuffers without generated code: tables whose fields are asked for by number. Nothing is
 * copied and nothing is read outside of the bytes: what points out of them counts as absent and is
 * remembered, so that a reader asks once, behind what it has read, whether all of it was there. */
#ifndef QN_FLATBUFFER_H
#define QN_FLATBUFFER_H

#include "base/base.h"

typedef struct qn_flat {
    const uint8_t *data;
    size_t size;
    /* What was wrong first, or NULL. */
    const char *fault;
} qn_flat;

/* `flat` NULL: the table is absent, and all of its fields are. */
typedef struct qn_flat_table {
    qn_flat *flat;
    size_t at;
    /* Where the places of its fields stand, and how many there are. */
    size_t places;
    unsigned n_places;
} qn_flat_table;

/* `count` items of one size that lie in the bytes. */
typedef struct qn_flat_list {
    qn_flat *flat;
    const uint8_t *data;
    size_t count, item_size;
} qn_flat_list;

qn_flat_table qn_flat_root(qn_flat *flat);
bool qn_flat_has(const qn_flat_table *table, unsigned field);

/* ---- Fields ---------------------------------------------------------------------------------- */

/* A number of 1, 2, 4 or 8 bytes with a sign, or `otherwise` where the field is absent. */
int64_t qn_flat_int(const qn_flat_table *table, unsigned field, size_t size, int64_t otherwise);
float qn_flat_real(const qn_flat_table *table, unsigned field, float otherwise);
/* Empty where the field is absent. */
qn_string qn_flat_text(const qn_flat_table *table, unsigned field);
qn_flat_table qn_flat_child(const qn_flat_table *table, unsigned field);
qn_flat_list qn_flat_items(const qn_flat_table *table, unsigned field, size_t item_size);

/* ---- Lists: i is below the count ------------------------------------------------------------- */

int64_t qn_flat_item_int(const qn_flat_list *list, size_t i);
float qn_flat_item_real(const qn_flat_list *list, size_t i);
/* An item of a list of tables, which have 4 bytes each. */
qn_flat_table qn_flat_item(const qn_flat_list *list, size_t i);

#endif
