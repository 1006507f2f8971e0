/* quench: data that a model is run with, what calibration learns from them, and the integer model
 * that comes of it.
 *
 * quench.h includes this page: it is the second third of the manual, and the rules of the first
 * hold. */
#include "../quench.h" /* before the guard: the page behind this one needs both */

#ifndef QUENCH_QUANTIZE_H
#define QUENCH_QUANTIZE_H

#include "options/accuracy_budget.def"
#include "options/calibrate.def"
#include "options/data.def"
#include "options/quantize.def"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data: samples that a model is run with -------------------------------------------------- */

/* The same for every call that takes samples; docs/data.md tells all. */
typedef struct qn_data_options {
    int version;
    QN_DATA_OPTIONS(QN_OPTION_FIELD)
} qn_data_options;
#define QN_DATA_OPTIONS_INIT                                                                       \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_DATA_OPTIONS(QN_OPTION_STANDARD)                                    \
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
    int version;
    QN_CALIBRATE_OPTIONS(QN_OPTION_FIELD)
} qn_calibrate_options;
#define QN_CALIBRATE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_CALIBRATE_OPTIONS(QN_OPTION_STANDARD)                               \
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
    int int16;
} qn_chip_info;
/* 1 for names of targets, and of chips. */
QN_API int qn_target_is_known(const char *name);
/* 0 where there is no such chip. */
QN_API int qn_chip_find(qn_chip_info *out, const char *name);
/* The methods of choosing ranges; NULL past the last. */
QN_API const char *qn_method_name(size_t i);
/* The widths of integers that the engine computes with, as "8"; NULL past the last. */
QN_API const char *qn_bits_name(size_t i);
/* The least opset whose files have quantizers of the width; 0: there is no such width. */
QN_API int qn_bits_opset(int bits);

/* A budget of accuracy: layers get more bits, or stay float, the most sensitive first, until it
 * holds. */
typedef struct qn_accuracy_budget {
    int version;
    QN_ACCURACY_BUDGET(QN_OPTION_FIELD)
} qn_accuracy_budget;
#define QN_ACCURACY_BUDGET_INIT                                                                    \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_ACCURACY_BUDGET(QN_OPTION_STANDARD)                                 \
    }
/* Shows a model that lives no longer than the call. */
typedef qn_status qn_model_fn(void *user, qn_model *model);

typedef struct qn_quantize_options {
    int version;
    QN_QUANTIZE_OPTIONS(QN_OPTION_FIELD)
} qn_quantize_options;
#define QN_QUANTIZE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_QUANTIZE_OPTIONS(QN_OPTION_STANDARD)                                \
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
