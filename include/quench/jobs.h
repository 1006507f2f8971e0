/* quench: whole jobs, as the command does them, and the infer functions that they call.
 *
 * quench.h includes this page: it is the last third of the manual, and the rules of the first hold.
 * A job takes a model and options, and hands out a report. */
#ifndef QUENCH_JOBS_H
#define QUENCH_JOBS_H

#include "../quench.h"
#include "options/bench.def"
#include "options/compare.def"
#include "options/convert.def"
#include "options/detect.def"
#include "options/eval.def"
#include "options/function.def"
#include "options/infer.def"
#include "options/infer_function.def"
#include "options/lint.def"
#include "options/mix.def"
#include "options/quantize_file.def"
#include "options/strategies.def"
#include "options/train.def"
#include "options/verify.def"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Many processes -------------------------------------------------------------------------- */

/* Joins the processes that `mpirun` started with this one, through libquench-mpi.so
 * (quench/ranks.h), and tells which of them this is: *rank from 0 to *count less 1. From then on
 * qn_calibrate with this context shares its samples among them; all must call it with the same
 * model and options, and all get the statistics. A process that was started alone is rank 0 of 1.
 * Where it fails the numbers are those of the launcher. */
QN_API QN_MUST_CHECK qn_status qn_context_join(qn_context *ctx, int *rank, int *count);

/* ---- Infer functions: code that feeds a model and says how good it is ------------------------ */

/* A model that somebody else's code feeds. It lives as long as the call of the function. */
typedef struct qn_executor qn_executor;

/* Feeds the model with qn_executor_forward as often as it wants to, iteration times as a rule, and
 * tells how good the outputs are: larger is better, NaN (which *metric holds from the start) where
 * there is no such number. It is called once with the float model, to collect statistics, and then
 * with each quantized one, and must feed the same data in the same order every time. A status that
 * it made up itself needs a message: qn_executor_fail. */
typedef qn_status qn_infer_fn(void *user, qn_executor *executor, double *metric);

typedef struct qn_executor_facts {
    /* Forwards that are asked for */
    int64_t iteration;
    /* Samples of each */
    int64_t batch_size;
    /* As given by the user; NULL: not */
    const char *dataset;
    /* Likewise */
    const char *save_dir;
    /* "quant", "infer", ... */
    const char *run_mode;
    /* File that has the function; NULL: none */
    const char *script;
    /* "input-configs" of the run-config, JSON; NULL: none */
    const char *configs;
    /* What the outputs are of: "float", "fixed" or "infer" */
    const char *stage;
    /* What the function prints is not to be seen: it runs many times */
    int quiet;
    size_t n_inputs, n_outputs, n_layers;
} qn_executor_facts;

/* A node's output. */
typedef struct qn_layer_info {
    const char *node;
    qn_value_info output;
} qn_layer_info;

QN_API const qn_executor_facts *qn_executor_get(const qn_executor *executor);
/* i must be below the count. */
QN_API void qn_executor_input(qn_value_info *out, const qn_executor *executor, size_t i);
QN_API const char *qn_executor_output_name(const qn_executor *executor, size_t i);
/* As of qn_model_output_scale. */
QN_API double qn_executor_output_scale(const qn_executor *executor, size_t i);
QN_API void qn_executor_layer(qn_layer_info *out, const qn_executor *executor, size_t i);
/* Runs the model with inputs in the order of its own. Types that convert without loss are
 * converted. A batch may be a multiple of the model's. */
QN_API QN_MUST_CHECK qn_status qn_executor_forward(qn_executor *executor, const qn_tensor *inputs,
                                                   size_t n_inputs);
/* Output i of the last forward; valid until the next one. */
QN_API const qn_tensor *qn_executor_output(const qn_executor *executor, size_t i);
/* Whether more forwards would tell nothing new: only with a quantized model, once the running error
 * of its outputs, sum|fixed - float| / sum|float|, changed by less than a hundredth over the last
 * tenth of the iterations, and three of them at least. */
QN_API int qn_executor_early_stop(const qn_executor *executor);
/* The message of the last forward that failed. */
QN_API const char *qn_executor_error(const qn_executor *executor);
/* Sets the message; returns `status`. */
QN_API QN_MUST_CHECK qn_status qn_executor_fail(qn_executor *executor, qn_status status,
                                                const char *message);

/* The functions that are built in; NULL past the last. */
QN_API const char *qn_infer_name(size_t i);

typedef struct qn_function {
    int version;
    QN_FUNCTION(QN_OPTION_FIELD)
} qn_function;
#define QN_FUNCTION_INIT                                                                           \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_FUNCTION(QN_OPTION_STANDARD)                                        \
    }

/* Calls a built-in function from within another one, in place of it. "infer_default" takes pictures
 * and labels as `configs` say (docs/scripts.md); "infer_auto" and names that are none fail. */
