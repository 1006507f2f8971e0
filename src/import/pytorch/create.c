/* Tensors that are made, not computed: filled ones, ranges, one-hot rows. */
#include <string.h>

#include "import/pytorch/aten.h"

/* The number that the operator fills with: its own, or the argument's. */
static qn_status fill_number(qn_torch_value *out, const qn_aten_call *c)
{
    *out = qn_torch_int(strstr(c->op->name, "ones") != NULL);
    if (strstr(c->op->name, "full") || strcmp(c->op->name, "scalar_tensor") == 0 ||
        strcmp(c->op->name, "fill") == 0)
        *out = *qn_aten_value(c, "fill_value");
    return QN_OK;
}

/* Numbers are made in the type at once. */
static qn_status filler(qn_value **out, qn_aten_call *c, qn_dtype dtype)
{
    qn_torch_value number;
    QN_TRY(fill_number(&number, c));
    if (number.kind == QN_TORCH_INT || number.kind == QN_TORCH_REAL)
        return qn_torch_number(out, c->t, dtype,
                               number.kind == QN_TORCH_REAL ? number.real : (double)number.number,
                               number.kind == QN_TORCH_REAL ? (int64_t)number.real : number.number);
    QN_TRY(qn_torch_value_of(out, c->t, &number));
    return qn_aten_cast(out, c, *out, dtype);
}

/* full's type is the number's where none is asked for. */
static qn_dtype own_dtype(const qn_aten_call *c)
{
    qn_torch_value number;
    if (fill_number(&number, c) != QN_OK || !strstr(c->op->name, "full"))
        return QN_FLOAT32;
    return number.kind == QN_TORCH_INT || number.kind == QN_TORCH_SIZE ? QN_INT64
           : number.kind == QN_TORCH_BOOL                              ? QN_BOOL
                                                                       : QN_FLOAT32;
}

/* zeros, ones, full, empty of a size; new_... have the type of self. */
qn_status qn_aten_fill_size(qn_aten_call *c)
{
    const qn_torch_value *items;
    qn_value *x, *shape, *self;
    size_t count;
    qn_dtype dtype = own_dtype(c);
    if (strncmp(c->op->name, "new_", 4) == 0) {
        QN_TRY(qn_aten_tensor(&self, c, "self"));
        dtype = qn_dtype_of(self);
    }
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", dtype));
    QN_TRY(filler(&x, c, dtype));
    qn_aten_items(&items, &count, c, "size");
    if (count) {
        QN_TRY(qn_torch_shape(&shape, c->t, items, count));
        QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Expand, x, shape));
    }
    return qn_aten_return(c, x);
}

/* As large as self, and of its type. */
qn_status qn_aten_fill_like(qn_aten_call *c)
{
    int64_t dims[QN_MAX_RANK];
    qn_value *x, *self, *shape;
    qn_dtype dtype;
    QN_TRY(qn_aten_tensor(&self, c, "self"));
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", qn_dtype_of(self)));
    QN_TRY(filler(&x, c, dtype));
    if (qn_type_is_static(&self->type, dims))
        QN_TRY(qn_graph_build_ints(&shape, c->b, dims, (size_t)self->type.rank));
    else
        QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, self));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Expand, x, shape));
    return qn_aten_return(c, x);
}

/* A tensor of a number. */
qn_status qn_aten_number_tensor(qn_aten_call *c)
{
    const qn_torch_value *value = qn_aten_value(c, "fill_value");
    qn_value *x;
    qn_dtype dtype;
    if (qn_torch_is_items(value)) {
        qn_value *list;
        QN_TRY(qn_torch_shape(&list, c->t, value->list->at, value->list->count));
        QN_TRY(qn_aten_dtype(&dtype, c, "dtype", QN_INT64));
        QN_TRY(qn_aten_cast(&list, c, list, dtype));
        return qn_aten_return(c, list);
    }
    QN_TRY(qn_torch_value_of(&x, c->t, value));
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype",
                         strcmp(c->op->name, "scalar_tensor") == 0 ? QN_FLOAT32 : qn_dtype_of(x)));
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    return qn_aten_return(c, x);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

enum { MOST_NUMBERS = 1 << 22 };

