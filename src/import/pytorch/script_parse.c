/* TorchScript source as trees: statements, functions, classes. */
#include <string.h>

#include "import/pytorch/script_parser.h"

static qn_status parse_block(qn_script_block *out, qn_parser *p);

/* "target = value", "target : type = value", or a value alone. */
static qn_status parse_assignment(qn_script_statement *s, qn_parser *p)
{
    const qn_script_expr *first;
    QN_TRY(qn_parser_bare(&first, p));
    s->step = QN_STEP_EXPR;
    s->value = first;
    if (qn_parser_is_sign(p, ":")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(qn_parser_expr(&s->type, p));
        s->step = QN_STEP_ASSIGN;
        s->target = first;
        s->value = NULL;
    }
    if (qn_parser_is_sign(p, "=")) {
        QN_TRY(qn_script_next(&p->lexer));
        s->step = QN_STEP_ASSIGN;
        s->target = first;
        QN_TRY(qn_parser_bare(&s->value, p));
    }
    return qn_parser_expect(p, QN_SCRIPT_NEWLINE, "the end of the line");
}

static qn_status parse_body(qn_script_block *out, qn_parser *p)
{
    if (++p->depth > QN_PARSER_MOST_DEPTH)
        return qn_script_fail(&p->lexer, "blocks are nested too deep");
    QN_TRY(qn_parser_expect_sign(p, ":"));
    QN_TRY(qn_parser_expect(p, QN_SCRIPT_NEWLINE, "the end of the line"));
    QN_TRY(qn_parser_expect(p, QN_SCRIPT_INDENT, "a block"));
    QN_TRY(parse_block(out, p));
    p->depth--;
    return qn_parser_expect(p, QN_SCRIPT_DEDENT, "the end of the block");
}

static qn_status parse_if(qn_script_statement *s, qn_parser *p)
{
    s->step = QN_STEP_IF;
    QN_TRY(qn_parser_expr(&s->value, p));
    QN_TRY(parse_body(&s->body, p));
    if (qn_parser_is_word(p, "else")) {
        QN_TRY(qn_script_next(&p->lexer));
        return parse_body(&s->otherwise, p);
    }
    if (!qn_parser_is_word(p, "elif"))
        return QN_OK;
    qn_script_statement *inner = qn_arena_alloc(p->lexer.arena, sizeof *inner);
    QN_TRY_ALLOC(p->lexer.ctx, inner);
    if (++p->depth > QN_PARSER_MOST_DEPTH)
        return qn_script_fail(&p->lexer, "blocks are nested too deep");
    QN_TRY(qn_script_next(&p->lexer));
    QN_TRY(parse_if(inner, p));
    p->depth--;
    s->otherwise = (qn_script_block){.at = inner, .count = 1, .capacity = 1};
    return QN_OK;
}

static qn_status parse_loop(qn_script_statement *s, qn_parser *p, bool is_for)
{
    s->step = is_for ? QN_STEP_FOR : QN_STEP_WHILE;
    if (is_for) {
        QN_TRY(qn_parser_tail(&s->target, p));
        if (!qn_parser_is_word(p, "in"))
            return qn_script_fail(&p->lexer, "'%s' where 'in' is wanted", p->lexer.spelling);
        QN_TRY(qn_script_next(&p->lexer));
    }
    QN_TRY(qn_parser_expr(&s->value, p));
    return parse_body(&s->body, p);
}

static qn_status parse_parameter(qn_script_parameter *out, qn_parser *p)
{
    QN_TRY(qn_parser_take_name(&out->name, p));
    if (qn_parser_is_sign(p, ":")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(qn_parser_expr(&out->type, p));
    }
    if (qn_parser_is_sign(p, "=")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(qn_parser_expr(&out->fallback, p));
    }
    return QN_OK;
}

static qn_status parse_def(qn_script_statement *s, qn_parser *p)
{
    qn_arena *arena = p->lexer.arena;
    const qn_script_expr *type;
    s->step = QN_STEP_DEF;
    QN_TRY(qn_parser_take_name(&s->name, p));
    QN_TRY(qn_parser_expect_sign(p, "("));
    while (!qn_parser_is_sign(p, ")")) {
        if (s->n_parameters == s->parameters_capacity) {
            const size_t capacity = s->parameters_capacity ? 2 * s->parameters_capacity : 4;
            s->parameters = qn_arena_widen(arena, s->parameters, s->n_parameters, capacity,
                                           sizeof *s->parameters);
            QN_TRY_ALLOC(p->lexer.ctx, s->parameters);
            s->parameters_capacity = capacity;
        }
        QN_TRY(parse_parameter(&s->parameters[s->n_parameters++], p));
        if (!qn_parser_is_sign(p, ","))
            break;
        QN_TRY(qn_script_next(&p->lexer));
    }
    QN_TRY(qn_parser_expect_sign(p, ")"));
    if (qn_parser_is_sign(p, "->")) {
        QN_TRY(qn_script_next(&p->lexer));
        QN_TRY(qn_parser_expr(&type, p));
    }
    return parse_body(&s->body, p);
}

static qn_status parse_class(qn_script_statement *s, qn_parser *p)
{
    s->step = QN_STEP_CLASS;
    QN_TRY(qn_parser_take_name(&s->name, p));
    if (qn_parser_is_sign(p, "(")) {
        QN_TRY(qn_script_next(&p->lexer));
        if (!qn_parser_is_sign(p, ")"))
            QN_TRY(qn_parser_expr(&s->value, p));
        QN_TRY(qn_parser_expect_sign(p, ")"));
    }
    return parse_body(&s->body, p);
}

static qn_status parse_word(qn_script_statement *s, qn_parser *p, qn_script_step step)
{
    s->step = step;
    if (step == QN_STEP_RETURN && p->lexer.word != QN_SCRIPT_NEWLINE)
        QN_TRY(qn_parser_bare(&s->value, p));
    return qn_parser_expect(p, QN_SCRIPT_NEWLINE, "the end of the line");
}

static qn_status parse_statement(qn_script_statement *s, qn_parser *p)
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
        if (!qn_parser_is_word(p, words[i].word))
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

static qn_status parse_block(qn_script_block *out, qn_parser *p)
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
    qn_parser p = {.lexer = {.ctx = ctx,
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
