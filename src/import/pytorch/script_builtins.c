/* Functions of Python and of the interpreter: the table of all, and those of texts and numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/pytorch/script_builtins.h"

static qn_status do_is(qn_torch_value *out, bool *done, qn_script_run *run,
                       qn_torch_value *const *a, size_t n)
{
    (void)run;
    if (n < 2)
        return QN_OK;
    *done = true;
    *out = qn_torch_bool(a[0]->kind == a[1]->kind && qn_torch_equal(a[0], a[1]));
    return QN_OK;
}

static qn_status do_isnot(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_is(out, done, run, a, n));
    out->truth = !out->truth;
    return QN_OK;
}

static qn_status do_not(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    bool truth;
    (void)run;
    (void)n;
    *done = qn_script_truth(&truth, a[0]);
    *out = qn_torch_bool(!truth);
    return QN_OK;
}

/* Lists of sizes that may be equal: then the size that is not known stands for the answer, which
 * nobody knows either. */
static void compare_sizes(qn_torch_value *out, const qn_torch_list *a, const qn_torch_list *b)
{
    const qn_torch_value *open = NULL;
    for (size_t i = 0; a->count == b->count && i < a->count; i++) {
        if (a->at[i].kind == QN_TORCH_SIZE || b->at[i].kind == QN_TORCH_SIZE)
            open = a->at[i].kind == QN_TORCH_SIZE ? &a->at[i] : &b->at[i];
        else if (!qn_torch_equal(&a->at[i], &b->at[i]))
            return;
    }
    if (open)
        *out = *open;
}

/* Texts, lists and None; numbers and tensors are operators. */
static qn_status do_eq(qn_torch_value *out, bool *done, qn_script_run *run,
                       qn_torch_value *const *a, size_t n)
{
    (void)run;
    for (size_t i = 0; i < n; i++) {
        const qn_torch_kind kind = a[i]->kind;
        if (kind == QN_TORCH_TENSOR || kind == QN_TORCH_SIZE)
            return QN_OK;
    }
    if (n < 2)
        return QN_OK;
    *done = true;
    *out = qn_torch_bool(qn_torch_equal(a[0], a[1]));
    if (!out->truth && qn_torch_is_items(a[0]) && qn_torch_is_items(a[1]))
        compare_sizes(out, a[0]->list, a[1]->list);
    return QN_OK;
}

static qn_status do_ne(qn_torch_value *out, bool *done, qn_script_run *run,
                       qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_eq(out, done, run, a, n));
    if (*done && out->kind == QN_TORCH_BOOL)
        out->truth = !out->truth;
    return QN_OK;
}

/* A number as it is, or the one that a tensor holds. */
static qn_status do_number(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    const qn_aten_argument argument = {.value = *a[0]};
    (void)n;
    *done = true;
    *out = *a[0];
    return a[0]->kind == QN_TORCH_TENSOR ? qn_aten_run(out, run->t, "item", &argument, 1) : QN_OK;
}

static qn_status do_int(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_number(out, done, run, a, n));
    if (out->kind == QN_TORCH_REAL && fabs(out->real) < 9e18)
        *out = qn_torch_int((int64_t)out->real);
    else if (out->kind == QN_TORCH_BOOL)
        *out = qn_torch_int(out->truth);
    return QN_OK;
}

static qn_status do_float(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_number(out, done, run, a, n));
    if (out->kind == QN_TORCH_INT)
        *out = qn_torch_real((double)out->number);
    return QN_OK;
}

static qn_status do_bool(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    bool truth;
    (void)run;
    (void)n;
    *done = true;
    *out = *a[0];
    if (qn_script_truth(&truth, a[0]))
        *out = qn_torch_bool(truth);
    return QN_OK;
}

/* A number is rounded; tensors are operators. */
static qn_status round_number(qn_torch_value *out, bool *done, const qn_torch_value *a,
                              double (*way)(double))
{
    *done = a->kind == QN_TORCH_REAL || a->kind == QN_TORCH_INT;
    *out = *a;
    if (a->kind == QN_TORCH_REAL && fabs(a->real) < 9e18)
        *out = qn_torch_int((int64_t)way(a->real));
    return QN_OK;
}

static qn_status do_floor(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    return round_number(out, done, a[0], floor);
}

static qn_status do_ceil(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    return round_number(out, done, a[0], ceil);
}

static qn_status do_nothing(qn_torch_value *out, bool *done, qn_script_run *run,
                            qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)a;
    (void)n;
    *done = true;
    *out = QN_TORCH_NOTHING;
    return QN_OK;
}

static qn_status do_false(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)a;
    (void)n;
    *done = true;
    *out = qn_torch_bool(false);
    return QN_OK;
}

static qn_status do_same(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    *done = true;
    *out = *a[0];
    return QN_OK;
}

/* What a message says is of no use. */
static qn_status do_format(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)a;
    (void)n;
    *done = true;
    *out = qn_torch_text("");
    return QN_OK;
}

