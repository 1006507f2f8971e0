/* ReduceMax and ReduceMin of bytes, the only integers so short that they take: the bits of the
 * numbers, inverted where that makes their order the one of unsigned numbers, largest first. */
#include "backend/cpu/copy/parts.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/float/reduction.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/parallel.h"
#include "ops/move.h"

enum { PART = 64 }; /* results of an item where they stand side by side */

typedef struct state {
    const qn_q_kernels *kernels;
    qn_reduction_axes kept, reduced;
    /* Elements of a group lie apart, those of neighbouring groups side by side. */
    bool by_lanes;
    int32_t flip;
    /* Items along kept.dims[0]. */
    int64_t parts;
    /* Where the elements of a group lie; where not by lanes, the rows of them. */
    int64_t *offsets, n;
} state;

typedef struct work {
    const state *s;
    const uint8_t *x;
    uint8_t *y;
} work;

static const uint8_t *group(const work *w, int64_t result)
{
    const qn_reduction_axes *kept = &w->s->kept;
    return w->x + qn_dims_offset(result, kept->rank, kept->dims, kept->steps);
}

/* Item: PART neighbouring results. */
static void lanes_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    for (int64_t i = first; i < last; i++) {
        const int64_t at = i % s->parts * PART, width = s->kept.dims[0];
        const int64_t result = i / s->parts * width + at;
        const qn_q_taps taps = {group(w, result), s->offsets, s->n, 0};
        s->kernels->largest(w->y + result, &taps, QN_MIN(PART, width - at), s->flip);
    }
}

/* Item: a result. */
static void rows_range(const void *opaque, int64_t first, int64_t last)
{
    const work *w = opaque;
    const state *s = w->s;
    for (int64_t i = first; i < last; i++) {
        const uint8_t *x = group(w, i);
        int32_t most = 0;
        for (int64_t r = 0; r < s->n; r++)
            most = QN_MAX(most,
                          s->kernels->largest_row(x + s->offsets[r], s->reduced.dims[0], s->flip) ^
                              s->flip);
        w->y[i] = (uint8_t)(most ^ s->flip);
    }
}

static qn_status extreme_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    const work w = {s, io->in[0]->data, io->out[0]->data};
    (void)bound;
    if (s->by_lanes)
        qn_parallel(io->threads, s->kept.count / s->kept.dims[0] * s->parts,
                    QN_Q_CHUNK * QN_Q_ALONE / (s->n * QN_MIN(PART, s->kept.dims[0])) + 1,
                    lanes_range, &w);
    else
        qn_parallel(io->threads, s->kept.count, QN_Q_CHUNK * QN_Q_ALONE / s->reduced.count + 1,
                    rows_range, &w);
    return QN_OK;
}

static const qn_kernel extreme_kernel = {.name = "int extreme", .run = extreme_run};

/* ---- Claim ----------------------------------------------------------------------------------- */

/* Rows are one run of their own; of lanes every element is. */
static qn_status list_offsets(state *s, const qn_claim *claim)
{
    const int32_t from = s->by_lanes ? 0 : 1;
    s->n = s->by_lanes ? s->reduced.count : s->reduced.count / s->reduced.dims[0];
    s->offsets = qn_build_alloc(claim->builder, (size_t)s->n * sizeof *s->offsets);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s->offsets);
    for (int64_t i = 0; i < s->n; i++)
        s->offsets[i] = qn_dims_offset(i, QN_MAX(s->reduced.rank - from, 0), s->reduced.dims + from,
                                       s->reduced.steps + from);
    return QN_OK;
}

/* Channels last where x is, and what is left of it has the same order in both layouts or keeps the
 * dims. */
static qn_layout layout_for(const qn_claim *claim, const qn_tensor *x, const bool *reduced,
                            bool keeps)
{
    bool image = x->rank > 2;
    for (int32_t d = 2; d < x->rank && image; d++)
        image = reduced[d] || keeps || reduced[1];
    return image ? qn_q_layout(claim, claim->node->in[0]) : QN_ROWS;
}

static void describe(state *s, const qn_tensor *x, const bool *reduced, bool last)
{
    bool marks[QN_MAX_RANK];
    qn_reduction_plan plan;
    qn_tensor shape = *x;
    for (int32_t d = 0; d < x->rank; d++)
        marks[d] = reduced[!last || d == 0 ? d : d == x->rank - 1 ? 1 : d + 1];
    if (last)
        qn_dims_last(shape.dims, x->dims, x->rank);
    qn_reduction_plan_make(&plan, &shape, marks);
    s->kernels = qn_q_kernels_get();
    s->kept = plan.kept;
    s->reduced = plan.reduced;
    s->by_lanes = plan.by_lanes;
    s->parts = (plan.kept.dims[0] + PART - 1) / PART;
    s->flip = qn_q_side_of(x->dtype, 0).flip;
}

/* A group of more elements is left to the reference: its offsets would be a long list. */
enum { MOST_REDUCED = 1 << 20 };

static qn_status claim_extreme(bool *taken, qn_claim *claim, const qn_tensor *x,
                               const bool *reduced)
{
    const qn_node *node = claim->node;
    qn_tensor y;
    if (!qn_build_shape(&y, claim->builder, node->out[0]) || qn_tensor_count(x) == 0)
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    const qn_layout layout = layout_for(claim, x, reduced, y.rank == x->rank);
    describe(s, x, reduced, layout.kind == QN_LAYOUT_CHANNELS_LAST);
    if (s->reduced.count > MOST_REDUCED)
        return QN_OK;
    if (node->op == &qn_op_ReduceMin)
        s->flip ^= UINT8_MAX;
    QN_TRY(list_offsets(s, claim));
    qn_claim_in(claim, node->in[0], layout);
    qn_claim_out(claim, node->out[0], y.rank == x->rank ? layout : QN_ROWS);
    claim->state = s;
    claim->kernel = &extreme_kernel;
    *taken = true;
    return QN_OK;
}

qn_status qn_claim_q_extreme(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    bool reduced[QN_MAX_RANK];
    qn_tensor x;
    if (node->in[0]->data || !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_q_is_integer(x.dtype) || qn_dtype_size(x.dtype) != 1 ||
        !qn_reduction_mark(reduced, node, x.rank))
        return QN_OK;
    return claim_extreme(taken, claim, &x, reduced);
}
