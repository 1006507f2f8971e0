/* What Loop and Scan share: types that go round, and iterations. */
#include "ops/iterate.h"

#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"

/* ---- Types of what goes round ---------------------------------------------------------------- */

qn_type qn_type_either(const qn_type *a, const qn_type *b)
{
    qn_type out = *a;
    out.elements = NULL;
    if (a->kind != b->kind || (a->kind == QN_TYPE_TENSOR && a->dtype != b->dtype))
        return (qn_type){.kind = QN_TYPE_UNKNOWN, .rank = -1};
    if (a->rank != b->rank)
        out.rank = -1;
    for (int32_t d = 0; d < out.rank; d++) {
        if (!qn_dim_same(a->dims[d], b->dims[d]))
            out.dims[d] = qn_dim_unknown();
    }
    return out;
}

static bool same_type(const qn_type *a, const qn_type *b)
{
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t d = 0; same && d < a->rank; d++)
        same =
            qn_dim_same(a->dims[d], b->dims[d]) || (a->dims[d].value < 0 && b->dims[d].value < 0);
    return same;
}

/* How many graphs the node's own graph lies in. */
static int nesting(const qn_node *node)
{
    int depth = 0;
    for (; node->graph->owner; node = node->graph->owner)
        depth++;
    return depth;
}

static void forget_dims(qn_type *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        types[i] = (qn_type){.kind = types[i].kind,
                             .dtype = types[i].dtype,
                             .rank = types[i].kind == QN_TYPE_TENSOR ? -1 : types[i].rank,
                             .element = types[i].element};
}

/* Carried values keep of their type what every iteration leaves as it is: each round drops what
 * changed. Rounds of nested loops multiply, so deep ones, and those that do not settle, get by
 * without shapes. */
qn_status qn_infer_carried(qn_infer *self, qn_graph *body, qn_type *types, size_t first,
                           size_t first_out, size_t carried)
{
    const int rounds = nesting(self->node) < 2 ? QN_MAX_RANK + 2 : 0;
    for (int round = 0; round < rounds; round++) {
        bool stable = true;
        QN_TRY(self->graph(self, body, types));
        for (size_t i = 0; i < carried; i++) {
            const qn_type next =
                qn_type_either(&types[first + i], &body->outputs[first_out + i]->type);
            stable = stable && same_type(&next, &types[first + i]);
            types[first + i] = next;
        }
        if (stable)
            return QN_OK;
    }
    forget_dims(types + first, carried);
    return self->graph(self, body, types);
}

void qn_infer_scanned(qn_infer *self, int32_t o, const qn_type *one, int64_t axis, qn_dim count)
{
    qn_dim dims[QN_MAX_RANK];
    if (one->kind != QN_TYPE_TENSOR || one->rank < 0 || one->rank >= QN_MAX_RANK) {
        qn_infer_set_dtype(self, o, one->dtype);
        return;
    }
    const int64_t at = axis < 0 ? axis + one->rank + 1 : axis;
    if (at < 0 || at > one->rank) {
        qn_infer_set_dtype(self, o, one->dtype);
        return;
    }
    for (int32_t d = 0, from = 0; d < one->rank + 1; d++)
        dims[d] = d == at ? count : one->dims[from++];
    qn_infer_set(self, o, one->dtype, one->rank + 1, dims);
}

/* ---- Values gathered over the iterations ----------------------------------------------------- */

static qn_status stack_push(qn_eval *self, qn_stack *s, const qn_tensor *item)
{
    if (s->count &&
        (item->dtype != s->items[0].dtype || item->rank != s->items[0].rank ||
         memcmp(item->dims, s->items[0].dims, (size_t)item->rank * sizeof *item->dims) != 0))
        return qn_eval_fail(self, "a scan output changes its shape between iterations");
    if (item->dtype >= QN_SEQUENCE || item->rank >= QN_MAX_RANK)
        return qn_eval_fail(self, "a scan output must be a tensor");
    if (s->count == s->capacity) {
        const int64_t capacity = s->capacity ? s->capacity * 2 : 16;
        void *grown;
        QN_TRY(qn_eval_scratch(self, &grown, capacity, sizeof *s->items));
        if (s->count)
            memcpy(grown, s->items, (size_t)s->count * sizeof *s->items);
        s->items = grown;
        s->capacity = capacity;
    }
    return qn_eval_copy(self, &s->items[s->count++], item);
}

qn_status qn_stack_join(qn_eval *self, int32_t o, const qn_stack *s, int64_t axis, bool backwards,
                        const qn_type *type)
{
    int64_t strides[QN_MAX_RANK];
    qn_tensor shape = {.dtype = type->dtype, .rank = QN_MAX(type->rank, 0)};
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = QN_MAX(type->dims[d].value, 0);
    if (s->count)
        shape = s->items[0];
    const int32_t rank = shape.rank + 1;
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || rank > QN_MAX_RANK)
        return qn_eval_fail(self, "axis %lld is no dimension", (long long)axis);
    memmove(&shape.dims[at + 1], &shape.dims[at], (size_t)(shape.rank - at) * sizeof *shape.dims);
    shape.dims[at] = s->count;
    QN_TRY(qn_eval_output(self, o, shape.dtype, rank, shape.dims));
    qn_dims_strides(strides, rank, shape.dims);
    shape.rank = rank;
    shape.dims[at] = 1;
    for (int64_t i = 0; i < s->count; i++) {
        shape.data = s->items[backwards ? s->count - 1 - i : i].data;
        qn_move_to(self->out[o], &shape, i * strides[at], strides);
    }
    return QN_OK;
}

qn_status qn_iteration_room(qn_eval *self, qn_iteration *r)
{
    void *inputs, *results, *kept, *scanned;
    const int64_t n_out = (int64_t)r->body->n_outputs + 1;
    QN_TRY(qn_eval_scratch(self, &inputs, (int64_t)r->body->n_inputs + 1, sizeof(qn_tensor *)));
    QN_TRY(qn_eval_scratch(self, &results, n_out, sizeof(qn_tensor *)));
    QN_TRY(qn_eval_scratch(self, &kept, (int64_t)r->body->n_inputs + 1, sizeof(qn_tensor)));
    QN_TRY(qn_eval_scratch(self, &scanned, n_out, sizeof(qn_stack)));
    memset(scanned, 0, (size_t)n_out * sizeof(qn_stack));
    r->inputs = inputs;
    r->results = results;
    r->kept = kept;
    r->scanned = scanned;
    return QN_OK;
}

/* One iteration: carried values are copied, since the results live only until the next one. */
qn_status qn_iterate(qn_eval *self, qn_iteration *r, int32_t first_in, int32_t first_out)
{
    QN_TRY(self->graph(self, r->body, r->inputs, r->results));
    for (int32_t i = 0; i < r->carried; i++) {
        QN_TRY(qn_eval_copy(self, &r->kept[i], r->results[first_out + i]));
        r->inputs[first_in + i] = &r->kept[i];
    }
    for (size_t o = (size_t)(first_out + r->carried); o < r->body->n_outputs; o++)
        QN_TRY(stack_push(self, &r->scanned[o], r->results[o]));
    return QN_OK;
}
