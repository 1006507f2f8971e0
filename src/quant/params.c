/* Ranges, scales and zero points of values, from statistics. */
#include "quant/params.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "quant/existing_encodings.h"
#include "quant/input_types.h"
#include "quant/softmax_masks.h"

/* ---- From ranges ----------------------------------------------------------------------------- */

float qn_params_positive(double scale)
{
    return scale >= (double)FLT_MIN ? (float)scale : FLT_MIN;
}

void qn_params_from_range(qn_qparams *p, float least, float most, bool symmetric)
{
    const double lo = QN_MIN((double)least, 0), hi = QN_MAX((double)most, 0);
    if (symmetric) {
        const double end = QN_MAX(-lo, hi), steps = (double)(p->qmax - p->qmin + 1) / 2 - 1;
        p->scale = end > 0 ? qn_params_positive(end / steps) : 1;
        p->zero = (p->qmin + p->qmax + 1) / 2;
        return;
    }
    if (hi == lo) {
        p->zero = p->qmin > 0 ? p->qmin : 0;
        return;
    }
    const double steps = (double)(p->qmax - p->qmin);
    p->scale = qn_params_positive((hi - lo) / steps);
    const double zero = nearbyint((double)p->qmin - lo / (double)p->scale);
    p->zero = (int64_t)QN_MIN(QN_MAX(zero, (double)p->qmin), (double)p->qmax);
}

/* rint(x) to even by additions, which round so: for what such a sum can hold, and else by the
 * library. */
static inline double rounded(double x)
{
    const double shift = 0x1.8p52;
    return fabs(x) < 0x1p51 ? (x + shift) - shift : nearbyint(x);
}

int64_t qn_params_quantize(const qn_qparams *p, int64_t scale, float x)
{
    const double y =
        rounded((double)(x / qn_qparams_scale_at(p, scale))) + (double)qn_qparams_zero_at(p, scale);
    if (!(y > (double)p->qmin))
        return p->qmin;
    return y < (double)p->qmax ? (int64_t)y : p->qmax;
}

/* ---- Constants ------------------------------------------------------------------------------- */

qn_status qn_params_of_constant(qn_qparams **out, const qn_quantizer *q, const qn_tensor *tensor,
                                const qn_quant_node *n)
{
    const qn_profile *profile = q->settings.profile;
    const int64_t count = qn_tensor_count(tensor);
    float least = 0, most = 0;
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena, qn_profile_activation(profile, n->bits),
                             1));
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)qn_tensor_f64(tensor, i);
        least = QN_MIN(least, x);
        most = QN_MAX(most, x);
    }
    least = n->mask_min < 0 ? QN_MAX(least, n->mask_min) : least;
    qn_params_from_range(*out, least, most, profile->symmetric);
    return QN_OK;
}

/* ---- Activations ----------------------------------------------------------------------------- */

static qn_status fine_range(qn_range *range, const qn_quantizer *q, const qn_stats_entry *entry,
                            const qn_range_options *wanted)
{
    const qn_width *width = qn_width_of_bits(wanted->bits);
    const qn_method *method = NULL;
    QN_TRY(qn_method_find(&method, q->ctx, "min_max"));
    QN_TRY(qn_stats_range(range, q->ctx, entry, method, wanted));
    range->min *= width->headroom;
    range->max *= width->headroom;
    return QN_OK;
}

/* The method of the first node that reads the value, also behind nodes that only move numbers. */
static const qn_method *method_behind(const qn_quantizer *q, const qn_value *value)
{
    const qn_method *method = NULL;
    for (const qn_value *next; value && !method; value = next) {
        next = NULL;
        for (size_t u = 0; !method && u < value->n_users; u++) {
            const qn_quant_node *user = qn_quant_node_of(q, value->users[u]);
            method = user->method;
            if (!next && user->integer && user->quant_class == QN_CLASS_PASS_THROUGH)
                next = user->node->out[0];
        }
    }
    return method;
}

static const qn_method *min_max_method(const qn_quantizer *q, const qn_value *value)
{
    for (size_t i = 0; i < q->settings.n_min_max; i++) {
        if (strcmp(q->settings.min_max[i], value->name) == 0)
            return qn_methods[0]; /* min_max */
    }
    return NULL;
}