/* A range of known integers is a constant. */
static qn_status known_range(qn_value **out, qn_aten_call *c, const qn_torch_value *ends)
{
    const int64_t from = ends[0].number, to = ends[1].number, step = ends[2].number;
    const int64_t room = step > 0 ? to - from : from - to;
    if (step == 0 || step == INT64_MIN)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "its step is %lld", (long long)step);
    const int64_t count = room <= 0 ? 0 : (room - 1) / (step > 0 ? step : -step) + 1;
    if (count > MOST_NUMBERS)
        return qn_aten_unsupported(c, "%lld numbers", (long long)count);
    int64_t *numbers = qn_arena_array(c->t->arena, (size_t)count + 1, sizeof *numbers);
    QN_TRY_ALLOC(c->t->ctx, numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = from + i * step;
    return qn_graph_build_ints(out, c->b, numbers, (size_t)count);
}

static bool is_moderate(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_INT && value->number > -(INT64_C(1) << 40) &&
           value->number < INT64_C(1) << 40;
}

static qn_status range(qn_value **out, qn_dtype *own, qn_aten_call *c, const qn_torch_value *ends)
{
    qn_value *v[3];
    *own = QN_INT64;
    if (is_moderate(&ends[0]) && is_moderate(&ends[1]) && is_moderate(&ends[2]))
        return known_range(out, c, ends);
    for (int i = 0; i < 3; i++) {
        if (ends[i].kind == QN_TORCH_REAL)
            *own = QN_FLOAT32;
    }
    for (int i = 0; i < 3; i++) {
        QN_TRY(qn_torch_value_of(&v[i], c->t, &ends[i]));
        QN_TRY(qn_aten_cast(&v[i], c, v[i], *own));
    }
    return qn_graph_build(out, c->b, &qn_op_Range, QN_INPUTS(v[0], v[1], v[2]), QN_PLAIN);
}

/* arange(end), arange(start, end), arange(start, end, step): one number alone is the end. */
qn_status qn_aten_arange(qn_aten_call *c)
{
    qn_torch_value ends[3] = {*qn_aten_value(c, "start"), *qn_aten_value(c, "end"),
                              *qn_aten_value(c, "step")};
    qn_value *x;
    qn_dtype own, dtype;
    if (qn_torch_is_none(&ends[0]))
        ends[0] = qn_torch_int(0);
    if (qn_torch_is_none(&ends[1])) {
        ends[1] = ends[0];
        ends[0] = qn_torch_int(0);
    }
    QN_TRY(range(&x, &own, c, ends));
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", own));
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    return qn_aten_return(c, x);
}

/* start + i (end - start) / (steps - 1) */
qn_status qn_aten_linspace(qn_aten_call *c)
{
    double start, end;
    int64_t steps;
    qn_value *x;
    qn_dtype dtype;
    QN_TRY(qn_aten_real(&start, c, "start"));
    QN_TRY(qn_aten_real(&end, c, "end"));
    QN_TRY(qn_aten_int(&steps, c, "steps"));
    if (steps < 0 || steps > MOST_NUMBERS)
        return qn_aten_unsupported(c, "%lld numbers", (long long)steps);
    float *numbers = qn_arena_array(c->t->arena, (size_t)steps + 1, sizeof *numbers);
    QN_TRY_ALLOC(c->t->ctx, numbers);
    const double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    for (int64_t i = 0; i < steps; i++)
        numbers[i] = (float)(i < steps / 2 ? start + step * (double)i
                                           : end - step * (double)(steps - 1 - i));
    if (steps == 1)
        numbers[0] = (float)start;
    QN_TRY(qn_graph_build_reals(&x, c->b, numbers, (size_t)steps));
    QN_TRY(qn_aten_dtype(&dtype, c, "dtype", QN_FLOAT32));
    QN_TRY(qn_aten_cast(&x, c, x, dtype));
    return qn_aten_return(c, x);
}

qn_status qn_aten_one_hot(qn_aten_call *c)
{
    static const int64_t values[2] = {0, 1};
    qn_value *x, *depth, *pair, *y;
    int64_t classes;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_int(&classes, c, "num_classes"));
    if (classes < 1)
        return qn_aten_unsupported(c, "the number of classes depends on the input");
    QN_TRY(qn_torch_number(&depth, c->t, QN_INT64, 0, classes));
    QN_TRY(qn_graph_build_ints(&pair, c->b, values, 2));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_OneHot, QN_INPUTS(x, depth, pair),
                          QN_WITH(QN_A_INT("axis", -1))));
    return qn_aten_return(c, y);
}
