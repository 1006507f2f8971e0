/* quench eval: what a model is good for on labelled data. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_engine_values engine;
    qn_data_options data;
    cli_list inputs;
    cli_class_values classes;
    cli_detect_values detect;
    const char *task, *float_model, *output;
} values;

static const cli_option options[] = {
    {.name = "task",
     .type = CLI_TEXT,
     .offset = offsetof(values, task),
     .value = "TASK",
     .standard = "classification",
     .word = qn_task_name,
     .help = "what to measure"},
    {.name = "float",
     .type = CLI_TEXT,
     .offset = offsetof(values, float_model),
     .value = "MODEL",
     .help = "the float original: agreement and KL divergence are measured too"},
    {.name = "output",
     .type = CLI_TEXT,
     .offset = offsetof(values, output),
     .value = "NAME",
     .help = "the output that has the scores or boxes; default: the only one, or all"},
    {.name = "input",
     .shorts = "i",
     .type = CLI_LIST,
     .offset = offsetof(values, inputs),
     .value = "NAME=FILE",
     .help = "an input that is the same for all samples"},
};
static const cli_group own = CLI_GROUP("of eval", options);

/* The values, and what is made of them. With a float original the origin is that one's. */
typedef struct measuring {
    const values *v;
    cli_detection detection;
} measuring;

static qn_status eval(qn_report **out, cli_work *cli, qn_model *model,
                      const qn_graph_options *graph, const void *parsed)
{
    const measuring *m = parsed;
    const values *v = m->v;
    qn_model *original = NULL;
    qn_eval_options wanted = {QN_OPTIONS_VERSION,
                              .plan = cli_plan_options(&v->engine, graph),
                              .inputs = v->inputs.at,
                              .n_inputs = v->inputs.count,
                              .task = v->task,
                              .output = v->output,
                              .class_offset = v->classes.offset,
                              .detect = m->detection.options};
    wanted.data = cli_data_options(&v->data, &wanted.plan.graph);
    wanted.data.labels = v->classes.labels;
    qn_status status = QN_OK;
    if (v->float_model)
        status = cli_model_load(&original, cli, v->float_model, &v->graph.origin);
    if (status == QN_OK)
        status = qn_eval_run(out, cli->ctx, model, original, &wanted);
    qn_model_free(original);
    return status;
}

static int run(cli_work *cli, const void *parsed)
{
    measuring m = {.v = parsed};
    cli_graph_values graph = m.v->graph;
    if (m.v->float_model)
        graph.origin = (cli_origin_values){.framework = NULL};
    const int code = cli_detection_open(&m.detection, &m.v->detect)
                         ? cli_model_run(cli, eval, &graph, &m)
                         : CLI_USAGE;
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
    .parts = {{.group = &own},
              {.group = &cli_data_group, .offset = offsetof(values, data), .without = "labels"},
              {.group = &cli_class_group, .offset = offsetof(values, classes)},
              {.group = &cli_detect_group, .offset = offsetof(values, detect.options)},
              {.group = &cli_detect_text_group, .offset = offsetof(values, detect)},
              {.group = &cli_engine_group, .offset = offsetof(values, engine)},
              {.group = &cli_graph_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
