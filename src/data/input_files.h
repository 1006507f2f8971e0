/* Files with arrays for a model's inputs: "[input=]file". */
#ifndef QN_INPUT_FILES_H
#define QN_INPUT_FILES_H

#include "data/array.h"

/* A model's inputs, with what is known of their shapes. */
typedef struct qn_input_list {
    const qn_value_info *at;
    size_t count;
} qn_input_list;

/* The input that the text names before a '=' (SIZE_MAX: none), and the file behind it. Names may
 * hold '=' themselves: the longest one counts. */
QN_MUST_CHECK qn_status qn_input_split(size_t *input, const char **path, qn_context *ctx,
                                       const qn_input_list *inputs, const char *text);
/* What a file is opened for. */
typedef enum qn_input_file_use {
    /* Inputs as they are */
    QN_INPUT_FILE_WHOLE,
    /* Samples: the first axis of a raw file is as long as it has bytes for */
    QN_INPUT_FILE_SAMPLES,
    /* Inputs again, from a file like an earlier one: what was noted there is not noted again */
    QN_INPUT_FILE_AGAIN
} qn_input_file_use;

/* Opens the file for the input `named`; without one, a .npz for every input it has an array for,
 * any other for the only input. The only array of a .npz feeds an only or named input whatever it
 * is called, with a note. files[k] gets the array of input k. */
QN_MUST_CHECK qn_status qn_input_files_open(qn_tensor **files, qn_context *ctx,
                                            const qn_input_list *inputs, size_t named,
                                            const char *path, qn_input_file_use use);

/* "PATH: ... is not what input ... takes": has tells type and dims. */
QN_MUST_CHECK qn_status qn_fail_input_mismatch(qn_context *ctx, const char *path,
                                               const qn_tensor *has, const qn_value_info *info);
/* Numbers that a float input can be fed with though its type is another one: floats and
 * integers. */
bool qn_array_converts(qn_dtype from, qn_dtype to);
/* Elements [first, first + count) of the array as numbers of `dtype`, its own or one that it
 * converts to. */
void qn_array_copy(void *to, qn_dtype dtype, const qn_tensor *file, int64_t first, int64_t count);

#endif
