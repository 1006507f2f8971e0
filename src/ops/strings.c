/* Strings: StringConcat, StringSplit, StringNormalizer. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/infer.h"

static const qn_port string_in[] = {{"X", 0, QN_SET_STRING, 0}};
static const qn_port string_out[] = {{"Y", 0, QN_SET_STRING, 0}};

/* ---- StringConcat ---------------------------------------------------------------------------- */

static const qn_port concat_in[] = {{"X", 0, QN_SET_STRING, 0}, {"Y", 0, QN_SET_STRING, 0}};

static qn_status concat_infer(qn_infer *self)
{
    return qn_infer_broadcast(self, 0, QN_STRING, 0, 2);
}

static qn_status concat_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *a = self->in[0], *b = self->in[1];
    int64_t a_strides[QN_MAX_RANK], b_strides[QN_MAX_RANK];
    qn_broadcast_strides(a_strides, a, out->rank, out->dims);
    qn_broadcast_strides(b_strides, b, out->rank, out->dims);
    const int64_t count = qn_tensor_count(out);
    for (int64_t i = 0; i < count; i++) {
        const qn_string *x =
            (const qn_string *)a->data + qn_offset_of(i, out->rank, out->dims, a_strides);
        const qn_string *y =
            (const qn_string *)b->data + qn_offset_of(i, out->rank, out->dims, b_strides);
        char *text = self->keep(self, x->length + y->length + 1);
        QN_TRY_ALLOC(self->ctx, text);
        memcpy(text, x->text, x->length);
        memcpy(text + x->length, y->text, y->length);
        ((qn_string *)out->data)[i] = (qn_string){text, x->length + y->length};
    }
    return QN_OK;
}

const qn_op qn_op_StringConcat = {.name = "StringConcat",
                                  .domain = "",
                                  .since = 20,
                                  QN_PORTS(in, concat_in),
                                  QN_PORTS(out, string_out),
                                  .quant = QN_QUANT_SHAPE,
                                  .infer = concat_infer,
                                  .eval = concat_eval,
                                  .brief = "strings one behind the other"};

/* ---- StringSplit ----------------------------------------------------------------------------- */

typedef struct split_attrs {
    const char *delimiter;
    int64_t maxsplit;
} split_attrs;
static const qn_attr_spec split_specs[] = {QN_STRING_ATTR(split_attrs, delimiter, NULL),
                                           QN_INT_ATTR(split_attrs, maxsplit, QN_ABSENT)};
static const qn_port split_out[] = {{"Y", 0, QN_SET_STRING, QN_OPTIONAL},
                                    {"Z", 0, QN_SET(QN_INT64), QN_OPTIONAL}};

static qn_status split_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, QN_STRING);
    qn_infer_copy_dims(self, 1, 0, QN_INT64);
    if (in->rank < 0)
        return QN_OK;
    if (in->rank >= QN_MAX_RANK)
        return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
    out.dims[in->rank] = qn_dim_unknown();
    qn_infer_set(self, 0, QN_STRING, in->rank + 1, out.dims);
    return QN_OK;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the next part off *rest; false at the end. Without a delimiter, runs of white space divide
 * and those at both ends do not count. */
static bool next_part(qn_string *part, qn_string *rest, const char *delimiter, bool last)
{
    const size_t d = delimiter ? strlen(delimiter) : 0;
    if (!rest->text)
        return false;
    while (d == 0 && rest->length && is_space(*rest->text)) {
        rest->text++;
        rest->length--;
    }
    if (d == 0 && rest->length == 0)
        return false;
    *part = *rest;
    if (d == 0 && last) {
        while (part->length && is_space(part->text[part->length - 1]))
            part->length--;
    }
    for (size_t i = 0; !last && i + QN_MAX(d, 1) <= rest->length; i++) {
        if (d ? memcmp(rest->text + i, delimiter, d) == 0 : is_space(rest->text[i])) {
            part->length = i;
            *rest = (qn_string){rest->text + i + QN_MAX(d, 1), rest->length - i - QN_MAX(d, 1)};
            return true;
        }
    }
    rest->text = NULL;
    return true;
}

/* Parts of a string, written to `out` when there is one; how many. An empty string has one empty
 * part, or none where white space divides. */
static int64_t split_parts(qn_string *out, const qn_string *text, const split_attrs *a)
{
    const char *delimiter = a->delimiter && *a->delimiter ? a->delimiter : NULL;
    qn_string rest = *text, part;
    int64_t count = 0;
    if (text->length == 0)
        return 0;
    while (next_part(&part, &rest, delimiter, a->maxsplit != QN_ABSENT && count >= a->maxsplit)) {
        if (out)
            out[count] = part;
        count++;
    }
    return count;
}

