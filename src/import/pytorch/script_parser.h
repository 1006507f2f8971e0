/* The parser of TorchScript source: what expressions and statements have in common. */
#ifndef QN_SCRIPT_PARSER_H
#define QN_SCRIPT_PARSER_H

#include "import/pytorch/script.h"

/* Expressions within expressions, and statements within statements. */
enum { QN_PARSER_MOST_DEPTH = 200 };

typedef struct qn_parser {
    qn_script_lexer lexer;
    int depth;
} qn_parser;

/* Whether the word at hand is that sign, or that name. */
bool qn_parser_is_sign(const qn_parser *p, const char *sign);
bool qn_parser_is_word(const qn_parser *p, const char *word);
QN_MUST_CHECK qn_status qn_parser_expect_sign(qn_parser *p, const char *sign);
QN_MUST_CHECK qn_status qn_parser_expect(qn_parser *p, qn_script_word word, const char *what);
QN_MUST_CHECK qn_status qn_parser_take_name(const char **out, qn_parser *p);
QN_MUST_CHECK qn_status qn_parser_expr(const qn_script_expr **out, qn_parser *p);
/* "a" or "a, b, ": a tuple without brackets. */
QN_MUST_CHECK qn_status qn_parser_bare(const qn_script_expr **out, qn_parser *p);
/* An atom with its fields, calls and elements. */
QN_MUST_CHECK qn_status qn_parser_tail(const qn_script_expr **out, qn_parser *p);

#endif
