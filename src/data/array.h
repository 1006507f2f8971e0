/* Tensors in files: .npy, .npz, raw bytes. */
#ifndef QN_ARRAY_H
#define QN_ARRAY_H

#include "base/map.h"
#include "ir/tensor.h"

/* What qn_tensor_load hands out, with what its data lies in. */
typedef struct qn_array {
    /* First: the public pointer */
    qn_tensor tensor;
    qn_context *ctx;
    qn_map map;
    /* Aligned; when the data is not in the map */
    void *block;
} qn_array;

/* A .npy file in memory: *out gets type and dims, *data its elements in file order and *length
 * their bytes. Fortran order and big-endian numbers are reported for the caller to undo. */
typedef struct qn_npy {
    /* Without data */
    qn_tensor tensor;
    const uint8_t *data;
    size_t bytes;
    /* Bytes of one, */
    size_t element;
    /* And of each number in it */
    size_t unit;
    bool fortran, swapped;
} qn_npy;
QN_MUST_CHECK qn_status qn_npy_parse(qn_npy *out, qn_context *ctx, const uint8_t *file,
                                     size_t size);

/* The array of a .npy file that lies in memory. Its data points into the file where that is
 * possible. */
QN_MUST_CHECK qn_status qn_npy_read(qn_array *array, const uint8_t *file, size_t size);

/* Makes array->tensor strings of such elements, in row-major order and the machine's byte order.
 * (npy_strings.c) */
QN_MUST_CHECK qn_status qn_npy_read_strings(qn_array *array, const qn_npy *npy,
                                            const uint8_t *elements);

/* The type that a file has for elements of this type: the same, or the next wider one;
 * QN_UNDEFINED: none, strings aside. */
qn_dtype qn_npy_stored_type(qn_dtype dtype);

/* The entry's bytes inside a .npz file (as numpy's savez stores it), or decompressed into
 * array->block (savez_compressed). name NULL: the only entry. "x" is stored as "x.npy". */
QN_MUST_CHECK qn_status qn_npz_find(const uint8_t **data, size_t *size, qn_array *array,
                                    const char *name);
/* Whether there is an array of that name. */
QN_MUST_CHECK qn_status qn_npz_has(bool *out, qn_context *ctx, const qn_map *file,
                                   const char *name);
/* The number of arrays. names gets those of the first `most`; they lie in the file. */
QN_MUST_CHECK qn_status qn_npz_list(size_t *count, qn_string *names, size_t most, qn_context *ctx,
                                    const qn_map *file);

/* A .npy file that is written piece by piece, complete or not at all. */
typedef struct qn_npy_writer {
    qn_context *ctx;
    qn_output_file *file;
    qn_dtype dtype, stored;
    /* Of strings, in code points */
    size_t width;
} qn_npy_writer;
/* Of strings the longest one counts: `shape` then has its data. */
QN_MUST_CHECK qn_status qn_npy_open(qn_npy_writer *out, qn_context *ctx, const char *path,
                                    const qn_tensor *shape);
QN_MUST_CHECK qn_status qn_npy_write(qn_npy_writer *writer, const void *data, int64_t count);
QN_MUST_CHECK qn_status qn_npy_commit(qn_npy_writer *writer);
void qn_npy_discard(qn_npy_writer *writer);
/* The longest string in code points, and elements of that width. (npy_strings.c) */
size_t qn_npy_string_width(const qn_string *strings, int64_t count);
QN_MUST_CHECK qn_status qn_npy_write_strings(qn_npy_writer *writer, const qn_string *strings,
                                             int64_t count);

#endif
