/* The rules of `quench lint`: what keeps a quantized model from running in integers on a target. */
#include "quant/lint.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/kinds.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"
#include "pass/unary_function.h"

enum { BEHIND_INTEGERS = 1, BEFORE_INTEGERS = 2, BETWEEN = 3 };

typedef struct lint {
    const qn_profile *profile;
    const qn_lint_sink *sink;
    const qn_lint_rule *rule;
    const qn_node *node;
    /* What is known of the node: */
    qn_quant_class quant_class;
    unsigned can;
    int32_t n_data;
} lint;

struct qn_lint_rule {
    const char *name, *brief;
    qn_status (*check)(lint *l);
};

static void report(const lint *l, const char *format, ...) QN_PRINTF(2, 3);
static void report(const lint *l, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    l->sink->report(l->sink->user, &(qn_lint_finding){l->rule->name, l->node, why});
}

/* ---- Looking around a node ------------------------------------------------------------------- */

static bool is_pair_node(const qn_node *node)
{
    return qn_is_quantize(node) || qn_is_dequantize(node);
}

static bool is_dequantized(const qn_value *value)
{
    return value && qn_is_dequantize(value->producer);
}

static bool is_product(const lint *l)
{
    return l->quant_class == QN_CLASS_MAC;
}

/* Data that are no constants. */
static bool is_activation(const lint *l, int32_t i)
{
    const qn_value *value = i < l->node->n_in ? l->node->in[i] : NULL;
    if (i >= l->n_data || !value || value->data || value->type.dtype != QN_FLOAT32)
        return false;
    return !is_dequantized(value) || !value->producer->in[0]->data;
}

static bool is_float_constant(const qn_value *value)
{
    return value && value->data && value->data->dtype == QN_FLOAT32;
}

static int32_t count_integers(const lint *l)
{
    int32_t count = 0;
    for (int32_t i = 0; i < l->n_data && i < l->node->n_in; i++)
        count += is_dequantized(l->node->in[i]);
    return count;
}

/* NULL: a node may leave it out. */
static qn_value *result_of(const qn_node *node)
{
    return node->n_out ? node->out[0] : NULL;
}

/* The node whose result is rounded for this one: behind it stand only its bias and its limit. */
static const qn_node *last_of(const lint *l, const qn_node **limit)
{
    const qn_node *last = l->node;
    *limit = NULL;
    for (;;) {
        const qn_value *out = result_of(last);
        const qn_node *user = out ? qn_value_only_user(out) : NULL;
        const bool is_limit = user && qn_op_is_limit(user->op);
        if (!user || (!is_limit && !qn_rule_is_bias(user)))
            return last;
        if (is_limit)
            *limit = user;
        last = user;
    }
}

/* The Q that reads what the node and its limit give, or NULL. */
static const qn_node *rounded_by(const lint *l)
{
    const qn_node *limit;
    const qn_value *out = result_of(last_of(l, &limit));
    for (size_t u = 0; out && u < out->n_users; u++) {
        if (qn_is_quantize(out->users[u]))
            return out->users[u];
    }
    return NULL;
}

static bool is_between(const lint *l)
{
    return (l->node->mark & BETWEEN) == BETWEEN;
}

/* ---- The file -------------------------------------------------------------------------------- */

static qn_status check_opset(lint *l)
{
    const qn_model *model = l->node->graph->model;
    if (l->node != l->node->graph->first)
        return QN_OK;
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (*model->opsets[i].domain == 0 && model->opsets[i].version < l->profile->opset)
            report(l, "the file has opset %lld, %s wants %d or later for scales per channel",
                   (long long)model->opsets[i].version, l->profile->name, l->profile->opset);
    }
    return QN_OK;
}

static qn_status check_operators(lint *l)
{
    if (l->node->op->quant == QN_QUANT_ALREADY && !is_pair_node(l->node) && !l->profile->qoperators)
        report(l, "%s reads QuantizeLinear and DequantizeLinear, not operators of integers",
               l->profile->name);
    return QN_OK;
}

static qn_status check_dynamic(lint *l)
{
    const qn_node *node = l->node;
    if (node->op == &qn_op_DynamicQuantizeLinear)
        report(l, "scales are computed while running");
    else if (is_pair_node(node) &&
             (!node->in[1]->data || (node->n_in > 2 && node->in[2] && !node->in[2]->data)))
        report(l, "its scale or zero point is computed while running");
    return QN_OK;
}

/* ---- Q and D --------------------------------------------------------------------------------- */

