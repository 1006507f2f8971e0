/* PIR, the form of PaddlePaddle 3's inference.json: values are numbers, inputs of operators have
 * places instead of names. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "import/paddle/paddle.h"

typedef struct pir_reader {
    qn_paddle_program *p;
    /* "%5" -> the variables that the value stands for, a qn_paddle_slot */
    qn_names values;
    /* Names of parameters, which may be there more than once */
    qn_names parameters;
    /* The layer's path in the user's program: "PPLCNet/Conv2D/" */
    const char *path;
} pir_reader;

/* ---- Values ---------------------------------------------------------------------------------- */

static qn_status key_of(char *key, size_t size, const qn_json_place *value)
{
    qn_json_place number = *value;
    int64_t id;
    QN_TRY(qn_json_member(&number, value, "%"));
    QN_TRY(qn_json_get_int(&id, &number, INT32_MIN, INT64_MAX));
    snprintf(key, size, "%%%lld", (long long)id);
    return QN_OK;
}

static qn_status define(pir_reader *r, const char *key, const char *const *vars, size_t count)
{
    qn_arena *arena = r->p->arena;
    qn_paddle_slot *slot = qn_arena_alloc(arena, sizeof *slot);
    const char *kept = qn_arena_text(arena, key, strlen(key));
    QN_TRY_ALLOC(r->p->ctx, slot);
    QN_TRY_ALLOC(r->p->ctx, kept);
    slot->name = "";
    slot->count = count;
    slot->vars = qn_arena_array(arena, count + 1, sizeof *slot->vars);
    QN_TRY_ALLOC(r->p->ctx, slot->vars);
    for (size_t i = 0; i < count; i++)
        slot->vars[i] = vars[i];
    return qn_names_set(&r->values, kept, slot);
}

/* A value without a number, or with one that is none, is an input left out. */
static qn_status find(const qn_paddle_slot **out, const pir_reader *r, const qn_json_place *value)
{
    static const qn_paddle_slot empty = {.name = ""};
    char key[32];
    QN_TRY(key_of(key, sizeof key, value));
    *out = qn_names_get(&r->values, key);
    if (!*out && (key[1] == '-' || strcmp(key, "%0") == 0))
        *out = &empty;
    return *out ? QN_OK : qn_json_fail(value, QN_E_FORMAT, "nothing gives the value %s", key);
}

/* ---- Types ----------------------------------------------------------------------------------- */

static qn_dtype dtype_of(const char *word)
{
    static const struct {
        const char *word;
        qn_dtype dtype;
    } rows[] = {
        {"bool", QN_BOOL},     {"ui8", QN_UINT8},   {"i8", QN_INT8},     {"i16", QN_INT16},
        {"i32", QN_INT32},     {"i64", QN_INT64},   {"index", QN_INT64}, {"f16", QN_FLOAT16},
        {"bf16", QN_BFLOAT16}, {"f32", QN_FLOAT32}, {"f64", QN_FLOAT64},
    };
    const char *at = strstr(word, ".t_");
    for (size_t i = 0; at && i < QN_COUNT_OF(rows); i++) {
        if (strcmp(at + 3, rows[i].word) == 0)
            return rows[i].dtype;
    }
    return QN_UNDEFINED;
}

/* {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [-1, 3], ...]} */
static qn_status read_type(qn_type *type, const qn_json_place *place)
{
    qn_json_place parts = *place;
    const char *word;
    size_t rank;
    QN_TRY(qn_json_member(&parts, place, "D"));
    size_t count;
    QN_TRY(qn_json_length(&count, &parts));
    if (count < 2)
        return qn_json_fail(&parts, QN_E_FORMAT, "is no type of a tensor");
    const qn_json_place element = qn_json_element(&parts, 0), dims = qn_json_element(&parts, 1);
    QN_TRY(qn_json_member_text(&word, &element, "#"));
    QN_TRY(qn_json_length(&rank, &dims));
    *type = (qn_type){.kind = QN_TYPE_TENSOR, .dtype = dtype_of(word), .rank = (int32_t)rank};
    if (type->dtype == QN_UNDEFINED || rank > QN_MAX_RANK)
        return qn_json_fail(place, QN_E_UNSUPPORTED, "is a type that is not known");
    for (size_t i = 0; i < rank; i++) {
        const qn_json_place dim = qn_json_element(&dims, i);
        int64_t value;
        QN_TRY(qn_json_get_int(&value, &dim, INT64_MIN, INT64_MAX));
        type->dims[i] = value < 0 ? qn_dim_unknown() : qn_dim_of(value);
    }
    return QN_OK;
}

