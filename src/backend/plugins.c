/* Shared objects that bring backends: found, checked, opened, and closed with the context. */
#include "backend/plugins.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/plugin_files.h"

typedef struct loaded {
    const char *path;
    void *object;
    const qn_plugin *entry;
    qn_plugin_set set;
    bool opened;
} loaded;

typedef struct plugins {
    qn_context *ctx;
    qn_arena arena;
    loaded *at;
    size_t count, capacity;
    /* The backends of all, in the order of preference */
    const qn_backend **backends;
} plugins;

/* ---- One file -------------------------------------------------------------------------------- */

static qn_status fail_file(qn_context *ctx, const loaded *p, const char *why, const char *advice)
{
    return qn_fail(ctx, QN_E_UNSUPPORTED, "plug-in '%s' %s: %s", p->path, why, advice);
}

static const char take_out[] = "take it out of QUENCH_PLUGINS, or away from the library";

static qn_status check_entry(qn_context *ctx, const loaded *p)
{
    char why[128];
    if (!p->entry)
        return fail_file(ctx, p, "is no plug-in of quench, it has no symbol " QN_PLUGIN_SYMBOL,
                         take_out);
    if (p->entry->version == QN_BACKEND_VERSION && p->entry->size == sizeof *p->entry)
        return QN_OK;
    snprintf(why, sizeof why, "has version %u of the interface, this library has version %u",
             (unsigned)p->entry->version, QN_BACKEND_VERSION);
    return fail_file(ctx, p, why,
                     "compile it again with this library's quench/backend.h, or take it away");
}

static qn_status check_backend(qn_context *ctx, const loaded *p, const qn_backend *b)
{
    const qn_space *s = b->space;
    if (!b->name || !b->claim)
        return fail_file(ctx, p, "brings a backend without a name or a claim", take_out);
    if (!s)
        return QN_OK;
    const bool streams = s->stream_open || s->stream_close || s->wait;
    if (!s->name || !s->alloc || !s->free || !s->copy || (s->reaches && !s->follow) ||
        (streams && !(s->stream_open && s->stream_close && s->wait)))
        return fail_file(ctx, p, "brings a memory space that lacks functions", take_out);
    return QN_OK;
}

static qn_status open_set(qn_context *ctx, loaded *p)
{
    ctx->error[0] = '\0';
    const qn_status status = p->entry->open(&p->set, ctx, &qn_backend_api_table);
    if (status != QN_OK && !*ctx->error)
        return fail_file(ctx, p, "cannot be opened and does not say why", take_out);
    if (status != QN_OK)
        return qn_fail_within(ctx, status, "plug-in '%s' cannot be opened (%s)", p->path, take_out);
    p->opened = true;
    for (size_t i = 0; i < p->set.count; i++)
        QN_TRY(check_backend(ctx, p, &p->set.backends[i]));
    return QN_OK;
}

static qn_status load_file(void *user, const char *path)
{
    plugins *all = user;
    qn_context *ctx = all->ctx;
    QN_TRY_GROW(ctx, all->at, all->capacity, all->count + 1);
    loaded *p = &all->at[all->count++];
    *p = (loaded){.path = qn_arena_text(&all->arena, path, strlen(path))};
    QN_TRY_ALLOC(ctx, p->path);
    p->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!p->object)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "plug-in '%s' cannot be loaded: %s (%s)", path,
                       dlerror(), take_out);
    p->entry = dlsym(p->object, QN_PLUGIN_SYMBOL);
    QN_TRY(check_entry(ctx, p));
    return open_set(ctx, p);
}

/* Beside the library only files of these names are plug-ins; who names one may call it anything. */
static bool is_backend(const char *name, bool is_named)
{
    const size_t length = strlen(name);
    if (is_named)
        return strcmp(name, "libquench-mpi.so") != 0;
    return strncmp(name, "quench_backend_", 15) == 0 && length > 18 &&
           strcmp(name + length - 3, ".so") == 0;
}

/* ---- The list -------------------------------------------------------------------------------- */

