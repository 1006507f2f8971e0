/* Decimal text of floating-point numbers, the same in every locale. */
#ifndef QN_NUMBER_H
#define QN_NUMBER_H

#include "base/base.h"

/* Reads all of text[0..length): digits with '.', exponent, "inf", "infinity", "nan", each with an
 * optional sign; hexadecimal floats too. False, and *out untouched, when it is not a number.
 * Overflow gives infinity. */
bool qn_number_parse(double *out, const char *text, size_t length);

enum { QN_NUMBER_SIZE = 32 };

/* The shortest of the forms of %g that reads back as the same float or double. Returns out. */
const char *qn_number_format_float(char out[QN_NUMBER_SIZE], float value);
const char *qn_number_format_double(char out[QN_NUMBER_SIZE], double value);

#endif
