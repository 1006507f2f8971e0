/* PaddlePaddle: what its files look like, and its row. */
#include "import/paddle/paddle.h"
#include "import/detect.h"

#include <string.h>

/* ProgramDesc: blocks, each with its number and its parent's, variables and operators. */
static bool is_program(qn_string file)
{
    static const qn_wire_rule program[] = {{1, QN_WIRE_BYTES, true},
                                           {2, QN_WIRE_BYTES, false},
                                           {3, QN_WIRE_BYTES, false},
                                           {4, QN_WIRE_BYTES, false},
                                           {5, QN_WIRE_BYTES, false}};
    static const qn_wire_rule block[] = {{1, QN_WIRE_VARINT, true},
                                         {2, QN_WIRE_VARINT, true},
                                         {3, QN_WIRE_BYTES, false},
                                         {4, QN_WIRE_BYTES, false},
                                         {5, QN_WIRE_VARINT, false}};
    return qn_detect_message(file, program, QN_COUNT_OF(program)) &&
           qn_detect_message(qn_detect_field(file, 1), block, QN_COUNT_OF(block));
}

/* Parameters, one behind the other: version 0, no levels, version 0, then a TensorDesc and its
 * length. */
bool qn_paddle_is_parameters(const qn_model_source *source)
{
    static const uint8_t head[16] = {0};
    return source->map.size > 24 && qn_detect_bytes(source, 0, head, sizeof head) &&
           source->map.data[20] == 0x08;
}

static const char *detect(const qn_model_source *source)
{
    const qn_string file = {(const char *)source->map.data, source->map.size};
    if (qn_detect_word(source, "base_code", '"') && qn_detect_word(source, "pir", '"'))
        return "a program of PaddlePaddle 3";
    if (qn_detect_in_folder(source, "__model__") ||
        qn_detect_in_folder(source, "inference.pdmodel") ||
        qn_detect_in_folder(source, "inference.json"))
        return "a folder of a PaddlePaddle model";
    if (qn_paddle_is_parameters(source))
        return "parameters of PaddlePaddle; the model is the .pdmodel beside them";
    return is_program(file) ? "a program of PaddlePaddle" : NULL;
}

const qn_importer qn_importer_paddle = {.name = "paddle",
                                        .title = "PaddlePaddle",
                                        .takes = QN_IMPORT_WEIGHTS | QN_IMPORT_SHAPES,
                                        .detect = detect,
                                        .load = qn_paddle_load,
                                        .brief = "a .pdmodel or inference.json with .pdiparams",
                                        .operators = qn_paddle_operators,
                                        .n_operators = QN_PADDLE_OPERATORS};
