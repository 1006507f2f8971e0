/* Expressions of TorchScript source, by descent. */
#include <stdlib.h>
#include <string.h>

#include "import/pytorch/script_parser.h"

/* ---- Words ---------------------------------------------------------------------------------- */

bool qn_parser_is_sign(const qn_parser *p, const char *sign)
{
    return p->lexer.word == QN_SCRIPT_SIGN && strcmp(p->lexer.spelling, sign) == 0;
}

bool qn_parser_is_word(const qn_parser *p, const char *word)
{
    return p->lexer.word == QN_SCRIPT_NAME && strcmp(p->lexer.spelling, word) == 0;
}

qn_status qn_parser_expect_sign(qn_parser *p, const char *sign)
{
    if (!qn_parser_is_sign(p, sign))
        return qn_script_fail(&p->lexer, "'%s' where '%s' is wanted", p->lexer.spelling, sign);
    return qn_script_next(&p->lexer);
}

qn_status qn_parser_expect(qn_parser *p, qn_script_word word, const char *what)
{
    if (p->lexer.word != word)
        return qn_script_fail(&p->lexer, "'%s' where %s is wanted", p->lexer.spelling, what);
    return qn_script_next(&p->lexer);
}

qn_status qn_parser_take_name(const char **out, qn_parser *p)
{
    *out = p->lexer.spelling;
    return qn_parser_expect(p, QN_SCRIPT_NAME, "a name");
}

/* ---- Expressions ---------------------------------------------------------------------------- */

static qn_status make(qn_script_expr **out, qn_parser *p, qn_script_kind kind)
{
    *out = qn_arena_alloc(p->lexer.arena, sizeof **out);
    QN_TRY_ALLOC(p->lexer.ctx, *out);
    (*out)->kind = kind;
    return QN_OK;
}

static qn_status add_item(qn_script_expr *list, qn_parser *p, const qn_script_expr *item,
                          const char *name)
{
    qn_arena *arena = p->lexer.arena;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 4;
        list->items = qn_arena_widen(arena, list->items, list->count, capacity, sizeof item);
        QN_TRY_ALLOC(p->lexer.ctx, list->items);
        list->names = qn_arena_widen(arena, list->names, list->count, capacity, sizeof name);
        QN_TRY_ALLOC(p->lexer.ctx, list->names);
        list->capacity = capacity;
    }
    list->items[list->count] = item;
    list->names[list->count++] = name;
    return QN_OK;
}

/* Items up to the closing sign; *comma tells of one. */
static qn_status parse_items(qn_script_expr *list, bool *comma, qn_parser *p, const char *close)
{
    *comma = false;
    while (!qn_parser_is_sign(p, close)) {
        const qn_script_expr *item;
        const char *name = NULL;
        QN_TRY(qn_parser_expr(&item, p));
        if (qn_parser_is_sign(p, "=") && item->kind == QN_EXPR_NAME) {
            name = item->text;
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(qn_parser_expr(&item, p));
        } else if (qn_parser_is_sign(p, ":")) {
            QN_TRY(add_item(list, p, item, NULL));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(qn_parser_expr(&item, p));
        }
        QN_TRY(add_item(list, p, item, name));
        if (!qn_parser_is_sign(p, ","))
            break;
        *comma = true;
        QN_TRY(qn_script_next(&p->lexer));
    }
    return qn_parser_expect_sign(p, close);
}

/* "(a)" is a, "(a,)" and "()" are tuples. */
static qn_status parse_brackets(const qn_script_expr **out, qn_parser *p)
{
    static const struct {
        const char *open, *close;
        qn_script_kind kind;
    } kinds[] = {{"(", ")", QN_EXPR_TUPLE}, {"[", "]", QN_EXPR_LIST}, {"{", "}", QN_EXPR_DICT}};
    qn_script_expr *list;
    bool comma;
    size_t k = 0;
    while (k + 1 < QN_COUNT_OF(kinds) && !qn_parser_is_sign(p, kinds[k].open))
        k++;
    QN_TRY(make(&list, p, kinds[k].kind));
    QN_TRY(qn_script_next(&p->lexer));
    QN_TRY(parse_items(list, &comma, p, kinds[k].close));
    if (list->kind == QN_EXPR_DICT && list->count % 2)
        return qn_script_fail(&p->lexer, "a key without a value");
    *out = list->kind == QN_EXPR_TUPLE && list->count == 1 && !comma ? list->items[0] : list;
    return QN_OK;
}