QN_API QN_MUST_CHECK qn_status qn_infer_call(double *metric, qn_executor *executor,
                                             const char *name);

/* ---- Whole jobs, as the command does them ---------------------------------------------------- */

typedef struct qn_infer_options {
    int version;
    QN_INFER_OPTIONS(QN_OPTION_FIELD)
} qn_infer_options;
#define QN_INFER_OPTIONS_INIT                                                                      \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_INFER_OPTIONS(QN_OPTION_STANDARD)                                   \
    }

/* Runs a model with inputs from files. The report tells of each output type, shape and range. */
QN_API QN_MUST_CHECK qn_status qn_infer_files(qn_report **out, qn_context *ctx, qn_model *model,
                                              const qn_infer_options *options);

/* Detection: what the outputs of a model that finds boxes mean. Start from
 * QN_DETECT_OPTIONS_INIT. */
typedef struct qn_detect_options {
    int version;
    QN_DETECT_OPTIONS(QN_OPTION_FIELD)
} qn_detect_options;
#define QN_DETECT_OPTIONS_INIT                                                                     \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_DETECT_OPTIONS(QN_OPTION_STANDARD)                                  \
    }
/* The forms of outputs; NULL past the last. docs/tasks.md describes them. */
QN_API const char *qn_detect_form(size_t i);

/* What qn_eval_options.task can be; NULL past the last. The first is NULL's meaning. */
QN_API const char *qn_task_name(size_t i);

typedef struct qn_eval_options {
    int version;
    QN_EVAL_OPTIONS(QN_OPTION_FIELD)
} qn_eval_options;
#define QN_EVAL_OPTIONS_INIT                                                                       \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_EVAL_OPTIONS(QN_OPTION_STANDARD)                                    \
    }

/* Runs the samples and tells the time of one and what the task measures. Detection: mAP50 and
 * mAP50-95 as COCO defines them, of both models; without labels the float original's boxes of
 * draw_conf and more are taken for true. Classification: top-1 and top-5 in percent and, with the
 * float original (may be NULL), agreement of the best classes and the mean KL(float || model),
 * natural logarithm, 1e-9 added to both. Softmax comes first where the float model's outputs are no
 * probabilities. */
QN_API QN_MUST_CHECK qn_status qn_eval_run(qn_report **out, qn_context *ctx, qn_model *model,
                                           qn_model *float_model, const qn_eval_options *options);

/* What qn_train_options.optimizer and .schedule can be; NULL past the last. */
QN_API const char *qn_train_optimizer(size_t i);
QN_API const char *qn_train_schedule(size_t i);

typedef struct qn_train_options {
    int version;
    QN_TRAIN_OPTIONS(QN_OPTION_FIELD)
} qn_train_options;
#define QN_TRAIN_OPTIONS_INIT                                                                      \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_TRAIN_OPTIONS(QN_OPTION_STANDARD)                                   \
    }

/* Trains the weights of a float model and writes "<save_dir>/<name>_trained.onnx". docs/training.md
 * tells all: what learns, the loss, checkpoints. The same model, data, options and number of
 * threads give the same file. */
QN_API QN_MUST_CHECK qn_status qn_train_run(qn_report **out, qn_context *ctx, qn_model *model,
                                            const qn_train_options *options);

typedef struct qn_bench_options {
    int version;
    QN_BENCH_OPTIONS(QN_OPTION_FIELD)
} qn_bench_options;
#define QN_BENCH_OPTIONS_INIT                                                                      \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_BENCH_OPTIONS(QN_OPTION_STANDARD)                                   \
    }

/* Times runs. */
QN_API QN_MUST_CHECK qn_status qn_bench_run(qn_report **out, qn_context *ctx, qn_model *model,
                                            const qn_bench_options *options);

typedef struct qn_verify_options {
    int version;
    QN_VERIFY_OPTIONS(QN_OPTION_FIELD)
} qn_verify_options;
#define QN_VERIFY_OPTIONS_INIT                                                                     \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_VERIFY_OPTIONS(QN_OPTION_STANDARD)                                  \
    }

/* Runs a quantized model with the reference kernels and with the fast ones, fused and one by one,
 * and compares every tensor. Where one differs it fails and tells the first; *out, to be freed then
 * too, has it as well. QN_E_UNSUPPORTED, with *out too: the model has no tensor that must be equal,
 * so nothing is proven. The report says how many tensors are equal bit for bit, and how far apart
 * those are that lie behind arithmetic in float. With ONNX Runtime's library it also tells how far
 * that one's results are, and which of its operators make the difference. */
QN_API QN_MUST_CHECK qn_status qn_verify_files(qn_report **out, qn_context *ctx, qn_model *model,
                                               const qn_verify_options *options);

