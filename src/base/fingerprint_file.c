/* Fingerprints of files and folders. */
#include <dirent.h>
#include <sys/stat.h>

#include "base/fingerprint.h"
#include "base/map.h"

qn_status qn_fingerprint_file(qn_fingerprint *print, qn_context *ctx, const char *path)
{
    qn_map map;
    QN_TRY(qn_map_open(&map, ctx, path));
    qn_fingerprint_bytes(print, map.data, map.size);
    qn_map_close(&map);
    return QN_OK;
}

static void print_status(qn_fingerprint *print, const char *name, const struct stat *status)
{
    qn_fingerprint_text(print, name);
    qn_fingerprint_int(print, S_ISDIR(status->st_mode) ? -1 : (int64_t)status->st_size);
    qn_fingerprint_int(print, S_ISDIR(status->st_mode) ? 0 : (int64_t)status->st_mtim.tv_sec);
    qn_fingerprint_int(print, S_ISDIR(status->st_mode) ? 0 : (int64_t)status->st_mtim.tv_nsec);
}

/* Sums: the order that a folder lists its files in means nothing. */
static qn_status print_folder(qn_fingerprint *print, qn_context *ctx, const char *path, int depth)
{
    DIR *folder = depth < 16 ? opendir(path) : NULL;
    qn_status status = QN_OK;
    const struct dirent *entry;
    while (folder && status == QN_OK && (entry = readdir(folder)) != NULL) {
        struct stat there;
        qn_arena arena;
        qn_fingerprint own = {{0, 0}};
        if (entry->d_name[0] == '.')
            continue;
        qn_arena_init(&arena, &ctx->allocator);
        const char *full = qn_arena_format(&arena, "%s/%s", path, entry->d_name);
        status = full ? QN_OK : qn_fail_nomem(ctx);
        if (full && stat(full, &there) == 0) {
            print_status(&own, entry->d_name, &there);
            if (S_ISDIR(there.st_mode))
                status = print_folder(&own, ctx, full, depth + 1);
            qn_fingerprint_add(print, own);
        }
        qn_arena_free(&arena);
    }
    if (folder)
        closedir(folder);
    return status;
}

qn_status qn_fingerprint_listing(qn_fingerprint *print, qn_context *ctx, const char *path)
{
    struct stat there;
    qn_fingerprint own = {{0, 0}};
    qn_fingerprint_text(&own, path);
    if (path && stat(path, &there) == 0) {
        print_status(&own, path, &there);
        if (S_ISDIR(there.st_mode))
            QN_TRY(print_folder(&own, ctx, path, 0));
    }
    qn_fingerprint_add(print, own);
    return QN_OK;
}
