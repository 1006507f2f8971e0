/* TensorFlow: what their files look like. */
#include "import/detect.h"

/* GraphDef: nodes, each with a name and an operator. */
static bool is_graph(qn_string file)
{
    static const qn_wire_rule graph[] = {{1, QN_WIRE_BYTES, true},
                                         {2, QN_WIRE_BYTES, false},
                                         {3, QN_WIRE_VARINT, false},
                                         {4, QN_WIRE_BYTES, false},
                                         {5, QN_WIRE_BYTES, false}};
    static const qn_wire_rule node[] = {{1, QN_WIRE_BYTES, true},  {2, QN_WIRE_BYTES, true},
                                        {3, QN_WIRE_BYTES, false}, {4, QN_WIRE_BYTES, false},
                                        {5, QN_WIRE_BYTES, false}, {6, QN_WIRE_BYTES, false},
                                        {7, QN_WIRE_BYTES, false}};
    return qn_detect_message(file, graph, QN_COUNT_OF(graph)) &&
           qn_detect_message(qn_detect_field(file, 1), node, QN_COUNT_OF(node));
}

/* SavedModel: the version of its form, and graphs with what belongs to them. */
static bool is_saved_model(qn_string file)
{
    static const qn_wire_rule rules[] = {{1, QN_WIRE_VARINT, true}, {2, QN_WIRE_BYTES, true}};
    return qn_detect_message(file, rules, QN_COUNT_OF(rules));
}

static const char *detect(const qn_model_source *source)
{
    const qn_string file = {(const char *)source->map.data, source->map.size};
    if (qn_detect_in_folder(source, "saved_model.pb") ||
        qn_detect_in_folder(source, "saved_model.pbtxt") || is_saved_model(file))
        return "a SavedModel of TensorFlow";
    return is_graph(file) || qn_detect_word(source, "node", '{') ? "a graph of TensorFlow" : NULL;
}

const qn_importer qn_importer_tensorflow = {
    .name = "tensorflow",
    .title = "TensorFlow",
    .takes = QN_IMPORT_ENDS | QN_IMPORT_LAYOUT,
    .detect = detect,
    .brief = "graphs (.pb), SavedModel folders, and what keras and tflite read"};
