/* The graph of a training step, and steps. */
#include "train/training.h"

#include <math.h>
#include <string.h>

#include "model/prepare.h"
#include "ops/clone.h"
#include "ops/infer.h"
#include "run/session.h"
#include "train/differentiate.h"
#include "train/loss.h"

/* ---- The graph ------------------------------------------------------------------------------- */

/* The share of a batch in the moving average of statistics. */
#define AVERAGED .1

typedef struct making {
    qn_training *training;
    const qn_training_settings *settings;
    qn_graph *graph;
    qn_train_updates updates;
    qn_train_loss loss;
} making;

static qn_status scores_of(qn_value **out, const qn_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        *out = graph->outputs[i];
        if (!name || strcmp((*out)->name, name) == 0)
            return QN_OK;
    }
    return qn_fail(graph->ctx, QN_E_OPTION, "the model has no output '%s'", name ? name : "");
}

static qn_status add_number(qn_value **out, qn_graph *graph, const char *name)
{
    QN_TRY(qn_value_create(out, graph, name));
    (*out)->type = qn_type_tensor(QN_FLOAT32, 0, NULL);
    return qn_graph_add_input(graph, *out);
}

/* The gradients of all parameters, and a step for each. */
static qn_status add_steps(making *m, qn_value **parameters, size_t count)
{
    qn_graph *graph = m->graph;
    qn_value **gradients = qn_arena_array(graph->arena, count + 1, sizeof *gradients);
    qn_train_update *by = qn_arena_array(graph->arena, count + 1, sizeof *by);
    qn_train_inputs inputs;
    if (!gradients || !by)
        return qn_fail_nomem(graph->ctx);
    QN_TRY(qn_differentiate(gradients, graph, m->loss.loss, parameters, count));
    QN_TRY(add_number(&inputs.rate, graph, "rate"));
    QN_TRY(add_number(&inputs.step, graph, "step"));
    for (size_t i = 0; i < count; i++)
        by[i] = (qn_train_update){parameters[i], gradients[i]};
    return qn_optimizer_add(&m->updates, graph, inputs, by, count, &m->settings->optimizer);
}

/* The loss, what was right, and what parameters become. */
static qn_status set_outputs(making *m)
{
    qn_graph_clear_outputs(m->graph);
    QN_TRY(qn_graph_add_output(m->graph, m->loss.loss));
    if (m->loss.correct)
        QN_TRY(qn_graph_add_output(m->graph, m->loss.correct));
    for (size_t i = 0; i < m->updates.count; i++)
        QN_TRY(qn_graph_add_output(m->graph, m->updates.at[i].next));
    return QN_OK;
}

