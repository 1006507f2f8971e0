/* Layers that lie in a folder as .npy files. */
#ifndef QN_DUMP_READ_H
#define QN_DUMP_READ_H

#include "compare/dump.h"

typedef struct qn_dump_file {
    int64_t index;
    const char *name;        /* of the tensor, or of the file where no index tells it */
    const char *node, *op;   /* "": not known */
    const char *path, *stem; /* stem: name of the file without its ending */
    qn_dtype dtype;          /* as of qn_compare_row */
    float scale;
    int64_t zero;
    bool through, balanced;
} qn_dump_file;

typedef struct qn_dump_side {
    const char *folder; /* in which the files are; NULL: not opened */
    qn_dump_file *files;
    size_t count;
} qn_dump_side;

typedef struct qn_dump_choice {
    const char *folder;    /* a dump, a folder that has one, or just one of .npy files */
    qn_compared_side side; /* of a dump */
    bool optional;         /* a dump without that side has no files of it */
} qn_dump_choice;

/* All lives as long as the arena. */
QN_MUST_CHECK qn_status qn_dump_open(qn_dump_side *out, qn_context *ctx, qn_arena *arena,
                                     const qn_dump_choice *choice);
/* The file of the same layer; NULL: there is none. */
const qn_dump_file *qn_dump_match(const qn_dump_side *side, const qn_dump_file *file);

#endif
