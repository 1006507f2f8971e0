/* What every room stands on: failing with a message, the context, memory. */
#ifndef QN_BASE_H
#define QN_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quench.h"

/* ---- Failing ----------------------------------------------------------------------------------
 * The message is written once, where the fault is seen; callers pass the status up untouched. */

#define QN_TRY(expr)                                                                               \
    do {                                                                                           \
        const qn_status qn_try_status_ = (expr);                                                   \
        if (qn_try_status_ != QN_OK)                                                               \
            return qn_try_status_;                                                                 \
    } while (0)

/* The same for functions with one clean-up place: needs `qn_status status` and a label `done`. */
#define QN_TRY_OR_DONE(expr)                                                                       \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status != QN_OK)                                                                       \
            goto done;                                                                             \
    } while (0)

/* For the result of an allocation. */
#define QN_TRY_ALLOC(ctx, pointer)                                                                 \
    do {                                                                                           \
        if ((pointer) == NULL)                                                                     \
            return qn_fail_nomem(ctx);                                                             \
    } while (0)

#define QN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define QN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define QN_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Sets the context's message and returns `status`. */
QN_MUST_CHECK qn_status qn_fail(qn_context *ctx, qn_status status, const char *format, ...)
    QN_PRINTF(3, 4);
/* Out of memory: for small blocks of book-keeping, and with a name for what models make large. */
QN_MUST_CHECK qn_status qn_fail_nomem(qn_context *ctx);
QN_MUST_CHECK qn_status qn_fail_bytes(qn_context *ctx, size_t bytes, const char *format, ...)
    QN_PRINTF(3, 4);
/* "the model has no input 'z'; it has 'x', 'y'": the model has `count`, of which `names` are the
 * first QN_INPUTS_SHOWN or all. */
enum { QN_INPUTS_SHOWN = 8 };
QN_MUST_CHECK qn_status qn_fail_no_input(qn_context *ctx, qn_string name, const char *const *names,
                                         size_t count);
/* Puts "prefix: " before the message of a failure that is being passed up: for the one place that
 * knows the file or the node when the place that saw the fault does not. Returns `status`. */
QN_MUST_CHECK qn_status qn_fail_within(qn_context *ctx, qn_status status, const char *format, ...)
    QN_PRINTF(3, 4);

/* ---- Arena: many small objects that die together --------------------------------------------- */

typedef struct qn_arena_chunk qn_arena_chunk;
typedef struct qn_arena {
    qn_allocator allocator;
    qn_arena_chunk *chunks;
    /* The bytes of the newest chunk that are used. */
    size_t used;
} qn_arena;

void qn_arena_init(qn_arena *arena, const qn_allocator *allocator);
void qn_arena_free(qn_arena *arena);
/* Forgets the objects but keeps memory for as many bytes, in one piece: an arena that is filled and
 * emptied again and again soon allocates nothing. */
void qn_arena_reset(qn_arena *arena);
/* Zeroed and aligned to 64 bytes when size >= 64, else to 16. */
void *qn_arena_alloc(qn_arena *arena, size_t size);
void *qn_arena_array(qn_arena *arena, size_t count, size_t size);
void *qn_arena_copy(qn_arena *arena, const void *data, size_t size);
/* A copy of `count` items with room for `capacity`. */
void *qn_arena_widen(qn_arena *arena, const void *items, size_t count, size_t capacity,
                     size_t size);
/* Zero-terminated copies. */
char *qn_arena_text(qn_arena *arena, const char *text, size_t length);
char *qn_arena_format(qn_arena *arena, const char *format, ...) QN_PRINTF(2, 3);

/* ---- Context --------------------------------------------------------------------------------- */

#define QN_ERROR_SIZE 1024

struct qn_context {
    qn_allocator allocator;
    /* Resolved: at least 1 */
    int threads;
    qn_log_level log_level;
    qn_log_fn *log;
    void *log_user;
    qn_progress_fn *progress;
    void *progress_user;
    atomic_int cancelled;
    /* The context whose cancelling counts too; NULL: none */
    const qn_context *parent;
    /* What was loaded for this context only, and what lets go of it; NULL: nothing. */
    void *plugins;
    void (*close_plugins)(qn_context *ctx);
    /* The processes that it shares its jobs with, and what leaves them; NULL: it is alone. */
    struct qn_ranks *ranks;
    void (*close_ranks)(qn_context *ctx);
    /* What options that were set by name point to. */
    qn_arena options;
    char error[QN_ERROR_SIZE];
};

void qn_log(qn_context *ctx, qn_log_level level, const char *format, ...) QN_PRINTF(3, 4);
void qn_progress(qn_context *ctx, const char *what, int64_t done, int64_t total);
/* A quiet context for a thread that works for the parent's caller: one thread, the same allocator,
 * cancelled with the parent, which must live longer. qn_context_free. */
QN_MUST_CHECK qn_status qn_context_create_child(qn_context **out, qn_context *parent);
/* QN_E_CANCELLED once qn_context_cancel was called: long loops ask now and then. */
QN_MUST_CHECK qn_status qn_check_cancel(qn_context *ctx);

/* ---- Memory -----------------------------------------------------------------------------------
 * All of these return NULL when memory is short. Blocks are aligned to 64 bytes only where the
 * name says so; otherwise as malloc's are. Sizes that overflow count as short memory. */

void *qn_alloc(qn_context *ctx, size_t size);
void *qn_alloc_zero(qn_context *ctx, size_t count, size_t size);
void *qn_realloc(qn_context *ctx, void *block, size_t old_size, size_t new_size);
void qn_free(qn_context *ctx, void *block);
/* 64-byte aligned; freed with qn_free_aligned. */
void *qn_alloc_aligned(const qn_allocator *allocator, size_t size);
void qn_free_aligned(const qn_allocator *allocator, void *block);

/* `items` (of item_size bytes each) with room for at least `count`; *capacity is kept up to date.
 * NULL, with `items` still valid, when memory is short. */
void *qn_grow(qn_context *ctx, void *items, size_t *capacity, size_t count, size_t item_size);
#define QN_TRY_GROW(ctx, items, capacity, count)                                                   \
    do {                                                                                           \
        void *qn_grown_ = qn_grow((ctx), (items), &(capacity), (count), sizeof *(items));          \
        QN_TRY_ALLOC(ctx, qn_grown_);                                                              \
        (items) = qn_grown_;                                                                       \
    } while (0)

/* ---- Arithmetic on sizes that come from files ------------------------------------------------ */

/* False, and *out untouched, on overflow. */
bool qn_mul_size(size_t *out, size_t a, size_t b);
bool qn_add_size(size_t *out, size_t a, size_t b);
bool qn_mul_int64(int64_t *out, int64_t a, int64_t b);
bool qn_add_int64(int64_t *out, int64_t a, int64_t b);

#endif
