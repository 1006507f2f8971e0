/* A hash map from text to pointer. */
#include "base/names.h"

#include <string.h>

struct qn_names_entry {
    /* NULL: never used */
    const char *name;
    /* NULL: removed */
    void *item;
    uint64_t hash;
};

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash ^ (hash >> 29);
}

void qn_names_init(qn_names *names, qn_context *ctx)
{
    *names = (qn_names){.ctx = ctx};
}

void qn_names_free(qn_names *names)
{
    if (names->entries)
        qn_free(names->ctx, names->entries);
    names->entries = NULL;
    names->size = names->count = 0;
}

/* The entry of `name`, or the unused one where it would go. The table is never full. */
static qn_names_entry *find(const qn_names *names, const char *name, uint64_t hash)
{
    size_t at = (size_t)hash & (names->size - 1);
    for (;; at = (at + 1) & (names->size - 1)) {
        qn_names_entry *entry = &names->entries[at];
        if (!entry->name || (entry->hash == hash && strcmp(entry->name, name) == 0))
            return entry;
    }
}

void *qn_names_get(const qn_names *names, const char *name)
{
    return names->size ? find(names, name, hash_text(name))->item : NULL;
}

static qn_status resize(qn_names *names)
{
    const size_t size = names->size ? names->size * 2 : 64;
    qn_names larger = {.ctx = names->ctx, .size = size};
    larger.entries = qn_alloc_zero(names->ctx, size, sizeof *larger.entries);
    QN_TRY_ALLOC(names->ctx, larger.entries);
    for (size_t i = 0; i < names->size; i++) {
        const qn_names_entry *entry = &names->entries[i];
        if (entry->item) {
            *find(&larger, entry->name, entry->hash) = *entry;
            larger.count++;
        }
    }
    qn_names_free(names);
    *names = larger;
    return QN_OK;
}

qn_status qn_names_set(qn_names *names, const char *name, void *item)
{
    if (names->count * 4 >= names->size * 3)
        QN_TRY(resize(names));
    const uint64_t hash = hash_text(name);
    qn_names_entry *entry = find(names, name, hash);
    names->count += entry->name == NULL;
    *entry = (qn_names_entry){name, item, hash};
    return QN_OK;
}

void qn_names_remove(qn_names *names, const char *name)
{
    if (names->size)
        find(names, name, hash_text(name))->item = NULL;
}
