/* Encodings from a scale file instead of from statistics. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "quant/scales.h"
#include "quant/smooth_channels.h"
#include "quant/softmax_masks.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

static qn_status get_scale(float *out, const qn_json_place *item)
{
    QN_TRY(qn_json_get_float(out, item));
    if (*out >= FLT_MIN)
        return QN_OK;
    return qn_json_fail(item, QN_E_INVALID, "a scale is a number greater than 0");
}

static qn_status get_scales(qn_qparams *p, const qn_json_place *object)
{
    qn_json_place item;
    size_t count;
    QN_TRY(qn_json_member(&item, object, "scale"));
    if (p->axis < 0)
        return get_scale(&p->scale, &item);
    QN_TRY(qn_json_length(&count, &item));
    if (count != (size_t)p->count)
        return qn_json_fail(&item, QN_E_INVALID, "has %zu scales: the weights have %lld channels",
                            count, (long long)p->count);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place one = qn_json_element(&item, i);
        float scale = 1;
        QN_TRY(get_scale(&scale, &one));
        qn_qparams_set_scale(p, (int64_t)i, scale);
    }
    return QN_OK;
}

/* Reads zero points; where they follow from the type no others are accepted. */
static qn_status get_zero(qn_qparams *p, const qn_json_place *object, bool symmetric)
{
    qn_json_place item;
    int64_t zero = 0;
    const int64_t middle = (p->qmin + p->qmax + 1) / 2;
    QN_TRY(qn_json_member(&item, object, "zero_point"));
    QN_TRY(
        qn_json_get_int(&zero, &item, symmetric ? middle : p->qmin, symmetric ? middle : p->qmax));
    for (int64_t i = 0; i < p->count; i++)
        qn_qparams_set_zero(p, i, zero);
    return QN_OK;
}

static qn_status get_range(qn_range *out, const qn_json_place *object)
{
    qn_json_place item;
    size_t count;
    float ends[2] = {0, 0};
    QN_TRY(qn_json_member(&item, object, "range"));
    QN_TRY(qn_json_length(&count, &item));
    if (count != 2)
        return qn_json_fail(&item, QN_E_INVALID, "a range has two ends");
    for (size_t i = 0; i < 2; i++) {
        const qn_json_place end = qn_json_element(&item, i);
        QN_TRY(qn_json_get_float(&ends[i], &end));
    }
    if (!(ends[0] <= 0 && ends[1] >= 0))
        return qn_json_fail(&item, QN_E_INVALID, "a range contains 0");
    *out = (qn_range){ends[0], ends[1]};
    return QN_OK;
}

