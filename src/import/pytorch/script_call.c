/* Functions, methods, classes and fields of TorchScript. */
#include <stdio.h>
#include <string.h>

#include "import/pytorch/script_run.h"

/* ---- Files ----------------------------------------------------------------------------------- */

/* "__torch__.a.b.C" lies in "code/__torch__/a/b.py". */
static qn_status open_file(const qn_script_file **out, qn_script_run *run, const char *name,
                           size_t length)
{
    qn_torch *t = run->t;
    char *path = qn_arena_format(t->arena, "code/%.*s.py", (int)length, name);
    qn_script_file *file;
    qn_string text;
    *out = NULL;
    QN_TRY_ALLOC(t->ctx, path);
    for (size_t i = 5; i < 5 + length; i++)
        path[i] = path[i] == '.' ? '/' : path[i];
    *out = qn_names_get(&run->files, path);
    if (*out || !qn_torch_archive_has(&t->archive, path))
        return QN_OK;
    file = qn_arena_alloc(t->arena, sizeof *file);
    QN_TRY_ALLOC(t->ctx, file);
    QN_TRY(qn_torch_archive_read(&text, &t->archive, path));
    QN_TRY(qn_script_parse(&file->block, t->ctx, t->arena, text, path));
    QN_TRY(qn_names_set(&run->files, path, file));
    *out = file;
    return QN_OK;
}

