/* Which nodes compute with integers, and which values are integers then. */
#include "ops/kinds.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"
#include "pass/unary_function.h"
#include "quant/input_types.h"
#include "quant/mix.h"
#include "quant/pattern.h"
#include "quant/quant_classes.h"
#include "quant/softmax_masks.h"

static bool is_float32(const qn_value *value)
{
    return value && value->type.kind == QN_TYPE_TENSOR && value->type.dtype == QN_FLOAT32;
}

/* ---- Constants behind products --------------------------------------------------------------- */

/* A constant of the float model, or of its integers, which have the same shape. */
static const qn_tensor *constant_of(const qn_value *value)
{
    if (!value || value->data || !qn_is_dequantize(value->producer))
        return value ? value->data : NULL;
    return value->producer->in[0]->data;
}

bool qn_rule_is_bias(const qn_node *node)
{
    if (node->op != &qn_op_Add)
        return false;
    for (int side = 0; side < 2; side++) {
        const qn_node *product = qn_match_only(node->in[side], &qn_op_MatMul);
        const qn_tensor *row = constant_of(node->in[1 - side]);
        const qn_tensor *w = product ? constant_of(product->in[1]) : NULL;
        if (!row || !w || w->rank != 2 || row->rank < 1 || !qn_match_fits(row, node->in[side]))
            continue;
        const int64_t columns = w->dims[1];
        if (qn_tensor_count(row) == columns && row->dims[row->rank - 1] == columns)
            return true;
    }
    return false;
}

/* ---- First guess: what every node could be --------------------------------------------------- */

static bool has_float32_data(const qn_quant_node *n)
{
    bool moving_data = false;
    for (int32_t i = 0; i < n->n_data && i < n->node->n_in; i++) {
        if (!is_float32(n->node->in[i]))
            return false;
        moving_data = moving_data || !n->node->in[i]->data;
    }
    return moving_data && n->node->n_out > 0 && is_float32(n->node->out[0]);
}

static const char *refuse(const qn_quantizer *q, const qn_quant_node *n,
                          const qn_quant_class_row *row)
{
    const unsigned can = q->settings.profile->can;
    if (row->can & ~can)
        return "the target has no integer form of it";
    if (n->quant_class == QN_CLASS_MAC && n->node->op == &qn_op_MatMul && !n->node->in[1]->data &&
        !(can & QN_CAN_PRODUCT))
        return "the target has no integer form of it";
    if (q->settings.profile->fixed_point && qn_quant_class_is_norm_part(n->node))
        return "its squares need twice the bits";
    const char *why = row->refuse ? row->refuse(n->node) : NULL;
    return why || n->quant_class != QN_CLASS_MAC ? why : qn_quant_class_refuse_constants(n->node);
}

static bool has_tables(const qn_quantizer *q)
{
    return (q->settings.profile->can & QN_CAN_TABLE) != 0;
}

/* The width of the scale that the file has for the value; 0: it has none, or of a width that the
 * target does not compute with. */
static int given_bits(const qn_quantizer *q, const qn_value *value)
{
    const qn_qparams *given = value ? q->values[value->number].existing : NULL;
    for (int i = 0; given && i < QN_WIDTHS; i++) {
        const int bits = qn_widths[i].bits;
        if (given->qmax - given->qmin < (int64_t)1 << bits)
            return qn_profile_computes(q->settings.profile, bits) ? bits : 0;
    }
    return 0;
}

/* A node keeps the width that it was trained with: that of what it writes, perhaps behind a limit,
 * else that of what it reads. */
static void keep_width(const qn_quantizer *q, qn_quant_node *n)
{
    const qn_value *result = n->node->out[0];
    const qn_node *limit = result ? qn_value_only_user(result) : NULL;
    int bits = given_bits(q, result);
    if (!bits && limit && qn_op_is_limit(limit->op))
        bits = given_bits(q, limit->out[0]);
    for (int32_t i = 0; !bits && i < n->n_data && i < n->node->n_in; i++)
        bits = given_bits(q, n->node->in[i]);
    if (!bits)
        return;
    const int weights = n->quant_class == QN_CLASS_MAC ? given_bits(q, n->node->in[1]) : 0;
    n->bits = bits;
    n->weight_bits = weights ? QN_MIN(weights, bits) : bits;
}

