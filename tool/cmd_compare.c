/* quench compare: two versions of a network, layer by layer. */
#include <stdlib.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_feed_values feed;
    cli_data_values data;
    const char *quant_dir, *save_dir, *sort, *run_config;
    cli_list sim_dirs, names, operators, range, looked_at;
    int64_t level, shown;
    int no_mre, no_cos, rmse, maxdiff, bias, histograms, plot;
} values;

static const cli_option options[] = {
    {.name = "quant-dir",
     .shorts = "qd",
     .type = CLI_TEXT,
     .offset = offsetof(values, quant_dir),
     .value = "FOLDER",
     .help = "what 'quant -du' kept of its layers: float against quantized"},
    {.name = "sim-dir",
     .shorts = "sd",
     .type = CLI_WORDS,
     .offset = offsetof(values, sim_dirs),
     .value = "FOLDER",
     .help = "layers of another engine, such a folder or one of .npy files, against those of -qd; "
             "two folders: one against the other"},
    {.name = "output-name",
     .shorts = "on",
     .type = CLI_WORDS,
     .offset = offsetof(values, names),
     .value = "PATTERN",
     .help = "only layers whose tensor or node has such a name ('*' and '?' fit anything)"},
    {.name = "op-type",
     .type = CLI_WORDS,
     .offset = offsetof(values, operators),
     .value = "OPERATOR",
     .help = "only layers of these operators"},
    {.name = "index-range",
     .type = CLI_WORDS,
     .offset = offsetof(values, range),
     .value = "N",
     .number = CLI_WHOLE,
     .least = 0,
     .most = 1e9,
     .help = "only layers from the first number on, up to the second"},
    {.name = "sort",
     .type = CLI_TEXT,
     .offset = offsetof(values, sort),
     .value = "MEASURE",
     .standard = "index",
     .word = qn_compare_order,
     .help = "the worst layer first, by this"},
    {.name = "no-mre",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_mre),
     .help = "without the mean relative error, sum|r - l| / sum|l|"},
    {.name = "no-cos",
     .type = CLI_FLAG,
     .offset = offsetof(values, no_cos),
     .help = "without the cosine, 0.5 + 0.5 cos(l, r)"},
    {.name = "rmse",
     .type = CLI_FLAG,
     .offset = offsetof(values, rmse),
     .help = "with sqrt(sum(r - l)^2 / sum l^2)"},
    {.name = "maxdiff",
     .type = CLI_FLAG,
     .offset = offsetof(values, maxdiff),
     .help = "with the largest difference, beside the largest number and as it is"},
    {.name = "bias",
     .type = CLI_FLAG,
     .offset = offsetof(values, bias),
     .help = "with the shares of r > l and of r < l"},
    {.name = "show-level",
     .shorts = "sl",
     .type = CLI_INT,
     .offset = offsetof(values, level),
     .value = "N",
     .standard = "2",
     .least = 0,
     .most = 6,
     .help = "0: summary, 1: worst layers, 2: all layers, 3: their types and shapes, 4: ranges, 5: "
             "worst elements, 6: counts and scales"},
    {.name = "show-number",
     .shorts = "sn",
     .type = CLI_INT,
     .offset = offsetof(values, shown),
     .value = "N",
     .standard = "10",
     .least = 0,
     .most = 1e6,
     .help = "how many of the worst layers are shown, and drawn with -sh"},
    {.name = "show-index",
     .shorts = "si",
     .type = CLI_WORDS,
     .offset = offsetof(values, looked_at),
     .value = "N",
     .number = CLI_WHOLE,
     .least = 0,
     .most = 1e9,
     .help = "numbers of the layers that -sh draws, instead of the worst"},
    {.name = "show-hist",
     .shorts = "sh",
     .type = CLI_FLAG,
     .offset = offsetof(values, histograms),
     .help = "draw how the numbers of the worst layers are distributed on both sides"},
    {.name = "show-plot",
     .type = CLI_FLAG,
     .offset = offsetof(values, plot),
     .help = "errors as bars in the table, and the pictures in the folder"},
    {.name = "save-dir",
     .shorts = "s",
     .type = CLI_TEXT,
     .offset = offsetof(values, save_dir),
     .value = "FOLDER",
     .help = "gets compare.csv, compare.json and pictures; default: quench_out with -sh and "
             "--show-plot, else nothing is written"},
};
static const cli_group own = CLI_GROUP("of compare", options);

/* ---- From values to the library's options ---------------------------------------------------- */

static int64_t number_at(const cli_list *list, size_t i)
{
    return strtoll(list->at[i], NULL, 10);
}

