/* Pad with what the tensor itself has (reflect, edge, wrap): what each place of a dim shows is
 * known when the plan is made, so that rows are copied whole and their ends number by number. */
#include "backend/cpu/copy/parts.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/pad.h"
#include "ops/tensor_attrs.h"

enum { ALONE_BELOW = 32768 }; /* bytes that one thread copies faster by itself */

/* Dims in the order of memory, of which one may be a block of channels more. */
enum { DIMS = QN_MAX_RANK + 1 };

typedef struct pad_state {
    /* Dims behind the last one with pads are a unit, whose bytes these are. */
    int32_t rank;
    size_t unit;
    int64_t dims[DIMS];
    /* The bytes from the tensor's begin to what each place of a dim shows. */
    int64_t *shown[DIMS];
    /* Where the inside of a row begins and how long it is; the number of rows. */
    int64_t before, inside, rows;
} pad_state;

typedef struct pad_work {
    const pad_state *s;
    uint8_t *y;
    const uint8_t *x;
} pad_work;

/* ---- Running --------------------------------------------------------------------------------- */

static void copy_units(uint8_t *y, const uint8_t *x, const pad_state *s, int64_t from, int64_t to)
{
    const int64_t *shown = s->shown[s->rank - 1];
    for (int64_t i = from; i < to; i++)
        qn_move_bytes(y + (size_t)i * s->unit, x + shown[i], s->unit);
}

static void pad_range(const void *opaque, int64_t first, int64_t last)
{
    const pad_work *w = opaque;
    const pad_state *s = w->s;
    const int32_t inner = s->rank - 1;
    const int64_t width = s->dims[inner], after = s->before + s->inside;
    for (int64_t row = first; row < last; row++) {
        uint8_t *y = w->y + (size_t)(row * width) * s->unit;
        const uint8_t *x = w->x;
        int64_t rest = row;
        for (int32_t d = inner - 1; d >= 0; d--) {
            x += s->shown[d][rest % s->dims[d]];
            rest /= s->dims[d];
        }
        copy_units(y, x, s, 0, s->before);
        memcpy(y + (size_t)s->before * s->unit, x, (size_t)s->inside * s->unit);
        copy_units(y, x, s, after, width);
    }
}

static qn_status pad_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const pad_state *s = opaque;
    const pad_work w = {s, io->out[0]->data, io->in[0]->data};
    const int64_t bytes = s->dims[s->rank - 1] * (int64_t)s->unit;
    (void)bound;
    qn_parallel(io->threads, s->rows, ALONE_BELOW / bytes + 1, pad_range, &w);
    return QN_OK;
}

static const qn_kernel pad_kernel = {.name = "pad", .run = pad_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

/* A tensor and its pads in the order of memory. */
typedef struct padded {
    int32_t rank;
    int64_t dims[DIMS], before[DIMS], after[DIMS];
} padded;

/* False where something is cut off, or in blocks of channels more than the image is padded. */
static bool in_memory(padded *out, const qn_tensor *x, const qn_pad_amounts *a, qn_layout layout)
{
    const bool last = layout.kind == QN_LAYOUT_CHANNELS_LAST;
    *out = (padded){.rank = x->rank};
    for (int32_t d = 0; d < x->rank; d++) {
        const int32_t from = !last || d == 0 ? d : d == x->rank - 1 ? 1 : d + 1;
        out->dims[d] = x->dims[from];
        out->before[d] = a->before[from];
        out->after[d] = a->after[from];
        if (out->before[d] < 0 || out->after[d] < 0)
            return false;
    }
    if (layout.kind != QN_LAYOUT_BLOCKED)
        return true;
    out->dims[1] = (out->dims[1] + layout.block - 1) / layout.block;
    out->dims[out->rank++] = layout.block;
    return out->before[1] + out->after[1] == 0;
}

/* The layout that the tensor has, where its channels get no pads. */
static qn_layout layout_for(const qn_claim *claim, const qn_tensor *x, const qn_pad_amounts *a)
{
    const qn_layout layout = qn_build_layout(claim->builder, claim->node->in[0]);
    padded p;
    const bool is_usual = x->rank > 2 && in_memory(&p, x, a, layout);
    return is_usual && (x->dtype == QN_FLOAT32 || qn_q_is_integer(x->dtype)) ? layout : QN_ROWS;
}

static qn_status list_shown(pad_state *s, const qn_claim *claim, const padded *p, int64_t mode)
{
    int64_t step = (int64_t)s->unit;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        s->shown[d] = qn_build_alloc(claim->builder, (size_t)s->dims[d] * sizeof **s->shown);
        QN_TRY_ALLOC(qn_build_context(claim->builder), s->shown[d]);
        for (int64_t i = 0; i < s->dims[d]; i++)
            s->shown[d][i] = step * qn_pad_source(mode, i - p->before[d], p->dims[d]);
        step *= p->dims[d];
    }
    return QN_OK;
}

static qn_status describe(pad_state *s, const qn_claim *claim, const padded *p, size_t size)
{
    const int64_t mode = ((const qn_pad_attrs *)claim->node->attrs)->mode;
    s->rank = p->rank;
    s->unit = size;
    for (; s->rank > 1 && p->before[s->rank - 1] + p->after[s->rank - 1] == 0; s->rank--)
        s->unit *= (size_t)p->dims[s->rank - 1];
    s->rows = 1;
    for (int32_t d = 0; d < s->rank; d++) {
        s->dims[d] = p->before[d] + p->dims[d] + p->after[d];
        s->rows *= d < s->rank - 1 ? s->dims[d] : 1;
    }
    s->before = p->before[s->rank - 1];
    s->inside = p->dims[s->rank - 1];
    return list_shown(s, claim, p, mode);
}

qn_status qn_claim_pad_modes(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_pad_amounts amounts;
    qn_tensor x, y;
    padded p;
    if (((const qn_pad_attrs *)node->attrs)->mode == QN_PAD_CONSTANT || node->in[0]->data ||
        !qn_build_shape(&x, claim->builder, node->in[0]) || x.rank == 0 || x.dtype == QN_STRING ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || qn_tensor_count(&x) == 0 ||
        !qn_pad_read_node(&amounts, node))
        return QN_OK;
    const qn_layout layout = layout_for(claim, &x, &amounts);
    if (!in_memory(&p, &x, &amounts, layout))
        return QN_OK;
    pad_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    QN_TRY(describe(s, claim, &p, qn_dtype_size(x.dtype)));
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, node->out[0], layout);
    claim->state = s;
    claim->kernel = &pad_kernel;
    *taken = true;
    return QN_OK;
}
