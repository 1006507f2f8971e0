/* HDF5 files through libhdf5: groups, arrays of numbers, and attributes that are texts. A build
 * without libhdf5 says so when a file is opened. Links and storage that lead into other files are
 * not followed. Paths are separated by '/'. */
#ifndef QN_HDF5_H
#define QN_HDF5_H

#include <string.h>

#include "base/map.h"

typedef struct qn_hdf5 qn_hdf5;

/* Numbers in row-major order and the machine's form. */
typedef struct qn_hdf5_array {
    /* QN_FLOAT16, QN_FLOAT32, QN_FLOAT64, QN_BOOL, or an integer of 8 to 64 bits. */
    qn_dtype dtype;
    int32_t rank;
    int64_t dims[QN_MAX_RANK];
    const void *data;
    size_t size;
} qn_hdf5_array;

typedef struct qn_hdf5_texts {
    const char **at;
    size_t count;
} qn_hdf5_texts;

typedef enum qn_hdf5_kind { QN_HDF5_NOTHING, QN_HDF5_GROUP, QN_HDF5_ARRAY } qn_hdf5_kind;

/* Whether the data begin as an HDF5 file does. */
static inline bool qn_hdf5_is_file(const uint8_t *data, size_t size)
{
    return size >= 8 && memcmp(data, "\x89HDF\r\n\x1a\n", 8) == 0;
}
/* The map is of the file at `path` and outlives the file and the arrays. */
QN_MUST_CHECK qn_status qn_hdf5_open(qn_hdf5 **out, qn_context *ctx, const char *path,
                                     const qn_map *map);
/* The same for a file that lies in memory (in an archive), which is the map's. */
QN_MUST_CHECK qn_status qn_hdf5_open_memory(qn_hdf5 **out, qn_context *ctx, const qn_map *map);
void qn_hdf5_close(qn_hdf5 *file);

qn_hdf5_kind qn_hdf5_kind_of(const qn_hdf5 *file, const char *path);
/* The names in a group, sorted by their bytes; they lie in the arena. */
QN_MUST_CHECK qn_status qn_hdf5_members(qn_hdf5_texts *out, qn_hdf5 *file, qn_arena *arena,
                                        const char *group);
/* An array whose numbers stay in the map where they are stored as they are, else lie in the
 * arena. */
QN_MUST_CHECK qn_status qn_hdf5_read(qn_hdf5_array *out, qn_hdf5 *file, qn_arena *arena,
                                     const char *path);
/* An attribute that is one text or a list of texts; count 0 where the object lacks it. */
QN_MUST_CHECK qn_status qn_hdf5_attribute(qn_hdf5_texts *out, qn_hdf5 *file, qn_arena *arena,
                                          const char *object, const char *name);

#endif
