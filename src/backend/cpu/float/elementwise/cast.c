/* Cast between numbers of the usual types, Not, and the predicates IsNaN and IsInf. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/nn_attrs.h"

enum { CHUNK = 1024, ALONE_BELOW = 32 }; /* elements of an item; items that one thread does alone */

/* What stands in the table of kernels for a type. */
static const struct {
    qn_dtype dtype;
    qn_cast_type type;
} types[] = {
    {QN_FLOAT32, QN_CAST_F32},   {QN_FLOAT64, QN_CAST_F64}, {QN_FLOAT16, QN_CAST_F16},
    {QN_BFLOAT16, QN_CAST_BF16}, {QN_INT8, QN_CAST_I8},     {QN_UINT8, QN_CAST_U8},
    {QN_INT32, QN_CAST_I32},     {QN_INT64, QN_CAST_I64},   {QN_BOOL, QN_CAST_BOOL},
};

static qn_cast_type type_of(qn_dtype dtype)
{
    for (size_t i = 0; i < QN_COUNT_OF(types); i++) {
        if (types[i].dtype == dtype)
            return types[i].type;
    }
    return QN_CAST_TYPES;
}

typedef struct cast_state {
    qn_cast_fn *cast;
    int64_t count;
    /* The sizes of an element. */
    size_t x_size, y_size;
} cast_state;

typedef struct cast_work {
    const cast_state *state;
    char *y;
    const char *x;
} cast_work;

static void cast_range(const void *opaque, int64_t first, int64_t last)
{
    const cast_work *w = opaque;
    const cast_state *s = w->state;
    const int64_t from = first * CHUNK, to = QN_MIN(last * CHUNK, s->count);
    s->cast(w->y + (size_t)from * s->y_size, w->x + (size_t)from * s->x_size, to - from);
}

static qn_status cast_run(const void *state, void *bound, const qn_step_io *io)
{
    const cast_state *s = state;
    const cast_work work = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, (s->count + CHUNK - 1) / CHUNK, ALONE_BELOW, cast_range, &work);
    return QN_OK;
}

static const qn_kernel cast_kernel = {.name = "cast", .run = cast_run};

/* The node's one input to its one output by this kernel; NULL: there is none. */
static qn_status take(bool *taken, qn_claim *claim, qn_cast_fn *cast)
{
    qn_value *x = claim->node->in[0], *y = claim->node->out[0];
    qn_tensor in;
    if (!cast || !qn_build_shape(&in, claim->builder, x))
        return QN_OK;
    cast_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (cast_state){cast, qn_tensor_count(&in), qn_dtype_size(in.dtype),
                      qn_dtype_size(y->type.dtype)};
    qn_claim_in(claim, x, QN_ROWS);
    qn_claim_out(claim, y, QN_ROWS);
    claim->state = s;
    claim->kernel = &cast_kernel;
    *taken = true;
    return QN_OK;
}

qn_status qn_claim_cast(bool *taken, qn_claim *claim)
{
    const qn_value *x = claim->node->in[0], *y = claim->node->out[0];
    qn_tensor in, out;
    if (!y || !qn_build_shape(&in, claim->builder, x) || !qn_build_shape(&out, claim->builder, y))
        return QN_OK;
    const qn_cast_type from = type_of(in.dtype), to = type_of(out.dtype);
    if (from == QN_CAST_TYPES || to == QN_CAST_TYPES)
        return QN_OK;
    return take(taken, claim, qn_kernels_get()->cast[from][to]);
}

qn_status qn_claim_not(bool *taken, qn_claim *claim)
{
    return claim->node->out[0] ? take(taken, claim, qn_kernels_get()->negate) : QN_OK;
}

qn_status qn_claim_is_nan(bool *taken, qn_claim *claim)
{
    qn_tensor shape;
    return qn_claim_is_float(&shape, claim) ? take(taken, claim, qn_kernels_get()->is_nan) : QN_OK;
}

qn_status qn_claim_is_inf(bool *taken, qn_claim *claim)
{
    const qn_isinf_attrs *a = claim->node->attrs;
    qn_tensor shape;
    if (!qn_claim_is_float(&shape, claim))
        return QN_OK;
    return take(taken, claim,
                qn_kernels_get()->is_inf[a->detect_negative != 0][a->detect_positive != 0]);
}
