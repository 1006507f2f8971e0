/* Statements and expressions of TorchScript. */
#include "import/pytorch/script_run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

qn_status qn_script_run_fail(const qn_script_run *run, qn_status status, const char *format, ...)
{
    char text[QN_ERROR_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qn_fail(run->t->ctx, status, "the code of module '%s': %s", run->path, text);
}

qn_status qn_script_tick(qn_script_run *run)
{
    if (++run->steps > QN_SCRIPT_MOST_STEPS)
        return qn_script_run_fail(run, QN_E_UNSUPPORTED, "it does not come to an end");
    return run->steps % 1024 ? QN_OK : qn_check_cancel(run->t->ctx);
}

qn_status qn_script_define(qn_script_scope *scope, const char *name, const qn_torch_value *value)
{
    qn_torch_value *copy = qn_arena_copy(scope->run->t->arena, value, sizeof *value);
    QN_TRY_ALLOC(scope->run->t->ctx, copy);
    return qn_names_set(&scope->values, name, copy);
}

bool qn_script_truth(bool *out, const qn_torch_value *value)
{
    *out = false;
    switch (value->kind) {
    case QN_TORCH_NONE: return true;
    case QN_TORCH_BOOL: *out = value->truth; return true;
    case QN_TORCH_INT: *out = value->number != 0; return true;
    case QN_TORCH_REAL: *out = value->real != 0; return true;
    case QN_TORCH_TEXT: *out = value->text[0] != 0; return true;
    case QN_TORCH_LIST:
    case QN_TORCH_TUPLE:
    case QN_TORCH_DICT: *out = value->list->count > 0; return true;
    case QN_TORCH_OBJECT: *out = true; return true;
    default: break;
    }
    if (value->kind != QN_TORCH_TENSOR || !value->tensor->value || !value->tensor->value->data)
        return false;
    const qn_tensor *data = value->tensor->value->data;
    double real;
    if (data->rank != 0 || qn_dtype_get(data->dtype)->kind == QN_KIND_STRING)
        return false;
    qn_load_f64(&real, data->dtype, data->data, 0, 1);
    *out = real != 0;
    return true;
}

/* ---- Expressions ----------------------------------------------------------------------------- */

/* A name of the scope, or a global one; "inf" and "nan" are numbers. */
static qn_status eval_name(qn_torch_value *out, qn_script_scope *scope, const char *name)
{
    const qn_torch_value *value = qn_names_get(&scope->values, name);
    if (value)
        *out = *value;
    else if (strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0)
        *out = qn_torch_real(name[0] == 'i' ? INFINITY : NAN);
    else if (strcmp(name, "CONSTANTS") == 0)
        *out = scope->run->constants;
    else
        *out = (qn_torch_value){.kind = QN_TORCH_GLOBAL, .text = name};
    return QN_OK;
}

/* "CONSTANTS.c3" */
static qn_status eval_constant(qn_torch_value *out, const qn_script_run *run, const char *name)
{
    size_t number;
    if (sscanf(name, "c%zu", &number) != 1 || !qn_torch_is_items(&run->constants) ||
        number >= run->constants.list->count)
        return qn_script_run_fail(run, QN_E_FORMAT, "there is no constant '%s'", name);
    *out = run->constants.list->at[number];
    return QN_OK;
}

static qn_status eval_field(qn_torch_value *out, qn_script_scope *scope, const qn_script_expr *expr)
{
    qn_torch_value object;
    if (expr->a->kind == QN_EXPR_NAME && strcmp(expr->a->text, "CONSTANTS") == 0)
        return eval_constant(out, scope->run, expr->text);
    QN_TRY(qn_script_eval(&object, scope, expr->a));
    if (object.kind != QN_TORCH_GLOBAL)
        return qn_script_field(out, scope->run, &object, expr->text);
    *out = (qn_torch_value){
        .kind = QN_TORCH_GLOBAL,
        .text = qn_arena_format(scope->run->t->arena, "%s.%s", object.text, expr->text)};
    QN_TRY_ALLOC(scope->run->t->ctx, out->text);
    return QN_OK;
}

static qn_status eval_items(qn_torch_value *out, qn_script_scope *scope, const qn_script_expr *expr,
                            qn_torch_kind kind)
{
    qn_torch *t = scope->run->t;
    QN_TRY(qn_torch_new_list(out, t->ctx, t->arena, kind));
    for (size_t i = 0; i < expr->count; i++) {
        qn_torch_value item;
        QN_TRY(qn_script_eval(&item, scope, expr->items[i]));
        QN_TRY(qn_torch_push(out->list, t->ctx, t->arena, &item));
    }
    return QN_OK;
}

static qn_status eval_arguments(qn_aten_argument **out, qn_script_scope *scope,
                                const qn_script_expr *call)
{
    *out = qn_arena_array(scope->run->t->arena, call->count + 1, sizeof **out);
    QN_TRY_ALLOC(scope->run->t->ctx, *out);
    for (size_t i = 0; i < call->count; i++) {
        (*out)[i].name = call->names[i];
        QN_TRY(qn_script_eval(&(*out)[i].value, scope, call->items[i]));
    }
    return QN_OK;
}

/* What modules of PyTorch's own are made for, by the last word of their class. */
static void expect_input(qn_torch *t, const char *type)
{
    static const struct {
        const char *name;
        int32_t rank;
        qn_dtype dtype;
    } classes[] = {{"LSTM", 3, QN_FLOAT32},        {"GRU", 3, QN_FLOAT32},
                   {"RNN", 3, QN_FLOAT32},         {"LSTMCell", 2, QN_FLOAT32},
                   {"GRUCell", 2, QN_FLOAT32},     {"Linear", 2, QN_FLOAT32},
                   {"Embedding", 2, QN_INT64},     {"Conv1d", 3, QN_FLOAT32},
                   {"Conv2d", 4, QN_FLOAT32},      {"BatchNorm1d", 2, QN_FLOAT32},
                   {"BatchNorm2d", 4, QN_FLOAT32}, {"MultiheadAttention", 3, QN_FLOAT32}};
    const char *last = strrchr(type, '.');
    for (size_t i = 0; last && i < QN_COUNT_OF(classes); i++) {
        if (strcmp(classes[i].name, last + 1) != 0)
            continue;
        t->expected =
            (qn_type){.kind = QN_TYPE_TENSOR, .dtype = classes[i].dtype, .rank = classes[i].rank};
        for (int32_t k = 0; k < classes[i].rank; k++)
            t->expected.dims[k] = qn_dim_unknown();
    }
}

static qn_status call_method(qn_torch_value *out, qn_script_run *run, const qn_torch_value *object,
                             const char *name, const qn_aten_argument *arguments, size_t count)
{
    const qn_script_statement *class, *method;
    const char *before = run->path;
    QN_TRY(qn_script_lookup(&class, run, object->object->type, QN_STEP_CLASS));
    method = class ? qn_script_find(&class->body, QN_STEP_DEF, name) : NULL;
    if (!method)
        return qn_script_run_fail(run, QN_E_FORMAT, "'%s' has no method '%s'", object->object->type,
                                  name);
    if (object->object->path)
        run->path = object->object->path;
    const qn_type expected = run->t->expected;
    expect_input(run->t, object->object->type);
    const qn_status status = qn_script_call(out, run, method, object, arguments, count);
    run->t->expected = expected;
    run->path = before;
    return status;
}

/* What isinstance and annotate are told is a type, which is not a value. */
static bool has_type_argument(const qn_script_expr *callee)
{
    static const char *const names[] = {"annotate", "unchecked_cast", "uninitialized"};
    for (size_t i = 0; callee->kind == QN_EXPR_NAME && i < QN_COUNT_OF(names); i++) {
        if (strcmp(callee->text, names[i]) == 0)
            return true;
    }
    return false;
}

/* Types that are written as words or as "List[int]". */
static bool is_kind(const qn_script_expr *type, const qn_torch_value *value, int depth)
{
    static const struct {
        const char *word;
        qn_torch_kind kind;
    } words[] = {{"Tensor", QN_TORCH_TENSOR}, {"int", QN_TORCH_INT},     {"int", QN_TORCH_SIZE},
                 {"float", QN_TORCH_REAL},    {"bool", QN_TORCH_BOOL},   {"str", QN_TORCH_TEXT},
                 {"List", QN_TORCH_LIST},     {"Tuple", QN_TORCH_TUPLE}, {"Dict", QN_TORCH_DICT},
                 {"NoneType", QN_TORCH_NONE}, {"list", QN_TORCH_LIST},   {"tuple", QN_TORCH_TUPLE}};
    if (depth > 4)
        return false;
    if (type->kind == QN_EXPR_NONE)
        return qn_torch_is_none(value);
    for (size_t i = 0; type->kind == QN_EXPR_TUPLE && i < type->count; i++) {
        if (is_kind(type->items[i], value, depth + 1))
            return true;
    }
    const qn_script_expr *head = type->kind == QN_EXPR_INDEX ? type->a : type;
    if (head->kind != QN_EXPR_NAME)
        return false;
    for (size_t i = 0; i < QN_COUNT_OF(words); i++) {
        if (strcmp(words[i].word, head->text) != 0 || words[i].kind != value->kind)
            continue;
        if (type->kind != QN_EXPR_INDEX || !qn_torch_is_items(value) || !value->list->count)
            return true;
        return type->count && is_kind(type->items[0], &value->list->at[0], depth + 1);
    }
    return false;
}

static qn_status eval_call(qn_torch_value *out, qn_script_scope *scope, const qn_script_expr *call)
{
    const qn_script_expr *callee = call->a;
    qn_aten_argument *arguments;
    qn_torch_value target;
    if (has_type_argument(callee)) {
        *out = QN_TORCH_NOTHING;
        return call->count > 1 ? qn_script_eval(out, scope, call->items[1]) : QN_OK;
    }
    if (callee->kind == QN_EXPR_NAME && strcmp(callee->text, "isinstance") == 0 &&
        call->count == 2) {
        QN_TRY(qn_script_eval(&target, scope, call->items[0]));
        *out = qn_torch_bool(is_kind(call->items[1], &target, 0));
        return QN_OK;
    }
    QN_TRY(eval_arguments(&arguments, scope, call));
    if (callee->kind == QN_EXPR_FIELD) {
        QN_TRY(qn_script_eval(&target, scope, callee->a));
        if (target.kind == QN_TORCH_OBJECT)
            return call_method(out, scope->run, &target, callee->text, arguments, call->count);
    }
    QN_TRY(qn_script_eval(&target, scope, callee));
    if (target.kind != QN_TORCH_GLOBAL)
        return qn_script_run_fail(scope->run, QN_E_FORMAT, "it calls %s",
                                  qn_torch_kind_name(target.kind));
    return qn_script_call_global(out, scope->run, target.text, arguments, call->count);
}

/* "a and b" asks b only where a leaves it open. */
static qn_status eval_operator(qn_torch_value *out, qn_script_scope *scope,
                               const qn_script_expr *expr)
{
    qn_aten_argument arguments[2] = {{.name = NULL}};
    const bool both = strcmp(expr->text, "__and__") == 0,
               either = strcmp(expr->text, "__or__") == 0;
    bool first;
    for (size_t i = 0; i < expr->count && i < 2; i++) {
        QN_TRY(qn_script_eval(&arguments[i].value, scope, expr->items[i]));
        if (i == 0 && (both || either) && arguments[0].value.kind == QN_TORCH_BOOL &&
            qn_script_truth(&first, &arguments[0].value) && first == either) {
            *out = arguments[0].value;
            return QN_OK;
        }
    }
    const char *name = qn_arena_format(scope->run->t->arena, "torch.%s", expr->text);
    QN_TRY_ALLOC(scope->run->t->ctx, name);
    return qn_script_call_global(out, scope->run, name, arguments, expr->count);
}

static qn_status eval_choice(qn_torch_value *out, qn_script_scope *scope,
                             const qn_script_expr *expr)
{
    qn_torch_value condition;
    bool truth;
    QN_TRY(qn_script_eval(&condition, scope, expr->items[0]));
    if (!qn_script_truth(&truth, &condition))
        return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED,
                                  "a choice depends on what a tensor holds");
    return qn_script_eval(out, scope, expr->items[truth ? 1 : 2]);
}