/* What a Q of activations, or a D of constants, makes of its integers. */
static qn_status integers_of(bool *found, qn_quantized *q, const qn_node *node)
{
    *found = false;
    if (qn_is_dequantize(node))
        return qn_qdq_input(found, q, node->out[0]);
    const qn_value *out = qn_is_quantize(node) ? node->out[0] : NULL;
    for (size_t u = 0; out && u < out->n_users && !*found; u++)
        QN_TRY(qn_qdq_input(found, q, result_of(out->users[u])));
    return QN_OK;
}

static qn_status check_width(lint *l)
{
    const qn_value *integers = !is_pair_node(l->node)         ? NULL
                               : qn_is_quantize(l->node)      ? l->node->out[0]
                               : l->node->in[0]->data != NULL ? l->node->in[0]
                                                              : NULL;
    if (!integers || integers->type.dtype == QN_INT32)
        return QN_OK;
    const int bits = qn_dtype_get(integers->type.dtype)->bits;
    if (!qn_profile_computes(l->profile, bits))
        report(l, "'%s' has %d bits (%s); %s computes with 8 as integers", integers->name, bits,
               qn_dtype_get(integers->type.dtype)->name, l->profile->name);
    return QN_OK;
}

static qn_status check_zero(lint *l)
{
    qn_quantized q;
    bool found = false;
    QN_TRY(integers_of(&found, &q, l->node));
    if (!found || !l->profile->symmetric || (!qn_is_quantize(l->node) && !q.value->data))
        return QN_OK;
    const qn_dtype dtype = q.value->type.dtype;
    if (dtype == QN_UINT8 || dtype == QN_UINT16)
        report(l, "'%s' is unsigned, %s wants signed integers", q.value->name, l->profile->name);
    else if (q.params.zero != 0)
        report(l, "'%s' has zero point %lld, %s wants 0", q.value->name, (long long)q.params.zero,
               l->profile->name);
    return QN_OK;
}

static qn_status check_activation_axis(lint *l)
{
    qn_quantized q;
    bool found = false;
    QN_TRY(integers_of(&found, &q, l->node));
    if (found && qn_is_quantize(l->node) && !l->node->in[0]->data && q.params.axis >= 0)
        report(l, "'%s' is an activation with scales per channel", q.value->name);
    return QN_OK;
}

/* ---- Products -------------------------------------------------------------------------------- */

static int64_t filter_axis(const qn_node *node, int32_t rank)
{
    if (node->op == &qn_op_Gemm)
        return ((const qn_gemm_attrs *)node->attrs)->transB ? 0 : 1;
    return node->op == &qn_op_MatMul ? rank - 1 : node->op == &qn_op_ConvTranspose;
}

static qn_status check_weights(lint *l)
{
    const qn_node *node = l->node;
    qn_quantized w;
    bool found = false;
    if (!is_product(l) || !is_dequantized(node->in[0]))
        return QN_OK;
    if (node->in[1]->data) {
        report(l, "its weights '%s' are float", node->in[1]->name);
        return QN_OK;
    }
    QN_TRY(qn_qdq_input(&found, &w, node->in[1]));
    if (!found || w.params.axis < 0)
        return QN_OK;
    const int64_t axis = filter_axis(node, w.value->type.rank);
    if (w.params.axis != axis)
        report(l, "scales of its weights lie along axis %lld, the filters along %lld",
               (long long)w.params.axis, (long long)axis);
    else if (!l->profile->per_channel)
        report(l, "its weights have scales per channel, %s wants one scale", l->profile->name);
    else if (node->op == &qn_op_ConvTranspose && !l->profile->per_channel_transposed)
        report(l, "%s wants one scale for the weights of ConvTranspose", l->profile->name);
    return QN_OK;
}

typedef struct product {
    qn_quantized x, w;
} product;

static void check_integer_bias(const lint *l, const product *p, const qn_quantized *b)
{
    const int64_t count = qn_tensor_count(b->scale->data);
    if (!l->profile->bias_integer) {
        if (l->profile->symmetric)
            report(l, "its bias is int32, %s wants it float", l->profile->name);
        return;
    }
    if (!qn_quantized_is_byte(&p->x) || !qn_quantized_is_byte(&p->w))
        return;
    for (int64_t k = 0; k < count; k++) {
        const double unit = (double)p->x.params.scale * (double)qn_quantized_scale(&p->w, k);
        const double scale = (double)qn_quantized_scale(b, k);
        if (scale < unit * (1 - 1e-4) || scale > unit * (1 + 1e-4)) {
            report(l, "scale %lld of its bias is %.7g, that of input times weights is %.7g",
                   (long long)k, scale, unit);
            return;
        }
    }
}

