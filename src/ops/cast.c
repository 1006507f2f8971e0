/* Cast and CastLike: every element type into every other. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "ops/elementwise.h"
#include "ops/nn_attrs.h"

#define CASTABLE (QN_SET_TENSOR & ~(QN_SET(QN_COMPLEX64) | QN_SET(QN_COMPLEX128)))

static const qn_type_rule cast_types[] = {{9, QN_SET_STRING}};
static const qn_port cast_in[] = {{"input", '\0', CASTABLE, 0}};
static const qn_port cast_like_in[] = {{"input", '\0', CASTABLE, 0},
                                       {"target_type", 'T', CASTABLE, 0}};
static const qn_port cast_out[] = {{"output", 'T', CASTABLE, 0}};

/* ---- Before opset 6 the type was given by its name ------------------------------------------- */

static qn_status cast_upgrade(qn_node **node)
{
    qn_cast_attrs *a = (*node)->attrs;
    for (int64_t d = 1; a->to_name && d < QN_DTYPE_COUNT; d++) {
        if (strcmp(qn_dtype_get((qn_dtype)d)->onnx_name, a->to_name) == 0)
            a->to = d;
    }
    a->to_name = NULL;
    return QN_OK; /* an unknown name leaves `to` absent, which inference refuses */
}

static qn_status cast_downgrade(qn_node **node)
{
    qn_cast_attrs *a = (*node)->attrs;
    a->to_name = qn_dtype_get((qn_dtype)a->to)->onnx_name;
    a->to = QN_ABSENT;
    return QN_OK;
}

static const qn_version_rule cast_versions[] = {{6, cast_upgrade, cast_downgrade}};

/* ---- Inference ------------------------------------------------------------------------------- */

static qn_status infer_to(qn_infer *self, qn_dtype dtype)
{
    qn_dim elements[QN_MAX_RANK];
    size_t count;
    qn_infer_copy_dims(self, 0, 0, dtype);
    if (!qn_infer_wants(self, 0) || !qn_dtype_is_integer(self->in[0]->dtype) ||
        (dtype != QN_INT64 && dtype != QN_INT32) || self->in[0]->rank > 1 ||
        !qn_infer_elements(self, 0, elements, QN_MAX_RANK, &count))
        return QN_OK;
    for (size_t i = 0; i < count; i++) {
        if (dtype == QN_INT32 && elements[i].value > INT32_MAX)
            elements[i] = (qn_dim){QN_UNKNOWN_ELEMENT, NULL};
    }
    return qn_infer_set_elements(self, 0, elements, count);
}

static qn_status cast_infer(qn_infer *self)
{
    const qn_cast_attrs *a = self->attrs;
    if (a->to <= QN_UNDEFINED || a->to > 31 || !(QN_SET(a->to) & CASTABLE))
        return qn_infer_fail(self, "attribute 'to' is %lld, which is no type to cast to",
                             (long long)a->to);
    return infer_to(self, (qn_dtype)a->to);
}

