/* PaddlePaddle's models: what its two kinds of files, ProgramDesc and PIR, are read into, and the
 * tools of the converters, which are rows of ops.def. */
#ifndef QN_PADDLE_H
#define QN_PADDLE_H

#include "import/builder.h"

/* ---- A program ------------------------------------------------------------------------------- */

typedef enum qn_paddle_kind {
    QN_PADDLE_INT,
    QN_PADDLE_REAL,
    QN_PADDLE_TEXT,
    QN_PADDLE_INTS,
    QN_PADDLE_REALS,
} qn_paddle_kind;

typedef struct qn_paddle_attr {
    const char *name;
    qn_paddle_kind kind;
    int64_t number;
    double real;
    const char *text;
    /* Integers, alone and in lists, have both */
    const int64_t *ints;
    const double *reals;
    size_t count;
} qn_paddle_attr;

/* Variables under one name, as an operator takes or gives them. */
typedef struct qn_paddle_slot {
    const char *name;
    const char **vars;
    size_t count;
} qn_paddle_slot;

typedef struct qn_paddle_row qn_paddle_row;

typedef struct qn_paddle_op {
    const char *type;
    /* NULL: the framework's operator has no row. */
    const qn_paddle_row *row;
    qn_paddle_slot *in, *out;
    size_t n_in, n_out;
    qn_paddle_attr *attrs;
    size_t n_attrs;
} qn_paddle_op;

/* A variable whose contents stand in the file of parameters. */
typedef struct qn_paddle_parameter {
    const char *name;
    qn_type type;
    qn_string bytes;
} qn_paddle_parameter;

/* What goes in or out, in the order of `place`. */
typedef struct qn_paddle_port {
    const char *name;
    /* The variable that has it */
    const char *var;
    qn_type type;
    int64_t place;
} qn_paddle_port;

typedef struct qn_paddle_program {
    qn_context *ctx;
    /* The arena of the model, which has all that the program points to. */
    qn_arena *arena;
    qn_paddle_op *ops;
    size_t n_ops, ops_capacity;
    qn_paddle_parameter *parameters;
    size_t n_parameters, parameters_capacity;
    qn_paddle_port *inputs, *outputs;
    size_t n_inputs, n_outputs, inputs_capacity, outputs_capacity;
} qn_paddle_program;

void qn_paddle_program_init(qn_paddle_program *p, qn_context *ctx, qn_arena *arena);
void qn_paddle_program_free(qn_paddle_program *p);
/* A ProgramDesc: .pdmodel, __model__. */
QN_MUST_CHECK qn_status qn_paddle_read_program(qn_paddle_program *p, const void *data, size_t size);
/* inference.json of PaddlePaddle 3. */
QN_MUST_CHECK qn_status qn_paddle_read_pir(qn_paddle_program *p, const void *data, size_t size);
/* Brings inputs and outputs into their order. */
void qn_paddle_sort_ports(qn_paddle_program *p);

/* Whether a file has parameters, one behind the other. */
bool qn_paddle_is_parameters(const qn_model_source *source);

/* The importer's `load`. */
QN_MUST_CHECK qn_status qn_paddle_load(qn_model **out, qn_model_source *source);

/* Both files from memory, which must outlive the model. */
typedef struct qn_paddle_bytes {
    qn_string program, parameters;
} qn_paddle_bytes;
QN_MUST_CHECK qn_status qn_paddle_load_bytes(qn_model **out, qn_context *ctx,
                                             const qn_paddle_bytes *bytes);

/* The element type of a number of VarType.Type; QN_UNDEFINED: it is none. */
qn_dtype qn_paddle_dtype_of(int64_t number);

/* ---- Parameters ------------------------------------------------------------------------------ */

/* Where parameters are: one file, or a folder that has a file for each. */
QN_MUST_CHECK qn_status qn_paddle_find_parameters(const char **out, qn_paddle_program *p,
                                                  const qn_model_source *source,
                                                  const char *program);
/* Fills in `bytes` of every parameter; the model keeps the files mapped. */
QN_MUST_CHECK qn_status qn_paddle_load_parameters(qn_paddle_program *p, qn_model *model,
                                                  const char *path);
/* The same from memory, which must outlive the program. */
QN_MUST_CHECK qn_status qn_paddle_read_parameters(qn_paddle_program *p, const void *data,
                                                  size_t size);

/* ---- Converters ------------------------------------------------------------------------------ */

