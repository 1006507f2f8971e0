/* Allocation through the context, growing arrays, arenas. */
#include "base/memory.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { ALIGNMENT = 64, CHUNK_SIZE = 64 * 1024 };

static void *default_allocate(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void *default_resize(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    return realloc(block, new_size);
}

static void default_release(void *user, void *block)
{
    (void)user;
    free(block);
}

const qn_allocator *qn_allocator_default(void)
{
    static const qn_allocator standard = {NULL, default_allocate, default_resize, default_release};
    return &standard;
}

bool qn_mul_size(size_t *out, size_t a, size_t b)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *out = a * b;
    return true;
}

bool qn_add_size(size_t *out, size_t a, size_t b)
{
    if (a > SIZE_MAX - b)
        return false;
    *out = a + b;
    return true;
}

bool qn_mul_int64(int64_t *out, int64_t a, int64_t b)
{
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *out = a * b;
    return true;
}

bool qn_add_int64(int64_t *out, int64_t a, int64_t b)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *out = a + b;
    return true;
}

void *qn_alloc(qn_context *ctx, size_t size)
{
    return ctx->allocator.allocate(ctx->allocator.user, size ? size : 1);
}

void *qn_alloc_zero(qn_context *ctx, size_t count, size_t size)
{
    size_t bytes;
    if (!qn_mul_size(&bytes, count, size))
        return NULL;
    void *block = qn_alloc(ctx, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void *qn_realloc(qn_context *ctx, void *block, size_t old_size, size_t new_size)
{
    return ctx->allocator.resize(ctx->allocator.user, block, old_size, new_size ? new_size : 1);
}

void qn_free(qn_context *ctx, void *block)
{
    ctx->allocator.release(ctx->allocator.user, block);
}

/* The block's own start is kept in the pointer-sized slot before the aligned address. */
void *qn_alloc_aligned(const qn_allocator *allocator, size_t size)
{
    size_t total;
    if (!qn_add_size(&total, size, ALIGNMENT + sizeof(void *)))
        return NULL;
    char *block = allocator->allocate(allocator->user, total);
    if (!block)
        return NULL;
    const uintptr_t start = (uintptr_t)block + sizeof(void *);
    char *aligned = block + sizeof(void *) + (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;
    memcpy(aligned - sizeof(void *), &block, sizeof(void *));
    return aligned;
}

void qn_free_aligned(const qn_allocator *allocator, void *block)
{
    if (!block)
        return;
    void *start;
    memcpy(&start, (char *)block - sizeof(void *), sizeof(void *));
    allocator->release(allocator->user, start);
}

void *qn_grow(qn_context *ctx, void *items, size_t *capacity, size_t count, size_t item_size)
{
    if (count <= *capacity && items)
        return items;
    const size_t doubled = *capacity > SIZE_MAX / 2 ? count : *capacity * 2;
    const size_t wanted = QN_MAX(QN_MAX(count, doubled), 8);
    size_t bytes;
    if (!qn_mul_size(&bytes, wanted, item_size))
        return NULL;
    void *grown = qn_realloc(ctx, items, *capacity * item_size, bytes);
    if (grown)
        *capacity = wanted;
    return grown;
}

/* ---- Arena ----------------------------------------------------------------------------------- */

struct qn_arena_chunk {
    qn_arena_chunk *next;
    /* The number of bytes behind `data` */
    size_t size;
    /* Aligned, inside the same block */
    char *data;
};

void qn_arena_init(qn_arena *arena, const qn_allocator *allocator)
{
    arena->allocator = *allocator;
    arena->chunks = NULL;
    arena->used = 0;
}

void qn_arena_free(qn_arena *arena)
{
    qn_arena_chunk *chunk = arena->chunks;
    while (chunk) {
        qn_arena_chunk *next = chunk->next;
        arena->allocator.release(arena->allocator.user, chunk);
        chunk = next;
    }
    arena->chunks = NULL;
    arena->used = 0;
}

static qn_arena_chunk *chunk_create(qn_arena *arena, size_t size)
{
    size_t total;
    if (!qn_add_size(&total, size, sizeof(qn_arena_chunk) + ALIGNMENT))
        return NULL;
    qn_arena_chunk *chunk = arena->allocator.allocate(arena->allocator.user, total);
    if (!chunk)
        return NULL;
    char *data = (char *)(chunk + 1);
    chunk->data = data + (ALIGNMENT - (uintptr_t)data % ALIGNMENT) % ALIGNMENT;
    chunk->size = size;
    chunk->next = NULL;
    return chunk;
}

void qn_arena_reset(qn_arena *arena)
{
    arena->used = 0;
    if (!arena->chunks || !arena->chunks->next)
        return;
    size_t total = 0;
    for (const qn_arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next)
        total += chunk->size + ALIGNMENT;
    qn_arena_free(arena);
    /* Short memory is no fault here: the next use asks again. */
    arena->chunks = chunk_create(arena, total);
}

void *qn_arena_alloc(qn_arena *arena, size_t size)
{
    const size_t align = size >= ALIGNMENT ? ALIGNMENT : 16;
    const size_t start = (arena->used + align - 1) / align * align;
    qn_arena_chunk *top = arena->chunks;
    if (top && start <= top->size && size <= top->size - start) {
        arena->used = start + size;
        return memset(top->data + start, 0, size);
    }
    /* A large block gets a chunk of its own behind the newest, whose free rest stays in use. */
    const bool own = size > CHUNK_SIZE / 4;
    qn_arena_chunk *chunk = chunk_create(arena, own ? size : CHUNK_SIZE);
    if (!chunk)
        return NULL;
    if (own && top) {
        chunk->next = top->next;
        top->next = chunk;
    } else {
        chunk->next = top;
        arena->chunks = chunk;
        arena->used = size;
    }
    return memset(chunk->data, 0, size);
}

void *qn_arena_array(qn_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return qn_mul_size(&bytes, count, size) ? qn_arena_alloc(arena, bytes) : NULL;
}

void *qn_arena_copy(qn_arena *arena, const void *data, size_t size)
{
    void *copy = qn_arena_alloc(arena, size);
    if (copy && size)
        memcpy(copy, data, size);
    return copy;
}

void *qn_arena_widen(qn_arena *arena, const void *items, size_t count, size_t capacity, size_t size)
{
    void *wide = qn_arena_array(arena, capacity, size);
    if (wide && count)
        memcpy(wide, items, count * size);
    return wide;
}

char *qn_arena_text(qn_arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? qn_arena_alloc(arena, length + 1) : NULL;
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *qn_arena_format(qn_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length >= 0 ? qn_arena_alloc(arena, (size_t)length + 1) : NULL;
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}
