/* Tensors in files: .npy, .npz and raw bytes. */
#ifndef QN_ARRAY_H
#define QN_ARRAY_H

#include "base/map.h"
#include "ir/tensor.h"

/* A tensor from qn_tensor_load with the memory of its data. */
typedef struct qn_array {
    /* The first field, since the public API hands out a pointer to it. */
    qn_tensor tensor;
    qn_context *ctx;
    qn_map map;
    /* Aligned memory of the data where it is not in the map. */
    void *block;
} qn_array;

/* A .npy file in memory: type and dims, the elements in file order, and their size in bytes.
 * Fortran order and big-endian numbers are reported for the caller to undo. */
typedef struct qn_npy {
    /* Type and dims, without data. */
    qn_tensor tensor;
    const uint8_t *data;
    size_t bytes;
    /* The size of an element in bytes. */
    size_t element;
    /* The size of each number inside an element: half of it for complex ones. */
    size_t unit;
    bool fortran, swapped;
} qn_npy;
QN_MUST_CHECK qn_status qn_npy_parse(qn_npy *out, qn_context *ctx, const uint8_t *file,
                                     size_t size);

/* Reads the array of a .npy file in memory. Its data points into the file where that is
 * possible. */
QN_MUST_CHECK qn_status qn_npy_read(qn_array *array, const uint8_t *file, size_t size);

/* Makes array->tensor strings out of the elements, in row-major order and the machine's byte order.
 * (npy_strings.c) */
QN_MUST_CHECK qn_status qn_npy_read_strings(qn_array *array, const qn_npy *npy,
                                            const uint8_t *elements);

/* The type under which a file stores elements of this type: the same or the next wider one;
 * QN_UNDEFINED: none, strings aside. */
qn_dtype qn_npy_stored_type(qn_dtype dtype);

/* Gives the bytes of an entry: inside the .npz file (numpy's savez), or decompressed into
 * array->block (savez_compressed). name NULL: the only entry. "x" is stored as "x.npy". */
QN_MUST_CHECK qn_status qn_npz_find(const uint8_t **data, size_t *size, qn_array *array,
                                    const char *name);
/* Whether the file has an array of that name. */
QN_MUST_CHECK qn_status qn_npz_has(bool *out, qn_context *ctx, const qn_map *file,
                                   const char *name);
/* The number of arrays. names gets those of the first `most`; they point into the file. */
QN_MUST_CHECK qn_status qn_npz_list(size_t *count, qn_string *names, size_t most, qn_context *ctx,
                                    const qn_map *file);

/* A .npy file that is written piece by piece; it appears complete or not at all. */
typedef struct qn_npy_writer {
    qn_context *ctx;
    qn_output_file *file;
    qn_dtype dtype, stored;
    /* The width of strings, in code points. */
    size_t width;
} qn_npy_writer;
/* Begins a file. For strings `shape` must have its data, since the longest one sets the width. */
QN_MUST_CHECK qn_status qn_npy_open(qn_npy_writer *out, qn_context *ctx, const char *path,
                                    const qn_tensor *shape);
QN_MUST_CHECK qn_status qn_npy_write(qn_npy_writer *writer, const void *data, int64_t count);
QN_MUST_CHECK qn_status qn_npy_commit(qn_npy_writer *writer);
void qn_npy_discard(qn_npy_writer *writer);
/* The width of the longest string in code points, and writing of strings in that width.
 * (npy_strings.c) */
size_t qn_npy_string_width(const qn_string *strings, int64_t count);
QN_MUST_CHECK qn_status qn_npy_write_strings(qn_npy_writer *writer, const qn_string *strings,
                                             int64_t count);

#endif
