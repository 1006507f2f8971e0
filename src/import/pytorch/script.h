/* The source that TorchScript files hold: a small part of Python, printed by PyTorch itself. */
#ifndef QN_SCRIPT_H
#define QN_SCRIPT_H

#include "base/base.h"

/* ---- Words ----------------------------------------------------------------------------------- */

typedef enum qn_script_word {
    QN_SCRIPT_END,
    QN_SCRIPT_NEWLINE,
    QN_SCRIPT_INDENT,
    QN_SCRIPT_DEDENT,
    QN_SCRIPT_NAME,
    QN_SCRIPT_NUMBER,
    QN_SCRIPT_TEXT,
    QN_SCRIPT_SIGN,
} qn_script_word;

enum { QN_SCRIPT_LEVELS = 100 };

typedef struct qn_script_lexer {
    qn_context *ctx;
    qn_arena *arena;
    /* The file, for messages */
    const char *file;
    const char *text;
    size_t size, at, line;
    /* Open brackets: inside them lines do not end. */
    int brackets;
    /* Columns where open blocks begin, and ends of blocks that are still to be told */
    size_t columns[QN_SCRIPT_LEVELS];
    int levels, pending;
    bool line_begins;
    /* The word at hand. A text is without its quotes and escapes. */
    qn_script_word word;
    const char *spelling;
} qn_script_lexer;

QN_MUST_CHECK qn_status qn_script_next(qn_script_lexer *lexer);
QN_MUST_CHECK qn_status qn_script_fail(const qn_script_lexer *lexer, const char *format, ...)
    QN_PRINTF(2, 3);

/* ---- Trees ----------------------------------------------------------------------------------- */

typedef enum qn_script_kind {
    QN_EXPR_NAME,
    QN_EXPR_INT,
    QN_EXPR_REAL,
    QN_EXPR_TEXT,
    QN_EXPR_TRUE,
    QN_EXPR_FALSE,
    QN_EXPR_NONE,
    /* a.name */
    QN_EXPR_FIELD,
    /* a(items...), of which some may have names */
    QN_EXPR_CALL,
    /* a[b] */
    QN_EXPR_INDEX,
    QN_EXPR_LIST,
    QN_EXPR_TUPLE,
    /* Keys and values in turn */
    QN_EXPR_DICT,
    /* An operator's name in `text`, operands in items */
    QN_EXPR_OPERATOR,
    /* items: condition, then, else */
    QN_EXPR_CHOICE,
} qn_script_kind;

typedef struct qn_script_expr qn_script_expr;
struct qn_script_expr {
    qn_script_kind kind;
    /* A name, a text, or the function of an operator ("neg", "add") */
    const char *text;
    int64_t number;
    double real;
    const qn_script_expr *a, *b;
    const qn_script_expr **items;
    /* Names of arguments, or NULL each */
    const char **names;
    size_t count, capacity;
};

typedef enum qn_script_step {
    QN_STEP_ASSIGN,
    QN_STEP_EXPR,
    QN_STEP_RETURN,
    QN_STEP_IF,
    QN_STEP_FOR,
    QN_STEP_WHILE,
    QN_STEP_PASS,
    QN_STEP_BREAK,
    QN_STEP_CONTINUE,
    QN_STEP_DEF,
    QN_STEP_CLASS,
} qn_script_step;

typedef struct qn_script_block {
    struct qn_script_statement *at;
    size_t count, capacity;
} qn_script_block;

typedef struct qn_script_parameter {
    const char *name;
    const qn_script_expr *type, *fallback;
} qn_script_parameter;

typedef struct qn_script_statement {
    qn_script_step step;
    size_t line;
    /* The name of a function or class */
    const char *name;
    /* What is assigned to, or looped with; its type, where it has one */
    const qn_script_expr *target, *type;
    /* The value, the condition, what is looped over, the base of a class */
    const qn_script_expr *value;
    qn_script_block body, otherwise;
    qn_script_parameter *parameters;
    size_t n_parameters, parameters_capacity;
} qn_script_statement;

/* Parses a file. What it gives lies in the arena. */
QN_MUST_CHECK qn_status qn_script_parse(qn_script_block *out, qn_context *ctx, qn_arena *arena,
                                        qn_string text, const char *file);
/* The function or class of that name; NULL where there is none. */
const qn_script_statement *qn_script_find(const qn_script_block *block, qn_script_step step,
                                          const char *name);

#endif