/* ---- Attributes ------------------------------------------------------------------------------ */

/* An element of a list: a number, or an attribute of its own. */
static qn_status read_element(double *real, int64_t *number, bool *whole,
                              const qn_json_place *place)
{
    qn_json_place item = *place;
    bool truth;
    if (qn_json_is_object(place))
        QN_TRY(qn_json_member(&item, place, "D"));
    if (qn_json_is_bool(&item)) {
        QN_TRY(qn_json_get_bool(&truth, &item));
        *number = truth;
    } else if (qn_json_is_int(&item)) {
        QN_TRY(qn_json_get_int(number, &item, INT64_MIN, INT64_MAX));
    } else if (qn_json_is_text(&item) || qn_json_is_object(&item) || qn_json_is_list(&item)) {
        *number = 0; /* words and places: no row asks for lists of them */
    } else {
        *whole = false;
        return qn_json_get_double(real, &item);
    }
    *real = (double)*number;
    return QN_OK;
}

static qn_status read_list(qn_paddle_attr *out, const pir_reader *r, const qn_json_place *list)
{
    bool whole = true;
    QN_TRY(qn_json_length(&out->count, list));
    int64_t *ints = qn_arena_array(r->p->arena, out->count + 1, sizeof *ints);
    double *reals = qn_arena_array(r->p->arena, out->count + 1, sizeof *reals);
    QN_TRY_ALLOC(r->p->ctx, ints);
    QN_TRY_ALLOC(r->p->ctx, reals);
    for (size_t i = 0; i < out->count; i++) {
        const qn_json_place element = qn_json_element(list, i);
        QN_TRY(read_element(&reals[i], &ints[i], &whole, &element));
    }
    out->kind = whole ? QN_PADDLE_INTS : QN_PADDLE_REALS;
    out->ints = whole ? ints : NULL;
    out->reals = reals;
    return QN_OK;
}

static qn_status read_value(qn_paddle_attr *out, const pir_reader *r, const qn_json_place *data)
{
    bool whole = true;
    const char *text;
    out->kind = QN_PADDLE_TEXT;
    out->text = "";
    if (qn_json_is_list(data))
        return read_list(out, r, data);
    if (qn_json_is_text(data)) {
        QN_TRY(qn_json_get_text(&text, data));
        out->text = qn_arena_text(r->p->arena, text, strlen(text));
        QN_TRY_ALLOC(r->p->ctx, out->text);
        return QN_OK;
    }
    if (qn_json_is_object(data))
        return QN_OK;
    QN_TRY(read_element(&out->real, &out->number, &whole, data));
    out->kind = whole ? QN_PADDLE_INT : QN_PADDLE_REAL;
    return QN_OK;
}

/* "INF", "-INF", "NAN": what JSON has no numbers for. */
static qn_status read_special(qn_paddle_attr *out, const qn_json_place *place)
{
    const char *text;
    QN_TRY(qn_json_get_text(&text, place));
    out->kind = QN_PADDLE_REAL;
    if (!qn_number_parse(&out->real, text, strlen(text)))
        return qn_json_fail(place, QN_E_FORMAT, "is no number");
    return QN_OK;
}

/* {"N": "groups", "AT": {"#": "0.a_i32", "D": 1}}; without D it has no contents. */
static qn_status read_attr(qn_paddle_attr *out, const pir_reader *r, const qn_json_place *place)
{
    qn_json_place value = *place, data = *place;
    QN_TRY(qn_json_member_copy(&out->name, r->p->arena, place, "N"));
    QN_TRY(qn_json_member(&value, place, "AT"));
    if (qn_json_is_object(&value) && qn_json_find(&data, &value, "VD"))
        return read_special(out, &data);
    if (!qn_json_is_object(&value) || !qn_json_find(&data, &value, "D")) {
        out->kind = QN_PADDLE_TEXT;
        out->text = "";
        return QN_OK;
    }
    return read_value(out, r, &data);
}

static qn_status read_attrs(qn_paddle_op *op, const pir_reader *r, const qn_json_place *place)
{
    qn_json_place list = *place;
    if (!qn_json_find(&list, place, "A"))
        return QN_OK;
    QN_TRY(qn_json_length(&op->n_attrs, &list));
    op->attrs = qn_arena_array(r->p->arena, op->n_attrs + 1, sizeof *op->attrs);
    QN_TRY_ALLOC(r->p->ctx, op->attrs);
    for (size_t i = 0; i < op->n_attrs; i++) {
        const qn_json_place attr = qn_json_element(&list, i);
        QN_TRY(read_attr(&op->attrs[i], r, &attr));
    }
    return QN_OK;
}