/* Some node computes with its integers. */
static bool is_read(const qn_quantizer *q, const qn_value *value)
{
    for (size_t u = 0; u < value->n_users; u++) {
        const qn_quant_node *user = qn_quant_node_of(q, value->users[u]);
        for (int32_t i = 0; i < user->node->n_in; i++) {
            if (user->node->in[i] == value && qn_quant_is_data(user, i))
                return true;
        }
    }
    return false;
}

static void find_ends(qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_values && q->settings.profile->fixed_point; i++) {
        const qn_value *value = q->values[i].value;
        if (q->values[i].integer && (value->is_output || !is_read(q, value)))
            qn_quant_root(q, &q->values[i])->ends = true;
    }
}

/* The method of the node that writes the value, or else of one that reads it. */
static const qn_method *method_of(const qn_quantizer *q, const qn_quant_value *root,
                                  const qn_param_options *options)
{
    const qn_value *value = q->values[root->source].value;
    const qn_method *method = min_max_method(q, value);
    if (method)
        return method;
    if (q->settings.mix && value->producer)
        method = qn_quant_node_of(q, value->producer)->method;
    if (q->settings.mix && !method)
        method = method_behind(q, value);
    if (root->ends && !method)
        method = qn_methods[0]; /* the best scores are the largest numbers: nothing is cut off */
    return method ? method : options->method;
}

static bool meets_norm(const qn_value *value)
{
    bool found = value->producer && value->producer->op == &qn_op_LayerNormalization;
    for (size_t u = 0; u < value->n_users && !found; u++)
        found = value->users[u]->op == &qn_op_LayerNormalization;
    return found;
}

/* One of those that share the range is read or written by a LayerNormalization. */
static void limit_range(qn_range *range, const qn_quantizer *q, const qn_quant_value *root,
                        double most)
{
    bool found = false;
    for (size_t i = 0; i < q->n_values && most > 0 && !found; i++)
        found = qn_quant_root(q, &q->values[i]) == root && meets_norm(q->values[i].value);
    if (!found)
        return;
    range->min = fmaxf(range->min, (float)-most);
    range->max = fminf(range->max, (float)most);
}

static qn_status choose_range(qn_range *range, const qn_quantizer *q, qn_quant_value *root,
                              const qn_stats_entry *entry, const qn_param_options *options)
{
    qn_range_options wanted = options->range;
    wanted.bits = root->bits;
    wanted.symmetric = q->settings.profile->symmetric;
    root->range_by_readers = root->masked;
    if (root->masked) {
        *range = qn_softmax_mask_range(root, entry, root->bits);
        return QN_OK;
    }
    root->range_by_readers = options->function_ranges && qn_range_is_before_function(q, root);
    if (root->range_by_readers)
        return qn_range_before_function(range, q, root, entry);
    if (qn_width_is_fine(qn_width_of_bits(root->bits)) && !options->plain)
        return fine_range(range, q, entry, &wanted);
    const qn_method *method = method_of(q, root, options);
    return qn_stats_range(range, q->ctx, entry, method, &wanted);
}

/* The range of values that were never observed, since only the target's spelling of a function has
 * them: it follows from the function. */
static bool known_range(qn_range *range, const qn_value *value)
{
    if (!value->producer || value->producer->op != &qn_op_Sigmoid)
        return false;
    *range = (qn_range){.min = 0, .max = 1};
    return true;
}

static const qn_stats_entry *entry_of(const qn_quantizer *q, const qn_quant_value *root,
                                      const qn_stats *stats)
{
    return qn_stats_find(stats, q->values[root->source].value->name);
}

static qn_status choose_ranges(qn_quantizer *q, const qn_stats *stats,
                               const qn_param_options *options)
{
    for (size_t i = 0; i < q->n_values; i++) {
        qn_quant_value *root = qn_quant_root(q, &q->values[i]);
        const qn_stats_entry *entry = entry_of(q, root, stats);
        if (!q->values[i].integer || root->ranged)
            continue;
        root->ranged = true;
        if (root->existing)
            root->range = qn_existing_range(root->existing);
        else if (entry)
            QN_TRY(choose_range(&root->range, q, root, entry, options));
        else if (!known_range(&root->range, q->values[root->source].value))
            qn_log(q->ctx, QN_LOG_WARN, "tensor '%s' was never seen with an element",
                   q->values[root->source].value->name);
        limit_range(&root->range, q, root, options->norm_limit);
    }
    return QN_OK;
}

