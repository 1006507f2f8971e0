/* Data sets: samples are counted, read in any order, and have names and, where known, labels,
 * whatever they are stored in. */
#ifndef QN_DATASET_H
#define QN_DATASET_H

#include "data/preprocess.h"
#include "ir/tensor.h"

typedef struct qn_dataset qn_dataset;

typedef struct qn_dataset_spec {
    /* The model's inputs, with what is known of their shapes. */
    const qn_value_info *inputs;
    size_t n_inputs;
    /* Each "[input=]path". A path is a file (.npy, .npz, raw bytes; IDX; CIFAR), a folder (of
     * pictures, .npy, .npz, or raw .bin and .raw files; its sub-folders are classes where it has no
     * such files itself), or a list of files (.txt, .lst). "kind:" before it settles what it is:
     * see docs/data.md. */
    const char *const *data;
    size_t n_data;
    /* A file with the names of a folder's samples to use, in this order; NULL: all samples. */
    const char *list;
    /* A file of classes; NULL: the classes that the data have, if any. */
    const char *labels;
    /* The preprocessing of pictures, as text; NULL: none. */
    const char *preprocess;
    /* A file that is no picture is an error; else it is left out. */
    bool strict;
    /* [n_data] preprocessing per path, instead of the text; NULL: the text counts. */
    const qn_preprocess *steps;
    /* The number of samples, from the first on, that need a class of the file; 0: all. */
    int64_t labelled;
} qn_dataset_spec;

/* A sample's part for one input. */
typedef struct qn_dataset_input {
    /* Whether the data set feeds the input. */
    bool fed;
    /* Whether a sample is the whole input; else samples are joined along axis 0. */
    bool whole;
    /* Type and dims, without axis 0 unless `whole`, and without data. Where samples differ it is
     * that of the first. */
    qn_tensor sample;
    /* The size in bytes of the largest sample. */
    size_t bytes;
    /* [samples] dims of each, where they differ and the model leaves them open; else NULL. */
    int64_t (*dims)[QN_MAX_RANK];
} qn_dataset_input;

QN_MUST_CHECK qn_status qn_dataset_open(qn_dataset **out, qn_context *ctx,
                                        const qn_dataset_spec *spec);
void qn_dataset_free(qn_dataset *data);

int64_t qn_dataset_count(const qn_dataset *data);
const qn_dataset_input *qn_dataset_inputs(const qn_dataset *data);
/* Type and dims of sample i for input k; no data. */
void qn_dataset_sample(qn_tensor *out, const qn_dataset *data, size_t k, int64_t i);
/* Reads sample i into to[k] for every input k that is fed. place (may be NULL) gets the position of
 * its picture in the input, that of the first source with pictures; width 0: there is none. Any
 * thread may call it with a context of its own, which gets the message of a failure. */
QN_MUST_CHECK qn_status qn_dataset_read(void *const *to, qn_picture_place *place,
                                        const qn_dataset *data, qn_context *ctx, int64_t i);
/* The picture of sample i after `decode` and `rotate`, and before all other steps. */
QN_MUST_CHECK qn_status qn_dataset_picture(qn_image *out, const qn_dataset *data, qn_context *ctx,
                                           int64_t i);
/* The class of sample i; -1: unknown. Either all samples have one, or none. */
int64_t qn_dataset_label(const qn_dataset *data, int64_t i);
/* The file that contains sample i alone; NULL: there is none. */
const char *qn_dataset_path(const qn_dataset *data, int64_t i);
/* The name of sample i for people: its file, or "file[i]". Returns out, always terminated. */
const char *qn_dataset_name(char *out, size_t size, const qn_dataset *data, int64_t i);

#endif
