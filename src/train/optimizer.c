/* Optimizers as nodes. */
#include "train/optimizer.h"

#include <stdio.h>
#include <string.h>

#include "ops/grad_attrs.h"
#include "ops/infer.h"
#include "train/gradient.h"

qn_status qn_train_updates_add(qn_train_updates *u, qn_graph *graph, qn_value *parameter,
                               qn_value *next)
{
    if (u->count == u->capacity) {
        const size_t capacity = QN_MAX(2 * u->capacity, 64);
        qn_train_update *more = qn_arena_array(graph->arena, capacity, sizeof *more);
        QN_TRY_ALLOC(graph->ctx, more);
        if (u->count)
            memcpy(more, u->at, u->count * sizeof *more);
        u->at = more;
        u->capacity = capacity;
    }
    u->at[u->count++] = (qn_train_update){parameter, next};
    return QN_OK;
}

/* ---- The table ------------------------------------------------------------------------------- */

typedef struct stepping {
    qn_graph *graph;
    qn_train_updates *updates;
    qn_train_inputs inputs;
    const qn_optimizer_settings *settings;
    /* What gradients are multiplied by; NULL: nothing */
    qn_value *factor;
    /* One of the optimizer's flags is set: Nesterov's momentum, a decay beside the step */
    bool variant;
} stepping;

typedef qn_status step_fn(stepping *s, qn_value *parameter, qn_value *gradient);
static step_fn sgd_step, adam_step;

static const struct {
    const char *name;
    step_fn *step;
    bool variant;
} optimizers[] = {{"sgd", sgd_step, false},
                  {"nesterov", sgd_step, true},
                  {"adam", adam_step, false},
                  {"adamw", adam_step, true}};

const char *qn_optimizer_name(size_t i)
{
    return i < QN_COUNT_OF(optimizers) ? optimizers[i].name : NULL;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* A parameter of zeros beside this one. */
static qn_status make_state(qn_value **out, qn_graph *graph, const qn_value *parameter,
                            const char *what)
{
    const size_t size = strlen(parameter->name) + strlen(what) + 2;
    char *name = qn_arena_alloc(graph->arena, size);
    qn_tensor *zeros;
    QN_TRY_ALLOC(graph->ctx, name);
    snprintf(name, size, "%s.%s", parameter->name, what);
    QN_TRY(qn_tensor_create(&zeros, graph->ctx, graph->arena, &parameter->type));
    QN_TRY(qn_value_parameter(out, graph, name, zeros));
    (*out)->type = parameter->type;
    return QN_OK;
}

static float decay_of(const stepping *s, const qn_value *parameter)
{
    return parameter->type.rank > 1 ? (float)s->settings->decay : 0;
}

/* The node's first outputs are what the values become. */
static qn_status take_outputs(stepping *s, qn_grad_job *job, qn_node *node, qn_value *const *values)
{
    qn_grad_infer(job, node);
    QN_TRY(job->status);
    for (int32_t o = 0; o < node->n_out; o++)
        QN_TRY(qn_train_updates_add(s->updates, s->graph, values[o], node->out[o]));
    return QN_OK;
}

static qn_status sgd_step(stepping *s, qn_value *parameter, qn_value *gradient)
{
    qn_grad_job job = {.graph = s->graph, .node = gradient->producer};
    qn_value *momentum;
    QN_TRY(make_state(&momentum, s->graph, parameter, "momentum"));
    qn_value *const in[] = {parameter, gradient, momentum, s->inputs.rate, s->factor};
    qn_node *node = qn_grad_node(&job, &qn_op_qn_SgdStep, in, 5, 2);
    QN_TRY(job.status);
    *(qn_sgd_attrs *)node->attrs = (qn_sgd_attrs){.momentum = (float)s->settings->momentum,
                                                  .decay = decay_of(s, parameter),
                                                  .nesterov = s->variant};
    return take_outputs(s, &job, node, (qn_value *const[]){parameter, momentum});
}

static qn_status adam_step(stepping *s, qn_value *parameter, qn_value *gradient)
{
    qn_grad_job job = {.graph = s->graph, .node = gradient->producer};
    qn_value *mean, *square;
    QN_TRY(make_state(&mean, s->graph, parameter, "mean"));
    QN_TRY(make_state(&square, s->graph, parameter, "square"));
    qn_value *const in[] = {parameter,      gradient,       mean,     square,
                            s->inputs.rate, s->inputs.step, s->factor};
    qn_node *node = qn_grad_node(&job, &qn_op_qn_AdamStep, in, 7, 3);
    QN_TRY(job.status);
    ((qn_adam_attrs *)node->attrs)->decay = decay_of(s, parameter);
    ((qn_adam_attrs *)node->attrs)->decoupled = s->variant;
    return take_outputs(s, &job, node, (qn_value *const[]){parameter, mean, square});
}

/* ---- All parameters -------------------------------------------------------------------------- */

static qn_status add_factor(stepping *s, const qn_train_update *by, size_t count)
{
    qn_value **gradients = qn_arena_array(s->graph->arena, count + 1, sizeof *gradients);
    int32_t n = 0;
    QN_TRY_ALLOC(s->graph->ctx, gradients);
    for (size_t i = 0; i < count; i++) {
        if (by[i].next)
            gradients[n++] = by[i].next;
    }
    if (!(s->settings->max_norm > 0) || n == 0)
        return QN_OK;
    qn_grad_job job = {.graph = s->graph, .node = gradients[0]->producer};
    qn_node *node = qn_grad_node(&job, &qn_op_qn_GradientScale, gradients, n, 1);
    if (job.status == QN_OK)
        ((qn_gradient_scale_attrs *)node->attrs)->max_norm = (float)s->settings->max_norm;
    s->factor = qn_grad_infer(&job, node);
    return job.status;
}

qn_status qn_optimizer_add(qn_train_updates *updates, qn_graph *graph, qn_train_inputs inputs,
                           qn_train_update *by, size_t count, const qn_optimizer_settings *settings)
{
    stepping s = {.graph = graph, .updates = updates, .inputs = inputs, .settings = settings};
    QN_TRY(add_factor(&s, by, count));
    for (size_t k = 0; k < QN_COUNT_OF(optimizers); k++) {
        if (strcmp(optimizers[k].name, settings->name) != 0)
            continue;
        s.variant = optimizers[k].variant;
        for (size_t i = 0; i < count; i++) {
            if (by[i].next)
                QN_TRY(optimizers[k].step(&s, by[i].parameter, by[i].next));
        }
        return QN_OK;
    }
    return qn_fail(graph->ctx, QN_E_OPTION, "there is no optimizer '%s'", settings->name);
}
