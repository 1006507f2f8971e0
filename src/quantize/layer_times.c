/* Times of layers, float beside integer, measured or estimated; layers that integers make slower
 * stay float. */
#include "quantize/layer_times.h"

#include <string.h>

#include "base/clock.h"
#include "base/pin.h"
#include "pass/qdq_nodes.h"
#include "run/session.h"

enum { LEAST_RUNS = 8, MOST_RUNS = 100, SEARCH_ROUNDS = 4 };
static const double TURN_MS = 300; /* for all runs of one model */
static const double SLOW_RATIO = 1.1, SLOW_SHARE = 0.01;

/* A model that is being timed. */
typedef struct runner {
    qn_plan *plan;
    qn_session *session;
    /* The least of each step */
    double *step_ms;
    /* The least of a run */
    double whole_ms;
    /* Clock at the end of the last step */
    double last_ms;
} runner;

/* ---- Running --------------------------------------------------------------------------------- */

static void note_step(void *user, size_t step)
{
    runner *r = user;
    const double now = qn_clock_ms(), ms = now - r->last_ms;
    if (r->step_ms[step] <= 0 || ms < r->step_ms[step])
        r->step_ms[step] = ms;
    r->last_ms = now;
}

static qn_status make_plan(runner *r, qn_layer_times *times, const qn_quantize_input *input,
                           qn_model *model, bool only_claims)
{
    const qn_graph_options *asked = &input->options->calibrate.graph;
    const qn_observe_options nothing = {.purpose = QN_PURPOSE_RUN, .only_claims = only_claims};
    qn_plan_options options = {QN_OPTIONS_VERSION, .graph = input->data->graph};
    options.graph.skip = asked->skip;
    options.graph.n_skip = asked->n_skip;
    QN_TRY(qn_plan_create_observed(&r->plan, input->ctx, model, &options, &nothing));
    if (r->plan->deferred && !only_claims)
        return qn_fail(input->ctx, QN_E_INVALID, "%s", r->plan->deferred);
    r->step_ms = qn_arena_array(&times->arena, r->plan->n_steps + 1, sizeof *r->step_ms);
    QN_TRY_ALLOC(input->ctx, r->step_ms);
    return QN_OK;
}

static qn_status run_once(runner *r, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_session_hooks hooks = {.user = r, .after = note_step};
    const double start = r->last_ms = qn_clock_ms();
    QN_TRY(qn_session_run_hooked(r->session, inputs, n_inputs, &hooks));
    const double ms = qn_clock_ms() - start;
    if (r->whole_ms <= 0 || ms < r->whole_ms)
        r->whole_ms = ms;
    return QN_OK;
}