/* A layer being converted. */
typedef struct qn_paddle_layer {
    qn_graph_builder *b;
    const qn_paddle_op *op;
    const qn_paddle_program *program;
    /* Values from this number on are the layer's own. */
    uint32_t first_value;
} qn_paddle_layer;

typedef qn_status qn_paddle_converter(qn_paddle_layer *l);

/* A row of ops.def. Slots and attributes are called as ProgramDesc calls them; PIR has them by
 * place. Lists are words with blanks between them. */
struct qn_paddle_row {
    /* What the table calls it, and what each kind of file does. */
    const char *name, *legacy, *pir;
    qn_paddle_converter *convert;
    const char *in, *out;
    /* The ONNX operator of converters that several rows share */
    const qn_op *onnx;
    const char *brief;
};

/* NULL: no row has that type. */
const qn_paddle_row *qn_paddle_row_of(const char *type, bool pir);

#define PADDLE_OP(name, legacy, pir, convert, in, out, onnx, brief)                                \
    qn_paddle_converter qn_paddle_##convert;
#include "import/paddle/ops.def"
#undef PADDLE_OP

/* Rows of ops.def. */
enum {
    QN_PADDLE_OPERATORS = 0
#define PADDLE_OP(name, legacy, pir, convert, in, out, onnx, brief) +1
#include "import/paddle/ops.def"
#undef PADDLE_OP
};
extern const qn_framework_op qn_paddle_operators[QN_PADDLE_OPERATORS];

/* Fails with the layer in front. */
#define qn_paddle_fail(l, status, ...) qn_graph_builder_fail((l)->b, status, __VA_ARGS__)

/* Words of a list: the next one, empty at the end. */
qn_string qn_paddle_word(const char **words);

/* ---- What a layer is told ----------------------------------------------------------------------
 * Slots and attributes by name: of several words the first that is there. */

bool qn_paddle_has(const qn_paddle_layer *l, const char *slot);
size_t qn_paddle_in_count(const qn_paddle_layer *l, const char *slot);
size_t qn_paddle_out_count(const qn_paddle_layer *l, const char *slot);
QN_MUST_CHECK qn_status qn_paddle_in(qn_value **out, const qn_paddle_layer *l, const char *slot);
QN_MUST_CHECK qn_status qn_paddle_in_at(qn_value **out, const qn_paddle_layer *l, const char *slot,
                                        size_t i);
/* NULL where the slot is empty. */
QN_MUST_CHECK qn_status qn_paddle_maybe(qn_value **out, const qn_paddle_layer *l, const char *slot);
/* What the slot is given means `value` from now on; a slot that nobody wants is let be. */
QN_MUST_CHECK qn_status qn_paddle_out(qn_paddle_layer *l, const char *slot, qn_value *value);
QN_MUST_CHECK qn_status qn_paddle_out_at(qn_paddle_layer *l, const char *slot, size_t i,
                                         qn_value *value);
/* Whether a layer or an output of the model reads what the slot is given. */
bool qn_paddle_wants(const qn_paddle_layer *l, const char *slot);
/* The rank of a value; fails where it is not known. */
QN_MUST_CHECK qn_status qn_paddle_rank(int32_t *out, const qn_paddle_layer *l,
                                       const qn_value *value);
/* An axis from -rank to rank - 1 as one from 0 on; fails where there is none. */
QN_MUST_CHECK qn_status qn_paddle_axis(int64_t *axis, const qn_paddle_layer *l, int32_t rank);

int64_t qn_paddle_int(const qn_paddle_layer *l, const char *names, int64_t fallback);
double qn_paddle_real(const qn_paddle_layer *l, const char *names, double fallback);
const char *qn_paddle_text(const qn_paddle_layer *l, const char *names, const char *fallback);
bool qn_paddle_says(const qn_paddle_layer *l, const char *names, const char *word);
/* Empty where there is none. */
qn_ints qn_paddle_ints(const qn_paddle_layer *l, const char *names);
/* The reals of a list, which may have been integers. */
QN_MUST_CHECK qn_status qn_paddle_reals(const double **out, size_t *count, const qn_paddle_layer *l,
                                        const char *names);
/* An element type, as a number or a word. */
qn_dtype qn_paddle_dtype(const qn_paddle_layer *l, const char *names, qn_dtype fallback);

/* The same of what may be an attribute or a value: the slots of these names are looked at first,
 * and must have contents that are known. */
QN_MUST_CHECK qn_status qn_paddle_number(int64_t *out, const qn_paddle_layer *l, const char *names,
                                         int64_t fallback);
