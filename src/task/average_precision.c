/* Mean average precision as COCO defines it. */
#include "task/average_precision.h"

#include <math.h>
#include <stdlib.h>

enum { LIMITS = 10, RECALLS = 101, STANDARD_MOST = 100 };

/* What became of a found box: a bit per limit. */
struct qn_scored_match {
    double score;
    size_t order;
    int32_t kind;
    uint16_t hit, ignored;
};

static double limit_of(int i)
{
    return i == LIMITS - 1 ? 0.95 : 0.5 + i * ((0.95 - 0.5) / (LIMITS - 1));
}

/* ---- A picture ------------------------------------------------------------------------------- */

/* Sorts boxes by class, with the best score first, or single objects before crowds. */
static int compare_boxes(const void *left, const void *right)
{
    const qn_box *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->crowd != b->crowd)
        return a->crowd ? 1 : -1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static void sort(qn_boxes *boxes)
{
    if (boxes->count > 1)
        qsort(boxes->at, boxes->count, sizeof *boxes->at, compare_boxes);
}

/* The overlap of two boxes: intersection over union; for a crowd the share of the found box inside
 * it. */
static double overlap_of(const qn_box *found, const qn_box *ground_truth)
{
    if (!ground_truth->crowd)
        return qn_box_iou(found, ground_truth);
    const double both = qn_box_intersection(found, ground_truth);
    return both > 0 ? both / qn_box_area(found) : 0;
}

/* Boxes of one class in one picture. */
typedef struct group {
    const qn_box *found, *ground_truth;
    size_t n_found, n_truth;
    /* [n_found][n_truth] */
    double *overlaps;
    /* [n_truth] */
    bool *taken;
} group;

/* The free true box that overlaps most, the last of equals; a crowd only where no single one is
 * near enough. */
static size_t best_match(const group *g, size_t found, double limit)
{
    const double *overlaps = g->overlaps + found * g->n_truth;
    size_t best = SIZE_MAX;
    double most = QN_MIN(limit, 1 - 1e-10);
    for (size_t t = 0; t < g->n_truth; t++) {
        if (g->taken[t] && !g->ground_truth[t].crowd)
            continue;
        if (best != SIZE_MAX && !g->ground_truth[best].crowd && g->ground_truth[t].crowd)
            break;
        if (overlaps[t] < most)
            continue;
        most = overlaps[t];
        best = t;
    }
    return best;
}

static void match(qn_scored_match *verdicts, group *g, int limit)
{
    const uint16_t bit = (uint16_t)(1U << limit);
    for (size_t t = 0; t < g->n_truth; t++)
        g->taken[t] = false;
    for (size_t f = 0; f < g->n_found; f++) {
        const size_t t = best_match(g, f, limit_of(limit));
        if (t == SIZE_MAX)
            continue;
        g->taken[t] = true;
        verdicts[f].hit = (uint16_t)(verdicts[f].hit | bit);
        if (g->ground_truth[t].crowd)
            verdicts[f].ignored = (uint16_t)(verdicts[f].ignored | bit);
    }
}

static qn_status judge(qn_average_precision *p, group *g)
{
    size_t pairs;
    if (!g->n_found)
        return QN_OK;
    if (!qn_mul_size(&pairs, g->n_found, g->n_truth))
        return qn_fail_nomem(p->ctx);
    QN_TRY_GROW(p->ctx, p->found, p->room, p->count + g->n_found);
    g->overlaps = qn_alloc_zero(p->ctx, pairs + 1, sizeof *g->overlaps);
    g->taken = qn_alloc_zero(p->ctx, g->n_truth + 1, sizeof *g->taken);
    const bool there = g->overlaps && g->taken;
    for (size_t f = 0; there && f < g->n_found; f++) {
        p->found[p->count + f] = (qn_scored_match){
            .score = g->found[f].score, .order = p->count + f, .kind = g->found[f].kind};
        for (size_t t = 0; t < g->n_truth; t++)
            g->overlaps[f * g->n_truth + t] = overlap_of(&g->found[f], &g->ground_truth[t]);
    }
    for (int i = 0; there && i < LIMITS; i++)
        match(p->found + p->count, g, i);
    p->count += there ? g->n_found : 0;
    qn_free(p->ctx, g->overlaps);
    qn_free(p->ctx, g->taken);
    return there ? QN_OK : qn_fail_nomem(p->ctx);
}

static size_t run_of(const qn_box *at, size_t count, int32_t kind)
{
    size_t n = 0;
    while (n < count && at[n].kind == kind)
        n++;
    return n;
}