static qn_status eval_index(qn_torch_value *out, qn_script_scope *scope, const qn_script_expr *expr)
{
    qn_aten_argument arguments[2] = {{.name = NULL}};
    QN_TRY(qn_script_eval(&arguments[0].value, scope, expr->a));
    if (expr->count != 1)
        return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED, "an index of several parts");
    QN_TRY(qn_script_eval(&arguments[1].value, scope, expr->items[0]));
    return qn_script_call_global(out, scope->run, "torch.__getitem__", arguments, 2);
}

qn_status qn_script_eval(qn_torch_value *out, qn_script_scope *scope, const qn_script_expr *expr)
{
    *out = QN_TORCH_NOTHING;
    QN_TRY(qn_script_tick(scope->run));
    switch (expr->kind) {
    case QN_EXPR_NAME: return eval_name(out, scope, expr->text);
    case QN_EXPR_INT: *out = qn_torch_int(expr->number); return QN_OK;
    case QN_EXPR_REAL: *out = qn_torch_real(expr->real); return QN_OK;
    case QN_EXPR_TEXT: *out = qn_torch_text(expr->text); return QN_OK;
    case QN_EXPR_TRUE:
    case QN_EXPR_FALSE: *out = qn_torch_bool(expr->kind == QN_EXPR_TRUE); return QN_OK;
    case QN_EXPR_NONE: return QN_OK;
    case QN_EXPR_FIELD: return eval_field(out, scope, expr);
    case QN_EXPR_CALL: return eval_call(out, scope, expr);
    case QN_EXPR_INDEX: return eval_index(out, scope, expr);
    case QN_EXPR_LIST: return eval_items(out, scope, expr, QN_TORCH_LIST);
    case QN_EXPR_TUPLE: return eval_items(out, scope, expr, QN_TORCH_TUPLE);
    case QN_EXPR_DICT: return eval_items(out, scope, expr, QN_TORCH_DICT);
    case QN_EXPR_OPERATOR: return eval_operator(out, scope, expr);
    case QN_EXPR_CHOICE: return eval_choice(out, scope, expr);
    }
    return QN_OK;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static qn_status assign(qn_script_scope *scope, const qn_script_expr *target,
                        const qn_torch_value *value);

/* Parts of a layer that cannot be read are lost as it is. */
static qn_status assign_parts(qn_script_scope *scope, const qn_script_expr *target,
                              const qn_torch_value *value)
{
    const bool lost = value->kind == QN_TORCH_TENSOR && value->tensor->lost;
    if (!lost && (!qn_torch_is_items(value) || value->list->count != target->count))
        return qn_script_run_fail(scope->run, QN_E_FORMAT, "%zu names for %s", target->count,
                                  qn_torch_kind_name(value->kind));
    for (size_t i = 0; i < target->count; i++)
        QN_TRY(assign(scope, target->items[i], lost ? value : &value->list->at[i]));
    return QN_OK;
}

static qn_status assign(qn_script_scope *scope, const qn_script_expr *target,
                        const qn_torch_value *value)
{
    qn_torch *t = scope->run->t;
    qn_torch_value object;
    if (target->kind == QN_EXPR_NAME)
        return qn_script_define(scope, target->text, value);
    if (target->kind == QN_EXPR_TUPLE || target->kind == QN_EXPR_LIST)
        return assign_parts(scope, target, value);
    if (target->kind != QN_EXPR_FIELD)
        return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED, "an assignment to an element");
    QN_TRY(qn_script_eval(&object, scope, target->a));
    if (object.kind != QN_TORCH_OBJECT)
        return qn_script_run_fail(scope->run, QN_E_FORMAT, "a field of %s",
                                  qn_torch_kind_name(object.kind));
    const qn_torch_value key = qn_torch_text(target->text);
    return qn_torch_set(&object.object->fields, t->ctx, t->arena, &key, value);
}

