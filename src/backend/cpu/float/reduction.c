/* Reductions and normalizations of float32: groups, tiles and parts shared among threads. */
#include "backend/cpu/float/reduction.h"

#include <math.h>

#include "backend/cpu/parallel.h"
#include "ops/move.h"
#include "ops/reduce.h"

enum {
    /* Elements that make an item worth its while. */
    ITEM = 16384,
    /* Elements of a part. */
    PART = 32768,
    /* Parts of a group. */
    MOST_PARTS = 64,
    /* To share without parts. */
    ENOUGH_ITEMS = 32,
    /* Elements for which waking the other threads does not pay. */
    ALONE_BELOW = 131072,
    /* Two rounds: an element is that much more work. */
    MORE_ROUNDS = 8
};

/* ---- Plan ------------------------------------------------------------------------------------ */

static void axes_add(qn_reduction_axes *a, int64_t dim, int64_t step, bool joins)
{
    if (joins) {
        a->dims[a->rank - 1] *= dim;
    } else {
        a->dims[a->rank] = dim;
        a->steps[a->rank++] = step;
    }
    a->count *= dim;
}

static qn_reduction_axes axes_begin(void)
{
    return (qn_reduction_axes){.dims = {1}, .count = 1};
}

static int64_t whole_vectors(int64_t count)
{
    return (count + 15) / 16 * 16; /* of every instruction set */
}

/* Rows: as many as make an item. Lanes: pieces of rows that are long enough to be read one after
 * another. */
static int64_t tile_of(const qn_reduction_plan *p)
{
    const int64_t wanted = ITEM / p->reduced.count + 1;
    const int64_t least = p->by_lanes ? 64 : 1;
    const int64_t tile = p->by_lanes ? whole_vectors(wanted) : wanted;
    return QN_MIN(QN_MIN(QN_MAX(tile, least), QN_REDUCTION_TILE), p->kept.dims[0]);
}

static int64_t parts_of(const qn_reduction_plan *p)
{
    const int64_t parts = p->reduced.count * p->tile / PART;
    return p->items >= ENOUGH_ITEMS || parts < 2 ? 1 : QN_MIN(parts, MOST_PARTS);
}

void qn_reduction_plan_make(qn_reduction_plan *p, const qn_tensor *shape, const bool *reduced)
{
    int64_t step = 1;
    bool before = false, first = true;
    *p = (qn_reduction_plan){
        .kernels = qn_kernels_get(), .kept = axes_begin(), .reduced = axes_begin()};
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        const int64_t dim = shape->dims[d];
        if (dim == 1)
            continue;
        axes_add(reduced[d] ? &p->reduced : &p->kept, dim, step, !first && reduced[d] == before);
        p->by_lanes = first ? !reduced[d] : p->by_lanes;
        before = reduced[d];
        first = false;
        step *= dim;
    }
    p->tile = tile_of(p);
    p->tiles = (p->kept.dims[0] + p->tile - 1) / p->tile;
    p->items = p->kept.count / p->kept.dims[0] * p->tiles;
    p->parts = parts_of(p);
}

size_t qn_reduction_scratch(const qn_reduction_plan *p)
{
    return p->parts == 1 ? 0
                         : (size_t)(p->items * p->parts * whole_vectors(p->tile)) * sizeof(double);
}