/* It would be made int32 while loading. */
static void check_float_bias(const lint *l, const product *p, const qn_tensor *bias)
{
    if (l->profile->bias_integer)
        report(l, "its bias is float, %s wants int32 in units of input times weights",
               l->profile->name);
    for (int64_t k = 0; k < qn_tensor_count(bias) && l->profile->bias_integer; k++) {
        const double unit = (double)p->x.params.scale * (double)qn_quantized_scale(&p->w, k);
        const double units = qn_tensor_f64(bias, k) / unit;
        if (!(fabs(units) <= INT32_MAX)) {
            report(l, "bias %lld is %.3g units of input times weights and does not fit into int32",
                   (long long)k, units);
            return;
        }
    }
}

static qn_status check_bias(lint *l)
{
    const qn_node *node = l->node;
    const qn_value *bias =
        is_product(l) && node->op != &qn_op_MatMul && node->n_in > 2 ? node->in[2] : NULL;
    product p;
    qn_quantized b;
    bool found = false;
    if (!bias)
        return QN_OK;
    QN_TRY(qn_qdq_input(&found, &p.x, node->in[0]));
    if (found)
        QN_TRY(qn_qdq_input(&found, &p.w, node->in[1]));
    if (!found)
        return QN_OK;
    QN_TRY(qn_qdq_input(&found, &b, bias));
    if (found)
        check_integer_bias(l, &p, &b);
    else if (bias->data)
        check_float_bias(l, &p, bias->data);
    return QN_OK;
}

/* ---- What feeds a node, and what reads it ---------------------------------------------------- */

static bool is_able(const lint *l)
{
    return l->quant_class != QN_CLASS_FLOAT && (l->can & ~l->profile->can) == 0;
}

static bool is_function(const lint *l, const qn_node *node)
{
    return (l->profile->can & QN_CAN_TABLE) && qn_unary_function_slot(node) >= 0;
}

/* Nothing need be rounded between functions of one number, which are one table, nor between a
 * product and the function that the target rounds behind. */
static bool is_inside(const lint *l, const qn_value *value)
{
    unsigned can;
    int32_t n_data;
    qn_node *user = qn_value_only_user(value);
    const qn_node *before = value->producer;
    if (!user || !before || !is_function(l, user))
        return false;
    if (is_function(l, before))
        return true;
    return l->profile->rounds_after_function && qn_qdq_fuses_activation(user) &&
           (qn_rule_is_bias(before) || qn_rule_quant_class(&can, &n_data, before) == QN_CLASS_MAC);
}

/* A node that could compute with integers lacks some. */
static qn_status check_inputs(lint *l)
{
    const bool wanted = is_product(l) ? is_able(l)
                                      : is_able(l) && is_between(l) &&
                                            (l->quant_class == QN_CLASS_ELEMENTWISE ||
                                             l->quant_class == QN_CLASS_CONCAT);
    for (int32_t i = 0; i < l->n_data && wanted; i++) {
        const qn_value *in = i < l->node->n_in ? l->node->in[i] : NULL;
        if (is_activation(l, i) && !is_dequantized(in) && !is_inside(l, in))
            report(
                l,
                "its input '%s' is float: a pair of QuantizeLinear and DequantizeLinear is missing",
                in->name);
        else if (!is_product(l) && !is_function(l, l->node) && is_float_constant(in) &&
                 count_integers(l))
            report(l, "its constant '%s' is float", in->name);
    }
    return QN_OK;
}

static qn_status check_result(lint *l)
{
    const bool is_plain = l->node->op == &qn_op_Gemm || l->node->op == &qn_op_MatMul;
    const bool wanted = is_product(l) ? !l->profile->float_result && !is_plain
                                      : l->quant_class == QN_CLASS_ELEMENTWISE && is_between(l);
    if (wanted && is_able(l) && count_integers(l) && !rounded_by(l) &&
        !is_inside(l, l->node->out[0]))
        report(l, "no QuantizeLinear reads its result '%s'", l->node->out[0]->name);
    return QN_OK;
}

/* An operator without integers between those that have them. */
static qn_status check_kernel(lint *l)
{
    const qn_quant_rule rule = l->node->op->quant;
    if (is_between(l) && !is_able(l) && rule != QN_QUANT_SHAPE && rule != QN_QUANT_ALREADY)
        report(l, "%s computes %s in float", l->profile->name, l->node->op->name);
    return QN_OK;
}