static qn_status parse_number(qn_script_expr *expr, const qn_parser *p)
{
    char *end;
    const char *text = p->lexer.spelling;
    expr->kind = strpbrk(text, ".eE") ? QN_EXPR_REAL : QN_EXPR_INT;
    if (expr->kind == QN_EXPR_REAL)
        expr->real = strtod(text, &end);
    else
        expr->number = strtoll(text, &end, 10);
    return *end ? qn_script_fail(&p->lexer, "'%s' is no number", text) : QN_OK;
}

static qn_status parse_atom(const qn_script_expr **out, qn_parser *p)
{
    static const struct {
        const char *word;
        qn_script_kind kind;
    } words[] = {{"True", QN_EXPR_TRUE}, {"False", QN_EXPR_FALSE}, {"None", QN_EXPR_NONE}};
    qn_script_expr *expr;
    *out = NULL;
    if (qn_parser_is_sign(p, "(") || qn_parser_is_sign(p, "[") || qn_parser_is_sign(p, "{"))
        return parse_brackets(out, p);
    QN_TRY(make(&expr, p, QN_EXPR_NAME));
    *out = expr;
    expr->text = p->lexer.spelling;
    for (size_t i = 0; i < QN_COUNT_OF(words); i++) {
        if (qn_parser_is_word(p, words[i].word))
            expr->kind = words[i].kind;
    }
    if (p->lexer.word == QN_SCRIPT_NUMBER)
        QN_TRY(parse_number(expr, p));
    else if (p->lexer.word == QN_SCRIPT_TEXT)
        expr->kind = QN_EXPR_TEXT;
    else if (p->lexer.word != QN_SCRIPT_NAME)
        return qn_script_fail(&p->lexer, "'%s' where a value is wanted", p->lexer.spelling);
    return qn_script_next(&p->lexer);
}

/* Fields, calls, elements. */
qn_status qn_parser_tail(const qn_script_expr **out, qn_parser *p)
{
    qn_script_expr *expr;
    bool comma;
    QN_TRY(parse_atom(out, p));
    for (;;) {
        if (qn_parser_is_sign(p, ".")) {
            QN_TRY(make(&expr, p, QN_EXPR_FIELD));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(qn_parser_take_name(&expr->text, p));
        } else if (qn_parser_is_sign(p, "(")) {
            QN_TRY(make(&expr, p, QN_EXPR_CALL));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(parse_items(expr, &comma, p, ")"));
        } else if (qn_parser_is_sign(p, "[")) {
            QN_TRY(make(&expr, p, QN_EXPR_INDEX));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(parse_items(expr, &comma, p, "]"));
        } else
            return QN_OK;
        expr->a = *out;
        *out = expr;
    }
}

static qn_status parse_unary(const qn_script_expr **out, qn_parser *p)
{
    const bool minus = qn_parser_is_sign(p, "-"), negation = qn_parser_is_word(p, "not");
    const qn_script_expr *operand;
    qn_script_expr *expr;
    *out = NULL;
    if (!minus && !negation)
        return qn_parser_tail(out, p);
    if (++p->depth > QN_PARSER_MOST_DEPTH)
        return qn_script_fail(&p->lexer, "expressions are nested too deep");
    QN_TRY(qn_script_next(&p->lexer));
    QN_TRY(parse_unary(&operand, p));
    p->depth--;
    QN_TRY(make(&expr, p, QN_EXPR_OPERATOR));
    expr->text = minus ? "neg" : "__not__";
    *out = expr;
    return add_item(expr, p, operand, NULL);
}

