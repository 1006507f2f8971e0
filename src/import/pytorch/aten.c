/* The table of PyTorch's operators, and calls: arguments bound to the names of a signature. */
#include "import/pytorch/aten.h"

#include <stdlib.h>
#include <string.h>

static const qn_aten_op rows[] = {
#define QN_ATEN(name, converter, onnx, signature) {name, qn_aten_##converter, onnx, signature},
#include "import/pytorch/aten.def"
#undef QN_ATEN
};

const qn_framework_op qn_aten_listing[QN_ATEN_COUNT] = {
#define QN_ATEN(name, converter, onnx, signature) {name, signature},
#include "import/pytorch/aten.def"
#undef QN_ATEN
};

static const qn_aten_op *find_exact(const char *name, size_t length)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool is_in_place(const char *name)
{
    const size_t length = strlen(name);
    return length > 2 && name[length - 1] == '_' && name[length - 2] != '_' &&
           !find_exact(name, length);
}

const qn_aten_op *qn_aten_find(const char *name)
{
    return find_exact(name, strlen(name) - is_in_place(name));
}

/* ---- Signatures ------------------------------------------------------------------------------ */

static qn_status read_default(qn_torch_value *out, qn_torch *t, qn_string text)
{
    char word[32] = "";
    memcpy(word, text.text, QN_MIN(text.length, sizeof word - 1));
    if (strcmp(word, "None") == 0)
        *out = QN_TORCH_NOTHING;
    else if (strcmp(word, "True") == 0 || strcmp(word, "False") == 0)
        *out = qn_torch_bool(word[0] == 'T');
    else if (strcmp(word, "[]") == 0)
        return qn_torch_new_list(out, t->ctx, t->arena, QN_TORCH_LIST);
    else if (strpbrk(word, ".e"))
        *out = qn_torch_real(strtod(word, NULL));
    else if (word[0] == '\'') {
        out->kind = QN_TORCH_TEXT;
        out->text = qn_arena_text(t->arena, text.text + 1, text.length - 2);
        QN_TRY_ALLOC(t->ctx, out->text);
    } else
        *out = qn_torch_int(strtoll(word, NULL, 10));
    return QN_OK;
}

/* Every parameter with its default; those without one are None. */
static qn_status read_signature(qn_aten_call *c)
{
    const char *at = c->op->signature;
    while (*at) {
        qn_aten_parameter *p = &c->parameters[c->n_parameters++];
        const size_t length = strcspn(at, ",="), whole = strcspn(at, ",");
        p->names = (qn_string){at, length};
        p->value = QN_TORCH_NOTHING;
        if (at[length] == '=')
            QN_TRY(read_default(&p->value, c->t, (qn_string){at + length + 1, whole - length - 1}));
        at += whole;
        at += strspn(at, ", ");
    }
    return QN_OK;
}

/* Whether the names "dim|other" have this one. */
static bool has_name(qn_string names, const char *name)
{
    const size_t length = strlen(name);
    size_t at = 0;
    while (at < names.length) {
        const char *bar = memchr(names.text + at, '|', names.length - at);
        const size_t own = bar ? (size_t)(bar - names.text) - at : names.length - at;
        if (own == length && memcmp(names.text + at, name, length) == 0)
            return true;
        at += own + 1;
    }
    return false;
}

static qn_aten_parameter *find_parameter(const qn_aten_call *c, const char *name)
{
    for (size_t i = 0; i < c->n_parameters; i++) {
        if (has_name(c->parameters[i].names, name))
            return (qn_aten_parameter *)(uintptr_t)&c->parameters[i];
    }
    return NULL;
}

