/* The text that describes preprocessing. */
#include "data/preprocess.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"

/* A piece of the text. */
typedef struct word {
    const char *at;
    size_t length;
} word;

static bool is(word w, const char *text)
{
    return strlen(text) == w.length && memcmp(w.at, text, w.length) == 0;
}

/* Cuts off what stands before the separator, which goes too. */
static word cut(word *rest, char separator)
{
    const char *end = rest->length ? memchr(rest->at, separator, rest->length) : NULL;
    const word first = {rest->at, end ? (size_t)(end - rest->at) : rest->length};
    const size_t used = end ? first.length + 1 : first.length;
    *rest = (word){rest->at + used, rest->length - used};
    return first;
}

static qn_status bad_value(qn_context *ctx, const char *key, word value, const char *wanted)
{
    return qn_fail(ctx, QN_E_OPTION, "preprocess: %s=%.*s is not %s", key, (int)value.length,
                   value.at, wanted);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool parse_side(int32_t *out, word w)
{
    enum { MOST = 65536 };
    int32_t value = 0;
    for (size_t i = 0; i < w.length; i++) {
        if (w.at[i] < '0' || w.at[i] > '9')
            return false;
        value = value * 10 + (w.at[i] - '0');
        if (value > MOST)
            return false;
    }
    *out = value;
    return true;
}

/* "N", then width gets -1, or "HEIGHTxWIDTH", where one side may be left out. */
static bool parse_size(int32_t *height, int32_t *width, word w)
{
    word rest = w;
    const word first = cut(&rest, 'x');
    if (first.length == w.length) {
        *width = -1;
        return parse_side(height, w) && *height > 0;
    }
    return parse_side(height, first) && parse_side(width, rest) && (*height > 0 || *width > 0);
}

/* "N" stands for a square. */
static bool parse_area(int32_t *height, int32_t *width, word w)
{
    if (!parse_size(height, width, w))
        return false;
    *width = *width < 0 ? *height : *width;
    return *height > 0 && *width > 0;
}

/* One number for all channels, or three, separated by '/'. */
static bool parse_numbers(float out[3], word w)
{
    size_t count = 0;
    do {
        const word one = cut(&w, '/');
        double value;
        if (count == 3 || !qn_number_parse(&value, one.at, one.length) || !isfinite((float)value))
            return false;
        out[count++] = (float)value;
    } while (w.length);
    if (count == 1)
        out[1] = out[2] = out[0];
    return count != 2;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static qn_status set_resize(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    word rest = value;
    const word size = cut(&rest, ':');
    int32_t height, width;
    if (!parse_size(&height, &width, size))
        return bad_value(ctx, key, value, "N, HEIGHTxWIDTH, HEIGHTx or xWIDTH, then :METHOD");
    p->fit = width < 0 ? QN_FIT_SHORT_SIDE : QN_FIT_SIZE;
    p->height = height;
    p->width = QN_MAX(width, 0);
    if (!rest.length)
        return QN_OK;
    p->resize = qn_resize_find(rest.at, rest.length);
    return p->resize ? QN_OK
                     : bad_value(ctx, key, value, "with method pillow-bilinear or opencv-linear");
}

static qn_status set_letterbox(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    word rest = value;
    p->fit = QN_FIT_CENTRE;
    p->shrink = false;
    if (!parse_area(&p->height, &p->width, cut(&rest, ':')))
        return bad_value(ctx, key, value, "N or HEIGHTxWIDTH, then :centre or :top-left");
    while (rest.length) {
        const word one = cut(&rest, ':');
        qn_resize_fn *resize = qn_resize_find(one.at, one.length);
        if (resize)
            p->resize = resize;
        else if (is(one, "top-left"))
            p->fit = QN_FIT_TOP_LEFT;
        else if (is(one, "shrink"))
            p->shrink = true;
        else if (!is(one, "centre") && !is(one, "center"))
            return bad_value(ctx, key, value,
                             "SIZE:centre|top-left:shrink:pillow-bilinear|opencv-linear");
    }
    return QN_OK;
}

static qn_status set_crop(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    return parse_area(&p->crop_height, &p->crop_width, value)
               ? QN_OK
               : bad_value(ctx, key, value, "N or HEIGHTxWIDTH");
}

static qn_status set_pad(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    return parse_area(&p->pad_height, &p->pad_width, value)
               ? QN_OK
               : bad_value(ctx, key, value, "N or HEIGHTxWIDTH");
}

static qn_status set_fill(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    float numbers[3];
    bool good = parse_numbers(numbers, value);
    for (int c = 0; good && c < 3; c++) {
        good = numbers[c] >= 0 && numbers[c] <= 255 && numbers[c] == floorf(numbers[c]);
        p->fill[c] = good ? (uint8_t)numbers[c] : 0;
    }
    return good ? QN_OK : bad_value(ctx, key, value, "one or three integers from 0 to 255");
}

static qn_status set_mean(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    return parse_numbers(p->mean, value)
               ? QN_OK
               : bad_value(ctx, key, value, "one number or three, as in 104/117/123");
}

static qn_status set_std(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    if (!parse_numbers(p->std, value) || p->std[0] == 0 || p->std[1] == 0 || p->std[2] == 0)
        return bad_value(ctx, key, value, "one number or three, none of them 0");
    return QN_OK;
}

static qn_status set_decode(qn_preprocess *p, qn_context *ctx, const char *key, word value)
{
    if (!is(value, "pillow") && !is(value, "opencv"))
        return bad_value(ctx, key, value, "pillow or opencv");
    p->decoder = is(value, "opencv") ? QN_DECODE_OPENCV : QN_DECODE_PILLOW;
    return QN_OK;
}

static const struct {
    const char *name;
    qn_status (*set)(qn_preprocess *, qn_context *, const char *, word);
} keys[] = {
    {"resize", set_resize}, {"letterbox", set_letterbox}, {"crop", set_crop},
    {"pad", set_pad},       {"fill", set_fill},           {"mean", set_mean},
    {"std", set_std},       {"decode", set_decode},
};

/* Words without a value: the field gets the number. */
typedef enum flag_field { FLAG_ROTATE, FLAG_UNIT, FLAG_COLOUR, FLAG_LAYOUT } flag_field;
static const struct {
    const char *name;
    flag_field field;
    int value;
} flags[] = {
    {"rotate", FLAG_ROTATE, true},         {"unit", FLAG_UNIT, true},
    {"rgb", FLAG_COLOUR, QN_COLOUR_RGB},   {"bgr", FLAG_COLOUR, QN_COLOUR_BGR},
    {"grey", FLAG_COLOUR, QN_COLOUR_GREY}, {"gray", FLAG_COLOUR, QN_COLOUR_GREY},
    {"nchw", FLAG_LAYOUT, QN_AXES_NCHW},   {"nhwc", FLAG_LAYOUT, QN_AXES_NHWC},
};

static bool set_flag(qn_preprocess *p, word w)
{
    for (size_t i = 0; i < QN_COUNT_OF(flags); i++) {
        if (!is(w, flags[i].name))
            continue;
        switch (flags[i].field) {
        case FLAG_ROTATE: p->rotate = true; break;
        case FLAG_UNIT: p->unit = true; break;
        case FLAG_COLOUR: p->colour = (qn_colour)flags[i].value; break;
        case FLAG_LAYOUT: p->layout = (qn_axes)flags[i].value; break;
        }
        return true;
    }
    return false;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} presets[] = {
    {"imagenet", "resize=256,crop=224,unit,mean=0.485/0.456/0.406,std=0.229/0.224/0.225"},
    {"imagenet-caffe", "resize=256,crop=224,bgr,mean=103.939/116.779/123.68"},
    {"imagenet-tf", "resize=256,crop=224,mean=127.5,std=127.5"},
    {"yolo", "letterbox=640:centre,fill=114,unit"},
    {"yolox", "letterbox=416:top-left,fill=114,bgr"},
    {"ppocr", "grey,pad=48x320,mean=127.5,std=127.5"},
};

const char *qn_preprocess_preset(size_t i, const char **text)
{
    if (i >= QN_COUNT_OF(presets))
        return NULL;
    *text = presets[i].text;
    return presets[i].name;
}

static const char *preset_text(word w)
{
    for (size_t i = 0; i < QN_COUNT_OF(presets); i++) {
        if (is(w, presets[i].name))
            return presets[i].text;
    }
    return NULL;
}

/* Name i of everything that the text may contain: steps with a value, words, presets. NULL past the
 * last. */
static const char *name_at(size_t i)
{
    const size_t n_keys = QN_COUNT_OF(keys), n_flags = QN_COUNT_OF(flags);
    if (i < n_keys)
        return keys[i].name;
    if (i < n_keys + n_flags)
        return flags[i - n_keys].name;
    i -= n_keys + n_flags;
    return i < QN_COUNT_OF(presets) ? presets[i].name : NULL;
}

enum { N_NAMES = QN_COUNT_OF(keys) + QN_COUNT_OF(flags) + QN_COUNT_OF(presets) };

static qn_status fail_unknown(qn_context *ctx, word name)
{
    const char *names[N_NAMES + 1] = {NULL};
    char steps[QN_ERROR_SIZE / 4] = "", in_front[QN_ERROR_SIZE / 4] = "", given[64];
    for (size_t i = 0; i < N_NAMES; i++) {
        const bool is_step = i < QN_COUNT_OF(keys) + QN_COUNT_OF(flags);
        names[i] = name_at(i);
        qn_word_list(is_step ? steps : in_front, sizeof steps, "%s%s", names[i],
                     i < QN_COUNT_OF(keys) ? "=" : "");
    }
    snprintf(given, sizeof given, "%.*s", (int)name.length, name.at);
    const char *best = qn_word_nearest(names, given);
    return qn_fail(
        ctx, QN_E_OPTION, "preprocess: unknown step '%s'%s%s%s (there are %s; in front: %s)", given,
        best ? "; did you mean " : "", best ? best : "", best ? "?" : "", steps, in_front);
}

static qn_status set_key(qn_preprocess *p, qn_context *ctx, word name, word value)
{
    for (size_t i = 0; i < QN_COUNT_OF(keys); i++) {
        if (is(name, keys[i].name))
            return keys[i].set(p, ctx, keys[i].name, value);
    }
    return fail_unknown(ctx, name);
}

static qn_status parse_steps(qn_preprocess *p, qn_context *ctx, word text)
{
    while (text.length) {
        word rest = cut(&text, ',');
        const bool valued = rest.length && memchr(rest.at, '=', rest.length) != NULL;
        const word name = cut(&rest, '=');
        if (valued)
            QN_TRY(set_key(p, ctx, name, rest));
        else if (!set_flag(p, name))
            return fail_unknown(ctx, name);
    }
    return QN_OK;
}

void qn_preprocess_init(qn_preprocess *out)
{
    *out = (qn_preprocess){.std = {1, 1, 1}};
}

qn_status qn_preprocess_parse(qn_preprocess *out, qn_context *ctx, const char *text)
{
    word all = {text ? text : "", text ? strlen(text) : 0};
    qn_preprocess_init(out);
    word rest = all;
    const char *preset = preset_text(cut(&rest, ','));
    if (preset) {
        QN_TRY(parse_steps(out, ctx, (word){preset, strlen(preset)}));
        all = rest;
    }
    return parse_steps(out, ctx, all);
}

qn_status qn_preprocess_check(qn_context *ctx, const char *text)
{
    qn_preprocess ignored;
    return qn_preprocess_parse(&ignored, ctx, text);
}
