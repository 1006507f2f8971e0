/* A quantization on its way: a float graph, statistics of it, and the integer graph made of both. */
#ifndef QN_QUANTIZE_JOB_H
#define QN_QUANTIZE_JOB_H

#include "model/prepare.h"
#include "quant/insert.h"
#include "quant/scales.h"
#include "quantize/calibration.h"
#include "report/report.h"

/* A refinement: error of the outputs without and with it, where that was asked for and there are data. */
typedef struct qn_proof_row {
    qn_refined told; /* estimated from statistics */
    bool measured;
    double before, after;
    bool left; /* out, since the network is better without */
} qn_proof_row;

typedef struct qn_quantize_job {
    qn_context *ctx;
    const qn_quantize_options *options;
    qn_quant_settings settings; /* may change from one qn_job_make to the next */
    qn_param_options params;
    qn_calibration calibration;
    qn_model *quantized;     /* the last one made */
    qn_quantizer *quantizer; /* of it */
    qn_stats *stats;
    qn_arena arena;    /* for the strings of changed settings */
    qn_scales *scales; /* of a file: nothing is derived from data */
    qn_mix *mix;       /* of a file */
    char *scale_text;  /* of a scale file to be written; of the last model made */
    bool given;        /* all scales are those that the file has, without data */
    bool
        listing; /* nothing is made: nodes are listed, whether there is anything to quantize or not */
    bool untimed;   /* nobody asked how fast the models are */
    bool mended;    /* layers have more bits, or stay float, that nobody asked for */
    double noise;   /* of the worst part of an output, once it is compared */
    bool unchecked; /* whether some should: there are no samples to run */
    qn_proof_row proof[QN_REFINEMENTS]; /* see qn_job_prove */
} qn_quantize_job;

/* qn_job_free in any case. */
void qn_job_init(qn_quantize_job *j, qn_context *ctx, const qn_quantize_options *options);

/* Passes and rules: the quantizer is there, no sample has been read. */
QN_MUST_CHECK qn_status qn_job_prepare(qn_quantize_job *j, qn_model *model);
/* Reads the samples and collects statistics of them, or reads a file of statistics. */
QN_MUST_CHECK qn_status qn_job_calibrate(qn_quantize_job *j);
/* Settings as the options say, again: for another model from the same statistics. */
QN_MUST_CHECK qn_status qn_job_settle(qn_quantize_job *j);
/* A fresh copy of the float graph, and what the rules say of it. */
QN_MUST_CHECK qn_status qn_job_rules(qn_quantize_job *j);
/* Of a calibrated job: the model that the options ask for, with all refinements. QN_E_GOAL as of qn_accuracy_budget_search. */
QN_MUST_CHECK qn_status qn_job_decide(qn_item *root, qn_quantize_job *j);
/* The last model of the job, made faster where asked, beside the float one, told in `root`. */
QN_MUST_CHECK qn_status qn_job_compare(qn_item *root, qn_quantize_job *j, bool reported);
/* Makes the quantized model of the settings as they are now; a former one is freed. */
QN_MUST_CHECK qn_status qn_job_make(qn_quantize_job *j);
/* metadata.c: what the file was made with. */
QN_MUST_CHECK qn_status qn_job_describe(qn_quantize_job *j);
/* refine.c: measures what each refinement of the model at hand is worth on the first samples, and leaves out factors of
 * channels that do harm: then the model is made anew. */
QN_MUST_CHECK qn_status qn_job_prove(qn_quantize_job *j);
void qn_proof_report(qn_item *root, const qn_quantize_job *j);
/* The scale file that the options ask for, complete but for the commit; *out NULL: they do not. */
QN_MUST_CHECK qn_status qn_job_write_scales(qn_output_file **out, const qn_quantize_job *j);
/* All but the quantized model, which the caller frees or keeps. */
void qn_job_free(qn_quantize_job *j);

/* compare.c: both models on the first samples: error of every output, signal-to-noise ratio of the worst tensors. */
QN_MUST_CHECK qn_status qn_job_report_errors(qn_item *root, qn_quantize_job *j, int64_t samples);

#endif
