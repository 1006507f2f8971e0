/* How fast the layers of a quantized model are beside those of the float one. */
#ifndef QN_LAYER_TIMES_H
#define QN_LAYER_TIMES_H

#include "quantize/job.h"

/* The steps of both plans that lead to the same value. */
typedef struct qn_layer_time {
    /* Its name in the float graph */
    const char *value;
    /* The node that writes it there */
    const char *node;
    /* The values that the nodes of its integer steps write, by their names in the float graph */
    const char **inside;
    size_t n_inside;
    double real_ms, integer_ms;
} qn_layer_time;

typedef struct qn_layer_times {
    qn_arena arena;
    /* The times of a whole run, the fastest seen */
    double real_ms, integer_ms;
    qn_layer_time *layers;
    size_t n_layers;
} qn_layer_times;

/* Takes the times of the float and the quantized model's steps. qn_layer_times_free in any case. */
typedef qn_status qn_layer_times_fn(qn_layer_times *out, const qn_quantize_input *input,
                                    const qn_quantized_model *quantized);
/* Runs both on a sample in turn. */
QN_MUST_CHECK qn_layer_times_fn qn_layer_times_measure;
/* Asks the planner what would run, and what that costs (qn_step_cost): the same on every
 * machine. */
QN_MUST_CHECK qn_layer_times_fn qn_layer_times_estimate;
void qn_layer_times_free(qn_layer_times *times);
/* Whether integers cost a layer noticeably more than floats: by a tenth, and by more than a
 * hundredth of the whole run. */
bool qn_layer_is_slow(const qn_layer_times *times, const qn_layer_time *layer);
/* The times of whole runs, and the slow layers. */
void qn_layer_times_report(qn_item *root, const qn_layer_times *times);

/* Adds names of values to those that the rules leave float for their speed; copies are made in the
 * arena. */
QN_MUST_CHECK qn_status qn_leave_values(qn_quant_settings *rules, qn_context *ctx, qn_arena *arena,
                                        const char *const *names, size_t count);
/* Leaves slow layers float, as long as that makes the whole faster by `take`. *made is then the
 * fastest model seen, and *times its times; the arena has its settings' strings. */
QN_MUST_CHECK qn_status qn_faster_layers_search(qn_layer_times *times, qn_quantized_model *made,
                                                const qn_quantize_input *input, qn_arena *arena,
                                                qn_layer_times_fn *take);

#endif
