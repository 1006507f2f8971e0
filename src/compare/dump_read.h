/* Layers that lie in a folder as .npy files. */
#ifndef QN_DUMP_READ_H
#define QN_DUMP_READ_H

#include "compare/dump.h"

typedef struct qn_dump_file {
    int64_t index;
    /* The name of the tensor, or of the file where no index has it */
    const char *name;
    /* "": not known */
    const char *node, *op;
    /* As of qn_compare_row */
    const char **names, **ops;
    size_t n_names, n_ops;
    /* Stem: name of the file without its ending */
    const char *path, *stem;
    /* The type that qn_compare_row has */
    qn_dtype dtype;
    float scale;
    int64_t zero;
    bool through, smoothed;
} qn_dump_file;

typedef struct qn_dump_side {
    /* The folder of the files; NULL: not opened */
    const char *folder;
    qn_dump_file *files;
    size_t count;
} qn_dump_side;

typedef struct qn_dump_choice {
    /* A dump, a folder that has one, or just one of .npy files */
    const char *folder;
    /* The side of a dump */
    qn_compared_side side;
    /* A dump without that side has no files of it */
    bool optional;
} qn_dump_choice;

/* All lives as long as the arena. */
QN_MUST_CHECK qn_status qn_dump_open(qn_dump_side *out, qn_context *ctx, qn_arena *arena,
                                     const qn_dump_choice *choice);
/* The file of the same layer; NULL: there is none. */
const qn_dump_file *qn_dump_match(const qn_dump_side *side, const qn_dump_file *file);

#endif
