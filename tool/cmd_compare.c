/* quench compare: two versions of a network, layer by layer. */
#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_compare_options compare;
    const char *run_config;
    /* The first layer and the last, or the first alone */
    struct {
        const int64_t *at;
        size_t count;
    } range;
} values;

static const cli_option options[] = {
    {.name = "index-range",
     .field = "last",
     .type = CLI_LONGS,
     .offset = offsetof(values, range),
     .value = "N",
     .several = 1,
     .least = 0,
     .most = 1e9,
     .help = "only layers from the first number on, up to the second"},
};
static const cli_group own = CLI_GROUP("of compare", options);

/* ---- From values to the library's options ---------------------------------------------------- */

static qn_compare_options compare_options(const values *v)
{
    qn_compare_options o = v->compare;
    o.first = v->range.count > 0 ? v->range.at[0] : 0;
    o.last = v->range.count > 1 ? v->range.at[1] : -1;
    if (!o.save_dir && (o.histograms || o.plot))
        o.save_dir = "quench_out";
    cli_move_batch(&o.run.data, &o.run.graph);
    return o;
}

static qn_status compare_models(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    const qn_compare_options o = compare_options(v);
    qn_model *quantized = NULL;
    qn_status status = qn_model_load(&quantized, cli->ctx, v->common.arguments.at[1]);
    if (status == QN_OK)
        status = qn_compare_models(out, cli->ctx, model, quantized, &o);
    qn_model_free(quantized);
    return status;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    qn_report *report = NULL;
    if (v->common.arguments.count)
        return cli_model_run(cli, compare_models, &v->origin, v);
    const qn_compare_options o = compare_options(v);
    const qn_status status = qn_compare_dumps(&report, cli->ctx, &o);
    return status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
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
    else if (v->range.count == 2 && v->range.at[0] > v->range.at[1])
        cli_error("compare: --index-range: the first number is larger than the last");
    else {
        if (!models && cli_given(v, command, "data"))
            cli_note("-d has no effect: layers that lie in folders are not run");
        if (v->compare.n_looked_at && !v->compare.histograms)
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
              {.group = &cli_compare_group, .offset = offsetof(values, compare)},
              {.group = &cli_data_group,
               .offset = offsetof(values, compare.run.data),
               .without = "labels"},
              {.group = &cli_feed_group, .offset = offsetof(values, compare.run)},
              {.group = &cli_graph_group,
               .offset = offsetof(values, compare.run.graph),
               .without = "batch"},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)},
              {.group = &cli_config_group, .offset = offsetof(values, run_config)}},
    .values_size = sizeof(values),
    .check = check,
    .run = run,
    .section = "compare",
};