/* Signs by how tightly they bind, and the functions that they stand for. */
static const struct {
    const char *sign, *function;
    int level;
} operators[] = {
    {"or", "__or__", 0},   {"and", "__and__", 1}, {"is", "__is__", 2}, {"in", "in", 2},
    {"==", "eq", 2},       {"!=", "ne", 2},       {"<", "lt", 2},      {"<=", "le", 2},
    {">", "gt", 2},        {">=", "ge", 2},       {"|", "__or__", 3},  {"&", "__and__", 3},
    {"+", "add", 4},       {"-", "sub", 4},       {"*", "mul", 5},     {"/", "div", 5},
    {"//", "floordiv", 5}, {"%", "remainder", 5}, {"**", "pow", 6},    {"@", "matmul", 5},
};
enum { LEVELS = 7 };

static const char *operator_at(const qn_parser *p, int level)
{
    for (size_t i = 0; i < QN_COUNT_OF(operators); i++) {
        if (operators[i].level == level &&
            (qn_parser_is_sign(p, operators[i].sign) || qn_parser_is_word(p, operators[i].sign)))
            return operators[i].function;
    }
    return NULL;
}

static qn_status parse_level(const qn_script_expr **out, qn_parser *p, int level)
{
    const qn_script_expr *right;
    qn_script_expr *expr;
    if (level == LEVELS)
        return parse_unary(out, p);
    QN_TRY(parse_level(out, p, level + 1));
    for (;;) {
        const char *function = operator_at(p, level);
        if (!function)
            return QN_OK;
        QN_TRY(qn_script_next(&p->lexer));
        if (strcmp(function, "__is__") == 0 && qn_parser_is_word(p, "not")) {
            function = "__isnot__";
            QN_TRY(qn_script_next(&p->lexer));
        }
        QN_TRY(parse_level(&right, p, level + 1));
        QN_TRY(make(&expr, p, QN_EXPR_OPERATOR));
        expr->text = function;
        QN_TRY(add_item(expr, p, *out, NULL));
        QN_TRY(add_item(expr, p, right, NULL));
        *out = expr;
    }
}

/* "a if c else b" */
qn_status qn_parser_expr(const qn_script_expr **out, qn_parser *p)
{
    const qn_script_expr *condition, *other;
    qn_script_expr *expr;
    *out = NULL;
    if (++p->depth > QN_PARSER_MOST_DEPTH)
        return qn_script_fail(&p->lexer, "expressions are nested too deep");
    QN_TRY(parse_level(out, p, 0));
    if (qn_parser_is_word(p, "if")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_level(&condition, p, 0));
        if (!qn_parser_is_word(p, "else"))
            return qn_script_fail(&p->lexer, "'%s' where 'else' is wanted", p->lexer.spelling);
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(qn_parser_expr(&other, p));
        QN_TRY(make(&expr, p, QN_EXPR_CHOICE));
        QN_TRY(add_item(expr, p, condition, NULL));
        QN_TRY(add_item(expr, p, *out, NULL));
        QN_TRY(add_item(expr, p, other, NULL));
        *out = expr;
    }
    p->depth--;
    return QN_OK;
}

/* "a" or "a, b, ": a tuple without brackets. */
qn_status qn_parser_bare(const qn_script_expr **out, qn_parser *p)
{
    qn_script_expr *tuple;
    QN_TRY(qn_parser_expr(out, p));
    if (!qn_parser_is_sign(p, ","))
        return QN_OK;
    QN_TRY(make(&tuple, p, QN_EXPR_TUPLE));
    QN_TRY(add_item(tuple, p, *out, NULL));
    while (qn_parser_is_sign(p, ",")) {
        QN_TRY(qn_script_next(&p->lexer));
        if (qn_parser_is_sign(p, "=") || p->lexer.word == QN_SCRIPT_NEWLINE)
            break;
        QN_TRY(qn_parser_expr(out, p));
        QN_TRY(add_item(tuple, p, *out, NULL));
    }
    *out = tuple;
    return QN_OK;
}
