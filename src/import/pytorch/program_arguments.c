/* Arguments of an exported program's operators: names of tensors, numbers, texts, lists of them. */
#include <math.h>
#include <string.h>

#include "import/pytorch/program.h"

static qn_status read_name(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    const qn_torch_value *value;
    const char *name;
    QN_TRY(qn_json_get_text(&name, item));
    value = qn_names_get(&g->values, name);
    if (!value)
        return qn_json_fail(item, QN_E_FORMAT, "nothing computes '%s'", name);
    *out = *value;
    return QN_OK;
}

static qn_status read_int(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    int64_t number;
    (void)g;
    QN_TRY(qn_json_get_int(&number, item, INT64_MIN, INT64_MAX));
    *out = qn_torch_int(number);
    return QN_OK;
}

static qn_status read_bool(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    bool truth;
    (void)g;
    QN_TRY(qn_json_get_bool(&truth, item));
    *out = qn_torch_bool(truth);
    return QN_OK;
}

/* What JSON has no numbers for are words. */
static qn_status read_real(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    double number;
    (void)g;
    if (qn_json_is_text(item)) {
        const char *word;
        QN_TRY(qn_json_get_text(&word, item));
        *out = qn_torch_real(strcmp(word, "Infinity") == 0    ? INFINITY
                             : strcmp(word, "-Infinity") == 0 ? -INFINITY
                                                              : NAN);
        return QN_OK;
    }
    QN_TRY(qn_json_get_double(&number, item));
    *out = qn_torch_real(number);
    return QN_OK;
}

static qn_status read_text(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    const char *text;
    QN_TRY(qn_json_get_text(&text, item));
    *out = qn_torch_text(qn_arena_text(g->t->arena, text, strlen(text)));
    QN_TRY_ALLOC(g->t->ctx, out->text);
    return QN_OK;
}

static qn_status read_dtype(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    int64_t number;
    (void)g;
    QN_TRY(qn_json_get_int(&number, item, 0, 1000));
    const qn_dtype dtype = qn_program_dtype(number);
    if (dtype == QN_UNDEFINED)
        return qn_json_fail(item, QN_E_UNSUPPORTED, "element type %d", (int)number);
    *out = qn_torch_int(qn_torch_dtype_number(dtype));
    return QN_OK;
}

static qn_status read_nothing(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    (void)g;
    (void)item;
    *out = QN_TORCH_NOTHING;
    return QN_OK;
}

/* {"name": ...}; in lists of flat programs the name alone. */
qn_status qn_program_tensor(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item)
{
    qn_json_place name;
    if (qn_json_is_text(item))
        return read_name(out, g, item);
    QN_TRY(qn_json_member(&name, item, "name"));
    return read_name(out, g, &name);
}

static const struct {
    const char *key;
    qn_status (*read)(qn_torch_value *out, qn_program_graph *g, const qn_json_place *item);
    /* A list of them */
    bool list;
} argument_kinds[] = {
    {"as_tensor", qn_program_tensor, false},
    {"as_tensors", qn_program_tensor, true},
    {"as_int", read_int, false},
    {"as_ints", read_int, true},
    {"as_float", read_real, false},
    {"as_floats", read_real, true},
    {"as_bool", read_bool, false},
    {"as_bools", read_bool, true},
    {"as_string", read_text, false},
    {"as_strings", read_text, true},
    {"as_none", read_nothing, false},
    {"as_name", read_name, false},
    {"as_sym_int", qn_program_argument, false},
    {"as_sym_ints", qn_program_argument, true},
    {"as_sym_float", qn_program_argument, false},
    {"as_sym_floats", qn_program_argument, true},
    {"as_sym_bool", qn_program_argument, false},
    {"as_optional_tensor", qn_program_argument, false},
    {"as_optional_tensors", qn_program_argument, true},
    {"as_scalar_type", read_dtype, false},
    {"as_memory_format", read_nothing, false},
    {"as_layout", read_nothing, false},
    {"as_device", read_nothing, false},
};

static qn_status read_list(qn_torch_value *out, qn_program_graph *g, const qn_json_place *list,
                           size_t kind)
{
    size_t count;
    QN_TRY(qn_json_length(&count, list));
    QN_TRY(qn_torch_new_list(out, g->t->ctx, g->t->arena, QN_TORCH_LIST));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place place = qn_json_element(list, i);
        qn_torch_value item;
        QN_TRY(argument_kinds[kind].read(&item, g, &place));
        QN_TRY(qn_torch_push(out->list, g->t->ctx, g->t->arena, &item));
    }
    return QN_OK;
}

/* The object has one member, whose key says what it is. */
qn_status qn_program_argument(qn_torch_value *out, qn_program_graph *g,
                              const qn_json_place *argument)
{
    qn_json_place item;
    for (size_t i = 0; i < QN_COUNT_OF(argument_kinds); i++) {
        if (!qn_program_find(&item, argument, argument_kinds[i].key))
            continue;
        return argument_kinds[i].list ? read_list(out, g, &item, i)
                                      : argument_kinds[i].read(out, g, &item);
    }
    return qn_json_fail(argument, QN_E_UNSUPPORTED, "an argument of a kind that is not read");
}
