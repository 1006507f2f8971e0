/* Where a model begins and ends: what the options name, else what there is only one of. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "import/tensorflow/tensorflow.h"

static bool is_any(const char *type, const char *const *types)
{
    for (; *types; types++) {
        if (strcmp(type, *types) == 0)
            return true;
    }
    return false;
}

/* ---- Last nodes ------------------------------------------------------------------------------ */

/* What nothing reads, and yet is no result. */
static bool is_result(const qn_tf_node *node)
{
    static const char *const others[] = {"Const",
                                         "NoOp",
                                         "Placeholder",
                                         "PlaceholderWithDefault",
                                         "Assert",
                                         "SaveV2",
                                         "RestoreV2",
                                         "Save",
                                         "Restore",
                                         "Assign",
                                         "MergeV2Checkpoints",
                                         "AssignVariableOp",
                                         "VarHandleOp",
                                         "VariableV2",
                                         "Variable",
                                         "ReadVariableOp",
                                         "VarIsInitializedOp",
                                         "MergeSummary",
                                         "ScalarSummary",
                                         "HistogramSummary",
                                         "Print",
                                         "ShardedFilename",
                                         NULL};
    /* A condition says in a node of its own which branch is taken. */
    const qn_tf_node *from = node->n_in ? node->from[0] : NULL;
    if (strcmp(node->type, "Identity") == 0 && from && strcmp(from->type, "Switch") == 0 &&
        from->n_in == 2 && strcmp(from->in[0], from->in[1]) == 0)
        return false;
    return !is_any(node->type, others);
}

static qn_status count_readers(size_t *readers, const qn_tf_scope *scope)
{
    for (size_t i = 0; i < scope->n_nodes; i++) {
        const qn_tf_node *node = &scope->nodes[i];
        for (size_t k = 0; k < node->n_in; k++) {
            if (node->from[k])
                readers[node->from[k] - scope->nodes]++;
        }
    }
    return QN_OK;
}

static qn_status fail_candidates(const qn_tf_scope *scope, const size_t *readers, size_t found)
{
    char list[QN_ERROR_SIZE / 2] = "";
    for (size_t i = 0; i < scope->n_nodes; i++) {
        if (!readers[i] && is_result(&scope->nodes[i]))
            qn_word_list(list, sizeof list, "'%s'", scope->nodes[i].own);
    }
    if (!found)
        return qn_fail(scope->import->ctx, QN_E_FORMAT,
                       "the graph has no node that it could end with");
    return qn_fail(scope->import->ctx, QN_E_INVALID,
                   "last_nodes (`last_nodes`) has to say where the graph ends, which has %zu "
                   "nodes that nothing reads: %s",
                   found, list);
}

static qn_status guess_end(qn_tf_ends *out, const qn_tf_scope *scope)
{
    qn_context *ctx = scope->import->ctx;
    size_t found = 0;
    size_t *readers = qn_alloc_zero(ctx, scope->n_nodes + 1, sizeof *readers);
    QN_TRY_ALLOC(ctx, readers);
    qn_status status;
    QN_TRY_OR_DONE(count_readers(readers, scope));
    for (size_t i = 0; i < scope->n_nodes; i++) {
        if (readers[i] || !is_result(&scope->nodes[i]))
            continue;
        out->values[0] = out->names[0] = scope->nodes[i].name;
        found++;
    }
    out->count = 1;
    status = found == 1 ? QN_OK : fail_candidates(scope, readers, found);
done:
    qn_free(ctx, readers);
    return status;
}

