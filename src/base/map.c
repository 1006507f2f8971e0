/* Files mapped for reading, and files that appear when they are complete. */
#define _DEFAULT_SOURCE /* madvise: POSIX's own call is allowed to do nothing, and glibc's does */
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static qn_status fail_errno(qn_context *ctx, const char *path, const char *what)
{
    return qn_fail(ctx, QN_E_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

qn_status qn_path_check(qn_context *ctx, const char *path)
{
    return path ? QN_OK : qn_fail(ctx, QN_E_INVALID, "the name of a file is missing: it is NULL");
}

static qn_status map_descriptor(qn_map *out, qn_context *ctx, const char *path, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail_errno(ctx, path, "stat");
    if (!S_ISREG(info.st_mode))
        return qn_fail(
            ctx, QN_E_IO,
            S_ISDIR(info.st_mode) ? "%s: a folder, not a file" : "%s: not a regular file", path);
    if (info.st_size == 0)
        return QN_OK;
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return fail_errno(ctx, path, "map");
    *out = (qn_map){data, (size_t)info.st_size, info.st_dev, info.st_ino};
    return QN_OK;
}

qn_status qn_map_open(qn_map *out, qn_context *ctx, const char *path)
{
    out->data = NULL;
    out->size = 0;
    QN_TRY(qn_path_check(ctx, path));
    /* Opening a FIFO would wait for a writer, for ever perhaps; of a regular file it changes
     * nothing. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_errno(ctx, path, "open");
    const qn_status status = map_descriptor(out, ctx, path, fd);
    close(fd);
    return status;
}

void qn_map_close(qn_map *map)
{
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    map->data = NULL;
    map->size = 0;
}

bool qn_map_is_of(const qn_map *map, const char *path)
{
    struct stat info;
    return map->data && stat(path, &info) == 0 && info.st_dev == map->device &&
           info.st_ino == map->number;
}

void qn_map_release_pages(const qn_map *map, const void *data, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)data + size) / page * page;
    const uintptr_t map_begin = (uintptr_t)map->data;
    if (begin < end && begin >= map_begin && end <= map_begin + map->size)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* ---- Output files ---------------------------------------------------------------------------- */

struct qn_output_file {
    qn_context *ctx;
    int fd;
    char *path;
    /* "": a device or pipe, which is written directly */
    char *temporary;
};

static void output_free(qn_output_file *file)
{
    qn_context *ctx = file->ctx;
    qn_free(ctx, file->path);
    qn_free(ctx, file->temporary);
    qn_free(ctx, file);
}

/* A fresh name in the folder of `path`; a left-over of a killed run is stepped over. */
static int open_temporary(char *name, size_t size, const char *path)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(name, size, "%s.tmp-%ld-%d", path, (long)getpid(), attempt);
        const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Opens what is to be written: a device or pipe itself, else a new file beside the old one, whose
 * mode it takes. Without the right to write the old one it is not replaced either. */
static int open_target(qn_output_file *file, size_t size)
{
    struct stat old;
    const bool there = stat(file->path, &old) == 0;
    if (there && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (there && access(file->path, W_OK) != 0)
        return -1;
    if (there && !S_ISREG(old.st_mode)) {
        file->temporary[0] = '\0';
        return open(file->path, O_WRONLY | O_CLOEXEC);
    }
    const int fd = open_temporary(file->temporary, size, file->path);
    if (fd >= 0 && there)
        (void)fchmod(fd, old.st_mode & 07777);
    return fd;
}

qn_status qn_output_open(qn_output_file **out, qn_context *ctx, const char *name)
{
    char resolved[PATH_MAX];
    *out = NULL;
    QN_TRY(qn_path_check(ctx, name));
    const char *path = realpath(name, resolved) ? resolved : name; /* links are followed */
    const size_t length = strlen(path), size = length + 48;
    qn_output_file *file = qn_alloc_zero(ctx, 1, sizeof *file);
    QN_TRY_ALLOC(ctx, file);
    file->ctx = ctx;
    file->fd = -1;
    file->path = qn_alloc(ctx, length + 1);
    file->temporary = qn_alloc(ctx, size);
    if (!file->path || !file->temporary) {
        output_free(file);
        return qn_fail_nomem(ctx);
    }
    memcpy(file->path, path, length + 1);
    file->fd = open_target(file, size);
    if (file->fd < 0) {
        const qn_status status = fail_errno(ctx, name, "create");
        output_free(file);
        return status;
    }
    *out = file;
    return QN_OK;
}

qn_status qn_output_write(qn_output_file *file, const void *data, size_t size)
{
    const char *bytes = data;
    while (size > 0) {
        const ssize_t written = write(file->fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail_errno(file->ctx, file->path, "write");
        bytes += written;
        size -= (size_t)written;
    }
    return QN_OK;
}

qn_status qn_output_commit(qn_output_file *file)
{
    qn_status status = QN_OK;
    const bool direct = !file->temporary[0];
    /* On the disk before the name is: after a crash there is the old file or the new one. */
    const bool kept = direct || fsync(file->fd) == 0;
    const bool closed = close(file->fd) == 0;
    file->fd = -1;
    if (!kept || !closed || (!direct && rename(file->temporary, file->path) != 0)) {
        status = fail_errno(file->ctx, file->path, "finish writing");
        if (!direct)
            unlink(file->temporary);
    }
    output_free(file);
    return status;
}

void qn_output_discard(qn_output_file *file)
{
    if (!file)
        return;
    close(file->fd);
    if (file->temporary[0])
        unlink(file->temporary);
    output_free(file);
}

qn_status qn_output_save(qn_context *ctx, const char *path, const void *data, size_t size)
{
    qn_output_file *file = NULL;
    QN_TRY(qn_output_open(&file, ctx, path));
    const qn_status status = size ? qn_output_write(file, data, size) : QN_OK;
    if (status == QN_OK)
        return qn_output_commit(file);
    qn_output_discard(file);
    return status;
}
