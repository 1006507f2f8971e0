/* What a file of TensorFlow Lite holds: tensors, buffers, operators of its subgraphs. */
#include <stdio.h>
#include <string.h>

#include "import/tflite/tflite.h"

/* Subgraphs that call each other, deeper than any converter writes. */
enum { MAX_DEPTH = 16 };

/* By the number of the schema's TensorType. */
static const qn_dtype dtypes[] = {
    QN_FLOAT32,   QN_FLOAT16,   QN_INT32,  QN_UINT8,   QN_INT64,     QN_UNDEFINED, QN_BOOL,
    QN_INT16,     QN_UNDEFINED, QN_INT8,   QN_FLOAT64, QN_UNDEFINED, QN_UINT64,    QN_UNDEFINED,
    QN_UNDEFINED, QN_UINT32,    QN_UINT16, QN_INT8,    QN_BFLOAT16,
};
enum { TYPE_INT4 = 17 };

qn_status qn_tfl_open(tfl_reader *r, qn_graph_builder *b, const qn_map *map)
{
    *r = (tfl_reader){.b = b, .flat = {.data = map->data, .size = map->size}, .budget = map->size};
    qn_names_init(&r->taken, b->ctx);
    qn_names_init(&r->variables, b->ctx);
    const qn_flat_table root = qn_flat_root(&r->flat);
    r->codes = qn_flat_items(&root, QN_TFL_MODEL_CODES, 4);
    r->subgraphs = qn_flat_items(&root, QN_TFL_MODEL_SUBGRAPHS, 4);
    r->buffers = qn_flat_items(&root, QN_TFL_MODEL_BUFFERS, 4);
    if (r->flat.fault || !r->subgraphs.count)
        return qn_fail(b->ctx, QN_E_FORMAT, "%s",
                       r->flat.fault ? r->flat.fault : "there is no subgraph");
    return QN_OK;
}

void qn_tfl_close(tfl_reader *r)
{
    if (!r->b)
        return;
    qn_names_free(&r->taken);
    qn_names_free(&r->variables);
}