/* A name that is none: with the one that was meant, where that can be guessed. */
static qn_status fail_name(const qn_tf_scope *scope, const char *option, const char *name)
{
    qn_context *ctx = scope->import->ctx;
    const char **words = qn_arena_array(&scope->import->arena, scope->n_nodes + 1, sizeof *words);
    QN_TRY_ALLOC(ctx, words);
    for (size_t i = 0; i < scope->n_nodes; i++)
        words[i] = scope->nodes[i].own;
    const char *meant = qn_word_nearest(words, name);
    return qn_fail(ctx, QN_E_INVALID, "%s: the graph has no node '%s'%s%s%s", option, name,
                   meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

qn_status qn_tf_find_ends(qn_tf_ends *out, qn_tf_scope *scope)
{
    qn_tf_import *import = scope->import;
    const qn_model_load_options *o = import->options;
    const size_t room = QN_MAX(o->n_last_nodes, (size_t)1);
    out->values = qn_arena_array(&import->arena, room, sizeof *out->values);
    out->names = qn_arena_array(&import->arena, room, sizeof *out->names);
    QN_TRY_ALLOC(import->ctx, out->values);
    QN_TRY_ALLOC(import->ctx, out->names);
    if (!o->n_last_nodes)
        return guess_end(out, scope);
    for (size_t i = 0; i < o->n_last_nodes; i++) {
        const char *text = o->last_nodes[i];
        if (!qn_tf_scope_node(scope, text))
            return fail_name(scope, "last_nodes (`last_nodes`)", text);
        QN_TRY(qn_tf_scope_value(&out->values[i], scope, (qn_string){text, strlen(text)}));
        out->names[i] = out->values[i];
    }
    out->count = o->n_last_nodes;
    return QN_OK;
}

/* ---- First nodes ----------------------------------------------------------------------------- */

/* The shape that the options give the input: by its name, else the next one without a name. */
static const qn_input_shape *shape_for(qn_tf_import *import, const char *name)
{
    const qn_model_load_options *o = import->options;
    size_t nameless = 0;
    for (size_t i = 0; i < o->n_shapes; i++) {
        if (o->shapes[i].name && strcmp(o->shapes[i].name, name) == 0)
            return &o->shapes[i];
    }
    for (size_t i = 0; i < o->n_shapes; i++) {
        if (!o->shapes[i].name && nameless++ == import->n_shapes_used) {
            import->n_shapes_used++;
            return &o->shapes[i];
        }
    }
    return NULL;
}

static qn_status set_shape(qn_type *type, qn_tf_import *import, const char *name)
{
    const qn_input_shape *shape = shape_for(import, name);
    if (!shape)
        return QN_OK;
    if (type->rank >= 0 && type->rank != shape->rank)
        return qn_fail(import->ctx, QN_E_INVALID, "input '%s' has %d dimensions, not %d", name,
                       type->rank, shape->rank);
    for (int32_t i = 0; i < shape->rank; i++) {
        const int64_t own = type->rank >= 0 ? type->dims[i].value : -1;
        const int64_t wanted = shape->dims[i];
        if (own >= 0 && wanted >= 0 && own != wanted)
            return qn_fail(import->ctx, QN_E_INVALID,
                           "input '%s': dimension %d is %lld in the model, not %lld", name, i,
                           (long long)own, (long long)wanted);
        type->dims[i] = qn_dim_of(own >= 0 ? own : wanted);
    }
    type->rank = shape->rank;
    return QN_OK;
}

qn_status qn_tf_input(qn_tf_import *import, const char *name, const char *value, qn_type *type)
{
    qn_value *made;
    QN_TRY(set_shape(type, import, name));
    if (type->rank < 0)
        return qn_fail(import->ctx, QN_E_INVALID,
                       "the model does not say how many dimensions its input '%s' has: shapes "
                       "(`load.shapes`) has to",
                       name);
    const bool turned = import->options->channels_first && type->rank == 4;
    const qn_axis_order order = turned ? QN_ORDER_CHANNELS_FIRST : QN_ORDER_OWN;
    if (type->rank > 0 && type->dims[0].value < 0)
        type->dims[0] = (qn_dim){-1, "N"};
    if (turned) {
        const qn_type own = *type;
        for (int32_t i = 0; i < 4; i++)
            type->dims[qn_layout_axis(order, 4, i)] = own.dims[i];
    }
    QN_TRY(qn_graph_build_input(&made, &import->builder, name, type));
    return qn_layout_define(&import->layouts, value, made, order);
}

/* What the file says of a node's first output. */
static qn_status type_of(qn_type *out, const qn_tf_node *node)
{
    const qn_proto_message *shape =
        qn_proto_get_message(qn_tf_attr(node, "shape"), QN_TF_VALUE_SHAPE);
    const qn_proto_message *list =
        qn_proto_get_message(qn_tf_attr(node, "_output_shapes"), QN_TF_VALUE_LIST);
    *out = (qn_type){.kind = QN_TYPE_TENSOR};
    const bool silent = !shape || qn_proto_int(shape, QN_TF_SHAPE_UNKNOWN_RANK, 0);
    if (silent && qn_proto_count(list, QN_TF_LIST_SHAPE))
        shape = qn_proto_message_at(list, QN_TF_LIST_SHAPE, 0);
    QN_TRY(qn_tf_shape(out, node->import, shape));
    out->dtype = qn_tf_attr_dtype(node, "dtype", qn_tf_attr_dtype(node, "T", QN_FLOAT32));
    if (out->dtype == QN_UNDEFINED)
        return qn_fail(node->import->ctx, QN_E_UNSUPPORTED, "input '%s' is no tensor", node->own);
    return QN_OK;
}

/* The rank that an operator wants of its pictures; 0: of any. */
static int32_t rank_for(const qn_tf_node *reader, size_t i)
{
    static const struct {
        const char *type;
        size_t input;
        int32_t rank;
    } rows[] = {{"Conv2D", 0, 4},
                {"DepthwiseConv2dNative", 0, 4},
                {"MaxPool", 0, 4},
                {"AvgPool", 0, 4},
                {"FusedBatchNorm", 0, 4},
                {"FusedBatchNormV3", 0, 4},
                {"ResizeBilinear", 0, 4},
                {"ResizeNearestNeighbor", 0, 4},
                {"SpaceToDepth", 0, 4},
                {"Conv2DBackpropInput", 2, 4},
                {"LRN", 0, 4},
                {"Conv3D", 0, 5},
                {"AvgPool3D", 0, 5},
                {"MaxPool3D", 0, 5},
                {"MatMul", 0, 2}};
    for (size_t k = 0; k < QN_COUNT_OF(rows); k++) {
        if (rows[k].input == i && strcmp(rows[k].type, reader->type) == 0)
            return rows[k].rank;
    }
    return 0;
}

/* The rank that those who read the node want; -1: nobody says. */
static int32_t rank_by_readers(const qn_tf_node *node)
{
    const qn_tf_scope *scope = node->scope;
    for (size_t i = 0; i < scope->n_nodes; i++) {
        const qn_tf_node *reader = &scope->nodes[i];
        for (size_t k = 0; k < reader->n_in; k++) {
            const int32_t rank = reader->from[k] == node ? rank_for(reader, k) : 0;
            if (rank)
                return rank;
        }
    }
    return -1;
}

static qn_status start_at(qn_tf_node *node)
{
    qn_type type;
    qn_tf_import *import = node->import;
    QN_TRY(type_of(&type, node));
    /* Old files have a shape without dimensions where they mean any. */
    if (type.rank <= 0) {
        const int32_t rank = rank_by_readers(node);
        type.rank = rank < 0 && type.rank == 0 && import->options->n_shapes ? -1 : type.rank;
        type.rank = rank > 0 ? rank : type.rank;
        for (int32_t i = 0; i < type.rank; i++)
            type.dims[i] = qn_dim_unknown();
    }
    QN_TRY(qn_names_set(&import->starts, node->name, node));
    return qn_tf_input(import, node->name, node->name, &type);
}

/* The samples of a wav file are the input, not the file: numbers from -1 to 1, and how many there
 * are in a second, which speech commands have 16000 of. */
static qn_status start_at_samples(qn_tf_node *node)
{
    enum { RATE = 16000 };
    qn_value *rate;
    qn_tf_import *import = node->import;
    qn_type type = {.kind = QN_TYPE_TENSOR, .dtype = QN_FLOAT32, .rank = 2};
    const int64_t sizes[] = {qn_tf_attr_int(node, "desired_samples", -1),
                             qn_tf_attr_int(node, "desired_channels", -1)};
    for (int i = 0; i < 2; i++)
        type.dims[i] = sizes[i] > 0 ? qn_dim_of(sizes[i]) : qn_dim_unknown();
    qn_log(import->ctx, QN_LOG_NOTE, "the input '%s' is the samples of a wav file, %d a second",
           node->name, RATE);
    QN_TRY(qn_names_set(&import->starts, node->name, node));
    QN_TRY(qn_tf_number(&rate, import, RATE, QN_INT32));
    const char *name = qn_tf_output_name(node, 1);
    QN_TRY_ALLOC(import->ctx, name);
    QN_TRY(qn_layout_define(&import->layouts, name, rate, QN_ORDER_OWN));
    return qn_tf_input(import, node->name, node->name, &type);
}

static bool is_type(const qn_tf_node *node, const char *type)
{
    return strcmp(node->type, type) == 0;
}

/* A file that is decoded: what decodes it is the input. */
static bool is_file(const qn_tf_node *node)
{
    return qn_tf_attr_dtype(node, "dtype", QN_UNDEFINED) == QN_STRING;
}

/* A switch that says whether the model is trained. */
static bool is_training_switch(const qn_tf_node *node)
{
    return qn_tf_attr_dtype(node, "dtype", QN_UNDEFINED) == QN_BOOL;
}

qn_status qn_tf_make_inputs(qn_tf_scope *scope, const qn_tf_ends *ends)
{
    qn_tf_import *import = scope->import;
    const qn_model_load_options *o = import->options;
    qn_tf_node **needed = NULL;
    size_t count = 0;
    for (size_t i = 0; i < o->n_first_nodes; i++) {
        qn_tf_node *node = qn_tf_scope_node(scope, o->first_nodes[i]);
        if (!node)
            return fail_name(scope, "first_nodes (`first_nodes`)", o->first_nodes[i]);
        QN_TRY(is_type(node, "DecodeWav") ? start_at_samples(node) : start_at(node));
    }
    if (o->n_first_nodes)
        return QN_OK;
    QN_TRY(qn_tf_needed(&needed, &count, scope, ends->values, ends->count));
    qn_status status = QN_OK;
    const uint32_t walk = scope->walks;
    qn_free(import->ctx, needed);
    for (size_t i = 0; i < scope->n_nodes && status == QN_OK; i++) {
        qn_tf_node *node = &scope->nodes[i];
        if (node->seen == walk && is_type(node, "DecodeWav"))
            status = start_at_samples(node);
        else if (node->seen == walk && is_type(node, "Placeholder") && !is_training_switch(node) &&
                 !is_file(node))
            status = start_at(node);
    }
    return status;
}

/* ---- Results --------------------------------------------------------------------------------- */

qn_status qn_tf_make_outputs(qn_tf_import *import, const qn_tf_ends *ends)
{
    qn_graph_builder *b = &import->builder;
    qn_graph_builder_layer(b, "", "");
    for (size_t i = 0; i < ends->count; i++) {
        qn_value *value;
        if (!qn_names_get(&import->layouts.named, ends->values[i]))
            return qn_fail(import->ctx, QN_E_UNSUPPORTED, "output '%s' is no tensor",
                           ends->names[i]);
        QN_TRY(qn_layout_find(&value, &import->layouts, ends->values[i], QN_ORDER_OWN));
        QN_TRY(qn_graph_build_define(b, ends->names[i], value));
        QN_TRY(qn_graph_build_output(b, ends->names[i]));
    }
    return QN_OK;
}