qn_status qn_script_lookup(const qn_script_statement **out, qn_script_run *run, const char *name,
                           qn_script_step step)
{
    const char *last = strrchr(name, '.');
    const qn_script_file *file;
    *out = NULL;
    if (!last)
        return QN_OK;
    QN_TRY(open_file(&file, run, name, (size_t)(last - name)));
    if (file)
        *out = qn_script_find(&file->block, step, last + 1);
    return QN_OK;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static const qn_torch_value *argument_of(const qn_aten_argument *arguments, size_t count,
                                         const char *name, size_t place)
{
    for (size_t i = 0; i < count; i++) {
        if (arguments[i].name ? strcmp(arguments[i].name, name) == 0 : i == place)
            return &arguments[i].value;
    }
    return NULL;
}

static qn_status bind(qn_script_scope *scope, const qn_script_statement *function,
                      const qn_torch_value *self, const qn_aten_argument *arguments, size_t count)
{
    const size_t first = self != NULL;
    for (size_t i = 0; i < function->n_parameters; i++) {
        const qn_script_parameter *p = &function->parameters[i];
        const qn_torch_value *given =
            i < first ? self : argument_of(arguments, count, p->name, i - first);
        qn_torch_value value;
        if (given)
            value = *given;
        else if (p->fallback)
            QN_TRY(qn_script_eval(&value, scope, p->fallback));
        else
            return qn_script_run_fail(scope->run, QN_E_FORMAT, "'%s' is called without '%s'",
                                      function->name, p->name);
        QN_TRY(qn_script_define(scope, p->name, &value));
    }
    return QN_OK;
}

qn_status qn_script_call(qn_torch_value *out, qn_script_run *run,
                         const qn_script_statement *function, const qn_torch_value *self,
                         const qn_aten_argument *arguments, size_t count)
{
    qn_script_scope scope = {.run = run, .result = QN_TORCH_NOTHING};
    bool returned = false;
    qn_status status;
    *out = QN_TORCH_NOTHING;
    if (run->depth == QN_SCRIPT_MOST_CALLS)
        return qn_script_run_fail(run, QN_E_FORMAT, "its calls are nested too deep");
    run->depth++;
    qn_names_init(&scope.values, run->t->ctx);
    status = bind(&scope, function, self, arguments, count);
    if (status == QN_OK)
        status = qn_script_execute(&returned, &scope, &function->body);
    qn_names_free(&scope.values);
    run->depth--;
    *out = scope.result;
    return status;
}

/* A new object: its fields are the class's in their order (a named tuple), or what __init__
 * sets. */
static qn_status construct(qn_torch_value *out, qn_script_run *run, const char *name,
                           const qn_script_statement *class, const qn_aten_argument *arguments,
                           size_t count)
{
    const qn_script_statement *init = qn_script_find(&class->body, QN_STEP_DEF, "__init__");
    qn_torch *t = run->t;
    qn_torch_value ignored;
    *out = (qn_torch_value){.kind = QN_TORCH_OBJECT,
                            .object = qn_arena_alloc(t->arena, sizeof *out->object)};
    QN_TRY_ALLOC(t->ctx, out->object);
    out->object->type = name;
    if (init)
        return qn_script_call(&ignored, run, init, out, arguments, count);
    size_t place = 0;
    for (size_t i = 0; i < class->body.count; i++) {
        const qn_script_statement *s = &class->body.at[i];
        if (s->step != QN_STEP_ASSIGN || s->target->kind != QN_EXPR_NAME)
            continue;
        const qn_torch_value key = qn_torch_text(s->target->text);
        const qn_torch_value *given = argument_of(arguments, count, key.text, place++);
        if (given)
            QN_TRY(qn_torch_set(&out->object->fields, t->ctx, t->arena, &key, given));
    }
    return QN_OK;
}

/* An operator: its last word is its name, but of spaces other than PyTorch's own. */
static qn_status call_operator(qn_torch_value *out, qn_script_run *run, const char *name,
                               qn_aten_argument *arguments, size_t count)
{
    qn_torch *t = run->t;
    const char *own = name;
    bool done;
    if (strncmp(own, "torch.", 6) == 0)
        own += 6;
    else if (strncmp(own, "ops.", 4) == 0)
        own += 4;
    if (strncmp(own, "aten.", 5) == 0 || strncmp(own, "prim.", 5) == 0)
        own += 5;
    QN_TRY(qn_script_builtin(out, &done, run, own, arguments, count));
    if (done)
        return QN_OK;
    qn_graph_builder_layer(&t->b, *run->path ? run->path : own, own);
    const qn_status status = qn_aten_run(out, t, own, arguments, count);
    return status;
}

qn_status qn_script_call_global(qn_torch_value *out, qn_script_run *run, const char *name,
                                qn_aten_argument *arguments, size_t count)
{
    const qn_script_statement *found;
    if (strncmp(name, "__torch__.", 10) != 0)
        return call_operator(out, run, name, arguments, count);
    QN_TRY(qn_script_lookup(&found, run, name, QN_STEP_DEF));
    if (found)
        return qn_script_call(out, run, found, NULL, arguments, count);
    QN_TRY(qn_script_lookup(&found, run, name, QN_STEP_CLASS));
    if (found)
        return construct(out, run, name, found, arguments, count);
    return qn_script_run_fail(run, QN_E_FORMAT, "the archive has no '%s'", name);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* A module, and a tensor of one, is called after the way to it. */
static qn_status name_field(const qn_script_run *run, const qn_torch_object *owner,
                            qn_torch_value *value, const char *name)
{
    const bool object = value->kind == QN_TORCH_OBJECT && !value->object->path;
    const bool tensor = value->kind == QN_TORCH_TENSOR && !value->tensor->name;
    const char *path;
    if (!owner->path || (!object && !tensor))
        return QN_OK;
    path = qn_arena_format(run->t->arena, "%s%s%s", owner->path, *owner->path ? "." : "", name);
    QN_TRY_ALLOC(run->t->ctx, path);
    if (object)
        value->object->path = path;
    else
        value->tensor->name = path;
    return QN_OK;
}

/* A constant of the class: "stride : Final[int] = 2". */
static qn_status class_constant(qn_torch_value *out, qn_script_run *run, const char *type,
                                const char *name)
{
    const qn_script_statement *class;
    QN_TRY(qn_script_lookup(&class, run, type, QN_STEP_CLASS));
    for (size_t i = 0; class && i < class->body.count; i++) {
        const qn_script_statement *s = &class->body.at[i];
        if (s->step != QN_STEP_ASSIGN || s->target->kind != QN_EXPR_NAME || !s->value ||
            strcmp(s->target->text, name) != 0)
            continue;
        qn_script_scope scope = {.run = run};
        qn_names_init(&scope.values, run->t->ctx);
        const qn_status status = qn_script_eval(out, &scope, s->value);
        qn_names_free(&scope.values);
        return status;
    }
    return qn_script_run_fail(run, QN_E_FORMAT, "'%s' has no '%s'", type, name);
}

/* Modules are in evaluation, whatever mode they were saved in. */
qn_status qn_script_field(qn_torch_value *out, qn_script_run *run, const qn_torch_value *object,
                          const char *name)
{
    if (strcmp(name, "training") == 0) {
        *out = qn_torch_bool(false);
        return QN_OK;
    }
    if (object->kind != QN_TORCH_OBJECT)
        return qn_script_run_fail(run, QN_E_FORMAT, "it asks %s for '%s'",
                                  qn_torch_kind_name(object->kind), name);
    qn_torch_value *found = qn_torch_get_text(&object->object->fields, name);
    if (!found)
        return class_constant(out, run, object->object->type, name);
    QN_TRY(name_field(run, object->object, found, name));
    *out = *found;
    return QN_OK;
}
