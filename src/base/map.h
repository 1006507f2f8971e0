/* Whole files, mapped for reading or written in one piece. */
#ifndef QN_MAP_H
#define QN_MAP_H

#include "base/base.h"

typedef struct qn_map {
    const uint8_t *data;
    size_t size;
    /* The device and the number of the file. */
    uint64_t device, number;
} qn_map;

/* Fails where there is no path: callers of the library may give NULL. */
QN_MUST_CHECK qn_status qn_path_check(qn_context *ctx, const char *path);
/* Maps `path` read-only. An empty file gives data NULL, size 0. */
QN_MUST_CHECK qn_status qn_map_open(qn_map *out, qn_context *ctx, const char *path);
void qn_map_close(qn_map *map);
/* Whether the map is of the file that is at `path` now. */
bool qn_map_is_of(const qn_map *map, const char *path);
/* Lets the system know that the pages of [data, data + size) inside the map are not needed any
 * more: they leave the resident set and come back from the file when touched. */
void qn_map_release_pages(const qn_map *map, const void *data, size_t size);

/* A file that appears under its name only when it is complete: written to "<path>.tmp-<pid>-<n>" in
 * the same folder, then renamed. Links are followed; a device or a pipe is written to itself. */
typedef struct qn_output_file qn_output_file;

QN_MUST_CHECK qn_status qn_output_open(qn_output_file **out, qn_context *ctx, const char *path);
QN_MUST_CHECK qn_status qn_output_write(qn_output_file *file, const void *data, size_t size);
/* Flushes, renames and frees; on failure the temporary file is removed. */
QN_MUST_CHECK qn_status qn_output_commit(qn_output_file *file);
/* Gives up: removes the temporary file. NULL is allowed. */
void qn_output_discard(qn_output_file *file);
/* All of it at once; `data` may be NULL where size is 0. */
QN_MUST_CHECK qn_status qn_output_save(qn_context *ctx, const char *path, const void *data,
                                       size_t size);

#endif
