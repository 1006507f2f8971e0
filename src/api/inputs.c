#include "api/inputs.h"

#include "run/plan.h"

enum { PIECE = 1024 };

/* Splitmix64: every seed, 0 too, starts a good sequence. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void fill(qn_tensor *tensor, uint64_t state)
{
    const qn_dtype_info *info = qn_dtype_get(tensor->dtype);
    const bool real = info->kind == QN_KIND_FLOAT || info->kind == QN_KIND_COMPLEX;
    const bool complex = info->kind == QN_KIND_COMPLEX;
    const int64_t count = qn_tensor_count(tensor) * (complex ? 2 : 1);
    const qn_dtype dtype = !complex                        ? tensor->dtype
                           : tensor->dtype == QN_COMPLEX64 ? QN_FLOAT32
                                                           : QN_FLOAT64;
    double numbers[PIECE];
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = next_random(&state);
            numbers[i] = real ? (double)(bits >> 40) * 0x1p-23 - 1.0 : (double)(bits >> 63);
        }
        qn_store_f64(tensor->data, dtype, at, numbers, n);
    }
}

qn_status qn_tensor_random(qn_tensor *out, qn_context *ctx, qn_arena *arena, const qn_tensor *shape,
                           uint64_t seed)
{
    const qn_type type = qn_type_of(shape);
    qn_tensor *made;
    QN_TRY(qn_tensor_create(&made, ctx, arena, &type));
    if (made->dtype != QN_STRING)
        fill(made, seed);
    *out = *made;
    return QN_OK;
}

qn_status qn_inputs_random(qn_tensor **out, qn_context *ctx, qn_arena *arena, const qn_plan *plan,
                           uint64_t seed)
{
    const qn_graph *graph = plan->model->graph;
    qn_tensor *inputs = qn_arena_array(arena, graph->n_inputs + 1, sizeof *inputs);
    QN_TRY_ALLOC(ctx, inputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        qn_tensor shape;
        qn_plan_input(&shape, plan, i);
        if (shape.rank < 0)
            return qn_fail(ctx, QN_E_INVALID,
                           "input '%s' has no known type to make random numbers for: give a file",
                           graph->inputs[i]->name);
        QN_TRY(qn_tensor_random(&inputs[i], ctx, arena, &shape, seed + i));
    }
    *out = inputs;
    return QN_OK;
}
