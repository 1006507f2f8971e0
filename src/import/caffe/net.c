/* The layers of a network: both forms of their types, phases, names, and what is cut. */
#include <stdio.h>
#include <string.h>

#include "import/caffe/caffe.h"

/* ---- Types ----------------------------------------------------------------------------------- */

/* Types of the first form by their words in it; others are those of today without '_'. */
static const char *const old_types[][2] = {
    {"ABSVAL", "AbsVal"},
    {"ACCURACY", "Accuracy"},
    {"ARGMAX", "ArgMax"},
    {"BN", "BN"},
    {"BNLL", "BNLL"},
    {"CONCAT", "Concat"},
    {"CONTRASTIVE_LOSS", "ContrastiveLoss"},
    {"CONVOLUTION", "Convolution"},
    {"DATA", "Data"},
    {"DECONVOLUTION", "Deconvolution"},
    {"DROPOUT", "Dropout"},
    {"DUMMY_DATA", "DummyData"},
    {"ELTWISE", "Eltwise"},
    {"EUCLIDEAN_LOSS", "EuclideanLoss"},
    {"EXP", "Exp"},
    {"FLATTEN", "Flatten"},
    {"HDF5_DATA", "HDF5Data"},
    {"HDF5_OUTPUT", "HDF5Output"},
    {"HINGE_LOSS", "HingeLoss"},
    {"IM2COL", "Im2col"},
    {"IMAGE_DATA", "ImageData"},
    {"INFOGAIN_LOSS", "InfogainLoss"},
    {"INNER_PRODUCT", "InnerProduct"},
    {"LRN", "LRN"},
    {"MEMORY_DATA", "MemoryData"},
    {"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss"},
    {"MVN", "MVN"},
    {"POOLING", "Pooling"},
    {"POWER", "Power"},
    {"PRELU", "PReLU"},
    {"RELU", "ReLU"},
    {"RESHAPE", "Reshape"},
    {"ROI_POOLING", "ROIPooling"},
    {"SIGMOID", "Sigmoid"},
    {"SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
    {"SILENCE", "Silence"},
    {"SLICE", "Slice"},
    {"SOFTMAX", "Softmax"},
    {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
    {"SPLIT", "Split"},
    {"TANH", "TanH"},
    {"THRESHOLD", "Threshold"},
    {"UPSAMPLE", "Upsample"},
    {"WINDOW_DATA", "WindowData"},
};

static const char *type_of(const char *type)
{
    for (size_t i = 0; i < QN_COUNT_OF(old_types); i++) {
        if (strcmp(old_types[i][0], type) == 0)
            return old_types[i][1];
    }
    return type;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), own = strlen(ending);
    return length >= own && strcmp(text + length - own, ending) == 0;
}

bool qn_caffe_is_python_proposal(const qn_caffe_layer *layer)
{
    const qn_proto_message *python = qn_caffe_param(layer, QN_CAFFE_LAYER_PYTHON);
    const qn_string name = qn_proto_string(python, QN_CAFFE_PYTHON_LAYER);
    return strcmp(layer->type, "Python") == 0 && name.length == strlen("ProposalLayer") &&
           memcmp(name.text, "ProposalLayer", name.length) == 0;
}

bool qn_caffe_brings_data(const qn_caffe_layer *layer)
{
    return ends_with(layer->type, "Data") ||
           (strcmp(layer->type, "Python") == 0 && layer->bottoms.count == 0);
}

bool qn_caffe_measures(const qn_caffe_layer *layer)
{
    static const char *const types[] = {"SoftmaxWithLoss", "Accuracy", "HDF5Output",
                                        "DetectionEvaluate"};
    for (size_t i = 0; i < QN_COUNT_OF(types); i++) {
        if (strcmp(types[i], layer->type) == 0)
            return true;
    }
    return ends_with(layer->type, "Loss");
}

/* ---- Phases ---------------------------------------------------------------------------------- */

static bool text_is(qn_string text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.text, word, text.length) == 0;
}

/* Whether the stage is on: one that the network's state names, or "deploy" where there is one. */
static bool has_stage(const qn_caffe_net *net, qn_string stage)
{
    const qn_proto_message *state = qn_proto_get_message(&net->text.root, QN_CAFFE_NET_STATE);
    for (size_t i = 0; i < qn_proto_count(state, QN_CAFFE_STATE_STAGE); i++) {
        const qn_string own = qn_proto_string_at(state, QN_CAFFE_STATE_STAGE, i);
        if (own.length == stage.length && memcmp(own.text, stage.text, own.length) == 0)
            return true;
    }
    return net->has_deploy_stage && text_is(stage, "deploy");
}

static bool meets(const qn_caffe_net *net, const qn_proto_message *rule)
{
    const qn_proto_message *state = qn_proto_get_message(&net->text.root, QN_CAFFE_NET_STATE);
    const int64_t level = qn_proto_int(state, QN_CAFFE_STATE_LEVEL, 0);
    if (qn_proto_int(rule, QN_CAFFE_STATE_PHASE, QN_CAFFE_TEST) != QN_CAFFE_TEST ||
        level < qn_proto_int(rule, QN_CAFFE_STATE_MIN_LEVEL, level) ||
        level > qn_proto_int(rule, QN_CAFFE_STATE_MAX_LEVEL, level))
        return false;
    for (size_t i = 0; i < qn_proto_count(rule, QN_CAFFE_STATE_STAGE); i++) {
        if (!has_stage(net, qn_proto_string_at(rule, QN_CAFFE_STATE_STAGE, i)))
            return false;
    }
    for (size_t i = 0; i < qn_proto_count(rule, QN_CAFFE_STATE_NOT_STAGE); i++) {
        if (has_stage(net, qn_proto_string_at(rule, QN_CAFFE_STATE_NOT_STAGE, i)))
            return false;
    }
    return true;
}