static const qn_paddle_attr *attr_of(const qn_paddle_op *op, const char *name)
{
    for (size_t i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, name) == 0)
            return &op->attrs[i];
    }
    return NULL;
}

/* ---- Inputs and outputs of operators --------------------------------------------------------- */

static qn_status name_slot(qn_paddle_slot *slot, const pir_reader *r, const char **names, size_t i)
{
    const qn_string word = qn_paddle_word(names);
    slot->name = word.length ? qn_arena_text(r->p->arena, word.text, word.length)
                             : qn_arena_format(r->p->arena, "#%zu", i);
    QN_TRY_ALLOC(r->p->ctx, slot->name);
    return QN_OK;
}

static qn_status read_inputs(qn_paddle_op *op, const pir_reader *r, const qn_json_place *place)
{
    qn_json_place list = *place;
    const char *names = op->row ? op->row->in : "";
    if (!qn_json_find(&list, place, "I"))
        return QN_OK;
    QN_TRY(qn_json_length(&op->n_in, &list));
    op->in = qn_arena_array(r->p->arena, op->n_in + 1, sizeof *op->in);
    QN_TRY_ALLOC(r->p->ctx, op->in);
    for (size_t i = 0; i < op->n_in; i++) {
        const qn_json_place value = qn_json_element(&list, i);
        const qn_paddle_slot *found;
        QN_TRY(find(&found, r, &value));
        op->in[i] = *found;
        QN_TRY(name_slot(&op->in[i], r, &names, i));
    }
    return QN_OK;
}

/* How many tensors the value stands for: one, or those of a list. */
static qn_status count_of(size_t *count, const qn_json_place *value)
{
    qn_json_place type = *value, parts = *value;
    const char *word;
    *count = 1;
    if (!qn_json_find(&type, value, "TT") || !qn_json_is_object(&type))
        return QN_OK;
    QN_TRY(qn_json_member_text(&word, &type, "#"));
    if (!strstr(word, ".t_vec"))
        return QN_OK;
    QN_TRY(qn_json_member(&parts, &type, "D"));
    return qn_json_length(count, &parts);
}

/* Variables are called by the layer's path, the operator and the value's number. */
static qn_status read_output(qn_paddle_slot *slot, pir_reader *r, const qn_paddle_op *op,
                             const qn_json_place *value)
{
    char key[32];
    QN_TRY(key_of(key, sizeof key, value));
    QN_TRY(count_of(&slot->count, value));
    slot->vars = qn_arena_array(r->p->arena, slot->count + 1, sizeof *slot->vars);
    QN_TRY_ALLOC(r->p->ctx, slot->vars);
    for (size_t k = 0; k < slot->count; k++) {
        slot->vars[k] =
            slot->count == 1
                ? qn_arena_format(r->p->arena, "%s%s_%s", r->path, op->type, key + 1)
                : qn_arena_format(r->p->arena, "%s%s_%s.%zu", r->path, op->type, key + 1, k);
        QN_TRY_ALLOC(r->p->ctx, slot->vars[k]);
    }
    return define(r, key, slot->vars, slot->count);
}

static qn_status read_outputs(qn_paddle_op *op, pir_reader *r, const qn_json_place *place)
{
    qn_json_place list = *place;
    const char *names = op->row ? op->row->out : "";
    if (!qn_json_find(&list, place, "O"))
        return QN_OK;
    QN_TRY(qn_json_length(&op->n_out, &list));
    op->out = qn_arena_array(r->p->arena, op->n_out + 1, sizeof *op->out);
    QN_TRY_ALLOC(r->p->ctx, op->out);
    for (size_t i = 0; i < op->n_out; i++) {
        const qn_json_place value = qn_json_element(&list, i);
        QN_TRY(read_output(&op->out[i], r, op, &value));
        QN_TRY(name_slot(&op->out[i], r, &names, i));
    }
    return QN_OK;
}

/* ---- Operators that are none ----------------------------------------------------------------- */

/* Whether the file of parameters has it: the first of its outputs' attributes. */
static bool is_stored(const qn_json_place *place)
{
    qn_json_place flags = *place;
    int64_t stored = 1;
    size_t count;
    if (!qn_json_find(&flags, place, "OA") || !qn_json_is_list(&flags) ||
        qn_json_length(&count, &flags) != QN_OK || count == 0)
        return true;
    const qn_json_place flag = qn_json_element(&flags, 0);
    return !qn_json_is_int(&flag) || qn_json_get_int(&stored, &flag, 0, 1) != QN_OK || stored;
}

