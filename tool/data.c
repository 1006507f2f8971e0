/* The samples that a model is run or calibrated with: groups of options that commands share. */
#include "cli.h"

static const cli_option data_options[] = {
    {.name = "data",
     .shorts = "d",
     .type = CLI_LIST,
     .offset = offsetof(cli_data_values, data),
     .value = "[INPUT=]PATH",
     .help = "samples: .npy, .npz, raw, IDX or CIFAR file, folder of pictures or arrays, list"},
    {.name = "data-list",
     .type = CLI_TEXT,
     .offset = offsetof(cli_data_values, list),
     .value = "FILE",
     .help = "names of the samples of a folder to use, one a line"},
    {.name = "strict",
     .type = CLI_FLAG,
     .offset = offsetof(cli_data_values, strict),
     .help = "end at a file that is no picture, instead of leaving it out"},
    {.name = "preprocess",
     .type = CLI_TEXT,
     .offset = offsetof(cli_data_values, preprocess),
     .value = "STEPS",
     .help = "of pictures, as in resize=256,crop=224,bgr,mean=104/117/123 or imagenet"},
    {.name = "first",
     .type = CLI_INT,
     .offset = offsetof(cli_data_values, first),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "number of the first sample to use"},
    {.name = "samples",
     .type = CLI_INT,
     .offset = offsetof(cli_data_values, samples),
     .value = "N",
     .least = 1,
     .most = 1e15,
     .help = "samples to use; default: all"},
    {.name = "loaders",
     .type = CLI_INT,
     .offset = offsetof(cli_data_values, loaders),
     .value = "N",
     .least = 1,
     .most = 8,
     .help = "threads that read samples ahead; default: one per core"},
};
const cli_group cli_data_group = CLI_GROUP("for the data", data_options);

static const cli_option class_options[] = {
    {.name = "labels",
     .type = CLI_TEXT,
     .offset = offsetof(cli_class_values, labels),
     .value = "FILE",
     .help = "classes: lines 'NAME CLASS' or 'CLASS', .npy, or IDX"},
    {.name = "class-offset",
     .type = CLI_INT,
     .offset = offsetof(cli_class_values, offset),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e6,
     .help = "added to every label (1 where class 0 is the background)"},
};
const cli_group cli_class_group = CLI_GROUP("for the classes", class_options);

static const cli_option subject_options[] = {
    {.name = "model",
     .shorts = "m",
     .type = CLI_TEXT,
     .offset = offsetof(cli_subject_values, model),
     .value = "MODEL",
     .help = "the float model; the same as the argument"},
    {.name = "threads",
     .also = "cpu-num",
     .shorts = "t cn",
     .type = CLI_INT,
     .offset = offsetof(cli_subject_values, threads),
     .value = "N",
     .least = 1,
     .most = 1024,
     .help = "samples to run side by side; default: one per core, for quant at most 5"},
    {.name = "input",
     .type = CLI_LIST,
     .offset = offsetof(cli_subject_values, inputs),
     .value = "NAME=FILE",
     .help = "an input that is the same for all samples"},
    {.name = "seed",
     .type = CLI_INT,
     .offset = offsetof(cli_subject_values, seed),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "of the random numbers that inputs without data get"},
};
const cli_group cli_subject_group = CLI_GROUP("for the calibration", subject_options);

qn_data_options cli_data_options(const cli_data_values *data, qn_graph_options *graph)
{
    const qn_data_options options = {
        QN_OPTIONS_VERSION,       .data = data->data.at,          .n_data = data->data.count,
        .list = data->list,       .preprocess = data->preprocess, .first = data->first,
        .samples = data->samples, .batch = graph->batch,          .loaders = (int)data->loaders,
        .strict = data->strict};
    if (data->data.count)
        graph->batch = 0;
    return options;
}

qn_calibrate_options cli_calibrate_options(const cli_data_values *data, const cli_list *inputs,
                                           int64_t seed, const qn_graph_options *graph)
{
    qn_calibrate_options options = QN_CALIBRATE_OPTIONS_INIT;
    options.graph = *graph;
    options.data = cli_data_options(data, &options.graph);
    options.inputs = inputs->at;
    options.n_inputs = inputs->count;
    options.seed = (uint64_t)seed;
    return options;
}
