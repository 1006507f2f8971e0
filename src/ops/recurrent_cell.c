/* The cells of RNN, GRU and LSTM: activations and one step. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "ops/recurrent.h"

/* ---- Activations ----------------------------------------------------------------------------- */

/* NaN: the function takes no such parameter. */
static const struct {
    const char *name;
    float alpha, beta;
} squashes[QN_SQUASH_COUNT] = {
    [QN_SQUASH_AFFINE] = {"affine", 1, 0},
    [QN_SQUASH_ELU] = {"elu", 1, NAN},
    [QN_SQUASH_HARD_SIGMOID] = {"hardsigmoid", 0.2f, 0.5f},
    [QN_SQUASH_LEAKY_RELU] = {"leakyrelu", 0.01f, NAN},
    [QN_SQUASH_RELU] = {"relu", NAN, NAN},
    [QN_SQUASH_SCALED_TANH] = {"scaledtanh", 1, 1},
    [QN_SQUASH_SIGMOID] = {"sigmoid", NAN, NAN},
    [QN_SQUASH_SOFTPLUS] = {"softplus", NAN, NAN},
    [QN_SQUASH_SOFTSIGN] = {"softsign", NAN, NAN},
    [QN_SQUASH_TANH] = {"tanh", NAN, NAN},
    [QN_SQUASH_THRESHOLDED_RELU] = {"thresholdedrelu", 1, NAN},
};

/* QN_SQUASH_COUNT where the name is none of them; case does not matter. */
static qn_squash squash_by_name(const qn_string *name)
{
    for (int k = 0; k < QN_SQUASH_COUNT; k++) {
        const char *known = squashes[k].name;
        size_t i = 0;
        while (i < name->length && known[i] == tolower((unsigned char)name->text[i]))
            i++;
        if (i == name->length && !known[i])
            return (qn_squash)k;
    }
    return QN_SQUASH_COUNT;
}

static double next_parameter(const qn_floats *list, size_t *used, float standard)
{
    if (isnan(standard))
        return 0;
    const size_t at = (*used)++;
    return (double)(at < list->count ? list->at[at] : standard);
}

bool qn_activation_of(qn_activation *out, const qn_recurrent_attrs *attrs, size_t i,
                      qn_squash standard)
{
    size_t alphas = 0, betas = 0;
    *out = (qn_activation){standard, 0, 0};
    for (size_t k = 0; k <= i && attrs->activations.count; k++) {
        /* One direction's list serves both directions. */
        const size_t at = k % attrs->activations.count;
        out->kind = squash_by_name(&attrs->activations.at[at]);
        if (out->kind == QN_SQUASH_COUNT)
            return false;
        out->alpha = next_parameter(&attrs->activation_alpha, &alphas, squashes[out->kind].alpha);
        out->beta = next_parameter(&attrs->activation_beta, &betas, squashes[out->kind].beta);
    }
    return true;
}

double qn_activation_apply(const qn_activation *a, double x)
{
    switch (a->kind) {
    case QN_SQUASH_AFFINE: return a->alpha * x + a->beta;
    case QN_SQUASH_ELU: return x >= 0 ? x : a->alpha * expm1(x);
    case QN_SQUASH_HARD_SIGMOID: return fmin(1, fmax(0, a->alpha * x + a->beta));
    case QN_SQUASH_LEAKY_RELU: return x >= 0 ? x : a->alpha * x;
    case QN_SQUASH_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case QN_SQUASH_SCALED_TANH: return a->alpha * tanh(a->beta * x);
    case QN_SQUASH_SIGMOID: return qn_real_sigmoid(x);
    case QN_SQUASH_SOFTPLUS: return fmax(x, 0) + log1p(exp(-fabs(x)));
    case QN_SQUASH_SOFTSIGN: return x / (1 + fabs(x));
    case QN_SQUASH_TANH: return qn_real_tanh(x);
    case QN_SQUASH_THRESHOLDED_RELU: return x > a->alpha ? x : 0;
    case QN_SQUASH_COUNT: break;
    }
    return x;
}

static double squash(const qn_cell *cell, const qn_activation *a, double x)
{
    const double limit = (double)cell->attrs->clip;
    /* What is no number stays so. */
    return qn_activation_apply(a, x < -limit ? -limit : x > limit ? limit : x);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

void qn_matvec(double *y, const double *matrix, const double *x, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++)
            sum += matrix[i * columns + j] * x[j];
        y[i] += sum;
    }
}

/* out [rows] = Rb + R x for rows [first, first + rows) of R. */
static void recur(double *out, const qn_cell *cell, const double *x, int64_t first, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        out[i] = cell->bias_r ? cell->bias_r[first + i] : 0;
    qn_matvec(out, cell->recurrent + first * cell->hidden, x, rows, cell->hidden);
}

/* H = f(W x + R H) */
void qn_cell_rnn(const qn_cell *cell, const double *input, double *h, double *c, double *work)
{
    (void)c;
    recur(work, cell, h, 0, cell->hidden);
    for (int64_t i = 0; i < cell->hidden; i++)
        h[i] = squash(cell, &cell->f, input[i] + work[i]);
}

/* z, r = f(W x + R H);  n = g(W x + R (r . H)), or g(W x + r . (R H));  H = (1 - z) . n + z . H */
void qn_cell_gru(const qn_cell *cell, const double *input, double *h, double *c, double *work)
{
    const int64_t n = cell->hidden;
    double *z = work, *r = work + n, *part = work + 2 * n, *reset = work + 3 * n;
    const bool linear_first = cell->attrs->linear_before_reset;
    (void)c;
    recur(work, cell, h, 0, 2 * n);
    for (int64_t i = 0; i < 2 * n; i++)
        work[i] = squash(cell, &cell->f, input[i] + work[i]);
    for (int64_t i = 0; i < n; i++)
        reset[i] = linear_first ? h[i] : r[i] * h[i];
    recur(part, cell, reset, 2 * n, n);
    for (int64_t i = 0; i < n; i++) {
        const double recurrent = linear_first ? r[i] * part[i] : part[i];
        const double fresh = squash(cell, &cell->g, input[2 * n + i] + recurrent);
        h[i] = (1 - z[i]) * fresh + z[i] * h[i];
    }
}

/* i, o, f and the fresh cell in this order; peepholes look at the cell: C = f . C + i . g(...);  H
 * = o . h(C). The clip is for the gates: ONNX Runtime, whose results files were made with, leaves C
 * alone. */
static void lstm_gates(const qn_cell *cell, const double *input, const double *recurrent, double *h,
                       double *c)
{
    const int64_t n = cell->hidden;
    const double *p = cell->peephole;
    for (int64_t k = 0; k < n; k++) {
        const double *in = input + k, *re = recurrent + k;
        const double i = squash(cell, &cell->f, in[0] + re[0] + (p ? p[k] * c[k] : 0));
        const double forget =
            cell->attrs->input_forget
                ? 1 - i
                : squash(cell, &cell->f, in[2 * n] + re[2 * n] + (p ? p[2 * n + k] * c[k] : 0));
        const double fresh = squash(cell, &cell->g, in[3 * n] + re[3 * n]);
        c[k] = forget * c[k] + i * fresh;
        const double o = squash(cell, &cell->f, in[n] + re[n] + (p ? p[n + k] * c[k] : 0));
        h[k] = o * qn_activation_apply(&cell->h, c[k]);
    }
}

void qn_cell_lstm(const qn_cell *cell, const double *input, double *h, double *c, double *work)
{
    recur(work, cell, h, 0, 4 * cell->hidden);
    lstm_gates(cell, input, work, h, c);
}