/* In turn, so that what disturbs the machine disturbs both. */
static qn_status run_both(runner r[2], const qn_quantize_input *input)
{
    const qn_tensor *inputs = NULL;
    const double until = qn_clock_ms() + 2 * TURN_MS;
    const qn_sample_source *source = input->data->source;
    qn_status status = source->read(source->user, input->ctx, 0, 0, &inputs);
    for (int i = 0; status == QN_OK && i < MOST_RUNS && (i < LEAST_RUNS || qn_clock_ms() < until);
         i++) {
        status = qn_check_cancel(input->ctx);
        for (int which = 0; which < 2 && status == QN_OK; which++)
            status = run_once(&r[which], inputs, input->data->n_inputs);
    }
    return status;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* The value that a step writes, by its name in the float graph; NULL where it writes none of its
 * own (or the arena is full, and then its time counts to the next). */
static const char *value_of(qn_arena *arena, const runner *r, size_t step)
{
    const qn_step *s = &r->plan->steps[step];
    if (s->n_out == 0 || s->out[0] < 0 || s->n_nodes == 0)
        return NULL;
    const char *name = r->plan->slots.at[s->out[0]].value->name;
    return qn_arena_text(arena, name, qn_qdq_base_length(name));
}

/* One layer for each step of the float plan that writes a value. */
static qn_status real_layers(qn_names *by_value, qn_layer_times *times, qn_context *ctx,
                             const runner *r)
{
    times->layers = qn_arena_array(&times->arena, r->plan->n_steps + 1, sizeof *times->layers);
    QN_TRY_ALLOC(ctx, times->layers);
    for (size_t i = 0; i < r->plan->n_steps; i++) {
        qn_layer_time *layer = &times->layers[i];
        layer->real_ms = r->step_ms[i];
        layer->value = value_of(&times->arena, r, i);
        if (!layer->value)
            continue;
        const char *node = r->plan->steps[i].nodes[0]->name;
        layer->node = qn_arena_text(&times->arena, node, strlen(node));
        QN_TRY_ALLOC(ctx, layer->node);
        QN_TRY(qn_names_set(by_value, layer->value, layer));
    }
    times->n_layers = r->plan->n_steps;
    return QN_OK;
}

/* The values that the steps' nodes write and the float graph has. */
static qn_status list_inside(qn_layer_time *layer, qn_layer_times *times, const runner *r,
                             size_t begin, size_t end)
{
    size_t most = layer->n_inside + 1;
    for (size_t i = begin; i < end; i++)
        most += (size_t)r->plan->steps[i].n_nodes;
    const char **names = qn_arena_array(&times->arena, most, sizeof *names);
    QN_TRY_ALLOC(r->plan->ctx, names);
    for (size_t i = 0; i < layer->n_inside; i++)
        names[i] = layer->inside[i];
    layer->inside = names;
    for (size_t i = begin; i < end; i++) {
        for (int32_t n = 0; n < r->plan->steps[i].n_nodes; n++) {
            const qn_node *node = r->plan->steps[i].nodes[n];
            const char *name = node->n_out > 0 && node->out[0] ? node->out[0]->name : "";
            names[layer->n_inside] = qn_arena_text(&times->arena, name, qn_qdq_base_length(name));
            QN_TRY_ALLOC(r->plan->ctx, names[layer->n_inside]);
            layer->n_inside++;
        }
    }
    return QN_OK;
}

/* What the quantized model does on the way to a value that the float one has is part of its
 * layer. */
static qn_status add_integers(const qn_names *by_value, qn_layer_times *times, const runner *r)
{
    double before = 0;
    size_t begin = 0;
    for (size_t i = 0; i < r->plan->n_steps; i++) {
        const char *value = value_of(&times->arena, r, i);
        qn_layer_time *layer = value ? qn_names_get(by_value, value) : NULL;
        before += r->step_ms[i];
        if (!layer)
            continue;
        layer->integer_ms += before;
        QN_TRY(list_inside(layer, times, r, begin, i + 1));
        before = 0;
        begin = i + 1;
    }
    return QN_OK;
}

/* Layers of the float plan that the other has no value of become part of the next that it has one
 * of. */
static void join_layers(qn_layer_times *times)
{
    double before = 0;
    size_t count = 0;
    for (size_t i = 0; i < times->n_layers; i++) {
        qn_layer_time *layer = &times->layers[i];
        before += layer->real_ms;
        if (layer->integer_ms <= 0)
            continue;
        layer->real_ms = before;
        before = 0;
        times->layers[count++] = *layer;
    }
    times->n_layers = count;
}

static qn_status make_layers(qn_layer_times *times, qn_context *ctx, const runner r[2])
{
    qn_names by_value;
    qn_names_init(&by_value, ctx);
    qn_status status = real_layers(&by_value, times, ctx, &r[0]);
    if (status == QN_OK)
        status = add_integers(&by_value, times, &r[1]);
    if (status == QN_OK)
        join_layers(times);
    qn_names_free(&by_value);
    return status;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static qn_status make_plans(runner r[2], qn_layer_times *times, const qn_quantize_input *input,
                            const qn_quantized_model *quantized, bool only_claims)
{
    QN_TRY(make_plan(&r[0], times, input, input->data->real, only_claims));
    return make_plan(&r[1], times, input, quantized->model, only_claims);
}

static qn_status measure(qn_layer_times *times, const qn_quantize_input *input,
                         const qn_quantized_model *quantized, runner r[2])
{
    QN_TRY(make_plans(r, times, input, quantized, false));
    for (int which = 0; which < 2; which++)
        QN_TRY(qn_session_create(&r[which].session, input->ctx, r[which].plan));
    const bool pinned = qn_threads_pin(r[0].plan->threads);
    const qn_status status = run_both(r, input);
    if (pinned)
        qn_threads_unpin(r[0].plan->threads);
    return status;
}

static qn_status estimate(qn_layer_times *times, const qn_quantize_input *input,
                          const qn_quantized_model *quantized, runner r[2])
{
    QN_TRY(make_plans(r, times, input, quantized, true));
    for (int which = 0; which < 2; which++) {
        for (size_t i = 0; i < r[which].plan->n_steps; i++) {
            r[which].step_ms[i] = qn_step_cost(r[which].plan, &r[which].plan->steps[i]);
            r[which].whole_ms += r[which].step_ms[i];
        }
    }
    return QN_OK;
}

typedef qn_status take_fn(qn_layer_times *times, const qn_quantize_input *input,
                          const qn_quantized_model *quantized, runner r[2]);

static qn_status take_times(qn_layer_times *out, const qn_quantize_input *input,
                            const qn_quantized_model *quantized, take_fn *take)
{
    runner r[2] = {{.plan = NULL}, {.plan = NULL}};
    *out = (qn_layer_times){.n_layers = 0};
    qn_arena_init(&out->arena, &input->ctx->allocator);
    qn_status status = take(out, input, quantized, r);
    out->real_ms = r[0].whole_ms;
    out->integer_ms = r[1].whole_ms;
    if (status == QN_OK)
        status = make_layers(out, input->ctx, r);
    for (int which = 0; which < 2; which++) {
        qn_session_free(r[which].session);
        qn_plan_free(r[which].plan);
    }
    return status;
}

qn_status qn_layer_times_measure(qn_layer_times *out, const qn_quantize_input *input,
                                 const qn_quantized_model *quantized)
{
    return take_times(out, input, quantized, measure);
}

qn_status qn_layer_times_estimate(qn_layer_times *out, const qn_quantize_input *input,
                                  const qn_quantized_model *quantized)
{
    return take_times(out, input, quantized, estimate);
}

void qn_layer_times_free(qn_layer_times *times)
{
    qn_arena_free(&times->arena);
}

bool qn_layer_is_slow(const qn_layer_times *times, const qn_layer_time *layer)
{
    return layer->integer_ms > SLOW_RATIO * layer->real_ms &&
           layer->integer_ms - layer->real_ms > SLOW_SHARE * times->integer_ms;
}

void qn_layer_times_report(qn_item *root, const qn_layer_times *times)
{
    qn_item_real(root, "float_ms", times->real_ms, 3);
    qn_item_real(root, "integer_ms", times->integer_ms, 3);
    qn_item *table = qn_item_table(root, "slower_than_float");
    for (size_t i = 0; i < times->n_layers; i++) {
        const qn_layer_time *layer = &times->layers[i];
        if (!qn_layer_is_slow(times, layer))
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "node", layer->node);
        qn_item_real(row, "float_ms", layer->real_ms, 4);
        qn_item_real(row, "integer_ms", layer->integer_ms, 4);
    }
}

/* ---- The fastest mix ------------------------------------------------------------------------- */

/* The values of slow layers that are integers yet; *count of them. */
static void list_slow(const char **names, size_t *count, const qn_layer_times *times,
                      const qn_quantized_model *made)
{
    for (size_t i = 0; i < times->n_layers; i++) {
        const qn_layer_time *layer = &times->layers[i];
        for (size_t v = 0; qn_layer_is_slow(times, layer) && v < layer->n_inside; v++) {
            if (qn_quantizer_writes_integer(made->quantizer, layer->inside[v]))
                names[(*count)++] = layer->inside[v];
        }
    }
}

qn_status qn_leave_values(qn_quant_settings *rules, qn_context *ctx, qn_arena *arena,
                          const char *const *names, size_t count)
{
    const size_t given = rules->n_float - rules->n_sensitive;
    const char **all = qn_arena_array(arena, rules->n_float + count + 1, sizeof *all);
    QN_TRY_ALLOC(ctx, all);
    for (size_t i = 0; i < given; i++)
        all[i] = rules->keep_float[i];
    for (size_t i = 0; i < count; i++) {
        all[given + i] = qn_arena_text(arena, names[i], strlen(names[i]));
        QN_TRY_ALLOC(ctx, all[given + i]);
    }
    for (size_t i = given; i < rules->n_float; i++)
        all[i + count] = rules->keep_float[i];
    rules->keep_float = all;
    rules->n_float += count;
    rules->n_slow += count;
    return QN_OK;
}

/* The slow layers' values, *added of them. */
static qn_status add_slow(qn_quant_settings *rules, size_t *added, const qn_layer_times *times,
                          const qn_quantized_model *made, qn_arena *arena)
{
    size_t most = 1;
    for (size_t i = 0; i < times->n_layers; i++)
        most += times->layers[i].n_inside;
    const char **names = qn_arena_array(arena, most, sizeof *names);
    QN_TRY_ALLOC(made->ctx, names);
    list_slow(names, added, times, made);
    return qn_leave_values(rules, made->ctx, arena, names, *added);
}

/* One round; *better tells whether the model at hand is another now. */
static qn_status search_round(bool *better, qn_layer_times *times, qn_quantized_model *made,
                              const qn_quantize_input *input, qn_arena *arena,
                              qn_layer_times_fn *take)
{
    qn_quantize_settings settings = made->settings;
    qn_quantized_model tried = {.ctx = NULL};
    qn_layer_times now;
    size_t added = 0;
    *better = false;
    QN_TRY(add_slow(&settings.rules, &added, times, made, arena));
    if (!added)
        return QN_OK;
    settings.rules.may_be_empty = true;
    qn_status status = qn_quantize_make(&tried, input, &settings);
    tried.settings.rules.may_be_empty = made->settings.rules.may_be_empty;
    if (status == QN_OK && !qn_quantizer_is_empty(tried.quantizer)) {
        status = take(&now, input, &tried);
        *better = status == QN_OK && now.integer_ms < times->integer_ms;
        qn_layer_times_free(*better ? times : &now);
    }
    if (*better) {
        *times = now;
        qn_quantized_model_move(made, &tried);
    }
    qn_quantized_model_free(&tried);
    return status;
}

qn_status qn_faster_layers_search(qn_layer_times *times, qn_quantized_model *made,
                                  const qn_quantize_input *input, qn_arena *arena,
                                  qn_layer_times_fn *take)
{
    bool better = true;
    for (int round = 0; round < SEARCH_ROUNDS && better; round++)
        QN_TRY(search_round(&better, times, made, input, arena, take));
    return QN_OK;
}
