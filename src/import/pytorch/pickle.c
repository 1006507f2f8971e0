/* The machine that pickles are written for: a stack, marks, a memory of what was made, and a table
 * of opcodes. What globals mean stands in pickle_globals.c. */
#include "import/pytorch/pickle_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST_PROTOCOL = 5 };

qn_status qn_pickle_fail(const qn_pickle *p, qn_status status, const char *format, ...)
{
    char text[QN_ERROR_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qn_fail(p->ctx, status, "%s: byte %zu of the pickle: %s", p->name, p->at, text);
}

/* ---- Stack ----------------------------------------------------------------------------------- */

qn_status qn_pickle_push(qn_pickle *p, const qn_torch_value *value)
{
    QN_TRY_GROW(p->ctx, p->stack, p->stack_capacity, p->n_stack + 1);
    p->stack[p->n_stack++] = *value;
    return QN_OK;
}

/* Values below the last mark belong to somebody else. */
static size_t floor_of(const qn_pickle *p)
{
    return p->n_marks ? p->marks[p->n_marks - 1] : 0;
}

qn_status qn_pickle_pop(qn_torch_value *out, qn_pickle *p)
{
    *out = QN_TORCH_NOTHING;
    if (p->n_stack <= floor_of(p))
        return qn_pickle_fail(p, QN_E_FORMAT, "takes more than there is");
    *out = p->stack[--p->n_stack];
    return QN_OK;
}

/* The values since the last mark, which are gone from the stack but stay where they are until the
 * next push. */
static qn_status pop_marked(const qn_torch_value **items, size_t *count, qn_pickle *p)
{
    *items = NULL;
    *count = 0;
    if (!p->n_marks)
        return qn_pickle_fail(p, QN_E_FORMAT, "takes more than there is");
    const size_t mark = p->marks[--p->n_marks];
    *items = mark ? p->stack + mark : p->stack;
    *count = p->n_stack - mark;
    p->n_stack = mark;
    return QN_OK;
}

static qn_status top(qn_torch_value **out, qn_pickle *p)
{
    *out = NULL;
    if (p->n_stack <= floor_of(p))
        return qn_pickle_fail(p, QN_E_FORMAT, "takes more than there is");
    *out = &p->stack[p->n_stack - 1];
    return QN_OK;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static qn_status take(const uint8_t **out, qn_pickle *p, uint64_t count)
{
    *out = p->data + p->at;
    if (count > p->size - p->at)
        return qn_pickle_fail(p, QN_E_FORMAT, "it ends too early");
    p->at += (size_t)count;
    return QN_OK;
}

static qn_status take_number(uint64_t *out, qn_pickle *p, int bytes)
{
    const uint8_t *at;
    *out = 0;
    QN_TRY(take(&at, p, (uint64_t)bytes));
    for (int i = bytes - 1; i >= 0; i--)
        *out = *out << 8 | at[i];
    return QN_OK;
}

/* A line without its end. */
static qn_status take_line(const char **out, qn_pickle *p)
{
    const uint8_t *from = p->data + p->at;
    const uint8_t *end = memchr(from, '\n', p->size - p->at);
    if (!end)
        return qn_pickle_fail(p, QN_E_FORMAT, "it ends too early");
    *out = qn_arena_text(p->arena, (const char *)from, (size_t)(end - from));
    QN_TRY_ALLOC(p->ctx, *out);
    p->at += (size_t)(end - from) + 1;
    return QN_OK;
}

/* ---- Opcodes --------------------------------------------------------------------------------- */

static qn_status do_nothing(qn_pickle *p, const qn_pickle_opcode *op)
{
    const uint8_t *at;
    return take(&at, p, (uint64_t)op->argument);
}

static qn_status do_proto(qn_pickle *p, const qn_pickle_opcode *op)
{
    uint64_t version;
    (void)op;
    QN_TRY(take_number(&version, p, 1));
    if (version > NEWEST_PROTOCOL)
        return qn_pickle_fail(p, QN_E_UNSUPPORTED, "protocol %d", (int)version);
    return QN_OK;
}

static qn_status do_mark(qn_pickle *p, const qn_pickle_opcode *op)
{
    (void)op;
    QN_TRY_GROW(p->ctx, p->marks, p->marks_capacity, p->n_marks + 1);
    p->marks[p->n_marks++] = p->n_stack;
    return QN_OK;
}

static qn_status do_pop(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value value;
    (void)op;
    return qn_pickle_pop(&value, p);
}

static qn_status do_pop_mark(qn_pickle *p, const qn_pickle_opcode *op)
{
    const qn_torch_value *items;
    size_t count;
    (void)op;
    return pop_marked(&items, &count, p);
}

static qn_status do_dup(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value *value;
    (void)op;
    QN_TRY(top(&value, p));
    const qn_torch_value copy = *value;
    return qn_pickle_push(p, &copy);
}

static qn_status do_none(qn_pickle *p, const qn_pickle_opcode *op)
{
    (void)op;
    return qn_pickle_push(p, &QN_TORCH_NOTHING);
}

static qn_status do_truth(qn_pickle *p, const qn_pickle_opcode *op)
{
    const qn_torch_value value = qn_torch_bool(op->argument != 0);
    return qn_pickle_push(p, &value);
}

/* A number of four bytes has a sign, one of one or two has none. */
static qn_status do_int(qn_pickle *p, const qn_pickle_opcode *op)
{
    uint64_t bits;
    QN_TRY(take_number(&bits, p, op->argument));
    const qn_torch_value value =
        qn_torch_int(op->argument == 4 ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits);
    return qn_pickle_push(p, &value);
}

/* An integer of any length; more than 64 bits are no number of ours: TorchScript and checkpoints
 * have such ones as marks of the format only, and the lower bits tell them apart. */
static qn_status do_long(qn_pickle *p, const qn_pickle_opcode *op)
{
    uint64_t length, bits = 0;
    const uint8_t *at;
    QN_TRY(take_number(&length, p, op->argument));
    QN_TRY(take(&at, p, length));
    for (uint64_t i = 0; i < 8; i++) {
        const uint8_t sign = length && at[length - 1] & 0x80 ? 0xff : 0;
        bits |= (uint64_t)(i < length ? at[i] : sign) << (8 * i);
    }
    const qn_torch_value value = qn_torch_int((int64_t)bits);
    return qn_pickle_push(p, &value);
}

/* "I01" and "I00" are truths of old protocols. */
static qn_status do_decimal(qn_pickle *p, const qn_pickle_opcode *op)
{
    const char *line;
    (void)op;
    QN_TRY(take_line(&line, p));
    const bool truth = strcmp(line, "01") == 0 || strcmp(line, "00") == 0;
    const qn_torch_value value =
        truth ? qn_torch_bool(line[1] == '1') : qn_torch_int(strtoll(line, NULL, 10));
    return qn_pickle_push(p, &value);
}

static qn_status do_real(qn_pickle *p, const qn_pickle_opcode *op)
{
    const uint8_t *at;
    uint64_t bits = 0;
    double real;
    (void)op;
    QN_TRY(take(&at, p, 8));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | at[i];
    memcpy(&real, &bits, sizeof real);
    const qn_torch_value value = qn_torch_real(real);
    return qn_pickle_push(p, &value);
}

static qn_status do_text(qn_pickle *p, const qn_pickle_opcode *op)
{
    uint64_t length;
    const uint8_t *at;
    QN_TRY(take_number(&length, p, op->argument));
    QN_TRY(take(&at, p, length));
    const qn_torch_value value =
        qn_torch_text(qn_arena_text(p->arena, (const char *)at, (size_t)length));
    QN_TRY_ALLOC(p->ctx, value.text);
    return qn_pickle_push(p, &value);
}

static qn_status do_empty(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value value;
    QN_TRY(qn_torch_new_list(&value, p->ctx, p->arena, (qn_torch_kind)op->argument));
    return qn_pickle_push(p, &value);
}

static qn_status push_list(qn_pickle *p, qn_torch_kind kind, const qn_torch_value *items,
                           size_t count)
{
    qn_torch_value value;
    QN_TRY(qn_torch_new_list(&value, p->ctx, p->arena, kind));
    value.list->at = qn_arena_widen(p->arena, items, count, count, sizeof *items);
    QN_TRY_ALLOC(p->ctx, value.list->at);
    value.list->count = value.list->capacity = count;
    return qn_pickle_push(p, &value);
}

/* Tuple, list or dictionary of all since the mark. */
static qn_status do_marked(qn_pickle *p, const qn_pickle_opcode *op)
{
    const qn_torch_value *items;
    size_t count;
    QN_TRY(pop_marked(&items, &count, p));
    return push_list(p, (qn_torch_kind)op->argument, items, count);
}

static qn_status do_tuple(qn_pickle *p, const qn_pickle_opcode *op)
{
    const size_t count = (size_t)op->argument;
    if (p->n_stack - floor_of(p) < count)
        return qn_pickle_fail(p, QN_E_FORMAT, "takes more than there is");
    p->n_stack -= count;
    return push_list(p, QN_TORCH_TUPLE, p->stack + p->n_stack, count);
}

/* Adds to the list, or keys and values to the dictionary, on top of the stack. */
static qn_status extend(qn_pickle *p, const qn_torch_value *items, size_t count)
{
    qn_torch_value *target;
    QN_TRY(top(&target, p));
    if (target->kind != QN_TORCH_LIST && target->kind != QN_TORCH_DICT)
        return qn_pickle_fail(p, QN_E_FORMAT, "adds to %s", qn_torch_kind_name(target->kind));
    if (target->kind == QN_TORCH_DICT && count % 2)
        return qn_pickle_fail(p, QN_E_FORMAT, "a key without a value");
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_torch_push(target->list, p->ctx, p->arena, &items[i]));
    return QN_OK;
}

static qn_status do_extend(qn_pickle *p, const qn_pickle_opcode *op)
{
    const qn_torch_value *items;
    size_t count;
    (void)op;
    QN_TRY(pop_marked(&items, &count, p));
    return extend(p, items, count);
}

static qn_status do_append(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value items[2];
    for (int i = op->argument - 1; i >= 0; i--)
        QN_TRY(qn_pickle_pop(&items[i], p));
    return extend(p, items, (size_t)op->argument);
}

/* ---- What was made before -------------------------------------------------------------------- */

/* Numbers ascend as objects are made: one beyond the length of the pickle is none. */
static qn_status put(qn_pickle *p, uint64_t number)
{
    qn_torch_value *value;
    QN_TRY(top(&value, p));
    if (number > p->size)
        return qn_pickle_fail(p, QN_E_FORMAT, "number %llu", (unsigned long long)number);
    const size_t old = p->n_memo;
    QN_TRY_GROW(p->ctx, p->memo, p->memo_capacity, (size_t)number + 1);
    for (size_t i = old; i < number; i++)
        p->memo[i] = QN_TORCH_NOTHING;
    p->memo[number] = *value;
    p->n_memo = QN_MAX(old, (size_t)number + 1);
    return QN_OK;
}

static qn_status do_put(qn_pickle *p, const qn_pickle_opcode *op)
{
    uint64_t number;
    QN_TRY(take_number(&number, p, op->argument));
    return put(p, number);
}

static qn_status do_put_line(qn_pickle *p, const qn_pickle_opcode *op)
{
    const char *line;
    (void)op;
    QN_TRY(take_line(&line, p));
    return put(p, strtoull(line, NULL, 10));
}

static qn_status do_memoize(qn_pickle *p, const qn_pickle_opcode *op)
{
    (void)op;
    return put(p, p->n_memo);
}

static qn_status get(qn_pickle *p, uint64_t number)
{
    if (number >= p->n_memo)
        return qn_pickle_fail(p, QN_E_FORMAT, "number %llu was not made",
                              (unsigned long long)number);
    const qn_torch_value value = p->memo[number];
    return qn_pickle_push(p, &value);
}

static qn_status do_get(qn_pickle *p, const qn_pickle_opcode *op)
{
    uint64_t number;
    QN_TRY(take_number(&number, p, op->argument));
    return get(p, number);
}

static qn_status do_get_line(qn_pickle *p, const qn_pickle_opcode *op)
{
    const char *line;
    (void)op;
    QN_TRY(take_line(&line, p));
    return get(p, strtoull(line, NULL, 10));
}

/* ---- Globals --------------------------------------------------------------------------------- */

static qn_status do_global(qn_pickle *p, const qn_pickle_opcode *op)
{
    const char *module, *name;
    (void)op;
    QN_TRY(take_line(&module, p));
    QN_TRY(take_line(&name, p));
    return qn_pickle_global(p, module, name);
}

static qn_status do_stack_global(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value module, name;
    (void)op;
    QN_TRY(qn_pickle_pop(&name, p));
    QN_TRY(qn_pickle_pop(&module, p));
    if (module.kind != QN_TORCH_TEXT || name.kind != QN_TORCH_TEXT)
        return qn_pickle_fail(p, QN_E_FORMAT, "a global without a name");
    return qn_pickle_global(p, module.text, name.text);
}

static const qn_pickle_opcode opcodes[256] = {
    [0x80] = {do_proto, 0},
    [0x95] = {do_nothing, 8},
    ['('] = {do_mark, 0},
    ['0'] = {do_pop, 0},
    ['1'] = {do_pop_mark, 0},
    ['2'] = {do_dup, 0},
    ['N'] = {do_none, 0},
    [0x88] = {do_truth, 1},
    [0x89] = {do_truth, 0},
    ['J'] = {do_int, 4},
    ['K'] = {do_int, 1},
    ['M'] = {do_int, 2},
    [0x8a] = {do_long, 1},
    [0x8b] = {do_long, 4},
    ['I'] = {do_decimal, 0},
    ['L'] = {do_decimal, 0},
    ['G'] = {do_real, 0},
    ['X'] = {do_text, 4},
    ['T'] = {do_text, 4},
    ['U'] = {do_text, 1},
    ['B'] = {do_text, 4},
    ['C'] = {do_text, 1},
    [0x8c] = {do_text, 1},
    [0x8d] = {do_text, 8},
    [')'] = {do_empty, QN_TORCH_TUPLE},
    [']'] = {do_empty, QN_TORCH_LIST},
    [0x8f] = {do_empty, QN_TORCH_LIST},
    ['}'] = {do_empty, QN_TORCH_DICT},
    ['t'] = {do_marked, QN_TORCH_TUPLE},
    ['l'] = {do_marked, QN_TORCH_LIST},
    [0x91] = {do_marked, QN_TORCH_LIST},
    ['d'] = {do_marked, QN_TORCH_DICT},
    [0x85] = {do_tuple, 1},
    [0x86] = {do_tuple, 2},
    [0x87] = {do_tuple, 3},
    ['a'] = {do_append, 1},
    ['e'] = {do_extend, 0},
    [0x90] = {do_extend, 0},
    ['s'] = {do_append, 2},
    ['u'] = {do_extend, 0},
    ['q'] = {do_put, 1},
    ['r'] = {do_put, 4},
    ['p'] = {do_put_line, 0},
    [0x94] = {do_memoize, 0},
    ['h'] = {do_get, 1},
    ['j'] = {do_get, 4},
    ['g'] = {do_get_line, 0},
    ['c'] = {do_global, 0},
    [0x93] = {do_stack_global, 0},
    ['R'] = {qn_pickle_reduce, 0},
    [0x81] = {qn_pickle_new_object, 0},
    ['b'] = {qn_pickle_build, 0},
    ['Q'] = {qn_pickle_persistent, 0},
};

static qn_status run(qn_torch_value *out, qn_pickle *p)
{
    for (;;) {
        uint64_t code;
        QN_TRY(take_number(&code, p, 1));
        if (code == '.')
            return qn_pickle_pop(out, p);
        const qn_pickle_opcode *op = &opcodes[code];
        if (!op->run)
            return qn_pickle_fail(p, QN_E_UNSUPPORTED, "opcode 0x%02x", (unsigned)code);
        QN_TRY(op->run(p, op));
    }
}

qn_status qn_pickle_read(qn_torch_value *out, size_t *used, qn_context *ctx, qn_arena *arena,
                         const qn_pickle_text *text)
{
    qn_pickle p = {.ctx = ctx,
                   .arena = arena,
                   .name = text->name,
                   .folder = text->folder,
                   .storages = text->storages,
                   .data = (const uint8_t *)text->bytes.text,
                   .size = text->bytes.length};
    *out = QN_TORCH_NOTHING;
    const qn_status status = run(out, &p);
    *used = p.at;
    qn_free(ctx, p.stack);
    qn_free(ctx, p.marks);
    qn_free(ctx, p.memo);
    return status;
}
