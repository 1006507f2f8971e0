/* RoiAlign of float32. Since the samples of a cell are a grid, their weights are products of
 * weights along y and along x: samples that meet the same element along an axis become one tap, and
 * all channels use the same taps. */
#include "ops/roi.h"

#include <math.h>
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel.h"
#include "ops/eval.h"

enum {
    MOST_SCRATCH = 1 << 24
}; /* bytes of a thread; grids that need more are left to the reference */

typedef struct roi_state {
    const qn_node *node;
    const qn_roi_attrs *attrs;
    /* X */
    int64_t images, channels, height, width;
    /* Y */
    int64_t regions, rows, columns;
    /* Bytes of one thread. */
    size_t scratch;
} roi_state;

/* An element that samples lie next to. `weight` is the sum of their weights, by the number of
 * samples; of the maximum it is the largest, and `low` the smallest, with which a negative element
 * is largest. */
typedef struct tap {
    int64_t at;
    float weight, low;
} tap;

/* One axis of a region: cell i has the taps from i * room on. */
typedef struct axis {
    int64_t size, room;
    tap *taps;
    /* The numbers of taps, per cell. */
    int64_t *counts;
    /* Per cell: a sample counts as 0, or there is none. */
    bool *outside;
} axis;

/* Two of every element: those whose weight is 0 stay apart, since 0 times infinity must not get
 * lost. */
static int64_t room_of(int64_t size)
{
    return 2 * size;
}

/* Taps, their number and, rounded up, whether samples are outside. */
static size_t axis_bytes(int64_t size, int64_t cells)
{
    return (size_t)cells * ((size_t)room_of(size) * sizeof(tap) + 2 * sizeof(int64_t));
}

/* Cuts an axis out of the memory at *block. */
static axis axis_open(char **block, int64_t size, int64_t cells)
{
    axis a = {.size = size, .room = room_of(size), .taps = (tap *)*block};
    a.counts = (int64_t *)(a.taps + cells * a.room);
    a.outside = (bool *)(a.counts + cells);
    *block += axis_bytes(size, cells);
    return a;
}

/* ---- Taps ------------------------------------------------------------------------------------ */

/* Samples go along the axis, so that a tap of the same element is among the last ones. */
static void add_tap(tap *taps, int64_t *count, int64_t at, float weight, bool max)
{
    for (int64_t i = *count - 1; i >= 0 && llabs(taps[i].at - at) <= 1; i--) {
        tap *t = &taps[i];
        if (t->at != at || (!max && (t->weight == 0) != (weight == 0)))
            continue;
        t->weight = !max ? t->weight + weight : weight > t->weight ? weight : t->weight;
        t->low = weight < t->low ? weight : t->low;
        return;
    }
    taps[(*count)++] = (tap){at, weight, weight};
}

