/* TensorFlow Lite: what its files look like, and the table of its operators. */
#include "import/tflite/tflite.h"

#include <string.h>

#include "import/detect.h"

#define QN_TFLITE(code, name, convert, op, flags, brief) {name, code, qn_tfl_##convert, op, flags},
const tfl_op qn_tfl_ops[] = {
#include "import/tflite/operators.def"
};
#undef QN_TFLITE
const size_t qn_tfl_ops_count = QN_COUNT_OF(qn_tfl_ops);

#define QN_TFLITE(code, name, convert, op, flags, brief) {name, brief},
static const qn_framework_op operators[] = {
#include "import/tflite/operators.def"
};
#undef QN_TFLITE

static const char *detect(const qn_model_source *source)
{
    return qn_detect_bytes(source, 4, "TFL3", 4) ? "a TensorFlow Lite model" : NULL;
}

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

/* Open dimensions get names, so that inputs of one batch agree. */
static qn_status name_open_dims(qn_type *type, qn_graph_builder *b, const char *name)
{
    for (int32_t i = 0; i < type->rank; i++) {
        if (type->dims[i].value >= 0)
            continue;
        type->dims[i].symbol =
            i == 0 ? "batch" : qn_arena_format(&b->model->arena, "%s_%d", name, (int)i);
        QN_TRY_ALLOC(b->ctx, type->dims[i].symbol);
    }
    return QN_OK;
}

static qn_status add_input(tfl_scope *scope, tfl_tensor *t, const qn_model_load_options *options)
{
    qn_graph_builder *b = scope->layouts.builder;
    const bool first = options->channels_first && t->rank == 4;
    const qn_axis_order order = first ? QN_ORDER_CHANNELS_FIRST : QN_ORDER_OWN;
    qn_type type = qn_tfl_type(t);
    qn_value *value;
    if (t->dtype == QN_UNDEFINED)
        return qn_fail(b->ctx, QN_E_UNSUPPORTED, "input '%s' has a type that graphs lack", t->name);
    for (int32_t i = 0; first && i < t->rank; i++)
        type.dims[qn_layout_axis(order, t->rank, i)] = qn_dim_of(t->dims[i]);
    QN_TRY(name_open_dims(&type, b, t->name));
    QN_TRY(qn_graph_build_input(&value, b, t->name, &type));
    t->known = true;
    return qn_layout_define(&scope->layouts, t->name, value, order);
}

static qn_status add_output(tfl_reader *r, tfl_scope *scope, tfl_tensor *t)
{
    tfl_layer l = {.reader = r, .b = r->b, .layouts = &scope->layouts, .scope = scope};
    qn_value *value;
    QN_TRY(qn_tfl_hold(&l, t));
    QN_TRY(qn_layout_find(&value, &scope->layouts, t->name, QN_ORDER_OWN));
    QN_TRY(qn_graph_build_define(r->b, t->name, value));
    return qn_graph_build_output(r->b, t->name);
}

static qn_status convert(tfl_reader *r, tfl_scope *scope, const qn_model_load_options *options)
{
    const qn_flat_list inputs = qn_flat_items(&scope->table, QN_TFL_GRAPH_INPUTS, 4);
    const qn_flat_list outputs = qn_flat_items(&scope->table, QN_TFL_GRAPH_OUTPUTS, 4);
    tfl_tensor *t;
    for (size_t i = 0; i < inputs.count; i++) {
        QN_TRY(qn_tfl_tensor(&t, scope, qn_flat_item_int(&inputs, i)));
        if (t && !t->known)
            QN_TRY(add_input(scope, t, options));
    }
    QN_TRY(qn_tfl_convert(r, scope));
    QN_TRY(qn_graph_builder_finish(r->b));
    qn_graph_builder_layer(r->b, "", "");
    for (size_t i = 0; i < outputs.count; i++) {
        QN_TRY(qn_tfl_tensor(&t, scope, qn_flat_item_int(&outputs, i)));
        if (t)
            QN_TRY(add_output(r, scope, t));
    }
    return QN_OK;
}

static qn_status load(qn_model **out, qn_model_source *source)
{
    qn_graph_builder b;
    tfl_reader reader = {.b = NULL};
    tfl_scope scope = {.n_tensors = 0};
    qn_status status;
    const qn_map map = source->map;
    QN_TRY_OR_DONE(qn_graph_builder_open(&b, source, "TensorFlow Lite"));
    QN_TRY_OR_DONE(qn_tfl_open(&reader, &b, &map));
    QN_TRY_OR_DONE(qn_tfl_scope_open(&scope, &reader, 0));
    QN_TRY_OR_DONE(convert(&reader, &scope, source->options));
    *out = qn_graph_builder_take(&b);
done:
    qn_tfl_scope_close(&scope);
    qn_tfl_close(&reader);
    qn_graph_builder_close(&b);
    return status;
}

const qn_importer qn_importer_tflite = {.name = "tflite",
                                        .title = "TensorFlow Lite",
                                        .family = "tensorflow",
                                        .takes = QN_IMPORT_LAYOUT,
                                        .detect = detect,
                                        .load = load,
                                        .brief = ".tflite files, floats or integers",
                                        .operators = operators,
                                        .n_operators = QN_COUNT_OF(operators)};
