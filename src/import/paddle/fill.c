/* Operators that make constants, and those that change numbers in simple ways. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "import/paddle/paddle.h"

/* What is given on as it is. */
qn_status qn_paddle_same(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    return qn_paddle_out(l, "Out", x);
}

/* ---- Constants ------------------------------------------------------------------------------- */

/* A number of rank 0 in that shape; shapes of few numbers become constants by the passes. */
static qn_status fill(qn_paddle_layer *l, qn_value *number, qn_value *shape)
{
    const bool is_scalar = shape->type.kind == QN_TYPE_TENSOR && shape->type.rank == 1 &&
                           shape->type.dims[0].value == 0;
    static const int64_t one[] = {1};
    qn_ints dims;
    if (qn_paddle_contents(&dims, l, shape) && dims.count == 1 && dims.at[0] == 1 && number->data) {
        double contents;
        qn_load_f64(&contents, number->data->dtype, number->data->data, 0, 1);
        QN_TRY(qn_paddle_numbers(&number, l, number->type.dtype, &contents, 1, one));
    } else if (!is_scalar) {
        QN_TRY(qn_paddle_make2(&number, l, &qn_op_Expand, number, shape));
    }
    return qn_paddle_out(l, "Out", number);
}

/* The number: a value, a text, or an attribute. */
static qn_status number_of(qn_value **out, const qn_paddle_layer *l, qn_dtype dtype)
{
    static const int64_t none[] = {0};
    const char *text = qn_paddle_text(l, "str_value", "");
    double number = qn_paddle_real(l, "value", 0);
    qn_value *flat;
    QN_TRY(qn_paddle_maybe(out, l, "ValueTensor"));
    if (!*out) {
        if (*text && !qn_number_parse(&number, text, strlen(text)))
            return qn_paddle_fail(l, QN_E_FORMAT, "'%s' is no number", text);
        return qn_paddle_number_of(out, l, dtype, number);
    }
    if ((*out)->type.rank != 0) {
        QN_TRY(qn_paddle_reshape(&flat, l, *out, none, 0));
        *out = flat;
    }
    return qn_paddle_cast(out, l, *out, dtype);
}

qn_status qn_paddle_fill_constant(qn_paddle_layer *l)
{
    qn_value *shape, *number;
    QN_TRY(qn_paddle_shape(&shape, l, "ShapeTensor ShapeTensorList shape"));
    if (!shape)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no shape");
    QN_TRY(number_of(&number, l, qn_paddle_dtype(l, "dtype", QN_FLOAT32)));
    return fill(l, number, shape);
}

/* A list of integers that PIR writes as an operator. */
qn_status qn_paddle_full_int_array(qn_paddle_layer *l)
{
    const qn_ints ints = qn_paddle_ints(l, "value");
    const int64_t dims[] = {(int64_t)ints.count};
    const double *numbers;
    qn_value *out;
    size_t count;
    if (qn_paddle_dtype(l, "dtype", QN_INT64) == QN_INT64) {
        QN_TRY(qn_graph_build_ints(&out, l->b, ints.at, ints.count));
        return qn_paddle_out(l, "Out", out);
    }
    QN_TRY(qn_paddle_reals(&numbers, &count, l, "value"));
    QN_TRY(qn_paddle_numbers(&out, l, qn_paddle_dtype(l, "dtype", QN_INT64), numbers, 1, dims));
    return qn_paddle_out(l, "Out", out);
}

qn_status qn_paddle_fill_like(qn_paddle_layer *l)
{
    qn_value *x, *shape, *number;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&shape, l, &qn_op_Shape, x));
    QN_TRY(number_of(&number, l, qn_paddle_dtype(l, "dtype", x->type.dtype)));
    return fill(l, number, shape);
}

/* A shape in which one dimension is that of the input. */
qn_status qn_paddle_fill_batch_size_like(qn_paddle_layer *l)
{
    const qn_ints shape = qn_paddle_ints(l, "shape");
    int64_t from = qn_paddle_int(l, "input_dim_idx", 0), to = qn_paddle_int(l, "output_dim_idx", 0);
    qn_value *x, *parts[QN_MAX_RANK], *list, *number;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (shape.count < 1 || shape.count > QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_FORMAT, "a shape of %zu dimensions", shape.count);
    QN_TRY(qn_paddle_axis(&from, l, rank));
    QN_TRY(qn_paddle_axis(&to, l, (int32_t)shape.count));
    for (size_t i = 0; i < shape.count; i++) {
        if ((int64_t)i == to)
            QN_TRY(qn_paddle_dim(&parts[i], l, x, from));
        else
            QN_TRY(qn_graph_build_ints(&parts[i], l->b, &shape.at[i], 1));
    }
    QN_TRY(qn_paddle_concat(&list, l, parts, shape.count, 0));
    QN_TRY(number_of(&number, l, qn_paddle_dtype(l, "dtype", QN_FLOAT32)));
    return fill(l, number, list);
}

