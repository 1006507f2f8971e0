/* TensorFlow Lite: what its files look like. */
#include "import/detect.h"

static const char *detect(const qn_model_source *source)
{
    return qn_detect_bytes(source, 4, "TFL3", 4) ? "a TensorFlow Lite model" : NULL;
}

const qn_importer qn_importer_tflite = {.name = "tflite",
                                        .title = "TensorFlow Lite",
                                        .family = "tensorflow",
                                        .takes = QN_IMPORT_LAYOUT,
                                        .detect = detect,
                                        .brief = ".tflite files, floats or integers"};