bool qn_reduction_mark(bool *reduced, const qn_node *node, int32_t rank)
{
    int64_t list[QN_MAX_RANK];
    const qn_value *axes = node->n_in > 1 ? node->in[1] : NULL;
    const int64_t count = axes && axes->data ? qn_tensor_count(axes->data) : 0;
    if ((axes && !axes->data) || count > rank)
        return false;
    if (count)
        qn_load_i64(list, axes->data->dtype, axes->data->data, 0, count);
    return qn_reduce_mark(reduced, node->attrs, rank, (qn_ints){list, (size_t)count});
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Floats from the start to the element with this number. */
static int64_t offset_of(const qn_reduction_axes *a, int64_t number)
{
    return qn_dims_offset(number, a->rank, a->dims, a->steps);
}

static qn_reduction_piece piece_of(const qn_reduction_plan *p, int64_t item, int64_t part)
{
    const int64_t along = item % p->tiles * p->tile;
    return (qn_reduction_piece){
        item / p->tiles * p->kept.dims[0] + along, QN_MIN(p->tile, p->kept.dims[0] - along),
        p->reduced.count * part / p->parts, p->reduced.count * (part + 1) / p->parts};
}

/* From position `from` to the end of its row, or of the piece, whose first result begins at
 * `start`. */
static qn_reduction_run run_at(const qn_reduction_plan *p, const qn_reduction_piece *piece,
                               int64_t start, int64_t from)
{
    const int64_t row = p->reduced.dims[0];
    return (qn_reduction_run){start + offset_of(&p->reduced, from), from,
                              QN_MIN(row - from % row, piece->to - from)};
}

static const double starts[QN_REDUCTIONS] = {[QN_REDUCTION_PRODUCT] = 1,
                                             [QN_REDUCTION_MAX] = -(double)INFINITY,
                                             [QN_REDUCTION_MIN] = (double)INFINITY};

static void reduce_piece(const qn_reduction_job *job, double *totals,
                         const qn_reduction_piece *piece, qn_reduction reduction)
{
    const qn_reduction_plan *p = job->plan;
    const int64_t start = offset_of(&p->kept, piece->first);
    qn_reduction_block block = {.totals = totals,
                                .shift = job->shift ? job->shift + piece->first : NULL,
                                .count = piece->count,
                                .result_step = p->kept.steps[0],
                                .step = p->reduced.steps[0]};
    for (int64_t i = 0; i < whole_vectors(piece->count); i++)
        totals[i] = starts[reduction];
    for (int64_t at = piece->from; at < piece->to; at += block.n) {
        const qn_reduction_run run = run_at(p, piece, start, at);
        block.x = job->x + run.offset;
        block.n = run.n;
        p->kernels->reduction[reduction][p->by_lanes](&block);
    }
}

static void apply_piece(const qn_reduction_job *job, const qn_reduction_piece *piece)
{
    const int64_t start = offset_of(&job->plan->kept, piece->first);
    qn_reduction_run run;
    for (int64_t at = piece->from; at < piece->to; at += run.n) {
        run = run_at(job->plan, piece, start, at);
        job->apply(job, piece, &run);
    }
}

/* ---- Items with whole groups: all rounds while they are in the cache ------------------------- */

static void do_items(const void *opaque, int64_t first, int64_t last)
{
    const qn_reduction_job *job = opaque;
    double totals[QN_REDUCTION_TILE];
    for (int64_t item = first; item < last; item++) {
        const qn_reduction_piece piece = piece_of(job->plan, item, 0);
        for (int round = 0; round < job->rounds; round++) {
            reduce_piece(job, totals, &piece, job->reductions[round]);
            job->complete(job, round, totals, piece.first, piece.count);
        }
        if (job->apply)
            apply_piece(job, &piece);
    }
}

/* ---- Items in parts: round by round ---------------------------------------------------------- */

typedef struct round_work {
    const qn_reduction_job *job;
    int round;
} round_work;

/* Totals of a part; parts of an item stand side by side. */
static double *partial_of(const qn_reduction_job *job, int64_t index)
{
    return job->partial + index * whole_vectors(job->plan->tile);
}

static void reduce_parts(const void *opaque, int64_t first, int64_t last)
{
    const round_work *w = opaque;
    const qn_reduction_plan *p = w->job->plan;
    for (int64_t i = first; i < last; i++) {
        const qn_reduction_piece piece = piece_of(p, i / p->parts, i % p->parts);
        reduce_piece(w->job, partial_of(w->job, i), &piece, w->job->reductions[w->round]);
    }
}

static void apply_parts(const void *opaque, int64_t first, int64_t last)
{
    const round_work *w = opaque;
    const qn_reduction_plan *p = w->job->plan;
    for (int64_t i = first; i < last; i++) {
        const qn_reduction_piece piece = piece_of(p, i / p->parts, i % p->parts);
        apply_piece(w->job, &piece);
    }
}

static double join(qn_reduction reduction, double a, double b)
{
    switch (reduction) {
    case QN_REDUCTION_PRODUCT: return a * b;
    case QN_REDUCTION_MAX: return b > a || isnan(b) ? b : a;
    case QN_REDUCTION_MIN: return b < a || isnan(b) ? b : a;
    default: return a + b;
    }
}

static void complete_item(const qn_reduction_job *job, int round, int64_t item)
{
    const qn_reduction_plan *p = job->plan;
    const qn_reduction_piece piece = piece_of(p, item, 0);
    double *totals = partial_of(job, item * p->parts);
    for (int64_t part = 1; part < p->parts; part++) {
        const double *more = partial_of(job, item * p->parts + part);
        for (int64_t i = 0; i < piece.count; i++)
            totals[i] = join(job->reductions[round], totals[i], more[i]);
    }
    job->complete(job, round, totals, piece.first, piece.count);
}

static void do_parts(const qn_reduction_job *job, int threads)
{
    const int64_t count = job->plan->items * job->plan->parts;
    round_work w = {job, 0};
    for (; w.round < job->rounds; w.round++) {
        qn_parallel(threads, count, 2, reduce_parts, &w);
        for (int64_t item = 0; item < job->plan->items; item++)
            complete_item(job, w.round, item);
    }
    if (job->apply)
        qn_parallel(threads, count, 2, apply_parts, &w);
}

void qn_reduction_compute(const qn_reduction_job *job, int threads)
{
    const qn_reduction_plan *p = job->plan;
    const int64_t work = p->tile * p->reduced.count * (job->rounds > 1 ? MORE_ROUNDS : 1);
    if (p->parts > 1)
        do_parts(job, threads);
    else
        qn_parallel(threads, p->items, ALONE_BELOW / work + 1, do_items, job);
}
