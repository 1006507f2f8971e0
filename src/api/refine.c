/* What the refinements are worth: the error of the outputs with all of them, and with all but one. */
#include <math.h>
#include <stddef.h>

#include "api/quantize.h"
#include "ops/eval.h"

enum { PROOF_SAMPLES = 4 };

/* In the order of qn_refinement. */
static const struct {
    const char *name;
    size_t flag;      /* of qn_param_options */
    bool may_be_left; /* where the network is better without: it is a guess about data */
} refinements[QN_REFINEMENTS] = {
    {"equalization", offsetof(qn_param_options, equalize), true},
    {"balancing", offsetof(qn_param_options, balance), true},
    {"weight clipping", offsetof(qn_param_options, clip_weights), false},
    {"bias correction", offsetof(qn_param_options, correct_bias), false},
};

static bool *flag_of(qn_param_options *params, size_t which)
{
    return (bool *)((char *)params + refinements[which].flag);
}

/* ---- Runs ------------------------------------------------------------------------------------------------------- */

typedef struct proof {
    qn_quantize_job *j;
    int64_t samples;
    size_t n_outputs;
    float **real;           /* [samples, outputs] of the float graph */
    int64_t *count;         /* of elements of each */
    double *error, *signal; /* [outputs] */
} proof;

static qn_status keep_output(proof *p, size_t at, const qn_tensor *t)
{
    if (!qn_dtype_is_float(t->dtype))
        return QN_OK;
    p->count[at] = qn_tensor_count(t);
    p->real[at] = qn_alloc_zero(p->j->ctx, (size_t)p->count[at] + 1, sizeof(float));
    QN_TRY_ALLOC(p->j->ctx, p->real[at]);
    for (int64_t i = 0; i < p->count[at]; i++)
        p->real[at][i] = (float)qn_tensor_f64(t, i);
    return QN_OK;
}

static void compare_output(proof *p, size_t at, const qn_tensor *t)
{
    const size_t output = at % p->n_outputs;
    if (!p->real[at] || qn_tensor_count(t) != p->count[at])
        return;
    for (int64_t i = 0; i < p->count[at]; i++) {
        const double real = (double)p->real[at][i];
        p->signal[output] += fabs(real);
        p->error[output] += fabs(qn_tensor_f64(t, i) - real);
    }
}

static qn_status run_samples(proof *p, qn_session *session, bool is_real)
{
    const qn_source *source = &p->j->calibration.samples.source;
    for (int64_t i = 0; i < p->samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(p->j->ctx));
        QN_TRY(source->read(source->user, p->j->ctx, 0, i, &inputs));
        QN_TRY(qn_session_run(session, inputs, p->j->calibration.feed.n_in));
        for (size_t o = 0; o < p->n_outputs; o++) {
            const size_t at = (size_t)i * p->n_outputs + o;
            if (is_real)
                QN_TRY(keep_output(p, at, qn_session_output(session, o)));
            else
                compare_output(p, at, qn_session_output(session, o));
        }
    }
    return QN_OK;
}

static bool observe_none(const void *user, const qn_value *value)
{
    (void)user;
    (void)value;
    return false;
}

static qn_status run_model(proof *p, qn_model *model, bool is_real)
{
    const qn_plan_options options = {.graph = p->j->calibration.graph};
    /* Direct: what is decided by the results does not depend on the number of threads. */
    const qn_watch watch = {.purpose = is_real ? QN_PURPOSE_QUANTIZE : QN_PURPOSE_RUN,
                            .direct = true,
                            .observe = observe_none};
    qn_plan *plan = NULL;
    qn_session *session = NULL;
    qn_status status = qn_plan_create_watched(&plan, p->j->ctx, model, &options, &watch);
    if (status == QN_OK)
        status = qn_session_create(&session, p->j->ctx, plan);
    if (status == QN_OK)
        status = run_samples(p, session, is_real);
    qn_session_free(session);
    qn_plan_free(plan);
    return status;
}

/* sum |fixed - float| / sum |float| of the worst output. */
static qn_status measure(double *error, proof *p, qn_model *model)
{
    for (size_t o = 0; o < p->n_outputs; o++)
        p->error[o] = p->signal[o] = 0;
    QN_TRY(run_model(p, model, false));
    *error = 0;
    for (size_t o = 0; o < p->n_outputs; o++)
        *error = fmax(*error, p->signal[o] > 0 ? p->error[o] / p->signal[o] : 0);
    return QN_OK;
}

