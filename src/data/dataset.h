/* The one door to data: whatever the samples are stored in, they are counted, read in any order,
 * and have names and, where known, labels. */
#ifndef QN_DATASET_H
#define QN_DATASET_H

#include "data/preprocess.h"
#include "ir/tensor.h"

typedef struct qn_dataset qn_dataset;

typedef struct qn_dataset_spec {
    /* The model's, with what is known of their shapes */
    const qn_value_info *inputs;
    size_t n_inputs;
    /* Each "[input=]path". A path is a file (.npy, .npz, raw bytes; IDX; CIFAR), a folder (of
     * pictures, .npy, .npz, or raw .bin and .raw files; its sub-folders are classes where it has no
     * such files itself), or a list of files (.txt, .lst). "kind:" before it settles what it is:
     * see docs/data.md. */
    const char *const *data;
    size_t n_data;
    /* Names of the samples of a folder to use, in this order; NULL: all */
    const char *list;
    /* File of classes; NULL: those that the data have, if any */
    const char *labels;
    /* Of pictures; NULL: none */
    const char *preprocess;
    /* Files that are no pictures are not left out */
    bool strict;
    /* [n_data] of the pictures of each, instead of it; NULL: not */
    const qn_preprocess *steps;
    /* Only the first so many need a class of the file; 0: all */
    int64_t labelled;
} qn_dataset_spec;

/* What a sample is for one input. */
typedef struct qn_dataset_input {
    /* By this data set */
    bool fed;
    /* A sample is all of the input; else it stands with others along axis 0 */
    bool whole;
    /* Type and dims, axis 0 left out unless whole; no data. Of the first one where they differ */
    qn_tensor sample;
    /* Of the largest */
    size_t bytes;
    /* [samples] of each, where the model leaves them open and they differ; else NULL */
    int64_t (*dims)[QN_MAX_RANK];
} qn_dataset_input;

QN_MUST_CHECK qn_status qn_dataset_open(qn_dataset **out, qn_context *ctx,
                                        const qn_dataset_spec *spec);
void qn_dataset_free(qn_dataset *data);

int64_t qn_dataset_count(const qn_dataset *data);
const qn_dataset_input *qn_dataset_inputs(const qn_dataset *data);
/* Type and dims of sample i for input k; no data. */
void qn_dataset_sample(qn_tensor *out, const qn_dataset *data, size_t k, int64_t i);
/* Sample i, into to[k] for every input k that is fed; place (may be NULL) tells where its picture,
 * the first source's that has any, lies in the input, width 0 where there is none. From any thread,
 * each with a context of its own, which gets the message of a failure. */
QN_MUST_CHECK qn_status qn_dataset_read(void *const *to, qn_picture_place *place,
                                        const qn_dataset *data, qn_context *ctx, int64_t i);
/* The picture that sample i is made of, before all steps but `decode` and `rotate`. */
QN_MUST_CHECK qn_status qn_dataset_picture(qn_image *out, const qn_dataset *data, qn_context *ctx,
                                           int64_t i);
/* The class of sample i; -1: not known. All samples have one, or none. */
int64_t qn_dataset_label(const qn_dataset *data, int64_t i);
/* The file that sample i lies in alone; NULL: there is none. */
const char *qn_dataset_path(const qn_dataset *data, int64_t i);
/* What to call sample i: its file, or "file[i]". Returns out, always terminated. */
const char *qn_dataset_name(char *out, size_t size, const qn_dataset *data, int64_t i);

#endif
