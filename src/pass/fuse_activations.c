/* Activations that a file spells out with simple operators, as one node each. Every function looks
 * at the last node of a spelling and gives the input and the operator that it stands for. */
#include <math.h>

#include "ops/nn_attrs.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

typedef struct found {
    const qn_op *op;
    qn_value *x;
    /* The parameters of an activation. */
    float alpha, beta;
    /* The operator takes alpha and beta */
    bool has_parameters;
    /* QN_GELU_..., of Gelu */
    int64_t gelu;
} found;

/* The factor by which a node multiplies its input: Mul by c, Div by 1/c. */
static bool match_scale(const qn_node *node, qn_value **x, double *factor)
{
    if (!node || (node->op != &qn_op_Mul && node->op != &qn_op_Div) ||
        !qn_match_binary(node, x, factor) || *factor == 0)
        return false;
    if (node->op == &qn_op_Div)
        *factor = 1 / *factor;
    return true;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* ---- Hard sigmoid and hard swish ------------------------------------------------------------- */

/* clip(x + 3, 0, 6), the unscaled gate: its x. */
static qn_value *match_gate6(const qn_value *value)
{
    double limits[2], three;
    qn_value *x;
    const qn_node *clip = value->producer;
    if (!clip || !qn_match_limits(limits, clip) || limits[0] != 0 || limits[1] != 6)
        return NULL;
    const qn_node *add = qn_match_op(clip->in[0], &qn_op_Add);
    return add && qn_match_binary(add, &x, &three) && three == 3 ? x : NULL;
}

/* clip(x + 3, 0, 6) / 6 */
static bool find_hard_sigmoid(found *f, const qn_node *node)
{
    qn_value *gate;
    double factor;
    if (!match_scale(node, &gate, &factor) || !near(factor, 1.0 / 6))
        return false;
    f->x = match_gate6(gate);
    f->op = &qn_op_HardSigmoid;
    f->alpha = 1.0f / 6;
    f->beta = 0.5f;
    f->has_parameters = true;
    return f->x != NULL;
}

static bool is_hard_sigmoid6(const qn_value *value, const qn_value *x)
{
    const qn_node *node = qn_match_op(value, &qn_op_HardSigmoid);
    const qn_activation_attrs *a = node ? node->attrs : NULL;
    return node && node->in[0] == x && near((double)a->alpha, 1.0 / 6) && a->beta == 0.5f;
}

/* x * hardsigmoid(x), or (x * clip(x + 3, 0, 6)) / 6 */
static bool find_hard_swish(found *f, const qn_node *node)
{
    qn_value *product = node->out[0];
    double factor = 1;
    f->op = &qn_op_HardSwish;
    f->has_parameters = false;
    if (match_scale(node, &product, &factor)) {
        if (!near(factor, 1.0 / 6))
            return false;
        node = qn_match_only(product, &qn_op_Mul);
    }
    if (!node || node->op != &qn_op_Mul)
        return false;
    for (int side = 0; side < 2; side++) {
        qn_value *x = node->in[side], *gate = node->in[1 - side];
        if (factor == 1 ? is_hard_sigmoid6(gate, x) : match_gate6(gate) == x) {
            f->x = x;
            return true;
        }
    }
    return false;
}

/* ---- Swish and Mish -------------------------------------------------------------------------- */

/* x * sigmoid(x), x * sigmoid(alpha * x) */
static bool find_swish(found *f, const qn_node *node)
{
    if (node->op != &qn_op_Mul)
        return false;
    for (int side = 0; side < 2; side++) {
        qn_value *x = node->in[side], *scaled;
        const qn_node *gate = qn_match_op(node->in[1 - side], &qn_op_Sigmoid);
        double alpha = 1;
        if (!gate)
            continue;
        const bool direct = gate->in[0] == x;
        if (direct || (match_scale(gate->in[0]->producer, &scaled, &alpha) && scaled == x)) {
            *f = (found){.op = &qn_op_Swish, .x = x, .alpha = (float)alpha};
            f->has_parameters = true;
            return true;
        }
    }
    return false;
}

/* x * tanh(softplus(x)) */
static bool find_mish(found *f, const qn_node *node)
{
    if (node->op != &qn_op_Mul)
        return false;
    for (int side = 0; side < 2; side++) {
        const qn_node *gate = qn_match_op(node->in[1 - side], &qn_op_Tanh);
        const qn_node *inner = gate ? qn_match_op(gate->in[0], &qn_op_Softplus) : NULL;
        if (inner && inner->in[0] == node->in[side]) {
            *f = (found){.op = &qn_op_Mish, .x = node->in[side]};
            return true;
        }
    }
    return false;
}

/* ---- Gelu ------------------------------------------------------------------------------------ */

/* x^3 as Pow or as products. */
static qn_value *match_cube(const qn_value *value)
{
    const qn_node *node = value->producer;
    if (node && node->op == &qn_op_Pow)
        return qn_match_near(node->in[1], node->in[0], 3) ? node->in[0] : NULL;
    for (int side = 0; node && node->op == &qn_op_Mul && side < 2; side++) {
        const qn_node *square = node->in[side]->producer;
        qn_value *x = node->in[1 - side];
        const bool squared =
            square && ((square->op == &qn_op_Mul && square->in[0] == x && square->in[1] == x) ||
                       (square->op == &qn_op_Pow && square->in[0] == x &&
                        qn_match_near(square->in[1], x, 2)));
        if (squared)
            return x;
    }
    return NULL;
}

/* sqrt(2 / pi) * (x + 0.044715 * x^3) */
static qn_value *match_tanh_argument(const qn_value *value)
{
    qn_value *sum, *cube;
    double factor;
    if (!match_scale(value->producer, &sum, &factor) || !near(factor, 0.7978845608))
        return NULL;
    const qn_node *add = qn_match_op(sum, &qn_op_Add);
    for (int side = 0; add && side < 2; side++) {
        if (match_scale(add->in[side]->producer, &cube, &factor) && near(factor, 0.044715) &&
            match_cube(cube) == add->in[1 - side])
            return add->in[1 - side];
    }
    return NULL;
}

/* 1 + erf(x / sqrt(2)) or 1 + tanh(..): its x, and which of both. */
static qn_value *match_gelu_gate(const qn_value *value, int64_t *form)
{
    qn_value *inner, *x;
    double one, factor;
    const qn_node *add = qn_match_op(value, &qn_op_Add);
    if (!add || !qn_match_binary(add, &inner, &one) || one != 1 || !inner->producer)
        return NULL;
    const qn_node *gate = inner->producer;
    if (gate->op == &qn_op_Erf && match_scale(gate->in[0]->producer, &x, &factor) &&
        near(factor, 0.7071067812)) {
        *form = QN_GELU_ERF;
        return x;
    }
    *form = QN_GELU_TANH;
    return gate->op == &qn_op_Tanh ? match_tanh_argument(gate->in[0]) : NULL;
}

/* The three factors of (a * b) * c or c * (a * b); false when it is no such product. */
static bool three_factors(qn_value **out, const qn_node *product, int side)
{
    const qn_node *inner = qn_match_only(product->in[side], &qn_op_Mul);
    if (!inner)
        return false;
    out[0] = inner->in[0];
    out[1] = inner->in[1];
    out[2] = product->in[1 - side];
    return true;
}

static bool is_gelu_product(found *f, qn_value *const *factors)
{
    for (int g = 0; g < 3; g++) {
        int64_t form;
        qn_value *x = match_gelu_gate(factors[g], &form);
        const qn_value *a = factors[(g + 1) % 3], *b = factors[(g + 2) % 3];
        if (x && ((a == x && qn_match_near(b, x, 0.5)) || (b == x && qn_match_near(a, x, 0.5)))) {
            *f = (found){.op = &qn_op_Gelu, .x = x, .gelu = form};
            return true;
        }
    }
    return false;
}

/* 0.5 * x * gate, however it is ordered and bracketed */
static bool find_gelu(found *f, const qn_node *node)
{
    qn_value *factors[3];
    for (int side = 0; node->op == &qn_op_Mul && side < 2; side++) {
        if (three_factors(factors, node, side) && is_gelu_product(f, factors))
            return true;
    }
    return false;
}

/* ---- The pass -------------------------------------------------------------------------------- */

typedef bool finder(found *f, const qn_node *node);
static finder *const finders[] = {find_swish, find_hard_swish, find_hard_sigmoid, find_mish,
                                  find_gelu};

static qn_status replace(qn_node *node, const found *f)
{
    qn_value *const in[] = {f->x};
    qn_node *fresh;
    QN_TRY(qn_rewrite_begin(&fresh, node, f->op, in, 1));
    if (f->has_parameters) {
        qn_activation_attrs *a = fresh->attrs;
        a->alpha = f->alpha;
        a->beta = f->op == &qn_op_HardSigmoid ? f->beta : a->beta;
    }
    if (f->op == &qn_op_Gelu)
        ((qn_gelu_attrs *)fresh->attrs)->approximate = f->gelu;
    return qn_rewrite_finish(fresh, node);
}

static bool is_candidate(const qn_node *node)
{
    return (node->op == &qn_op_Mul || node->op == &qn_op_Div) && node->out[0] &&
           qn_dtype_is_float(node->out[0]->type.dtype);
}

static qn_status fuse_activations(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        for (size_t i = 0; is_candidate(node) && i < QN_COUNT_OF(finders); i++) {
            found f = {.op = NULL};
            if (!finders[i](&f, node))
                continue;
            QN_TRY(replace(node, &f));
            self->changes++;
            break;
        }
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_activations = {
    "fuse-activations", "recognizes SiLU, hard-swish, hard-sigmoid, Mish and GELU",
    fuse_activations};