static qn_status spend(tfl_reader *r, size_t count)
{
    if (count > r->budget)
        return qn_fail(r->b->ctx, QN_E_FORMAT, "more tensors or operators than the file has bytes");
    r->budget -= count;
    return QN_OK;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* A file of more than 2 GiB has contents behind the flatbuffer, where `offset` says. */
static qn_string contents_of(tfl_reader *r, int64_t index)
{
    if (index <= 0 || (size_t)index >= r->buffers.count)
        return (qn_string){NULL, 0};
    const qn_flat_table buffer = qn_flat_item(&r->buffers, (size_t)index);
    const uint64_t offset = (uint64_t)qn_flat_int(&buffer, QN_TFL_BUFFER_OFFSET, 8, 0);
    const uint64_t size = (uint64_t)qn_flat_int(&buffer, QN_TFL_BUFFER_SIZE, 8, 0);
    if (offset <= 1)
        return qn_flat_text(&buffer, QN_TFL_BUFFER_DATA);
    if (offset > r->flat.size || size > r->flat.size - offset) {
        r->flat.fault = "a buffer points out of the file";
        return (qn_string){NULL, 0};
    }
    return (qn_string){(const char *)r->flat.data + offset, (size_t)size};
}

static qn_status read_dims(tfl_tensor *t, const tfl_reader *r, const qn_flat_table *table)
{
    const qn_flat_list shape = qn_flat_items(table, QN_TFL_TENSOR_SHAPE, 4);
    const qn_flat_list open = qn_flat_items(table, QN_TFL_TENSOR_SIGNATURE, 4);
    const qn_flat_list *dims = open.count == shape.count ? &open : &shape;
    if (dims->count > QN_MAX_RANK)
        return qn_fail(r->b->ctx, QN_E_UNSUPPORTED, "tensor '%s' has %zu axes, at most %d are read",
                       t->name, dims->count, QN_MAX_RANK);
    t->rank = (int32_t)dims->count;
    for (int32_t i = 0; i < t->rank; i++)
        t->dims[i] = QN_MAX(qn_flat_item_int(dims, (size_t)i), -1);
    return QN_OK;
}

/* Values and layers go by the names of tensors; those of a file may be absent or the same. */
static qn_status choose_name(tfl_tensor *t, tfl_reader *r, qn_string name, size_t index)
{
    qn_arena *arena = &r->b->model->arena;
    t->name = name.length ? qn_arena_text(arena, name.text, name.length)
                          : qn_arena_format(arena, "tensor_%zu", index);
    QN_TRY_ALLOC(r->b->ctx, t->name);
    for (size_t i = index; qn_names_get(&r->taken, t->name); i++) {
        t->name = qn_arena_format(arena, "%.*s_%zu", (int)QN_MIN(name.length, 1000u),
                                  name.length ? name.text : "", i);
        QN_TRY_ALLOC(r->b->ctx, t->name);
    }
    return qn_names_set(&r->taken, t->name, t);
}

static qn_status read_tensor(tfl_tensor *t, tfl_reader *r, const qn_flat_table *table, size_t index)
{
    const qn_flat_table quant = qn_flat_child(table, QN_TFL_TENSOR_QUANTIZATION);
    const int64_t type = qn_flat_int(table, QN_TFL_TENSOR_TYPE, 1, 0);
    QN_TRY(choose_name(t, r, qn_flat_text(table, QN_TFL_TENSOR_NAME), index));
    QN_TRY(read_dims(t, r, table));
    t->dtype = type >= 0 && (size_t)type < QN_COUNT_OF(dtypes) ? dtypes[type] : QN_UNDEFINED;
    t->packed = type == TYPE_INT4;
    t->bytes = contents_of(r, (uint32_t)qn_flat_int(table, QN_TFL_TENSOR_BUFFER, 4, 0));
    t->variable = qn_flat_int(table, QN_TFL_TENSOR_VARIABLE, 1, 0) != 0;
    t->scales = qn_flat_items(&quant, QN_TFL_QUANT_SCALE, 4);
    t->zeros = qn_flat_items(&quant, QN_TFL_QUANT_ZERO, 8);
    t->axis = (int32_t)qn_flat_int(&quant, QN_TFL_QUANT_AXIS, 4, 0);
    t->sparsity = qn_flat_child(table, QN_TFL_TENSOR_SPARSITY);
    if (qn_flat_int(&quant, QN_TFL_QUANT_DETAILS, 1, 0) != 0 && !t->scales.count)
        t->dtype = QN_UNDEFINED; /* scales by blocks */
    return QN_OK;
}

qn_status qn_tfl_scope_open(tfl_scope *out, tfl_reader *r, int64_t number)
{
    qn_layouts_init(&out->layouts, r->b);
    if (number < 0 || (size_t)number >= r->subgraphs.count)
        return qn_fail(r->b->ctx, QN_E_FORMAT, "there is no subgraph %lld", (long long)number);
    if (r->depth >= MAX_DEPTH)
        return qn_fail(r->b->ctx, QN_E_FORMAT, "subgraphs call each other too deeply");
    out->table = qn_flat_item(&r->subgraphs, (size_t)number);
    const qn_flat_list tensors = qn_flat_items(&out->table, QN_TFL_GRAPH_TENSORS, 4);
    QN_TRY(spend(r, tensors.count));
    out->tensors = qn_arena_array(&r->b->model->arena, tensors.count, sizeof *out->tensors);
    QN_TRY_ALLOC(r->b->ctx, out->tensors);
    out->n_tensors = tensors.count;
    for (size_t i = 0; i < tensors.count; i++) {
        const qn_flat_table table = qn_flat_item(&tensors, i);
        QN_TRY(read_tensor(&out->tensors[i], r, &table, i));
    }
    return r->flat.fault ? qn_fail(r->b->ctx, QN_E_FORMAT, "%s", r->flat.fault) : QN_OK;
}

void qn_tfl_scope_close(tfl_scope *scope)
{
    if (scope->layouts.builder)
        qn_layouts_free(&scope->layouts);
}

qn_status qn_tfl_tensor(tfl_tensor **out, const tfl_scope *scope, int64_t index)
{
    qn_graph_builder *b = scope->layouts.builder;
    *out = NULL;
    if (index == -1)
        return QN_OK;
    if (index < 0 || (size_t)index >= scope->n_tensors)
        return qn_graph_builder_fail(b, QN_E_FORMAT, "there is no tensor %lld", (long long)index);
    *out = &scope->tensors[index];
    return QN_OK;
}

qn_type qn_tfl_type(const tfl_tensor *t)
{
    return qn_type_tensor(t->dtype, t->rank, t->dims);
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* Files before 2020 have a byte for the number, later ones both. */
static const tfl_op *row_of(const char **name, tfl_reader *r, const qn_flat_table *operator)
{
    const int64_t index = qn_flat_int(operator, QN_TFL_OPERATOR_CODE, 4, 0);
    *name = "?";
    if (index < 0 || (size_t)index >= r->codes.count)
        return NULL;
    const qn_flat_table code = qn_flat_item(&r->codes, (size_t)index);
    const int64_t old = qn_flat_int(&code, QN_TFL_CODE_OLD, 1, 0);
    const int64_t number = QN_MAX(qn_flat_int(&code, QN_TFL_CODE_BUILTIN, 4, 0), old);
    const qn_string custom = qn_flat_text(&code, QN_TFL_CODE_CUSTOM);
    for (size_t i = 0; i < qn_tfl_ops_count; i++) {
        const tfl_op *row = &qn_tfl_ops[i];
        *name = row->name;
        if (row->code == number &&
            (number != QN_TFL_CUSTOM || (strlen(row->name) == custom.length &&
                                         memcmp(row->name, custom.text, custom.length) == 0)))
            return row;
    }
    *name =
        number == QN_TFL_CUSTOM
            ? qn_arena_text(&r->b->model->arena, custom.length ? custom.text : "", custom.length)
            : qn_arena_format(&r->b->model->arena, "operator %lld", (long long)number);
    return NULL;
}

static qn_status read_list(tfl_tensor ***out, size_t *count, tfl_reader *r, const tfl_scope *scope,
                           const qn_flat_list *list)
{
    QN_TRY(spend(r, list->count));
    *out = qn_arena_array(&r->b->model->arena, list->count, sizeof **out);
    QN_TRY_ALLOC(r->b->ctx, *out);
    *count = list->count;
    for (size_t i = 0; i < list->count; i++)
        QN_TRY(qn_tfl_tensor(&(*out)[i], scope, qn_flat_item_int(list, i)));
    return QN_OK;
}

static qn_status read_layer(tfl_layer *l, tfl_reader *r, tfl_scope *scope,
                            const qn_flat_table *operator)
{
    const qn_flat_list inputs = qn_flat_items(operator, QN_TFL_OPERATOR_INPUTS, 4);
    const qn_flat_list outputs = qn_flat_items(operator, QN_TFL_OPERATOR_OUTPUTS, 4);
    const char *type;
    *l = (tfl_layer){.reader = r, .b = r->b, .layouts = &scope->layouts, .scope = scope};
    l->row = row_of(&type, r, operator);
    QN_TRY_ALLOC(r->b->ctx, type);
    qn_graph_builder_layer(r->b, "?", type);
    QN_TRY(read_list(&l->in, &l->n_in, r, scope, &inputs));
    QN_TRY(read_list(&l->out, &l->n_out, r, scope, &outputs));
    if (l->n_out && l->out[0])
        qn_graph_builder_layer(r->b, l->out[0]->name, type);
    l->options = qn_flat_child(operator, QN_TFL_OPERATOR_OPTIONS);
    if (!l->options.flat)
        l->options = qn_flat_child(operator, QN_TFL_OPERATOR_OPTIONS_2);
    l->custom = qn_flat_text(operator, QN_TFL_OPERATOR_CUSTOM);
    return r->flat.fault ? qn_graph_builder_fail(r->b, QN_E_FORMAT, "%s", r->flat.fault) : QN_OK;
}

/* Integers can stay as they are where the numbers are moved only, and mean the same on both
 * sides. */
static bool moves_integers(const tfl_layer *l)
{
    const unsigned flags = l->row->flags;
    const size_t from = flags & QN_TFL_SECOND ? 1 : 0;
    if (!(flags & (QN_TFL_MOVES | QN_TFL_MOVES_BYTES)) || !qn_tfl_has(l, from) || !l->n_out)
        return false;
    if (flags & QN_TFL_MOVES_BYTES && l->in[from]->dtype == QN_INT16)
        return false;
    for (size_t i = 0; i < l->n_out; i++) {
        if (l->out[i] && l->out[i]->dtype == l->in[from]->dtype &&
            !qn_tfl_is_alike(l->in[from], l->out[i]))
            return false;
    }
    return true;
}

static qn_status convert_layer(tfl_layer *l)
{
    if (!l->row)
        return qn_graph_builder_fail(l->b, QN_E_UNSUPPORTED, "this operator is not known");
    l->raw = moves_integers(l);
    QN_TRY(l->row->convert(l));
    for (size_t i = 0; i < l->n_out; i++) {
        if (l->out[i] && !l->out[i]->known)
            return qn_tfl_wrong(l, "nothing computes its output '%s'", l->out[i]->name);
    }
    return QN_OK;
}

/* Outputs of a layer that cannot be read are what the file says of them, so that those behind it
 * can be. */
static qn_status settle(tfl_layer *l, qn_status status)
{
    if (status == QN_OK)
        return QN_OK;
    QN_TRY(qn_graph_builder_settle(l->b, status, NULL, 0));
    for (size_t i = 0; i < l->n_out; i++) {
        qn_value *value;
        if (!l->out[i])
            continue;
        QN_TRY(qn_value_create(&value, l->b->graph, l->out[i]->name));
        value->type = qn_tfl_type(l->out[i]);
        QN_TRY(qn_tfl_give_raw(l, i, value, QN_ORDER_OWN));
    }
    return QN_OK;
}

qn_status qn_tfl_convert(tfl_reader *r, tfl_scope *scope)
{
    const qn_flat_list operators = qn_flat_items(&scope->table, QN_TFL_GRAPH_OPERATORS, 4);
    QN_TRY(spend(r, operators.count));
    for (size_t i = 0; i < operators.count; i++) {
        const qn_flat_table operator= qn_flat_item(&operators, i);
        tfl_layer l;
        QN_TRY(qn_check_cancel(r->b->ctx));
        QN_TRY(read_layer(&l, r, scope, &operator));
        QN_TRY(settle(&l, convert_layer(&l)));
        if (r->flat.fault)
            return qn_graph_builder_fail(r->b, QN_E_FORMAT, "%s", r->flat.fault);
    }
    return QN_OK;
}
