/* Contexts: failures with their message, log, progress, cancellation. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/options.h"
#include "base/text.h"

#define QN_STRING_OF(x) #x
#define QN_VERSION_TEXT(a, b, c) QN_STRING_OF(a) "." QN_STRING_OF(b) "." QN_STRING_OF(c)

const char *qn_version(void)
{
    return QN_VERSION_TEXT(QN_VERSION_MAJOR, QN_VERSION_MINOR, QN_VERSION_PATCH);
}

const char *qn_status_name(qn_status status)
{
    static const char *const names[] = {
        [QN_OK] = "ok",
        [QN_E_NOMEM] = "out of memory",
        [QN_E_IO] = "i/o",
        [QN_E_FORMAT] = "bad format",
        [QN_E_INVALID] = "invalid argument",
        [QN_E_UNSUPPORTED] = "not supported",
        [QN_E_CANCELLED] = "cancelled",
        [QN_E_GOAL] = "goal missed",
        [QN_E_OPTION] = "wrong option",
    };
    return (size_t)status < QN_COUNT_OF(names) ? names[status] : "?";
}

qn_status qn_context_create(qn_context **out, const qn_context_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_context_options, o, NULL, options);
    const qn_allocator *allocator = o.allocator ? o.allocator : qn_allocator_default();
    qn_context *ctx = allocator->allocate(allocator->user, sizeof *ctx);
    if (!ctx)
        return QN_E_NOMEM;
    memset(ctx, 0, sizeof *ctx);
    ctx->allocator = *allocator;
    qn_arena_init(&ctx->options, allocator);
    ctx->threads = o.threads > 0 ? o.threads : qn_cpu_count();
    ctx->log_level = o.log_level;
    ctx->log = o.log;
    ctx->log_user = o.log_user;
    ctx->progress = o.progress;
    ctx->progress_user = o.progress_user;
    atomic_init(&ctx->cancelled, 0);
    *out = ctx;
    if (o.log && qn_isa_unknown_limit())
        qn_log(ctx, QN_LOG_WARN,
               "ONEDNN_MAX_CPU_ISA=%s names no instruction set (SSE41, AVX2, AVX512_CORE, "
               "AVX512_CORE_VNNI, ...): nothing is limited",
               qn_isa_unknown_limit());
    return QN_OK;
}

qn_status qn_context_create_child(qn_context **out, qn_context *parent)
{
    const qn_context_options options = {QN_OPTIONS_VERSION, .threads = 1,
                                        .allocator = &parent->allocator};
    if (qn_context_create(out, &options) != QN_OK)
        return qn_fail_nomem(parent);
    (*out)->parent = parent;
    return QN_OK;
}

void qn_context_free(qn_context *ctx)
{
    if (!ctx)
        return;
    if (ctx->plugins)
        ctx->close_plugins(ctx);
    if (ctx->ranks)
        ctx->close_ranks(ctx);
    qn_arena_free(&ctx->options);
    ctx->allocator.release(ctx->allocator.user, ctx);
}

const char *qn_context_error(const qn_context *ctx)
{
    return ctx ? ctx->error
               : "the context could not be made: out of memory, or its options are wrong";
}

void qn_context_cancel(qn_context *ctx)
{
    atomic_store_explicit(&ctx->cancelled, 1, memory_order_relaxed);
}

int qn_context_resume(qn_context *ctx)
{
    return atomic_exchange_explicit(&ctx->cancelled, 0, memory_order_relaxed);
}

qn_status qn_check_cancel(qn_context *ctx)
{
    for (const qn_context *c = ctx; c; c = c->parent) {
        if (atomic_load_explicit(&c->cancelled, memory_order_relaxed))
            return qn_fail(ctx, QN_E_CANCELLED, "cancelled");
    }
    return QN_OK;
}

/* Messages quote names from files: whatever is in those, a message is one line. */
qn_status qn_fail(qn_context *ctx, qn_status status, const char *format, ...)
{
    va_list args;
    if (!ctx) /* while it is made */
        return status;
    va_start(args, format);
    vsnprintf(ctx->error, sizeof ctx->error, format, args);
    va_end(args);
    qn_text_clean(ctx->error);
    return status;
}

qn_status qn_fail_nomem(qn_context *ctx)
{
    return qn_fail(ctx, QN_E_NOMEM, "out of memory");
}

qn_status qn_fail_no_input(qn_context *ctx, qn_string name, const char *const *names, size_t count)
{
    char list[QN_ERROR_SIZE / 2] = "";
    for (size_t i = 0; i < QN_MIN(count, QN_INPUTS_SHOWN); i++)
        qn_word_list(list, sizeof list, "'%s'", names[i]);
    return qn_fail(ctx, QN_E_OPTION, "the model has no input '%.*s'; it has %s%s",
                   (int)QN_MIN(name.length, QN_ERROR_SIZE / 4), name.text, count ? list : "none",
                   count > QN_INPUTS_SHOWN ? " and more" : "");
}

qn_status qn_fail_bytes(qn_context *ctx, size_t bytes, const char *format, ...)
{
    char what[QN_ERROR_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qn_fail(ctx, QN_E_NOMEM, "out of memory: %zu bytes wanted for %s", bytes, what);
}

qn_status qn_fail_within(qn_context *ctx, qn_status status, const char *format, ...)
{
    char inner[QN_ERROR_SIZE];
    memcpy(inner, ctx->error, sizeof inner);
    va_list args;
    va_start(args, format);
    const int prefix = vsnprintf(ctx->error, sizeof ctx->error, format, args);
    va_end(args);
    if (prefix >= 0 && (size_t)prefix < sizeof ctx->error)
        snprintf(ctx->error + prefix, sizeof ctx->error - (size_t)prefix, ": %s", inner);
    qn_text_clean(ctx->error);
    return status;
}

void qn_log(qn_context *ctx, qn_log_level level, const char *format, ...)
{
    if (!ctx->log || level > ctx->log_level)
        return;
    char line[QN_ERROR_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    qn_text_clean(line);
    ctx->log(ctx->log_user, level, line);
}

void qn_progress(qn_context *ctx, const char *what, int64_t done, int64_t total)
{
    if (ctx->progress)
        ctx->progress(ctx->progress_user, what, done, total);
}
