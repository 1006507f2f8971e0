/* quench train: a model learns from labelled samples, or from itself as it was. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_engine_values engine;
    qn_data_options data;
    qn_train_options train;
    const char *model, *labels;
    int64_t seed, batch;
} values;

static const cli_option options[] = {
    {.name = "model",
     .shorts = "m",
     .type = CLI_TEXT,
     .offset = offsetof(values, model),
     .value = "MODEL",
     .help = "the float model; the same as the argument"},
    {.name = "labels",
     .type = CLI_TEXT,
     .offset = offsetof(values, labels),
     .value = "FILE",
     .help = "classes: lines 'NAME CLASS' or 'CLASS', .npy, or IDX"},
    {.name = "batch",
     .field = "batch",
     .type = CLI_INT,
     .offset = offsetof(values, batch),
     .value = "N",
     .standard = "64",
     .least = 1,
     .most = 65536,
     .help = "samples of a step"},
    {.name = "seed",
     .type = CLI_INT,
     .offset = offsetof(values, seed),
     .value = "N",
     .standard = "0",
     .least = 0,
     .most = 1e15,
     .help = "of order and changes of samples"},
};
static const cli_group own = CLI_GROUP("of train", options);

#define CLI_OWNER qn_train_options
static const qn_train_options train_standard = QN_TRAIN_OPTIONS_INIT;
static const cli_option train_rows[] = {QN_TRAIN_OPTIONS(CLI_ROW)};
static const cli_group training = CLI_LIBRARY_GROUP("of train", train_rows, train_standard);
#undef CLI_OWNER

static qn_status train(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    qn_train_options wanted = v->train;
    (void)graph;
    wanted.data = v->data;
    wanted.data.labels = v->labels;
    wanted.threads = (int)v->engine.threads;
    wanted.backend = v->engine.backend;
    wanted.seed = (uint64_t)v->seed;
    wanted.batch = v->batch;
    return qn_train_run(out, cli->ctx, model, &wanted);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    if (v->common.arguments.count + (v->model != NULL) != 1) {
        cli_error("train: name one model: quench train -m MODEL -d DATA");
        return CLI_USAGE;
    }
    return cli_model_file_run(cli, v->model ? v->model : v->common.arguments.at[0], train,
                              &v->graph, v);
}

const cli_command cli_cmd_train = {
    .name = "train",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .brief = "train a float model on labelled data, or to stay as it is",
    .notes = "The trained model is FOLDER/NAME_trained.onnx. A run that was killed goes on from "
             "FOLDER/NAME.checkpoint when it is started again, and gives the bytes of one that was "
             "not; the same model, data, options and threads always give the same bytes.",
    .parts = {{.group = &own},
              {.group = &training, .offset = offsetof(values, train)},
              {.group = &cli_data_group, .offset = offsetof(values, data), .without = "labels"},
              {.group = &cli_engine_group, .offset = offsetof(values, engine)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