/* Where channels have factors the range is the least that still has of every channel what it had
 * before. */
static qn_range smoothed_range(const qn_quant_value *root, const qn_quant_value *source,
                               const qn_stats_entry *entry)
{
    const float *by = source->factor;
    if (!by || !entry || entry->channels < 1)
        return root->range;
    const float more = qn_width_of_bits(root->bits)->headroom;
    qn_range range = {0, 0};
    for (int64_t c = 0; c < entry->channels; c++) {
        range.min = fminf(range.min, fmaxf(more * entry->channel_min[c], root->range.min) / by[c]);
        range.max = fmaxf(range.max, fminf(more * entry->channel_max[c], root->range.max) / by[c]);
    }
    return range;
}

/* The method of the first node that reads the 16-bit value in 8 bits. */
static const qn_method *int8_method(const qn_quantizer *q, const qn_quant_value *root,
                                    const qn_param_options *options)
{
    const qn_method *method = NULL;
    for (size_t n = 0; n < q->n_nodes && q->settings.mix && !method; n++) {
        const qn_quant_node *node = &q->nodes[n];
        for (int32_t i = 0; i < node->node->n_in && !method; i++) {
            if (qn_quant_reads_int8(q, node, i) &&
                qn_quant_root(q, qn_quant_value_of(q, node->node->in[i])) == root)
                method = node->method;
        }
    }
    return method ? method : options->method;
}

/* 8 bits have the range that they would have had alone. */
static qn_status compute_int8_params(qn_value_encoding *out, const qn_quantizer *q,
                                     const qn_quant_value *root, const qn_stats_entry *entry,
                                     const qn_param_options *options)
{
    const qn_profile *profile = q->settings.profile;
    qn_range_options wanted = options->range;
    qn_range range = out->range;
    wanted.bits = QN_WIDTH_STANDARD;
    wanted.symmetric = profile->symmetric;
    if (entry && root->masked)
        range = qn_softmax_mask_range(root, entry, wanted.bits);
    else if (entry)
        QN_TRY(qn_stats_range(&range, q->ctx, entry, int8_method(q, root, options), &wanted));
    if (root->mask_min < 0)
        range.min = fmaxf(range.min, root->mask_min);
    limit_range(&range, q, root, options->norm_limit);
    QN_TRY(qn_qparams_create(&out->int8_params, q->ctx, q->graph->arena,
                             qn_profile_activation(profile, QN_WIDTH_STANDARD), 1));
    qn_params_from_range(out->int8_params, range.min, range.max, profile->symmetric);
    return QN_OK;
}

static void compute_input(qn_value_encoding *out, const qn_quant_value *root,
                          const qn_stats_entry *entry, bool symmetric)
{
    bool raw;
    qn_input_types_params(out->params, &raw, root, entry, symmetric);
    if (!raw)
        return;
    out->method = "raw";
    out->range = (qn_range){(float)out->params->qmin, (float)out->params->qmax};
}

static qn_status compute_value(qn_quantizer *q, qn_quant_value *root, const qn_stats *stats,
                               const qn_param_options *options)
{
    const qn_profile *profile = q->settings.profile;
    qn_value_encoding *out = &q->encodings.values[q->encodings.n_values++];
    const qn_stats_entry *entry = entry_of(q, root, stats);
    const qn_value *value = q->values[root->source].value;
    qn_range known;
    *out =
        (qn_value_encoding){.name = root->value->name, .method = method_of(q, root, options)->name};
    if (root->range_by_readers || (!entry && known_range(&known, value)))
        out->method = "function";
    if (root->masked || root->mask_min < 0)
        out->method = QN_SOFTMAX_MASK_METHOD;
    if (root->existing)
        out->method = "given";
    out->range = smoothed_range(root, &q->values[root->source], entry);
    QN_TRY(qn_qparams_create(&out->params, q->ctx, q->graph->arena, qn_quant_dtype(q, root), 1));
    if (root->existing)
        qn_existing_apply(out->params, root->existing, profile->symmetric);
    else if (root->type != QN_UNDEFINED)
        compute_input(out, root, entry, profile->symmetric);
    else
        qn_params_from_range(out->params, out->range.min, out->range.max, profile->symmetric);
    root->encoding = out;
    return root->read_as_int8 ? compute_int8_params(out, q, root, entry, options) : QN_OK;
}

