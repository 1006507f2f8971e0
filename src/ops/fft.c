/* Discrete Fourier transforms of any length. */
#include "ops/fft.h"

#include <math.h>

#define PI 3.14159265358979323846

enum { LARGEST_FACTOR = 61 }; /* a round takes time with the square of its factor */

static qn_complex times(qn_complex a, qn_complex b)
{
    return (qn_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static qn_complex plus(qn_complex a, qn_complex b)
{
    return (qn_complex){a.re + b.re, a.im + b.im};
}

static qn_complex minus(qn_complex a, qn_complex b)
{
    return (qn_complex){a.re - b.re, a.im - b.im};
}

static qn_complex conjugate(qn_complex a)
{
    return (qn_complex){a.re, -a.im};
}

/* a times -i */
static qn_complex turned(qn_complex a)
{
    return (qn_complex){a.im, -a.re};
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* n transforms of length 1, of elements m apart from out[0] on, become one of length n; element k
 * is turned by roots[k * turn] first. */
static void join(const qn_fft_rounds *r, qn_complex *out, int64_t n, int64_t m, int64_t turn)
{
    qn_complex parts[LARGEST_FACTOR];
    for (int64_t k = 0; k < n; k++)
        parts[k] = times(out[k * m], r->roots[k * turn]);
    for (int64_t q = 0; q < n; q++) {
        qn_complex sum = parts[0];
        for (int64_t k = 1, at = q; k < n; k++, at = at + q < n ? at + q : at + q - n)
            sum = plus(sum, times(parts[k], r->roots[at * (r->length / n)]));
        out[q * m] = sum;
    }
}

static void join_2(const qn_fft_rounds *r, qn_complex *out, int64_t m, int64_t turn)
{
    const qn_complex a = out[0], b = times(out[m], r->roots[turn]);
    out[0] = plus(a, b);
    out[m] = minus(a, b);
}

static void join_4(const qn_fft_rounds *r, qn_complex *out, int64_t m, int64_t turn)
{
    const qn_complex a = out[0], b = times(out[m], r->roots[turn]);
    const qn_complex c = times(out[2 * m], r->roots[2 * turn]);
    const qn_complex d = times(out[3 * m], r->roots[3 * turn]);
    const qn_complex even = plus(a, c), odd = plus(b, d);
    const qn_complex even_turned = minus(a, c), odd_turned = turned(minus(b, d));
    out[0] = plus(even, odd);
    out[m] = plus(even_turned, odd_turned);
    out[2 * m] = minus(even, odd);
    out[3 * m] = minus(even_turned, odd_turned);
}

/* out[n] = the transform of the elements of `in` that are `step` apart: of every factor-th of them
 * first. */
static void transform(const qn_fft_rounds *r, qn_complex *out, const qn_complex *in, int64_t n,
                      int round)
{
    const int64_t step = r->length / n, factor = r->factors[round], m = n / factor;
    for (int64_t k = 0; k < factor; k++) {
        if (m == 1)
            out[k] = in[k * step];
        else
            transform(r, out + k * m, in + k * step, m, round + 1);
    }
    for (int64_t j = 0; j < m; j++) {
        if (factor == 4)
            join_4(r, out + j, m, j * step);
        else if (factor == 2)
            join_2(r, out + j, m, j * step);
        else
            join(r, out + j, factor, m, j * step);
    }
}

static void run_rounds(const qn_fft_rounds *r, qn_complex *out, const qn_complex *in)
{
    if (r->length == 1)
        out[0] = in[0];
    else
        transform(r, out, in, r->length, 0);
}

/* False where a factor is too large. */
static bool find_factors(qn_fft_rounds *out, int64_t length)
{
    int count = 0;
    out->length = length;
    for (int64_t factor = 4; length > 1;) {
        if (factor > LARGEST_FACTOR)
            return false;
        if (length % factor == 0) {
            out->factors[count++] = factor;
            length /= factor;
        } else {
            factor = factor == 4 ? 2 : factor == 2 ? 3 : factor + 2;
        }
    }
    return true;
}

/* Where the length has halves or quarters, one is worked out and turned into the others. */
static qn_status make_roots(qn_fft_rounds *r, qn_eval *self)
{
    const int64_t n = r->length, parts = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, n, sizeof *r->roots));
    r->roots = block;
    for (int64_t k = 0; k < n / parts; k++) {
        const double angle = -2 * PI * (double)k / (double)n;
        r->roots[k] = (qn_complex){cos(angle), sin(angle)};
    }
    for (int64_t k = n / parts; k < n; k++) {
        const qn_complex before = turned(r->roots[k - n / parts]);
        r->roots[k] = parts == 4 ? before : turned(before);
    }
    return QN_OK;
}

/* ---- Convolution ----------------------------------------------------------------------------- */

/* Since 2 j k = j^2 + k^2 - (k - j)^2, the transform is chirp[k] times the convolution of in .
 * chirp with the chirp's conjugate. */
static qn_status make_convolution(qn_fft *f, qn_eval *self)
{
    const int64_t n = f->length, m = f->rounds.length;
    void *chirp, *filter, *work[2];
    QN_TRY(qn_eval_scratch(self, &chirp, n, sizeof *f->chirp));
    QN_TRY(qn_eval_scratch(self, &filter, m, sizeof *f->filter));
    for (int i = 0; i < 2; i++) {
        QN_TRY(qn_eval_scratch(self, &work[i], m, sizeof **f->work));
        f->work[i] = work[i];
    }
    f->chirp = chirp;
    f->filter = filter;
    for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), k++) {
        const double angle = -PI * (double)square / (double)n; /* whole turns are taken off */
        f->chirp[k] = (qn_complex){cos(angle), sin(angle)};
    }
    for (int64_t k = 0; k < m; k++) {
        const int64_t from = QN_MIN(k, m - k);
        f->work[0][k] = from < n ? conjugate(f->chirp[from]) : (qn_complex){0, 0};
    }
    run_rounds(&f->rounds, f->filter, f->work[0]);
    return QN_OK;
}

static void convolve(const qn_fft *f, qn_complex *out, const qn_complex *in)
{
    const int64_t n = f->length, m = f->rounds.length;
    qn_complex *a = f->work[0], *b = f->work[1];
    for (int64_t k = 0; k < m; k++)
        a[k] = k < n ? times(in[k], f->chirp[k]) : (qn_complex){0, 0};
    run_rounds(&f->rounds, b, a);
    /* Back by the same transform, of conjugates. */
    for (int64_t k = 0; k < m; k++)
        b[k] = conjugate(times(b[k], f->filter[k]));
    run_rounds(&f->rounds, a, b);
    for (int64_t k = 0; k < n; k++) {
        const qn_complex sum = conjugate(a[k]);
        out[k] = times((qn_complex){sum.re / (double)m, sum.im / (double)m}, f->chirp[k]);
    }
}

/* ---- Both ------------------------------------------------------------------------------------ */

qn_status qn_fft_make(qn_fft *out, qn_eval *self, int64_t length)
{
    *out = (qn_fft){.length = length};
    out->convolves = !find_factors(&out->rounds, length);
    if (out->convolves) {
        int64_t padded = 1;
        while (padded < 2 * length - 1)
            padded *= 2;
        (void)find_factors(&out->rounds, padded);
    }
    QN_TRY(make_roots(&out->rounds, self));
    return out->convolves ? make_convolution(out, self) : QN_OK;
}

void qn_fft_run(const qn_fft *fft, qn_complex *out, const qn_complex *in)
{
    if (fft->convolves)
        convolve(fft, out, in);
    else
        run_rounds(&fft->rounds, out, in);
}