static qn_status add_training(making *m)
{
    const qn_loss_settings *loss = &m->settings->loss;
    qn_value *scores = NULL, *teacher = NULL, **parameters;
    qn_node *const last = m->graph->last, *end = NULL;
    size_t count;
    QN_TRY(scores_of(&scores, m->graph, m->settings->output));
    if (loss->distillation > 0) {
        QN_TRY(qn_train_copy(&teacher, m->graph, scores));
        end = last->next;
    }
    QN_TRY(qn_train_norms(&m->updates, m->graph, end, AVERAGED));
    /* A norm at the end is another node now. */
    QN_TRY(scores_of(&scores, m->graph, m->settings->output));
    QN_TRY(qn_train_parameters(&parameters, &count, m->graph, end));
    QN_TRY(qn_train_loss_add(&m->loss, m->graph, scores, teacher, loss));
    QN_TRY(add_steps(m, parameters, count));
    return set_outputs(m);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static qn_status keep_names(const making *m)
{
    qn_training *t = m->training;
    t->n_names = m->updates.count;
    t->names = qn_alloc_zero(t->ctx, t->n_names + 1, sizeof *t->names);
    QN_TRY_ALLOC(t->ctx, t->names);
    for (size_t i = 0; i < t->n_names; i++)
        t->names[i] = m->updates.at[i].parameter->name;
    t->has_labels = m->loss.labels != NULL;
    t->n_inputs = m->graph->n_inputs;
    t->classes = m->loss.classes;
    return QN_OK;
}

static qn_status plan(qn_training *t, qn_model *model, const qn_training_settings *s)
{
    const qn_observe_options train = {.purpose = QN_PURPOSE_TRAIN};
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.threads = s->threads;
    options.backend = s->backend;
    QN_TRY(qn_plan_create_observed(&t->plan, t->ctx, model, &options, &train));
    return qn_session_create(&t->session, t->ctx, t->plan);
}

static qn_status make(qn_training *t, qn_model *model, const qn_training_settings *s)
{
    const qn_graph_options open = QN_GRAPH_OPTIONS_INIT;
    qn_graph_options bound = QN_GRAPH_OPTIONS_INIT;
    qn_model *work;
    bound.batch = s->batch;
    bound.shapes = s->shapes;
    bound.n_shapes = s->n_shapes;
    QN_TRY(qn_prepare_optimized(&t->base, t->ctx, model, &open, QN_PURPOSE_TRAIN, NULL));
    t->n_model_inputs = t->base->graph->n_inputs;
    QN_TRY(qn_prepare_shapes(&work, t->ctx, t->base, &bound, true));
    making m = {.training = t, .settings = s, .graph = work->graph};
    qn_status status = qn_passes_run(work, &(qn_pass_options){.purpose = QN_PURPOSE_TRAIN}, NULL);
    if (status == QN_OK)
        status = add_training(&m);
    if (status == QN_OK)
        status = keep_names(&m);
    if (status == QN_OK)
        status = plan(t, work, s);
    qn_model_free(work);
    return status;
}

qn_status qn_training_create(qn_training **out, qn_context *ctx, qn_model *model,
                             const qn_training_settings *settings)
{
    qn_training *t = qn_alloc_zero(ctx, 1, sizeof *t);
    *out = NULL;
    QN_TRY_ALLOC(ctx, t);
    t->ctx = ctx;
    t->batch = settings->batch;
    const qn_status status = make(t, model, settings);
    if (status == QN_OK)
        *out = t;
    else
        qn_training_free(t);
    return status;
}

void qn_training_free(qn_training *t)
{
    if (!t)
        return;
    qn_session_free(t->session);
    qn_plan_free(t->plan);
    qn_model_free(t->base);
    qn_free(t->ctx, t->names);
    qn_free(t->ctx, t);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static qn_status run(qn_training *t, const qn_training_batch *b)
{
    float rate = (float)b->rate, step = (float)b->step;
    qn_tensor *inputs = qn_alloc_zero(t->ctx, t->n_inputs + 1, sizeof *inputs);
    size_t n = t->n_model_inputs;
    QN_TRY_ALLOC(t->ctx, inputs);
    memcpy(inputs, b->inputs, n * sizeof *inputs);
    if (t->has_labels)
        inputs[n++] = (qn_tensor){QN_INT64, 1, {t->batch}, (void *)(uintptr_t)b->labels};
    inputs[n++] = (qn_tensor){.dtype = QN_FLOAT32, .data = &rate};
    inputs[n++] = (qn_tensor){.dtype = QN_FLOAT32, .data = &step};
    const qn_status status = qn_session_run(t->session, inputs, n);
    qn_free(t->ctx, inputs);
    return status;
}

qn_status qn_training_step(qn_training_result *out, qn_training *t, const qn_training_batch *b)
{
    const size_t first = t->has_labels ? 2 : 1;
    QN_TRY(run(t, b));
    out->loss = (double)*(const float *)qn_session_output(t->session, 0)->data;
    out->correct =
        t->has_labels ? (double)*(const float *)qn_session_output(t->session, 1)->data : 0;
    if (!isfinite(out->loss))
        return qn_fail(t->ctx, QN_E_INVALID,
                       "step %lld: the loss is no number any more; a smaller rate may help",
                       (long long)b->step);
    for (size_t i = 0; i < t->n_names; i++)
        QN_TRY(qn_session_parameter_set(t->session, t->names[i],
                                        qn_session_output(t->session, first + i)));
    return QN_OK;
}

/* ---- The result ------------------------------------------------------------------------------ */

/* A constant of the written network that has learned. */
static qn_status write_back(qn_graph *graph, qn_training *t, const char *name)
{
    qn_value *value = qn_graph_value(graph, name);
    const qn_tensor *now;
    qn_tensor *kept;
    if (!value || !value->data)
        return QN_OK; /* the optimizer's own */
    QN_TRY(qn_session_parameter_get(&now, t->session, name));
    const qn_type type = qn_type_of(now);
    QN_TRY(qn_model_tensor(&kept, graph->model, &type));
    memcpy(kept->data, now->data, (size_t)qn_tensor_count(now) * qn_dtype_size(now->dtype));
    value->data = kept;
    return QN_OK;
}

qn_status qn_training_model(qn_model **out, qn_training *t)
{
    QN_TRY(qn_model_clone(out, t->ctx, t->base));
    for (size_t i = 0; i < t->n_names; i++) {
        const qn_status status = write_back((*out)->graph, t, t->names[i]);
        if (status == QN_OK)
            continue;
        qn_model_free(*out);
        *out = NULL;
        return status;
    }
    return QN_OK;
}
