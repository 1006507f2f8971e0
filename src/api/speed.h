/* How fast the layers of a quantized model are beside those of the float one. */
#ifndef QN_SPEED_H
#define QN_SPEED_H

#include "api/quantize.h"

/* The steps of both plans that lead to the same value. */
typedef struct qn_layer_time {
    const char *value; /* its name in the float graph */
    const char *node;  /* that writes it there */
    double real_ms, integer_ms;
} qn_layer_time;

typedef struct qn_speed {
    qn_arena arena;
    double real_ms, integer_ms; /* of a whole run, the fastest seen */
    qn_layer_time *layers;
    size_t n_layers;
} qn_speed;

/* Runs the float and the last quantized model of a calibrated job in turn and takes their steps' times.
 * qn_speed_free in any case. */
QN_MUST_CHECK qn_status qn_speed_measure(qn_speed *out, qn_quantize_job *j);
void qn_speed_free(qn_speed *speed);
/* Whether integers cost a layer noticeably more than floats: by a tenth, and by more than a hundredth of the
 * whole run. */
bool qn_layer_is_slow(const qn_speed *speed, const qn_layer_time *layer);
/* The times of whole runs, and the slow layers. */
void qn_speed_report(qn_item *root, const qn_speed *speed);

/* Leaves slow layers float, as long as that makes the whole faster. The job's last model is then the fastest
 * one seen, and *speed its times. */
QN_MUST_CHECK qn_status qn_speed_search(qn_speed *speed, qn_quantize_job *j);

#endif