/* How many samples and tensors the statistics have; qn_stats_report tells of each tensor. */
QN_API QN_MUST_CHECK qn_status qn_stats_brief(qn_report **out, qn_context *ctx,
                                              const qn_stats *stats);

typedef struct qn_lint_options {
    int version;
    QN_LINT_OPTIONS(QN_OPTION_FIELD)
} qn_lint_options;
#define QN_LINT_OPTIONS_INIT                                                                       \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_LINT_OPTIONS(QN_OPTION_STANDARD)                                    \
    }

/* The targets, and the chips behind them; NULL past the last. */
QN_API const char *qn_lint_target(size_t i);
/* What in a quantized model, whoever made it, would not run as integers on the target, and why. The
 * passes run first, so that what they recognize counts as one operator. *findings (may be NULL):
 * how many there are. */
QN_API QN_MUST_CHECK qn_status qn_model_lint(qn_report **out, size_t *findings, qn_context *ctx,
                                             qn_model *model, const qn_lint_options *options);

/* A model's file to be run by the runtime of its framework. */
typedef struct qn_runtime_run {
    /* As of qn_framework_name. */
    const char *framework;
    const char *model;
    const char *const *input_names;
    const qn_tensor *inputs;
    size_t n_inputs;
    const char *const *output_names;
    size_t n_outputs;
    /* Called with each output that the runtime gives; the tensor lives as long as the call. */
    void (*take)(void *taker, size_t output, const qn_tensor *tensor);
    void *taker;
} qn_runtime_run;
enum { QN_RUNTIME_VERSION = 128 };
/* Says in `version` what ran. QN_E_UNSUPPORTED: the runtime is not there, or refuses the model. A
 * status needs a message: qn_runtime_fail. */
typedef qn_status qn_runtime_fn(void *user, qn_context *ctx, char version[QN_RUNTIME_VERSION],
                                const qn_runtime_run *run);
/* Sets the message; returns `status`. */
QN_API QN_MUST_CHECK qn_status qn_runtime_fail(qn_context *ctx, qn_status status,
                                               const char *message);

typedef struct qn_convert_options {
    int version;
    QN_CONVERT_OPTIONS(QN_OPTION_FIELD)
} qn_convert_options;
#define QN_CONVERT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_CONVERT_OPTIONS(QN_OPTION_STANDARD)                                 \
    }

/* Writes the model after the passes. The report tells of the file and of what each pass did. Of a
 * model that is no ONNX the file is run with random inputs, and must give what the framework's
 * runtime gives, or else the importer's graph before the passes, to 2e-4 of the largest number. */
QN_API QN_MUST_CHECK qn_status qn_convert_file(qn_report **out, qn_context *ctx, qn_model *model,
                                               const char *path, const qn_convert_options *options);

/* The same as "<save_dir>/<name>.onnx"; a model that lies there itself is not written over. */
QN_API QN_MUST_CHECK qn_status qn_convert_model(qn_report **out, qn_context *ctx, qn_model *model,
                                                const char *save_dir,
                                                const qn_convert_options *options);

typedef struct qn_quantize_file_options {
    int version;
    QN_QUANTIZE_FILE_OPTIONS(QN_OPTION_FIELD)
} qn_quantize_file_options;
#define QN_QUANTIZE_FILE_OPTIONS_INIT                                                              \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_QUANTIZE_FILE_OPTIONS(QN_OPTION_STANDARD)                           \
    }

/* Quantizes a model that was read from a file and writes "<save_dir>/<name>_quantize.onnx", with a
 * goal anew at every step that comes nearer to it. QN_E_GOAL as of qn_model_quantize. */
QN_API QN_MUST_CHECK qn_status qn_quantize_file(qn_report **out, qn_context *ctx, qn_model *model,
                                                const qn_quantize_file_options *options);

/* The file that says bits and method of every node: {"NODE": {"bitwidth": 8, "mode": "mse"},
 * ...}. */
typedef struct qn_mix_options {
    int version;
    QN_MIX_OPTIONS(QN_OPTION_FIELD)
} qn_mix_options;
#define QN_MIX_OPTIONS_INIT                                                                        \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_MIX_OPTIONS(QN_OPTION_STANDARD)                                     \
    }
/* Writes it, and tells of the widths in it. */
QN_API QN_MUST_CHECK qn_status qn_mix_template(qn_report **out, qn_context *ctx, qn_model *model,
                                               const qn_mix_options *options);

typedef struct qn_function_options {
    int version;
    QN_FUNCTION_OPTIONS(QN_OPTION_FIELD)
} qn_function_options;
#define QN_FUNCTION_OPTIONS_INIT                                                                   \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_FUNCTION_OPTIONS(QN_OPTION_STANDARD)                                \
    }

/* Calls the function once with the model as it is, float or quantized, and tells what it
 * returned. */