static qn_status split_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    const qn_string *texts = in->data;
    const int64_t count = qn_tensor_count(in);
    int64_t most = 0, dims[QN_MAX_RANK];
    for (int64_t i = 0; i < count; i++) {
        const int64_t parts = split_parts(NULL, &texts[i], self->attrs);
        most = QN_MAX(most, parts);
    }
    if (in->rank >= QN_MAX_RANK)
        return qn_eval_fail(self, "more than %d dimensions", QN_MAX_RANK);
    memcpy(dims, in->dims, sizeof dims);
    dims[in->rank] = most;
    if (qn_eval_out(self, 0))
        QN_TRY(qn_eval_output(self, 0, QN_STRING, in->rank + 1, dims));
    if (qn_eval_out(self, 1))
        QN_TRY(qn_eval_output(self, 1, QN_INT64, in->rank, dims));
    for (int64_t i = 0; i < count; i++) {
        qn_string *row = qn_eval_out(self, 0) ? (qn_string *)self->out[0]->data + i * most : NULL;
        const int64_t parts = split_parts(row, &texts[i], self->attrs);
        for (int64_t k = parts; row && k < most; k++)
            row[k] = (qn_string){"", 0};
        if (qn_eval_out(self, 1))
            ((int64_t *)self->out[1]->data)[i] = parts;
    }
    return QN_OK;
}

const qn_op qn_op_StringSplit = {.name = "StringSplit",
                                 .domain = "",
                                 .since = 20,
                                 QN_PORTS(in, string_in),
                                 QN_PORTS(out, split_out),
                                 QN_ATTRS(split_specs, split_attrs),
                                 .flags = QN_OP_ALLOCATES,
                                 .quant = QN_QUANT_SHAPE,
                                 .infer = split_infer,
                                 .eval = split_eval,
                                 .brief = "strings divided at a delimiter"};

/* ---- StringNormalizer ------------------------------------------------------------------------ */

enum { CASE_NONE, CASE_LOWER, CASE_UPPER };
static const char *const case_words[] = {"NONE", "LOWER", "UPPER", NULL};

typedef struct normalizer_attrs {
    int64_t case_change_action, is_case_sensitive;
    const char *locale;
    qn_strings stopwords;
} normalizer_attrs;
static const qn_attr_spec normalizer_specs[] = {
    QN_ENUM_ATTR(normalizer_attrs, case_change_action, CASE_NONE, case_words),
    QN_INT_ATTR(normalizer_attrs, is_case_sensitive, 0),
    QN_STRING_ATTR(normalizer_attrs, locale, NULL), QN_ATTR(normalizer_attrs, stopwords, STRINGS)};

static qn_status normalizer_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    const qn_dim dims[2] = {qn_dim_of(1), qn_dim_unknown()};
    qn_infer_set_dtype(self, 0, QN_STRING);
    if (in->rank < 0)
        return QN_OK;
    const bool one = in->rank == 2 && (in->dims[0].value == 1 || in->dims[0].value < 0);
    if (in->rank != 1 && !one)
        return qn_infer_fail(self, "the input must be [C] or [1, C]");
    qn_infer_set(self, 0, QN_STRING, in->rank, in->rank == 2 ? dims : dims + 1);
    return QN_OK;
}

/* ASCII letters; others are kept as they are, whatever the locale. */
static char lower_of(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper_of(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same_text(const qn_string *a, const qn_string *b, bool exact)
{
    if (a->length != b->length)
        return false;
    for (size_t i = 0; i < a->length; i++) {
        const bool same =
            exact ? a->text[i] == b->text[i] : lower_of(a->text[i]) == lower_of(b->text[i]);
        if (!same)
            return false;
    }
    return true;
}

static bool is_stopword(const normalizer_attrs *a, const qn_string *text)
{
    for (size_t i = 0; i < a->stopwords.count; i++) {
        if (same_text(&a->stopwords.at[i], text, a->is_case_sensitive != 0))
            return true;
    }
    return false;
}

static qn_status change_case(qn_eval *self, qn_string *out, const qn_string *text)
{
    const int64_t action = ((const normalizer_attrs *)self->attrs)->case_change_action;
    char *copy = self->keep(self, text->length + 1);
    QN_TRY_ALLOC(self->ctx, copy);
    for (size_t i = 0; i < text->length; i++)
        copy[i] = action == CASE_LOWER   ? lower_of(text->text[i])
                  : action == CASE_UPPER ? upper_of(text->text[i])
                                         : text->text[i];
    *out = (qn_string){copy, text->length};
    return QN_OK;
}

static qn_status normalizer_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    const qn_string *texts = in->data;
    const int64_t count = qn_tensor_count(in);
    int64_t kept = 0, at = 0;
    for (int64_t i = 0; i < count; i++)
        kept += !is_stopword(self->attrs, &texts[i]);
    /* When nothing is left, one empty string stands for it. */
    const int64_t dims[2] = {1, QN_MAX(kept, 1)};
    QN_TRY(
        qn_eval_output(self, 0, QN_STRING, in->rank == 2 ? 2 : 1, in->rank == 2 ? dims : dims + 1));
    qn_string *out = self->out[0]->data;
    out[0] = (qn_string){"", 0};
    for (int64_t i = 0; i < count; i++) {
        if (!is_stopword(self->attrs, &texts[i]))
            QN_TRY(change_case(self, &out[at++], &texts[i]));
    }
    return QN_OK;
}

const qn_op qn_op_StringNormalizer = {.name = "StringNormalizer",
                                      .domain = "",
                                      .since = 10,
                                      QN_PORTS(in, string_in),
                                      QN_PORTS(out, string_out),
                                      QN_ATTRS(normalizer_specs, normalizer_attrs),
                                      .flags = QN_OP_ALLOCATES,
                                      .quant = QN_QUANT_SHAPE,
                                      .infer = normalizer_infer,
                                      .eval = normalizer_eval,
                                      .brief = "changes the case, drops stop words"};
