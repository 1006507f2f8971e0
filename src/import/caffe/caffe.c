/* Caffe: what its files look like, and from a network's text and its weights to a graph. */
#include <string.h>

#include "import/caffe/caffe.h"
#include "import/detect.h"

/* ---- Detection ------------------------------------------------------------------------------- */

/* NetParameter: layers of today (100) or of the first version (2), each with a name or a type. */
static bool is_weights(qn_string file)
{
    static const qn_wire_rule rules[] = {
        {1, QN_WIRE_BYTES, false},  {2, QN_WIRE_BYTES, false},  {3, QN_WIRE_BYTES, false},
        {4, QN_WIRE_VARINT, false}, {5, QN_WIRE_VARINT, false}, {6, QN_WIRE_BYTES, false},
        {7, QN_WIRE_VARINT, false}, {8, QN_WIRE_BYTES, false},  {100, QN_WIRE_BYTES, false}};
    if (!qn_detect_message(file, rules, QN_COUNT_OF(rules)))
        return false;
    /* Layers begin with a name (1) or a type (2), both texts. */
    const qn_string layer = qn_detect_field(file, 100);
    if (layer.length > 0 && (layer.text[0] == 0x0a || layer.text[0] == 0x12))
        return true;
    /* Layers of the first version have a name (4); the network has one too (1). */
    const qn_string first = qn_detect_field(file, 2);
    return qn_detect_field(first, 4).length > 0 && qn_detect_field(file, 1).length > 0;
}

static bool is_text(const qn_model_source *source)
{
    return qn_detect_ending(source, ".prototxt") || qn_detect_word(source, "layer", '{') ||
           qn_detect_word(source, "layers", '{') || qn_detect_word(source, "input_dim", ':');
}

static const char *detect(const qn_model_source *source)
{
    const qn_string file = {(const char *)source->map.data, source->map.size};
    if (is_text(source))
        return "a network of Caffe (prototxt)";
    if (qn_detect_ending(source, ".caffemodel.h5"))
        return "weights of Caffe";
    if (qn_caffe_is_mean(file))
        return "a mean image of Caffe (binaryproto)";
    return is_weights(file) ? "weights of Caffe (caffemodel)" : NULL;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    qn_caffe_convert convert;
} converters[] = {
#define CAFFE_OP(name, convert, brief) {name, convert},
#include "import/caffe/operators.def"
#undef CAFFE_OP
};

static const qn_framework_op operators[] = {
#define CAFFE_OP(name, convert, brief) {name, brief},
#include "import/caffe/operators.def"
#undef CAFFE_OP
};

