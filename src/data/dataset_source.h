/* One source of a data set: what one of its arguments names. */
#ifndef QN_DATASET_SOURCE_H
#define QN_DATASET_SOURCE_H

#include "data/dataset.h"
#include "data/listing.h"

typedef struct qn_dataset_source qn_dataset_source;
typedef struct qn_dataset_source_kind {
    /* Reads sample i. place is zeroed before, and only sources of pictures set it. */
    qn_status (*read)(void *const *to, qn_picture_place *place, const qn_dataset_source *source,
                      qn_context *ctx, int64_t i);
    /* The decoded picture of sample i; NULL: samples are no pictures. */
    qn_status (*picture)(qn_image *out, const qn_dataset_source *source, qn_context *ctx,
                         int64_t i);
    void (*close)(qn_dataset_source *source);
} qn_dataset_source_kind;

struct qn_dataset_source {
    const qn_dataset_source_kind *kind;
    /* The path as given, without the input's name. */
    const char *path;
    /* The number of samples. */
    int64_t count;
    /* [count] or NULL */
    const int64_t *labels;
    /* One file per sample; NULL: all samples lie in `path`. */
    const qn_listing *files;
    /* The state of this kind of source. */
    void *own;
};

/* A data set while its sources are opened. */
typedef struct qn_dataset_builder {
    qn_context *ctx;
    /* The arena of the data set. */
    qn_arena *arena;
    const qn_dataset_spec *spec;
    /* [n_inputs]; sources mark the inputs that they feed. */
    qn_dataset_input *in;
    qn_preprocess preprocess;
    /* Whether some source has pictures. */
    bool pictures;
    /* The path of the current source. */
    const char *path;
} qn_dataset_builder;

/* Marks input k as fed by samples of this type and shape; `whole` is that of qn_dataset_input. */
QN_MUST_CHECK qn_status qn_dataset_builder_feed(qn_dataset_builder *o, size_t k,
                                                const qn_tensor *sample, bool whole);
/* Record samples of different shapes, where the model leaves dimensions of input k open: begin
 * before the first sample, note the dims of each, and end after the last, which drops the record
 * where all are equal. */
QN_MUST_CHECK qn_status qn_dataset_builder_begin_shapes(qn_dataset_builder *o, size_t k,
                                                        int64_t count);
QN_MUST_CHECK qn_status qn_dataset_builder_note_shape(qn_dataset_builder *o, size_t k, int64_t i,
                                                      const qn_tensor *sample);
void qn_dataset_builder_end_shapes(qn_dataset_builder *o, size_t k, int64_t count);
/* Gives the input `named` or, where none is named, the only one. Fails where there are several. */
QN_MUST_CHECK qn_status qn_dataset_builder_input(size_t *out, qn_dataset_builder *o, size_t named,
                                                 const char *path);

/* These open source->path for the input `named` (SIZE_MAX: none is named). */
QN_MUST_CHECK qn_status qn_dataset_source_open_array(qn_dataset_source *source,
                                                     qn_dataset_builder *o, size_t named);
QN_MUST_CHECK qn_status qn_dataset_source_open_tensors(qn_dataset_source *source,
                                                       qn_dataset_builder *o, size_t named);
QN_MUST_CHECK qn_status qn_dataset_source_open_pictures(qn_dataset_source *source,
                                                        qn_dataset_builder *o, size_t named);
QN_MUST_CHECK qn_status qn_dataset_source_open_idx(qn_dataset_source *source, qn_dataset_builder *o,
                                                   size_t named);
QN_MUST_CHECK qn_status qn_dataset_source_open_cifar10(qn_dataset_source *source,
                                                       qn_dataset_builder *o, size_t named);
QN_MUST_CHECK qn_status qn_dataset_source_open_cifar100(qn_dataset_source *source,
                                                        qn_dataset_builder *o, size_t named);

/* A file in memory, decompressed where gzip packed it. */
typedef struct qn_file_bytes {
    const uint8_t *data;
    size_t size;
    qn_map map;
    /* The decompressed bytes; NULL: the file was not packed. */
    uint8_t *block;
} qn_file_bytes;
QN_MUST_CHECK qn_status qn_file_bytes_open(qn_file_bytes *out, qn_context *ctx, const char *path);
void qn_file_bytes_close(qn_file_bytes *bytes, qn_context *ctx);
/* Decompresses what gzip packed; *out is freed with qn_free_aligned. */
QN_MUST_CHECK qn_status qn_gunzip(uint8_t **out, size_t *size, qn_context *ctx,
                                  const uint8_t *packed, size_t packed_size);

/* An IDX file of bytes: its dims and where its elements begin. */
typedef struct qn_idx {
    int32_t rank;
    int64_t dims[4];
    const uint8_t *data;
} qn_idx;
bool qn_idx_is(const uint8_t *file, size_t size);
QN_MUST_CHECK qn_status qn_idx_parse(qn_idx *out, qn_context *ctx, const uint8_t *file,
                                     size_t size);

/* Reads classes from a file: text (lines "name class" or "class"), a .npy of integers, or IDX.
 * Gives one per sample. */
QN_MUST_CHECK qn_status qn_class_labels_read(const int64_t **out, qn_dataset_builder *o,
                                             const qn_dataset_source *source);

#endif
