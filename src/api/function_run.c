/* qn_function_run: a model as it is, judged by an infer function. */
#include <math.h>

#include "base/clock.h"
#include "base/options.h"
#include "executor/executor.h"
#include "executor/functions.h"
#include "model/prepare.h"
#include "ops/infer.h"
#include "report/report.h"

static qn_status run(qn_report *report, qn_context *ctx, qn_model *model,
                     const qn_function_options *o)
{
    qn_function function = o->function;
    const qn_function_row *row;
    double metric = NAN;
    QN_TRY(qn_function_find(&row, ctx, &function, false));
    if (!function.run)
        return qn_fail(ctx, QN_E_OPTION, "infer function '%s' does not judge a model: name another",
                       function.name);
    const qn_executor_options options = {.stage = QN_EXECUTE_INFER,
                                         .model = model,
                                         .graph = &o->graph,
                                         .function = &function,
                                         .iteration = o->iteration > 0 ? o->iteration : 1,
                                         .save_dir = o->save_dir,
                                         .run_mode = "infer",
                                         .input_types = o->input_types,
                                         .n_input_types = o->n_input_types,
                                         .threads = o->threads,
                                         .report = &report->root};
    const double start = qn_clock_ms();
    QN_TRY(qn_execute_function(&metric, NULL, ctx, &options));
    if (function.name)
        qn_item_text(&report->root, "infer_function", function.name);
    qn_item_real(&report->root, "wall_ms", qn_clock_ms() - start, 1);
    if (isnan(metric))
        qn_item_text(&report->root, "accuracy", "none: the function returned nothing");
    else
        qn_item_real(&report->root, "accuracy", metric, 4);
    return qn_report_finish(report);
}

qn_status qn_function_run(qn_report **out, qn_context *ctx, qn_model *model,
                          const qn_function_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_function_options, taken, ctx, options);
    const qn_function_options *o = &taken;
    qn_model *bound = NULL;
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = qn_prepare_shapes(&bound, ctx, model, &o->graph, false);
    if (status == QN_OK)
        status = qn_graph_infer(bound->graph);
    if (status == QN_OK)
        status = run(report, ctx, bound, o);
    qn_model_free(bound);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
