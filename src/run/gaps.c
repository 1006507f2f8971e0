/* The free gaps of an arena, which the memory planner fills with values. */
#include "run/gaps.h"

#include <string.h>

typedef struct run {
    size_t begin, end;
} run;

/* Addresses that are taken, in order; no two runs touch. */
struct qn_gap_runs {
    run *at;
    size_t count, capacity;
};

qn_status qn_gaps_init(qn_gaps *gaps, qn_context *ctx, int32_t last)
{
    *gaps = (qn_gaps){.ctx = ctx, .size = 1};
    qn_arena_init(&gaps->arena, &ctx->allocator);
    while (gaps->size < (size_t)last + 2)
        gaps->size *= 2;
    gaps->whole = qn_arena_array(&gaps->arena, 2 * gaps->size, sizeof *gaps->whole);
    gaps->part = qn_arena_array(&gaps->arena, 2 * gaps->size, sizeof *gaps->part);
    return gaps->whole && gaps->part ? QN_OK : qn_fail_nomem(ctx);
}

void qn_gaps_free(qn_gaps *gaps)
{
    qn_arena_free(&gaps->arena);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* The first run that ends at `address` or behind it. */
static size_t first_reaching(const qn_gap_runs *runs, size_t address)
{
    size_t low = 0, high = runs->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (runs->at[middle].end < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Moves *address behind a run that meets the bytes there; false: none does. */
static bool pass_run(size_t *address, const qn_gap_runs *runs, size_t bytes)
{
    const size_t i = bytes ? first_reaching(runs, *address + 1) : runs->count;
    if (i == runs->count || runs->at[i].begin >= *address + bytes)
        return false;
    *address = runs->at[i].end;
    return true;
}

static qn_status room_for_one(qn_gaps *gaps, qn_gap_runs *runs)
{
    if (runs->count < runs->capacity)
        return QN_OK;
    const size_t capacity = runs->capacity ? 2 * runs->capacity : 2;
    run *at = qn_arena_widen(&gaps->arena, runs->at, runs->count, capacity, sizeof *at);
    QN_TRY_ALLOC(gaps->ctx, at);
    runs->at = at;
    runs->capacity = capacity;
    return QN_OK;
}

/* The runs that it touches become one with it. */
static qn_status add_run(qn_gaps *gaps, qn_gap_runs *runs, run added)
{
    const size_t first = first_reaching(runs, added.begin);
    size_t behind = first;
    for (; behind < runs->count && runs->at[behind].begin <= added.end; behind++) {
        added.begin = QN_MIN(added.begin, runs->at[behind].begin);
        added.end = QN_MAX(added.end, runs->at[behind].end);
    }
    QN_TRY(room_for_one(gaps, runs));
    if (runs->count > behind)
        memmove(&runs->at[first + 1], &runs->at[behind], (runs->count - behind) * sizeof added);
    runs->at[first] = added;
    runs->count += first + 1 - behind;
    return QN_OK;
}

/* ---- The tree of times ----------------------------------------------------------------------- */

/* Two nodes of each level at most. */
enum { MOST = 2 * 8 * sizeof(size_t) };
typedef struct nodes {
    size_t at[MOST], count;
} nodes;

/* The largest nodes that make up the time. */
static nodes nodes_within(const qn_gaps *gaps, int32_t first, int32_t last)
{
    nodes found = {.count = 0};
    size_t low = gaps->size + (size_t)(first + 1), high = gaps->size + (size_t)(last + 1) + 1;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            found.at[found.count++] = low++;
        if (high & 1)
            found.at[found.count++] = --high;
    }
    return found;
}

/* The nodes around its ends: all that have more than the time, or a part of it, lie among these. */
static nodes nodes_around(const qn_gaps *gaps, int32_t first, int32_t last)
{
    nodes found = {.count = 0};
    size_t low = gaps->size + (size_t)(first + 1), high = gaps->size + (size_t)(last + 1);
    for (; low; low /= 2, high /= 2) {
        found.at[found.count++] = low;
        if (high != low)
            found.at[found.count++] = high;
    }
    return found;
}

static bool pass_runs(size_t *address, const qn_gap_runs *runs, const nodes *where, size_t bytes)
{
    bool passed = false;
    for (size_t i = 0; i < where->count; i++)
        passed = pass_run(address, &runs[where->at[i]], bytes) || passed;
    return passed;
}

static qn_status add_runs(qn_gaps *gaps, qn_gap_runs *runs, const nodes *where, run added)
{
    for (size_t i = 0; i < where->count; i++)
        QN_TRY(add_run(gaps, &runs[where->at[i]], added));
    return QN_OK;
}

/* Something taken meets the time where it has a part of a node within, or all of a node around. */
qn_status qn_gaps_take(size_t *address, qn_gaps *gaps, size_t bytes, int32_t first, int32_t last)
{
    const nodes within = nodes_within(gaps, first, last), around = nodes_around(gaps, first, last);
    *address = 0;
    while (pass_runs(address, gaps->part, &within, bytes) ||
           pass_runs(address, gaps->whole, &around, bytes)) {
    }
    const run taken = {*address, *address + bytes};
    if (!bytes)
        return QN_OK;
    QN_TRY(add_runs(gaps, gaps->whole, &within, taken));
    QN_TRY(add_runs(gaps, gaps->part, &within, taken));
    return add_runs(gaps, gaps->part, &around, taken);
}
