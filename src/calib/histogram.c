/* Histograms: bins that become coarser, merging. */
#include "calib/histogram.h"

#include <math.h>
#include <string.h>

int32_t qn_histogram_exponent(float largest)
{
    int power; /* largest < 2^power */
    (void)frexpf(largest, &power);
    return QN_MAX(power - 12, QN_HISTOGRAM_EXPONENT_MIN);
}

/* The sum of 2^shift neighbours goes to one bin. */
static void coarsen_side(uint64_t *bins, int shift)
{
    const size_t group = (size_t)1 << QN_MIN(shift, 12);
    for (size_t to = 0; to < QN_HISTOGRAM_BINS; to++) {
        uint64_t sum = 0;
        for (size_t i = to * group; i < (to + 1) * group && i < QN_HISTOGRAM_BINS; i++)
            sum += bins[i];
        bins[to] = sum;
    }
}

void qn_histogram_coarsen(qn_histogram *h, int32_t exponent)
{
    const bool empty = !h->side[0] && !h->side[1];
    for (int s = 0; s < 2 && !empty && exponent > h->exponent; s++) {
        if (h->side[s])
            coarsen_side(h->side[s], exponent - h->exponent);
    }
    h->exponent = exponent;
}

qn_status qn_histogram_side(qn_histogram *h, qn_context *ctx, int side)
{
    if (!h->side[side])
        h->side[side] = qn_alloc_zero(ctx, QN_HISTOGRAM_BINS, sizeof *h->side[side]);
    QN_TRY_ALLOC(ctx, h->side[side]);
    return QN_OK;
}

qn_status qn_histogram_merge(qn_histogram *to, qn_context *ctx, const qn_histogram *from)
{
    if (from->exponent == INT32_MIN)
        return QN_OK;
    if (from->exponent > to->exponent)
        qn_histogram_coarsen(to, from->exponent);
    const int shift = QN_MIN(to->exponent - from->exponent, 12);
    for (int s = 0; s < 2; s++) {
        if (!from->side[s])
            continue;
        QN_TRY(qn_histogram_side(to, ctx, s));
        for (size_t i = 0; i < QN_HISTOGRAM_BINS; i++)
            to->side[s][i >> shift] += from->side[s][i];
    }
    return QN_OK;
}

void qn_histogram_free(qn_histogram *h, qn_context *ctx)
{
    qn_free(ctx, h->side[0]);
    qn_free(ctx, h->side[1]);
}