static void guess_node(qn_quantizer *q, qn_quant_node *n)
{
    const qn_quant_class_row *row = qn_quant_class_of(n->node);
    n->bits = n->weight_bits = q->settings.bits;
    if (!row)
        return;
    n->quant_class = row->quant_class;
    n->n_data = row->n_data ? row->n_data : n->node->n_in;
    if (!has_float32_data(n)) {
        n->quant_class = QN_CLASS_FLOAT;
        return;
    }
    if (!q->settings.bits_asked && !q->settings.mix)
        keep_width(q, n);
    n->is_function = row->can == QN_CAN_TABLE || row->can == QN_CAN_SIGMOID ||
                     (has_tables(q) && qn_unary_function_slot(n->node) >= 0);
    n->why = refuse(q, n, row);
    if (!n->why && qn_rule_is_bias(n->node)) {
        n->quant_class = QN_CLASS_BIAS;
        n->is_function = false;
        n->n_data = 0;
    }
    n->integer = !n->why;
}

/* ---- Small last products: the arithmetic of a detection head, which wants its precision ------ */

enum { SMALL_WEIGHTS = 64 };

/* A chip has no floats to leave it in. */
static void leave_small_tail(qn_quantizer *q)
{
    if (q->settings.profile->fixed_point)
        return;
    bool *before_mac = qn_arena_array(&q->arena, q->n_nodes + 1, sizeof *before_mac);
    for (size_t i = q->n_nodes; before_mac && i-- > 0;) {
        qn_quant_node *n = &q->nodes[i];
        for (int32_t o = 0; o < n->node->n_out; o++) {
            const qn_value *value = n->node->out[o];
            for (size_t u = 0; value && u < value->n_users; u++) {
                const uint32_t user = value->users[u]->number;
                before_mac[i] =
                    before_mac[i] || before_mac[user] || q->nodes[user].quant_class == QN_CLASS_MAC;
            }
        }
        const qn_tensor *w = n->quant_class == QN_CLASS_MAC ? n->node->in[1]->data : NULL;
        if (!before_mac[i] && w && qn_tensor_count(w) <= SMALL_WEIGHTS && n->integer) {
            n->integer = false;
            n->why = "a few weights at the end of the network";
        }
    }
}

/* ---- What stays: integers come from integers and go to integers ------------------------------ */

/* A chip computes in integers whatever it can: only what moves numbers between nodes in float, and
 * what is a part of such a node, stays with it. */
static bool is_of_chip(const qn_quantizer *q, const qn_quant_node *n)
{
    if (!q->settings.profile->fixed_point)
        return false;
    const qn_value *value = n->node->in[0];
    const bool cut = n->quant_class == QN_CLASS_CLIP && value && value->producer &&
                     q->nodes[value->producer->number].requested_float;
    return n->quant_class == QN_CLASS_ELEMENTWISE || (n->quant_class == QN_CLASS_CLIP && !cut);
}

static bool is_fed(const qn_quantizer *q, const qn_quant_node *n)
{
    const bool moves = n->quant_class == QN_CLASS_PASS_THROUGH || n->quant_class == QN_CLASS_CONCAT;
    const int32_t n_data = n->quant_class == QN_CLASS_BIAS ? n->node->n_in : n->n_data;
    for (int32_t i = 0; i < n_data; i++) {
        const qn_value *value = n->node->in[i];
        if (value && (qn_value_is_dequantized(value) || (moves && value->is_input) ||
                      (value->producer && q->nodes[value->producer->number].integer)))
            return true;
    }
    return false;
}

static bool reads_integer(const qn_quant_node *user, const qn_value *value)
{
    if (user->quant_class == QN_CLASS_BIAS)
        return user->integer;
    for (int32_t i = 0; i < user->n_data && user->integer; i++) {
        if (user->node->in[i] == value)
            return true;
    }
    return false;
}

static bool has_integer_user(const qn_quantizer *q, const qn_value *value)
{
    for (size_t u = 0; value && u < value->n_users; u++) {
        if (reads_integer(&q->nodes[value->users[u]->number], value) ||
            value->users[u]->op == &qn_op_QuantizeLinear)
            return true;
    }
    return false;
}

/* The product that the node limits or adds a bias to, or the node itself. */
static const qn_quant_node *product_of(const qn_quantizer *q, const qn_quant_node *n)
{
    for (int32_t i = 0; i < 2 && i < n->node->n_in; i++) {
        const qn_value *value = n->node->in[i];
        if ((n->quant_class != QN_CLASS_CLIP && n->quant_class != QN_CLASS_BIAS) || !value ||
            !value->producer || !qn_value_only_user(value))
            continue;
        const qn_quant_node *before = &q->nodes[value->producer->number];
        if (before->quant_class == QN_CLASS_MAC || before->quant_class == QN_CLASS_BIAS)
            return product_of(q, before);
    }
    return n;
}

