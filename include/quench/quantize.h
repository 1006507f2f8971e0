/* quench: data that a model is run with, what calibration learns from them, and the integer model
 * that comes of it.
 *
 * quench.h includes this page: it is the second third of the manual, and the rules of the first
 * hold. */
#include "../quench.h" /* before the guard: the page behind this one needs both */

#ifndef QUENCH_QUANTIZE_H
#define QUENCH_QUANTIZE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data: samples that a model is run with -------------------------------------------------- */

/* The same for every call that takes samples; docs/data.md tells all. */
typedef struct qn_data_options {
    /* Each "[input=]path": a file whose first axis counts samples (.npy, .npz, raw bytes), IDX or
     * CIFAR, a folder of pictures (its sub-folders are classes) or of one file per sample, a list
     * of files (.txt, .lst). */
    const char *const *data;
    size_t n_data;
    /* File with the names of the samples of a folder to use; NULL: all */
    const char *list;
    /* File of classes; NULL: those that the data have, if any */
    const char *labels;
    /* Of pictures, as "resize=256,crop=224,bgr,mean=104/117/123"; NULL: none. */
    const char *preprocess;
    /* Use so many from the first one on; 0 samples: all */
    int64_t first, samples;
    /* Of a run, where nothing fixes it; 0: 8 */
    int64_t batch;
    /* Threads that read ahead; 0: one per core; negative: none */
    int loaders;
    /* A file of a folder or list that is no picture ends the run; else it is left out, with a
     * warning */
    int strict;
} qn_data_options;
#define QN_DATA_OPTIONS_INIT                                                                       \
    {                                                                                              \
        NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0                                                   \
    }

/* Checks a text that describes preprocessing. */
QN_API QN_MUST_CHECK qn_status qn_preprocess_check(qn_context *ctx, const char *text);

/* ---- Calibration: what values a model computes on given data --------------------------------- */

/* Statistics of a model's activations: extremes, sums, histograms. They depend on model and data
 * only, not on the order of the samples, threads or batches, and every method of choosing ranges is
 * answered from them. */
typedef struct qn_stats qn_stats;

QN_API void qn_stats_free(qn_stats *stats);
/* Writes under a temporary name first: the file appears complete or not at all. */
QN_API QN_MUST_CHECK qn_status qn_stats_save(qn_context *ctx, const qn_stats *stats,
                                             const char *path);
QN_API QN_MUST_CHECK qn_status qn_stats_load(qn_stats **out, qn_context *ctx, const char *path);
/* Statistics of all samples of the parts, which must be of one model. */
QN_API QN_MUST_CHECK qn_status qn_stats_merge(qn_stats **out, qn_context *ctx,
                                              const qn_stats *const *parts, size_t count);
/* Ranges of every tensor by every method. */
QN_API QN_MUST_CHECK qn_status qn_stats_report(qn_report **out, qn_context *ctx,
                                               const qn_stats *stats);

typedef struct qn_calibrate_options {
    qn_graph_options graph;
    /* As of qn_infer_options */
    const char *const *inputs;
    size_t n_inputs;
    /* None: 8 samples of random numbers, or as many as it says, with a warning. */
    qn_data_options data;
    /* Samples run at once; 0: the context's */
    int threads;
    /* Of the random numbers */
    uint64_t seed;
    /* File that a killed run continues from; removed by qn_stats_save's caller once the statistics
     * are safe. NULL: none. */
    const char *checkpoint;
} qn_calibrate_options;
#define QN_CALIBRATE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        QN_GRAPH_OPTIONS_INIT, NULL, 0, QN_DATA_OPTIONS_INIT, 0, 0, NULL                           \
    }

/* Runs the samples and collects statistics. The report (may be NULL) tells of convergence and
 * outliers. */
QN_API QN_MUST_CHECK qn_status qn_calibrate(qn_stats **out, qn_report **report, qn_context *ctx,
                                            qn_model *model, const qn_calibrate_options *options);

/* ---- Quantization: from a float model and data to an integer one ----------------------------- */

/* The targets that models are quantized for; NULL past the last. The first is quench's own
 * engine. */
QN_API const char *qn_target_name(size_t i);
/* Chips are targets too; NULL past the last. A chip is known by its full name as well, which has a
 * letter, or a letter and V, for x, and perhaps more behind it: "TX5368AV200" is a
 * TX5368x_TX5339x_TX5335x. */
QN_API const char *qn_chip_name(size_t i);
typedef struct qn_chip_info {
    /* As of qn_chip_name */
    const char *name;
    /* Computes with 16 bits too, alone or beside 8 */
    int wide;
} qn_chip_info;
/* 0 where there is no such chip. */
QN_API int qn_chip_find(qn_chip_info *out, const char *name);
/* The methods of choosing ranges; NULL past the last. */
QN_API const char *qn_method_name(size_t i);