/* Numbers that the program has in it; each element type has a list of its own, of which one is not
 * empty. */
qn_status qn_paddle_assign_value(qn_paddle_layer *l)
{
    static const char *const lists[] = {"values",       "fp32_values",  "fp64_values",
                                        "int32_values", "int64_values", "bool_values"};
    const qn_ints shape = qn_paddle_ints(l, "shape");
    const double *numbers = NULL;
    size_t count = 0;
    int64_t wanted;
    qn_value *out;
    if (shape.count > QN_MAX_RANK || !qn_dims_count(&wanted, (int32_t)shape.count, shape.at))
        return qn_paddle_fail(l, QN_E_FORMAT, "its shape is none of a tensor");
    for (size_t i = 0; i < QN_COUNT_OF(lists) && count != (size_t)wanted; i++)
        QN_TRY(qn_paddle_reals(&numbers, &count, l, lists[i]));
    if (count != (size_t)wanted)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld values are wanted", (long long)wanted);
    QN_TRY(qn_paddle_numbers(&out, l, qn_paddle_dtype(l, "dtype", QN_FLOAT32), numbers,
                             (int32_t)shape.count, shape.at));
    return qn_paddle_out(l, "Out", out);
}

/* A number of rank 0 in the element type of the result. */
static qn_status bound(qn_value **out, const qn_paddle_layer *l, const char *slot, qn_dtype dtype)
{
    static const int64_t none[] = {0};
    QN_TRY(qn_paddle_in(out, l, slot));
    if ((*out)->type.rank != 0)
        QN_TRY(qn_paddle_reshape(out, l, *out, none, 0));
    return qn_paddle_cast(out, l, *out, dtype);
}

qn_status qn_paddle_range(qn_paddle_layer *l)
{
    qn_value *start, *end, *step;
    QN_TRY(qn_paddle_in(&start, l, "Start"));
    const qn_dtype dtype = qn_paddle_dtype(l, "dtype", start->type.dtype);
    QN_TRY(bound(&start, l, "Start", dtype));
    QN_TRY(bound(&end, l, "End", dtype));
    QN_TRY(bound(&step, l, "Step", dtype));
    QN_TRY(qn_graph_build(&start, l->b, &qn_op_Range, QN_INPUTS(start, end, step), QN_PLAIN));
    return qn_paddle_out(l, "Out", start);
}

qn_status qn_paddle_linspace(qn_paddle_layer *l)
{
    const qn_dtype dtype = qn_paddle_dtype(l, "dtype", QN_FLOAT32);
    double start, stop;
    int64_t count;
    qn_value *out;
    QN_TRY(qn_paddle_scalar(&start, l, "Start", 0));
    QN_TRY(qn_paddle_scalar(&stop, l, "Stop", 0));
    QN_TRY(qn_paddle_number(&count, l, "Num", 0));
    if (count < 1 || count > INT32_MAX)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld numbers", (long long)count);
    double *numbers = qn_arena_array(&l->b->model->arena, (size_t)count, sizeof *numbers);
    QN_TRY_ALLOC(l->b->ctx, numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = count == 1 ? start : start + (stop - start) * (double)i / (double)(count - 1);
    QN_TRY(qn_paddle_numbers(&out, l, dtype, numbers, 1, &count));
    return qn_paddle_out(l, "Out", out);
}

qn_status qn_paddle_eye(qn_paddle_layer *l)
{
    const int64_t most = 1 << 12;
    int64_t dims[2];
    qn_value *out;
    QN_TRY(qn_paddle_number(&dims[0], l, "num_rows", 0));
    QN_TRY(qn_paddle_number(&dims[1], l, "num_columns", -1));
    if (dims[1] < 0)
        dims[1] = dims[0];
    if (dims[0] < 0 || dims[0] > most || dims[1] > most)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "%lld rows", (long long)dims[0]);
    double *numbers =
        qn_arena_array(&l->b->model->arena, (size_t)(dims[0] * dims[1]) + 1, sizeof *numbers);
    QN_TRY_ALLOC(l->b->ctx, numbers);
    for (int64_t i = 0; i < QN_MIN(dims[0], dims[1]); i++)
        numbers[i * dims[1] + i] = 1;
    QN_TRY(qn_paddle_numbers(&out, l, qn_paddle_dtype(l, "dtype", QN_FLOAT32), numbers, 2, dims));
    return qn_paddle_out(l, "Out", out);
}