/* Whether a node that ONNX Runtime breaks on reads the value, directly or behind a Relu. */
static bool is_read_by_breaker(const qn_value *value)
{
    const qn_node *limit = qn_value_only_user(value);
    if (limit && limit->out[0] && qn_op_is_limit(limit->op))
        value = limit->out[0];
    for (size_t u = 0; u < value->n_users; u++) {
        if (qn_quant_class_breaks_in_ort(value->users[u]))
            return true;
    }
    return false;
}

/* The target computes it with integers only where the result is rounded: convolutions, and products
 * with a bias; a chip rounds all that it computes. A mean over all pixels of such a result is
 * rounded too: to make floats of the pixels would cost more. */
static bool must_be_rounded(const qn_quantizer *q, const qn_quant_node *n)
{
    if (q->settings.profile->fixed_point)
        return n->integer && n->quant_class != QN_CLASS_RECURRENT; /* see is_state */
    const bool pools = n->node->op == &qn_op_GlobalAveragePool && n->integer;
    if (pools && n->node->in[0]->producer && !n->node->out[0]->is_output)
        return must_be_rounded(q, &q->nodes[n->node->in[0]->producer->number]);
    const qn_quant_node *product = product_of(q, n);
    if (q->settings.profile->float_result || product->quant_class != QN_CLASS_MAC ||
        !product->integer || !n->node->out[0] || n->node->out[0]->is_output ||
        is_read_by_breaker(n->node->out[0]))
        return false;
    return product->node->op == &qn_op_MatMul ? product != n : product->node->op != &qn_op_Gemm;
}

/* What a Concat at an output joins, boxes and scores, needs scales of its own, whoever else reads
 * it; a chip cannot join floats. */
static bool joins_output(const qn_quantizer *q, const qn_quant_node *n)
{
    return n->quant_class == QN_CLASS_CONCAT && n->node->out[0]->is_output &&
           !q->settings.profile->fixed_point && !q->settings.unify;
}

/* The cell of an LSTM, which is no integer of its state's kind. */
static bool is_cell(const qn_quantizer *q, const qn_value *value)
{
    enum { CELL = 2 };
    return q->nodes[value->producer->number].quant_class == QN_CLASS_RECURRENT &&
           value->producer_slot == CELL;
}

/* Integers that are moved and read by a subgraph then are moved as integers: a D before the node
 * that moves them, which ONNX Runtime (1.31) wants to carry on behind it, ends its process
 * there. */
static bool moves_into_subgraph(const qn_quantizer *q, const qn_quant_node *n)
{
    const qn_value *value = n->node->out[0], *from = n->n_data ? n->node->in[0] : NULL;
    bool captured = false;
    if (!from || !from->producer || !q->nodes[from->producer->number].integer || is_cell(q, from))
        return false;
    for (size_t u = 0; value && n->quant_class == QN_CLASS_PASS_THROUGH && u < value->n_users;
         u++) {
        const qn_node *user = value->users[u];
        for (int32_t i = user->n_explicit; i < user->n_in; i++)
            captured = captured || user->in[i] == value;
    }
    return captured;
}

static bool is_useful(const qn_quantizer *q, const qn_quant_node *n)
{
    if (joins_output(q, n))
        return false;
    if (must_be_rounded(q, n) || moves_into_subgraph(q, n))
        return true;
    for (int32_t o = 0; o < n->node->n_out; o++) {
        if (has_integer_user(q, n->node->out[o]))
            return true;
    }
    return false;
}

static void settle(qn_quantizer *q)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < q->n_nodes; i++) {
            qn_quant_node *n = &q->nodes[i];
            if (!n->integer || n->quant_class == QN_CLASS_MAC ||
                n->quant_class == QN_CLASS_RECURRENT || is_of_chip(q, n))
                continue;
            const bool fed = is_fed(q, n), useful = fed && is_useful(q, n);
            if (useful)
                continue;
            n->integer = false;
            n->why = fed ? "its result is wanted in float" : "its inputs are float";
            changed = true;
        }
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A product that only a function reads, one that the engine can round behind: twice as exact as
 * rounding both. */
