/* RegexFullMatch. */
#include <regex.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

static const qn_port string_in[] = {{"X", 0, QN_SET_STRING, 0}};
typedef struct regex_attrs {
    const char *pattern;
} regex_attrs;
static const qn_attr_spec regex_specs[] = {QN_STRING_ATTR(regex_attrs, pattern, NULL)};
static const qn_port bool_out[] = {{"Y", 0, QN_SET_BOOL, 0}};

static qn_status regex_infer(qn_infer *self)
{
    if (!((const regex_attrs *)self->attrs)->pattern)
        return qn_infer_fail(self, "attribute 'pattern' is missing");
    qn_infer_copy_dims(self, 0, 0, QN_BOOL);
    return QN_OK;
}

/* ---- RE2's spelling in POSIX's ------------------------------------------------------------------
 * The C library's extended expressions find the longest match, so that a full match is one that
 * covers everything, and laziness makes no difference. Classes like \w and escapes inside brackets
 * are spelled out; what has no POSIX counterpart is refused. */

enum { MOST_EXPANSION = 16 }; /* characters that one of the pattern becomes, at most */

static const struct {
    char letter;
    /* What it stands for inside brackets (NULL: not possible), and outside */
    const char *inside, *outside;
} classes[] = {
    {'d', "0-9", "[0-9]"},
    {'D', NULL, "[^0-9]"},
    {'s', "[:space:]", "[[:space:]]"},
    {'S', NULL, "[^[:space:]]"},
    {'w', "[:alnum:]_", "[[:alnum:]_]"},
    {'W', NULL, "[^[:alnum:]_]"},
    {'b', NULL, "\\b"},
    {'B', NULL, "\\B"},
};

/* What \letter is, or NULL; then *literal says whether the letter stands for itself. */
static const char *escape_of(char letter, bool inside, bool *literal)
{
    const bool word = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == 0;
    *literal = !word;
    for (size_t i = 0; i < QN_COUNT_OF(classes); i++) {
        if (classes[i].letter == letter)
            return inside ? classes[i].inside : classes[i].outside;
    }
    return NULL;
}

static char *put(char *out, const char *text)
{
    const size_t length = strlen(text);
    memcpy(out, text, length);
    return out + length;
}

/* "[...]" at *at, which is left on the closing bracket. Escaped ']' and '-' go to the front and to
 * the end, where POSIX wants them when they are meant literally. NULL: refused. */
static char *put_bracket(char *out, const char **at)
{
    const char *p = *at + 1;
    const bool negated = *p == '^';
    p += negated;
    bool dash = false, close = *p == ']';
    p += close;
    for (const char *q = p; *q && *q != ']'; q++) {
        dash = dash || (q[0] == '\\' && q[1] == '-');
        close = close || (q[0] == '\\' && q[1] == ']');
        q += q[0] == '\\' && q[1];
    }
    out = put(out, negated ? "[^" : "[");
    out = put(out, close ? "]" : "");
    for (; *p && *p != ']'; p++) {
        bool literal = false;
        const char *text = *p == '\\' ? escape_of(*++p, true, &literal) : NULL;
        if (p[-1] == '\\' && !text && !literal)
            return NULL;
        if (*p == '[' && p[-1] != '\\')
            return NULL; /* a class in brackets of its own */
        if (text)
            out = put(out, text);
        else if (!literal || (*p != '-' && *p != ']'))
            *out++ = *p;
    }
    *at = p;
    return *p == ']' ? put(out, dash ? "-]" : "]") : NULL;
}

/* An escape, or a group at *at, which is left on its last character. NULL: refused. */
static char *put_special(char *out, const char **at)
{
    const char *p = *at;
    if (*p == '[')
        return put_bracket(out, at);
    if (*p == '(') {
        if (p[1] == '?' && p[2] != ':')
            return NULL;
        *at += p[1] == '?' ? 2 : 0;
        return put(out, "(");
    }
    bool literal;
    const char *text = escape_of(p[1], false, &literal);
    const char escaped[3] = {'\\', p[1], 0};
    if (!text && !literal)
        return NULL;
    *at += 1;
    return put(out, text ? text : escaped);
}

/* False: the pattern says something that POSIX cannot. */
static bool to_posix(char *out, const char *pattern)
{
    for (const char *p = pattern; *p; p++) {
        if (*p == '[' || *p == '(' || *p == '\\') {
            out = put_special(out, &p);
            if (!out)
                return false;
            continue;
        }
        *out++ = *p;
        /* A lazy quantifier is the same quantifier here. */
        if (strchr("*+?}", *p) && p[1] == '?')
            p++;
    }
    *out = 0;
    return true;
}

/* The whole of the string, terminated for the C library; a string with a zero byte never
 * matches. */
static qn_status regex_match(bool *out, qn_eval *self, const regex_t *regex, const qn_string *text)
{
    regmatch_t whole;
    char *copy = self->scratch(self, text->length + 1);
    QN_TRY_ALLOC(self->ctx, copy);
    memcpy(copy, text->text, text->length);
    copy[text->length] = 0;
    *out = strlen(copy) == text->length && regexec(regex, copy, 1, &whole, 0) == 0 &&
           whole.rm_so == 0 && (size_t)whole.rm_eo == text->length;
    return QN_OK;
}

static qn_status regex_eval(qn_eval *self)
{
    const char *pattern = ((const regex_attrs *)self->attrs)->pattern;
    const int64_t count = qn_tensor_count(self->in[0]);
    regex_t regex;
    char *posix = self->scratch(self, MOST_EXPANSION * strlen(pattern) + 1);
    qn_status status = QN_OK;
    QN_TRY_ALLOC(self->ctx, posix);
    if (!to_posix(posix, pattern) || regcomp(&regex, posix, REG_EXTENDED) != 0)
        return qn_fail(self->ctx, QN_E_UNSUPPORTED,
                       "node '%s' (RegexFullMatch): cannot compile the pattern '%s'",
                       self->node->name, pattern);
    for (int64_t i = 0; i < count && status == QN_OK; i++) {
        bool matches = false;
        status = regex_match(&matches, self, &regex, (const qn_string *)self->in[0]->data + i);
        ((uint8_t *)self->out[0]->data)[i] = matches;
    }
    regfree(&regex);
    return status;
}

const qn_op qn_op_RegexFullMatch = {.name = "RegexFullMatch",
                                    .domain = "",
                                    .since = 20,
                                    QN_PORTS(in, string_in),
                                    QN_PORTS(out, bool_out),
                                    QN_ATTRS(regex_specs, regex_attrs),
                                    .quant = QN_QUANT_SHAPE,
                                    .infer = regex_infer,
                                    .eval = regex_eval,
                                    .brief = "whether a whole string matches a pattern"};
