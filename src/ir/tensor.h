/* Tensors and types. A tensor has contents; a type is what is known of a value before it has. */
#ifndef QN_TENSOR_H
#define QN_TENSOR_H

#include "ir/dtype.h"

/* One dimension: value >= 0 when known, else -1; `symbol` is its name in the model, or NULL. A
 * dimension can have both, when a symbol has been bound to a number. */
typedef struct qn_dim {
    int64_t value;
    const char *symbol;
} qn_dim;

typedef enum qn_type_kind {
    QN_TYPE_UNKNOWN,
    QN_TYPE_TENSOR,
    QN_TYPE_SEQUENCE,
    QN_TYPE_OPTIONAL,
    /* Kept for the round trip; nothing computes with it */
    QN_TYPE_MAP
} qn_type_kind;

typedef struct qn_type qn_type;
struct qn_type {
    qn_type_kind kind;
    /* The element type of a tensor, or the type of a map's keys; QN_UNDEFINED: it is not known. */
    qn_dtype dtype;
    /* The rank of a tensor; -1: it is not known. */
    int32_t rank;
    qn_dim dims[QN_MAX_RANK];
    /* The type within a sequence or an optional, or of a map's values. */
    const qn_type *element;
    /* Contents of a small integer tensor of rank 0 or 1, as far as they are known: shapes being
     * computed by the graph itself. NULL, or one per element. Unlike a dim, a known element may be
     * negative (Reshape's -1): the unknown value is QN_UNKNOWN_ELEMENT. */
    const qn_dim *elements;
    /* What a file calls the whole and each dimension ("IMAGE", "DATA_BATCH"): said again when it is
     * written. NULL: nothing; dim_denotations are as many as dims, each or NULL. */
    const char *denotation;
    const char *const *dim_denotations;
};
#define QN_UNKNOWN_ELEMENT INT64_MIN

static inline qn_dim qn_element_of_dim(qn_dim dim)
{
    return (qn_dim){dim.value < 0 ? QN_UNKNOWN_ELEMENT : dim.value, dim.symbol};
}
static inline qn_dim qn_dim_of_element(qn_dim element)
{
    return (qn_dim){element.value < 0 ? -1 : element.value, element.symbol};
}
static inline bool qn_element_known(qn_dim element)
{
    return element.value != QN_UNKNOWN_ELEMENT;
}

/* Two dims that are certainly the same: equal numbers, or both unknown with one symbol. */
bool qn_dim_same(qn_dim a, qn_dim b);
static inline qn_dim qn_dim_of(int64_t value)
{
    return (qn_dim){value, NULL};
}
static inline qn_dim qn_dim_unknown(void)
{
    return (qn_dim){-1, NULL};
}

qn_type qn_type_tensor(qn_dtype dtype, int32_t rank, const int64_t *dims);
qn_type qn_type_of(const qn_tensor *tensor);
/* All dims known (then copied to `dims`, which may be NULL). False for what is no tensor. */
bool qn_type_is_static(const qn_type *type, int64_t *dims);
/* False for a tensor type whose known dims alone make more bytes than memory has addresses for. */
bool qn_type_fits(const qn_type *type);
/* "float32[N,3,224,224]", "sequence(float32[?])"; always terminated. */
void qn_type_format(char *out, size_t size, const qn_type *type);

/* Elements of dims, checked: false when a dim is negative or the product or the bytes of it
 * overflow. */
bool qn_dims_count(int64_t *out, int32_t rank, const int64_t *dims);
bool qn_tensor_bytes(size_t *out, qn_dtype dtype, int32_t rank, const int64_t *dims);
/* Row-major strides in elements. */
void qn_dims_strides(int64_t *strides, int32_t rank, const int64_t *dims);

/* A tensor in `arena` with zeroed data. Strings point nowhere and have length 0. */
QN_MUST_CHECK qn_status qn_tensor_create(qn_tensor **out, qn_context *ctx, qn_arena *arena,
                                         const qn_type *type);
/* Deep, with strings and sequences. */
QN_MUST_CHECK qn_status qn_tensor_copy(qn_tensor *out, qn_context *ctx, qn_arena *arena,
                                       const qn_tensor *tensor);
/* Large constants stay where a mapped file has them, at any address. Kernels are given aligned
 * tensors only: whoever calls one with a constant asks this first and copies where it is false. */
bool qn_tensor_is_aligned(const qn_tensor *tensor);
/* Same type, shape and bits (strings by contents). */
bool qn_tensor_equal(const qn_tensor *a, const qn_tensor *b);
/* Both look at float32; others have no NaN and are finite here. */
bool qn_tensor_has_nan(const qn_tensor *tensor);
bool qn_tensor_is_finite(const qn_tensor *tensor);

#endif
