/* Bytes in memory that a writer of protobuf can write to. */
#ifndef QN_FUZZ_BUFFER_H
#define QN_FUZZ_BUFFER_H

#include <stdlib.h>
#include <string.h>

#include "quench.h"

typedef struct buffer {
    uint8_t *data;
    size_t size;
} buffer;

static inline qn_status buffer_write(void *user, const void *data, size_t size)
{
    buffer *b = user;
    uint8_t *grown = realloc(b->data, b->size + size + 1);
    if (!grown)
        abort();
    memcpy(grown + b->size, data, size);
    b->data = grown;
    b->size += size;
    return QN_OK;
}

#endif
