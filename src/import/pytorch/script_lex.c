/* Words of TorchScript source: names, numbers, texts, signs, and blocks by indentation. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/pytorch/script.h"

qn_status qn_script_fail(const qn_script_lexer *lexer, const char *format, ...)
{
    char text[QN_ERROR_SIZE / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return qn_fail(lexer->ctx, QN_E_FORMAT, "%s:%zu: %s", lexer->file, lexer->line, text);
}

static char peek(const qn_script_lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->size ? lexer->text[lexer->at + ahead] : 0;
}

static qn_status spell(qn_script_lexer *lexer, qn_script_word word, size_t length)
{
    lexer->word = word;
    lexer->spelling = qn_arena_text(lexer->arena, lexer->text + lexer->at, length);
    lexer->at += length;
    QN_TRY_ALLOC(lexer->ctx, lexer->spelling);
    return QN_OK;
}

/* Blanks, comments, and inside brackets ends of lines. */
static void skip_blanks(qn_script_lexer *lexer)
{
    for (;;) {
        const char c = peek(lexer, 0);
        if (c == '#') {
            while (lexer->at < lexer->size && peek(lexer, 0) != '\n')
                lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && lexer->brackets > 0)) {
            lexer->line += c == '\n';
            lexer->at++;
        } else
            return;
    }
}

/* The column where the next line with words begins. */
static size_t next_column(qn_script_lexer *lexer)
{
    for (;;) {
        size_t column = 0;
        while (peek(lexer, 0) == ' ' || peek(lexer, 0) == '\t') {
            lexer->at++;
            column++;
        }
        skip_blanks(lexer);
        if (peek(lexer, 0) != '\n' || lexer->at >= lexer->size)
            return lexer->at < lexer->size ? column : 0;
        lexer->at++;
        lexer->line++;
    }
}

/* Opens a block, or closes as many as the column says. */
static qn_status begin_line(qn_script_lexer *lexer)
{
    const size_t column = next_column(lexer);
    const size_t now = lexer->levels ? lexer->columns[lexer->levels - 1] : 0;
    lexer->line_begins = false;
    if (column > now) {
        if (lexer->levels == QN_SCRIPT_LEVELS)
            return qn_script_fail(lexer, "blocks are nested too deep");
        lexer->columns[lexer->levels++] = column;
        lexer->pending = 1;
        return QN_OK;
    }
    while (lexer->levels && lexer->columns[lexer->levels - 1] > column) {
        lexer->levels--;
        lexer->pending--;
    }
    return QN_OK;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Digits, a point, an exponent; "1e-05". */
static size_t number_length(const qn_script_lexer *lexer)
{
    size_t n = 0;
    for (;;) {
        const char c = peek(lexer, n);
        const char before = n ? peek(lexer, n - 1) : 0;
        const bool sign = (c == '-' || c == '+') && (before == 'e' || before == 'E');
        if (!isalnum((unsigned char)c) && c != '.' && !sign)
            return n;
        n++;
    }
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One character of a text, after a backslash. */
static char escaped(qn_script_lexer *lexer)
{
    static const char from[] = "nrtabfv0", to[] = "\n\r\t\a\b\f\v";
    const char c = peek(lexer, 0);
    const char *found = c ? strchr(from, c) : NULL;
    if (c == 'x' && hex(peek(lexer, 1)) >= 0 && hex(peek(lexer, 2)) >= 0) {
        const char value = (char)(hex(peek(lexer, 1)) * 16 + hex(peek(lexer, 2)));
        lexer->at += 3;
        return value;
    }
    lexer->at++;
    return found ? to[found - from] : c;
}

static qn_status read_text(qn_script_lexer *lexer)
{
    const char quote = peek(lexer, 0);
    size_t length = 0;
    char *text = qn_arena_alloc(
        lexer->arena, lexer->size - lexer->at + 1 < 4096 ? lexer->size - lexer->at + 1 : 4096);
    QN_TRY_ALLOC(lexer->ctx, text);
    lexer->at++;
    while (lexer->at < lexer->size && peek(lexer, 0) != quote) {
        if (length + 2 > 4096 || peek(lexer, 0) == '\n')
            return qn_script_fail(lexer, "a text does not end");
        if (peek(lexer, 0) == '\\') {
            lexer->at++;
            text[length++] = escaped(lexer);
        } else
            text[length++] = lexer->text[lexer->at++];
    }
    if (lexer->at >= lexer->size)
        return qn_script_fail(lexer, "a text does not end");
    lexer->at++;
    lexer->word = QN_SCRIPT_TEXT;
    lexer->spelling = qn_arena_text(lexer->arena, text, length);
    QN_TRY_ALLOC(lexer->ctx, lexer->spelling);
    return QN_OK;
}

static qn_status read_sign(qn_script_lexer *lexer)
{
    static const char *const pairs[] = {"->", "==", "!=", "<=", ">=", "//", "**", "<<", ">>"};
    const char c = peek(lexer, 0);
    lexer->brackets += c == '(' || c == '[' || c == '{';
    lexer->brackets -= c == ')' || c == ']' || c == '}';
    if (lexer->brackets < 0)
        return qn_script_fail(lexer, "a bracket closes that was not opened");
    for (size_t i = 0; i < QN_COUNT_OF(pairs); i++) {
        if (c == pairs[i][0] && peek(lexer, 1) == pairs[i][1])
            return spell(lexer, QN_SCRIPT_SIGN, 2);
    }
    return spell(lexer, QN_SCRIPT_SIGN, 1);
}

/* A word that has no letters. */
static qn_status tell(qn_script_lexer *lexer, qn_script_word word)
{
    lexer->word = word;
    lexer->spelling = "";
    return QN_OK;
}

qn_status qn_script_next(qn_script_lexer *lexer)
{
    if (lexer->line_begins)
        QN_TRY(begin_line(lexer));
    if (lexer->pending) {
        const bool opens = lexer->pending > 0;
        lexer->pending += opens ? -1 : 1;
        return tell(lexer, opens ? QN_SCRIPT_INDENT : QN_SCRIPT_DEDENT);
    }
    skip_blanks(lexer);
    if (lexer->at >= lexer->size) {
        if (lexer->word != QN_SCRIPT_NEWLINE && lexer->word != QN_SCRIPT_DEDENT &&
            lexer->word != QN_SCRIPT_END) {
            lexer->line_begins = true;
            return tell(lexer, QN_SCRIPT_NEWLINE);
        }
        return tell(lexer, QN_SCRIPT_END);
    }
    const char c = peek(lexer, 0);
    if (c == '\n') {
        lexer->at++;
        lexer->line++;
        lexer->line_begins = true;
        return tell(lexer, QN_SCRIPT_NEWLINE);
    }
    if (isdigit((unsigned char)c))
        return spell(lexer, QN_SCRIPT_NUMBER, number_length(lexer));
    if (c == '"' || c == '\'')
        return read_text(lexer);
    if (!is_name(c))
        return read_sign(lexer);
    size_t length = 1;
    while (is_name(peek(lexer, length)))
        length++;
    return spell(lexer, QN_SCRIPT_NAME, length);
}