/* Whether the block raises an exception. */
static bool raises(const qn_script_block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        const qn_script_expr *value = block->at[i].value;
        if (block->at[i].step == QN_STEP_EXPR && value->kind == QN_EXPR_CALL &&
            value->a->kind == QN_EXPR_FIELD && strstr(value->a->text, "aise"))
            return true;
    }
    return false;
}

/* Where the condition is not known the branch is taken that raises no exception. */
static qn_status run_if(bool *returned, qn_script_scope *scope, const qn_script_statement *s)
{
    qn_torch_value condition;
    bool truth;
    QN_TRY(qn_script_eval(&condition, scope, s->value));
    if (!qn_script_truth(&truth, &condition)) {
        truth = raises(&s->otherwise);
        if (!truth && !raises(&s->body))
            return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED,
                                      "a branch depends on what the input holds");
    }
    return qn_script_execute(returned, scope, truth ? &s->body : &s->otherwise);
}

static qn_status run_for(bool *returned, qn_script_scope *scope, const qn_script_statement *s)
{
    qn_torch_value over;
    QN_TRY(qn_script_eval(&over, scope, s->value));
    if (over.kind != QN_TORCH_INT && !qn_torch_is_items(&over))
        return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED, "a loop over %s",
                                  qn_torch_kind_name(over.kind));
    const bool counts = over.kind == QN_TORCH_INT;
    const int64_t count = counts ? over.number : (int64_t)over.list->count;
    for (int64_t i = 0; i < count && !*returned; i++) {
        const qn_torch_value item = counts ? qn_torch_int(i) : over.list->at[i];
        QN_TRY(qn_script_tick(scope->run));
        QN_TRY(assign(scope, s->target, &item));
        QN_TRY(qn_script_execute(returned, scope, &s->body));
    }
    return QN_OK;
}