/* ---- Changed numbers ------------------------------------------------------------------------- */

qn_status qn_paddle_cast_op(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    const qn_dtype to = qn_paddle_dtype(l, "out_dtype dtype", QN_UNDEFINED);
    if (to == QN_UNDEFINED)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "to a type that is not known");
    QN_TRY(qn_paddle_cast(&x, l, x, to));
    return qn_paddle_out(l, "Out", x);
}

/* scale * x + bias, or scale * (x + bias) */
qn_status qn_paddle_scale(qn_paddle_layer *l)
{
    const double bias = qn_paddle_real(l, "bias", 0);
    const bool after = qn_paddle_int(l, "bias_after_scale", 1) != 0;
    double scale = qn_paddle_real(l, "scale", 1);
    qn_value *x, *factor;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_maybe(&factor, l, "ScaleTensor"));
    if (factor && factor->data) {
        QN_TRY(qn_paddle_scalar(&scale, l, "ScaleTensor", 1));
        factor = NULL;
    }
    if (!after && bias != 0)
        QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, bias));
    if (factor) {
        QN_TRY(qn_paddle_cast(&factor, l, factor, x->type.dtype));
        QN_TRY(qn_paddle_make2(&x, l, &qn_op_Mul, x, factor));
    } else if (scale != 1) {
        QN_TRY(qn_paddle_with(&x, l, &qn_op_Mul, x, scale));
    }
    if (after && bias != 0)
        QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, bias));
    return qn_paddle_out(l, "Out", x);
}

/* A bound that is a value, in x's element type and of rank 0. */
static qn_status clip_bound(qn_value **out, const qn_paddle_layer *l, const char *slot,
                            const char *attr, double fallback, qn_dtype dtype)
{
    if (qn_paddle_has(l, slot))
        return bound(out, l, slot, dtype);
    return qn_paddle_number_of(out, l, dtype, qn_paddle_real(l, attr, fallback));
}

qn_status qn_paddle_clip(qn_paddle_layer *l)
{
    qn_value *x, *least, *most;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    const qn_dtype dtype = x->type.dtype ? x->type.dtype : QN_FLOAT32;
    QN_TRY(clip_bound(&least, l, "Min", "min", -HUGE_VAL, dtype));
    QN_TRY(clip_bound(&most, l, "Max", "max", HUGE_VAL, dtype));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Clip, QN_INPUTS(x, least, most), QN_PLAIN));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_pow(qn_paddle_layer *l)
{
    double factor;
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_scalar(&factor, l, "FactorTensor factor y", 1));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Pow, x, factor));
    return qn_paddle_out(l, "Out", x);
}

/* At inference what was dropped in training is there; one of the ways makes it smaller instead. */
qn_status qn_paddle_dropout(qn_paddle_layer *l)
{
    double rate;
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_scalar(&rate, l, "dropout_prob", 0.5));
    if (!qn_paddle_int(l, "is_test", 0) && rate != 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED,
                              "it is of a program for training; save the model for inference");
    if (!qn_paddle_says(l, "dropout_implementation mode", "upscale_in_train") && rate != 0)
        QN_TRY(qn_paddle_with(&x, l, &qn_op_Mul, x, 1 - rate));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_increment(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, qn_paddle_real(l, "step value", 1)));
    return qn_paddle_out(l, "Out", x);
}

/* Neither infinite nor no number. */
qn_status qn_paddle_is_finite(qn_paddle_layer *l)
{
    qn_value *x, *wrong;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&wrong, l, &qn_op_IsNaN, x));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_IsInf, x));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Or, x, wrong));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Not, x));
    return qn_paddle_out(l, "Out", x);
}

/* The triangle above or below a diagonal. */
qn_status qn_paddle_triangle(qn_paddle_layer *l)
{
    const bool upper = qn_paddle_int(l, "lower", strstr(l->op->type, "triu") == NULL) == 0;
    qn_value *x, *diagonal;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_number_of(&diagonal, l, QN_INT64, (double)qn_paddle_int(l, "diagonal", 0)));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Trilu, QN_INPUTS(x, diagonal),
                          QN_WITH(QN_A_INT("upper", upper))));
    return qn_paddle_out(l, "Out", x);
}