static bool is_inside_function(const qn_quantizer *q, const qn_quant_node *from,
                               const qn_quant_node *to)
{
    const bool product = from->quant_class == QN_CLASS_MAC || from->quant_class == QN_CLASS_BIAS;
    const qn_node *next = qn_value_only_user(to->node->out[0]);
    if (next && q->nodes[next->number].is_function && q->nodes[next->number].integer)
        return false; /* several functions are a table */
    if (to->node->op != &qn_op_Swish && to->node->op != &qn_op_LeakyRelu)
        return false; /* a table is faster there, and with its range chosen behind it as exact */
    return q->settings.profile->rounds_after_function && product && from->integer && to->integer &&
           !qn_width_is_fine(qn_width_of_bits(from->bits)) &&
           !qn_width_is_fine(qn_width_of_bits(to->bits)) && qn_qdq_fuses_activation(to->node) &&
           from->node->op != &qn_op_ConvTranspose;
}

/* A Relu, Clip or bias belongs to the node before it, and functions of one number that follow each
 * other are one table, whatever the widths. */
static bool is_part(const qn_quantizer *q, const qn_quant_node *from, const qn_quant_node *to)
{
    if (to->quant_class == QN_CLASS_BIAS)
        return from->quant_class == QN_CLASS_MAC && from->integer;
    if (from->is_function && to->is_function && has_tables(q))
        return from->integer && to->integer;
    return to->quant_class == QN_CLASS_CLIP && to->integer && from->integer &&
           (from->quant_class == QN_CLASS_MAC || from->quant_class == QN_CLASS_BIAS ||
            from->quant_class == QN_CLASS_ELEMENTWISE);
}

/* What lies between a node and its part is never rounded. */
static bool is_inside(const qn_quantizer *q, const qn_value *value)
{
    const qn_node *user = qn_value_only_user(value);
    if (!user || !value->producer)
        return false;
    const qn_quant_node *from = &q->nodes[value->producer->number], *to = &q->nodes[user->number];
    return is_part(q, from, to) ||
           (to->is_function && to->quant_class != QN_CLASS_CLIP && is_inside_function(q, from, to));
}

qn_quant_node *qn_rule_before(const qn_quantizer *q, const qn_quant_node *n)
{
    for (int32_t i = 0; i < QN_MIN(n->node->n_in, 2); i++) {
        const qn_value *value = n->node->in[i];
        if (value && value->producer && qn_value_only_user(value) &&
            is_part(q, &q->nodes[value->producer->number], n))
            return &q->nodes[value->producer->number];
    }
    return NULL;
}

/* The states of a recurrent node, and the cell that a chip gives. */
static bool is_state(const qn_quantizer *q, const qn_quant_node *from, const qn_value *value)
{
    const bool ends = value->is_output && q->settings.profile->fixed_point;
    return from->quant_class == QN_CLASS_RECURRENT && (!is_cell(q, value) || ends);
}

/* Constants are quantized where they are read. */
static void settle_value(const qn_quantizer *q, qn_quant_value *v)
{
    const qn_value *value = v->value;
    if (value->data || !is_float32(value) || qn_value_is_dequantized(value) || is_inside(q, value))
        return;
    for (size_t u = 0; u < value->n_users && !v->integer; u++) {
        const qn_quant_node *user = &q->nodes[value->users[u]->number];
        v->integer = user->quant_class != QN_CLASS_BIAS && reads_integer(user, value);
    }
    const qn_quant_node *from = value->producer ? &q->nodes[value->producer->number] : NULL;
    if (from && from->integer)
        v->integer = v->integer || is_state(q, from, value) || must_be_rounded(q, from) ||
                     moves_into_subgraph(q, from);
}

static void set_width(const qn_quantizer *q, qn_quant_value *v)
{
    const qn_value *value = v->value;
    v->bits = QN_WIDTH_STANDARD;
    if (value->producer && q->nodes[value->producer->number].integer)
        v->bits = q->nodes[value->producer->number].bits;
    for (size_t u = 0; u < value->n_users; u++) {
        const qn_quant_node *user = &q->nodes[value->users[u]->number];
        if (reads_integer(user, value))
            v->bits = QN_MAX(v->bits, user->bits);
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

qn_status qn_rules_apply(qn_quantizer *q)
{
    QN_TRY(qn_softmax_masks_find(q));
    for (size_t i = 0; i < q->n_nodes; i++)
        guess_node(q, &q->nodes[i]);
    QN_TRY(qn_patterns_apply(q));
    leave_small_tail(q);
    settle(q);
    if (q->settings.mix)
        QN_TRY(qn_mix_apply(q));
    QN_TRY(qn_input_types_claim(q));
    for (size_t i = 0; i < q->n_values; i++) {
        settle_value(q, &q->values[i]);
        set_width(q, &q->values[i]);
    }
    qn_quant_share(q);
    return qn_input_types_settle(q);
}
