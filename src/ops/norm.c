/* GroupNormalization, InstanceNormalization, LayerNormalization, RMSNormalization: elements scaled
 * by the statistics of their own segment, a run of neighbours in memory. */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"

static const qn_port channel_in[] = {
    {"X", 'T', QN_SET_FLOAT, 0}, {"scale", 'T', QN_SET_FLOAT, 0}, {"bias", 'T', QN_SET_FLOAT, 0}};
static const qn_port float_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

static double mean_of(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    return sum / (double)count;
}

/* Mean of (x - center)^2. */
static double spread_of(const double *x, int64_t count, double center)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] - center) * (x[i] - center);
    return sum / (double)count;
}

/* ---- By channel: InstanceNormalization, GroupNormalization ----------------------------------- */

static qn_status check_channels(const qn_infer *self)
{
    const qn_type *x = self->in[0];
    if (x->rank >= 0 && x->rank < 2)
        return qn_infer_fail(self, "the input has %d dimensions, 2 are the least", x->rank);
    qn_dim channels = x->rank < 0 ? qn_dim_unknown() : x->dims[1];
    for (int32_t i = 1; i < 3; i++) {
        const qn_type *p = self->in[i];
        if (p->rank >= 0 && (p->rank != 1 || !qn_dim_merge(&channels, channels, p->dims[0])))
            return qn_infer_fail(self, "input %d must be a list of one number per channel", i);
    }
    return QN_OK;
}

/* Normalizes segments of `channels` whole channels each. */
static qn_status eval_channels(qn_eval *self, int64_t channels)
{
    const qn_norm_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(in);
    double *x;
    if (count == 0)
        return QN_OK;
    const int64_t area = count / in->dims[0] / in->dims[1], length = channels * area;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t start = 0; start < count; start += length) {
        const double mean = mean_of(x + start, length);
        const double spread = spread_of(x + start, length, mean);
        const double factor = 1 / sqrt(spread + (double)a->epsilon);
        for (int64_t i = start; i < start + length; i++) {
            const int64_t c = i / area % in->dims[1];
            x[i] = (x[i] - mean) * factor * qn_tensor_f64(self->in[1], c) +
                   qn_tensor_f64(self->in[2], c);
        }
    }
    qn_store_f64(out->data, out->dtype, 0, x, count);
    return QN_OK;
}

static const qn_attr_spec instance_specs[] = {QN_FLOAT_ATTR(qn_norm_attrs, epsilon, 1e-5f)};

static qn_status instance_infer(qn_infer *self)
{
    QN_TRY(check_channels(self));
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

static qn_status instance_eval(qn_eval *self)
{
    return eval_channels(self, 1);
}

const qn_op qn_op_InstanceNormalization = {
    .name = "InstanceNormalization",
    .domain = "",
    .since = 1,
    QN_PORTS(in, channel_in),
    QN_PORTS(out, float_out),
    QN_ATTRS(instance_specs, qn_norm_attrs),
    QN_TYPE_RULES(qn_bfloat16_22),
    .quant = QN_QUANT_FLOAT,
    .infer = instance_infer,
    .eval = instance_eval,
    .brief = "each channel of each image to mean 0 and variance 1, then scaled"};

static const qn_attr_spec group_specs[] = {
    QN_FLOAT_ATTR(qn_norm_attrs, epsilon, 1e-5f),
    QN_INT_ATTR(qn_norm_attrs, num_groups, QN_ABSENT, .required = true),
    QN_INT_ATTR(qn_norm_attrs, stash_type, QN_FLOAT32, .since = 21)};

/* A constant with `count` numbers of which each is element i / every * from of the old one. */
static qn_status pick_groups(qn_node *node, int32_t slot, int64_t count, int64_t every,
                             int64_t from)
{
    const qn_tensor *data = node->in[slot]->data;
    const qn_type type = qn_type_tensor(data->dtype, 1, &count);
    const size_t size = qn_dtype_size(data->dtype);
    qn_tensor *made;
    qn_value *value;
    QN_TRY(qn_tensor_create(&made, node->graph->ctx, node->graph->arena, &type));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)made->data + (size_t)i * size,
               (const char *)data->data + (size_t)(i / every * from) * size, size);
    QN_TRY(qn_value_constant(&value, node->graph, node->in[slot]->name, made));
    return qn_node_set_input(node, slot, value);
}

/* A list of one number per group becomes one per channel: [G] -> [G, 1] -> [G, each] -> [G *
 * each]. */
