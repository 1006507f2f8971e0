/* Keras: what its files look like. */
#include "import/detect.h"

static const char *detect(const qn_model_source *source)
{
    if (qn_detect_bytes(source, 0, "\x89HDF\r\n\x1a\n", 8))
        return "an HDF5 file, as Keras makes them";
    return qn_detect_zipped(source, "model.weights.h5") ? "a Keras model" : NULL;
}

const qn_importer qn_importer_keras = {.name = "keras",
                                       .title = "Keras",
                                       .family = "tensorflow",
                                       .takes = QN_IMPORT_LAYOUT,
                                       .detect = detect,
                                       .brief = ".h5 and .keras files"};
