/* quench quant: a float model and data in, an integer model out. */
#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    const char *method, *target, *save_dir, *stats, *scales, *form;
    cli_data_values data;
    cli_subject_values subject;
    cli_list keep_float, widths;
    double percentile;
    int64_t samples, batch, bits, opset;
    double max_drop;
    cli_list eval_data;
    const char *eval_list;
    cli_class_values classes;
    int list, dynamic, save_scales, fastest, no_bias_correction, no_weight_clipping,
        no_look_through;
    int no_equalization, no_balancing, prove;
} values;

static const cli_option options[] = {
    {.name = "quant-mode",
     .shorts = "qm",
     .type = CLI_TEXT,
     .offset = offsetof(values, method),
     .value = "METHOD",
     .word = qn_method_name,
     .help = "how ranges are chosen; default: mse"},
    {.name = "percentile",
     .shorts = "per",
     .type = CLI_REAL,
     .offset = offsetof(values, percentile),
     .value = "SHARE",
     .standard = "0.99999",
     .least = 0.5,
     .most = 1,
     .help = "share of the numbers inside the range of method percentile"},
    {.name = "stats",
     .type = CLI_TEXT,
     .offset = offsetof(values, stats),
     .value = "FILE",
     .help = "statistics of calibrate; data given too serve the comparison with float, and to "
             "find the layers that 8 bits harm"},
    {.name = "generate-scale-json",
     .shorts = "gsj",
     .type = CLI_FLAG,
     .offset = offsetof(values, save_scales),
     .help = "write <model>_scales.json too: all that was derived from the data"},
    {.name = "load-scale-json",
     .shorts = "lsj",
     .type = CLI_TEXT,
     .offset = offsetof(values, scales),
     .value = "FILE",
     .help = "take scales from such a file instead of data"},
    {.name = "iteration",
     .shorts = "i",
     .type = CLI_INT,
     .offset = offsetof(values, samples),
     .value = "N",
     .least = 1,
     .most = 1e9,
     .help = "batches of samples to calibrate with; default: all"},
    {.name = "batch-size",
     .shorts = "bs",
     .type = CLI_INT,
     .offset = offsetof(values, batch),
     .value = "N",
     .standard = "1",
     .least = 1,
     .most = 65536,
     .help = "samples of a batch"},
    {.name = "bit-width",
     .shorts = "b",
     .type = CLI_INT,
     .offset = offsetof(values, bits),
     .value = "8|16",
     .least = 8,
     .most = 16,
     .help = "bits of activations and weights; default: 8, and float for "
             "layers where 8 do too much harm"},
    {.name = "target",
     .type = CLI_TEXT,
     .offset = offsetof(values, target),
     .value = "NAME",
     .word = qn_target_name,
     .help = "the engine that the result is for; default: quench"},
    {.name = "save-dir",
     .type = CLI_TEXT,
     .offset = offsetof(values, save_dir),
     .value = "FOLDER",
     .standard = "quench_out",
     .help = "gets <model>_quantize.onnx"},
    {.name = "opset",
     .type = CLI_INT,
     .offset = offsetof(values, opset),
     .value = "N",
     .least = 10,
     .most = 23,
     .help = "opset to write; default: 13, or 21 with 16 bits, or the next that can say it"},
    {.name = "format",
     .type = CLI_TEXT,
     .offset = offsetof(values, form),
     .value = "FORM",
     .word = qn_form_name,
     .help = "how the file says what is quantized; default: qdq"},
    {.name = "float",
     .type = CLI_LIST,
     .offset = offsetof(values, keep_float),
     .value = "PATTERN",
     .help = "nodes that stay float: names of nodes or tensors, or operators, with * and ?"},
    {.name = "bits",
     .type = CLI_LIST,
     .offset = offsetof(values, widths),
     .value = "PATTERN=8|16|w8a16",
     .help = "nodes of another width; w8a16: weights of 8, the rest of 16 bits"},
    {.name = "dynamic",
     .type = CLI_FLAG,
     .offset = offsetof(values, dynamic),
     .help = "quantize the weights of Gemm, MatMul, LSTM and GRU, and activations while running; "
             "needs no data"},
    {.name = "no-equalization",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_equalization),
     .help = "leave the channels between convolutions as they are"},
    {.name = "no-balancing",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_balancing),
     .help = "leave the channels that matrices are multiplied with as they are"},
    {.name = "no-bias-correction",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_bias_correction),
     .help = "leave biases as they are"},
    {.name = "no-weight-clipping",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_weight_clipping),
     .help = "let the largest weight of a channel set its scale"},
    {.name = "prove",
     .type = CLI_FLAG,
     .offset = offsetof(values, prove),
     .help =
         "measure what each refinement is worth, and leave out factors of channels that do harm"},
    {.name = "no-look-through",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_look_through),
     .help = "choose the range before a function (SiLU, ...) as everywhere, not by the error "
             "behind it"},
    {.name = "max-drop",
     .type = CLI_REAL,
     .offset = offsetof(values, max_drop),
     .value = "X",
     .standard = "100",
     .least = 0,
     .most = 100,
     .help = "raise layers to 16 bits, or leave them float, until top-1 (with labels; else the "
             "outputs) loses at most X points (percent)"},
    {.name = "eval-data",
     .type = CLI_LIST,
     .offset = offsetof(values, eval_data),
     .value = "[INPUT=]PATH",
     .help = "labelled samples for --max-drop; default: those of -d, if --labels has them"},
    {.name = "eval-list",
     .type = CLI_TEXT,
     .offset = offsetof(values, eval_list),
     .value = "FILE",
     .help = "names of the samples of --eval-data to use, one a line"},
    {.name = "fastest",
     .type = CLI_FLAG,
     .offset = offsetof(values, fastest),
     .help = "leave layers float that this machine runs slower with integers"},
    {.name = "list",
     .type = CLI_FLAG,
     .offset = offsetof(values, list),
     .help = "show what each node would become, and do nothing else"},
};
static const cli_group own = CLI_GROUP("of quant", options);