static qn_status do_raise(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    (void)out;
    (void)done;
    return qn_script_run_fail(run, QN_E_UNSUPPORTED, "it refuses this input%s%s",
                              n && a[0]->kind == QN_TORCH_TEXT && *a[0]->text ? ": " : "",
                              n && a[0]->kind == QN_TORCH_TEXT ? a[0]->text : "");
}

/* PyTorch's number of the type. */
static qn_status do_dtype(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    qn_value *value;
    (void)n;
    if (a[0]->kind != QN_TORCH_TENSOR)
        return QN_OK;
    *done = true;
    QN_TRY(qn_torch_tensor_value(&value, run->t, a[0]->tensor));
    *out = qn_torch_int(qn_torch_dtype_number(qn_dtype_of(value)));
    return QN_OK;
}

static qn_status do_is_floating(qn_torch_value *out, bool *done, qn_script_run *run,
                                qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_dtype(out, done, run, a, n));
    if (*done)
        *out = qn_torch_bool(qn_dtype_is_float(qn_torch_dtype(out->number)));
    return QN_OK;
}

static qn_status do_getattr(qn_torch_value *out, bool *done, qn_script_run *run,
                            qn_torch_value *const *a, size_t n)
{
    if (n < 2 || a[1]->kind != QN_TORCH_TEXT)
        return QN_OK;
    *done = true;
    return qn_script_field(out, run, a[0], a[1]->text);
}

static const struct {
    const char *name;
    qn_script_builtin_fn *run;
    /* Fewer arguments are no call of it. */
    size_t least;
} builtins[] = {
    {"len", qn_script_len, 1},
    {"append", qn_script_append, 2},
    {"__getitem__", qn_script_getitem, 2},
    {"_set_item", qn_script_setitem, 3},
    {"__contains__", qn_script_contains, 2},
    {"__is__", do_is, 2},
    {"__isnot__", do_isnot, 2},
    {"__not__", do_not, 1},
    {"eq", do_eq, 2},
    {"ne", do_ne, 2},
    {"range", qn_script_range, 1},
    {"__range_length", qn_script_range_length, 3},
    {"__derive_index", qn_script_derive, 3},
    {"add", qn_script_add, 2},
    {"mul", qn_script_mul, 2},
    {"slice", qn_script_slice, 2},
    {"all", qn_script_all, 1},
    {"any", qn_script_any, 1},
    {"sum", qn_script_sum, 1},
    {"list", qn_script_list, 1},
    {"copy", qn_script_list, 1},
    {"keys", qn_script_keys, 1},
    {"values", qn_script_values, 1},
    {"dict", qn_script_dict, 0},
    {"int", do_int, 1},
    {"Int", do_int, 1},
    {"IntImplicit", do_int, 1},
    {"float", do_float, 1},
    {"Float", do_float, 1},
    {"FloatImplicit", do_float, 1},
    {"bool", do_bool, 1},
    {"Bool", do_bool, 1},
    {"ScalarImplicit", do_number, 1},
    {"ImplicitTensorToNum", do_number, 1},
    {"floor", do_floor, 1},
    {"ceil", do_ceil, 1},
    {"warn", do_nothing, 0},
    {"device", do_nothing, 0},
    {"layout", do_nothing, 0},
    {"Print", do_nothing, 0},
    {"print", do_nothing, 0},
    {"set_grad_enabled", do_nothing, 0},
    {"is_cuda", do_false, 0},
    {"is_quantized", do_false, 0},
    {"is_mkldnn", do_false, 0},
    {"is_nested", do_false, 0},
    {"is_sparse", do_false, 0},
    {"is_grad_enabled", do_false, 0},
    {"is_autocast_enabled", do_false, 0},
    {"is_autocast_cpu_enabled", do_false, 0},
    {"is_scripting", do_false, 0},
    {"is_complex", do_false, 0},
    {"requires_grad", do_false, 0},
    {"data", do_same, 1},
    {"unchecked_unwrap_optional", do_same, 1},
    {"_unwrap_optional", do_same, 1},
    {"wait", do_same, 1},
    {"type", do_format, 0},
    {"format", do_format, 0},
    {"str", do_format, 0},
    {"percentFormat", do_format, 0},
    {"RaiseException", do_raise, 0},
    {"raise_exception", do_raise, 0},
    {"dtype", do_dtype, 1},
    {"is_floating_point", do_is_floating, 1},
    {"getattr", do_getattr, 2},
};

/* Lists that are handed over stay the caller's: what is appended to them is seen there. */
qn_status qn_script_builtin(qn_torch_value *out, bool *done, qn_script_run *run, const char *name,
                            qn_aten_argument *arguments, size_t count)
{
    qn_torch_value *values[QN_ATEN_PARAMETERS];
    *done = false;
    for (size_t i = 0; i < count && i < QN_ATEN_PARAMETERS; i++)
        values[i] = &arguments[i].value;
    for (size_t i = 0; i < QN_COUNT_OF(builtins); i++) {
        if (strcmp(builtins[i].name, name) == 0 && count >= builtins[i].least)
            return builtins[i].run(out, done, run, values, QN_MIN(count, QN_ATEN_PARAMETERS));
    }
    return QN_OK;
}