static qn_compare_options compare_options(const values *v)
{
    qn_compare_options o = QN_COMPARE_OPTIONS_INIT;
    o.quant_dir = v->quant_dir;
    o.sim_dirs = v->sim_dirs.at;
    o.n_sim_dirs = v->sim_dirs.count;
    o.names = v->names.at;
    o.n_names = v->names.count;
    o.operators = v->operators.at;
    o.n_operators = v->operators.count;
    o.first = v->range.count > 0 ? number_at(&v->range, 0) : 0;
    o.last = v->range.count > 1 ? number_at(&v->range, 1) : -1;
    o.no_mre = v->no_mre;
    o.no_cos = v->no_cos;
    o.rmse = v->rmse;
    o.maxdiff = v->maxdiff;
    o.bias = v->bias;
    o.sort = v->sort;
    o.level = (int)v->level;
    o.shown = v->shown;
    o.histograms = v->histograms;
    o.plot = v->plot;
    o.save_dir = v->save_dir ? v->save_dir : v->histograms || v->plot ? "quench_out" : NULL;
    return o;
}

typedef struct job {
    const values *v;
    qn_compare_options options;
} job;

static qn_status compare_models(qn_report **out, cli_work *cli, qn_model *model,
                                const qn_graph_options *graph, const void *parsed)
{
    const job *j = parsed;
    qn_compare_options o = j->options;
    qn_model *quantized = NULL;
    o.run = cli_calibrate_options(&j->v->data, &j->v->feed.inputs, j->v->feed.seed, graph);
    qn_status status = qn_model_load(&quantized, cli->ctx, j->v->common.arguments.at[1]);
    if (status == QN_OK)
        status = qn_compare_models(out, cli->ctx, model, quantized, &o);
    qn_model_free(quantized);
    return status;
}

static int run_job(cli_work *cli, job *j)
{
    qn_report *report = NULL;
    if (j->v->common.arguments.count)
        return cli_model_run(cli, compare_models, &j->v->graph, j);
    const qn_status status = qn_compare_dumps(&report, cli->ctx, &j->options);
    return status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    job j = {v, compare_options(v)};
    int64_t *looked_at = calloc(v->looked_at.count + 1, sizeof *looked_at);
    if (!looked_at)
        return cli_fail(cli, QN_E_NOMEM);
    for (size_t i = 0; i < v->looked_at.count; i++)
        looked_at[i] = number_at(&v->looked_at, i);
    j.options.looked_at = looked_at;
    j.options.n_looked_at = v->looked_at.count;
    const int code = run_job(cli, &j);
    free(looked_at);
    return code;
}

static bool check(void *parsed, const cli_command *command)
{
    const values *v = parsed;
    const size_t models = v->common.arguments.count;
    const size_t folders = (v->quant_dir != NULL) + v->sim_dirs.count;
    if (models == 1)
        cli_error("compare: needs two models: the float one and the quantized one");
    else if (models && folders)
        cli_error("compare: models and folders of layers (-qd, -sd) are not compared with each "
                  "other: name one or the other");
    else if (!models && (folders > 2 || folders == 0 || (folders == 1 && !v->quant_dir)))
        cli_error("compare: what? FLOAT.onnx QUANTIZED.onnx, or -qd FOLDER, or -qd FOLDER -sd "
                  "FOLDER, or -sd FOLDER FOLDER");
    else if (v->range.count > 2)
        cli_error("compare: --index-range takes the first number and the last");
    else if (v->range.count == 2 && number_at(&v->range, 0) > number_at(&v->range, 1))
        cli_error("compare: --index-range: the first number is larger than the last");
    else {
        if (!models && cli_given(v, command, "data"))
            cli_note("-d has no effect: layers that lie in folders are not run");
        if (v->looked_at.count && !v->histograms)
            cli_note("-si has no effect without -sh");
        return true;
    }
    return false;
}

const cli_command cli_cmd_compare = {
    .name = "compare",
    .arguments = "[FLOAT QUANTIZED]",
    .least = 0,
    .most = 2,
    .brief = "compare two versions of a network, layer by layer",
    .notes =
        "Two models are run on the same samples, 16 unless --samples says otherwise: of each "
        "layer the error that has come together up to there, and the single one that it makes of "
        "exact inputs. Layers that stand out are marked, with what would help them; 'quench quant "
        "--fix-worst N' does it. Folders of layers (-qd, -sd) are compared file by file.",
    .parts = {{&own, 0},
              {&cli_data_group, offsetof(values, data)},
              {&cli_feed_group, offsetof(values, feed)},
              {&cli_shape_group, offsetof(values, graph)},
              {&cli_origin_group, offsetof(values, graph)},
              {&cli_config_group, offsetof(values, run_config)}},
    .values_size = sizeof(values),
    .check = check,
    .run = run,
    .section = "compare",
};
