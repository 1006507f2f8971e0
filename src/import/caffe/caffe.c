/* Caffe: what its files look like. */
#include "import/detect.h"

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

static const char *detect(const qn_model_source *source)
{
    const qn_string file = {(const char *)source->map.data, source->map.size};
    if (qn_detect_word(source, "layer", '{') || qn_detect_word(source, "layers", '{') ||
        qn_detect_word(source, "input_dim", ':'))
        return "a network of Caffe (prototxt)";
    if (qn_detect_ending(source, ".caffemodel.h5"))
        return "weights of Caffe";
    return is_weights(file) ? "weights of Caffe (caffemodel)" : NULL;
}

const qn_importer qn_importer_caffe = {.name = "caffe",
                                       .title = "Caffe",
                                       .takes = QN_IMPORT_WEIGHTS,
                                       .detect = detect,
                                       .brief = "a .prototxt with its .caffemodel"};