/* Fails where type and width differ from what target and patterns give. */
static qn_status check_type(const qn_qparams *p, const qn_json_place *object)
{
    qn_json_place item;
    const char *type = NULL;
    int64_t bits = 0;
    const qn_dtype_info *info = qn_dtype_get(p->dtype);
    QN_TRY(qn_json_member(&item, object, "type"));
    QN_TRY(qn_json_get_text(&type, &item));
    if (strcmp(type, info->name) != 0)
        return qn_json_fail(&item, QN_E_INVALID, "is '%s': target and widths make it '%s'", type,
                            info->name);
    QN_TRY(qn_json_member(&item, object, "bits"));
    return qn_json_get_int(&bits, &item, info->bits, info->bits);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Reads the parameters of the same numbers in 8 bits (member "narrow"). */
static qn_status get_int8_params(qn_value_encoding *out, const qn_quantizer *q,
                                 const qn_json_place *object)
{
    const qn_profile *profile = q->settings.profile;
    qn_json_place item;
    QN_TRY(qn_json_member(&item, object, "narrow"));
    QN_TRY(qn_json_only(&item, (const char *const[]){"scale", "zero_point", NULL}));
    QN_TRY(qn_qparams_create(&out->int8_params, q->ctx, q->graph->arena,
                             qn_profile_activation(profile, QN_WIDTH_STANDARD), 1));
    QN_TRY(get_scales(out->int8_params, &item));
    return get_zero(out->int8_params, &item, profile->symmetric);
}

/* Reads a value's encoding: without scale and zero point they follow from the range; with them the
 * range is only information. */
static qn_status get_value(qn_value_encoding *out, const qn_quantizer *q,
                           const qn_quant_value *root, const qn_json_place *object)
{
    static const char *const keys[] = {"method",     "type",  "bits",   "scale",
                                       "zero_point", "range", "narrow", NULL};
    const qn_profile *profile = q->settings.profile;
    qn_json_place item;
    qn_qparams *p = NULL;
    QN_TRY(qn_json_only(object, keys));
    const bool symmetric = profile->symmetric && root->type == QN_UNDEFINED;
    QN_TRY(qn_qparams_create(&p, q->ctx, q->graph->arena, qn_quant_dtype(q, root), 1));
    out->name = root->value->name;
    out->params = p;
    QN_TRY(check_type(p, object));
    QN_TRY(qn_json_member_text(&out->method, object, "method"));
    QN_TRY(get_range(&out->range, object));
    if (root->read_as_int8)
        QN_TRY(get_int8_params(out, q, object));
    if (!qn_json_find(&item, object, "scale") && !qn_json_find(&item, object, "zero_point")) {
        qn_params_from_range(p, out->range.min, out->range.max, symmetric);
        return QN_OK;
    }
    QN_TRY(get_scales(p, object));
    return get_zero(p, object, symmetric);
}

static qn_status get_same(const qn_quant_value *root, const qn_json_place *object)
{
    qn_json_place item;
    const char *name = NULL;
    QN_TRY(qn_json_only(object, (const char *const[]){"same_as", NULL}));
    QN_TRY(qn_json_member(&item, object, "same_as"));
    QN_TRY(qn_json_get_text(&name, &item));
    if (strcmp(name, root->value->name) == 0)
        return QN_OK;
    return qn_json_fail(&item, QN_E_INVALID, "this tensor shares its scale with '%s'",
                        root->value->name);
}

/* Something too much is something misspelled, or of another model. */
static qn_status fail_unknown(const qn_quantizer *q, const qn_json_place *tensors)
{
    qn_json_place member;
    for (void *i = NULL; qn_json_next(&member, tensors, &i);) {
        const qn_value *value = qn_graph_value(q->graph, member.key);
        if (!value || !qn_quant_value_of(q, value)->integer)
            return qn_json_fail(&member, QN_E_INVALID,
                                "no integer tensor has this name: take it "
                                "out, or make the scales again");
    }
    return QN_OK;
}

static qn_status get_tensor(qn_quantizer *q, qn_quant_value *v, const qn_json_place *tensors)
{
    const qn_quant_value *root = qn_quant_root(q, v);
    qn_json_place object;
    if (!qn_json_find(&object, tensors, v->value->name))
        return qn_json_fail(tensors, QN_E_INVALID,
                            "has nothing of tensor '%s': make the scales again", v->value->name);
    if (root != v)
        return get_same(root, &object);
    v->encoding = &q->encodings.values[q->encodings.n_values++];
    QN_TRY(get_value(v->encoding, q, v, &object));
    /* The metadata of the result record it. */
    v->range_by_readers =
        (strcmp(v->encoding->method, "function") == 0 && qn_range_is_before_function(q, v)) ||
        (strcmp(v->encoding->method, QN_SOFTMAX_MASK_METHOD) == 0 && v->before_softmax);
    return QN_OK;
}

static qn_status get_tensors(qn_quantizer *q, const qn_json_place *root)
{
    qn_json_place tensors;
    size_t count, wanted = 0;
    QN_TRY(qn_json_member(&tensors, root, "tensors"));
    QN_TRY(qn_json_members(&count, &tensors));
    q->encodings.values = qn_arena_array(&q->arena, q->n_values + 1, sizeof *q->encodings.values);
    QN_TRY_ALLOC(q->ctx, q->encodings.values);
    for (size_t i = 0; i < q->n_values; i++) {
        if (q->values[i].integer)
            QN_TRY(get_tensor(q, &q->values[i], &tensors));
        wanted += q->values[i].integer;
    }
    return wanted == count ? QN_OK : fail_unknown(q, &tensors);
}

/* ---- Balances -------------------------------------------------------------------------------- */

static qn_status get_floats(float **out, const qn_quantizer *q, const qn_json_place *list,
                            size_t count)
{
    *out = qn_arena_array(&q->graph->model->arena, count + 1, sizeof **out);
    QN_TRY_ALLOC(q->ctx, *out);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(list, i);
        QN_TRY(qn_json_get_float(&(*out)[i], &item));
    }
    return QN_OK;
}

static qn_status get_factors(qn_channel_factors *out, const qn_quantizer *q,
                             const qn_json_place *object)
{
    qn_json_place list;
    size_t count;
    QN_TRY(qn_json_only(object, (const char *const[]){"tensor", "factor", NULL}));
    QN_TRY(qn_json_member_text(&out->name, object, "tensor"));
    QN_TRY(qn_json_member(&list, object, "factor"));
    QN_TRY(qn_json_length(&count, &list));
    QN_TRY(get_floats(&out->factor, q, &list, count));
    out->channels = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        if (!(out->factor[i] >= FLT_MIN))
            return qn_json_fail(&item, QN_E_INVALID, "a factor is a number greater than 0");
    }
    return QN_OK;
}

