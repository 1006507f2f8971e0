/* Comparisons, logic, choices, and changes of the element type. */
#include <string.h>

#include "import/pytorch/aten.h"

static const char *const operands[] = {"self", "other"};

/* Truths compare as integers, which Greater and its kin need. */
static qn_status comparable(qn_value **v, qn_aten_call *c)
{
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    if (dtype != QN_BOOL || c->op->onnx == &qn_op_Equal)
        return QN_OK;
    QN_TRY(qn_aten_cast(&v[0], c, v[0], QN_INT32));
    return qn_aten_cast(&v[1], c, v[1], QN_INT32);
}

qn_status qn_aten_compare(qn_aten_call *c)
{
    qn_value *v[2], *y;
    QN_TRY(comparable(v, c));
    QN_TRY(qn_aten_binary_node(&y, c, c->op->onnx, v[0], v[1]));
    if (strcmp(c->op->name, "ne") == 0)
        QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Not, y));
    return qn_aten_return(c, y);
}

static qn_status truth(qn_value **out, qn_aten_call *c, const char *name)
{
    QN_TRY(qn_aten_tensor(out, c, name));
    return qn_aten_cast(out, c, *out, QN_BOOL);
}

qn_status qn_aten_logical(qn_aten_call *c)
{
    qn_value *x, *y;
    QN_TRY(truth(&x, c, "self"));
    QN_TRY(truth(&y, c, "other"));
    QN_TRY(qn_aten_binary_node(&x, c, c->op->onnx, x, y));
    return qn_aten_return(c, x);
}

qn_status qn_aten_logical_not(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(truth(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Not, x));
    return qn_aten_return(c, x);
}

/* Truths have the logical operator, integers the one of bits. */
qn_status qn_aten_bitwise(qn_aten_call *c)
{
    const qn_op *op = c->op->onnx;
    qn_value *v[2];
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    if (dtype == QN_BOOL)
        op = op == &qn_op_BitwiseAnd ? &qn_op_And : op == &qn_op_BitwiseOr ? &qn_op_Or : &qn_op_Xor;
    QN_TRY(qn_aten_binary_node(&v[0], c, op, v[0], v[1]));
    return qn_aten_return(c, v[0]);
}

qn_status qn_aten_bitwise_not(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(
        qn_aten_unary_node(&x, c, qn_dtype_of(x) == QN_BOOL ? &qn_op_Not : &qn_op_BitwiseNot, x));
    return qn_aten_return(c, x);
}

/* ---- Choices --------------------------------------------------------------------------------- */

qn_status qn_aten_where(qn_aten_call *c)
{
    qn_value *condition, *v[2];
    qn_dtype dtype;
    if (!qn_aten_has(c, "self"))
        return qn_aten_unsupported(c, "without two choices it gives indices");
    QN_TRY(truth(&condition, c, "condition"));
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    QN_TRY(qn_graph_build(&v[0], c->b, &qn_op_Where, QN_INPUTS(condition, v[0], v[1]), QN_PLAIN));
    return qn_aten_return(c, v[0]);
}

/* The result has the type of self. */
qn_status qn_aten_masked_fill(qn_aten_call *c)
{
    qn_value *x, *mask, *value;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(truth(&mask, c, "mask"));
    QN_TRY(qn_aten_tensor(&value, c, "value"));
    QN_TRY(qn_aten_cast(&value, c, value, qn_dtype_of(x)));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Where, QN_INPUTS(mask, value, x), QN_PLAIN));
    return qn_aten_return(c, x);
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* PyTorch's several forms: (dtype, ...), (device, dtype, ...), (other, ...), and all by name. */
static qn_status wanted_dtype(qn_dtype *out, qn_aten_call *c, qn_dtype own)
{
    const qn_torch_value *first = qn_aten_value(c, "other");
    *out = own;
    if (qn_aten_has(c, "dtype"))
        return qn_aten_dtype(out, c, "dtype", own);
    if (first->kind == QN_TORCH_INT)
        return qn_aten_dtype(out, c, "other", own);
    if (first->kind == QN_TORCH_TENSOR) {
        qn_value *other;
        QN_TRY(qn_torch_tensor_value(&other, c->t, first->tensor));
        *out = qn_dtype_of(other);
        return QN_OK;
    }
    return qn_aten_value(c, "second")->kind == QN_TORCH_INT ? qn_aten_dtype(out, c, "second", own)
                                                            : QN_OK;
}

qn_status qn_aten_to(qn_aten_call *c)
{
    qn_value *x;
    qn_dtype dtype;
    if (qn_aten_value(c, "self")->kind != QN_TORCH_TENSOR) {
        QN_TRY(qn_aten_tensor(&x, c, "self"));
        QN_TRY(wanted_dtype(&dtype, c, qn_dtype_of(x)));
        QN_TRY(qn_aten_cast(&x, c, x, dtype));
        return qn_aten_return(c, x);
    }
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(wanted_dtype(&dtype, c, qn_dtype_of(x)));
    if (dtype == qn_dtype_of(x)) {
        c->result = *qn_aten_value(c, "self");
        return QN_OK;
    }
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    return qn_aten_return(c, x);
}

/* The same tensor: what is written to the one is seen in the other. */
qn_status qn_aten_alias(qn_aten_call *c)
{
    c->result = c->parameters[0].value;
    return QN_OK;
}

/* The same numbers in a tensor of its own. */
qn_status qn_aten_clone(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_torch_value_of(&x, c->t, &c->parameters[0].value));
    return qn_aten_return(c, x);
}

/* Checks and hints that compute nothing. */
qn_status qn_aten_nothing(qn_aten_call *c)
{
    c->result = QN_TORCH_NOTHING;
    return QN_OK;
}

/* What is written in place of all of self. */
qn_status qn_aten_copy(qn_aten_call *c)
{
    qn_value *x, *source, *shape;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_tensor(&source, c, "src"));
    QN_TRY(qn_aten_cast(&source, c, source, qn_dtype_of(x)));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, x));
    QN_TRY(qn_aten_binary_node(&source, c, &qn_op_Expand, source, shape));
    return qn_aten_return(c, source);
}
