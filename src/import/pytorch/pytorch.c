/* PyTorch: what its files look like. */
#include "import/detect.h"

/* A pickle of protocol 2 to 5, which is what torch.save wrote before it made archives. */
static bool is_pickle(const qn_model_source *source)
{
    return source->map.size > 2 && source->map.data[0] == 0x80 && source->map.data[1] >= 2 &&
           source->map.data[1] <= 5;
}

static const char *detect(const qn_model_source *source)
{
    if (qn_detect_zipped(source, "serialized_exported_program.json") ||
        qn_detect_zipped(source, "archive_format"))
        return "an exported program of PyTorch (.pt2)";
    if (qn_detect_zipped(source, "constants.pkl"))
        return "a TorchScript file";
    if (qn_detect_zipped(source, "data.pkl"))
        return "weights of PyTorch";
    return is_pickle(source) ? "a pickle, as PyTorch makes them" : NULL;
}

const qn_importer qn_importer_pytorch = {.name = "pytorch",
                                         .title = "PyTorch",
                                         .takes = QN_IMPORT_WEIGHTS,
                                         .detect = detect,
                                         .brief = "exported programs, TorchScript files, scripts"};
