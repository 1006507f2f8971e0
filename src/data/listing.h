/* Which files are the samples: folders and lists. */
#ifndef QN_LISTING_H
#define QN_LISTING_H

#include "base/base.h"
#include "base/map.h"

/* What a file is, by the ending of its name. */
typedef enum qn_file_kind {
    QN_FILE_OTHER,
    QN_FILE_PICTURE,
    QN_FILE_NPY,
    QN_FILE_NPZ,
    /* .bin, .raw */
    QN_FILE_RAW,
    /* An image that nothing here decodes */
    QN_FILE_UNDECODABLE,
    QN_FILE_KINDS
} qn_file_kind;
qn_file_kind qn_file_kind_of(const char *path);
const char *qn_file_kind_name(qn_file_kind kind); /* "pictures", ".npy files", ... */

QN_MUST_CHECK qn_status qn_fail_undecodable(qn_context *ctx, const char *path);

typedef struct qn_listing {
    /* Of all files */
    qn_file_kind kind;
    int64_t count;
    /* [count], to be opened */
    const char **paths;
    /* [count], within the folder or list */
    const char **names;
    /* [count], or NULL */
    const int64_t *labels;
} qn_listing;

/* The files of a folder in the order of their names' bytes; those of its sub-folders where it has
 * none itself: these are classes, numbered in the same order. */
QN_MUST_CHECK qn_status qn_listing_folder(qn_listing *out, qn_context *ctx, qn_arena *arena,
                                          const char *path);
/* A list of files, one a line, each with a class behind it or none. Names are relative to the
 * list. */
QN_MUST_CHECK qn_status qn_listing_file(qn_listing *out, qn_context *ctx, qn_arena *arena,
                                        const char *path);
/* Keeps the samples that the list names, in its order; endings may be left out. */
QN_MUST_CHECK qn_status qn_listing_select(qn_listing *listing, qn_context *ctx, qn_arena *arena,
                                          const char *list);

/* Lines of a text file, without blanks at their ends; empty ones are passed over. */
typedef struct qn_lines {
    qn_map map;
    size_t at;
    /* Of the line handed out last, from 1 on */
    int64_t number;
} qn_lines;
bool qn_lines_next(const char **line, size_t *length, qn_lines *lines);
/* Cuts a class off the end of a line: a blank and digits only. -1: there is none. */
int64_t qn_line_label(const char *line, size_t *length);

bool qn_path_is_folder(const char *path);

#endif
