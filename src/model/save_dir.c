/* Folders made and locked, and names of files in them. */
#include "model/save_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"

/* ---- Folders --------------------------------------------------------------------------------- */

qn_status qn_folder_make(qn_context *ctx, const char *folder)
{
    return qn_folder_create(ctx, folder, " (`save_dir` names another one)");
}

/* ---- One job at a time ----------------------------------------------------------------------- */

/* Whoever let go of the lock removed the file: then this one is another. */
static bool is_still_there(int file, const char *path)
{
    struct stat own, there;
    return fstat(file, &own) == 0 && stat(path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

qn_status qn_folder_lock_take(qn_folder_lock *out, qn_context *ctx, qn_arena *arena,
                              const char *folder)
{
    *out = (qn_folder_lock){.path = NULL};
    char *path = qn_arena_format(arena, "%s/.quench.lock", folder);
    QN_TRY_ALLOC(ctx, path);
    for (;;) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0)
            return qn_fail(
                ctx, QN_E_IO, "cannot write in folder '%s': %s%s", folder, strerror(errno),
                errno == EACCES || errno == EROFS ? " (`save_dir` names another one)" : "");
        if (fcntl(file, F_SETLK, &whole) != 0) {
            close(file);
            return qn_fail(ctx, QN_E_IO,
                           "folder '%s' is in use by another run: wait for it, or name another "
                           "`save_dir`",
                           folder);
        }
        if (is_still_there(file, path)) {
            *out = (qn_folder_lock){path, file};
            return QN_OK;
        }
        close(file);
    }
}

void qn_folder_lock_drop(qn_folder_lock *lock)
{
    if (!lock->path)
        return;
    unlink(lock->path);
    close(lock->file);
    lock->path = NULL;
}

/* ---- Files ----------------------------------------------------------------------------------- */

qn_status qn_folder_file(char **out, qn_arena *arena, const qn_model *model, const char *folder,
                         const char *suffix)
{
    const char *path = model->path ? model->path : "model", *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    *out = qn_arena_format(arena, "%s/%.*s%s", folder, (int)length, name, suffix);
    QN_TRY_ALLOC(model->ctx, *out);
    return QN_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return a && b && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

qn_status qn_folder_spare(qn_context *ctx, const char *path, const char *original, const char *what)
{
    if (!is_same_file(path, original))
        return QN_OK;
    return qn_fail(ctx, QN_E_OPTION,
                   "%s is %s itself, which is not written over: name another `save_dir`", path,
                   what);
}