/* {"#": "p", "A": [_, _, _, "name"], "O": {"%": 1, "TT": ...}, "OA": [1, _, _]} */
static qn_status read_parameter(pir_reader *r, const qn_json_place *place)
{
    qn_paddle_program *p = r->p;
    qn_json_place attrs = *place, value = *place, type = *place;
    const char *name;
    char key[32];
    size_t count;
    QN_TRY(qn_json_member(&attrs, place, "A"));
    QN_TRY(qn_json_length(&count, &attrs));
    QN_TRY(qn_json_member(&value, place, "O"));
    QN_TRY(qn_json_member(&type, &value, "TT"));
    if (count < 4)
        return qn_json_fail(&attrs, QN_E_FORMAT, "a parameter has four attributes");
    const qn_json_place last = qn_json_element(&attrs, 3);
    QN_TRY(qn_json_get_text(&name, &last));
    name = qn_arena_text(p->arena, name, strlen(name));
    QN_TRY_ALLOC(p->ctx, name);
    QN_TRY(key_of(key, sizeof key, &value));
    QN_TRY(define(r, key, &name, 1));
    if (!is_stored(place) || qn_names_get(&r->parameters, name))
        return QN_OK;
    QN_TRY(qn_names_set(&r->parameters, name, (void *)(uintptr_t)name));
    QN_TRY_GROW(p->ctx, p->parameters, p->parameters_capacity, p->n_parameters + 1);
    qn_paddle_parameter *parameter = &p->parameters[p->n_parameters++];
    *parameter = (qn_paddle_parameter){.name = name};
    return read_type(&parameter->type, &type);
}

/* pd_op.data: an input of the model under the name that it has in the program. */
static qn_status add_input(pir_reader *r, const qn_paddle_op *op, const qn_json_place *place)
{
    qn_paddle_program *p = r->p;
    qn_json_place values = *place, type = *place;
    const qn_paddle_attr *name = attr_of(op, "name");
    char key[32];
    size_t count;
    QN_TRY(qn_json_member(&values, place, "O"));
    QN_TRY(qn_json_length(&count, &values));
    if (count != 1 || !name || name->kind != QN_PADDLE_TEXT)
        return qn_json_fail(place, QN_E_FORMAT, "an input has one value and a name");
    const qn_json_place value = qn_json_element(&values, 0);
    QN_TRY(qn_json_member(&type, &value, "TT"));
    QN_TRY_GROW(p->ctx, p->inputs, p->inputs_capacity, p->n_inputs + 1);
    qn_paddle_port *port = &p->inputs[p->n_inputs++];
    *port = (qn_paddle_port){.name = name->text, .var = name->text, .place = (int64_t)p->n_inputs};
    QN_TRY(read_type(&port->type, &type));
    QN_TRY(key_of(key, sizeof key, &value));
    return define(r, key, &name->text, 1);
}

static qn_status add_output(pir_reader *r, const qn_paddle_op *op, const qn_json_place *place)
{
    qn_paddle_program *p = r->p;
    const qn_paddle_attr *name = attr_of(op, "name"), *column = attr_of(op, "col");
    if (!name || name->kind != QN_PADDLE_TEXT || op->n_in != 1 || op->in[0].count != 1)
        return qn_json_fail(place, QN_E_FORMAT, "an output has one value and a name");
    QN_TRY_GROW(p->ctx, p->outputs, p->outputs_capacity, p->n_outputs + 1);
    p->outputs[p->n_outputs++] = (qn_paddle_port){
        .name = name->text, .var = op->in[0].vars[0], .place = column ? column->number : 0};
    return QN_OK;
}