static qn_status spread_groups(qn_node *node, int32_t slot, int64_t groups, int64_t each)
{
    const int64_t shapes[3][2] = {{groups, 1}, {groups, each}, {groups * each, 0}};
    const qn_op *const ops[3] = {&qn_op_Reshape, &qn_op_Expand, &qn_op_Reshape};
    const qn_tensor *data = node->in[slot]->data;
    if (data && data->rank == 1 && data->dims[0] == groups)
        return pick_groups(node, slot, groups * each, each, 1);
    for (int i = 0; i < 3; i++) {
        qn_node *step;
        qn_value *shape;
        QN_TRY(qn_node_prepend(&step, node, slot, ops[i]));
        QN_TRY(qn_value_ints(&shape, node->graph, shapes[i], i < 2 ? 2 : 1));
        QN_TRY(qn_node_set_input(step, 1, shape));
    }
    return QN_OK;
}

/* Before opset 21 scale and bias belonged to groups. */
static qn_status group_upgrade(qn_node **node)
{
    const qn_type *x = &(*node)->in[0]->type;
    const int64_t groups = ((const qn_norm_attrs *)(*node)->attrs)->num_groups;
    const int64_t channels = x->rank >= 2 ? x->dims[1].value : -1;
    if (channels < 0)
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "before opset 21 it needs a known number of channels");
    if (groups < 1 || channels % groups)
        return qn_node_fail(*node, QN_E_INVALID, "%lld channels cannot be split into %lld groups",
                            (long long)channels, (long long)groups);
    for (int32_t i = 1; i < 3 && i < (*node)->n_explicit; i++) {
        if ((*node)->in[i] && channels != groups)
            QN_TRY(spread_groups(*node, i, groups, channels / groups));
    }
    return QN_OK;
}

/* Whether all channels of each group have one number. */
static bool is_by_group(const qn_value *value, int64_t each)
{
    const qn_tensor *data = value->data;
    if (!data)
        return false;
    const size_t size = qn_dtype_size(data->dtype);
    for (int64_t i = 0; i < qn_tensor_count(data); i++) {
        const char *at = (const char *)data->data + (size_t)i * size;
        if (memcmp(at, at - (size_t)(i % each) * size, size) != 0)
            return false;
    }
    return true;
}

static qn_status group_downgrade(qn_node **node)
{
    const qn_type *x = &(*node)->in[0]->type;
    const int64_t groups = ((const qn_norm_attrs *)(*node)->attrs)->num_groups;
    const int64_t channels = x->rank >= 2 ? x->dims[1].value : -1;
    if (channels == groups)
        return QN_OK;
    const int64_t each = channels / groups;
    if (channels < 0 || !is_by_group((*node)->in[1], each) || !is_by_group((*node)->in[2], each))
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "a scale per channel came with opset 21");
    QN_TRY(pick_groups(*node, 1, groups, 1, each));
    return pick_groups(*node, 2, groups, 1, each);
}

static const qn_version_rule group_versions[] = {{21, group_upgrade, group_downgrade}};

static qn_status group_infer(qn_infer *self)
{
    const int64_t groups = ((const qn_norm_attrs *)self->attrs)->num_groups;
    const qn_type *x = self->in[0];
    QN_TRY(check_channels(self));
    const int64_t channels = x->rank >= 2 ? x->dims[1].value : -1;
    if (groups < 1 || (channels >= 0 && channels % groups))
        return qn_infer_fail(self, "%lld channels cannot be split into %lld groups",
                             (long long)channels, (long long)groups);
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

static qn_status group_eval(qn_eval *self)
{
    const int64_t groups = ((const qn_norm_attrs *)self->attrs)->num_groups;
    return eval_channels(self, self->in[0]->dims[1] / groups);
}

const qn_op qn_op_GroupNormalization = {
    .name = "GroupNormalization",
    .domain = "",
    .since = 18,
    QN_PORTS(in, channel_in),
    QN_PORTS(out, float_out),
    QN_ATTRS(group_specs, qn_norm_attrs),
    QN_VERSIONS(group_versions),
    .quant = QN_QUANT_FLOAT,
    .infer = group_infer,
    .eval = group_eval,
    .brief = "groups of channels to mean 0 and variance 1, then scaled by channel"};

/* ---- From an axis on: LayerNormalization, RMSNormalization ----------------------------------- */

static const qn_attr_spec layer_specs[] = {QN_FLOAT_ATTR(qn_norm_attrs, epsilon, 1e-5f),
                                           QN_INT_ATTR(qn_norm_attrs, axis, -1),
                                           QN_INT_ATTR(qn_norm_attrs, stash_type, QN_FLOAT32)};
static const qn_port layer_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"Scale", 'T', QN_SET_FLOAT, 0},
                                   {"B", 'T', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port layer_out[] = {{"Y", 'T', QN_SET_FLOAT, 0},
                                    {"Mean", '\0', QN_SET_FLOAT, QN_OPTIONAL},
                                    {"InvStdDev", '\0', QN_SET_FLOAT, QN_OPTIONAL}};
static const qn_port rms_in[] = {{"X", 'T', QN_SET_FLOAT, 0}, {"scale", 'V', QN_SET_FLOAT, 0}};
static const qn_port rms_out[] = {{"Y", 'V', QN_SET_FLOAT, 0}};

static qn_status check_layer(const qn_infer *self, int64_t *axis)
{
    const qn_norm_attrs *a = self->attrs;
    const qn_type *x = self->in[0];
    *axis = a->axis;
    if (a->stash_type < 0 || a->stash_type > 31 || !(QN_SET(a->stash_type) & QN_SET_FLOAT))
        return qn_infer_fail(self, "stash_type %lld is no float type", (long long)a->stash_type);
    if (x->rank < 0)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, axis, x->rank, "axis"));
    for (int32_t i = 1; i < self->n_in; i++)
        QN_TRY(qn_infer_broadcast_to(self, i, x->rank, x->dims));
    return QN_OK;
}

