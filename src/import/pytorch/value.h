/* Values of Python and of PyTorch, as files hold them and as the code of a program computes
 * them. */
#ifndef QN_TORCH_VALUE_H
#define QN_TORCH_VALUE_H

#include "ir/graph.h"

typedef enum qn_torch_kind {
    QN_TORCH_NONE,
    QN_TORCH_BOOL,
    QN_TORCH_INT,
    QN_TORCH_REAL,
    QN_TORCH_TEXT,
    /* Lists of values, which several names can share */
    QN_TORCH_LIST,
    QN_TORCH_TUPLE,
    /* Keys and values in turn, in a list */
    QN_TORCH_DICT,
    QN_TORCH_TENSOR,
    /* An integer that the model computes: a value of the graph, int64 without axes */
    QN_TORCH_SIZE,
    /* An instance of a class of TorchScript */
    QN_TORCH_OBJECT,
    /* A storage of a pickle */
    QN_TORCH_STORAGE,
    /* A global name of a pickle, or a function or class of the code */
    QN_TORCH_GLOBAL,
} qn_torch_kind;

typedef struct qn_torch_value qn_torch_value;

typedef struct qn_torch_list {
    qn_torch_value *at;
    size_t count, capacity;
} qn_torch_list;

/* Numbers in a file, found by the key. */
typedef struct qn_torch_storage {
    const char *key;
    qn_dtype dtype;
    /* The bytes, once they were asked for; text NULL: not yet */
    qn_string bytes;
} qn_torch_storage;

/* A view that was taken along one axis: what is written to it is written to the base. */
typedef struct qn_torch_view {
    struct qn_torch_tensor *base;
    int64_t axis, start, end, step;
    /* The axis is gone: the view has the one element at `start`. */
    bool select;
    /* The base's writes when the view was taken. */
    uint32_t seen;
} qn_torch_view;

/* A tensor: what the graph computes, or what a file holds until it is asked for. */
typedef struct qn_torch_tensor {
    /* NULL: the storage has it */
    qn_value *value;
    /* The name of a weight, or NULL */
    const char *name;
    qn_torch_storage *storage;
    qn_dtype dtype;
    int32_t rank;
    int64_t dims[QN_MAX_RANK], strides[QN_MAX_RANK], offset;
    qn_torch_view view;
    /* How often something was written to it in place. */
    uint32_t writes;
    /* The layer that makes it cannot be read. */
    bool lost;
} qn_torch_tensor;

typedef struct qn_torch_object {
    /* "__torch__.torch.nn.modules.conv.Conv2d" */
    const char *type;
    /* The way to it from the model: "layer1.0.conv1"; NULL: it has none */
    const char *path;
    /* Names and values in turn */
    qn_torch_list fields;
} qn_torch_object;

struct qn_torch_value {
    qn_torch_kind kind;
    union {
        bool truth;
        int64_t number;
        double real;
        /* Also the name of a global */
        const char *text;
        qn_torch_list *list;
        qn_torch_tensor *tensor;
        qn_value *size;
        qn_torch_object *object;
        qn_torch_storage *storage;
    };
};

#define QN_TORCH_NOTHING ((qn_torch_value){.kind = QN_TORCH_NONE})

static inline qn_torch_value qn_torch_int(int64_t number)
{
    return (qn_torch_value){.kind = QN_TORCH_INT, .number = number};
}
static inline qn_torch_value qn_torch_bool(bool truth)
{
    return (qn_torch_value){.kind = QN_TORCH_BOOL, .truth = truth};
}
static inline qn_torch_value qn_torch_real(double real)
{
    return (qn_torch_value){.kind = QN_TORCH_REAL, .real = real};
}
static inline qn_torch_value qn_torch_text(const char *text)
{
    return (qn_torch_value){.kind = QN_TORCH_TEXT, .text = text};
}
static inline bool qn_torch_is_items(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_LIST || value->kind == QN_TORCH_TUPLE;
}
static inline bool qn_torch_is_none(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_NONE;
}

/* "a list", for messages. */
const char *qn_torch_kind_name(qn_torch_kind kind);
/* An empty list, tuple or dictionary. */
QN_MUST_CHECK qn_status qn_torch_new_list(qn_torch_value *out, qn_context *ctx, qn_arena *arena,
                                          qn_torch_kind kind);
QN_MUST_CHECK qn_status qn_torch_push(qn_torch_list *list, qn_context *ctx, qn_arena *arena,
                                      const qn_torch_value *item);
/* The value of a key among keys and values in turn, the last of them; NULL where there is none. */
qn_torch_value *qn_torch_get(const qn_torch_list *pairs, const qn_torch_value *key);
qn_torch_value *qn_torch_get_text(const qn_torch_list *pairs, const char *key);
QN_MUST_CHECK qn_status qn_torch_set(qn_torch_list *pairs, qn_context *ctx, qn_arena *arena,
                                     const qn_torch_value *key, const qn_torch_value *value);
/* A tensor that the graph computes. */
QN_MUST_CHECK qn_status qn_torch_of(qn_torch_value *out, qn_context *ctx, qn_arena *arena,
                                    qn_value *value);
/* Numbers, truths and texts compare as in Python; short lists and tuples by their elements; others
 * are equal when they are the same. */
bool qn_torch_equal(const qn_torch_value *a, const qn_torch_value *b);
/* PyTorch's number of an element type (c10::ScalarType), and back; QN_UNDEFINED: there is none. */
qn_dtype qn_torch_dtype(int64_t number);
int64_t qn_torch_dtype_number(qn_dtype dtype);

#endif
