/* What calibrating and quantizing have in common: the float graph, its data, and statistics of
 * them. */
#include "quantize/calibration.h"

#include "base/clock.h"
#include "model/prepare.h"
#include "ops/fingerprint.h"
#include "quant/observe.h"
#include "quantize/nan_check.h"

/* ---- The graph ------------------------------------------------------------------------------- */

qn_status qn_calibration_open(qn_calibration *c, qn_context *ctx, qn_model *model,
                              const qn_calibrate_options *options)
{
    *c = (qn_calibration){.ctx = ctx, .options = options};
    c->graph = options->graph;
    QN_TRY(qn_threads_choose(&c->workers, ctx, options->threads));
    QN_TRY(qn_prepare_optimized(&c->real, ctx, model, &c->graph, QN_PURPOSE_QUANTIZE, NULL));
    c->print = qn_model_fingerprint(c->real);
    return QN_OK;
}

void qn_calibration_drop_plan(qn_calibration *c)
{
    qn_plan_free(c->plan);
    c->plan = NULL;
}

void qn_calibration_close(qn_calibration *c)
{
    qn_calibration_drop_plan(c);
    if (c->feed_open)
        qn_feed_close(&c->feed);
    qn_sample_cache_close(&c->cache);
    qn_model_free(c->real);
}

/* ---- Data ------------------------------------------------------------------------------------ */

static qn_status open_feed(qn_calibration *c)
{
    const qn_calibrate_options *o = c->options;
    qn_input_shape *shapes = NULL;
    c->data = o->data;
    c->data.batch = 1;
    c->data.loaders = -1; /* the workers read */
    c->feed_options = (qn_feed_options){.inputs = o->inputs,
                                        .n_inputs = o->n_inputs,
                                        .data = &c->data,
                                        .seed = o->seed,
                                        .graph = &o->graph};
    c->feed_open = true;
    QN_TRY(qn_feed_open(&c->feed, c->ctx, c->real, &c->feed_options));
    QN_TRY(qn_feed_shapes(&shapes, &c->graph.n_shapes, &c->feed));
    c->graph.shapes = shapes;
    return QN_OK;
}

/* Files have the data of everything that is fed. */
static bool is_given(const qn_feed *feed)
{
    bool given = true;
    for (size_t i = 0; i < feed->n_in; i++)
        given = given && feed->files[i];
    return given || feed->dataset;
}

void qn_calibration_report_data(qn_item *root, const qn_calibration *c)
{
    if (c->fed && !c->with_data)
        qn_item_text(root, "data", "random numbers");
}

qn_status qn_calibration_feed(qn_calibration *c)
{
    const qn_observe_options watch = {.purpose = QN_PURPOSE_QUANTIZE,
                                      .passed = true,
                                      .direct = true,
                                      .observe = qn_observe_default};
    QN_TRY(open_feed(c));
    const double start = qn_clock_ms();
    const qn_plan_options options = {QN_OPTIONS_VERSION, .threads = 1, .graph = c->graph};
    QN_TRY(qn_plan_create_observed(&c->plan, c->ctx, c->real, &options, &watch));
    c->plan_ms = qn_clock_ms() - start;
    QN_TRY(qn_feed_source_open(&c->samples, &c->feed, c->plan, c->workers));
    c->fed = true;
    c->with_data = is_given(&c->feed);
    c->source = &c->samples.source;
    c->n_inputs = c->feed.n_in;
    if (!c->with_data)
        qn_log(c->ctx, QN_LOG_WARN,
               "no data were given: %lld samples of random numbers stand in for them, and ranges "
               "and accuracy mean nothing",
               (long long)c->samples.source.count);
    return QN_OK;
}

qn_status qn_calibration_keep(qn_calibration *c, int64_t most)
{
    QN_TRY(qn_sample_cache_open(&c->cache, c->ctx, c->source, c->n_inputs));
    c->cache.most = most;
    c->source = &c->cache.source;
    return QN_OK;
}

qn_status qn_calibration_collect(qn_stats **out, qn_convergence *convergence,
                                 const qn_calibration *c, const qn_collect_options *wanted)
{
    qn_collect_options collect = wanted ? *wanted : (qn_collect_options){.threads = 0};
    collect.threads = c->workers;
    if (!collect.checkpoint)
        collect.checkpoint = c->options->checkpoint;
    collect.axis = qn_channel_axis;
    collect.model = c->print;
    collect.remedy = qn_nan_remedy;
    QN_TRY(qn_collect(out, convergence, c->plan, c->ctx, c->source, &collect));
    qn_zero_inputs_warn(c->ctx, c->real->graph, out[collect.n_after]);
    return QN_OK;
}