static void find_taps(axis *a, const qn_roi_samples *samples, int64_t cell, bool max)
{
    tap *taps = a->taps + cell * a->room;
    int64_t *count = &a->counts[cell];
    *count = 0;
    a->outside[cell] = samples->count == 0;
    for (int64_t k = 0; k < samples->count; k++) {
        qn_roi_pair pair;
        if (!qn_roi_pair_of(&pair, samples, cell, k, a->size)) {
            a->outside[cell] = true;
            continue;
        }
        for (int side = 0; side < 2; side++)
            add_tap(taps, count, pair.at[side], (float)pair.weight[side], max);
    }
    for (int64_t i = 0; !max && i < *count; i++)
        taps[i].weight /= (float)samples->count;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static float cell_mean(const float *plane, const axis *down, const axis *across, int64_t y,
                       int64_t x)
{
    const tap *rows = down->taps + y * down->room, *columns = across->taps + x * across->room;
    float sum = 0;
    for (int64_t i = 0; i < down->counts[y]; i++) {
        const float *row = plane + rows[i].at * across->size;
        float part = 0;
        for (int64_t j = 0; j < across->counts[x]; j++)
            part += columns[j].weight * row[columns[j].at];
        sum += rows[i].weight * part;
    }
    return sum;
}

/* What is no number is passed over, as by the reference. */
static float cell_max(const float *plane, const axis *down, const axis *across, int64_t y,
                      int64_t x)
{
    const tap *rows = down->taps + y * down->room, *columns = across->taps + x * across->room;
    float most = down->outside[y] || across->outside[x] ? 0 : -INFINITY;
    for (int64_t i = 0; i < down->counts[y]; i++) {
        const float *row = plane + rows[i].at * across->size;
        for (int64_t j = 0; j < across->counts[x]; j++) {
            const float v = row[columns[j].at];
            const float high = v * (rows[i].weight * columns[j].weight);
            const float low = v * (rows[i].low * columns[j].low);
            most = high > most ? high : most;
            most = low > most ? low : most;
        }
    }
    return most;
}

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct roi_work {
    const roi_state *state;
    const qn_step_io *io;
} roi_work;

/* The samples of a region along y and x; false where there are too many. */
static bool samples_of(qn_roi_samples *down, qn_roi_samples *across, const roi_state *s,
                       const float *roi)
{
    return qn_roi_samples_of(down, s->attrs, (double)roi[1], (double)roi[3], s->rows) &&
           qn_roi_samples_of(across, s->attrs, (double)roi[0], (double)roi[2], s->columns);
}

static void align_region(const void *opaque, int64_t r, int thread)
{
    const roi_work *w = opaque;
    const roi_state *s = w->state;
    const bool max = s->attrs->mode == QN_ROI_MAX;
    const int64_t image = ((const int64_t *)w->io->in[2]->data)[r], cells = s->rows * s->columns;
    const float *x = (const float *)w->io->in[0]->data + image * s->channels * s->height * s->width;
    float *y = (float *)w->io->out[0]->data + r * s->channels * cells;
    char *block = (char *)w->io->scratch + (size_t)thread * s->scratch;
    axis down = axis_open(&block, s->height, s->rows);
    axis across = axis_open(&block, s->width, s->columns);
    qn_roi_samples samples[2];
    (void)samples_of(&samples[0], &samples[1], s, (const float *)w->io->in[1]->data + r * 4);
    for (int64_t i = 0; i < s->rows; i++)
        find_taps(&down, &samples[0], i, max);
    for (int64_t i = 0; i < s->columns; i++)
        find_taps(&across, &samples[1], i, max);
    for (int64_t c = 0; c < s->channels; c++) {
        const float *plane = x + c * s->height * s->width;
        for (int64_t i = 0; i < cells; i++) {
            const int64_t row = i / s->columns, column = i % s->columns;
            y[c * cells + i] = max ? cell_max(plane, &down, &across, row, column)
                                   : cell_mean(plane, &down, &across, row, column);
        }
    }
}

static qn_status check_regions(const roi_state *s, const qn_step_io *io)
{
    const int64_t *images = io->in[2]->data;
    for (int64_t r = 0; r < s->regions; r++) {
        qn_roi_samples down, across;
        if (images[r] < 0 || images[r] >= s->images)
            return qn_fail(io->ctx, QN_E_INVALID,
                           "node '%s' (RoiAlign): region %lld is of image %lld, there are %lld",
                           s->node->name, (long long)r, (long long)images[r], (long long)s->images);
        if (!samples_of(&down, &across, s, (const float *)io->in[1]->data + r * 4))
            return qn_fail(io->ctx, QN_E_INVALID, "node '%s' (RoiAlign): region %lld is too large",
                           s->node->name, (long long)r);
    }
    return QN_OK;
}

static qn_status roi_run(const void *state, void *bound, const qn_step_io *io)
{
    const roi_state *s = state;
    const roi_work work = {s, io};
    (void)bound;
    QN_TRY(check_regions(s, io));
    qn_parallel_items(io->threads, s->regions, align_region, &work);
    return QN_OK;
}

static const qn_kernel roi_kernel = {.name = "roi align", .run = roi_run};

qn_status qn_claim_roi_align(bool *taken, qn_claim *claim)
{
    qn_node *node = claim->node;
    qn_tensor x, rois, images;
    if (!qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&rois, claim->builder, node->in[1]) ||
        !qn_build_shape(&images, claim->builder, node->in[2]) || x.dtype != QN_FLOAT32 ||
        qn_tensor_count(&x) == 0 || rois.dims[0] == 0 || images.dims[0] != rois.dims[0])
        return QN_OK;
    const qn_roi_attrs *a = node->attrs;
    roi_state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (roi_state){.node = node,
                     .attrs = a,
                     .images = x.dims[0],
                     .channels = x.dims[1],
                     .height = x.dims[2],
                     .width = x.dims[3],
                     .regions = rois.dims[0],
                     .rows = a->output_height,
                     .columns = a->output_width};
    s->scratch = axis_bytes(s->height, s->rows) + axis_bytes(s->width, s->columns);
    if (s->rows > MOST_SCRATCH || s->columns > MOST_SCRATCH || s->scratch > MOST_SCRATCH)
        return QN_OK;
    for (int32_t i = 0; i < 3; i++)
        qn_claim_in(claim, node->in[i], QN_ROWS);
    qn_claim_out(claim, node->out[0], QN_ROWS);
    claim->scratch = s->scratch * (size_t)qn_build_threads(claim->builder);
    claim->state = s;
    claim->kernel = &roi_kernel;
    *taken = true;
    return QN_OK;
}
