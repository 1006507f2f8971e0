/* Memory for values between steps: the largest first, each at the lowest address where it meets no
 * other that is alive at the same time; or, for batches, in lanes. */
#include <stdlib.h>

#include "run/gaps.h"
#include "run/plan.h"

enum { ALIGNMENT = 64 };

static bool in_arena(const qn_plan *plan, int32_t slot)
{
    const qn_slot *s = &plan->slots.at[slot];
    return s->place == QN_PLACE_ARENA && s->root == slot;
}

/* A view keeps its root alive, and a part placed in a whole makes it live from the part's first
 * writing on. */
static void extend_roots(qn_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++) {
        const qn_slot *slot = &slots->at[i];
        qn_slot *root = &slots->at[slot->root];
        root->last = QN_MAX(root->last, slot->last);
        root->first = QN_MIN(root->first, slot->first);
    }
}

typedef struct placed {
    size_t bytes, lane;
    int32_t slot;
} placed;

static int by_size(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->slot < y->slot ? -1 : x->slot > y->slot; /* the same plan every time */
}

/* The values of one space; others take no place in it. */
static qn_status place_space(qn_plan *plan, const placed *order, size_t count, int32_t space)
{
    qn_gaps gaps;
    qn_status status = qn_gaps_init(&gaps, plan->ctx, (int32_t)plan->n_steps);
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        qn_slot *slot = &plan->slots.at[order[i].slot];
        if (slot->space != space)
            continue;
        status = qn_gaps_take(&slot->address, &gaps, slot->bytes, slot->first, slot->last);
        const size_t end = slot->address + slot->bytes;
        plan->spaces[space].arena_bytes = QN_MAX(plan->spaces[space].arena_bytes, end);
    }
    qn_gaps_free(&gaps);
    return status;
}

/* ---- Lanes ----------------------------------------------------------------------------------- */

/* Threads share a batch by samples: of two, one works on the first half of every value and the
 * other on the second. A line of memory that one core has written comes slowly to another, so
 * values that take turns at the same memory, a lane, have their middles at one address and every
 * core keeps its side. Where values also lie in other memory than the host's, it is not the cores
 * that do most. */
static bool wants_lanes(const qn_plan *plan, const placed *order, size_t count)
{
    if (plan->threads < 2 || plan->n_spaces > 1 || count == 0)
        return false;
    const qn_tensor *largest = &plan->slots.at[order[0].slot].shape;
    return largest->rank > 1 && largest->dims[0] > 1;
}

/* A lane of each value, the first in which nothing lives at the same time. */
static qn_status choose_lanes(const qn_plan *plan, placed *order, size_t count)
{
    qn_gaps gaps;
    qn_status status = qn_gaps_init(&gaps, plan->ctx, (int32_t)plan->n_steps);
    for (size_t i = 0; i < count && status == QN_OK; i++) {
        const qn_slot *slot = &plan->slots.at[order[i].slot];
        status = qn_gaps_take(&order[i].lane, &gaps, 1, slot->first, slot->last);
    }
    qn_gaps_free(&gaps);
    return status;
}

/* middles: [count], of the lanes. Leaves the addresses as they are where lanes need much more
 * memory. */
static void place_lanes(qn_plan *plan, const placed *order, size_t *middles, size_t count)
{
    qn_plan_space *host = &plan->spaces[QN_HOST];
    const size_t most = host->arena_bytes + host->arena_bytes / 4;
    size_t bytes = 0, n_lanes = 0;
    for (size_t i = 0; i < count; i++) {
        if (order[i].lane < n_lanes)
            continue;
        if (order[i].bytes > most - bytes)
            return;
        middles[n_lanes++] = bytes + order[i].bytes / 2; /* its first value is its largest */
        bytes += order[i].bytes;
    }
    for (size_t i = 0; i < count; i++)
        plan->slots.at[order[i].slot].address =
            (middles[order[i].lane] - order[i].bytes / 2) / ALIGNMENT * ALIGNMENT;
    host->arena_bytes = bytes;
}

/* ---- The whole ------------------------------------------------------------------------------- */

size_t qn_plan_arena_bytes(const qn_plan *plan)
{
    size_t bytes = 0;
    for (size_t i = 0; i < plan->n_spaces; i++)
        bytes += plan->spaces[i].arena_bytes;
    return bytes;
}

size_t qn_plan_scratch_bytes(const qn_plan *plan)
{
    size_t bytes = 0;
    for (size_t i = 0; i < plan->n_spaces; i++)
        bytes += plan->spaces[i].scratch_bytes;
    return bytes;
}

qn_status qn_plan_memory(qn_plan *plan)
{
    extend_roots(&plan->slots);
    const size_t n = plan->slots.count;
    placed *order = qn_alloc_zero(plan->ctx, n, sizeof *order);
    size_t *middles = qn_alloc_zero(plan->ctx, n, sizeof *middles);
    size_t count = 0;
    qn_status status = QN_OK;
    if (!order || !middles) {
        status = qn_fail_nomem(plan->ctx);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        if (!in_arena(plan, (int32_t)i))
            continue;
        qn_slot *slot = &plan->slots.at[i];
        slot->bytes = (slot->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        order[count++] = (placed){.bytes = slot->bytes, .slot = (int32_t)i};
    }
    qsort(order, count, sizeof *order, by_size);
    for (size_t space = 0; space < plan->n_spaces; space++)
        QN_TRY_OR_DONE(place_space(plan, order, count, (int32_t)space));
    if (wants_lanes(plan, order, count)) {
        QN_TRY_OR_DONE(choose_lanes(plan, order, count));
        place_lanes(plan, order, middles, count);
    }
done:
    qn_free(plan->ctx, order);
    qn_free(plan->ctx, middles);
    return status;
}
