/* Files with arrays for a model's inputs, given as "[input=]file". */
#ifndef QN_INPUT_FILES_H
#define QN_INPUT_FILES_H

#include "data/array.h"

/* A model's inputs, with what is known of their shapes. */
typedef struct qn_input_list {
    const qn_value_info *at;
    size_t count;
} qn_input_list;

/* Splits the text into the input before a '=' (SIZE_MAX: none) and the file behind it. Where names
 * contain '=' themselves the longest name counts. */
QN_MUST_CHECK qn_status qn_input_split(size_t *input, const char **path, qn_context *ctx,
                                       const qn_input_list *inputs, const char *text);
/* The use of a file's arrays. */
typedef enum qn_input_file_use {
    /* An array is a whole input. */
    QN_INPUT_FILE_WHOLE,
    /* An array is a list of samples; the first axis of a raw file follows from its size. */
    QN_INPUT_FILE_SAMPLES,
    /* The same as before from a similar file: notes are not repeated. */
    QN_INPUT_FILE_AGAIN
} qn_input_file_use;

/* Opens the file for the input `named`. Without a name a .npz feeds every input that it has an
 * array for, and any other file the only input. The only array of a .npz feeds an only or named
 * input whatever its name, with a note. files[k] gets the array of input k. */
QN_MUST_CHECK qn_status qn_input_files_open(qn_tensor **files, qn_context *ctx,
                                            const qn_input_list *inputs, size_t named,
                                            const char *path, qn_input_file_use use);

/* Fails with "PATH: ... is not what input ... takes"; `has` gives type and dims. */
QN_MUST_CHECK qn_status qn_fail_input_mismatch(qn_context *ctx, const char *path,
                                               const qn_tensor *has, const qn_value_info *info);
/* Whether numbers of one type can feed an input of the other: floats and integers feed float
 * inputs. */
bool qn_array_converts(qn_dtype from, qn_dtype to);
/* Copies the elements [first, first + count) of the array as numbers of `dtype`, its own type or
 * one that it converts to. */
void qn_array_copy(void *to, qn_dtype dtype, const qn_tensor *file, int64_t first, int64_t count);

#endif
