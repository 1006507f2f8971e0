/* quench quant: the model with the ends that the options want. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- What a scale file is to be read with ---------------------------------------------------- */

static void add_word(char *out, size_t size, const char *word)
{
    const size_t length = strlen(out);
    snprintf(out + length, size - length, "%s%s", length ? " " : "", word);
}

/* `each`: the name stands before every value. */
static void add_values(char *out, size_t size, const char *name, const cli_list *values, bool each)
{
    if (values->count && !each)
        add_word(out, size, name);
    for (size_t i = 0; i < values->count; i++) {
        if (each)
            add_word(out, size, name);
        add_word(out, size, values->at[i] ? values->at[i] : name);
    }
}

char *quant_given(const quant_values *v)
{
    const cli_list *lists[] = {&v->edge.mean, &v->edge.std, &v->edge.outputs,
                               &v->graph.origin.shapes, &v->graph.shapes};
    static const char *const names[] = {"--mean", "--std", "-on", "-is", "--input-shape"};
    enum { LISTS = sizeof names / sizeof *names, LAST = LISTS - 1, BATCH_SIZE = 32 };
    char batch[BATCH_SIZE];
    size_t size = 64 + sizeof batch;
    for (size_t i = 0; i < LISTS; i++) {
        for (size_t k = 0; k < lists[i]->count; k++)
            size += 2 * sizeof "--input-shape" + (lists[i]->at[k] ? strlen(lists[i]->at[k]) : 0);
    }
    char *out = calloc(size, 1);
    if (!out)
        return NULL;
    for (size_t i = 0; i < LISTS; i++)
        add_values(out, size, names[i], lists[i], i == LAST);
    if (v->run.ir_batch) {
        snprintf(batch, sizeof batch, "-ib %lld", (long long)v->run.ir_batch);
        add_word(out, size, batch);
    }
    if (v->quantize.real_outputs)
        add_word(out, size, "-od");
    return out;
}