static qn_quantize_options options_of(const values *v, const qn_graph_options *graph)
{
    qn_quantize_options o = QN_QUANTIZE_OPTIONS_INIT;
    o.calibrate.graph = *graph;
    o.calibrate.data = cli_data_options(&v->data, &o.calibrate.graph);
    if (v->samples)
        o.calibrate.data.samples = v->samples * v->batch;
    o.calibrate.inputs = v->subject.inputs.at;
    o.calibrate.n_inputs = v->subject.inputs.count;
    o.calibrate.threads = (int)v->subject.threads;
    o.calibrate.seed = (uint64_t)v->subject.seed;
    o.target = v->target;
    o.method = v->method;
    o.percentile = v->percentile;
    o.bits = (int)v->bits;
    o.keep_float = v->keep_float.at;
    o.n_float = v->keep_float.count;
    o.widths = v->widths.at;
    o.n_widths = v->widths.count;
    o.no_bias_correction = v->no_bias_correction;
    o.no_weight_clipping = v->no_weight_clipping;
    o.no_equalization = v->no_equalization;
    o.no_balancing = v->no_balancing;
    o.prove = v->prove;
    o.no_look_through = v->no_look_through;
    o.stats = v->stats;
    o.fastest = v->fastest;
    o.dynamic = v->dynamic;
    o.scales = v->scales;
    return o;
}

/* What --max-drop is measured on: the data of --eval-data, else those that are calibrated with. */
static qn_eval_options eval_options(const values *v, const qn_graph_options *graph)
{
    qn_eval_options eval = QN_EVAL_OPTIONS_INIT;
    cli_data_values data = v->data;
    if (v->eval_data.count) {
        data.data = v->eval_data;
        data.list = v->eval_list;
        data.first = data.samples = 0;
    }
    eval.plan.graph = *graph;
    eval.data = cli_data_options(&data, &eval.plan.graph);
    eval.data.labels = v->classes.labels;
    eval.inputs = v->subject.inputs.at;
    eval.n_inputs = v->subject.inputs.count;
    eval.class_offset = v->classes.offset;
    return eval;
}

static qn_status quant(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const values *v = parsed;
    qn_quantize_options o = options_of(v, graph);
    const qn_eval_options eval = eval_options(v, graph);
    const bool labelled = v->classes.labels || v->eval_data.count;
    const qn_goal goal = {.max_drop = v->max_drop, .eval = labelled ? &eval : NULL};
    if (v->max_drop < 100)
        o.goal = &goal;
    if (v->list)
        return qn_quantize_list(out, cli->ctx, model, &o);
    const qn_quantize_file_options file = {.quantize = o,
                                           .save_dir = v->save_dir,
                                           .opset = (int)v->opset,
                                           .form = v->form,
                                           .scale_file = v->save_scales};
    return qn_quantize_file(out, cli->ctx, model, &file);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    const char *path = v->common.arguments.count ? v->common.arguments.at[0] : v->subject.model;
    if (!path || (v->common.arguments.count && v->subject.model)) {
        cli_error("quant: name one model: quench quant -m MODEL");
        return CLI_USAGE;
    }
    return cli_model_file_run(cli, path, quant, &v->graph, v);
}

const cli_command cli_cmd_quant = {
    .name = "quant",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .brief = "quantize a model",
    .notes =
        "Calibrates with the data, chooses scales, and writes an ONNX file with QuantizeLinear "
        "and DequantizeLinear nodes (or in another form, see --format). Without data the inputs "
        "are random numbers: the file "
        "is good for measuring speed only.",
    .parts = {{&own, 0},
              {&cli_subject_group, offsetof(values, subject)},
              {&cli_data_group, offsetof(values, data)},
              {&cli_class_group, offsetof(values, classes)},
              {&cli_shape_group, offsetof(values, graph)}},
    .values_size = sizeof(values),
    .run = run,
};