static bool meets_any(const qn_caffe_net *net, const qn_proto_message *layer, uint32_t rules)
{
    for (size_t i = 0; i < qn_proto_count(layer, rules); i++) {
        if (meets(net, qn_proto_message_at(layer, rules, i)))
            return true;
    }
    return false;
}

/* Whether the layer is there when the network is used. */
static bool is_for_use(const qn_caffe_net *net, const qn_proto_message *layer)
{
    if (qn_proto_int(layer, QN_CAFFE_LAYER_PHASE, QN_CAFFE_TEST) != QN_CAFFE_TEST)
        return false;
    if (qn_proto_count(layer, QN_CAFFE_LAYER_INCLUDE))
        return meets_any(net, layer, QN_CAFFE_LAYER_INCLUDE);
    return !meets_any(net, layer, QN_CAFFE_LAYER_EXCLUDE);
}

static bool names_deploy(const qn_proto_message *layer, uint32_t rules)
{
    for (size_t i = 0; i < qn_proto_count(layer, rules); i++) {
        const qn_proto_message *rule = qn_proto_message_at(layer, rules, i);
        for (size_t k = 0; k < qn_proto_count(rule, QN_CAFFE_STATE_STAGE); k++) {
            if (text_is(qn_proto_string_at(rule, QN_CAFFE_STATE_STAGE, k), "deploy"))
                return true;
        }
    }
    return false;
}

static void find_deploy_stage(qn_caffe_net *net)
{
    const qn_proto_message *root = &net->text.root;
    for (size_t i = 0; i < qn_proto_count(root, QN_CAFFE_NET_LAYER); i++) {
        const qn_proto_message *layer = qn_proto_message_at(root, QN_CAFFE_NET_LAYER, i);
        if (names_deploy(layer, QN_CAFFE_LAYER_INCLUDE) ||
            names_deploy(layer, QN_CAFFE_LAYER_EXCLUDE))
            net->has_deploy_stage = true;
    }
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static qn_status read_texts(qn_caffe_texts *out, qn_caffe_net *net, const qn_proto_message *layer,
                            uint32_t number)
{
    qn_arena *arena = &net->builder.model->arena;
    out->count = qn_proto_count(layer, number);
    out->at = qn_arena_array(arena, QN_MAX(out->count, (size_t)1), sizeof *out->at);
    QN_TRY_ALLOC(net->ctx, out->at);
    for (size_t i = 0; i < out->count; i++) {
        const qn_string text = qn_proto_string_at(layer, number, i);
        out->at[i] = qn_arena_text(arena, text.text, text.length);
        QN_TRY_ALLOC(net->ctx, out->at[i]);
    }
    return QN_OK;
}

static qn_status read_layer(qn_caffe_layer *out, qn_caffe_net *net, const qn_proto_message *message)
{
    qn_arena *arena = &net->builder.model->arena;
    const qn_string name = qn_proto_string(message, QN_CAFFE_LAYER_NAME);
    const qn_string type = qn_proto_string(message, QN_CAFFE_LAYER_TYPE);
    const char *own = qn_arena_text(arena, type.text, type.length);
    QN_TRY_ALLOC(net->ctx, own);
    *out = (qn_caffe_layer){.message = message, .type = type_of(own), .is_named = name.length > 0};
    QN_TRY(read_texts(&out->bottoms, net, message, QN_CAFFE_LAYER_BOTTOM));
    QN_TRY(read_texts(&out->tops, net, message, QN_CAFFE_LAYER_TOP));
    out->name = name.length       ? qn_arena_text(arena, name.text, name.length)
                : out->tops.count ? out->tops.at[0]
                                  : out->type;
    QN_TRY_ALLOC(net->ctx, out->name);
    return *out->type ? QN_OK : qn_fail(net->ctx, QN_E_FORMAT, "layer '%s' has no type", out->name);
}

qn_status qn_caffe_read_layers(qn_caffe_layer **layers, size_t *count, qn_caffe_net *net)
{
    static const uint32_t forms[] = {QN_CAFFE_NET_LAYERS, QN_CAFFE_NET_LAYER};
    const qn_proto_message *root = &net->text.root;
    const size_t all = qn_proto_count(root, forms[0]) + qn_proto_count(root, forms[1]);
    if (all == 0)
        return qn_fail(net->ctx, QN_E_FORMAT, "this text has no layers of Caffe");
    *count = 0;
    *layers = qn_arena_array(&net->builder.model->arena, all, sizeof **layers);
    QN_TRY_ALLOC(net->ctx, *layers);
    find_deploy_stage(net);
    for (size_t f = 0; f < QN_COUNT_OF(forms); f++) {
        for (size_t i = 0; i < qn_proto_count(root, forms[f]); i++) {
            const qn_proto_message *message = qn_proto_message_at(root, forms[f], i);
            if (is_for_use(net, message))
                QN_TRY(read_layer(&(*layers)[(*count)++], net, message));
        }
    }
    return QN_OK;
}