static qn_status count_ground_truth(qn_average_precision *p, const group *g, int32_t kind)
{
    const size_t needed = (size_t)kind + 1;
    QN_TRY_GROW(p->ctx, p->wanted, p->classes_room, needed);
    for (; p->n_classes < needed; p->n_classes++)
        p->wanted[p->n_classes] = 0;
    for (size_t t = 0; t < g->n_truth; t++)
        p->wanted[kind] += !g->ground_truth[t].crowd;
    return QN_OK;
}

qn_status qn_average_precision_add(qn_average_precision *p, qn_boxes *found, qn_boxes *ground_truth)
{
    const size_t most = p->most ? p->most : STANDARD_MOST;
    size_t f = 0, t = 0;
    sort(found);
    sort(ground_truth);
    while (f < found->count || t < ground_truth->count) {
        const int32_t of_found = f < found->count ? found->at[f].kind : INT32_MAX;
        const int32_t of_truth = t < ground_truth->count ? ground_truth->at[t].kind : INT32_MAX;
        const int32_t kind = QN_MIN(of_found, of_truth);
        group g = {.found = f < found->count ? &found->at[f] : NULL,
                   .ground_truth = t < ground_truth->count ? &ground_truth->at[t] : NULL};
        g.n_found = run_of(g.found, found->count - f, kind);
        g.n_truth = run_of(g.ground_truth, ground_truth->count - t, kind);
        f += g.n_found;
        t += g.n_truth;
        g.n_found = QN_MIN(g.n_found, most);
        if (g.n_truth)
            QN_TRY(count_ground_truth(p, &g, kind));
        QN_TRY(judge(p, &g));
    }
    p->pictures++;
    p->n_ground_truth += (int64_t)ground_truth->count;
    return QN_OK;
}

/* ---- All pictures ---------------------------------------------------------------------------- */

static int compare_verdicts(const void *left, const void *right)
{
    const qn_scored_match *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

/* The average precision: at each of 101 recalls the best precision at this recall or beyond.
 * `curve` is scratch memory for [count][2]: recall and precision. */
static double average(double *curve, const qn_scored_match *found, size_t count, int limit,
                      int64_t wanted)
{
    double hits = 0, misses = 0, sum = 0;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        if (found[i].ignored >> limit & 1)
            continue;
        const bool hit = found[i].hit >> limit & 1;
        hits += hit;
        misses += !hit;
        curve[2 * n] = hits / (double)wanted;
        curve[2 * n++ + 1] = hits / (hits + misses);
    }
    for (size_t i = n; i-- > 1;)
        curve[2 * i - 1] = QN_MAX(curve[2 * i - 1], curve[2 * i + 1]);
    for (int k = 0; k < RECALLS; k++) {
        while (at < n && curve[2 * at] < k * 0.01)
            at++;
        sum += at < n ? curve[2 * at + 1] : 0;
    }
    return sum / RECALLS;
}

static void sum_up(qn_mean_average_precision *out, const qn_average_precision *p, double *curve)
{
    double all = 0, half = 0;
    size_t f = 0;
    *out = (qn_mean_average_precision){.classes = 0};
    for (size_t kind = 0; kind < p->n_classes; kind++) {
        while (f < p->count && (size_t)p->found[f].kind < kind)
            f++;
        const size_t first = f;
        while (f < p->count && (size_t)p->found[f].kind == kind)
            f++;
        if (!p->wanted[kind])
            continue;
        const qn_scored_match *own = f > first ? &p->found[first] : NULL;
        out->classes++;
        for (int i = 0; i < LIMITS; i++) {
            const double ap = average(curve, own, f - first, i, p->wanted[kind]);
            all += ap / LIMITS;
            half += i == 0 ? ap : 0;
        }
    }
    out->map50 = out->classes ? half / (double)out->classes : (double)NAN;
    out->map50_95 = out->classes ? all / (double)out->classes : (double)NAN;
}

qn_status qn_average_precision_finish(qn_mean_average_precision *out, qn_average_precision *p)
{
    double *curve = qn_alloc_zero(p->ctx, 2 * p->count + 2, sizeof *curve);
    QN_TRY_ALLOC(p->ctx, curve);
    if (p->count > 1)
        qsort(p->found, p->count, sizeof *p->found, compare_verdicts);
    sum_up(out, p, curve);
    qn_free(p->ctx, curve);
    return QN_OK;
}

void qn_average_precision_free(qn_average_precision *p)
{
    qn_free(p->ctx, p->found);
    qn_free(p->ctx, p->wanted);
    p->found = NULL;
    p->wanted = NULL;
}
