/* What converters ask of a layer: its slots, its attributes, and what may be either. */
#include <math.h>
#include <string.h>

#include "import/paddle/paddle.h"

qn_string qn_paddle_word(const char **words)
{
    const char *from = *words + strspn(*words, " ");
    const size_t length = strcspn(from, " ");
    *words = from + length;
    return (qn_string){from, length};
}

static bool is_word(const char *name, qn_string word)
{
    return strncmp(name, word.text, word.length) == 0 && name[word.length] == 0;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

/* The first of these slots that has a variable; NULL: none has. */
static const qn_paddle_slot *slot_of(const qn_paddle_slot *slots, size_t count, const char *names)
{
    for (qn_string word = qn_paddle_word(&names); word.length; word = qn_paddle_word(&names)) {
        for (size_t i = 0; i < count; i++) {
            if (slots[i].count && slots[i].vars[0][0] && is_word(slots[i].name, word))
                return &slots[i];
        }
    }
    return NULL;
}

static const qn_paddle_slot *in_of(const qn_paddle_layer *l, const char *names)
{
    return slot_of(l->op->in, l->op->n_in, names);
}

bool qn_paddle_has(const qn_paddle_layer *l, const char *slot)
{
    return in_of(l, slot) != NULL;
}

size_t qn_paddle_in_count(const qn_paddle_layer *l, const char *slot)
{
    const qn_paddle_slot *s = in_of(l, slot);
    return s ? s->count : 0;
}

size_t qn_paddle_out_count(const qn_paddle_layer *l, const char *slot)
{
    const qn_paddle_slot *s = slot_of(l->op->out, l->op->n_out, slot);
    return s ? s->count : 0;
}

qn_status qn_paddle_in_at(qn_value **out, const qn_paddle_layer *l, const char *slot, size_t i)
{
    const qn_paddle_slot *s = in_of(l, slot);
    if (!s || i >= s->count)
        return qn_paddle_fail(l, QN_E_FORMAT, "it has no input %s", slot);
    return qn_graph_build_find(out, l->b, s->vars[i]);
}

qn_status qn_paddle_in(qn_value **out, const qn_paddle_layer *l, const char *slot)
{
    return qn_paddle_in_at(out, l, slot, 0);
}

qn_status qn_paddle_maybe(qn_value **out, const qn_paddle_layer *l, const char *slot)
{
    *out = NULL;
    return qn_paddle_has(l, slot) ? qn_paddle_in_at(out, l, slot, 0) : QN_OK;
}

/* Gives a value of this layer the variable's name, whoever had it before. */
static qn_status take_name(const qn_paddle_layer *l, qn_value *value, const char *name)
{
    qn_value *holder = qn_graph_value(l->b->graph, name);
    if (value->number < l->first_value || value->is_input || !value->producer || holder == value)
        return QN_OK;
    if (holder && (holder->is_input || holder->number < l->first_value))
        return QN_OK;
    if (holder)
        QN_TRY(qn_value_rename(holder, name)); /* a taken name gets a number */
    return qn_value_rename(value, name);
}

qn_status qn_paddle_out_at(qn_paddle_layer *l, const char *slot, size_t i, qn_value *value)
{
    const qn_paddle_slot *s = slot_of(l->op->out, l->op->n_out, slot);
    if (!s || i >= s->count || !s->vars[i][0])
        return QN_OK;
    QN_TRY(take_name(l, value, s->vars[i]));
    return qn_graph_build_define(l->b, s->vars[i], value);
}

qn_status qn_paddle_out(qn_paddle_layer *l, const char *slot, qn_value *value)
{
    return qn_paddle_out_at(l, slot, 0, value);
}

static bool reads(const qn_paddle_op *op, const char *var)
{
    for (size_t i = 0; i < op->n_in; i++) {
        for (size_t k = 0; k < op->in[i].count; k++) {
            if (strcmp(op->in[i].vars[k], var) == 0)
                return true;
        }
    }
    return false;
}

bool qn_paddle_wants(const qn_paddle_layer *l, const char *slot)
{
    const qn_paddle_slot *s = slot_of(l->op->out, l->op->n_out, slot);
    const qn_paddle_program *p = l->program;
    bool wanted = false;
    for (size_t i = 0; s && !wanted && i < p->n_ops; i++)
        wanted = reads(&p->ops[i], s->vars[0]);
    for (size_t i = 0; s && !wanted && i < p->n_outputs; i++)
        wanted = strcmp(p->outputs[i].var, s->vars[0]) == 0;
    return wanted;
}

qn_status qn_paddle_rank(int32_t *out, const qn_paddle_layer *l, const qn_value *value)
{
    *out = value->type.kind == QN_TYPE_TENSOR ? value->type.rank : -1;
    if (*out < 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "the rank of '%s' is not known", value->name);
    return QN_OK;
}

qn_status qn_paddle_axis(int64_t *axis, const qn_paddle_layer *l, int32_t rank)
{
    if (*axis < -rank || *axis >= rank)
        return qn_paddle_fail(l, QN_E_FORMAT, "there is no axis %lld in rank %d", (long long)*axis,
                              rank);
    *axis += *axis < 0 ? rank : 0;
    return QN_OK;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static const qn_paddle_attr *attr_of(const qn_paddle_layer *l, const char *names)
{
    for (qn_string word = qn_paddle_word(&names); word.length; word = qn_paddle_word(&names)) {
        for (size_t i = 0; i < l->op->n_attrs; i++) {
            if (is_word(l->op->attrs[i].name, word))
                return &l->op->attrs[i];
        }
    }
    return NULL;
}

/* Truncates; what no int64 holds becomes the nearest that does. */
static int64_t whole_of(double real)
{
    if (isnan(real))
        return 0;
    if (real >= 9.2e18)
        return INT64_MAX;
    return real <= -9.2e18 ? INT64_MIN : (int64_t)real;
}

static double real_of(const qn_paddle_attr *attr, double fallback)
{
    if (!attr || attr->kind == QN_PADDLE_TEXT)
        return fallback;
    if (attr->kind == QN_PADDLE_INT)
        return (double)attr->number;
    if (attr->kind == QN_PADDLE_REAL)
        return attr->real;
    return attr->count == 1 ? attr->reals[0] : fallback;
}

static int64_t int_of(const qn_paddle_attr *attr, int64_t fallback)
{
    if (!attr || attr->kind == QN_PADDLE_TEXT)
        return fallback;
    if (attr->kind == QN_PADDLE_INT)
        return attr->number;
    if (attr->kind == QN_PADDLE_INTS)
        return attr->count == 1 ? attr->ints[0] : fallback;
    return whole_of(real_of(attr, (double)fallback));
}

int64_t qn_paddle_int(const qn_paddle_layer *l, const char *names, int64_t fallback)
{
    return int_of(attr_of(l, names), fallback);
}

double qn_paddle_real(const qn_paddle_layer *l, const char *names, double fallback)
{
    return real_of(attr_of(l, names), fallback);
}

const char *qn_paddle_text(const qn_paddle_layer *l, const char *names, const char *fallback)
{
    const qn_paddle_attr *attr = attr_of(l, names);
    return attr && attr->kind == QN_PADDLE_TEXT ? attr->text : fallback;
}

bool qn_paddle_says(const qn_paddle_layer *l, const char *names, const char *word)
{
    return strcmp(qn_paddle_text(l, names, ""), word) == 0;
}

qn_ints qn_paddle_ints(const qn_paddle_layer *l, const char *names)
{
    const qn_paddle_attr *attr = attr_of(l, names);
    if (attr && attr->kind == QN_PADDLE_INT)
        return (qn_ints){&attr->number, 1};
    if (!attr || attr->kind != QN_PADDLE_INTS)
        return (qn_ints){NULL, 0};
    return (qn_ints){attr->ints, attr->count};
}

qn_status qn_paddle_reals(const double **out, size_t *count, const qn_paddle_layer *l,
                          const char *names)
{
    static const double none[1];
    const qn_paddle_attr *attr = attr_of(l, names);
    const bool list = attr && (attr->kind == QN_PADDLE_INTS || attr->kind == QN_PADDLE_REALS);
    const bool one = attr && (attr->kind == QN_PADDLE_INT || attr->kind == QN_PADDLE_REAL);
    *out = list ? attr->reals : one ? &attr->real : none;
    *count = list ? attr->count : one ? 1 : 0;
    if (attr && !list && !one)
        return qn_paddle_fail(l, QN_E_FORMAT, "%s is no list", attr->name);
    return QN_OK;
}

qn_dtype qn_paddle_dtype(const qn_paddle_layer *l, const char *names, qn_dtype fallback)
{
    const qn_paddle_attr *attr = attr_of(l, names);
    if (!attr || (attr->kind != QN_PADDLE_INT && attr->kind != QN_PADDLE_TEXT))
        return fallback;
    const qn_dtype dtype = attr->kind == QN_PADDLE_INT ? qn_paddle_dtype_of(attr->number)
                                                       : qn_dtype_by_name(attr->text);
    return dtype == QN_UNDEFINED ? fallback : dtype;
}

/* ---- Attributes that may be values ----------------------------------------------------------- */

enum { MOST_CONTENTS = 1 << 16 };

static bool load(int64_t *out, const qn_tensor *data, int64_t count)
{
    if (!qn_dtype_is_integer(data->dtype) && !qn_dtype_is_float(data->dtype))
        return false;
    qn_load_i64(out, data->dtype, data->data, 0, count);
    return true;
}

bool qn_paddle_contents(qn_ints *out, const qn_paddle_layer *l, const qn_value *value)
{
    int64_t dims[QN_MAX_RANK], count;
    if (!qn_type_is_static(&value->type, dims) || !qn_dims_count(&count, value->type.rank, dims) ||
        count > MOST_CONTENTS)
        return false;
    if (!value->data && !value->type.elements)
        return false;
    int64_t *ints = qn_arena_array(&l->b->model->arena, (size_t)count + 1, sizeof *ints);
    *out = (qn_ints){ints, (size_t)count};
    if (!ints)
        return false;
    if (value->data)
        return load(ints, value->data, count);
    for (int64_t i = 0; i < count; i++) {
        ints[i] = value->type.elements[i].value;
        if (!qn_element_known(value->type.elements[i]))
            return false;
    }
    return true;
}

static qn_status fail_unknown(const qn_paddle_layer *l, const qn_paddle_slot *slot)
{
    return qn_paddle_fail(l, QN_E_UNSUPPORTED, "its %s is computed; only constants can be read",
                          slot->name);
}

qn_status qn_paddle_number(int64_t *out, const qn_paddle_layer *l, const char *names,
                           int64_t fallback)
{
    const qn_paddle_slot *slot = in_of(l, names);
    qn_value *value;
    qn_ints ints;
    *out = qn_paddle_int(l, names, fallback);
    if (!slot)
        return QN_OK;
    QN_TRY(qn_graph_build_find(&value, l->b, slot->vars[0]));
    if (!qn_paddle_contents(&ints, l, value) || ints.count != 1)
        return fail_unknown(l, slot);
    *out = ints.at[0];
    return QN_OK;
}

qn_status qn_paddle_scalar(double *out, const qn_paddle_layer *l, const char *names,
                           double fallback)
{
    const qn_paddle_slot *slot = in_of(l, names);
    qn_value *value;
    int64_t dims[QN_MAX_RANK], count = 0;
    *out = qn_paddle_real(l, names, fallback);
    if (!slot)
        return QN_OK;
    QN_TRY(qn_graph_build_find(&value, l->b, slot->vars[0]));
    if (value->data && qn_type_is_static(&value->type, dims))
        (void)qn_dims_count(&count, value->type.rank, dims);
    if (count == 1 && qn_dtype_get(value->data->dtype)->kind != QN_KIND_STRING) {
        qn_load_f64(out, value->data->dtype, value->data->data, 0, 1);
        return QN_OK;
    }
    int64_t whole;
    QN_TRY(qn_paddle_number(&whole, l, names, 0));
    *out = (double)whole;
    return QN_OK;
}

/* The contents of the slot's values, one behind the other. */
static qn_status join_contents(qn_ints *out, const qn_paddle_layer *l, const qn_paddle_slot *slot)
{
    size_t capacity = 0, count = 0;
    int64_t *all = NULL;
    for (size_t i = 0; i < slot->count; i++) {
        qn_value *value;
        qn_ints part;
        QN_TRY(qn_graph_build_find(&value, l->b, slot->vars[i]));
        if (!qn_paddle_contents(&part, l, value))
            return fail_unknown(l, slot);
        if (count + part.count > capacity) {
            capacity = 2 * (count + part.count);
            all = qn_arena_widen(&l->b->model->arena, all, count, capacity, sizeof *all);
            QN_TRY_ALLOC(l->b->ctx, all);
        }
        if (part.count)
            memcpy(all + count, part.at, part.count * sizeof *all);
        count += part.count;
    }
    *out = (qn_ints){all, count};
    return QN_OK;
}

qn_status qn_paddle_list(qn_ints *out, const qn_paddle_layer *l, const char *names)
{
    const qn_paddle_slot *slot = in_of(l, names);
    *out = qn_paddle_ints(l, names);
    return slot ? join_contents(out, l, slot) : QN_OK;
}

/* One value of a list of scalars, or a list itself, as int64[n]. */
static qn_status shape_part(qn_value **out, const qn_paddle_layer *l, const char *var)
{
    static const int64_t flat[] = {-1}, first[] = {0};
    QN_TRY(qn_graph_build_find(out, l->b, var));
    QN_TRY(qn_paddle_cast(out, l, *out, QN_INT64));
    if ((*out)->type.rank == 0)
        return qn_paddle_unsqueeze(out, l, *out, first, 1);
    return (*out)->type.rank == 1 ? QN_OK : qn_paddle_reshape(out, l, *out, flat, 1);
}

qn_status qn_paddle_shape(qn_value **out, const qn_paddle_layer *l, const char *names)
{
    const qn_paddle_slot *slot = in_of(l, names);
    const qn_ints ints = qn_paddle_ints(l, names);
    qn_value *parts[QN_MAX_RANK] = {NULL};
    *out = NULL;
    if (!slot)
        return ints.at ? qn_graph_build_ints(out, l->b, ints.at, ints.count) : QN_OK;
    if (slot->count > QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_FORMAT, "its %s has %zu values", slot->name, slot->count);
    for (size_t i = 0; i < slot->count; i++)
        QN_TRY(shape_part(&parts[i], l, slot->vars[i]));
    qn_ints known;
    *out = parts[0];
    if (slot->count > 1)
        QN_TRY(qn_paddle_concat(out, l, parts, slot->count, 0));
    if (qn_paddle_contents(&known, l, *out))
        return qn_graph_build_ints(out, l->b, known.at, known.count);
    return QN_OK;
}
