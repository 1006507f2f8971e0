/* Numbers read from text and written as text, whatever the locale. */
#include "base/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 800 }; /* a double has at most 767 significant digits */

/* The decimal point of the current locale: what stands between the digits of 0.5. (localeconv is
 * not safe beside other threads.) */
static size_t point_of_locale(char out[16])
{
    char half[24];
    const int length = snprintf(half, sizeof half, "%.1f", 0.5);
    const size_t size = length > 2 && length < 18 ? (size_t)length - 2 : 1;
    memcpy(out, size == 1 && length != 3 ? "." : half + 1, size);
    return size;
}

bool qn_number_parse(double *out, const char *text, size_t length)
{
    char local[LONGEST + 32], point[16];
    if (length == 0 || length > LONGEST || isspace((unsigned char)text[0]))
        return false;
    const char *dot = memchr(text, '.', length);
    const size_t head = dot ? (size_t)(dot - text) : length;
    size_t used = head;
    memcpy(local, text, head);
    if (dot) {
        const size_t size = point_of_locale(point);
        memcpy(local + used, point, size);
        memcpy(local + used + size, dot + 1, length - head - 1);
        used += size + length - head - 1;
    }
    local[used] = 0;
    char *end;
    const double value = strtod(local, &end);
    if (end != local + used)
        return false;
    *out = value;
    return true;
}

/* What the locale put between digits becomes '.'. */
static void point_to_dot(char *text)
{
    char *at = text, *to = text;
    while (*at) {
        if (isalnum((unsigned char)*at) || *at == '-' || *at == '+') {
            *to++ = *at++;
            continue;
        }
        *to++ = '.';
        while (*at && !isalnum((unsigned char)*at))
            at++;
    }
    *to = 0;
}

static const char *format_special(char *out, double value)
{
    const char *text = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    memcpy(out, text, strlen(text) + 1);
    return out;
}

const char *qn_number_format_double(char out[QN_NUMBER_SIZE], double value)
{
    if (!isfinite(value))
        return format_special(out, value);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, QN_NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    point_to_dot(out);
    return out;
}

const char *qn_number_format_float(char out[QN_NUMBER_SIZE], float value)
{
    if (!isfinite(value))
        return format_special(out, (double)value);
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, QN_NUMBER_SIZE, "%.*g", digits, (double)value);
        if (strtof(out, NULL) == value)
            break;
    }
    point_to_dot(out);
    return out;
}
