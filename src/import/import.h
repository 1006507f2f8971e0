/* Model files into graphs. */
#ifndef QN_IMPORT_H
#define QN_IMPORT_H

#include "ir/graph.h"

/* What a model is read from: a file, or a folder that has its files. */
typedef struct qn_model_source {
    qn_context *ctx;
    const char *path;
    /* Never NULL. */
    const qn_model_load_options *options;
    bool is_folder;
    /* The whole file; without data for a folder. An importer that keeps it takes it away. */
    qn_map map;
} qn_model_source;

/* An operator of a framework that its importer reads. */
typedef struct qn_framework_op {
    const char *name, *brief;
} qn_framework_op;

/* Load options that only some frameworks have a use for. */
enum {
    QN_IMPORT_WEIGHTS = 1,
    QN_IMPORT_ENDS = 2,
    QN_IMPORT_LAYOUT = 4,
    QN_IMPORT_SHAPES = 8,
};

/* A framework: a row of importers.def. */
typedef struct qn_importer {
    /* What options call it, and what people do. */
    const char *name, *title;
    /* The framework that this is a kind of files of, or NULL: its name means this importer too,
     * where it recognizes the file. */
    const char *family;
    /* QN_IMPORT_...: the options that it takes; a note says that others have no effect. */
    unsigned takes;
    /* What the source looks like when it is of this framework ("a TensorFlow Lite model"), else
     * NULL. It reads only what files differ in: a broken file may be recognized, or not. */
    const char *(*detect)(const qn_model_source *source);
    /* Makes a graph as graph.h wants it, every operator in its latest form. Messages need not name
     * the path. NULL: models of this framework cannot be read yet. */
    qn_status (*load)(qn_model **out, qn_model_source *source);
    /* A model may be a name that no file has: `load` is called without data then. */
    bool names;
    /* One line for help. */
    const char *brief;
    /* What `quench ops --framework` lists: the rows of the framework's table of operators. */
    const qn_framework_op *operators;
    size_t n_operators;
} qn_importer;

#define QN_IMPORTER(id) extern const qn_importer qn_importer_##id;
#include "import/importers.def"
#undef QN_IMPORTER

extern const qn_importer *const qn_importers[];
extern const size_t qn_importers_count;

/* Reads a model of the framework that the options name, or of the one that the file looks like;
 * what looks like none is read as ONNX. Messages begin with the path. */
QN_MUST_CHECK qn_status qn_import(qn_model **out, qn_context *ctx, const char *path,
                                  const qn_model_load_options *options);
/* The model keeps the file mapped as long as it lives. */
QN_MUST_CHECK qn_status qn_import_keep_map(qn_model *model, qn_map *map);

/* ---- ONNX ------------------------------------------------------------------------------------ */

/* Reads an ONNX file and the external data it names. The graph comes out as graph.h wants it:
 * sorted, every operator in its latest form, model-local functions inlined, Constant nodes and
 * sparse initializers turned into plain constants, types inferred as far as the file has them. An
 * initializer that is also listed as an input is a constant. Messages begin with the path. */
QN_MUST_CHECK qn_status qn_import_onnx(qn_model **out, qn_context *ctx, const char *path);
/* The same from memory, which must outlive the model. External data is refused. */
QN_MUST_CHECK qn_status qn_import_onnx_memory(qn_model **out, qn_context *ctx, const void *data,
                                              size_t size);
/* One value in the form of ONNX's test folders: a TensorProto, SequenceProto or OptionalProto, as
 * `kind` says. It may point into `data` and into `arena`. */
QN_MUST_CHECK qn_status qn_import_onnx_value(qn_tensor *out, qn_context *ctx, qn_arena *arena,
                                             qn_type_kind kind, const void *data, size_t size);

#endif
