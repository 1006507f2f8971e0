/* DENSIFY: constants of which a file holds the numbers that are not 0, in any order of axes and
 * blocks. */
#include <string.h>

#include "import/tflite/tflite.h"

enum { SPARSITY_ORDER = 0, SPARSITY_BLOCKS = 1, SPARSITY_DIMS = 2 };
enum { DIM_FORMAT = 0, DIM_SIZE = 1, DIM_SEGMENTS_TYPE = 2, DIM_INDICES_TYPE = 4 };
enum { MAX_LEVELS = 2 * QN_MAX_RANK };

/* One axis, or one within blocks, of the order in which the numbers stand. */
typedef struct tfl_level {
    /* Without lists: every index is there. */
    bool compressed;
    int64_t size;
    qn_flat_list segments, indices;
    /* The axis of the tensor that its index counts along. */
    int64_t axis;
} tfl_level;

typedef struct tfl_sparse {
    tfl_layer *layer;
    const tfl_tensor *tensor;
    size_t n_levels;
    tfl_level levels[MAX_LEVELS];
    int64_t index[MAX_LEVELS];
    size_t element, count;
    char *dense;
    /* Numbers that may still be visited. */
    int64_t budget;
} tfl_sparse;

/* Lists of 32, 16 or 8 bits. */
static qn_flat_list list_of(const qn_flat_table *dim, unsigned type_field)
{
    static const size_t sizes[] = {0, 4, 2, 1};
    const int64_t type = qn_flat_int(dim, type_field, 1, 0);
    const qn_flat_table vector = qn_flat_child(dim, type_field + 1);
    if (type < 1 || type > 3)
        return (qn_flat_list){.flat = NULL};
    return qn_flat_items(&vector, 0, sizes[type]);
}

static int64_t unsigned_item(const qn_flat_list *list, size_t i)
{
    const uint64_t mask = list->item_size < 8 ? (UINT64_C(1) << (8 * list->item_size)) - 1 : 0;
    return (int64_t)((uint64_t)qn_flat_item_int(list, i) & mask);
}

static qn_status read_levels(tfl_sparse *s)
{
    const qn_flat_table *table = &s->tensor->sparsity;
    const qn_flat_list order = qn_flat_items(table, SPARSITY_ORDER, 4);
    const qn_flat_list blocks = qn_flat_items(table, SPARSITY_BLOCKS, 4);
    const qn_flat_list dims = qn_flat_items(table, SPARSITY_DIMS, 4);
    const size_t rank = (size_t)s->tensor->rank;
    s->n_levels = order.count;
    if (order.count > MAX_LEVELS || dims.count != order.count || order.count != rank + blocks.count)
        return qn_tfl_wrong(s->layer, "%zu axes in %zu levels", rank, order.count);
    for (size_t i = 0; i < order.count; i++) {
        tfl_level *level = &s->levels[i];
        const qn_flat_table dim = qn_flat_item(&dims, i);
        const int64_t place = qn_flat_item_int(&order, i);
        if (place < 0 || (size_t)place >= order.count)
            return qn_tfl_wrong(s->layer, "level %zu is of axis %lld", i, (long long)place);
        level->axis =
            (size_t)place < rank ? place : qn_flat_item_int(&blocks, (size_t)place - rank);
        level->compressed = qn_flat_int(&dim, DIM_FORMAT, 1, 0) != 0;
        level->size = qn_flat_int(&dim, DIM_SIZE, 4, 0);
        level->segments = list_of(&dim, DIM_SEGMENTS_TYPE);
        level->indices = list_of(&dim, DIM_INDICES_TYPE);
        if (level->axis < 0 || (size_t)level->axis >= rank || level->size < 0 ||
            ((size_t)place >= rank && level->compressed))
            return qn_tfl_wrong(s->layer, "level %zu is of axis %lld", i, (long long)level->axis);
    }
    return QN_OK;
}

