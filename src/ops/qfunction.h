/* A function of one float number that becomes an integer: what a product that is no integer yet
 * goes through. The formulas are single float32 operations in the order written, so that vectors
 * give the same bits:
 *
 *   f            by kind, see qn_qfunction_of
 *   y = clamp(rint(f * gain + offset) + zero)          gain = attribute / scale, offset likewise */
#ifndef QN_QFUNCTION_H
#define QN_QFUNCTION_H

#include <math.h>
#include <stdint.h>

typedef enum qn_qfunction_kind {
    /* x * sigmoid(alpha x) */
    QN_QFUNCTION_SWISH,
    /* 1 / (1 + exp(-x)), in pieces */
    QN_QFUNCTION_SIGMOID,
    /* x * clamp(alpha x + beta, 0, 1) */
    QN_QFUNCTION_HARD_SWISH,
    /* clamp(alpha x + beta, 0, 1) */
    QN_QFUNCTION_HARD_SIGMOID,
    /* max(x, 0) + alpha min(x, 0) */
    QN_QFUNCTION_LEAKY_RELU
} qn_qfunction_kind;

typedef struct qn_qfunction_attrs {
    int64_t kind;
    float alpha, beta;
    /* What the result is multiplied with, and what is then added, in float. */
    float gain, offset;
} qn_qfunction_attrs;

/* sigmoid(|x|) in 16 pieces of 1 / 1.6, each (a t + b) t + c with 0 <= t < 1; within 1.5e-4 of it,
 * a twentieth of the step of a byte. */
enum { QN_SIGMOID_PIECES = 16 };
#define QN_SIGMOID_PER_UNIT 1.6F
#define QN_SIGMOID_MOST 15.999F /* where the last piece ends */
static const float qn_sigmoid_terms[3][QN_SIGMOID_PIECES] = {
    {-0.00727163814F, -0.0170680173F, -0.0181759391F, -0.0141303837F, -0.00928213261F,
     -0.00555487815F, -0.00315838796F, -0.00174645265F, -0.000951283087F, -0.000513977895F,
     -0.000276496983F, -0.00014839659F, -7.95453816e-05F, -4.26103979e-05F, -2.2817112e-05F,
     -1.22158172e-05F},
    {0.158910692F, 0.143123284F, 0.107862882F, 0.0711325482F, 0.0429605171F, 0.0246022791F,
     0.0136658726F, 0.00746337976F, 0.00403840328F, 0.00217423076F, 0.00116742402F, 0.000625924265F,
     0.000335333694F, 0.000179577401F, 9.61455735e-05F, 5.14700987e-05F},
    {0.499854356F, 0.651293576F, 0.777320981F, 0.867087364F, 0.924188673F, 0.957944632F,
     0.977042377F, 0.987579703F, 0.993313432F, 0.996409833F, 0.998075128F, 0.99896878F,
     0.999447763F, 0.999704301F, 0.99984169F, 0.999915242F},
};

static inline float qn_qfunction_limit(float x, float low, float high)
{
    x = x > low ? x : low;
    return x < high ? x : high;
}

static inline float qn_qfunction_sigmoid(float x)
{
    const float u = qn_qfunction_limit(fabsf(x) * QN_SIGMOID_PER_UNIT, 0, QN_SIGMOID_MOST);
    const int i = (int)u;
    const float t = u - (float)i;
    const float p = (qn_sigmoid_terms[0][i] * t + qn_sigmoid_terms[1][i]) * t;
    const float above = p + qn_sigmoid_terms[2][i];
    return x < 0 ? 1 - above : above;
}

static inline float qn_qfunction_of(const qn_qfunction_attrs *f, float x)
{
    const float alpha = f->alpha, beta = f->beta;
    switch ((qn_qfunction_kind)f->kind) {
    case QN_QFUNCTION_SWISH: return x * qn_qfunction_sigmoid(x * alpha);
    case QN_QFUNCTION_SIGMOID: return qn_qfunction_sigmoid(x);
    case QN_QFUNCTION_HARD_SWISH: return x * qn_qfunction_limit(x * alpha + beta, 0, 1);
    case QN_QFUNCTION_HARD_SIGMOID: return qn_qfunction_limit(x * alpha + beta, 0, 1);
    case QN_QFUNCTION_LEAKY_RELU: break;
    }
    return qn_qfunction_limit(x, 0, INFINITY) + qn_qfunction_limit(x, -INFINITY, 0) * alpha;
}

#endif