/* A copy that names its file, with the device in the name where it is not the first. */
static qn_status add_copy(const qn_backend **out, plugins *all, const loaded *p,
                          const qn_backend *backend)
{
    qn_backend *copy = qn_arena_copy(&all->arena, backend, sizeof *backend);
    QN_TRY_ALLOC(all->ctx, copy);
    copy->file = p->path;
    copy->release_name = p->entry->release_name ? p->entry->release_name : "";
    if (backend->space && backend->space->device > 0)
        copy->name = qn_arena_format(&all->arena, "%s:%d", backend->name, backend->space->device);
    QN_TRY_ALLOC(all->ctx, copy->name);
    *out = copy;
    return QN_OK;
}

static qn_status add_all(const qn_backend **out, size_t *count, plugins *all, bool automatic)
{
    for (size_t i = 0; i < all->count; i++) {
        const loaded *p = &all->at[i];
        for (size_t k = 0; k < p->set.count; k++) {
            if (p->set.backends[k].automatic == automatic)
                QN_TRY(add_copy(&out[(*count)++], all, p, &p->set.backends[k]));
        }
    }
    return QN_OK;
}

static qn_status list_backends(plugins *all)
{
    size_t count = 0, most = 1;
    for (size_t i = 0; qn_backends[i]; i++)
        most++;
    for (size_t i = 0; i < all->count; i++)
        most += all->at[i].set.count;
    const qn_backend **list = qn_arena_array(&all->arena, most, sizeof(qn_backend *));
    QN_TRY_ALLOC(all->ctx, list);
    QN_TRY(add_all(list, &count, all, true));
    for (size_t i = 0; qn_backends[i]; i++)
        list[count++] = qn_backends[i];
    QN_TRY(add_all(list, &count, all, false));
    all->backends = list;
    return QN_OK;
}

/* ---- Of a context ---------------------------------------------------------------------------- */

static void close_all(qn_context *ctx)
{
    plugins *all = ctx->plugins;
    for (size_t i = all->count; i-- > 0;) {
        loaded *p = &all->at[i];
        if (p->opened && p->entry->close)
            p->entry->close(&p->set, ctx);
        if (p->object)
            dlclose(p->object);
    }
    qn_free(ctx, all->at);
    qn_arena_free(&all->arena);
    qn_free(ctx, all);
    ctx->plugins = NULL;
}

static qn_status load_all(plugins *all)
{
    QN_TRY(qn_plugin_files(is_backend, load_file, all));
    return list_backends(all);
}

qn_status qn_backends_of(const qn_backend *const **out, qn_context *ctx)
{
    plugins *all = ctx->plugins;
    if (!all) {
        all = qn_alloc_zero(ctx, 1, sizeof *all);
        QN_TRY_ALLOC(ctx, all);
        all->ctx = ctx;
        qn_arena_init(&all->arena, &ctx->allocator);
        ctx->plugins = all;
        ctx->close_plugins = close_all;
        const qn_status status = load_all(all);
        if (status != QN_OK) {
            close_all(ctx);
            return status;
        }
    }
    *out = all->backends;
    return QN_OK;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static bool is_called(const qn_backend *backend, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(backend->name, name, length) == 0 &&
           (!backend->name[length] || (backend->file && backend->name[length] == ':'));
}

static bool is_reference(const qn_backend *backend)
{
    return !backend->file && strcmp(backend->name, "ref") == 0;
}

static qn_status fail_unknown(qn_context *ctx, const qn_backend *const *all, const char *name)
{
    char list[QN_ERROR_SIZE / 2] = "";
    for (size_t i = 0, at = 0; all[i] && at + 1 < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "", all[i]->name);
    return qn_fail(ctx, QN_E_OPTION,
                   "backend: there is no '%s'; this build and its plug-ins have %s", name, list);
}

qn_status qn_backends_choose(const qn_backend **out, qn_context *ctx, const char *name)
{
    const qn_backend *const *all, *reference = NULL;
    size_t count = 0;
    QN_TRY(qn_backends_of(&all, ctx));
    for (size_t i = 0; all[i] && count + 2 < QN_MOST_BACKENDS; i++) {
        reference = is_reference(all[i]) ? all[i] : reference;
        if (name ? is_called(all[i], name) : !all[i]->file || all[i]->automatic)
            out[count++] = all[i];
    }
    if (count == 0)
        return fail_unknown(ctx, all, name);
    if (!is_reference(out[count - 1]))
        out[count++] = reference;
    out[count] = NULL;
    return QN_OK;
}
