/* What the metadata of a quantized file say: the tool, its settings and the data, nothing of the
 * way that these came. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/options_record.h"
#include "base/text.h"
#include "compare/layer_comparison.h"
#include "ops/numerics.h"
#include "pass/qdq_to_integer.h"
#include "pass/quant_formats.h"
#include "quant/refinement.h"
#include "quantize/job.h"

static const char separator[] = ", ";

static void add_word(qn_text *text, const char *word)
{
    if (text->length)
        qn_text_add(text, separator, strlen(separator));
    qn_text_add(text, word, strlen(word));
}

static qn_status describe_text(qn_model *model, const char *key, qn_text *text)
{
    char *words;
    QN_TRY(qn_text_take(&words, text));
    const qn_status status = qn_model_set_metadata(model, key, words);
    qn_text_free(model->ctx, words);
    return status;
}

static qn_status describe_refinements(qn_model *model, const qn_param_options *params)
{
    qn_text text;
    qn_text_init(&text, model->ctx);
    for (size_t i = 0; i < QN_REFINEMENT_ROWS; i++) {
        if (qn_refinement_is_on(params, i))
            add_word(&text, qn_refinement_rows[i].name);
    }
    if (!text.length)
        add_word(&text, "none");
    return describe_text(model, "quench.refinements", &text);
}

/* The nodes of other widths than the standard one, as patterns would ask for them. */
static qn_status list_widths(qn_quantize_options *out, qn_model *model, const qn_mix *mix)
{
    qn_arena *arena = &model->arena;
    const char **at = qn_arena_array(arena, mix->count, sizeof *at);
    out->widths = at;
    out->n_widths = 0;
    QN_TRY_ALLOC(model->ctx, at);
    for (size_t i = 0; i < mix->count; i++) {
        if (mix->rows[i].bits == QN_WIDTH_STANDARD)
            continue;
        at[out->n_widths] = qn_arena_format(arena, "%s=%d", mix->rows[i].node, mix->rows[i].bits);
        QN_TRY_ALLOC(model->ctx, at[out->n_widths]);
        out->n_widths++;
    }
    return QN_OK;
}

/* The options that results tell, each under its key. */
static qn_status describe_options(qn_model *model, const qn_quantize_options *told)
{
    const qn_option *row;
    for (size_t i = 0; (row = qn_options_recorded(&qn_quantize_options_table, i)) != NULL; i++) {
        qn_text text;
        qn_text_init(&text, model->ctx);
        const char *key = qn_arena_format(&model->arena, "quench.%s", row->result);
        QN_TRY_ALLOC(model->ctx, key);
        if (qn_options_describe(&text, row, told))
            QN_TRY(describe_text(model, key, &text));
    }
    return QN_OK;
}

static qn_status describe_settings(const qn_quantized_model *q)
{
    const qn_quant_settings *s = &q->quantizer->settings;
    qn_quantize_options told = qn_quant_settings_options(s, &q->settings.params);
    told.table_bits = 0; /* numerics of the model, where it has such tables */
    if (s->mix) {
        told.method = "mix";
        told.bits = 0;
        QN_TRY(list_widths(&told, q->model, s->mix));
    }
    if (s->dynamic) {
        told = (qn_quantize_options){.target = told.target,
                                     .method = "dynamic",
                                     .bits = told.bits,
                                     .reduce_range = told.reduce_range,
                                     .keep_float = told.keep_float,
                                     .n_keep_float = told.n_keep_float};
    }
    QN_TRY(describe_options(q->model, &told));
    return s->mix ? qn_model_set_metadata(q->model, "quench.bits", "mix") : QN_OK;
}

/* What a reader must know to see the float network's numbers in a tensor's integers: factors of
 * channels, and that it is cut off where what is behind it, a function or a Softmax, does not
 * care. */
