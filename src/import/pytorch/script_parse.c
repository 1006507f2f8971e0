/* TorchScript source as trees: expressions by descent, statements, functions, classes. */
#include <stdlib.h>
#include <string.h>

#include "import/pytorch/script.h"

/* Expressions within expressions, and statements within statements. */
enum { MOST_DEPTH = 200 };

typedef struct parser {
    qn_script_lexer lexer;
    int depth;
} parser;

static qn_status parse_expr(const qn_script_expr **out, parser *p);
static qn_status parse_block(qn_script_block *out, parser *p);

/* ---- Words ----------------------------------------------------------------------------------- */

static bool is_sign(const parser *p, const char *sign)
{
    return p->lexer.word == QN_SCRIPT_SIGN && strcmp(p->lexer.spelling, sign) == 0;
}

static bool is_word(const parser *p, const char *word)
{
    return p->lexer.word == QN_SCRIPT_NAME && strcmp(p->lexer.spelling, word) == 0;
}

static qn_status expect_sign(parser *p, const char *sign)
{
    if (!is_sign(p, sign))
        return qn_script_fail(&p->lexer, "'%s' where '%s' is wanted", p->lexer.spelling, sign);
    return qn_script_next(&p->lexer);
}

static qn_status expect(parser *p, qn_script_word word, const char *what)
{
    if (p->lexer.word != word)
        return qn_script_fail(&p->lexer, "'%s' where %s is wanted", p->lexer.spelling, what);
    return qn_script_next(&p->lexer);
}

static qn_status take_name(const char **out, parser *p)
{
    *out = p->lexer.spelling;
    return expect(p, QN_SCRIPT_NAME, "a name");
}

/* ---- Expressions ----------------------------------------------------------------------------- */

static qn_status make(qn_script_expr **out, parser *p, qn_script_kind kind)
{
    *out = qn_arena_alloc(p->lexer.arena, sizeof **out);
    QN_TRY_ALLOC(p->lexer.ctx, *out);
    (*out)->kind = kind;
    return QN_OK;
}

