/* quench quant: the model with the ends that the options want. */
#include <stdlib.h>

#include "quant.h"

static double *numbers_of(const cli_list *texts)
{
    double *numbers = calloc(texts->count + 1, sizeof *numbers);
    for (size_t i = 0; numbers && i < texts->count; i++)
        numbers[i] = strtod(texts->at[i], NULL);
    return numbers;
}

qn_status quant_edit(qn_model **out, cli_work *cli, qn_model *model, const quant_values *v)
{
    double *mean = numbers_of(&v->edge.mean), *std = numbers_of(&v->edge.std);
    const qn_edit_options edit = {QN_OPTIONS_VERSION,
                                  .mean = mean,
                                  .std = std,
                                  .n_mean = v->edge.mean.count,
                                  .n_std = v->edge.std.count,
                                  .outputs = v->edge.outputs.at,
                                  .n_outputs = v->edge.outputs.count};
    *out = NULL;
    const qn_status status = mean && std ? qn_model_edit(out, cli->ctx, model, &edit) : QN_E_NOMEM;
    cli->misused = status != QN_OK && (edit.n_mean || edit.n_outputs);
    free(mean);
    free(std);
    return status;
}

static bool is_static(const qn_model *model)
{
    for (size_t i = 0; i < qn_model_input_count(model); i++) {
        qn_value_info info;
        qn_model_input_info(&info, model, i);
        if (info.rank > 0 && info.dims[0] < 0)
            return false;
    }
    return true;
}

/* The largest batch that an input fixes; 0: none does. */
static int64_t fixed_batch(const qn_model *model)
{
    int64_t most = 0;
    for (size_t i = 0; i < qn_model_input_count(model); i++) {
        qn_value_info info;
        qn_model_input_info(&info, model, i);
        if (info.rank > 0 && info.dims[0] > most)
            most = info.dims[0];
    }
    return most;
}

int64_t quant_file_batch(const quant_values *v, const qn_model *model)
{
    if (cli_given(v, &cli_cmd_quant, "batch-size") && is_static(model) &&
        v->batch > fixed_batch(model))
        cli_note(
            "--batch-size %lld: the model's batch is fixed at %lld, so it is run several times "
            "for each",
            (long long)v->batch, (long long)fixed_batch(model));
    const bool asked = cli_given(v, &cli_cmd_quant, "ir-batch");
    if (is_static(model)) {
        if (asked)
            cli_note("--ir-batch has no effect here: the model's batch is fixed");
        return 0;
    }
    return asked ? v->run.ir_batch : cli_chip(&v->common) ? 1 : 0;
}
