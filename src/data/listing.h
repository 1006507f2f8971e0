/* Lists of sample files, from folders and text files. */
#ifndef QN_LISTING_H
#define QN_LISTING_H

#include "base/base.h"
#include "base/map.h"

/* The kind of a file, by the ending of its name. */
typedef enum qn_file_kind {
    QN_FILE_OTHER,
    QN_FILE_PICTURE,
    QN_FILE_NPY,
    QN_FILE_NPZ,
    /* .bin, .raw */
    QN_FILE_RAW,
    /* A picture in a format that cannot be decoded. */
    QN_FILE_UNDECODABLE,
    QN_FILE_KINDS
} qn_file_kind;
qn_file_kind qn_file_kind_of(const char *path);
const char *qn_file_kind_name(qn_file_kind kind); /* "pictures", ".npy files", ... */

QN_MUST_CHECK qn_status qn_fail_undecodable(qn_context *ctx, const char *path);

typedef struct qn_listing {
    /* The kind of all files. */
    qn_file_kind kind;
    int64_t count;
    /* [count] paths to open. */
    const char **paths;
    /* [count] names within the folder or list. */
    const char **names;
    /* [count] classes, or NULL. */
    const int64_t *labels;
} qn_listing;

/* Lists the files of a folder, sorted by the bytes of their names. Where it has none the files of
 * its sub-folders are listed: these are classes, numbered in the same order. */
QN_MUST_CHECK qn_status qn_listing_folder(qn_listing *out, qn_context *ctx, qn_arena *arena,
                                          const char *path);
/* Reads a list of files, one per line, each with or without a class behind it. Names are relative
 * to the list. */
QN_MUST_CHECK qn_status qn_listing_file(qn_listing *out, qn_context *ctx, qn_arena *arena,
                                        const char *path);
/* Keeps the samples that the list names, in the list's order; the endings of names may be left
 * out. */
QN_MUST_CHECK qn_status qn_listing_select(qn_listing *listing, qn_context *ctx, qn_arena *arena,
                                          const char *list);

/* The lines of a text file, without blanks at their ends; empty lines are skipped. */
typedef struct qn_lines {
    qn_map map;
    size_t at;
    /* The number of the current line, from 1 on. */
    int64_t number;
} qn_lines;
bool qn_lines_next(const char **line, size_t *length, qn_lines *lines);
/* Cuts a class (a blank and digits) off the end of a line; -1: there is none. */
int64_t qn_line_label(const char *line, size_t *length);

bool qn_path_is_folder(const char *path);

#endif
