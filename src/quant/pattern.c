/* Patterns of names: which nodes stay float or get another width. */
#include "quant/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "pass/norms.h"

/* One star is remembered: a later one makes the earlier one's choice final. */
bool qn_pattern_fits(const char *pattern, const char *text)
{
    const char *star = NULL, *back = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            back = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

static bool fits_node(const char *pattern, const qn_node *node)
{
    if (qn_pattern_fits(pattern, node->name) || qn_pattern_fits(pattern, node->op->name))
        return true;
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o] && qn_pattern_fits(pattern, node->out[o]->name))
            return true;
    }
    return false;
}

/* ---- What was meant -------------------------------------------------------------------------- */

void qn_near_try(qn_near *near, const char *name)
{
    const size_t d = qn_word_distance(near->wanted, name);
    if (d >= near->distance)
        return;
    near->distance = d;
    near->best = name;
}

static qn_status fail_unfit(const qn_quantizer *q, const char *pattern)
{
    qn_near near = {.wanted = pattern, .distance = SIZE_MAX};
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        qn_near_try(&near, node->name);
        qn_near_try(&near, node->op->name);
        for (int32_t o = 0; o < node->n_out; o++) {
            if (node->out[o])
                qn_near_try(&near, node->out[o]->name);
        }
    }
    return qn_fail(
        q->ctx, QN_E_OPTION,
        "pattern '%s' fits no node, tensor or operator%s%s%s (`qn_quantize_list` shows them all)",
        pattern, near.best ? "; did you mean '" : "", near.best ? near.best : "",
        near.best ? "'?" : "");
}

/* ---- Applying -------------------------------------------------------------------------------- */

static void leave_float(qn_quant_node *n, const char *why)
{
    n->requested_float = true;
    n->why = n->integer ? why : n->why;
    n->integer = false;
}

static qn_status apply_float(qn_quantizer *q, const char *pattern)
{
    bool found = false;
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (!fits_node(pattern, q->nodes[i].node))
            continue;
        found = true;
        leave_float(&q->nodes[i], "asked for");
    }
    return found ? QN_OK : fail_unfit(q, pattern);
}

/* The name of what a node writes, whatever characters are in it. */
static bool writes(const qn_node *node, const char *name)
{
    return node->n_out > 0 && node->out[0] && strcmp(node->out[0]->name, name) == 0;
}

bool qn_quant_wants_float(const qn_node *node)
{
    const qn_op *op = node->op;
    return op == &qn_op_LayerNormalization || op == &qn_op_Sin || op == &qn_op_Cos ||
           qn_is_rms_norm(node);
}

static const char *why_slow(const qn_node *node)
{
    return qn_quant_wants_float(node) ? "it is as fast in float, and the outputs are more exact"
                                      : "it is slower in integers than in float";
}

/* why: NULL: for its speed */
static void apply_found(qn_quantizer *q, const char *name, const char *why)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (writes(q->nodes[i].node, name))
            leave_float(&q->nodes[i], why ? why : why_slow(q->nodes[i].node));
    }
}

/* What may stand behind "PATTERN=": "16", a width for all, or "w8a16", one of less bits for
 * weights. */
typedef struct asked_width {
    int weight_bits, bits;
    char name[16];
} asked_width;

enum { ASKED = QN_WIDTHS * (QN_WIDTHS + 1) / 2 };

/* Those that the engine computes with; how many they are. */
static int list_asked(asked_width out[ASKED])
{
    int count = 0;
    for (int mixed = 0; mixed < 2; mixed++) {
        for (int w = 0; w < QN_WIDTHS; w++) {
            for (int a = mixed ? w + 1 : w; a < (mixed ? (int)QN_WIDTHS : w + 1); a++) {
                asked_width *asked = &out[count];
                *asked = (asked_width){.weight_bits = qn_widths[w].bits, .bits = qn_widths[a].bits};
                if (mixed)
                    snprintf(asked->name, sizeof asked->name, "w%da%d", asked->weight_bits,
                             asked->bits);
                else
                    snprintf(asked->name, sizeof asked->name, "%d", asked->bits);
                count +=
                    qn_width_is_computed(asked->bits) && qn_width_is_computed(asked->weight_bits);
            }
        }
    }
    return count;
}

static qn_status read_asked(asked_width *out, const qn_quantizer *q, const char *text)
{
    const char *equals = strrchr(text, '=');
    asked_width all[ASKED];
    char list[256] = "";
    const int count = list_asked(all);
    size_t at = 0;
    for (int i = 0; i < count && at < sizeof list; i++) {
        *out = all[i];
        if (equals && equals != text && strcmp(equals + 1, out->name) == 0)
            return QN_OK;
        at += (size_t)snprintf(list + at, sizeof list - at, "%sPATTERN=%s",
                               !i              ? ""
                               : i + 1 < count ? ", "
                                               : " or ",
                               out->name);
    }
    return qn_fail(q->ctx, QN_E_OPTION, "widths: '%s' is not %s", text, list);
}

/* "PATTERN=16", or "NAME=16" */
static qn_status apply_width(qn_quantizer *q, const char *text, bool is_name)
{
    asked_width asked;
    bool found = false;
    QN_TRY(read_asked(&asked, q, text));
    char *pattern = qn_arena_text(&q->arena, text, (size_t)(strrchr(text, '=') - text));
    QN_TRY_ALLOC(q->ctx, pattern);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        if (is_name ? !writes(node, pattern) : !fits_node(pattern, node))
            continue;
        found = true;
        q->nodes[i].bits = asked.bits;
        q->nodes[i].weight_bits = asked.weight_bits;
    }
    return found ? QN_OK : fail_unfit(q, pattern);
}

qn_status qn_patterns_apply(qn_quantizer *q)
{
    const qn_quant_settings *s = &q->settings;
    const size_t sensitive = s->n_float - s->n_sensitive, slow = sensitive - s->n_slow;
    for (size_t i = 0; i < slow; i++)
        QN_TRY(apply_float(q, s->keep_float[i]));
    for (size_t i = slow; i < sensitive; i++)
        apply_found(q, s->keep_float[i], NULL);
    for (size_t i = sensitive; i < s->n_float; i++)
        apply_found(q, s->keep_float[i], "the outputs are too sensitive to it in 8 bits");
    for (size_t i = 0; i < s->n_widths; i++)
        QN_TRY(apply_width(q, s->widths[i], i + s->n_searched_widths >= s->n_widths));
    return QN_OK;
}
