/* BatchNormalization by the statistics of the batch, and BatchNormGrad: a channel at a time, with
 * sums in doubles. */
#include <math.h>

#include "backend/cpu/parallel.h"
#include "backend/cpu/train/train.h"
#include "ops/nn_attrs.h"

/* X [batch, channels, area] */
typedef struct shape {
    const qn_batchnorm_attrs *attrs;
    int64_t batch, channels, area;
} shape;

typedef struct work {
    const shape *shape;
    const qn_step_io *io;
} work;

static const float *input(const work *j, int32_t i)
{
    return j->io->in[i]->data;
}

static void store(const work *j, int32_t o, int64_t c, double x)
{
    if (j->io->out[o])
        ((float *)j->io->out[o]->data)[c] = (float)x;
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Sum of (x - shift)^power */
static double sum_of(const shape *s, const float *x, int64_t c, double shift, bool squared)
{
    double sum = 0;
    for (int64_t n = 0; n < s->batch; n++) {
        const float *plane = x + (n * s->channels + c) * s->area;
        double part = 0;
        for (int64_t i = 0; i < s->area; i++) {
            const double d = (double)plane[i] - shift;
            part += squared ? d * d : d;
        }
        sum += part;
    }
    return sum;
}

static void forward_channel(const void *opaque, int64_t c, int thread)
{
    const work *j = opaque;
    const shape *s = j->shape;
    const double count = (double)(s->batch * s->area), kept = (double)s->attrs->momentum;
    const float *x = input(j, 0);
    const double mean = sum_of(s, x, c, 0, false) / count;
    const double variance = sum_of(s, x, c, mean, true) / count;
    const double gain = (double)input(j, 1)[c] / sqrt(variance + (double)s->attrs->epsilon);
    const float factor = (float)gain, shift = input(j, 2)[c], middle = (float)mean;
    float *y = j->io->out[0]->data;
    (void)thread;
    for (int64_t n = 0; n < s->batch; n++) {
        const int64_t at = (n * s->channels + c) * s->area;
        for (int64_t i = at; i < at + s->area; i++)
            y[i] = (x[i] - middle) * factor + shift;
    }
    store(j, 1, c, kept * (double)input(j, 3)[c] + (1 - kept) * mean);
    store(j, 2, c, kept * (double)input(j, 4)[c] + (1 - kept) * variance);
}

/* ---- Backward -----------------------------------------------------------------------------------
 * The formulas stand at the reference kernel. */

static void backward_channel(const void *opaque, int64_t c, int thread)
{
    const work *j = opaque;
    const shape *s = j->shape;
    const float *dy = input(j, 0), *x = input(j, 1);
    const double mean = (double)input(j, 3)[c];
    const double r = 1 / sqrt((double)input(j, 4)[c] + (double)s->attrs->epsilon);
    const double share = s->attrs->training_mode ? 1 / (double)(s->batch * s->area) : 0;
    double sum = 0, products = 0;
    (void)thread;
    for (int64_t n = 0; n < s->batch; n++) {
        const int64_t at = (n * s->channels + c) * s->area;
        for (int64_t i = at; i < at + s->area; i++) {
            sum += (double)dy[i];
            products += (double)dy[i] * ((double)x[i] - mean);
        }
    }
    products *= r;
    store(j, 1, c, products);
    store(j, 2, c, sum);
    if (!j->io->out[0])
        return;
    /* dx = gain dy + slope (x - mean) + rest */
    const double gain = (double)input(j, 2)[c] * r, slope = -gain * share * products * r;
    const float by_dy = (float)gain, by_x = (float)slope;
    const float rest = (float)(-gain * share * sum), middle = (float)mean;
    float *dx = j->io->out[0]->data;
    for (int64_t n = 0; n < s->batch; n++) {
        const int64_t at = (n * s->channels + c) * s->area;
        for (int64_t i = at; i < at + s->area; i++)
            dx[i] = by_dy * dy[i] + (by_x * (x[i] - middle) + rest);
    }
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static qn_status forward_run(const void *state, void *bound, const qn_step_io *io)
{
    const shape *s = state;
    (void)bound;
    qn_parallel_items(io->threads, s->channels, forward_channel, &(work){s, io});
    return QN_OK;
}

static qn_status backward_run(const void *state, void *bound, const qn_step_io *io)
{
    const shape *s = state;
    (void)bound;
    qn_parallel_items(io->threads, s->channels, backward_channel, &(work){s, io});
    return QN_OK;
}

static const qn_kernel forward_kernel = {.name = "batch normalization", .run = forward_run};
static const qn_kernel backward_kernel = {.name = "batch normalization gradient",
                                          .run = backward_run};

static qn_status claim_norm(bool *taken, qn_claim *claim, int32_t n_out, const qn_kernel *kernel)
{
    const qn_node *node = claim->node;
    qn_tensor x;
    for (int32_t i = 0; i < 5; i++) {
        if (node->in[i]->type.dtype != QN_FLOAT32)
            return QN_OK;
    }
    if (!qn_claim_is_float(&x, claim) || x.rank < 2)
        return QN_OK;
    shape *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    *s = (shape){node->attrs, x.dims[0], x.dims[1], 1};
    for (int32_t d = 2; d < x.rank; d++)
        s->area *= x.dims[d];
    for (int32_t i = 0; i < 5; i++)
        qn_claim_in(claim, node->in[i], QN_ROWS);
    for (int32_t o = 0; o < n_out; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
    claim->kernel = kernel;
    claim->state = s;
    *taken = true;
    return QN_OK;
}

qn_status qn_claim_batchnorm_training(bool *taken, qn_claim *claim)
{
    const qn_batchnorm_attrs *a = claim->node->attrs;
    return a->training_mode ? claim_norm(taken, claim, 3, &forward_kernel) : QN_OK;
}

qn_status qn_claim_batchnorm_grad(bool *taken, qn_claim *claim)
{
    return claim->node->out[0] ? claim_norm(taken, claim, 3, &backward_kernel) : QN_OK;
}
