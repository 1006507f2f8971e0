/* quench quant: the model with the ends that the options want. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

/* ---- What a scale file is to be read with ---------------------------------------------------- */

static void put_numbers(FILE *out, const char *name, const double *at, size_t count)
{
    if (count)
        fprintf(out, " --%s", name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, " %.9g", at[i]);
}

static void put_shapes(FILE *out, const char *name, const qn_input_shape *shapes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const qn_input_shape *shape = &shapes[i];
        fprintf(out, " --%s%s%s", name, shape->name ? " " : "", shape->name ? shape->name : "");
        for (int32_t d = 0; d < shape->rank; d++)
            fprintf(out, "%c%" PRId64, d || !shape->name ? (shape->name ? ',' : ' ') : ':',
                    shape->dims[d]);
    }
}

static void put_given(FILE *out, const quant_values *v)
{
    const qn_graph_options *graph = &quant_options_of(v)->calibrate.graph;
    put_numbers(out, "mean", v->edit.mean, v->edit.n_mean);
    put_numbers(out, "std", v->edit.std, v->edit.n_std);
    if (v->edit.n_outputs)
        fprintf(out, " --output-name");
    for (size_t i = 0; i < v->edit.n_outputs; i++)
        fprintf(out, " %s", v->edit.outputs[i]);
    put_shapes(out, "input-shapes", v->origin.shapes, v->origin.n_shapes);
    put_shapes(out, "input-shape", graph->shapes, graph->n_shapes);
    if (v->strategies.file.batch)
        fprintf(out, " --ir-batch %" PRId64, v->strategies.file.batch);
    if (quant_options_of(v)->real_outputs)
        fprintf(out, " --output-dequant");
}

char *quant_given(const quant_values *v)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    put_given(out, v);
    const bool good = !ferror(out);
    if (fclose(out) == 0 && good)
        return text;
    free(text);
    return NULL;
}
