/* quench eval: what a model is good for on labelled data. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_eval_options eval;
    cli_detect_texts texts;
    const char *float_model;
} values;

static const cli_option options[] = {
    {.name = "float",
     .type = CLI_TEXT,
     .offset = offsetof(values, float_model),
     .value = "MODEL",
     .help = "the float original: agreement and KL divergence are measured too"},
};
static const cli_group own = CLI_GROUP("of eval", options);

/* The values, and what is made of them. */
typedef struct measuring {
    const values *v;
    cli_detection detection;
} measuring;

static qn_status eval(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const measuring *m = parsed;
    const values *v = m->v;
    qn_model *original = NULL;
    qn_eval_options wanted = v->eval;
    wanted.detect = m->detection.options;
    cli_move_batch(&wanted.data, &wanted.plan.graph);
    qn_status status = QN_OK;
    if (v->float_model)
        status = qn_model_load_with(&original, cli->ctx, v->float_model, &v->origin);
    if (status == QN_OK)
        status = qn_eval_run(out, cli->ctx, model, original, &wanted);
    qn_model_free(original);
    return status;
}

/* With a float original, that is whose origin is told. */
static int run(cli_work *cli, const void *parsed)
{
    const qn_model_load_options plain = QN_MODEL_LOAD_OPTIONS_INIT;
    measuring m = {.v = parsed};
    const bool opened = cli_detection_open(&m.detection, &m.v->eval.detect, &m.v->texts);
    const int code =
        opened ? cli_model_run(cli, eval, m.v->float_model ? &plain : &m.v->origin, &m) : CLI_USAGE;
    cli_detection_close(&m.detection);
    return code;
}

const cli_command cli_cmd_eval = {
    .name = "eval",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .brief = "measure a model's accuracy on labelled data",
    .notes =
        "Classification: top-1 and top-5 in percent of the samples (of equal scores the lower "
        "class counts as the better one); with --float also how many samples have the same best "
        "class in both, and the mean KL(float || model) in natural logarithms. Classes come from "
        "--labels, from the data (CIFAR, lists) or from the names of sub-folders. Detection: "
        "mAP50 and mAP50-95 as COCO defines them; --labels is a folder of YOLO's label files or "
        "COCO's .json, and without it the boxes of --float are taken for true.",
    .parts = {{.group = &cli_eval_group, .offset = offsetof(values, eval)},
              {.group = &own},
              {.group = &cli_data_group, .offset = offsetof(values, eval.data)},
              {.group = &cli_detect_group, .offset = offsetof(values, eval.detect)},
              {.group = &cli_detect_text_group, .offset = offsetof(values, texts)},
              {.group = &cli_engine_group, .offset = offsetof(values, eval.plan)},
              {.group = &cli_graph_group, .offset = offsetof(values, eval.plan.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .values_size = sizeof(values),
    .run = run,
};
