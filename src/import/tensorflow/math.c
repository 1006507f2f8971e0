/* Functions of numbers, one by one. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* ---- One operator of ONNX -------------------------------------------------------------------- */

qn_status qn_tf_unary(qn_tf_node *node)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_graph_build(&y, &node->import->builder, node->op->as, QN_INPUTS(x), QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_binary(qn_tf_node *node)
{
    qn_value *in[2], *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_agreed(in, &order, node, 0, 2));
    QN_TRY(qn_graph_build(&y, &node->import->builder, node->op->as, QN_INPUTS(in[0], in[1]),
                          QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_add_n(qn_tf_node *node)
{
    enum { MOST = 64 };
    qn_value *in[MOST], *y;
    qn_axis_order order;
    if (node->n_in == 0 || node->n_in > MOST)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "%zu inputs", node->n_in);
    QN_TRY(qn_tf_in_agreed(in, &order, node, 0, node->n_in));
    y = in[0];
    for (size_t i = 1; i < node->n_in; i++)
        QN_TRY(
            qn_graph_build(&y, &node->import->builder, &qn_op_Add, QN_INPUTS(y, in[i]), QN_PLAIN));
    return qn_tf_out(node, 0, y, order);
}

/* ---- A few of them --------------------------------------------------------------------------- */

/* What a formula is made of: x, y and a way to build. */
typedef struct formula {
    qn_tf_node *node;
    qn_graph_builder *b;
    qn_axis_order order;
    qn_value *x, *y;
    qn_status status;
} formula;

static formula formula_of(qn_tf_node *node, size_t inputs)
{
    formula f = {.node = node, .b = &node->import->builder};
    qn_value *in[2] = {NULL, NULL};
    f.status = inputs == 1 ? qn_tf_in_any(&in[0], &f.order, node, 0)
                           : qn_tf_in_agreed(in, &f.order, node, 0, 2);
    f.x = in[0];
    f.y = in[1];
    return f;
}

/* After the first failure nothing is made any more. */
static qn_value *make(formula *f, const qn_op *op, qn_value *a, qn_value *b)
{
    qn_value *out = NULL;
    if (f->status == QN_OK)
        f->status = b ? qn_graph_build(&out, f->b, op, QN_INPUTS(a, b), QN_PLAIN)
                      : qn_graph_build(&out, f->b, op, QN_INPUTS(a), QN_PLAIN);
    return out;
}

static qn_value *number(formula *f, double value)
{
    qn_value *out = NULL;
    if (f->status == QN_OK)
        f->status = qn_tf_number(&out, f->node->import, value, f->x->type.dtype);
    return out;
}

static qn_value *choose(formula *f, qn_value *which, qn_value *a, qn_value *b)
{
    qn_value *out = NULL;
    if (f->status == QN_OK)
        f->status = qn_graph_build(&out, f->b, &qn_op_Where, QN_INPUTS(which, a, b), QN_PLAIN);
    return out;
}

static qn_status finish(formula *f, qn_value *out)
{
    QN_TRY(f->status);
    return qn_tf_out(f->node, 0, out, f->order);
}

qn_status qn_tf_not_equal(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    qn_value *same = make(&f, &qn_op_Equal, f.x, f.y);
    return finish(&f, make(&f, &qn_op_Not, same, NULL));
}

qn_status qn_tf_squared_difference(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    qn_value *apart = make(&f, &qn_op_Sub, f.x, f.y);
    return finish(&f, make(&f, &qn_op_Mul, apart, apart));
}

qn_status qn_tf_square(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    return finish(&f, make(&f, &qn_op_Mul, f.x, f.x));
}

qn_status qn_tf_rsqrt(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    qn_value *root = make(&f, &qn_op_Sqrt, f.x, NULL);
    return finish(&f, make(&f, &qn_op_Reciprocal, root, NULL));
}

qn_status qn_tf_expm1(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    qn_value *power = make(&f, &qn_op_Exp, f.x, NULL);
    return finish(&f, make(&f, &qn_op_Sub, power, number(&f, 1)));
}

qn_status qn_tf_log1p(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    qn_value *sum = make(&f, &qn_op_Add, f.x, number(&f, 1));
    return finish(&f, make(&f, &qn_op_Log, sum, NULL));
}

qn_status qn_tf_erfc(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    qn_value *erf = make(&f, &qn_op_Erf, f.x, NULL);
    return finish(&f, make(&f, &qn_op_Sub, number(&f, 1), erf));
}

qn_status qn_tf_is_finite(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    qn_value *nan = make(&f, &qn_op_IsNaN, f.x, NULL);
    qn_value *infinite = make(&f, &qn_op_IsInf, f.x, NULL);
    return finish(&f, make(&f, &qn_op_Not, make(&f, &qn_op_Or, nan, infinite), NULL));
}

/* 0 where y is 0, x / y elsewhere. */
qn_status qn_tf_div_no_nan(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    qn_value *zero = number(&f, 0);
    qn_value *none = make(&f, &qn_op_Equal, f.y, zero);
    qn_value *ratio = make(&f, &qn_op_Div, f.x, f.y);
    return finish(&f, choose(&f, none, zero, ratio));
}

qn_status qn_tf_mul_no_nan(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    qn_value *zero = number(&f, 0);
    qn_value *none = make(&f, &qn_op_Equal, f.y, zero);
    qn_value *product = make(&f, &qn_op_Mul, f.x, f.y);
    return finish(&f, choose(&f, none, zero, product));
}

/* 0 where x is 0, x log y elsewhere. */
qn_status qn_tf_xlogy(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    qn_value *zero = number(&f, 0);
    qn_value *none = make(&f, &qn_op_Equal, f.x, zero);
    qn_value *product = make(&f, &qn_op_Mul, f.x, make(&f, &qn_op_Log, f.y, NULL));
    return finish(&f, choose(&f, none, zero, product));
}

static bool has_integers(const formula *f)
{
    return f->x && qn_dtype_is_integer(f->x->type.dtype);
}

/* ONNX divides integers towards zero: one less where there is a rest of the other sign. */
static qn_value *floor_div(formula *f)
{
    qn_value *ratio = make(f, &qn_op_Div, f->x, f->y);
    if (!has_integers(f))
        return make(f, &qn_op_Floor, ratio, NULL);
    qn_value *rest = make(f, &qn_op_Sub, f->x, make(f, &qn_op_Mul, ratio, f->y));
    qn_value *zero = number(f, 0);
    qn_value *none = make(f, &qn_op_Equal, rest, zero);
    qn_value *apart =
        make(f, &qn_op_Xor, make(f, &qn_op_Less, rest, zero), make(f, &qn_op_Less, f->y, zero));
    qn_value *lower = make(f, &qn_op_And, make(f, &qn_op_Not, none, NULL), apart);
    return choose(f, lower, make(f, &qn_op_Sub, ratio, number(f, 1)), ratio);
}

qn_status qn_tf_floor_div(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    return finish(&f, floor_div(&f));
}

/* The sign of the divisor for integers in ONNX too; for floats x - floor(x / y) y. */
qn_status qn_tf_floor_mod(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    if (has_integers(&f))
        return finish(&f, make(&f, &qn_op_Mod, f.x, f.y));
    qn_value *whole = make(&f, &qn_op_Mul, floor_div(&f), f.y);
    return finish(&f, make(&f, &qn_op_Sub, f.x, whole));
}

qn_status qn_tf_truncate_mod(qn_tf_node *node)
{
    formula f = formula_of(node, 2);
    qn_value *y = NULL;
    if (f.status == QN_OK)
        f.status =
            qn_graph_build(&y, f.b, &qn_op_Mod, QN_INPUTS(f.x, f.y), QN_WITH(QN_A_INT("fmod", 1)));
    return finish(&f, y);
}

/* The angle of (x, y) with the quadrants put right: f.x is the numerator. */
qn_status qn_tf_atan2(qn_tf_node *node)
{
    const double pi = 3.14159265358979323846;
    formula f = formula_of(node, 2);
    qn_value *zero = number(&f, 0);
    qn_value *angle = make(&f, &qn_op_Atan, make(&f, &qn_op_Div, f.x, f.y), NULL);
    qn_value *below = make(&f, &qn_op_Less, f.x, zero);
    qn_value *turn = choose(&f, below, number(&f, -pi), number(&f, pi));
    qn_value *left = make(&f, &qn_op_Less, f.y, zero);
    qn_value *whole = choose(&f, left, make(&f, &qn_op_Add, angle, turn), angle);
    /* 0 / 0 is no number, and an angle of 0 */
    qn_value *both =
        make(&f, &qn_op_And, make(&f, &qn_op_Equal, f.x, zero), make(&f, &qn_op_Equal, f.y, zero));
    return finish(&f, choose(&f, both, zero, whole));
}

/* ---- Activations ----------------------------------------------------------------------------- */

qn_status qn_tf_relu6(qn_tf_node *node)
{
    formula f = formula_of(node, 1);
    qn_value *least = number(&f, 0), *most = number(&f, 6), *y;
    QN_TRY(f.status);
    QN_TRY(qn_graph_build(&y, f.b, &qn_op_Clip, QN_INPUTS(f.x, least, most), QN_PLAIN));
    return qn_tf_out(node, 0, y, f.order);
}

static bool is_scalar(const qn_value *value)
{
    return value->data && qn_tensor_count(value->data) == 1;
}

qn_status qn_tf_clip_by_value(qn_tf_node *node)
{
    qn_value *in[3], *y;
    qn_axis_order order;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_in_agreed(in, &order, node, 0, 3));
    if (is_scalar(in[1]) && is_scalar(in[2])) {
        double low, high;
        QN_TRY(qn_tf_real(&low, node, 1));
        QN_TRY(qn_tf_real(&high, node, 2));
        QN_TRY(qn_tf_number(&in[1], node->import, low, in[0]->type.dtype));
        QN_TRY(qn_tf_number(&in[2], node->import, high, in[0]->type.dtype));
        QN_TRY(qn_graph_build(&y, b, &qn_op_Clip, QN_INPUTS(in[0], in[1], in[2]), QN_PLAIN));
    } else {
        QN_TRY(qn_graph_build(&y, b, &qn_op_Min, QN_INPUTS(in[0], in[2]), QN_PLAIN));
        QN_TRY(qn_graph_build(&y, b, &qn_op_Max, QN_INPUTS(y, in[1]), QN_PLAIN));
    }
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_leaky_relu(qn_tf_node *node)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_graph_build(
        &y, &node->import->builder, &qn_op_LeakyRelu, QN_INPUTS(x),
        QN_WITH(QN_A_REAL("alpha", (float)qn_tf_attr_real(node, "alpha", (double).2f)))));
    return qn_tf_out(node, 0, y, order);
}

/* ---- Types ----------------------------------------------------------------------------------- */

qn_status qn_tf_cast_to(qn_tf_node *node)
{
    qn_value *x;
    qn_axis_order order;
    const qn_dtype dtype = qn_tf_attr_dtype(node, "DstT", QN_UNDEFINED);
    if (dtype == QN_UNDEFINED || dtype == QN_STRING)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "its DstT is no type of numbers");
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_tf_cast(&x, node->import, dtype));
    return qn_tf_out(node, 0, x, order);
}
