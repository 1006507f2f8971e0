/* Memory for values between steps: the largest first, each at the lowest address where it meets no
 * other that is alive at the same time; or, for batches, in lanes. */
#include <stdlib.h>

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
    size_t bytes;
    int32_t slot, lane;
} placed;

static int by_size(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->slot < y->slot ? -1 : x->slot > y->slot; /* the same plan every time */
}

static bool overlap_in_time(const qn_slot *a, const qn_slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Neighbours in address order among the `count` already placed that live at the same time as `slot`:
 * the lowest gap that holds it. `sorted` is kept in that order. */
static size_t lowest_gap(const qn_plan *plan, const int32_t *sorted, size_t count,
                         const qn_slot *slot)
{
    size_t address = 0;
    for (size_t i = 0; i < count; i++) {
        const qn_slot *other = &plan->slots.at[sorted[i]];
        if (other->space != slot->space || !overlap_in_time(slot, other))
            continue;
        if (other->address >= address && other->address - address >= slot->bytes)
            break;
        const size_t end = other->address + other->bytes;
        address = QN_MAX(address, end);
    }
    return address;
}

static void insert_sorted(const qn_plan *plan, int32_t *sorted, size_t count, int32_t slot)
{
    size_t at = count;
    const size_t address = plan->slots.at[slot].address;
    for (; at > 0 && plan->slots.at[sorted[at - 1]].address > address; at--)
        sorted[at] = sorted[at - 1];
    sorted[at] = slot;
}

static void place_all(qn_plan *plan, const placed *order, int32_t *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        qn_slot *slot = &plan->slots.at[order[i].slot];
        slot->address = lowest_gap(plan, sorted, i, slot);
        insert_sorted(plan, sorted, i, order[i].slot);
        qn_plan_space *space = &plan->spaces[slot->space];
        const size_t end = slot->address + slot->bytes;
        space->arena_bytes = QN_MAX(space->arena_bytes, end);
    }
}

/* ---- Lanes --------------------------------------------------------------------------------------------- */

/* Threads share a batch by samples: of two, one works on the first half of every value and the other on
 * the second. A line of memory that one core has written comes slowly to another, so values that take
 * turns at the same memory, a lane, have their middles at one address and every core keeps its side. Where
 * values also lie in other memory than the host's, it is not the cores that do most. */
static bool wants_lanes(const qn_plan *plan, const placed *order, size_t count)
{
    if (plan->threads < 2 || plan->n_spaces > 1 || count == 0)
        return false;
    const qn_tensor *largest = &plan->slots.at[order[0].slot].shape;
    return largest->rank > 1 && largest->dims[0] > 1;
}

typedef struct lane {
    size_t middle;
    size_t blocked; /* 1 + the number of the last value that cannot live here */
} lane;

/* The first lane in which nothing lives at the same time as value i. */
static int32_t free_lane(const qn_plan *plan, const placed *order, lane *lanes, size_t i)
{
    const qn_slot *slot = &plan->slots.at[order[i].slot];
    int32_t at = 0;
    for (size_t j = 0; j < i; j++) {
        if (overlap_in_time(slot, &plan->slots.at[order[j].slot]))
            lanes[order[j].lane].blocked = i + 1;
    }
    while (lanes[at].blocked == i + 1)
        at++;
    return at;
}

/* lanes: [count], zeroed. Leaves the addresses as they are where lanes need much more memory. */
static void place_lanes(qn_plan *plan, placed *order, lane *lanes, size_t count)
{
    qn_plan_space *host = &plan->spaces[QN_HOST];
    const size_t most = host->arena_bytes + host->arena_bytes / 4;
    size_t bytes = 0;
    int32_t n_lanes = 0;
    for (size_t i = 0; i < count; i++) {
        order[i].lane = free_lane(plan, order, lanes, i);
        if (order[i].lane < n_lanes)
            continue;
        if (order[i].bytes > most - bytes)
            return;
        lanes[n_lanes++].middle = bytes + order[i].bytes / 2; /* its first value is its largest */
        bytes += order[i].bytes;
    }
    for (size_t i = 0; i < count; i++)
        plan->slots.at[order[i].slot].address =
            (lanes[order[i].lane].middle - order[i].bytes / 2) / ALIGNMENT * ALIGNMENT;
    host->arena_bytes = bytes;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

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
    int32_t *sorted = qn_alloc_zero(plan->ctx, n, sizeof *sorted);
    lane *lanes = qn_alloc_zero(plan->ctx, n, sizeof *lanes);
    size_t count = 0;
    qn_status status = QN_OK;
    if (!order || !sorted || !lanes) {
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
    place_all(plan, order, sorted, count);
    if (wants_lanes(plan, order, count))
        place_lanes(plan, order, lanes, count);
done:
    qn_free(plan->ctx, order);
    qn_free(plan->ctx, sorted);
    qn_free(plan->ctx, lanes);
    return status;
}