static qn_status cast_like_infer(qn_infer *self)
{
    return infer_to(self, self->in[1]->dtype);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

enum { ROUND_UP, ROUND_DOWN, ROUND_NEAREST };
static const char *const round_words[] = {"up", "down", "nearest", NULL};

/* The next power of two above |x|, or below, or the nearer one (the upper at the middle). */
static double power_of_two(double x, int64_t mode)
{
    x = fabs(x);
    if (x == 0 || !isfinite(x))
        return x;
    const double low = ldexp(1, ilogb(x));
    const bool up = mode == ROUND_UP ? x > low : mode == ROUND_NEAREST && x >= 1.5 * low;
    return up ? 2 * low : low;
}

static void store_small(const qn_tensor *out, int64_t i, double x, const qn_cast_attrs *a)
{
    const qn_minifloat *small = qn_dtype_get(out->dtype)->minifloat;
    if (out->dtype == QN_FLOAT8E8M0)
        x = power_of_two(x, a->round_mode);
    ((uint8_t *)out->data)[i] = (uint8_t)qn_minifloat_encode(small, x, a->saturate);
}

static bool is_small(qn_dtype dtype)
{
    return qn_dtype_get(dtype)->minifloat && qn_dtype_size(dtype) == 1;
}

static void cast_float(const qn_tensor *out, const qn_tensor *in, const qn_cast_attrs *a)
{
    const int64_t count = qn_tensor_count(in);
    for (int64_t i = 0; i < count; i++) {
        double x;
        qn_load_f64(&x, in->dtype, in->data, i, 1);
        if (is_small(out->dtype))
            store_small(out, i, x, a);
        else
            qn_store_f64(out->data, out->dtype, i, &x, 1);
    }
}

static void cast_integer(const qn_tensor *out, const qn_tensor *in)
{
    const int64_t count = qn_tensor_count(in);
    for (int64_t i = 0; i < count; i++) {
        int64_t x;
        qn_load_i64(&x, in->dtype, in->data, i, 1);
        qn_store_i64(out->data, out->dtype, i, &x, 1);
    }
}

/* Integers go to other integers and to the two wide floats directly, rounding once. */
static void cast_number(const qn_tensor *out, const qn_tensor *in, const qn_cast_attrs *a)
{
    const bool wide = in->dtype == QN_UINT64 && qn_dtype_is_float(out->dtype);
    if (qn_dtype_is_integer(in->dtype) && !qn_dtype_get(out->dtype)->minifloat && !wide)
        cast_integer(out, in);
    else
        cast_float(out, in, a);
}

/* ---- From strings ---------------------------------------------------------------------------- */

enum { TEXT = 64 };

/* "3", "-1.5e3", "inf", "+INF", "NaN", blanks around; false for anything else. */
static bool parse(double *out, int64_t *integer, const qn_string *string)
{
    const char *text = string->text;
    size_t length = string->length;
    for (; length && isspace((unsigned char)text[0]); length--)
        text++;
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    if (!qn_number_parse(out, text, length))
        return false;
    /* Long integers exactly, everything else through the double. */
    char digits[TEXT], *end = digits;
    if (length < sizeof digits) {
        memcpy(digits, text, length);
        digits[length] = 0;
        *integer = strtoll(digits, &end, 10);
    }
    if (end == digits || *end)
        qn_load_i64(integer, QN_FLOAT64, out, 0, 1);
    return true;
}

static qn_status cast_from_strings(qn_eval *self, const qn_tensor *out, const qn_tensor *in)
{
    const qn_cast_attrs *a = self->attrs;
    const int64_t count = qn_tensor_count(in);
    for (int64_t i = 0; i < count; i++) {
        const qn_string *string = (const qn_string *)in->data + i;
        double number;
        int64_t integer;
        if (!parse(&number, &integer, string))
            return qn_eval_fail(self, "element %lld is '%.*s', which is no number", (long long)i,
                                (int)QN_MIN(string->length, TEXT), string->text);
        if (qn_dtype_is_integer(out->dtype) && out->dtype != QN_BOOL)
            qn_store_i64(out->data, out->dtype, i, &integer, 1);
        else if (is_small(out->dtype))
            store_small(out, i, number, a);
        else
            qn_store_f64(out->data, out->dtype, i, &number, 1);
    }
    return QN_OK;
}

/* ---- To strings ------------------------------------------------------------------------------ */

/* The shortest digits that give |x| back when read as `dtype`: d[0].d[1]d[2]... times 10 to the
 * returned exponent. */
static int shortest(char *digits, double x, qn_dtype dtype)
{
    int exponent = 0;
    for (int n = 1; n <= 17; n++) {
        char text[TEXT];
        double back;
        snprintf(text, sizeof text, "%.*e", n - 1, fabs(x));
        char *at = digits;
        for (const char *t = text; *t != 'e'; t++) {
            if (isdigit((unsigned char)*t)) /* not the point, which locales have as they like */
                *at++ = *t;
        }
        *at = 0;
        exponent = atoi(strchr(text, 'e') + 1);
        back = strtod(text, NULL);
        uint64_t element;
        qn_store_f64(&element, dtype, 0, &back, 1);
        qn_load_f64(&back, dtype, &element, 0, 1);
        if (back == fabs(x))
            break;
    }
    return exponent;
}

/* numpy's way: fixed notation from 1e-4 to 1e16, and always a point there. */
static void format_float(char *text, double x, qn_dtype dtype)
{
    const char *sign = signbit(x) ? "-" : "";
    char digits[TEXT];
    if (!isfinite(x)) {
        snprintf(text, TEXT, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    const int exponent = shortest(digits, x, dtype), count = (int)strlen(digits);
    const int whole = QN_MIN(count, exponent + 1); /* digits before the point */
    if (exponent < -4 || exponent >= 16)
        snprintf(text, TEXT, "%s%c%s%se%+03d", sign, digits[0], count > 1 ? "." : "", digits + 1,
                 exponent);
    else if (exponent < 0)
        snprintf(text, TEXT, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    else
        snprintf(text, TEXT, "%s%.*s%.*s.%s", sign, whole, digits, exponent + 1 - whole,
                 "0000000000000000", count > whole ? digits + whole : "0");
}

static void format_element(char *text, const qn_tensor *in, int64_t i)
{
    if (qn_dtype_is_float(in->dtype))
        format_float(text, qn_tensor_f64(in, i), in->dtype);
    else if (in->dtype == QN_BOOL)
        snprintf(text, TEXT, "%s", qn_tensor_i64(in, i) ? "True" : "False");
    else if (in->dtype == QN_UINT64)
        snprintf(text, TEXT, "%llu", (unsigned long long)qn_tensor_i64(in, i));
    else
        snprintf(text, TEXT, "%lld", (long long)qn_tensor_i64(in, i));
}

static qn_status cast_to_strings(qn_eval *self, const qn_tensor *out, const qn_tensor *in)
{
    const int64_t count = qn_tensor_count(in);
    for (int64_t i = 0; i < count; i++) {
        char text[TEXT];
        format_element(text, in, i);
        const size_t length = strlen(text);
        char *copy = self->keep(self, length + 1);
        QN_TRY_ALLOC(self->ctx, copy);
        memcpy(copy, text, length);
        ((qn_string *)out->data)[i] = (qn_string){copy, length};
    }
    return QN_OK;
}

/* ---- The operators --------------------------------------------------------------------------- */

static qn_status cast_eval(qn_eval *self)
{
    const qn_cast_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(in);
    if (in->dtype == out->dtype && count)
        memcpy(out->data, in->data, (size_t)count * qn_dtype_size(in->dtype));
    else if (in->dtype == QN_STRING)
        return cast_from_strings(self, out, in);
    else if (out->dtype == QN_STRING)
        return cast_to_strings(self, out, in);
    else
        cast_number(out, in, a);
    return QN_OK;
}

#define FLOAT8_SPECS                                                                               \
    QN_INT_ATTR(qn_cast_attrs, saturate, 1, .since = 19),                                          \
        QN_ENUM_ATTR(qn_cast_attrs, round_mode, ROUND_UP, round_words, .since = 24)
static const qn_attr_spec cast_specs[] = {{.name = "to",
                                           .kind = QN_ATTR_STRING,
                                           .offset = offsetof(qn_cast_attrs, to_name),
                                           .until = 6,
                                           .required = 1},
                                          QN_INT_ATTR(qn_cast_attrs, to, QN_ABSENT, .required = 6),
                                          FLOAT8_SPECS};
static const qn_attr_spec cast_like_specs[] = {FLOAT8_SPECS};

const qn_op qn_op_Cast = {.name = "Cast",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, cast_in),
                          QN_PORTS(out, cast_out),
                          QN_ATTRS(cast_specs, qn_cast_attrs),
                          QN_VERSIONS(cast_versions),
                          QN_TYPE_RULES(cast_types),
                          .flags = QN_OP_ELEMENTWISE,
                          .quant = QN_QUANT_FLOAT,
                          .infer = cast_infer,
                          .eval = cast_eval,
                          .brief = "converts to another element type"};

const qn_op qn_op_CastLike = {.name = "CastLike",
                              .domain = "",
                              .since = 15,
                              QN_PORTS(in, cast_like_in),
                              QN_PORTS(out, cast_out),
                              QN_ATTRS(cast_like_specs, qn_cast_attrs),
                              QN_TYPE_RULES(cast_types),
                              .quant = QN_QUANT_FLOAT,
                              .infer = cast_like_infer,
                              .eval = cast_eval,
                              .brief = "converts to the element type of another tensor"};