/* The place of a number: block indices count within those of their axis. */
static bool place_of(int64_t *place, const tfl_sparse *s)
{
    const tfl_tensor *t = s->tensor;
    int64_t at[QN_MAX_RANK] = {0};
    for (size_t i = 0; i < s->n_levels; i++) {
        int64_t *axis = &at[s->levels[i].axis];
        const int64_t size = i < (size_t)t->rank ? 1 : s->levels[i].size;
        if (!qn_mul_int64(axis, *axis, size) || !qn_add_int64(axis, *axis, s->index[i]))
            return false;
    }
    *place = 0;
    for (int32_t d = 0; d < t->rank; d++) {
        if (at[d] < 0 || at[d] >= t->dims[d])
            return false;
        *place = *place * t->dims[d] + at[d];
    }
    return true;
}

static qn_status put_number(tfl_sparse *s, int64_t from)
{
    int64_t place;
    if (from < 0 || (size_t)from >= s->tensor->bytes.length / s->element || !place_of(&place, s))
        return qn_tfl_wrong(s->layer, "'%s' has a number outside", s->tensor->name);
    memcpy(s->dense + (size_t)place * s->element, s->tensor->bytes.text + (size_t)from * s->element,
           s->element);
    return QN_OK;
}

/* The numbers below one index of each level before; there are at most MAX_LEVELS of them. */
static qn_status visit(tfl_sparse *s, size_t number, int64_t from)
{
    if (--s->budget < 0)
        return qn_tfl_wrong(s->layer, "'%s' visits more numbers than it has", s->tensor->name);
    if (number == s->n_levels)
        return put_number(s, from);
    const tfl_level *level = &s->levels[number];
    int64_t first = 0, end = level->size;
    if (level->compressed) {
        if (from < 0 || (size_t)from + 1 >= level->segments.count)
            return qn_tfl_wrong(s->layer, "'%s' lacks a segment", s->tensor->name);
        first = unsigned_item(&level->segments, (size_t)from);
        end = unsigned_item(&level->segments, (size_t)from + 1);
        if (end < first || (size_t)end > level->indices.count)
            return qn_tfl_wrong(s->layer, "'%s' lacks indices", s->tensor->name);
    }
    for (int64_t i = first; i < end; i++) {
        int64_t next = i;
        s->index[number] = level->compressed ? unsigned_item(&level->indices, (size_t)i) : i;
        if (!level->compressed &&
            (!qn_mul_int64(&next, from, level->size) || !qn_add_int64(&next, next, i)))
            return qn_tfl_wrong(s->layer, "'%s' is too large", s->tensor->name);
        QN_TRY(visit(s, number + 1, next));
    }
    return QN_OK;
}

/* A file of few numbers may not ask for all memory. */
enum { MAX_GROWTH = 4096, MIN_ROOM = 1 << 20 };

qn_status qn_tfl_densify(tfl_layer *l)
{
    tfl_sparse s = {.layer = l};
    size_t bytes;
    int64_t count;
    qn_value *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    const tfl_tensor *t = s.tensor = l->in[0];
    const qn_type type = qn_tfl_type(t);
    if (!t->sparsity.flat || t->known || t->dtype == QN_UNDEFINED || t->packed)
        return qn_tfl_unsupported(l, "'%s' is no sparse constant", t->name);
    if (!qn_dims_count(&count, t->rank, t->dims) ||
        !qn_tensor_bytes(&bytes, t->dtype, t->rank, t->dims) ||
        bytes > MIN_ROOM + t->bytes.length * MAX_GROWTH)
        return qn_tfl_wrong(l, "'%s' is too large for its numbers", t->name);
    QN_TRY(read_levels(&s));
    s.element = qn_dtype_get(t->dtype)->size;
    s.budget = MAX_LEVELS * (count + 1);
    s.dense = qn_arena_alloc(&l->b->model->arena, QN_MAX(bytes, 1u));
    QN_TRY_ALLOC(l->b->ctx, s.dense);
    QN_TRY(visit(&s, 0, 0));
    QN_TRY(qn_graph_build_constant(&y, l->b, l->out[0]->name, &type, (qn_string){s.dense, bytes}));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_OWN);
}
