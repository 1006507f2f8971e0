/* What stands behind one argument of a data set. */
#ifndef QN_DATASET_SOURCE_H
#define QN_DATASET_SOURCE_H

#include "data/dataset.h"
#include "data/listing.h"

typedef struct qn_dataset_source qn_dataset_source;
typedef struct qn_dataset_source_kind {
    /* place is zeroed; only pictures say it. */
    qn_status (*read)(void *const *to, qn_picture_place *place, const qn_dataset_source *source,
                      qn_context *ctx, int64_t i);
    /* The picture itself, as decoded; NULL: samples are no pictures. */
    qn_status (*picture)(qn_image *out, const qn_dataset_source *source, qn_context *ctx,
                         int64_t i);
    void (*close)(qn_dataset_source *source);
} qn_dataset_source_kind;

struct qn_dataset_source {
    const qn_dataset_source_kind *kind;
    /* As given, without the input's name */
    const char *path;
    /* Samples */
    int64_t count;
    /* [count] or NULL */
    const int64_t *labels;
    /* One per sample; NULL: samples lie in `path` */
    const qn_listing *files;
    /* Of the kind */
    void *own;
};

/* What the data set knows while its sources are opened. */
typedef struct qn_dataset_builder {
    qn_context *ctx;
    /* Of the data set */
    qn_arena *arena;
    const qn_dataset_spec *spec;
    /* [n_inputs]; sources mark what they feed */
    qn_dataset_input *in;
    qn_preprocess preprocess;
    /* Some source has them */
    bool pictures;
    /* Of the source at hand */
    const char *path;
} qn_dataset_builder;

/* Marks input k as fed by samples of this type and shape. `whole` as in qn_dataset_input. */
QN_MUST_CHECK qn_status qn_dataset_builder_feed(qn_dataset_builder *o, size_t k,
                                                const qn_tensor *sample, bool whole);
/* Samples of different shapes, where the model leaves dimensions of input k open: begun before the
 * first is noted, each noted with its own dims, and settled behind the last, which forgets them
 * where all are alike. */
QN_MUST_CHECK qn_status qn_dataset_builder_begin_shapes(qn_dataset_builder *o, size_t k,
                                                        int64_t count);
QN_MUST_CHECK qn_status qn_dataset_builder_note_shape(qn_dataset_builder *o, size_t k, int64_t i,
                                                      const qn_tensor *sample);
void qn_dataset_builder_end_shapes(qn_dataset_builder *o, size_t k, int64_t count);
/* "x" or, where it is not given, the only input; SIZE_MAX and a message when there are several. */
QN_MUST_CHECK qn_status qn_dataset_builder_input(size_t *out, qn_dataset_builder *o, size_t named,
                                                 const char *path);

/* Each opens source->path for the input `named` (SIZE_MAX: none named). */
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

/* A file that may be packed with gzip, in memory. */
typedef struct qn_file_bytes {
    const uint8_t *data;
    size_t size;
    qn_map map;
    /* Where it was packed */
    uint8_t *block;
} qn_file_bytes;
QN_MUST_CHECK qn_status qn_file_bytes_open(qn_file_bytes *out, qn_context *ctx, const char *path);
void qn_file_bytes_close(qn_file_bytes *bytes, qn_context *ctx);
/* What gzip packed; *out is freed with qn_free_aligned. */
QN_MUST_CHECK qn_status qn_gunzip(uint8_t **out, size_t *size, qn_context *ctx,
                                  const uint8_t *packed, size_t packed_size);

/* An IDX file of bytes: its dims, and where they begin. */
typedef struct qn_idx {
    int32_t rank;
    int64_t dims[4];
    const uint8_t *data;
} qn_idx;
bool qn_idx_is(const uint8_t *file, size_t size);
QN_MUST_CHECK qn_status qn_idx_parse(qn_idx *out, qn_context *ctx, const uint8_t *file,
                                     size_t size);

/* Classes from a file: text ("name class" or "class" lines), .npy of integers, or IDX. Gives one
 * per sample. */
QN_MUST_CHECK qn_status qn_class_labels_read(const int64_t **out, qn_dataset_builder *o,
                                             const qn_dataset_source *source);

#endif
