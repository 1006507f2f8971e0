/* Operators of PyTorch: a row of aten.def for each, which exported programs and TorchScript share.
 * A call binds values to the names of the row's signature; its converter asks for them by name,
 * builds nodes, and gives the result. */
#ifndef QN_ATEN_H
#define QN_ATEN_H

#include "import/pytorch/torch.h"

enum { QN_ATEN_PARAMETERS = 24 };

typedef struct qn_aten_call qn_aten_call;

/* A row of aten.def. */
typedef struct qn_aten_op {
    const char *name;
    qn_status (*convert)(qn_aten_call *c);
    /* The operator of ONNX that it becomes, where the converter serves several */
    const qn_op *onnx;
    /* "self, dim|other=None, keepdim=False": names, other names of the same, defaults */
    const char *signature;
} qn_aten_op;

/* An argument of a call: by its place where it has no name. */
typedef struct qn_aten_argument {
    const char *name;
    qn_torch_value value;
} qn_aten_argument;

typedef struct qn_aten_parameter {
    /* It lies in the signature: all names, without the default. */
    qn_string names;
    qn_torch_value value;
    bool given;
} qn_aten_parameter;

struct qn_aten_call {
    qn_torch *t;
    qn_graph_builder *b;
    const qn_aten_op *op;
    qn_aten_parameter parameters[QN_ATEN_PARAMETERS];
    size_t n_parameters;
    qn_torch_value result;
};

/* Runs the operator `name` ("conv2d", "add_"). */
QN_MUST_CHECK qn_status qn_aten_run(qn_torch_value *out, qn_torch *t, const char *name,
                                    const qn_aten_argument *arguments, size_t count);
/* NULL where no row has the name, with or without the "_" of what works in place. */
const qn_aten_op *qn_aten_find(const char *name);
enum {
#define QN_ATEN(name, converter, onnx, signature) +1
    QN_ATEN_COUNT = 0
#include "import/pytorch/aten.def"
#undef QN_ATEN
};
extern const qn_framework_op qn_aten_listing[];

/* ---- For converters: arguments --------------------------------------------------------------- */

/* QN_E_UNSUPPORTED with the layer in front. */
#define qn_aten_unsupported(c, ...) qn_graph_builder_fail((c)->b, QN_E_UNSUPPORTED, __VA_ARGS__)
/* Never NULL: what the operator has no parameter for is None. */
const qn_torch_value *qn_aten_value(const qn_aten_call *c, const char *name);
bool qn_aten_has(const qn_aten_call *c, const char *name);
QN_MUST_CHECK qn_status qn_aten_tensor(qn_value **out, qn_aten_call *c, const char *name);
/* NULL for None. */
QN_MUST_CHECK qn_status qn_aten_optional(qn_value **out, qn_aten_call *c, const char *name);
/* A list of tensors in the arena. */
QN_MUST_CHECK qn_status qn_aten_tensors(qn_value ***out, size_t *count, qn_aten_call *c,
                                        const char *name);
QN_MUST_CHECK qn_status qn_aten_int(int64_t *out, qn_aten_call *c, const char *name);
QN_MUST_CHECK qn_status qn_aten_real(double *out, qn_aten_call *c, const char *name);
/* False for None too. */
bool qn_aten_flag(const qn_aten_call *c, const char *name);
/* At most QN_MAX_RANK known integers; a single one is a list of one, None an empty list. */
QN_MUST_CHECK qn_status qn_aten_ints(int64_t *out, size_t *count, qn_aten_call *c,
                                     const char *name);
/* The same, where one stands for all of `count`. */
QN_MUST_CHECK qn_status qn_aten_each(int64_t *out, size_t count, qn_aten_call *c, const char *name);
/* The tensor and its rank. */
QN_MUST_CHECK qn_status qn_aten_ranked(qn_value **out, int32_t *rank, qn_aten_call *c,
                                       const char *name);
/* An axis counted from the begin. */
QN_MUST_CHECK qn_status qn_aten_axis(int64_t *out, qn_aten_call *c, const char *name, int32_t rank);
/* The axes named, ascending as given; None and an empty list: all. */
QN_MUST_CHECK qn_status qn_aten_axes(int64_t *out, size_t *count, qn_aten_call *c, const char *name,
                                     int32_t rank);
/* The items of a list or tuple; a single value is one item. */
void qn_aten_items(const qn_torch_value **out, size_t *count, const qn_aten_call *c,
                   const char *name);
/* The type that `dtype` names, or the fallback. */
QN_MUST_CHECK qn_status qn_aten_dtype(qn_dtype *out, qn_aten_call *c, const char *name,
                                      qn_dtype fallback);

/* ---- For converters: results ----------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_aten_return(qn_aten_call *c, qn_value *value);
/* A tuple; NULL: None. */
QN_MUST_CHECK qn_status qn_aten_return_tuple(qn_aten_call *c, qn_value *const *values,
                                             size_t count);
QN_MUST_CHECK qn_status qn_aten_return_list(qn_aten_call *c, qn_value *const *values, size_t count);

/* ---- For converters: building ---------------------------------------------------------------- */

static inline qn_dtype qn_dtype_of(const qn_value *value)
{
    return value->type.dtype == QN_UNDEFINED ? QN_FLOAT32 : value->type.dtype;
}
QN_MUST_CHECK qn_status qn_aten_unary_node(qn_value **out, qn_aten_call *c, const qn_op *op,
                                           qn_value *x);
QN_MUST_CHECK qn_status qn_aten_binary_node(qn_value **out, qn_aten_call *c, const qn_op *op,
                                            qn_value *x, qn_value *y);
/* With a number of the type of x. */
QN_MUST_CHECK qn_status qn_aten_with_number(qn_value **out, qn_aten_call *c, const qn_op *op,
                                            qn_value *x, double number);
/* A constant without axes of the type of x. */
QN_MUST_CHECK qn_status qn_aten_number_like(qn_value **out, qn_aten_call *c, const qn_value *x,
                                            double number);
QN_MUST_CHECK qn_status qn_aten_cast(qn_value **out, qn_aten_call *c, qn_value *x, qn_dtype to);
/* The arguments in the type that PyTorch computes with, which is given too. */
QN_MUST_CHECK qn_status qn_aten_promote(qn_value **out, qn_dtype *dtype, qn_aten_call *c,
                                        const char *const *names, size_t count);
QN_MUST_CHECK qn_status qn_aten_unsqueeze(qn_value **out, qn_aten_call *c, qn_value *x,
                                          int64_t axis);
QN_MUST_CHECK qn_status qn_aten_squeeze(qn_value **out, qn_aten_call *c, qn_value *x, int64_t axis);
QN_MUST_CHECK qn_status qn_aten_reshape(qn_value **out, qn_aten_call *c, qn_value *x,
                                        const int64_t *shape, size_t count);
/* [start, end) of an axis. */
QN_MUST_CHECK qn_status qn_aten_slice(qn_value **out, qn_aten_call *c, qn_value *x, int64_t axis,
                                      int64_t start, int64_t end);
QN_MUST_CHECK qn_status qn_aten_transpose(qn_value **out, qn_aten_call *c, qn_value *x, int64_t a,
                                          int64_t b);

/* ---- Converters ------------------------------------------------------------------------------ */

#define QN_ATEN_CONVERTER(id) qn_status qn_aten_##id(qn_aten_call *c);
#include "import/pytorch/aten_converters.def"
#undef QN_ATEN_CONVERTER

#endif
