/* Functions of real numbers by additions, multiplications and divisions in a fixed order: every
 * machine gets the same bits, which the C library does not promise. Errors are a few units in the
 * last place. Special values are those of <math.h>. */
#ifndef QN_REAL_H
#define QN_REAL_H

double qn_real_exp(double x);
double qn_real_expm1(double x); /* e^x - 1 */
double qn_real_log(double x);
double qn_real_log1p(double x); /* log(1 + x) */
double qn_real_tanh(double x);
double qn_real_erf(double x);
double qn_real_sigmoid(double x);  /* 1 / (1 + e^-x) */
double qn_real_softplus(double x); /* log(1 + e^x) */

#endif
