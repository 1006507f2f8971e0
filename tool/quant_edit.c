/* quench quant: the model with the ends that the options want. */
#include "quant.h"

qn_status quant_edit(qn_model **out, cli_work *cli, qn_model *model, const quant_values *v)
{
    const qn_status status = qn_model_edit(out, cli->ctx, model, &v->edit);
    cli->misused = status != QN_OK && (v->edit.n_mean || v->edit.n_outputs);
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
    const int64_t batch = v->strategies.function.batch_size;
    if (is_static(model) && batch > fixed_batch(model))
        cli_note(
            "--batch-size %lld: the model's batch is fixed at %lld, so it is run several times "
            "for each",
            (long long)batch, (long long)fixed_batch(model));
    const int64_t asked = v->strategies.file.batch;
    if (is_static(model)) {
        if (asked)
            cli_note("--ir-batch has no effect here: the model's batch is fixed");
        return 0;
    }
    return asked ? asked : cli_chip(&v->common) ? 1 : 0;
}
