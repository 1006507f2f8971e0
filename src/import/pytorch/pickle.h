/* Pickles, which are programs that make objects: only what makes numbers, texts, lists,
 * dictionaries, tensors and the modules of TorchScript is interpreted. A pickle that asks for
 * anything else is refused with the name of it; nothing is ever called. */
#ifndef QN_PICKLE_H
#define QN_PICKLE_H

#include "import/pytorch/value.h"

typedef struct qn_pickle_text {
    qn_string bytes;
    /* The file or the entry, for messages */
    const char *name;
    /* What keys of storages begin with */
    const char *folder;
    /* Keys -> qn_torch_storage: those that are there are used, others are added. */
    qn_names *storages;
} qn_pickle_text;

/* Reads one pickle; *used is its length, as others may follow. Objects lie in the arena, texts in
 * the arena too. */
QN_MUST_CHECK qn_status qn_pickle_read(qn_torch_value *out, size_t *used, qn_context *ctx,
                                       qn_arena *arena, const qn_pickle_text *text);

#endif
