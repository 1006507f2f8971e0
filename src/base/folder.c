/* Folders looked for and made. */
#include "base/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool qn_folder_is(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool qn_path_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

static qn_status make_one(qn_context *ctx, const char *folder, const char *hint)
{
    if (qn_folder_is(folder) || mkdir(folder, 0777) == 0 || qn_folder_is(folder))
        return QN_OK;
    const int why = errno;
    return qn_fail(ctx, QN_E_IO, "cannot make folder '%s': %s%s", folder,
                   why == EEXIST ? "a file has that name" : strerror(why),
                   hint && (why == EACCES || why == EROFS) ? hint : "");
}

qn_status qn_folder_create(qn_context *ctx, const char *folder, const char *hint)
{
    qn_arena arena;
    qn_arena_init(&arena, &ctx->allocator);
    char *path = qn_arena_text(&arena, folder, strlen(folder));
    qn_status status = path ? QN_OK : qn_fail_nomem(ctx);
    for (char *at = path && *path ? path + 1 : NULL; at && *at && status == QN_OK; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        status = make_one(ctx, path, hint);
        *at = '/';
    }
    if (status == QN_OK)
        status = make_one(ctx, folder, hint);
    qn_arena_free(&arena);
    return status;
}
