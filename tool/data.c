/* The samples that a model is run or calibrated with: groups of options that commands share. */
#include "cli.h"

#define CLI_OWNER qn_data_options
static const qn_data_options cli_data_group_standard = QN_DATA_OPTIONS_INIT;
static const cli_option cli_data_group_rows[] = {QN_DATA_OPTIONS(CLI_ROW)};
const cli_group cli_data_group =
    CLI_LIBRARY_GROUP("for the data", cli_data_group_rows, cli_data_group_standard);
#undef CLI_OWNER

static const cli_option class_options[] = {
    {.name = "labels",
     .field = "labels",
     .type = CLI_TEXT,
     .offset = offsetof(cli_class_values, labels),
     .value = "FILE",
     .help = "classes: lines 'NAME CLASS' or 'CLASS', .npy, or IDX"},
    {.name = "class-offset",
     .field = "class_offset",
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
     .field = "threads",
     .also = "cpu-num",
     .shorts = "t cn",
     .type = CLI_INT,
     .offset = offsetof(cli_subject_values, threads),
     .value = "N",
     .least = 1,
     .most = 1024,
     .help = "samples to run side by side; default: one per core, for quant at most 5"},
    {.name = "input",
     .field = "inputs",
     .type = CLI_LIST,
     .offset = offsetof(cli_subject_values, inputs),
     .value = "NAME=FILE",
     .help = "an input that is the same for all samples"},
    {.name = "seed",
     .field = "seed",
     .type = CLI_INT,
     .offset = offsetof(cli_subject_values, seed),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "of the random numbers that inputs without data get"},
};
const cli_group cli_subject_group = CLI_GROUP("for the calibration", subject_options);

qn_data_options cli_data_options(const qn_data_options *data, qn_graph_options *graph)
{
    qn_data_options options = *data;
    options.batch = graph->batch;
    if (data->n_data)
        graph->batch = 0;
    return options;
}

qn_calibrate_options cli_calibrate_options(const qn_data_options *data, const cli_list *inputs,
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