/* A budget of accuracy: layers get 16 bits, or stay float, the most harmful first, until it
 * holds. */
typedef struct qn_goal {
    /* Points of top-1 on `eval`, or percent of the outputs */
    double max_drop;
    /* Labelled samples; NULL: the outputs' error sum|fix - float| / sum|float| on the calibration
     * data */
    const struct qn_eval_options *eval;
    /* `eval` counts only where the calibration data carry classes, as CIFAR files and sub-folders
     * do, and the model has scores for them */
    int if_labelled;
} qn_goal;
/* Shows a model that lives no longer than the call. */
typedef qn_status qn_model_fn(void *user, qn_model *model);

typedef struct qn_quantize_options {
    /* Model shapes and data */
    qn_calibrate_options calibrate;
    /* Or chip; NULL: the first target */
    const char *target;
    /* NULL: the best known; of a chip "kl", "min_max" with 16 bits */
    const char *method;
    /* Of method "percentile"; 0: 0.99999 */
    double percentile;
    /* 8 or 16; 0: 8 */
    int bits;
    /* Patterns of nodes that stay float: '*' and '?' over names of nodes and tensors and over
     * operators */
    const char *const *keep_float;
    size_t n_float;
    /* "PATTERN=8", "=16" or "=w8a16"; the last that fits counts */
    const char *const *widths;
    size_t n_widths;
    /* Switch a refinement off */
    int no_bias_correction, no_weight_clipping;
    /* Likewise */
    int no_equalization, no_balancing;
    /* Measure each refinement on samples, and leave out factors of channels that do harm */
    int prove;
    /* The range before a function (SiLU, ...) is not chosen by the error behind it */
    int no_look_through;
    /* Samples of the comparison with float; 0: 16 */
    int64_t compared;
    /* File of qn_stats_save: ranges come from it, and data, which may be left out, are for the
     * comparison only. NULL: calibrate */
    const char *stats;
    /* Weights of Gemm, MatMul, LSTM and GRU ahead of time, activations while running: no data are
     * needed */
    int dynamic;
    /* Scale file that says everything that is derived from data, and the target, widths and
     * patterns it was made with; NULL: derive it */
    const char *scales;
    /* Where to write such a file; NULL: nowhere */
    const char *save_scales;
    /* File of qn_mix_template: it says bits and method of every node, in place of the ones above;
     * NULL: none */
    const char *mix;
    /* Of the quantized model's inputs: "float32", "int8", "uint8", "int16", or "None": as it is;
     * one for all, or one for each */
    const char *const *input_types;
    size_t n_input_types;
    /* All that a Concat or ScatterND puts together has one scale */
    int unify_inputs;
    /* What LayerNormalization reads and writes is cut off at plus and minus this many; 0: it is
     * not */
    double norm_limit;
    /* Functions of 16 bits are tables of 2^table_bits steps, 8 to 12, with straight lines between;
     * 0: they are exact */
    int table_bits;
    /* Layers that this machine runs faster in float stay float */
    int fastest;
    /* NULL: none */
    const qn_goal *goal;
    /* Gets the best model so far, at every step towards the goal; or NULL */
    qn_model_fn *better;
    void *better_user;
    /* Of a chip's model; else they are integers, see qn_model_output_scale */
    int real_outputs;
    /* So many layers with the largest errors of their own get 16 bits, or stay float, where that
     * helps the outputs; see qn_compare_models */
    int64_t fix_worst;
    /* Weights of 8 bits are -64 to 64: engines that saturate on CPUs without VNNI (ONNX Runtime,
     * OpenVINO) compute such a file right there too */
    int reduce_range;
} qn_quantize_options;
#define QN_QUANTIZE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        QN_CALIBRATE_OPTIONS_INIT, NULL, NULL, 0.0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0,      \
            NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0.0, 0, 0, NULL, NULL, NULL, 0, 0, 0            \
    }

/* Makes a model with QuantizeLinear and DequantizeLinear nodes; `model` stays as it is. The report
 * (may be NULL) compares both: error of every output, signal-to-noise ratio of every tensor, what
 * stayed float and why; how fast both are, layer by layer. QN_E_GOAL: both are there, but miss the
 * goal. */
QN_API QN_MUST_CHECK qn_status qn_model_quantize(qn_model **out, qn_report **report,
                                                 qn_context *ctx, qn_model *model,
                                                 const qn_quantize_options *options);
/* The nodes, and what they would become; nothing is run. */
QN_API QN_MUST_CHECK qn_status qn_quantize_list(qn_report **out, qn_context *ctx, qn_model *model,
                                                const qn_quantize_options *options);

#ifdef __cplusplus
}
#endif

#endif
