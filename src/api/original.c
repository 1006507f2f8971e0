#include "api/original.h"

#include <math.h>
#include <stdlib.h>

#include "ops/eval.h"

static bool observe_none(const void *user, const qn_value *value)
{
    (void)user;
    (void)value;
    return false;
}

/* Direct, so that what is decided here does not depend on the number of threads. */
static qn_status open_session(qn_plan **plan, qn_session **session, const qn_original *o,
                              qn_model *model)
{
    qn_quantize_job *j = o->j;
    const qn_plan_options options = {.graph = j->calibration.graph};
    const qn_watch watch = {.purpose =
                                model == j->calibration.real ? QN_PURPOSE_QUANTIZE : QN_PURPOSE_RUN,
                            .direct = true,
                            .observe = observe_none};
    *session = NULL;
    QN_TRY(qn_plan_create_watched(plan, j->ctx, model, &options, &watch));
    return qn_session_create(session, j->ctx, *plan);
}

typedef qn_status take_fn(void *user, const qn_original *o, size_t at, const qn_tensor *output);

/* Gives every output of every sample to `take`. */
static qn_status run_samples(const qn_original *o, qn_session *session, take_fn *take, void *user)
{
    qn_calibration *c = &o->j->calibration;
    const qn_source *source = c->source;
    for (int64_t i = 0; i < o->samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(o->j->ctx));
        QN_TRY(source->read(source->user, o->j->ctx, 0, i, &inputs));
        QN_TRY(qn_session_run(session, inputs, c->n_inputs));
        for (size_t k = 0; k < o->n_outputs; k++)
            QN_TRY(take(user, o, (size_t)i * o->n_outputs + k, qn_session_output(session, k)));
    }
    return QN_OK;
}

static qn_status run_model(const qn_original *o, qn_model *model, take_fn *take, void *user)
{
    qn_plan *plan = NULL;
    qn_session *session;
    qn_status status = open_session(&plan, &session, o, model);
    if (status == QN_OK)
        status = run_samples(o, session, take, user);
    qn_session_free(session);
    qn_plan_free(plan);
    return status;
}

static qn_status keep(void *user, const qn_original *o, size_t at, const qn_tensor *output)
{
    qn_original *kept = user;
    if (!qn_dtype_is_float(output->dtype))
        return QN_OK;
    const int64_t count = qn_tensor_count(output);
    double *values = qn_alloc_zero(o->j->ctx, (size_t)count + 1, sizeof *values);
    QN_TRY_ALLOC(o->j->ctx, values);
    for (int64_t i = 0; i < count; i++)
        values[i] = qn_tensor_f64(output, i);
    kept->values[at] = values;
    kept->counts[at] = count;
    return QN_OK;
}

qn_status qn_original_make(qn_original *out, qn_quantize_job *j, int64_t samples)
{
    *out = (qn_original){.j = j,
                         .samples = QN_MIN(samples, j->calibration.source->count),
                         .n_outputs = j->calibration.real->graph->n_outputs};
    const size_t all = (size_t)out->samples * out->n_outputs;
    out->values = qn_alloc_zero(j->ctx, all + 1, sizeof *out->values);
    out->counts = qn_alloc_zero(j->ctx, all + 1, sizeof *out->counts);
    if (!out->values || !out->counts)
        return qn_fail_nomem(j->ctx);
    return run_model(out, j->calibration.real, keep, out);
}

/* Noise beside signal of one output of one sample; 0 where nothing can be said. */
static qn_status compare(void *user, const qn_original *o, size_t at, const qn_tensor *output)
{
    double signal = 0, noise = 0, *ratios = user;
    if (!o->values[at] || qn_tensor_count(output) != o->counts[at])
        return QN_OK;
    const double scale = qn_model_output_scale(o->j->quantized, at % o->n_outputs);
    for (int64_t i = 0; i < o->counts[at]; i++) {
        const double real = o->values[at][i], e = qn_tensor_f64(output, i) * scale - real;
        signal += real * real;
        noise += e * e;
    }
    ratios[at % o->n_outputs * (size_t)o->samples + at / o->n_outputs] =
        signal > 0 ? sqrt(noise / signal) : 0;
    return QN_OK;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

qn_status qn_original_noise(double *noise, const qn_original *o)
{
    const size_t n = (size_t)o->samples;
    double *ratios = qn_alloc_zero(o->j->ctx, n * o->n_outputs + 1, sizeof *ratios);
    *noise = 0;
    QN_TRY_ALLOC(o->j->ctx, ratios);
    const qn_status status = run_model(o, o->j->quantized, compare, ratios);
    for (size_t k = 0; k < o->n_outputs && n && status == QN_OK; k++) {
        qsort(ratios + k * n, n, sizeof *ratios, by_size);
        *noise = fmax(*noise, ratios[k * n + (n - 1) * 3 / 4]);
    }
    qn_free(o->j->ctx, ratios);
    return status;
}

/* [n_outputs] each */
typedef struct sums {
    double *error, *signal;
} sums;

static qn_status add_up(void *user, const qn_original *o, size_t at, const qn_tensor *output)
{
    const sums *s = user;
    if (!o->values[at] || qn_tensor_count(output) != o->counts[at])
        return QN_OK;
    const double scale = qn_model_output_scale(o->j->quantized, at % o->n_outputs);
    for (int64_t i = 0; i < o->counts[at]; i++) {
        const double real = o->values[at][i];
        s->signal[at % o->n_outputs] += fabs(real);
        s->error[at % o->n_outputs] += fabs(qn_tensor_f64(output, i) * scale - real);
    }
    return QN_OK;
}

qn_status qn_original_error(double *error, const qn_original *o)
{
    double *both = qn_alloc_zero(o->j->ctx, 2 * o->n_outputs + 1, sizeof *both);
    sums s = {both, both ? both + o->n_outputs : NULL};
    *error = 0;
    QN_TRY_ALLOC(o->j->ctx, both);
    const qn_status status = run_model(o, o->j->quantized, add_up, &s);
    for (size_t k = 0; k < o->n_outputs && status == QN_OK; k++)
        *error = fmax(*error, s.signal[k] > 0 ? s.error[k] / s.signal[k] : 0);
    qn_free(o->j->ctx, both);
    return status;
}

void qn_original_free(qn_original *o)
{
    if (!o->j)
        return;
    for (size_t i = 0; o->values && i < (size_t)o->samples * o->n_outputs; i++)
        qn_free(o->j->ctx, o->values[i]);
    qn_free(o->j->ctx, o->values);
    qn_free(o->j->ctx, o->counts);
}
