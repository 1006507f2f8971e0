/* Writes encodings and settings as a scale file. */
#include <string.h>

#include "base/options_record.h"
#include "quant/refinement.h"
#include "quant/scales.h"

/* What has been written so far, or that it could not be. */
typedef struct writer {
    qn_context *ctx;
    const qn_quantizer *q;
    const qn_param_options *params;
    /* A name that JSON cannot have */
    const char *bad;
    /* Memory */
    bool failed;
} writer;

static void put(writer *w, qn_json *object, const char *key, qn_json *value)
{
    if (!qn_text_is_utf8(key)) {
        w->bad = key;
        qn_json_free(value);
    } else if (!qn_json_set(object, key, value)) {
        w->failed = true;
    }
}

static void push(writer *w, qn_json *list, qn_json *value)
{
    w->failed = !qn_json_push(list, value) || w->failed;
}

static void put_text(writer *w, qn_json *object, const char *key, const char *text)
{
    put(w, object, key, qn_json_text(w->ctx, text));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static qn_json *floats(writer *w, const float *numbers, int64_t count)
{
    qn_json *list = qn_json_array();
    for (int64_t i = 0; list && i < count; i++)
        push(w, list, qn_json_float(numbers[i]));
    return list;
}

static qn_json *scales(writer *w, const qn_qparams *p)
{
    qn_json *list = qn_json_array();
    for (int64_t i = 0; list && i < p->count; i++)
        push(w, list, qn_json_float(qn_qparams_scale_at(p, i)));
    return list;
}

/* Zero points differ only where there is one scale. */
static void put_params(writer *w, qn_json *object, const qn_qparams *p, qn_range range)
{
    const qn_dtype_info *info = qn_dtype_get(p->dtype);
    put_text(w, object, "type", info->name);
    put(w, object, "bits", qn_json_int(info->bits));
    if (p->axis >= 0)
        put(w, object, "axis", qn_json_int(p->axis));
    put(w, object, "scale", p->axis < 0 ? qn_json_float(p->scale) : scales(w, p));
    put(w, object, "zero_point", qn_json_int(qn_qparams_zero_at(p, 0)));
    put(w, object, "range", floats(w, (const float[2]){range.min, range.max}, 2));
}

static qn_json *int8_params_of(writer *w, const qn_qparams *p)
{
    qn_json *object = qn_json_object();
    put(w, object, "scale", qn_json_float(p->scale));
    put(w, object, "zero_point", qn_json_int(p->zero));
    return object;
}

static qn_json *tensors_of(writer *w)
{
    qn_json *tensors = qn_json_object();
    for (size_t i = 0; i < w->q->n_values; i++) {
        const qn_quant_value *v = &w->q->values[i], *root = qn_quant_root(w->q, v);
        if (!v->integer)
            continue;
        qn_json *object = qn_json_object();
        if (root == v) {
            put_text(w, object, "method", v->encoding->method);
            put_params(w, object, v->encoding->params, v->encoding->range);
            if (v->encoding->int8_params)
                put(w, object, "narrow", int8_params_of(w, v->encoding->int8_params));
        } else {
            put_text(w, object, "same_as", root->value->name);
        }
        put(w, tensors, v->value->name, object);
    }
    return tensors;
}

static qn_json *smoothed_of(writer *w)
{
    qn_json *list = qn_json_array();
    for (size_t i = 0; i < w->q->encodings.n_smoothed; i++) {
        const qn_channel_factors *b = &w->q->encodings.smoothed[i];
        qn_json *object = qn_json_object();
        put_text(w, object, "tensor", b->name);
        put(w, object, "factor", floats(w, b->factor, b->channels));
        push(w, list, object);
    }
    return list;
}

/* What the integers of the weights reach, over all channels. */
static qn_range reach(const qn_qparams *p)
{
    float most = 0;
    for (int64_t i = 0; i < p->count; i++)
        most = QN_MAX(most, (float)p->qmax * qn_qparams_scale_at(p, i));
    return (qn_range){-most, most};
}

static qn_json *layers_of(writer *w)
{
    qn_json *layers = qn_json_object();
    for (size_t i = 0; i < w->q->encodings.n_nodes; i++) {
        const qn_layer_encoding *d = &w->q->encodings.nodes[i];
        const qn_node *node = qn_graph_value(w->q->graph, d->name)->producer;
        qn_json *object = qn_json_object();
        put_text(w, object, "node", node->name);
        put_text(w, object, "operator", node->op->name);
        put_text(w, object, "weight", node->in[1]->name);
        put_params(w, object, d->weights, reach(d->weights));
        if (d->correction)
            put(w, object, "bias_correction", floats(w, d->correction, d->filters));
        put(w, layers, d->name, object);
    }
    return layers;
}

/* ---- The file -------------------------------------------------------------------------------- */

static qn_json *refinements_of(writer *w)
{
    qn_json *list = qn_json_array();
    for (size_t i = 0; i < QN_REFINEMENT_ROWS; i++) {
        if (qn_refinement_is_on(w->params, i))
            push(w, list, qn_json_text(w->ctx, qn_refinement_rows[i].name));
    }
    return list;
}

static void put_head(writer *w, qn_json *root, qn_fingerprint model, qn_fingerprint data)
{
    const qn_quant_settings *s = &w->q->settings;
    char print[QN_FINGERPRINT_TEXT];
    put_text(w, root, "format", QN_SCALES_FORMAT);
    put(w, root, "version", qn_json_int(QN_SCALES_VERSION));
    put_text(w, root, "model", qn_fingerprint_format(print, model));
    put_text(w, root, "data", qn_fingerprint_format(print, data));
    put_text(w, root, "given", s->given ? s->given : "");
    const qn_quantize_options asked = qn_quant_settings_options(s, w->params);
    w->failed = !qn_options_put(root, w->ctx, &qn_quantize_options_table, &asked) || w->failed;
    put(w, root, "refinements", refinements_of(w));
    if (s->bits_asked && w->q->n_existing)
        put(w, root, "bits_asked", qn_json_bool(true));
    if (s->mix)
        put(w, root, "mix", qn_mix_json(w->q));
}

qn_status qn_scales_write(char **out, const qn_quantizer *q, qn_fingerprint model,
                          qn_fingerprint data, const qn_param_options *params)
{
    writer w = {.ctx = q->ctx, .q = q, .params = params};
    qn_json *root = qn_json_object();
    put_head(&w, root, model, data);
    put(&w, root, "tensors", tensors_of(&w));
    put(&w, root, "balances", smoothed_of(&w));
    put(&w, root, "layers", layers_of(&w));
    qn_status status = QN_OK;
    if (w.bad)
        status = qn_fail(q->ctx, QN_E_UNSUPPORTED,
                         "the name of tensor '%s' is no UTF-8: no scale file can have it", w.bad);
    else if (w.failed)
        status = qn_fail_nomem(q->ctx);
    else
        status = qn_json_write(out, q->ctx, root);
    qn_json_free(root);
    return status;
}