QN_MUST_CHECK qn_status qn_paddle_scalar(double *out, const qn_paddle_layer *l, const char *names,
                                         double fallback);
QN_MUST_CHECK qn_status qn_paddle_list(qn_ints *out, const qn_paddle_layer *l, const char *names);
/* The same as int64[n], which the graph may compute; NULL: neither slot nor attribute. */
QN_MUST_CHECK qn_status qn_paddle_shape(qn_value **out, const qn_paddle_layer *l,
                                        const char *names);
/* Contents of a small integer value, as far as all of them are known. */
bool qn_paddle_contents(qn_ints *out, const qn_paddle_layer *l, const qn_value *value);

/* `paddings` of a window over n axes in ONNX's order, where the layer says neither SAME nor
 * VALID. */
QN_MUST_CHECK qn_status qn_paddle_pads(int64_t *pads, bool *same, const qn_paddle_layer *l,
                                       size_t n);

/* int64[n]: the number of the picture that each of n boxes is of, by how many each picture has. */
QN_MUST_CHECK qn_status qn_paddle_pictures_of(qn_value **out, const qn_paddle_layer *l,
                                              qn_value *boxes, qn_value *counts);
/* int64[N]: how many of the numbers of pictures [n] are each of the N (int64[1]) there are. */
QN_MUST_CHECK qn_status qn_paddle_count_pictures(qn_value **out, const qn_paddle_layer *l,
                                                 qn_value *pictures, qn_value *count);

/* ---- Nodes that converters need all the time ------------------------------------------------- */

QN_MUST_CHECK qn_status qn_paddle_make(qn_value **out, const qn_paddle_layer *l, const qn_op *op,
                                       qn_value *x);
QN_MUST_CHECK qn_status qn_paddle_make2(qn_value **out, const qn_paddle_layer *l, const qn_op *op,
                                        qn_value *x, qn_value *y);
/* With a constant of x's element type on the right. */
QN_MUST_CHECK qn_status qn_paddle_with(qn_value **out, const qn_paddle_layer *l, const qn_op *op,
                                       qn_value *x, double number);
QN_MUST_CHECK qn_status qn_paddle_cast(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                       qn_dtype to);
QN_MUST_CHECK qn_status qn_paddle_reshape(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                          const int64_t *dims, size_t count);
QN_MUST_CHECK qn_status qn_paddle_unsqueeze(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                            const int64_t *axes, size_t count);
QN_MUST_CHECK qn_status qn_paddle_squeeze(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                          const int64_t *axes, size_t count);
QN_MUST_CHECK qn_status qn_paddle_transpose(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                            const int64_t *perm, size_t count);
QN_MUST_CHECK qn_status qn_paddle_slice(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                        int64_t axis, int64_t from, int64_t to);
QN_MUST_CHECK qn_status qn_paddle_concat(qn_value **out, const qn_paddle_layer *l,
                                         qn_value *const *parts, size_t count, int64_t axis);
/* One dimension of x as int64[1]. */
QN_MUST_CHECK qn_status qn_paddle_dim(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                      int64_t axis);
/* The order that sorts [n], upwards or downwards; ties stay in their order. */
QN_MUST_CHECK qn_status qn_paddle_order(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                        bool down);
/* The rows of x of these numbers. */
QN_MUST_CHECK qn_status qn_paddle_rows(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                                       qn_value *index);
/* The numbers of those that are true, of bool[n]. */
QN_MUST_CHECK qn_status qn_paddle_where_true(qn_value **out, const qn_paddle_layer *l, qn_value *x);
/* A number of that type, of rank 0 */
QN_MUST_CHECK qn_status qn_paddle_number_of(qn_value **out, const qn_paddle_layer *l,
                                            qn_dtype dtype, double number);
/* Numbers of that type and these dims */
QN_MUST_CHECK qn_status qn_paddle_numbers(qn_value **out, const qn_paddle_layer *l, qn_dtype dtype,
                                          const double *numbers, int32_t rank, const int64_t *dims);
/* [N, spatial..., C] to [N, C, spatial...] where the layer says so, and back. */
bool qn_paddle_is_last(const qn_paddle_layer *l);
QN_MUST_CHECK qn_status qn_paddle_to_first(qn_value **x, const qn_paddle_layer *l);
QN_MUST_CHECK qn_status qn_paddle_from_first(qn_value **x, const qn_paddle_layer *l);

#endif
