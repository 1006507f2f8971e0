/* A quantization: what goes in, what can be varied, and what comes out.
 *
 *     qn_quantize_input ─┐
 *                        ├─ qn_quantize_rules ─► tables ─ qn_quantize_finish ─► qn_quantized_model
 *  qn_quantize_settings ─┘   (qn_quantize_make does both)
 *
 * The input (the float model after its passes, samples, statistics, what files say) is opened once
 * by qn_quantize_job_open and completed by whoever finds the statistics; from then on it is only
 * read: searches, strategies and threads share it. Settings are a value that searches copy and
 * vary. A qn_quantized_model owns all that was made of both. */
#ifndef QN_QUANTIZE_JOB_H
#define QN_QUANTIZE_JOB_H

#include "model/prepare.h"
#include "quant/insert.h"
#include "quant/scales.h"
#include "quantize/calibration.h"

typedef struct qn_quantize_input {
    /* The context of the thread that works with it: messages, and memory of what is made. */
    qn_context *ctx;
    const qn_quantize_options *options;
    const qn_calibration *data;
    /* Ranges come from these; NULL where none are needed. */
    const qn_stats *stats;
    /* The scales of a file that says all; NULL: scales come from ranges. */
    const qn_scales *scales;
    /* The rows of a file that says bits and methods node by node; NULL: none. */
    const qn_mix *mix;
    /* The model has scales already: it keeps the widths that it was trained with. */
    bool trained;
    /* The model has all scales already, and no data were given: they are kept. */
    bool given;
    /* Nodes are only listed, whether there is anything to quantize or not. */
    bool listing;
} qn_quantize_input;

typedef struct qn_quantize_settings {
    /* Which nodes become integers, and of which width. */
    qn_quant_settings rules;
    /* How their scales are chosen. */
    qn_param_options params;
} qn_quantize_settings;

/* Settings as the options, or the scale file, say. */
QN_MUST_CHECK qn_status qn_quantize_settings_init(qn_quantize_settings *out,
                                                  const qn_quantize_input *input);

typedef struct qn_quantized_model {
    qn_context *ctx;
    qn_model *model;
    /* The tables of the rules, of this model. */
    qn_quantizer *quantizer;
    /* The text of a scale file, where one is asked for. */
    char *scale_text;
    /* It was made with these; their strings belong to whoever made them. */
    qn_quantize_settings settings;
} qn_quantized_model;

/* A copy of the float model and what the rules say of it; no integers yet. qn_quantized_model_free
 * in any case. */
QN_MUST_CHECK qn_status qn_quantize_rules(qn_quantized_model *out, const qn_quantize_input *input,
                                          const qn_quantize_settings *settings);
/* Makes integers of what qn_quantize_rules left; only parameters, no rules, may have been changed
 * in between. */
QN_MUST_CHECK qn_status qn_quantize_finish(qn_quantized_model *q, const qn_quantize_input *input);
QN_MUST_CHECK qn_status qn_quantize_make(qn_quantized_model *out, const qn_quantize_input *input,
                                         const qn_quantize_settings *settings);
/* *to, freed before, becomes *from, which is empty then. */
void qn_quantized_model_move(qn_quantized_model *to, qn_quantized_model *from);
/* Takes one that was never made (all zero) too. */
void qn_quantized_model_free(qn_quantized_model *q);

/* metadata.c: what the file was made with; done by qn_quantize_finish. */
QN_MUST_CHECK qn_status qn_quantized_model_describe(const qn_quantized_model *q,
                                                    const qn_quantize_input *input);
/* The scale file at the path, complete but for the commit; *out NULL: none was asked for. */
QN_MUST_CHECK qn_status qn_quantized_model_write_scales(qn_output_file **out,
                                                        const qn_quantized_model *q,
                                                        const char *path);

/* ---- The owner of an input ------------------------------------------------------------------- */

typedef struct qn_quantize_job {
    qn_context *ctx;
    qn_calibration data;
    qn_scales *scales;
    qn_mix *mix;
    qn_quantize_input input;
    /* The settings as asked for. */
    qn_quantize_settings settings;
    /* A model with the rules of these settings: the first model that is made may take it. */
    qn_quantized_model ruled;
} qn_quantize_job;

/* Passes and rules, and checks that what is asked for goes together; no sample is read. The options
 * must outlive it. qn_quantize_job_free in any case. */
QN_MUST_CHECK qn_status qn_quantize_job_open(qn_quantize_job *j, qn_context *ctx, qn_model *model,
                                             const qn_quantize_options *options, bool listing);
void qn_quantize_job_free(qn_quantize_job *j);

#endif