static qn_status layer_infer(qn_infer *self)
{
    const qn_type *x = self->in[0];
    const qn_dtype stash = (qn_dtype)((const qn_norm_attrs *)self->attrs)->stash_type;
    int64_t axis;
    qn_dim dims[QN_MAX_RANK];
    QN_TRY(check_layer(self, &axis));
    qn_infer_copy(self, 0, 0);
    for (int32_t d = 0; d < x->rank; d++)
        dims[d] = d < axis ? x->dims[d] : qn_dim_of(1);
    for (int32_t o = 1; o < 3; o++)
        qn_infer_set(self, o, stash, x->rank, dims);
    return QN_OK;
}

static qn_status rms_infer(qn_infer *self)
{
    int64_t axis;
    QN_TRY(check_layer(self, &axis));
    qn_infer_copy_dims(self, 0, 0, self->in[1]->dtype);
    return QN_OK;
}

/* Scales segment number `s` of x by `factor` and the learned scale, then shifts it. */
static void scale_segment(const qn_eval *self, double *x, int64_t s, int64_t length, double factor)
{
    const qn_tensor *in = self->in[0], *scale = self->in[1], *shift = qn_eval_in(self, 2);
    int64_t scales[QN_MAX_RANK], shifts[QN_MAX_RANK];
    qn_broadcast_strides(scales, scale, in->rank, in->dims);
    if (shift)
        qn_broadcast_strides(shifts, shift, in->rank, in->dims);
    for (int64_t i = 0; i < length; i++) {
        const int64_t at = s * length + i;
        x[at] *= factor * qn_tensor_f64(scale, qn_offset_of(at, in->rank, in->dims, scales));
        if (shift)
            x[at] += qn_tensor_f64(shift, qn_offset_of(at, in->rank, in->dims, shifts));
    }
}

static void put(const qn_eval *self, int32_t o, int64_t i, double value)
{
    const qn_tensor *out = qn_eval_out(self, o);
    if (out)
        qn_store_f64(out->data, out->dtype, i, &value, 1);
}

/* `centered`: the mean is taken out first. */
static qn_status eval_layer(qn_eval *self, bool centered)
{
    const qn_norm_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = qn_eval_out(self, 0);
    const int64_t count = qn_tensor_count(in), axis = a->axis < 0 ? a->axis + in->rank : a->axis;
    int64_t length = 1;
    double *x;
    if (count == 0)
        return QN_OK;
    for (int64_t d = axis; d < in->rank; d++)
        length *= in->dims[d];
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t s = 0; s < count / length; s++) {
        double *segment = x + s * length;
        const double mean = centered ? mean_of(segment, length) : 0;
        const double factor = 1 / sqrt(spread_of(segment, length, mean) + (double)a->epsilon);
        for (int64_t i = 0; i < length; i++)
            segment[i] -= mean;
        scale_segment(self, x, s, length, factor);
        if (centered) {
            put(self, 1, s, mean);
            put(self, 2, s, factor);
        }
    }
    if (out)
        qn_store_f64(out->data, out->dtype, 0, x, count);
    return QN_OK;
}

static qn_status layer_eval(qn_eval *self)
{
    return eval_layer(self, true);
}

static qn_status rms_eval(qn_eval *self)
{
    return eval_layer(self, false);
}

const qn_op qn_op_LayerNormalization = {
    .name = "LayerNormalization",
    .domain = "",
    .since = 17,
    QN_PORTS(in, layer_in),
    QN_PORTS(out, layer_out),
    QN_ATTRS(layer_specs, qn_norm_attrs),
    .quant = QN_QUANT_ELEMENT,
    .infer = layer_infer,
    .eval = layer_eval,
    .brief = "the last dimensions to mean 0 and variance 1, then scaled"};

const qn_op qn_op_RMSNormalization = {.name = "RMSNormalization",
                                      .domain = "",
                                      .since = 23,
                                      QN_PORTS(in, rms_in),
                                      QN_PORTS(out, rms_out),
                                      QN_ATTRS(layer_specs, qn_norm_attrs),
                                      .quant = QN_QUANT_FLOAT,
                                      .infer = rms_infer,
                                      .eval = rms_eval,
                                      .brief = "x / sqrt(mean(x^2) + epsilon) * scale"};