/* builtin.combine makes a list of values, builtin.split gives its parts, builtin.slice one. */
static qn_status read_list_op(pir_reader *r, const qn_paddle_op *op, const qn_json_place *place)
{
    qn_json_place values = *place;
    const char **vars = NULL;
    size_t n_vars = 0, n_out, capacity = 0;
    const qn_paddle_attr *index = attr_of(op, "index");
    for (size_t i = 0; i < op->n_in; i++)
        n_vars += op->in[i].count;
    vars = qn_arena_array(r->p->arena, n_vars + 1, sizeof *vars);
    QN_TRY_ALLOC(r->p->ctx, vars);
    for (size_t i = 0; i < op->n_in; i++) {
        for (size_t k = 0; k < op->in[i].count; k++)
            vars[capacity++] = op->in[i].vars[k];
    }
    QN_TRY(qn_json_member(&values, place, "O"));
    QN_TRY(qn_json_length(&n_out, &values));
    const size_t first = index && index->number > 0 ? (size_t)index->number : 0;
    const bool combines = strcmp(op->type, "combine") == 0;
    if (combines ? n_out != 1 : first >= n_vars || n_out > n_vars - first)
        return qn_json_fail(place, QN_E_FORMAT, "the list has %zu values", n_vars);
    for (size_t i = 0; i < n_out; i++) {
        const qn_json_place value = qn_json_element(&values, i);
        char key[32];
        QN_TRY(key_of(key, sizeof key, &value));
        QN_TRY(combines ? define(r, key, vars, n_vars) : define(r, key, &vars[first + i], 1));
    }
    return QN_OK;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* "/PPLCNet/Conv2D/" -> "PPLCNet/Conv2D/" */
static void set_path(pir_reader *r, const qn_paddle_op *op)
{
    const qn_paddle_attr *path = attr_of(op, "struct_name");
    r->path = path && path->kind == QN_PADDLE_TEXT ? path->text : "";
    while (*r->path == '/')
        r->path++;
}

static qn_status read_op(pir_reader *r, const qn_json_place *place)
{
    qn_paddle_program *p = r->p;
    qn_paddle_op op = {.type = ""};
    const char *word;
    QN_TRY(qn_json_member_copy(&word, p->arena, place, "#"));
    if (strcmp(word, "p") == 0 || strcmp(word, "0.parameter") == 0)
        return read_parameter(r, place);
    const char *dot = strchr(word, '.');
    const bool builtin = strncmp(word, "0.", 2) == 0;
    op.type = dot ? dot + 1 : word;
    op.row = builtin ? NULL : qn_paddle_row_of(op.type, true);
    QN_TRY(read_attrs(&op, r, place));
    QN_TRY(read_inputs(&op, r, place));
    if (!builtin && (strcmp(op.type, "data") == 0 || strcmp(op.type, "feed") == 0))
        return add_input(r, &op, place);
    if (!builtin && strcmp(op.type, "fetch") == 0)
        return add_output(r, &op, place);
    if (builtin && (strcmp(op.type, "combine") == 0 || strcmp(op.type, "split") == 0 ||
                    strcmp(op.type, "slice") == 0))
        return read_list_op(r, &op, place);
    set_path(r, &op);
    QN_TRY(read_outputs(&op, r, place));
    QN_TRY_GROW(p->ctx, p->ops, p->ops_capacity, p->n_ops + 1);
    p->ops[p->n_ops++] = op;
    return QN_OK;
}

/* program.regions[0].blocks[0].ops */
static qn_status read_root(pir_reader *r, const qn_json_place *root)
{
    qn_json_place program = *root, regions = *root, blocks = *root, ops = *root;
    size_t count;
    QN_TRY(qn_json_member(&program, root, "program"));
    QN_TRY(qn_json_member(&regions, &program, "regions"));
    QN_TRY(qn_json_length(&count, &regions));
    if (count == 0)
        return qn_json_fail(&regions, QN_E_FORMAT, "the program has no region");
    const qn_json_place region = qn_json_element(&regions, 0);
    QN_TRY(qn_json_member(&blocks, &region, "blocks"));
    QN_TRY(qn_json_length(&count, &blocks));
    if (count == 0)
        return qn_json_fail(&blocks, QN_E_FORMAT, "the region has no block");
    const qn_json_place block = qn_json_element(&blocks, 0);
    QN_TRY(qn_json_member(&ops, &block, "ops"));
    QN_TRY(qn_json_length(&count, &ops));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place op = qn_json_element(&ops, i);
        QN_TRY(read_op(r, &op));
    }
    return QN_OK;
}

qn_status qn_paddle_read_pir(qn_paddle_program *p, const void *data, size_t size)
{
    pir_reader r = {.p = p, .path = ""};
    qn_json_document *document;
    qn_names_init(&r.values, p->ctx);
    qn_names_init(&r.parameters, p->ctx);
    qn_status status = qn_json_read(&document, p->ctx, data, size, "the program");
    if (status == QN_OK) {
        const qn_json_place root = qn_json_root(document);
        status = read_root(&r, &root);
        qn_json_document_free(document);
    }
    qn_names_free(&r.values);
    qn_names_free(&r.parameters);
    return status;
}
