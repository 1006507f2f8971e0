/* SgdStep and AdamStep: one pass over weights, gradient and state. */
#include <math.h>

#include "backend/cpu/parallel.h"
#include "backend/cpu/train/train.h"
#include "ops/grad_attrs.h"

/* Fewer elements are not worth waking a thread. */
enum { ALONE = 1 << 14 };

static float number_of(const qn_step_io *io, int32_t i, float standard)
{
    return io->in[i] ? *(const float *)io->in[i]->data : standard;
}

/* ---- SgdStep --------------------------------------------------------------------------------- */

typedef struct sgd {
    const qn_sgd_attrs *attrs;
    float rate, factor;
    const float *w, *g, *m;
    float *w_new, *m_new;
} sgd;

static void sgd_range(const void *work, int64_t first, int64_t last)
{
    const sgd *s = work;
    const float momentum = s->attrs->momentum, decay = s->attrs->decay;
    const float ahead = s->attrs->nesterov ? momentum : 1, now = s->attrs->nesterov ? 1 : 0;
    for (int64_t i = first; i < last; i++) {
        const float g = s->g[i] * s->factor + decay * s->w[i];
        const float m = momentum * s->m[i] + g;
        s->w_new[i] = s->w[i] - s->rate * (now * g + ahead * m);
        s->m_new[i] = m;
    }
}

static qn_status sgd_run(const void *state, void *bound, const qn_step_io *io)
{
    const sgd s = {.attrs = state,
                   .rate = number_of(io, 3, 0),
                   .factor = number_of(io, 4, 1),
                   .w = io->in[0]->data,
                   .g = io->in[1]->data,
                   .m = io->in[2]->data,
                   .w_new = io->out[0]->data,
                   .m_new = io->out[1]->data};
    (void)bound;
    qn_parallel(io->threads, qn_tensor_count(io->in[0]), ALONE, sgd_range, &s);
    return QN_OK;
}

static const qn_kernel sgd_kernel = {.name = "sgd step", .run = sgd_run};

/* ---- AdamStep -------------------------------------------------------------------------------- */

typedef struct adam {
    const qn_adam_attrs *attrs;
    /* The decay in the gradient, what weights are multiplied by, and the step's size with the bias
     * of both means taken out. */
    float coupled, kept, rate, root, factor;
    const float *w, *g, *m, *v;
    float *w_new, *m_new, *v_new;
} adam;

static void adam_range(const void *work, int64_t first, int64_t last)
{
    const adam *s = work;
    const float b1 = s->attrs->beta1, b2 = s->attrs->beta2, epsilon = s->attrs->epsilon;
    for (int64_t i = first; i < last; i++) {
        const float g = s->g[i] * s->factor + s->coupled * s->w[i];
        const float m = b1 * s->m[i] + (1 - b1) * g, v = b2 * s->v[i] + (1 - b2) * g * g;
        s->w_new[i] = s->kept * s->w[i] - s->rate * m / (sqrtf(v) * s->root + epsilon);
        s->m_new[i] = m;
        s->v_new[i] = v;
    }
}

static qn_status adam_run(const void *state, void *bound, const qn_step_io *io)
{
    const qn_adam_attrs *a = state;
    const double step = (double)number_of(io, 5, 1), rate = (double)number_of(io, 4, 0);
    const adam s = {.attrs = a,
                    .coupled = a->decoupled ? 0 : a->decay,
                    .kept = a->decoupled ? (float)(1 - rate * (double)a->decay) : 1,
                    .rate = (float)(rate / (1 - pow((double)a->beta1, step))),
                    .root = (float)(1 / sqrt(1 - pow((double)a->beta2, step))),
                    .factor = number_of(io, 6, 1),
                    .w = io->in[0]->data,
                    .g = io->in[1]->data,
                    .m = io->in[2]->data,
                    .v = io->in[3]->data,
                    .w_new = io->out[0]->data,
                    .m_new = io->out[1]->data,
                    .v_new = io->out[2]->data};
    (void)bound;
    qn_parallel(io->threads, qn_tensor_count(io->in[0]), ALONE, adam_range, &s);
    return QN_OK;
}

static const qn_kernel adam_kernel = {.name = "adam step", .run = adam_run};

/* ---- Claims ---------------------------------------------------------------------------------- */

static qn_status claim(bool *taken, qn_claim *claim, const qn_kernel *kernel)
{
    const qn_node *node = claim->node;
    qn_tensor shape;
    for (int32_t o = 0; o < node->n_out; o++) {
        if (!node->out[o])
            return QN_OK;
    }
    if (!qn_claim_is_float(&shape, claim))
        return QN_OK;
    for (int32_t i = 0; i < node->n_in; i++)
        qn_claim_in(claim, node->in[i], QN_ROWS);
    for (int32_t o = 0; o < node->n_out; o++)
        qn_claim_out(claim, node->out[o], QN_ROWS);
    claim->kernel = kernel;
    claim->state = node->attrs;
    *taken = true;
    return QN_OK;
}

qn_status qn_claim_sgd_step(bool *taken, qn_claim *c)
{
    return claim(taken, c, &sgd_kernel);
}

qn_status qn_claim_adam_step(bool *taken, qn_claim *c)
{
    return claim(taken, c, &adam_kernel);
}
