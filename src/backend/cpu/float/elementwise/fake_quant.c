/* A QuantizeLinear that only feeds the DequantizeLinear of the same parameters: the float that
 * comes out is clamp(rint(x / scale), low - zero, high - zero) * scale, computed in one pass in any
 * layout. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/kernels.h"
#include "backend/cpu/parallel.h"
#include "ops/eval.h"
#include "ops/nn_attrs.h"

enum { CHUNK = 1024, ALONE_BELOW = 16 }; /* floats of an item; items that one thread does alone */

typedef struct quant_state {
    qn_map_fn *map;
    qn_stage stage;
    /* Floats, padding included: zero stays zero. */
    int64_t count;
} quant_state;

typedef struct quant_work {
    const quant_state *state;
    float *y;
    const float *x;
} quant_work;

static void quant_range(const void *opaque, int64_t first, int64_t last)
{
    const quant_work *w = opaque;
    const int64_t from = first * CHUNK, to = QN_MIN(last * CHUNK, w->state->count);
    w->state->map(w->y + from, w->x + from, to - from, &w->state->stage, NULL, QN_SPREAD_ONE);
}

static qn_status quant_run(const void *state, void *bound, const qn_step_io *io)
{
    const quant_state *s = state;
    const quant_work work = {s, io->out[0]->data, io->in[0]->data};
    (void)bound;
    qn_parallel(io->threads, (s->count + CHUNK - 1) / CHUNK, ALONE_BELOW, quant_range, &work);
    return QN_OK;
}

static const qn_kernel quant_kernel = {.name = "fake quant", .run = quant_run};

/* The one number of a constant input; `standard` where it is left out. */
static bool read_one(double *out, const qn_node *node, int32_t slot, double standard)
{
    const qn_value *value = slot < node->n_in ? node->in[slot] : NULL;
    *out = standard;
    if (!value)
        return true;
    if (!value->data || qn_tensor_count(value->data) != 1)
        return false;
    *out = qn_tensor_f64(value->data, 0);
    return true;
}

/* Smallest and largest number of the 8- and 16-bit types. */
static bool range_of(double *low, double *high, qn_dtype dtype)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    if ((info->kind != QN_KIND_INT && info->kind != QN_KIND_UINT) || info->bits > 16)
        return false;
    const double values = (double)(1 << info->bits);
    *low = info->kind == QN_KIND_INT ? -values / 2 : 0;
    *high = *low + values - 1;
    return true;
}

/* Scale in float32, since x is divided by it in float32. */
static bool read_stage(qn_stage *stage, const qn_node *quantize, const qn_node *dequantize)
{
    double scale, zero, scale_back, zero_back, low, high;
    if (!read_one(&scale, quantize, 1, 0) || !read_one(&zero, quantize, 2, 0) ||
        !read_one(&scale_back, dequantize, 1, 0) || !read_one(&zero_back, dequantize, 2, 0) ||
        scale != scale_back || zero != zero_back || !(scale > 0) ||
        quantize->in[1]->data->dtype != QN_FLOAT32 ||
        dequantize->in[1]->data->dtype != QN_FLOAT32 ||
        !range_of(&low, &high, quantize->out[0]->type.dtype))
        return false;
    *stage =
        (qn_stage){QN_FN_FAKE_QUANT, (float)scale, (float)(low - zero), (float)(high - zero), -1};
    return true;
}

qn_status qn_claim_fake_quant(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_node *back = qn_build_fusible(claim->builder, node->out[0]);
    qn_tensor shape;
    size_t bytes;
    qn_stage stage;
    if (!back || back->op != &qn_op_DequantizeLinear || back->in[0] != node->out[0] ||
        node->in[0]->data || !qn_build_shape(&shape, claim->builder, node->in[0]) ||
        shape.dtype != QN_FLOAT32 || back->out[0]->type.dtype != QN_FLOAT32 ||
        !read_stage(&stage, node, back))
        return QN_OK;
    const qn_layout layout = qn_build_layout(claim->builder, node->in[0]);
    quant_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    if (!qn_layout_bytes(&bytes, layout, &shape))
        return QN_OK;
    *s = (quant_state){qn_kernels_get()->map[QN_FN_FAKE_QUANT], stage,
                       (int64_t)(bytes / sizeof(float))};
    qn_claim_add(claim, back);
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, back->out[0], layout);
    claim->in_place = 0;
    claim->state = s;
    claim->kernel = &quant_kernel;
    *taken = true;
    return QN_OK;
}