/* ---- One after the other ----------------------------------------------------------------------------------------- */

static qn_status measure_without(double *error, proof *p, size_t which)
{
    qn_quantize_job *j = p->j;
    const qn_quantize_job kept = *j;
    j->quantized = NULL;
    j->quantizer = NULL;
    j->scale_text = NULL;
    *flag_of(&j->params, which) = false;
    qn_status status = qn_job_make(j);
    if (status == QN_OK)
        status = measure(error, p, j->quantized);
    qn_text_free(j->ctx, j->scale_text);
    qn_quantizer_free(j->quantizer);
    qn_model_free(j->quantized);
    j->quantized = kept.quantized;
    j->quantizer = kept.quantizer;
    j->scale_text = kept.scale_text;
    j->params = kept.params;
    return status;
}

static qn_status prove(proof *p)
{
    qn_quantize_job *j = p->j;
    double with = 0;
    bool again = false;
    QN_TRY(run_model(p, j->calibration.real, true));
    QN_TRY(measure(&with, p, j->quantized));
    for (size_t i = 0; i < QN_REFINEMENTS; i++) {
        qn_proof_row *row = &j->proof[i];
        if (row->told.layers == 0)
            continue;
        row->measured = true;
        row->after = with;
        QN_TRY(measure_without(&row->before, p, i));
        row->left = refinements[i].may_be_left && row->before <= row->after;
        if (row->left)
            *flag_of(&j->params, i) = false;
        again = again || row->left;
    }
    return again ? qn_job_make(j) : QN_OK;
}

static qn_status open_proof(proof *p)
{
    const size_t all = (size_t)p->samples * p->n_outputs;
    p->real = qn_alloc_zero(p->j->ctx, all + 1, sizeof *p->real);
    p->count = qn_alloc_zero(p->j->ctx, all + 1, sizeof *p->count);
    p->error = qn_alloc_zero(p->j->ctx, p->n_outputs + 1, sizeof *p->error);
    p->signal = qn_alloc_zero(p->j->ctx, p->n_outputs + 1, sizeof *p->signal);
    return p->real && p->count && p->error && p->signal ? QN_OK : qn_fail_nomem(p->j->ctx);
}

qn_status qn_job_prove(qn_quantize_job *j)
{
    proof p = {.j = j,
               .samples = QN_MIN(PROOF_SAMPLES, j->calibration.samples.source.count),
               .n_outputs = j->calibration.real->graph->n_outputs};
    for (size_t i = 0; i < QN_REFINEMENTS; i++)
        j->proof[i] = (qn_proof_row){.told = j->quantizer->refined[i]};
    if (!j->options->prove || j->settings.dynamic || j->scales || !j->calibration.fed ||
        !j->calibration.feed.dataset)
        return QN_OK;
    qn_status status = open_proof(&p);
    if (status == QN_OK)
        status = prove(&p);
    for (size_t i = 0; p.real && i < (size_t)p.samples * p.n_outputs; i++)
        qn_free(j->ctx, p.real[i]);
    qn_free(j->ctx, p.real);
    qn_free(j->ctx, p.count);
    qn_free(j->ctx, p.error);
    qn_free(j->ctx, p.signal);
    return status;
}

/* Root of the mean over the layers. */
static double share(double sum, int64_t layers)
{
    return layers > 0 ? sqrt(sum / (double)layers) : 0;
}

void qn_proof_report(qn_item *root, const qn_quantize_job *j)
{
    if (j->settings.dynamic || j->scales)
        return;
    qn_item *table = qn_item_table(root, "refinements");
    for (size_t i = 0; i < QN_REFINEMENTS; i++) {
        const qn_proof_row *row = &j->proof[i];
        qn_item *item = qn_item_row(table);
        qn_item_text(item, "refinement", refinements[i].name);
        qn_item_int(item, "layers", row->left ? 0 : row->told.layers);
        qn_item_real(item, "noise_before", share(row->told.before, row->told.layers), 6);
        qn_item_real(item, "noise_after", share(row->told.after, row->told.layers), 6);
        if (row->measured) {
            qn_item_real(item, "error_without", row->before, 6);
            qn_item_real(item, "error_with", row->after, 6);
        }
    }
}