static qn_status convert(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    if (qn_caffe_is_python_proposal(layer))
        return qn_caffe_proposal(net, layer);
    for (size_t i = 0; i < QN_COUNT_OF(converters); i++) {
        if (strcmp(converters[i].name, layer->type) == 0)
            return converters[i].convert(net, layer);
    }
    return QN_CAFFE_REFUSE(net, "no such layer is known");
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static qn_status add_open(qn_caffe_net *net, const char *name)
{
    QN_TRY_GROW(net->ctx, net->open, net->open_capacity, net->n_open + 1);
    net->open[net->n_open++] = (qn_caffe_open){name, false};
    return QN_OK;
}

static void mark_read(qn_caffe_net *net, const char *name)
{
    for (size_t i = 0; i < net->n_open; i++) {
        if (strcmp(net->open[i].name, name) == 0)
            net->open[i].is_read = true;
    }
}

/* A layer that reads what was cut is cut too, and what it computes; NULL: it is kept. */
static const char *cut_bottom(const qn_caffe_net *net, const qn_caffe_layer *layer)
{
    for (size_t i = 0; i < layer->bottoms.count; i++) {
        if (qn_names_get(&net->cut, layer->bottoms.at[i]))
            return layer->bottoms.at[i];
    }
    return NULL;
}

static qn_status cut(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    for (size_t i = 0; i < layer->tops.count; i++)
        QN_TRY(qn_names_set(&net->cut, layer->tops.at[i], net));
    return QN_OK;
}

/* The tops of a layer in place are read by it and open again. */
static qn_status use(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    for (size_t i = 0; i < layer->bottoms.count; i++)
        mark_read(net, layer->bottoms.at[i]);
    for (size_t i = 0; i < layer->tops.count && strcmp(layer->type, "Input") != 0; i++)
        QN_TRY(add_open(net, layer->tops.at[i]));
    return QN_OK;
}

/* Python's layers are code of training, but where something reads them. */
static bool is_read_later(const qn_caffe_layer *layer, const qn_caffe_layer *end)
{
    for (const qn_caffe_layer *other = layer + 1; other < end; other++) {
        for (size_t b = 0; b < other->bottoms.count && !qn_caffe_measures(other); b++) {
            for (size_t t = 0; t < layer->tops.count; t++) {
                if (strcmp(other->bottoms.at[b], layer->tops.at[t]) == 0)
                    return true;
            }
        }
    }
    return false;
}

static qn_status take_layer(qn_caffe_net *net, const qn_caffe_layer *layer,
                            const qn_caffe_layer *end)
{
    qn_graph_builder *b = &net->builder;
    const char *from = cut_bottom(net, layer);
    qn_graph_builder_layer(b, layer->name, layer->type);
    if (qn_caffe_brings_data(layer))
        return qn_caffe_add_data(net, layer);
    if (from && !qn_caffe_measures(layer))
        qn_log(net->ctx, QN_LOG_INFO, "layer '%s' is cut: it reads '%s', which is for training",
               layer->name, from);
    const bool is_code = strcmp(layer->type, "Python") == 0 &&
                         !qn_caffe_is_python_proposal(layer) && !is_read_later(layer, end);
    if (from || is_code || qn_caffe_measures(layer))
        return cut(net, layer);
    const qn_status status = convert(net, layer);
    QN_TRY(qn_graph_builder_settle(b, status, layer->tops.at, layer->tops.count));
    return use(net, layer);
}

/* A blob is an output where its last value is not read; each name once, in the order of the
 * file. */
static qn_status add_outputs(qn_caffe_net *net)
{
    qn_graph_builder_layer(&net->builder, "", "");
    for (size_t i = 0; i < net->n_open; i++) {
        bool is_last = !net->open[i].is_read;
        for (size_t k = i + 1; k < net->n_open; k++)
            is_last = is_last && strcmp(net->open[i].name, net->open[k].name) != 0;
        if (is_last)
            QN_TRY(qn_graph_build_output(&net->builder, net->open[i].name));
    }
    if (net->builder.graph->n_outputs == 0)
        return qn_fail(net->ctx, QN_E_FORMAT,
                       "without its layers for training the network computes nothing");
    return QN_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status refuse_mean(qn_caffe_net *net, qn_string file)
{
    char means[QN_CAFFE_MEAN_TEXT];
    QN_TRY(qn_caffe_read_mean(means, net->ctx, file.text, file.length));
    return qn_fail(net->ctx, QN_E_FORMAT,
                   "this is a mean image of Caffe, no model; preprocessing takes the means of its "
                   "channels, mean=%s",
                   means);
}

static qn_status read_text(qn_caffe_net *net, const qn_model_source *source)
{
    const qn_string file = {(const char *)source->map.data, source->map.size};
    if (qn_caffe_is_mean(file))
        return refuse_mean(net, file);
    if (is_weights(file) || qn_detect_ending(source, ".caffemodel.h5"))
        return qn_fail(net->ctx, QN_E_FORMAT,
                       "these are weights of Caffe; give the network's .prototxt as the model, and "
                       "this file with `weights`");
    return qn_proto_parse_text(&net->text, file.text, file.length);
}

static qn_status build(qn_caffe_net *net, const char *path)
{
    qn_caffe_layer *layers;
    size_t count;
    QN_TRY(qn_caffe_read_layers(&layers, &count, net));
    QN_TRY(qn_caffe_open_weights(net, path));
    QN_TRY(qn_caffe_assign_weights(net, layers, count));
    QN_TRY(qn_caffe_add_inputs(net));
    for (size_t i = 0; i < count; i++)
        QN_TRY(take_layer(net, &layers[i], layers + count));
    QN_TRY(qn_graph_builder_finish(&net->builder));
    return add_outputs(net);
}

static qn_status load(qn_model **out, qn_model_source *source)
{
    qn_caffe_net net = {.ctx = source->ctx, .options = source->options};
    qn_status status;
    qn_proto_tree_init(&net.text, source->ctx, &qn_caffe_net_schema);
    net.text.is_lenient = true;
    qn_names_init(&net.cut, source->ctx);
    qn_names_init(&net.shared, source->ctx);
    qn_names_init(&net.file.by_name, source->ctx);
    QN_TRY_OR_DONE(read_text(&net, source));
    QN_TRY_OR_DONE(qn_graph_builder_open(&net.builder, source, "Caffe"));
    QN_TRY_OR_DONE(build(&net, source->path));
    *out = qn_graph_builder_take(&net.builder);
done:
    if (net.builder.ctx)
        qn_graph_builder_close(&net.builder);
    qn_free(source->ctx, net.open);
    qn_names_free(&net.file.by_name);
    qn_names_free(&net.shared);
    qn_names_free(&net.cut);
    qn_proto_tree_free(&net.text);
    return status;
}

const qn_importer qn_importer_caffe = {.name = "caffe",
                                       .title = "Caffe",
                                       .takes = QN_IMPORT_WEIGHTS | QN_IMPORT_SHAPES,
                                       .detect = detect,
                                       .load = load,
                                       .brief = "a .prototxt with its .caffemodel",
                                       .operators = operators,
                                       .n_operators = QN_COUNT_OF(operators)};
