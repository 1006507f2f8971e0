/* Fourier transforms of any length, in doubles. */
#ifndef QN_FFT_H
#define QN_FFT_H

#include "ops/eval.h"

typedef struct qn_complex {
    double re, im;
} qn_complex;

/* A length that is a product of small factors, each of which is a round of the transform. */
enum { QN_FFT_MOST_ROUNDS = 64 };
typedef struct qn_fft_rounds {
    int64_t length;
    int64_t factors[QN_FFT_MOST_ROUNDS];
    /* e^(-2 pi i k / length) */
    qn_complex *roots;
} qn_fft_rounds;

/* Tables for transforms of one length. */
typedef struct qn_fft {
    int64_t length;
    qn_fft_rounds rounds;
    /* A length with a large prime factor is done as a convolution with a chirp, by transforms of a
     * power of two. */
    bool convolves;
    /* [length]: e^(-pi i k^2 / length) */
    qn_complex *chirp;
    /* [rounds.length]: transform of the conjugate chirp, around 0 */
    qn_complex *filter;
    /* [rounds.length] */
    qn_complex *work[2];
} qn_fft;

/* The length is at least 1; the tables are scratch memory of the kernel. */
QN_MUST_CHECK qn_status qn_fft_make(qn_fft *out, qn_eval *self, int64_t length);
/* out[k] = sum over j of in[j] e^(-2 pi i j k / length); not in place. */
void qn_fft_run(const qn_fft *fft, qn_complex *out, const qn_complex *in);

#endif
