/* Max and Min with a number are limits, as Relu and Clip are; limits of what is limited already are
 * one node:
 *
 *   Min(Max(x, a), b) = Clip(x, a, b)  where a <= b */
#include <math.h>

#include "ops/versions.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

typedef struct limits {
    /* Infinite where there is none */
    double ends[2];
    qn_value *x;
} limits;

static bool compares(const qn_node *node)
{
    return node->op == &qn_op_Max || node->op == &qn_op_Min;
}

static bool match_either(limits *out, const qn_node *node)
{
    out->x = node->in[0];
    if (!compares(node))
        return qn_match_limits(out->ends, node);
    out->ends[0] = -(double)INFINITY;
    out->ends[1] = (double)INFINITY;
    return qn_match_binary(node, &out->x, &out->ends[node->op == &qn_op_Max ? 0 : 1]);
}

/* What the node limits, and how: some numbers are left as they are. */
static bool match(limits *out, const qn_node *node)
{
    return match_either(out, node) && !out->x->data && out->ends[0] <= out->ends[1] &&
           out->ends[0] < (double)INFINITY && out->ends[1] > -(double)INFINITY;
}

/* The node that made x is a limit too, and nobody else wants x: both are one. */
static bool join(limits *l)
{
    limits inner;
    const qn_node *before = l->x->producer;
    if (!before || l->x->qparams || !qn_value_only_user(l->x) || !match(&inner, before))
        return false;
    for (int i = 0; i < 2; i++)
        inner.ends[i] = fmin(fmax(inner.ends[i], l->ends[0]), l->ends[1]);
    *l = inner;
    return true;
}

static qn_status replace(qn_node *node, const limits *l)
{
    const bool is_relu = l->ends[0] == 0 && l->ends[1] == (double)INFINITY;
    qn_value *in[3] = {l->x, NULL, NULL};
    qn_node *fresh;
    for (int i = 0; i < 2 && !is_relu; i++) {
        if (!isinf(l->ends[i]))
            QN_TRY(qn_value_number(&in[1 + i], node->graph, l->x->type.dtype, l->ends[i]));
    }
    const int32_t n_in = in[2] ? 3 : in[1] ? 2 : 1;
    QN_TRY(qn_rewrite_begin(&fresh, node, is_relu ? &qn_op_Relu : &qn_op_Clip, in, n_in));
    return qn_rewrite_finish(fresh, node);
}

static qn_status fuse_clips(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        limits l;
        next = node->next;
        if (!node->out[0] || !qn_dtype_is_float(node->out[0]->type.dtype) || !match(&l, node))
            continue;
        bool changes = compares(node);
        while (join(&l))
            changes = true;
        if (!changes)
            continue;
        QN_TRY(replace(node, &l));
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_clips = {
    "fuse-clips", "makes Max and Min with a number Relu and Clip, and limits in a row one",
    fuse_clips};