/* What says where and how numbers lie, not which they are. */
static bool means_nothing(const char *name)
{
    static const char *const names[] = {"device",        "layout",       "pin_memory",
                                        "memory_format", "non_blocking", "copy",
                                        "implicit",      "generator",    "requires_grad"};
    for (size_t i = 0; i < QN_COUNT_OF(names); i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static qn_status bind(qn_aten_call *c, const qn_aten_argument *arguments, size_t count)
{
    QN_TRY(read_signature(c));
    for (size_t i = 0; i < count; i++) {
        const qn_aten_argument *a = &arguments[i];
        qn_aten_parameter *p = a->name               ? find_parameter(c, a->name)
                               : i < c->n_parameters ? &c->parameters[i]
                                                     : NULL;
        if (!p && a->name && means_nothing(a->name))
            continue;
        if (!p && a->name)
            return qn_aten_unsupported(c, "its argument '%s' is not read", a->name);
        if (!p && qn_torch_is_none(&a->value))
            continue;
        if (!p)
            return qn_aten_unsupported(c, "it has %zu arguments", count);
        p->value = a->value;
        p->given = true;
    }
    return QN_OK;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool is_lost(const qn_torch_value *value)
{
    if (value->kind == QN_TORCH_TENSOR)
        return value->tensor->lost;
    for (size_t i = 0; qn_torch_is_items(value) && i < value->list->count; i++) {
        const qn_torch_value *item = &value->list->at[i];
        if (item->kind == QN_TORCH_TENSOR && item->tensor->lost)
            return true;
    }
    return false;
}

/* What a layer gives that cannot be read: a tensor of which nothing is known. */
static qn_status lose(qn_torch_value *out, qn_torch *t)
{
    qn_value *value;
    QN_TRY(qn_value_create(&value, t->b.graph, NULL));
    QN_TRY(qn_torch_make(out, t, value));
    out->tensor->lost = true;
    return QN_OK;
}

static qn_status write_in_place(qn_torch_value *out, qn_torch *t, const qn_torch_value *target,
                                const qn_torch_value *result)
{
    qn_value *value;
    *out = *result;
    if (target->kind != QN_TORCH_TENSOR || result->kind != QN_TORCH_TENSOR)
        return QN_OK;
    QN_TRY(qn_torch_tensor_value(&value, t, result->tensor));
    QN_TRY(qn_torch_write(t, target->tensor, value));
    *out = *target;
    return QN_OK;
}

/* Operators by how their names begin, and what users can do. */
static qn_status fail_unknown(const qn_aten_call *c, const char *name)
{
    static const struct {
        const char *begin, *hint;
    } hints[] = {
        {"quantized", "give the float model, which quench quantizes"},
        {"quantize_per", "give the float model, which quench quantizes"},
        {"dequantize", "give the float model, which quench quantizes"},
        {"higher_order.", "branches and loops that depend on what the input holds are not read"},
        {"fft_", "compute it before the model"},
        {"stft", "compute it before the model"},
        {"istft", "compute it behind the model"},
        {"linalg_", "compute it outside of the model"},
        {"rand", "a model has no random numbers: give them as an input"},
        {"bernoulli", "a model has no random numbers: give them as an input"},
        {"torchvision.", "compute it outside of the model"},
    };
    for (size_t i = 0; i < QN_COUNT_OF(hints); i++) {
        if (strncmp(name, hints[i].begin, strlen(hints[i].begin)) == 0)
            return qn_aten_unsupported(c, "the operator '%s' is not read: %s", name, hints[i].hint);
    }
    return qn_aten_unsupported(c, "the operator '%s' is not read", name);
}

/* The function of numbers that a call is: a third argument says how a quotient is rounded, or what
 * a second summand is multiplied by. NULL: none. */
static const char *number_word(const char *name, const qn_aten_argument *arguments, size_t count)
{
    const qn_torch_value one = qn_torch_int(1);
    if (count < 3)
        return name;
    const qn_torch_value *third = &arguments[2].value;
    if (third->kind == QN_TORCH_TEXT && strcmp(name, "div") == 0)
        return strcmp(third->text, "floor") == 0 ? "floordiv" : "truncdiv";
    return count == 3 && (qn_torch_is_none(third) || qn_torch_equal(third, &one)) ? name : NULL;
}

static qn_status convert(qn_torch_value *out, qn_torch *t, const char *name,
                         const qn_aten_argument *arguments, size_t count)
{
    const char *word = number_word(name, arguments, count);
    qn_aten_call c = {.t = t, .b = &t->b, .op = qn_aten_find(name)};
    qn_torch_value operands[2];
    bool done = false;
    t->hint.rank = -1;
    for (size_t i = 0; i < count && i < 2; i++)
        operands[i] = arguments[i].value;
    if (word)
        QN_TRY(qn_torch_arithmetic(out, &done, t, word, operands, QN_MIN(count, 2)));
    if (done)
        return QN_OK;
    if (!c.op)
        return fail_unknown(&c, name);
    QN_TRY(bind(&c, arguments, count));
    QN_TRY(c.op->convert(&c));
    *out = c.result;
    return is_in_place(name) && count ? write_in_place(out, t, &arguments[0].value, &c.result)
                                      : QN_OK;
}

qn_status qn_aten_run(qn_torch_value *out, qn_torch *t, const char *name,
                      const qn_aten_argument *arguments, size_t count)
{
    const qn_aten_call unknown = {.t = t, .b = &t->b};
    bool lost = false;
    *out = QN_TORCH_NOTHING;
    for (size_t i = 0; i < count; i++)
        lost = lost || is_lost(&arguments[i].value);
    /* One that nobody knows is told even where what it reads cannot be. */
    if (lost && (qn_aten_find(name) || qn_torch_is_arithmetic(name)))
        return lose(out, t);
    const qn_status status =
        lost ? fail_unknown(&unknown, name) : convert(out, t, name, arguments, count);
    if (status == QN_OK || t->unranked)
        return status;
    QN_TRY(qn_graph_builder_settle(&t->b, status, NULL, 0));
    return lose(out, t);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

const qn_torch_value *qn_aten_value(const qn_aten_call *c, const char *name)
{
    static const qn_torch_value none = {.kind = QN_TORCH_NONE};
    const qn_aten_parameter *p = find_parameter(c, name);
    return p ? &p->value : &none;
}

bool qn_aten_has(const qn_aten_call *c, const char *name)
{
    return !qn_torch_is_none(qn_aten_value(c, name));
}

qn_status qn_aten_tensor(qn_value **out, qn_aten_call *c, const char *name)
{
    *out = NULL;
    if (!qn_aten_has(c, name))
        return qn_aten_unsupported(c, "it has no '%s'", name);
    return qn_torch_value_of(out, c->t, qn_aten_value(c, name));
}

qn_status qn_aten_optional(qn_value **out, qn_aten_call *c, const char *name)
{
    *out = NULL;
    return qn_aten_has(c, name) ? qn_aten_tensor(out, c, name) : QN_OK;
}

void qn_aten_items(const qn_torch_value **out, size_t *count, const qn_aten_call *c,
                   const char *name)
{
    const qn_torch_value *value = qn_aten_value(c, name);
    *out = qn_torch_is_items(value) ? value->list->at : value;
    *count = qn_torch_is_items(value) ? value->list->count : !qn_torch_is_none(value);
}

qn_status qn_aten_tensors(qn_value ***out, size_t *count, qn_aten_call *c, const char *name)
{
    const qn_torch_value *items;
    qn_aten_items(&items, count, c, name);
    *out = qn_arena_array(c->t->arena, *count + 1, sizeof **out);
    QN_TRY_ALLOC(c->t->ctx, *out);
    for (size_t i = 0; i < *count; i++)
        QN_TRY(qn_torch_value_of(&(*out)[i], c->t, &items[i]));
    return QN_OK;
}

static qn_status int_of(int64_t *out, const qn_aten_call *c, const qn_torch_value *value,
                        const char *name)
{
    *out = 0;
    if (value->kind == QN_TORCH_INT)
        *out = value->number;
    else if (value->kind == QN_TORCH_BOOL)
        *out = value->truth;
    else if (value->kind == QN_TORCH_REAL && value->real == (double)(int32_t)value->real)
        *out = (int64_t)value->real;
    else
        return qn_aten_unsupported(c, "its '%s' is %s, not a known integer", name,
                                   qn_torch_kind_name(value->kind));
    return QN_OK;
}

qn_status qn_aten_int(int64_t *out, qn_aten_call *c, const char *name)
{
    return int_of(out, c, qn_aten_value(c, name), name);
}

/* A tensor serves where it is a constant. */
qn_status qn_aten_real(double *out, qn_aten_call *c, const char *name)
{
    const qn_torch_value *value = qn_aten_value(c, name);
    qn_value *tensor;
    int64_t number;
    *out = 0;
    if (value->kind == QN_TORCH_REAL) {
        *out = value->real;
        return QN_OK;
    }
    if (value->kind == QN_TORCH_TENSOR) {
        QN_TRY(qn_torch_tensor_value(&tensor, c->t, value->tensor));
        if (tensor->data && tensor->data->rank == 0) {
            qn_load_f64(out, tensor->data->dtype, tensor->data->data, 0, 1);
            return QN_OK;
        }
    }
    QN_TRY(int_of(&number, c, value, name));
    *out = (double)number;
    return QN_OK;
}

bool qn_aten_flag(const qn_aten_call *c, const char *name)
{
    const qn_torch_value *value = qn_aten_value(c, name);
    return (value->kind == QN_TORCH_BOOL && value->truth) ||
           (value->kind == QN_TORCH_INT && value->number != 0);
}

qn_status qn_aten_ints(int64_t *out, size_t *count, qn_aten_call *c, const char *name)
{
    const qn_torch_value *items;
    qn_aten_items(&items, count, c, name);
    if (*count > QN_MAX_RANK)
        return qn_aten_unsupported(c, "its '%s' are %zu", name, *count);
    for (size_t i = 0; i < *count; i++)
        QN_TRY(int_of(&out[i], c, &items[i], name));
    return QN_OK;
}

qn_status qn_aten_each(int64_t *out, size_t count, qn_aten_call *c, const char *name)
{
    size_t given;
    int64_t ints[QN_MAX_RANK];
    QN_TRY(qn_aten_ints(ints, &given, c, name));
    if (given != 1 && given != count)
        return qn_aten_unsupported(c, "its '%s' are %zu where there are %zu axes", name, given,
                                   count);
    for (size_t i = 0; i < count; i++)
        out[i] = ints[given == 1 ? 0 : i];
    return QN_OK;
}

qn_status qn_aten_ranked(qn_value **out, int32_t *rank, qn_aten_call *c, const char *name)
{
    QN_TRY(qn_aten_tensor(out, c, name));
    return qn_torch_rank(rank, c->t, *out);
}

static qn_status count_axis(int64_t *axis, const qn_aten_call *c, int32_t rank)
{
    const int64_t most = QN_MAX(rank, 1);
    if (*axis < -most || *axis >= most)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "there is no axis %lld of %d",
                                     (long long)*axis, rank);
    *axis += *axis < 0 ? most : 0;
    return QN_OK;
}

qn_status qn_aten_axis(int64_t *out, qn_aten_call *c, const char *name, int32_t rank)
{
    QN_TRY(qn_aten_int(out, c, name));
    return count_axis(out, c, rank);
}

qn_status qn_aten_axes(int64_t *out, size_t *count, qn_aten_call *c, const char *name, int32_t rank)
{
    QN_TRY(qn_aten_ints(out, count, c, name));
    for (size_t i = 0; i < *count; i++)
        QN_TRY(count_axis(&out[i], c, rank));
    if (*count)
        return QN_OK;
    *count = (size_t)rank;
    for (int32_t i = 0; i < rank; i++)
        out[i] = i;
    return QN_OK;
}

qn_status qn_aten_dtype(qn_dtype *out, qn_aten_call *c, const char *name, qn_dtype fallback)
{
    int64_t number;
    *out = fallback;
    if (!qn_aten_has(c, name))
        return QN_OK;
    QN_TRY(qn_aten_int(&number, c, name));
    *out = qn_torch_dtype(number);
    if (*out == QN_UNDEFINED)
        return qn_aten_unsupported(c, "tensors of PyTorch's type %lld", (long long)number);
    return QN_OK;
}