static qn_status compute_values(qn_quantizer *q, const qn_stats *stats,
                                const qn_param_options *options)
{
    q->encodings.values = qn_arena_array(&q->arena, q->n_values + 1, sizeof *q->encodings.values);
    QN_TRY_ALLOC(q->ctx, q->encodings.values);
    for (size_t i = 0; i < q->n_values; i++) {
        qn_quant_value *root = qn_quant_root(q, &q->values[i]);
        if (q->values[i].integer && !root->encoding)
            QN_TRY(compute_value(q, root, stats, options));
    }
    return QN_OK;
}

void qn_quant_find_int8_readers(qn_quantizer *q)
{
    for (size_t n = 0; n < q->n_nodes; n++) {
        const qn_quant_node *node = &q->nodes[n];
        for (int32_t i = 0; i < node->node->n_in; i++) {
            if (qn_quant_reads_int8(q, node, i))
                qn_quant_root(q, qn_quant_value_of(q, node->node->in[i]))->read_as_int8 = true;
        }
    }
}

const qn_qparams *qn_params_of_input(const qn_quantizer *q, const qn_quant_node *node)
{
    const qn_quant_value *root = qn_quant_root(q, qn_quant_value_of(q, node->node->in[0]));
    if (!root->encoding)
        return NULL;
    return qn_quant_reads_int8(q, node, 0) ? root->encoding->int8_params : root->encoding->params;
}

double qn_input_channels_mean(const qn_input_channels *channels, int64_t channel)
{
    const double mean = qn_entry_channel_mean(channels->entry, channel);
    return channels->factor ? mean / (double)channels->factor[channel] : mean;
}

double qn_input_channels_power(const qn_input_channels *channels, int64_t channel)
{
    const double by = channels->factor ? (double)channels->factor[channel] : 1;
    return qn_entry_channel_power(channels->entry, channel) / (by * by);
}

static qn_status compute_layers(qn_quantizer *q, const qn_stats *stats,
                                const qn_param_options *options)
{
    q->encodings.nodes = qn_arena_array(&q->arena, q->n_nodes + 1, sizeof *q->encodings.nodes);
    QN_TRY_ALLOC(q->ctx, q->encodings.nodes);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        qn_weighted_node layer;
        if (!qn_quant_weighted_node(&layer, n))
            continue;
        qn_layer_encoding *out = &q->encodings.nodes[q->encodings.n_nodes++];
        const qn_value *x = n->node->in[0];
        const qn_input_channels input = {qn_stats_find(stats, x->name),
                                         qn_quant_value_of(q, x)->factor};
        QN_TRY(qn_check_cancel(q->ctx));
        out->name = n->node->out[0]->name;
        QN_TRY(qn_params_of_weights(&out->weights, q, &layer, options));
        QN_TRY(qn_bias_settle(out, q, &layer, &input, qn_params_of_input(q, n), options));
        qn_progress(q->ctx, "weights", (int64_t)i, (int64_t)q->n_nodes);
    }
    return QN_OK;
}

qn_status qn_encodings_compute(qn_quantizer *q, const qn_stats *stats,
                               const qn_param_options *options)
{
    qn_param_options own = *options;
    find_ends(q);
    qn_quant_find_int8_readers(q);
    q->n_existing = qn_existing_find(q);
    /* Trained together: what was rounded so before is not moved now. */
    if (q->n_existing)
        own.equalize = own.smooth_channels = own.correct_bias = false;
    QN_TRY(qn_softmax_masks_measure(q, stats));
    QN_TRY(choose_ranges(q, stats, &own));
    QN_TRY(qn_softmax_masks_cut(q, stats));
    QN_TRY(qn_equalize(q, stats, &own));
    QN_TRY(compute_values(q, stats, &own));
    return compute_layers(q, stats, &own);
}
