/* What commands about a model share: the way from file to report. */
#include "cli.h"

static const cli_option subject_options[] = {
    {.name = "model",
     .shorts = "m",
     .type = CLI_TEXT,
     .value = "MODEL",
     .help = "the float model; the same as the argument"},
};
const cli_group cli_subject_group = CLI_GROUP("for the calibration", subject_options);

void cli_move_batch(qn_data_options *data, qn_graph_options *graph)
{
    data->batch = graph->batch;
    if (data->n_data)
        graph->batch = 0;
}

int cli_model_file_run(cli_work *cli, const char *path, cli_job *job,
                       const qn_model_load_options *origin, const void *values)
{
    qn_model *model = NULL;
    qn_report *report = NULL;
    int code = CLI_DONE;
    qn_status status = qn_model_load_with(&model, cli->ctx, path, origin);
    if (status == QN_OK)
        status = job(&report, cli, model, values);
    if (status == QN_OK || report)
        code = cli_show(cli, report);
    if (status != QN_OK)
        code = cli_fail(cli, status);
    qn_model_free(model);
    return code;
}

int cli_model_run(cli_work *cli, cli_job *job, const qn_model_load_options *origin,
                  const void *values)
{
    return cli_model_file_run(cli, cli->common->arguments.at[0], job, origin, values);
}