static qn_status get_all_factors(qn_quantizer *q, const qn_json_place *root)
{
    qn_json_place list;
    size_t count;
    QN_TRY(qn_json_member(&list, root, "balances"));
    QN_TRY(qn_json_length(&count, &list));
    QN_TRY_GROW(q->ctx, q->encodings.smoothed, q->encodings.smoothed_capacity, count + 1);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place object = qn_json_element(&list, i);
        QN_TRY(get_factors(&q->encodings.smoothed[i], q, &object));
        QN_TRY(qn_smooth_apply(q, &q->encodings.smoothed[i]));
    }
    q->encodings.n_smoothed = count;
    return QN_OK;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static qn_status get_correction(qn_layer_encoding *out, const qn_quantizer *q,
                                const qn_weighted_node *layer, const qn_json_place *object)
{
    qn_json_place list;
    size_t count;
    if (!qn_json_find(&list, object, "bias_correction"))
        return QN_OK;
    QN_TRY(qn_json_length(&count, &list));
    if (!layer->bias_node || count != (size_t)layer->filters)
        return qn_json_fail(&list, QN_E_INVALID, "has %zu numbers: the node has %lld biases", count,
                            (long long)(layer->bias_node ? layer->filters : 0));
    return get_floats(&out->correction, q, &list, count);
}

/* int32 in units of sx * sw, where neither side has 16 bits. */
static qn_status check_biases(const qn_layer_encoding *d, const qn_quantizer *q,
                              const qn_weighted_node *layer, const qn_json_place *object)
{
    const qn_value *x = layer->node->in[0];
    const qn_qparams *read = qn_params_of_input(q, qn_quant_node_of(q, layer->node)),
                     *w = d->weights;
    if (!read || qn_params_is_int16(read, w))
        return QN_OK;
    for (int64_t k = 0; k < layer->filters; k++) {
        const int64_t s = w->count > 1 ? k % layer->w->dims[layer->axis] : 0;
        const double unit = (double)read->scale * (double)qn_qparams_scale_at(w, s);
        const double bias =
            qn_weighted_node_bias(layer, k) + (double)(d->correction ? d->correction[k] : 0);
        if (fabs(bias) > (double)INT32_MAX * unit)
            return qn_json_fail(object, QN_E_INVALID,
                                "bias %lld does not fit 32 bits: the scale of tensor '%s' or of "
                                "the weights is too small",
                                (long long)k, x->name);
    }
    return QN_OK;
}

static qn_status get_node(qn_layer_encoding *out, const qn_quantizer *q,
                          const qn_weighted_node *layer, const qn_json_place *object)
{
    static const char *const keys[] = {"node", "operator", "weight",     "type",  "bits",
                                       "axis", "scale",    "zero_point", "range", "bias_correction",
                                       NULL};
    qn_json_place item;
    qn_range range;
    int64_t axis = 0;
    QN_TRY(qn_json_only(object, keys));
    QN_TRY(qn_params_weight_template(&out->weights, q, layer));
    out->filters = layer->filters;
    QN_TRY(check_type(out->weights, object));
    if (out->weights->axis >= 0) {
        QN_TRY(qn_json_member(&item, object, "axis"));
        QN_TRY(qn_json_get_int(&axis, &item, out->weights->axis, out->weights->axis));
    }
    QN_TRY(get_range(&range, object));
    QN_TRY(get_scales(out->weights, object));
    QN_TRY(get_zero(out->weights, object, true));
    QN_TRY(get_correction(out, q, layer, object));
    return check_biases(out, q, layer, object);
}

static bool has_layer(const qn_quantizer *q, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < q->encodings.n_nodes && !found; i++)
        found = strcmp(q->encodings.nodes[i].name, name) == 0;
    return found;
}

static qn_status get_layers(qn_quantizer *q, const qn_json_place *root)
{
    qn_json_place layers, member;
    size_t count;
    QN_TRY(qn_json_member(&layers, root, "layers"));
    QN_TRY(qn_json_members(&count, &layers));
    q->encodings.nodes = qn_arena_array(&q->arena, q->n_nodes + 1, sizeof *q->encodings.nodes);
    QN_TRY_ALLOC(q->ctx, q->encodings.nodes);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        qn_weighted_node layer;
        if (!qn_quant_weighted_node(&layer, n))
            continue;
        qn_layer_encoding *d = &q->encodings.nodes[q->encodings.n_nodes++];
        d->name = n->node->out[0]->name;
        if (!qn_json_find(&member, &layers, d->name))
            return qn_json_fail(&layers, QN_E_INVALID,
                                "has nothing of the node that writes '%s': make the scales again",
                                d->name);
        QN_TRY(get_node(d, q, &layer, &member));
    }
    for (void *i = NULL; q->encodings.n_nodes != count && qn_json_next(&member, &layers, &i);) {
        if (!has_layer(q, member.key))
            return qn_json_fail(&member, QN_E_INVALID,
                                "no integer node with weights writes this: take it out, or make "
                                "the scales again");
    }
    return QN_OK;
}

qn_status qn_scales_apply(qn_quantizer *q, const qn_scales *scales)
{
    const qn_json_place root = qn_json_root(scales->document);
    qn_quant_find_int8_readers(q);
    QN_TRY(get_tensors(q, &root));
    QN_TRY(get_all_factors(q, &root));
    return get_layers(q, &root);
}
