/* ProgramDesc, the form of .pdmodel and __model__: blocks of operators over named variables. */
#include <stdlib.h>
#include <string.h>

#include "import/paddle/paddle.h"
#include "proto/proto.h"

enum {
#define BEGIN(message)
#define FIELD(constant, name, number, kind, label) constant = number,
#define MESSAGE(constant, name, number, label, message) constant = number,
#define END(message, name)
#include "import/paddle/schema.def"
#undef BEGIN
#undef FIELD
#undef MESSAGE
#undef END
};

#define BEGIN(message) static const qn_proto_field message##_fields[] = {
#define FIELD(constant, name, number, kind, label)                                                 \
    {#name, number, QN_PROTO_##kind, QN_PROTO_##label, NULL, NULL},
#define MESSAGE(constant, name, number, label, message)                                            \
    {#name, number, QN_PROTO_MESSAGE, QN_PROTO_##label, &message##_schema, NULL},
#define END(message, name)                                                                         \
    }                                                                                              \
    ;                                                                                              \
    static const qn_proto_schema message##_schema = {name, message##_fields,                       \
                                                     QN_COUNT_OF(message##_fields)};
#include "import/paddle/schema.def"
#undef BEGIN
#undef FIELD
#undef MESSAGE
#undef END

/* ---- The program ----------------------------------------------------------------------------- */

void qn_paddle_program_init(qn_paddle_program *p, qn_context *ctx, qn_arena *arena)
{
    *p = (qn_paddle_program){.ctx = ctx, .arena = arena};
}

void qn_paddle_program_free(qn_paddle_program *p)
{
    qn_free(p->ctx, p->ops);
    qn_free(p->ctx, p->parameters);
    qn_free(p->ctx, p->inputs);
    qn_free(p->ctx, p->outputs);
}

static int by_place(const void *left, const void *right)
{
    const qn_paddle_port *a = left, *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

void qn_paddle_sort_ports(qn_paddle_program *p)
{
    if (p->n_inputs)
        qsort(p->inputs, p->n_inputs, sizeof *p->inputs, by_place);
    if (p->n_outputs)
        qsort(p->outputs, p->n_outputs, sizeof *p->outputs, by_place);
}

qn_dtype qn_paddle_dtype_of(int64_t number)
{
    static const qn_dtype types[] = {
        [0] = QN_BOOL,    [1] = QN_INT16,     [2] = QN_INT32,         [3] = QN_INT64,
        [4] = QN_FLOAT16, [5] = QN_FLOAT32,   [6] = QN_FLOAT64,       [20] = QN_UINT8,
        [21] = QN_INT8,   [22] = QN_BFLOAT16, [32] = QN_FLOAT8E4M3FN, [33] = QN_FLOAT8E5M2,
    };
    return number >= 0 && number < (int64_t)QN_COUNT_OF(types) ? types[number] : QN_UNDEFINED;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Dims below 0 are open. */
static qn_status read_type(qn_type *type, const qn_paddle_program *p,
                           const qn_proto_message *tensor, const char *name)
{
    const size_t rank = qn_proto_count(tensor, TENSOR_DIMS);
    qn_proto_numbers dims = qn_proto_numbers_of(tensor, TENSOR_DIMS);
    int64_t dim;
    *type = (qn_type){.kind = QN_TYPE_TENSOR, .rank = (int32_t)rank};
    type->dtype = qn_paddle_dtype_of(qn_proto_int(tensor, TENSOR_DATA_TYPE, -1));
    if (type->dtype == QN_UNDEFINED)
        return qn_fail(p->ctx, QN_E_UNSUPPORTED, "'%s' has elements of a type that is not known",
                       name);
    if (rank > QN_MAX_RANK)
        return qn_fail(p->ctx, QN_E_UNSUPPORTED, "'%s' has %zu dimensions; at most %d are known",
                       name, rank, QN_MAX_RANK);
    for (size_t i = 0; qn_proto_next_int(&dim, &dims); i++)
        type->dims[i] = dim < 0 ? qn_dim_unknown() : qn_dim_of(dim);
    return QN_OK;
}

static qn_status copy_text(const char **out, const qn_paddle_program *p, qn_string text)
{
    *out = qn_arena_text(p->arena, text.text, text.length);
    QN_TRY_ALLOC(p->ctx, *out);
    return QN_OK;
}

static qn_status read_numbers(qn_paddle_attr *out, const qn_paddle_program *p,
                              const qn_proto_message *attr, uint32_t field, bool whole)
{
    qn_proto_numbers numbers = qn_proto_numbers_of(attr, field);
    const size_t count = qn_proto_count(attr, field);
    int64_t *ints = qn_arena_array(p->arena, count + 1, sizeof *ints);
    double *reals = qn_arena_array(p->arena, count + 1, sizeof *reals);
    QN_TRY_ALLOC(p->ctx, ints);
    QN_TRY_ALLOC(p->ctx, reals);
    for (size_t i = 0; i < count; i++) {
        if (whole && qn_proto_next_int(&ints[i], &numbers))
            reals[i] = (double)ints[i];
        else if (!whole)
            (void)qn_proto_next_real(&reals[i], &numbers);
    }
    out->kind = whole ? QN_PADDLE_INTS : QN_PADDLE_REALS;
    out->ints = whole ? ints : NULL;
    out->reals = reals;
    out->count = count;
    return QN_OK;
}

static double read_scalar(const qn_proto_message *scalar)
{
    if (qn_proto_has(scalar, SCALAR_R))
        return qn_proto_real(scalar, SCALAR_R, 0);
    if (qn_proto_has(scalar, SCALAR_I))
        return (double)qn_proto_int(scalar, SCALAR_I, 0);
    return (double)qn_proto_int(scalar, SCALAR_B, 0);
}

static qn_status read_scalars(qn_paddle_attr *out, const qn_paddle_program *p,
                              const qn_proto_message *attr)
{
    const size_t count = qn_proto_count(attr, ATTR_SCALARS);
    double *reals = qn_arena_array(p->arena, count + 1, sizeof *reals);
    QN_TRY_ALLOC(p->ctx, reals);
    for (size_t i = 0; i < count; i++)
        reals[i] = read_scalar(qn_proto_message_at(attr, ATTR_SCALARS, i));
    out->kind = QN_PADDLE_REALS;
    out->reals = reals;
    out->count = count;
    return QN_OK;
}

/* AttrType -> the field that has it. */
typedef struct attr_form {
    uint32_t field;
    qn_paddle_kind kind;
} attr_form;

static const attr_form attr_forms[] = {
    [0] = {ATTR_I, QN_PADDLE_INT},          [1] = {ATTR_F, QN_PADDLE_REAL},
    [2] = {ATTR_S, QN_PADDLE_TEXT},         [3] = {ATTR_INTS, QN_PADDLE_INTS},
    [4] = {ATTR_FLOATS, QN_PADDLE_REALS},   [6] = {ATTR_B, QN_PADDLE_INT},
    [7] = {ATTR_BOOLS, QN_PADDLE_INTS},     [8] = {ATTR_BLOCK, QN_PADDLE_INT},
    [9] = {ATTR_L, QN_PADDLE_INT},          [11] = {ATTR_LONGS, QN_PADDLE_INTS},
    [12] = {ATTR_DOUBLES, QN_PADDLE_REALS}, [15] = {ATTR_DOUBLE, QN_PADDLE_REAL},
    [16] = {ATTR_SCALAR, QN_PADDLE_REAL},   [17] = {ATTR_SCALARS, QN_PADDLE_REALS},
};

/* Kinds that no row asks for leave a text that is empty. */
static qn_status read_attr(qn_paddle_attr *out, const qn_paddle_program *p,
                           const qn_proto_message *attr)
{
    const int64_t type = qn_proto_int(attr, ATTR_TYPE, -1);
    QN_TRY(copy_text(&out->name, p, qn_proto_string(attr, ATTR_NAME)));
    out->kind = QN_PADDLE_TEXT;
    out->text = "";
    if (type < 0 || type >= (int64_t)QN_COUNT_OF(attr_forms) || attr_forms[type].field == 0)
        return QN_OK;
    const attr_form form = attr_forms[type];
    out->kind = form.kind;
    if (form.field == ATTR_SCALARS)
        return read_scalars(out, p, attr);
    if (form.kind == QN_PADDLE_INTS || form.kind == QN_PADDLE_REALS)
        return read_numbers(out, p, attr, form.field, form.kind == QN_PADDLE_INTS);
    if (form.kind == QN_PADDLE_TEXT)
        return copy_text(&out->text, p, qn_proto_string(attr, form.field));
    if (form.field == ATTR_SCALAR)
        out->real = read_scalar(qn_proto_get_message(attr, ATTR_SCALAR));
    else if (form.kind == QN_PADDLE_REAL)
        out->real = qn_proto_real(attr, form.field, 0);
    else
        out->number = qn_proto_int(attr, form.field, 0);
    if (form.kind == QN_PADDLE_INT)
        out->real = (double)out->number;
    return QN_OK;
}

static qn_status read_slots(qn_paddle_slot **out, size_t *count, const qn_paddle_program *p,
                            const qn_proto_message *op, uint32_t field)
{
    *count = qn_proto_count(op, field);
    *out = qn_arena_array(p->arena, *count + 1, sizeof **out);
    QN_TRY_ALLOC(p->ctx, *out);
    for (size_t i = 0; i < *count; i++) {
        const qn_proto_message *slot = qn_proto_message_at(op, field, i);
        qn_paddle_slot *s = &(*out)[i];
        QN_TRY(copy_text(&s->name, p, qn_proto_string(slot, SLOT_PARAMETER)));
        s->count = qn_proto_count(slot, SLOT_ARGUMENTS);
        s->vars = qn_arena_array(p->arena, s->count + 1, sizeof *s->vars);
        QN_TRY_ALLOC(p->ctx, s->vars);
        for (size_t k = 0; k < s->count; k++)
            QN_TRY(copy_text(&s->vars[k], p, qn_proto_string_at(slot, SLOT_ARGUMENTS, k)));
    }
    return QN_OK;
}

static qn_status read_op(qn_paddle_op *op, const qn_paddle_program *p,
                         const qn_proto_message *message)
{
    *op = (qn_paddle_op){.n_attrs = qn_proto_count(message, OP_ATTRS)};
    QN_TRY(copy_text(&op->type, p, qn_proto_string(message, OP_TYPE)));
    op->row = qn_paddle_row_of(op->type, false);
    QN_TRY(read_slots(&op->in, &op->n_in, p, message, OP_INPUTS));
    QN_TRY(read_slots(&op->out, &op->n_out, p, message, OP_OUTPUTS));
    op->attrs = qn_arena_array(p->arena, op->n_attrs + 1, sizeof *op->attrs);
    QN_TRY_ALLOC(p->ctx, op->attrs);
    for (size_t i = 0; i < op->n_attrs; i++)
        QN_TRY(read_attr(&op->attrs[i], p, qn_proto_message_at(message, OP_ATTRS, i)));
    return QN_OK;
}

/* ---- Feed and fetch -------------------------------------------------------------------------- */

static const qn_proto_message *tensor_of(const qn_proto_message *var)
{
    const qn_proto_message *type = qn_proto_get_message(var, VAR_TYPE);
    return qn_proto_get_message(qn_proto_get_message(type, VAR_TYPE_DENSE), DENSE_TENSOR);
}

static int64_t column_of(const qn_paddle_op *op)
{
    for (size_t i = 0; i < op->n_attrs; i++) {
        if (strcmp(op->attrs[i].name, "col") == 0)
            return op->attrs[i].number;
    }
    return 0;
}

static const char *first_var(const qn_paddle_slot *slots, size_t count)
{
    return count && slots[0].count ? slots[0].vars[0] : NULL;
}

static qn_status add_input(qn_paddle_program *p, const qn_paddle_op *op, const qn_names *vars)
{
    const char *name = first_var(op->out, op->n_out);
    const qn_proto_message *var = name ? qn_names_get(vars, name) : NULL;
    if (!var)
        return qn_fail(p->ctx, QN_E_FORMAT, "an operator feed gives no variable");
    QN_TRY_GROW(p->ctx, p->inputs, p->inputs_capacity, p->n_inputs + 1);
    qn_paddle_port *port = &p->inputs[p->n_inputs++];
    *port = (qn_paddle_port){.name = name, .var = name, .place = column_of(op)};
    return read_type(&port->type, p, tensor_of(var), name);
}

static qn_status add_output(qn_paddle_program *p, const qn_paddle_op *op)
{
    const char *name = first_var(op->in, op->n_in);
    if (!name)
        return qn_fail(p->ctx, QN_E_FORMAT, "an operator fetch takes no variable");
    QN_TRY_GROW(p->ctx, p->outputs, p->outputs_capacity, p->n_outputs + 1);
    p->outputs[p->n_outputs++] =
        (qn_paddle_port){.name = name, .var = name, .place = column_of(op)};
    return QN_OK;
}

static qn_status add_op(qn_paddle_program *p, const qn_proto_message *message, const qn_names *vars)
{
    qn_paddle_op op;
    QN_TRY(read_op(&op, p, message));
    if (strcmp(op.type, "feed") == 0)
        return add_input(p, &op, vars);
    if (strcmp(op.type, "fetch") == 0)
        return add_output(p, &op);
    QN_TRY_GROW(p->ctx, p->ops, p->ops_capacity, p->n_ops + 1);
    p->ops[p->n_ops++] = op;
    return QN_OK;
}

/* A variable that lives on is a parameter, but for those that feed and fetch work with, which are
 * no tensors. */
static qn_status add_parameter(qn_paddle_program *p, const qn_proto_message *var, const char *name)
{
    const qn_proto_message *tensor = tensor_of(var);
    if (!tensor || !qn_proto_int(var, VAR_PERSISTABLE, 0))
        return QN_OK;
    QN_TRY_GROW(p->ctx, p->parameters, p->parameters_capacity, p->n_parameters + 1);
    qn_paddle_parameter *parameter = &p->parameters[p->n_parameters++];
    *parameter = (qn_paddle_parameter){.name = name};
    return read_type(&parameter->type, p, tensor, name);
}

static qn_status read_block(qn_paddle_program *p, const qn_proto_message *block)
{
    qn_names vars;
    qn_status status = QN_OK;
    qn_names_init(&vars, p->ctx);
    for (size_t i = 0; i < qn_proto_count(block, BLOCK_VARS); i++) {
        const qn_proto_message *var = qn_proto_message_at(block, BLOCK_VARS, i);
        const char *name;
        QN_TRY_OR_DONE(copy_text(&name, p, qn_proto_string(var, VAR_NAME)));
        if (qn_names_get(&vars, name)) {
            status = qn_fail(p->ctx, QN_E_FORMAT, "the variable '%s' is there twice", name);
            goto done;
        }
        QN_TRY_OR_DONE(qn_names_set(&vars, name, (void *)(uintptr_t)var));
        QN_TRY_OR_DONE(add_parameter(p, var, name));
    }
    for (size_t i = 0; i < qn_proto_count(block, BLOCK_OPS); i++)
        QN_TRY_OR_DONE(add_op(p, qn_proto_message_at(block, BLOCK_OPS, i), &vars));
done:
    qn_names_free(&vars);
    return status;
}

qn_status qn_paddle_read_program(qn_paddle_program *p, const void *data, size_t size)
{
    qn_proto_tree tree;
    qn_status status;
    qn_proto_tree_init(&tree, p->ctx, &program_schema);
    QN_TRY_OR_DONE(qn_proto_parse_wire(&tree, data, size));
    if (qn_proto_count(&tree.root, PROGRAM_BLOCKS) == 0) {
        status = qn_fail(p->ctx, QN_E_FORMAT, "the program has no block");
        goto done;
    }
    QN_TRY_OR_DONE(read_block(p, qn_proto_message_at(&tree.root, PROGRAM_BLOCKS, 0)));
done:
    qn_proto_tree_free(&tree);
    return status;
}