static qn_status run_while(bool *returned, qn_script_scope *scope, const qn_script_statement *s)
{
    while (!*returned) {
        qn_torch_value condition;
        bool truth;
        QN_TRY(qn_script_eval(&condition, scope, s->value));
        if (!qn_script_truth(&truth, &condition))
            return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED,
                                      "a loop depends on what the input holds");
        if (!truth)
            return QN_OK;
        QN_TRY(qn_script_execute(returned, scope, &s->body));
    }
    return QN_OK;
}

static qn_status run_statement(bool *returned, qn_script_scope *scope, const qn_script_statement *s)
{
    qn_torch_value value = QN_TORCH_NOTHING;
    switch (s->step) {
    case QN_STEP_EXPR: return qn_script_eval(&value, scope, s->value);
    case QN_STEP_ASSIGN:
        if (!s->value)
            return QN_OK;
        QN_TRY(qn_script_eval(&value, scope, s->value));
        return assign(scope, s->target, &value);
    case QN_STEP_RETURN:
        *returned = true;
        return s->value ? qn_script_eval(&scope->result, scope, s->value) : QN_OK;
    case QN_STEP_IF: return run_if(returned, scope, s);
    case QN_STEP_FOR: return run_for(returned, scope, s);
    case QN_STEP_WHILE: return run_while(returned, scope, s);
    case QN_STEP_BREAK:
    case QN_STEP_CONTINUE:
        return qn_script_run_fail(scope->run, QN_E_UNSUPPORTED, "a loop is left inside");
    default: return QN_OK;
    }
}

qn_status qn_script_execute(bool *returned, qn_script_scope *scope, const qn_script_block *block)
{
    for (size_t i = 0; i < block->count && !*returned; i++) {
        QN_TRY(qn_script_tick(scope->run));
        QN_TRY(run_statement(returned, scope, &block->at[i]));
    }
    return QN_OK;
}