static qn_json *describe_value(const qn_quant_value *v, bool through)
{
    qn_json *row = qn_json_object(), *list = qn_json_array();
    const int64_t channels = v->factor ? v->value->type.dims[v->axis].value : 0;
    bool good = true;
    for (int64_t c = 0; c < channels && good; c++)
        good = qn_json_push(list, qn_json_float(v->factor[c]));
    if (channels)
        good = good && qn_json_set(row, "axis", qn_json_int(v->axis));
    good = qn_json_set(row, "factor", list) && good;
    if (through)
        good = good && qn_json_set(row, "through", qn_json_bool(true));
    if (good)
        return row;
    qn_json_free(row);
    return NULL;
}

static qn_status describe_tensors(qn_model *model, const qn_quantizer *q)
{
    qn_json *root = qn_json_object();
    char *text = NULL;
    bool good = true, any = false;
    for (size_t i = 0; i < q->n_values && good; i++) {
        const qn_quant_value *v = &q->values[i];
        const bool through = v->integer && qn_quant_root(q, v)->range_by_readers;
        if (!v->integer || (!through && !v->factor))
            continue;
        good = qn_json_set(root, v->value->name, describe_value(v, through));
        any = true;
    }
    qn_status status = good ? QN_OK : qn_fail_nomem(model->ctx);
    if (status == QN_OK && any)
        status = qn_json_write_line(&text, model->ctx, root);
    if (status == QN_OK && any)
        status = qn_model_set_metadata(model, QN_TENSORS_KEY, text);
    qn_text_free(model->ctx, text);
    qn_json_free(root);
    return status;
}

/* Describes the tables of functions of 16 bits. */
static qn_status describe_tables(qn_model *model, const qn_quantizer *q)
{
    bool found = false;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        found =
            found || (n->integer && n->is_function && qn_width_is_fine(qn_width_of_bits(n->bits)));
    }
    if (!found || !q->settings.table_bits)
        return QN_OK;
    return qn_model_set_numerics(model, QN_NUMERICS_TABLE_BITS, q->settings.table_bits);
}

/* What the integers of inputs mean. */
static qn_status describe_inputs(qn_model *model, const qn_quantizer *q)
{
    for (size_t i = 0; i < model->graph->n_inputs; i++) {
        const qn_value *input = model->graph->inputs[i];
        const qn_quant_value *v = qn_quant_value_of(q, input);
        const qn_value_encoding *encoding = qn_quant_root(q, v)->encoding;
        char number[QN_NUMBER_SIZE];
        if (v->type == QN_UNDEFINED || !encoding)
            continue;
        char *key = qn_arena_format(&model->arena, "quench.input_scale.%s", input->name);
        QN_TRY_ALLOC(model->ctx, key);
        QN_TRY(qn_model_set_metadata(model, key,
                                     qn_number_format_float(number, encoding->params->scale)));
        key = qn_arena_format(&model->arena, "quench.input_zero_point.%s", input->name);
        QN_TRY_ALLOC(model->ctx, key);
        snprintf(number, sizeof number, "%lld", (long long)encoding->params->zero);
        QN_TRY(qn_model_set_metadata(model, key, number));
    }
    return QN_OK;
}

qn_status qn_quantized_model_describe(const qn_quantized_model *q, const qn_quantize_input *input)
{
    char print[QN_FINGERPRINT_TEXT];
    qn_model *model = q->model;
    const qn_quant_settings *s = &q->quantizer->settings;
    QN_TRY(qn_model_set_metadata(model, "quench.version", qn_version()));
    QN_TRY(describe_settings(q));
    QN_TRY(qn_model_set_numerics(model, QN_NUMERICS_FIXED_POINT, s->profile->fixed_point));
    QN_TRY(qn_model_set_numerics(model, QN_NUMERICS_TABLE_BITS, 0));
    if (s->dynamic)
        return QN_OK;
    QN_TRY(qn_model_set_metadata(model, QN_QUANT_FORMAT_KEY, "qdq"));
    QN_TRY(describe_tensors(model, q->quantizer));
    QN_TRY(describe_refinements(model, &q->settings.params));
    QN_TRY(describe_tables(model, q->quantizer));
    QN_TRY(describe_inputs(model, q->quantizer));
    if (input->given)
        return QN_OK;
    const qn_fingerprint data = input->scales ? input->scales->data : input->stats->data;
    return qn_model_set_metadata(model, "quench.data", qn_fingerprint_format(print, data));
}