static qn_status check_limit(lint *l)
{
    const qn_node *limit;
    const qn_node *quantize = rounded_by(l);
    qn_quantized q;
    double limits[2];
    bool found = false;
    (void)last_of(l, &limit);
    if (l->profile->any_clip || !is_product(l) || !limit || !quantize ||
        !qn_match_limits(limits, limit))
        return QN_OK;
    QN_TRY(integers_of(&found, &q, quantize));
    if (!found)
        return QN_OK;
    const qn_limits range = qn_limits_of(q.value->type.dtype);
    if (qn_quantize((float)limits[0], &q.params, range) > range.min ||
        qn_quantize((float)limits[1], &q.params, range) < range.max)
        report(
            l,
            "limits of '%s' behind it are not those of the integers, so that %s computes both in "
            "float",
            limit->name, l->profile->name);
    return QN_OK;
}

/* ---- Scales that must be alike --------------------------------------------------------------- */

static qn_status check_alike(lint *l)
{
    const qn_node *quantize = rounded_by(l);
    const bool is_concat = l->quant_class == QN_CLASS_CONCAT && l->profile->unify_concat;
    qn_quantized x, y;
    bool found = false;
    if ((l->quant_class != QN_CLASS_PASS_THROUGH && !is_concat) || !quantize || !is_able(l))
        return QN_OK;
    QN_TRY(integers_of(&found, &y, quantize));
    for (int32_t i = 0; i < l->n_data && i < l->node->n_in && found; i++) {
        bool is_integer = false;
        QN_TRY(qn_qdq_input(&is_integer, &x, l->node->in[i]));
        if (is_integer && !qn_quantized_alike(&x, &y)) {
            report(l, "scale or zero point of '%s' differ from its result's", l->node->in[i]->name);
            break;
        }
    }
    return QN_OK;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static const qn_lint_rule rules[] = {
    {"opset", "the file's opset is older than the target wants", check_opset},
    {"operators", "operators of integers where the target reads Q and D", check_operators},
    {"dynamic", "scales that are computed while running", check_dynamic},
    {"width", "integers of a width that the target does not compute with", check_width},
    {"zero-point", "zero points or unsigned integers where the target is symmetric", check_zero},
    {"activation-axis", "activations with scales per channel", check_activation_axis},
    {"weights", "weights in float, or scales along an axis that is not allowed", check_weights},
    {"bias", "a bias in another form than the target wants, or too large for it", check_bias},
    {"input", "an input without Q and D", check_inputs},
    {"result", "a result without Q", check_result},
    {"kernel", "an operator that the target computes in float", check_kernel},
    {"limit", "Relu or Clip that the integers' limits do not imply", check_limit},
    {"scales", "scales that must be alike: of Concat, of operators that move numbers", check_alike},
};

const char *qn_lint_rule_name(size_t i, const char **brief)
{
    if (i >= QN_COUNT_OF(rules))
        return NULL;
    *brief = rules[i].brief;
    return rules[i].name;
}

static bool makes_integers(const qn_node *node)
{
    return node->op->quant == QN_QUANT_ALREADY;
}

/* Which nodes have integers before and behind them. */
static void mark_between(qn_graph *graph)
{
    for (qn_node *node = graph->first; node; node = node->next) {
        node->mark =
            makes_integers(node) && node->in[0] && !node->in[0]->data ? BEHIND_INTEGERS : 0;
        for (int32_t i = 0; i < node->n_in; i++) {
            const qn_node *before = node->in[i] ? node->in[i]->producer : NULL;
            node->mark |= before ? before->mark & BEHIND_INTEGERS : 0;
        }
    }
    for (qn_node *node = graph->last; node; node = node->prev) {
        if (makes_integers(node) && !qn_is_dequantize(node))
            node->mark |= BEFORE_INTEGERS;
        for (int32_t i = 0; i < node->n_in; i++) {
            if (node->in[i] && node->in[i]->producer)
                node->in[i]->producer->mark |= node->mark & BEFORE_INTEGERS;
        }
    }
}

qn_status qn_lint(qn_model *model, const qn_profile *profile, const qn_lint_sink *sink)
{
    lint l = {.profile = profile, .sink = sink};
    mark_between(model->graph);
    for (const qn_node *node = model->graph->first; node; node = node->next) {
        if (!result_of(node))
            continue;
        l.node = node;
        l.quant_class =
            qn_rule_is_bias(node) ? QN_CLASS_BIAS : qn_rule_quant_class(&l.can, &l.n_data, node);
        for (size_t r = 0; r < QN_COUNT_OF(rules); r++) {
            l.rule = &rules[r];
            QN_TRY(rules[r].check(&l));
        }
    }
    return QN_OK;
}