QN_API QN_MUST_CHECK qn_status qn_function_run(qn_report **out, qn_context *ctx, qn_model *model,
                                               const qn_function_options *options);

/* Quantization by an infer function with several methods and numbers of iterations, each pair a
 * strategy. */
typedef struct qn_strategies_options {
    int version;
    QN_STRATEGIES_OPTIONS(QN_OPTION_FIELD)
} qn_strategies_options;
#define QN_STRATEGIES_OPTIONS_INIT                                                                 \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_STRATEGIES_OPTIONS(QN_OPTION_STANDARD)                              \
    }

/* Calls the function once with the float model and once with every strategy's. The report has them
 * in the order of their loss, |fixed - float| / |float| of what the function returned, in percent;
 * the error of the outputs decides where that says nothing. The best becomes
 * "<save_dir>/<name>_quantize.onnx", the others stand in "<save_dir>/<method>_<iteration>/". A
 * strategy that fails is a row of the report; the call fails where all do. Notes tell where each
 * begins and ends. */
QN_API QN_MUST_CHECK qn_status qn_strategies_run(qn_report **out, qn_context *ctx, qn_model *model,
                                                 const qn_strategies_options *options);

/* ---- Comparison: two versions of a network, layer by layer ----------------------------------- */

/* docs/compare.md tells what the measures are and how the files look. */
typedef struct qn_compare_options {
    int version;
    QN_COMPARE_OPTIONS(QN_OPTION_FIELD)
} qn_compare_options;
#define QN_COMPARE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_COMPARE_OPTIONS(QN_OPTION_STANDARD)                                 \
    }

/* What layers can be sorted by; NULL past the last. The first is the network's own order. */
QN_API const char *qn_compare_order(size_t i);
/* A float model and its quantized version on the same samples: of each layer the error that has
 * come together up to there, and the one that it makes itself of exact inputs; which layers stand
 * out, and what would help them. */
QN_API QN_MUST_CHECK qn_status qn_compare_models(qn_report **out, qn_context *ctx, qn_model *real,
                                                 qn_model *quantized,
                                                 const qn_compare_options *options);
/* The same for what was kept: float against quantized of quant_dir; quantized of quant_dir against
 * one of sim_dirs; one of sim_dirs against another. */
QN_API QN_MUST_CHECK qn_status qn_compare_dumps(qn_report **out, qn_context *ctx,
                                                const qn_compare_options *options);

/* ---- Run configurations: options of commands in a JSON file ---------------------------------- */

/* {"quant": {"bit-width": 8, "mean": "0 0 0", ...}, "chip": ..., ...}: objects are sections, other
 * members of the file itself are those of section "". */
typedef struct qn_config qn_config;

typedef struct qn_config_entry {
    const char *key;
    /* As they would be typed; a NULL stands between lists of a list */
    const char *const *values;
    size_t count;
    /* "file.json:3:5: quant.bit-width", for messages */
    const char *where;
} qn_config_entry;

QN_API QN_MUST_CHECK qn_status qn_config_load(qn_config **out, qn_context *ctx, const char *path);
QN_API void qn_config_free(qn_config *config);
/* The i-th section of the file; NULL past the last. */
QN_API const char *qn_config_section(const qn_config *config, size_t i);
/* The i-th entry of a section; 0 past the last. Objects, and lists of them, are no entries. */
QN_API int qn_config_entry_at(qn_config_entry *out, const qn_config *config, const char *section,
                              size_t i);
/* The i-th of those objects (that are no sections) and lists of a section; 0 past the last. Its
 * only value is JSON, behind as many lines and blanks as it has before it in the file: what
 * somebody says of a place in it holds for the file. */
QN_API int qn_config_block_at(qn_config_entry *out, const qn_config *config, const char *section,
                              size_t i);

/* ---- Options by name: for bindings, and for programs that read options from somewhere -------- */

/* The i-th table of options; NULL past the last. */
QN_API const qn_option_table *qn_option_table_at(size_t i);

/* For every struct of options qn_..._set and qn_..._get, as in
 *     qn_quantize_options_set(ctx, &options, "bits", "16")
 * Names are those of fields; one of a part may stand alone, or behind the part's: "data.samples".
 * Lists are set from "a,b,c"; "true" and "false" set flags too. What the options point to
 * afterwards belongs to the context. *out of a getter is freed with qn_text_free. PLAIN options and
 * shapes are not set by name. */
#define QN_OPTION_BY_NAME(table, type)                                                             \
    QN_API QN_MUST_CHECK qn_status type##_set(qn_context *ctx, type *options, const char *name,    \
                                              const char *text);                                   \
    QN_API QN_MUST_CHECK qn_status type##_get(char **out, qn_context *ctx, const type *options,    \
                                              const char *name);
QN_OPTION_TABLES(QN_OPTION_BY_NAME)

#ifdef __cplusplus
}
#endif

#endif
