/* quench compare: two versions of a network, layer by layer. */
#include <stdlib.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    cli_graph_values graph;
    cli_feed_values feed;
    qn_data_options data;
    qn_compare_options compare;
    const char *run_config;
    cli_list range, looked_at;
} values;

static const cli_option options[] = {
    {.name = "index-range",
     .field = "last",
     .type = CLI_WORDS,
     .offset = offsetof(values, range),
     .value = "N",
     .number = CLI_WHOLE,
     .least = 0,
     .most = 1e9,
     .help = "only layers from the first number on, up to the second"},
    {.name = "show-index",
     .shorts = "si",
     .type = CLI_WORDS,
     .offset = offsetof(values, looked_at),
     .value = "N",
     .number = CLI_WHOLE,
     .least = 0,
     .most = 1e9,
     .help = "numbers of the layers that -sh draws, instead of the worst"},
};
static const cli_group own = CLI_GROUP("of compare", options);

#define CLI_OWNER qn_compare_options
static const qn_compare_options compare_group_standard = QN_COMPARE_OPTIONS_INIT;
static const cli_option compare_group_rows[] = {QN_COMPARE_OPTIONS(CLI_ROW)};
static const cli_group compare_group =
    CLI_LIBRARY_GROUP("of compare", compare_group_rows, compare_group_standard);
#undef CLI_OWNER

/* ---- From values to the library's options ---------------------------------------------------- */

static int64_t number_at(const cli_list *list, size_t i)
{
    return strtoll(list->at[i], NULL, 10);
}

static qn_compare_options compare_options(const values *v)
{
    qn_compare_options o = v->compare;
    o.first = v->range.count > 0 ? number_at(&v->range, 0) : 0;
    o.last = v->range.count > 1 ? number_at(&v->range, 1) : -1;
    if (!o.save_dir && (o.histograms || o.plot))
        o.save_dir = "quench_out";
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
    const size_t folders = (v->compare.quant_dir != NULL) + v->compare.n_sim_dirs;
    if (models == 1)
        cli_error("compare: needs two models: the float one and the quantized one");
    else if (models && folders)
        cli_error("compare: models and folders of layers (-qd, -sd) are not compared with each "
                  "other: name one or the other");
    else if (!models && (folders > 2 || folders == 0 || (folders == 1 && !v->compare.quant_dir)))
        cli_error("compare: what? FLOAT.onnx QUANTIZED.onnx, or -qd FOLDER, or -qd FOLDER -sd "
                  "FOLDER, or -sd FOLDER FOLDER");
    else if (v->range.count > 2)
        cli_error("compare: --index-range takes the first number and the last");
    else if (v->range.count == 2 && number_at(&v->range, 0) > number_at(&v->range, 1))
        cli_error("compare: --index-range: the first number is larger than the last");
    else {
        if (!models && cli_given(v, command, "data"))
            cli_note("-d has no effect: layers that lie in folders are not run");
        if (v->looked_at.count && !v->compare.histograms)
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
    .parts = {{.group = &own},
              {.group = &compare_group, .offset = offsetof(values, compare)},
              {.group = &cli_data_group, .offset = offsetof(values, data), .without = "labels"},
              {.group = &cli_feed_group, .offset = offsetof(values, feed)},
              {.group = &cli_shape_group, .offset = offsetof(values, graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, graph)},
              {.group = &cli_config_group, .offset = offsetof(values, run_config)}},
    .values_size = sizeof(values),
    .check = check,
    .run = run,
    .section = "compare",
};