static qn_status add_item(qn_script_expr *list, parser *p, const qn_script_expr *item,
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
static qn_status parse_items(qn_script_expr *list, bool *comma, parser *p, const char *close)
{
    *comma = false;
    while (!is_sign(p, close)) {
        const qn_script_expr *item;
        const char *name = NULL;
        QN_TRY(parse_expr(&item, p));
        if (is_sign(p, "=") && item->kind == QN_EXPR_NAME) {
            name = item->text;
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(parse_expr(&item, p));
        } else if (is_sign(p, ":")) {
            QN_TRY(add_item(list, p, item, NULL));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(parse_expr(&item, p));
        }
        QN_TRY(add_item(list, p, item, name));
        if (!is_sign(p, ","))
            break;
        *comma = true;
        QN_TRY(qn_script_next(&p->lexer));
    }
    return expect_sign(p, close);
}

/* "(a)" is a, "(a,)" and "()" are tuples. */
static qn_status parse_brackets(const qn_script_expr **out, parser *p)
{
    static const struct {
        const char *open, *close;
        qn_script_kind kind;
    } kinds[] = {{"(", ")", QN_EXPR_TUPLE}, {"[", "]", QN_EXPR_LIST}, {"{", "}", QN_EXPR_DICT}};
    qn_script_expr *list;
    bool comma;
    size_t k = 0;
    while (k + 1 < QN_COUNT_OF(kinds) && !is_sign(p, kinds[k].open))
        k++;
    QN_TRY(make(&list, p, kinds[k].kind));
    QN_TRY(qn_script_next(&p->lexer));
    QN_TRY(parse_items(list, &comma, p, kinds[k].close));
    if (list->kind == QN_EXPR_DICT && list->count % 2)
        return qn_script_fail(&p->lexer, "a key without a value");
    *out = list->kind == QN_EXPR_TUPLE && list->count == 1 && !comma ? list->items[0] : list;
    return QN_OK;
}

static qn_status parse_number(qn_script_expr *expr, const parser *p)
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

static qn_status parse_atom(const qn_script_expr **out, parser *p)
{
    static const struct {
        const char *word;
        qn_script_kind kind;
    } words[] = {{"True", QN_EXPR_TRUE}, {"False", QN_EXPR_FALSE}, {"None", QN_EXPR_NONE}};
    qn_script_expr *expr;
    *out = NULL;
    if (is_sign(p, "(") || is_sign(p, "[") || is_sign(p, "{"))
        return parse_brackets(out, p);
    QN_TRY(make(&expr, p, QN_EXPR_NAME));
    *out = expr;
    expr->text = p->lexer.spelling;
    for (size_t i = 0; i < QN_COUNT_OF(words); i++) {
        if (is_word(p, words[i].word))
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
static qn_status parse_tail(const qn_script_expr **out, parser *p)
{
    qn_script_expr *expr;
    bool comma;
    QN_TRY(parse_atom(out, p));
    for (;;) {
        if (is_sign(p, ".")) {
            QN_TRY(make(&expr, p, QN_EXPR_FIELD));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(take_name(&expr->text, p));
        } else if (is_sign(p, "(")) {
            QN_TRY(make(&expr, p, QN_EXPR_CALL));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(parse_items(expr, &comma, p, ")"));
        } else if (is_sign(p, "[")) {
            QN_TRY(make(&expr, p, QN_EXPR_INDEX));
            QN_TRY(qn_script_next(&p->lexer));
            QN_TRY(parse_items(expr, &comma, p, "]"));
        } else
            return QN_OK;
        expr->a = *out;
        *out = expr;
    }
}

static qn_status parse_unary(const qn_script_expr **out, parser *p)
{
    const bool minus = is_sign(p, "-"), negation = is_word(p, "not");
    const qn_script_expr *operand;
    qn_script_expr *expr;
    *out = NULL;
    if (!minus && !negation)
        return parse_tail(out, p);
    if (++p->depth > MOST_DEPTH)
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

static const char *operator_at(const parser *p, int level)
{
    for (size_t i = 0; i < QN_COUNT_OF(operators); i++) {
        if (operators[i].level == level &&
            (is_sign(p, operators[i].sign) || is_word(p, operators[i].sign)))
            return operators[i].function;
    }
    return NULL;
}

static qn_status parse_level(const qn_script_expr **out, parser *p, int level)
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
        if (strcmp(function, "__is__") == 0 && is_word(p, "not")) {
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
static qn_status parse_expr(const qn_script_expr **out, parser *p)
{
    const qn_script_expr *condition, *other;
    qn_script_expr *expr;
    *out = NULL;
    if (++p->depth > MOST_DEPTH)
        return qn_script_fail(&p->lexer, "expressions are nested too deep");
    QN_TRY(parse_level(out, p, 0));
    if (is_word(p, "if")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_level(&condition, p, 0));
        if (!is_word(p, "else"))
            return qn_script_fail(&p->lexer, "'%s' where 'else' is wanted", p->lexer.spelling);
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_expr(&other, p));
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
static qn_status parse_bare(const qn_script_expr **out, parser *p)
{
    qn_script_expr *tuple;
    QN_TRY(parse_expr(out, p));
    if (!is_sign(p, ","))
        return QN_OK;
    QN_TRY(make(&tuple, p, QN_EXPR_TUPLE));
    QN_TRY(add_item(tuple, p, *out, NULL));
    while (is_sign(p, ",")) {
        QN_TRY(qn_script_next(&p->lexer));
        if (is_sign(p, "=") || p->lexer.word == QN_SCRIPT_NEWLINE)
            break;
        QN_TRY(parse_expr(out, p));
        QN_TRY(add_item(tuple, p, *out, NULL));
    }
    *out = tuple;
    return QN_OK;
}

/* ---- Statements ------------------------------------------------------------------------------ */

/* "target = value", "target : type = value", or a value alone. */
static qn_status parse_assignment(qn_script_statement *s, parser *p)
{
    const qn_script_expr *first;
    QN_TRY(parse_bare(&first, p));
    s->step = QN_STEP_EXPR;
    s->value = first;
    if (is_sign(p, ":")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_expr(&s->type, p));
        s->step = QN_STEP_ASSIGN;
        s->target = first;
        s->value = NULL;
    }
    if (is_sign(p, "=")) {
        QN_TRY(qn_script_next(&p->lexer));
        s->step = QN_STEP_ASSIGN;
        s->target = first;
        QN_TRY(parse_bare(&s->value, p));
    }
    return expect(p, QN_SCRIPT_NEWLINE, "the end of the line");
}

static qn_status parse_body(qn_script_block *out, parser *p)
{
    if (++p->depth > MOST_DEPTH)
        return qn_script_fail(&p->lexer, "blocks are nested too deep");
    QN_TRY(expect_sign(p, ":"));
    QN_TRY(expect(p, QN_SCRIPT_NEWLINE, "the end of the line"));
    QN_TRY(expect(p, QN_SCRIPT_INDENT, "a block"));
    QN_TRY(parse_block(out, p));
    p->depth--;
    return expect(p, QN_SCRIPT_DEDENT, "the end of the block");
}

static qn_status parse_if(qn_script_statement *s, parser *p)
{
    s->step = QN_STEP_IF;
    QN_TRY(parse_expr(&s->value, p));
    QN_TRY(parse_body(&s->body, p));
    if (is_word(p, "else")) {
        QN_TRY(qn_script_next(&p->lexer));
        return parse_body(&s->otherwise, p);
    }
    if (!is_word(p, "elif"))
        return QN_OK;
    qn_script_statement *inner = qn_arena_alloc(p->lexer.arena, sizeof *inner);
    QN_TRY_ALLOC(p->lexer.ctx, inner);
    if (++p->depth > MOST_DEPTH)
        return qn_script_fail(&p->lexer, "blocks are nested too deep");
    QN_TRY(qn_script_next(&p->lexer));
    QN_TRY(parse_if(inner, p));
    p->depth--;
    s->otherwise = (qn_script_block){.at = inner, .count = 1, .capacity = 1};
    return QN_OK;
}

static qn_status parse_loop(qn_script_statement *s, parser *p, bool is_for)
{
    s->step = is_for ? QN_STEP_FOR : QN_STEP_WHILE;
    if (is_for) {
        QN_TRY(parse_tail(&s->target, p));
        if (!is_word(p, "in"))
            return qn_script_fail(&p->lexer, "'%s' where 'in' is wanted", p->lexer.spelling);
        QN_TRY(qn_script_next(&p->lexer));
    }
    QN_TRY(parse_expr(&s->value, p));
    return parse_body(&s->body, p);
}

static qn_status parse_parameter(qn_script_parameter *out, parser *p)
{
    QN_TRY(take_name(&out->name, p));
    if (is_sign(p, ":")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_expr(&out->type, p));
    }
    if (is_sign(p, "=")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_expr(&out->fallback, p));
    }
    return QN_OK;
}

static qn_status parse_def(qn_script_statement *s, parser *p)
{
    qn_arena *arena = p->lexer.arena;
    const qn_script_expr *type;
    s->step = QN_STEP_DEF;
    QN_TRY(take_name(&s->name, p));
    QN_TRY(expect_sign(p, "("));
    while (!is_sign(p, ")")) {
        if (s->n_parameters == s->parameters_capacity) {
            const size_t capacity = s->parameters_capacity ? 2 * s->parameters_capacity : 4;
            s->parameters = qn_arena_widen(arena, s->parameters, s->n_parameters, capacity,
                                           sizeof *s->parameters);
            QN_TRY_ALLOC(p->lexer.ctx, s->parameters);
            s->parameters_capacity = capacity;
        }
        QN_TRY(parse_parameter(&s->parameters[s->n_parameters++], p));
        if (!is_sign(p, ","))
            break;
        QN_TRY(qn_script_next(&p->lexer));
    }
    QN_TRY(expect_sign(p, ")"));
    if (is_sign(p, "->")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(parse_expr(&type, p));
    }
    return parse_body(&s->body, p);
}

static qn_status parse_class(qn_script_statement *s, parser *p)
{
    s->step = QN_STEP_CLASS;
    QN_TRY(take_name(&s->name, p));
    if (is_sign(p, "(")) {
        QN_TRY(qn_script_next(&p->lexer));
        if (!is_sign(p, ")"))
            QN_TRY(parse_expr(&s->value, p));
        QN_TRY(expect_sign(p, ")"));
    }
    return parse_body(&s->body, p);
}

static qn_status parse_word(qn_script_statement *s, parser *p, qn_script_step step)
{
    s->step = step;
    if (step == QN_STEP_RETURN && p->lexer.word != QN_SCRIPT_NEWLINE)
        QN_TRY(parse_bare(&s->value, p));
    return expect(p, QN_SCRIPT_NEWLINE, "the end of the line");
}

static qn_status parse_statement(qn_script_statement *s, parser *p)
{
    static const struct {
        const char *word;
        qn_script_step step;
    } words[] = {
        {"return", QN_STEP_RETURN}, {"pass", QN_STEP_PASS},   {"break", QN_STEP_BREAK},
        {"if", QN_STEP_IF},         {"for", QN_STEP_FOR},     {"while", QN_STEP_WHILE},
        {"def", QN_STEP_DEF},       {"class", QN_STEP_CLASS}, {"continue", QN_STEP_CONTINUE}};
    s->line = p->lexer.line;
    for (size_t i = 0; i < QN_COUNT_OF(words); i++) {
        if (!is_word(p, words[i].word))
            continue;
        QN_TRY(qn_script_next(&p->lexer));
        switch (words[i].step) {
        case QN_STEP_IF: return parse_if(s, p);
        case QN_STEP_FOR: return parse_loop(s, p, true);
        case QN_STEP_WHILE: return parse_loop(s, p, false);
        case QN_STEP_DEF: return parse_def(s, p);
        case QN_STEP_CLASS: return parse_class(s, p);
        default: return parse_word(s, p, words[i].step);
        }
    }
    return parse_assignment(s, p);
}

static qn_status parse_block(qn_script_block *out, parser *p)
{
    while (p->lexer.word != QN_SCRIPT_DEDENT && p->lexer.word != QN_SCRIPT_END) {
        qn_script_statement s = {.step = QN_STEP_PASS};
        QN_TRY(parse_statement(&s, p));
        if (out->count == out->capacity) {
            const size_t capacity = out->capacity ? 2 * out->capacity : 4;
            out->at = qn_arena_widen(p->lexer.arena, out->at, out->count, capacity, sizeof s);
            QN_TRY_ALLOC(p->lexer.ctx, out->at);
            out->capacity = capacity;
        }
        out->at[out->count++] = s;
    }
    return QN_OK;
}

qn_status qn_script_parse(qn_script_block *out, qn_context *ctx, qn_arena *arena, qn_string text,
                          const char *file)
{
    parser p = {.lexer = {.ctx = ctx,
                          .arena = arena,
                          .file = file,
                          .text = text.text,
                          .size = text.length,
                          .line = 1,
                          .line_begins = true,
                          .word = QN_SCRIPT_NEWLINE}};
    *out = (qn_script_block){.at = NULL};
    QN_TRY(qn_script_next(&p.lexer));
    QN_TRY(parse_block(out, &p));
    if (p.lexer.word != QN_SCRIPT_END)
        return qn_script_fail(&p.lexer, "a block ends that did not begin");
    return QN_OK;
}

const qn_script_statement *qn_script_find(const qn_script_block *block, qn_script_step step,
                                          const char *name)
{
    for (size_t i = 0; i < block->count; i++) {
        if (block->at[i].step == step && strcmp(block->at[i].name, name) == 0)
            return &block->at[i];
    }
    return NULL;
}
