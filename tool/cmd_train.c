/* quench train: a model learns from labelled samples, or from itself as it was. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    const char *model;
    cli_list eval_data;
    qn_train_options train;
} values;

static const cli_option options[] = {
    {.name = "eval-data",
     .type = CLI_LIST,
     .offset = offsetof(values, eval_data),
     .value = "[INPUT=]PATH",
     .help = "labelled samples that judge the trained model"},
};
static const cli_group own = CLI_GROUP("of train", options);

static qn_status train(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    qn_train_options wanted = v->train;
    wanted.eval_data = v->eval_data.at;
    wanted.n_eval_data = v->eval_data.count;
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
                              &v->origin, v);
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
              {.group = &cli_subject_group, .offset = offsetof(values, model)},
              {.group = &cli_train_group, .offset = offsetof(values, train)},
              {.group = &cli_data_group, .offset = offsetof(values, train.data)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
