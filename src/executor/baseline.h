/* The float baseline: what the float model made of the data, kept for all who measure how far
 * quantized models are from it, and the first samples where nobody could read them again.
 *
 * It is filled in the float pass, by an executor or by a pass over data, piece by piece (a piece is
 * one run of the model); who needs more pieces than were kept computes and adds them. After
 * qn_baseline_finish it is only read, but for qn_baseline_extend. */
#ifndef QN_BASELINE_H
#define QN_BASELINE_H

#include "calib/calib.h"
#include "calib/relative_error.h"
#include "executor/batch.h"

typedef struct qn_baseline_piece {
    /* The print of its inputs, see qn_batch_print; all zero: nobody will ask. */
    qn_fingerprint print;
    int64_t rows;
    /* The numbers of all outputs, one behind the other; NULL: not kept. */
    float *values;
    /* [n_outputs]; 0: not numbers. */
    int64_t *counts;
} qn_baseline_piece;

typedef struct qn_baseline {
    qn_context *ctx;
    size_t n_inputs, n_outputs;
    /* [n_samples * n_inputs]: the inputs of the first pieces, for those who measure later; none
     * where a source of data can give them again. */
    qn_tensor *samples;
    int64_t n_samples, most_samples, room;
    size_t sample_bytes;
    /* Outputs of the first pieces; room for most_pieces. Of the pass, and with those that were
     * computed later. */
    qn_baseline_piece *pieces;
    int64_t n_pieces, n_known, most_pieces;
    /* The forwards of the function, and what it gave. */
    int64_t forwards;
    double metric;
    /* The source of the samples. */
    qn_sample_source source;
} qn_baseline;

enum { QN_BASELINE_SAMPLES = 16 };
void qn_baseline_init(qn_baseline *baseline, qn_context *ctx, size_t n_inputs, size_t n_outputs);
/* Room for the outputs of at most `count` pieces (0: any number), each of `bytes`: as many as a
 * limit allows. */
QN_MUST_CHECK qn_status qn_baseline_reserve(qn_baseline *baseline, int64_t count, size_t bytes);
/* Room for so many pieces in all, whatever they take. Of one that is finished. */
QN_MUST_CHECK qn_status qn_baseline_extend(qn_baseline *baseline, int64_t count);
/* Keeps outputs as piece `i`; from any thread, each for another one. `inputs` NULL: nobody will ask
 * whether they are the same again. */
QN_MUST_CHECK qn_status qn_baseline_keep_outputs(qn_baseline *baseline, qn_context *ctx, int64_t i,
                                                 const qn_tensor *inputs,
                                                 const qn_tensor *const *outputs);
/* Keeps the inputs of the next sample, as long as some are wanted. */
QN_MUST_CHECK qn_status qn_baseline_keep_inputs(qn_baseline *baseline, const qn_tensor *inputs);
/* After the last one: counts the pieces, and makes the source of the samples. */
void qn_baseline_finish(qn_baseline *baseline);
/* Output k of a piece as a row of numbers; .data NULL where there are none. */
qn_tensor qn_baseline_output(const qn_baseline *baseline, int64_t piece, size_t k);
/* Takes one that was never made (all zero) too. */
void qn_baseline_free(qn_baseline *baseline);

/* ---- How far outputs are from it ------------------------------------------------------------- */

typedef struct qn_baseline_error {
    qn_context *ctx;
    const qn_baseline *baseline;
    /* The model whose outputs come. */
    const qn_model *model;
    /* [n_outputs] */
    qn_relative_error *sums;
    /* Piece that the next forward begins with. */
    int64_t place;
    /* The error after every forward that was compared. */
    double *running;
    size_t n_running, capacity;
    /* The data was not that of the float pass. */
    bool other;
} qn_baseline_error;

QN_MUST_CHECK qn_status qn_baseline_error_init(qn_baseline_error *e, qn_context *ctx,
                                               const qn_baseline *baseline, const qn_model *model);
/* Adds the error of piece `i`, if it was kept, to sums [n_outputs]: outputs of that piece alone. */
void qn_baseline_measure(qn_relative_error *sums, const qn_baseline_error *e, int64_t i,
                         const qn_tensor *const *outputs);
/* Adds what qn_baseline_measure found in a forward. */
QN_MUST_CHECK qn_status qn_baseline_error_add(qn_baseline_error *e, const qn_relative_error *sums);
/* The same for a whole forward, whose inputs must be those of the float pass. */
QN_MUST_CHECK qn_status qn_baseline_compare(qn_baseline_error *e, const qn_batch_inputs *batch,
                                            const qn_tensor *outputs);
/* The error of the worst output; NaN: nothing was compared. */
double qn_baseline_error_value(const qn_baseline_error *e);
/* Whether it changed by less than a hundredth over the last tenth of the iterations. */
bool qn_baseline_error_settled(const qn_baseline_error *e, int64_t iteration);
void qn_baseline_error_free(qn_baseline_error *e);

#endif
