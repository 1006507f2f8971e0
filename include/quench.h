/* quench: floating-point neural networks in, integer ones out, and an engine that runs both.
 *
 * The shortest use:
 *
 *     qn_context *ctx = NULL;  qn_model *model = NULL;
 *     qn_plan *plan = NULL;    qn_session *session = NULL;
 *     if (qn_context_create(&ctx, NULL) || qn_model_load(&model, ctx, "model.onnx") ||
 *         qn_plan_create(&plan, ctx, model, NULL) || qn_session_create(&session, ctx, plan) ||
 *         qn_session_run(session, inputs, n_inputs))
 *         fprintf(stderr, "%s\n", qn_context_error(ctx));
 *     else
 *         use(qn_session_output(session, 0));
 *
 * Rules that hold everywhere:
 * - A function that can fail returns qn_status; the one-line message is qn_context_error(ctx).
 * - `T **out` hands out an object that the caller frees with qn_t_free (NULL is allowed);
 *   a returned pointer is borrowed and lives as long as the object it came from.
 * - Options structs may be NULL (all defaults); set them up with their _INIT macro.
 * - A context serves one thread at a time. A plan is immutable and may be shared by any number of
 *   threads, each with a context and a session of its own. A context outlives what was made with
 *   it. */
#ifndef QUENCH_H
#define QUENCH_H

#include <stddef.h>
#include <stdint.h>

#include "quench/options.h"
#include "quench/options/context.def"
#include "quench/options/edit.def"
#include "quench/options/graph.def"
#include "quench/options/inspect.def"
#include "quench/options/model_load.def"
#include "quench/options/plan.def"
#include "quench/options/save.def"
#include "quench/options/shared.def"
#include "quench/options/tensor_load.def"

#ifdef __cplusplus
extern "C" {
#endif

#define QN_VERSION_MAJOR 0
#define QN_VERSION_MINOR 1
#define QN_VERSION_PATCH 0

#if defined(_WIN32)
#define QN_API
#elif defined(__GNUC__)
#define QN_API __attribute__((visibility("default")))
#else
#define QN_API
#endif
#if defined(__GNUC__)
#define QN_MUST_CHECK __attribute__((warn_unused_result))
#define QN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define QN_MUST_CHECK
#define QN_PRINTF(fmt, args)
#endif

/* "0.1.0"; the version of the library that runs, not of this header. */
QN_API const char *qn_version(void);

/* ---- Status -------------------------------------------------------------------------------- */

typedef enum qn_status {
    QN_OK = 0,
    /* The allocator returned NULL */
    QN_E_NOMEM,
    /* A file could not be opened, read, mapped or written */
    QN_E_IO,
    /* A file or a graph contradicts its own format */
    QN_E_FORMAT,
    /* An argument, a shape or a type does not fit */
    QN_E_INVALID,
    /* Well formed, but this build has no answer to it */
    QN_E_UNSUPPORTED,
    /* qn_context_cancel was called */
    QN_E_CANCELLED,
    /* Done, but an accuracy goal was missed */
    QN_E_GOAL,
    /* An option means nothing, does not fit or contradicts another */
    QN_E_OPTION
} qn_status;

QN_API const char *qn_status_name(qn_status status);

/* ---- Context: messages, progress, cancellation, threads, memory ------------------------------ */

typedef struct qn_context qn_context;

/* A note is what a user must know though nothing is wrong, such as that an option has no effect. */
typedef enum qn_log_level {
    QN_LOG_ERROR,
    QN_LOG_NOTE,
    QN_LOG_WARN,
    QN_LOG_INFO,
    QN_LOG_DEBUG
} qn_log_level;

typedef void qn_log_fn(void *user, qn_log_level level, const char *line);
/* done of total units of `what`; total 0 where it is not known. */
typedef void qn_progress_fn(void *user, const char *what, int64_t done, int64_t total);

/* All memory of the library comes from here. `resize` follows realloc, with the old size given;
 * `release` takes NULL. Calls may come from several threads. */
typedef struct qn_allocator {
    void *user;
    void *(*allocate)(void *user, size_t size);
    void *(*resize)(void *user, void *block, size_t old_size, size_t new_size);
    void (*release)(void *user, void *block);
} qn_allocator;

typedef struct qn_context_options {
    int version;
    QN_CONTEXT_OPTIONS(QN_OPTION_FIELD)
} qn_context_options;
#define QN_CONTEXT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_CONTEXT_OPTIONS(QN_OPTION_STANDARD)                                 \
    }

QN_API QN_MUST_CHECK qn_status qn_context_create(qn_context **out,
                                                 const qn_context_options *options);
QN_API void qn_context_free(qn_context *ctx);
/* The message of the last failure, "" if there was none. Never NULL; `ctx` may be: where
 * qn_context_create failed. */
QN_API const char *qn_context_error(const qn_context *ctx);
/* Makes the call in progress return QN_E_CANCELLED soon, and every later one with this context too
 * until qn_context_resume: a request that comes between two calls is not lost. Safe from any thread
 * and from signals. */
QN_API void qn_context_cancel(qn_context *ctx);
/* Takes the request back, so that the context and all that was made with it can be used again;
 * returns whether there was one. For the thread that the context serves, between its calls; a
 * request that comes later counts. A session whose run was cancelled can run again; its outputs are
 * undefined until then. */
QN_API int qn_context_resume(qn_context *ctx);

/* ---- Tensors --------------------------------------------------------------------------------- */

#define QN_MAX_RANK 16

/* ONNX's numbers. Types of less than a byte take one byte an element in memory. */
typedef enum qn_dtype {
    QN_UNDEFINED = 0,
    QN_FLOAT32 = 1,
    QN_UINT8 = 2,
    QN_INT8 = 3,
    QN_UINT16 = 4,
    QN_INT16 = 5,
    QN_INT32 = 6,
    QN_INT64 = 7,
    /* Elements are qn_string */
    QN_STRING = 8,
    /* One byte, 0 or 1 */
    QN_BOOL = 9,
    QN_FLOAT16 = 10,
    QN_FLOAT64 = 11,
    QN_UINT32 = 12,
    QN_UINT64 = 13,
    QN_COMPLEX64 = 14,
    QN_COMPLEX128 = 15,
    QN_BFLOAT16 = 16,
    QN_FLOAT8E4M3FN = 17,
    QN_FLOAT8E4M3FNUZ = 18,
    QN_FLOAT8E5M2 = 19,
    QN_FLOAT8E5M2FNUZ = 20,
    QN_UINT4 = 21,
    QN_INT4 = 22,
    QN_FLOAT4E2M1 = 23,
    QN_FLOAT8E8M0 = 24,
    QN_UINT2 = 25,
    QN_INT2 = 26,
    QN_FLOAT6E2M3 = 27,
    QN_FLOAT6E3M2 = 28,
    /* Data is a qn_sequence; rank 0 */
    QN_SEQUENCE = 29,
    /* An optional value that is absent; no data */
    QN_NONE = 30,
    QN_DTYPE_COUNT
} qn_dtype;

typedef struct qn_string {
    /* Not terminated */
    const char *text;
    size_t length;
} qn_string;

/* Row-major. `data` belongs to whoever made the tensor. */
typedef struct qn_tensor {
    qn_dtype dtype;
    int32_t rank;
    int64_t dims[QN_MAX_RANK];
    void *data;
} qn_tensor;

typedef struct qn_sequence {
    int64_t count;
    qn_tensor *items;
} qn_sequence;

/* "float32", "int8", ...; "?" for a number that is none. */
QN_API const char *qn_dtype_name(qn_dtype dtype);
/* Bytes of one element in memory; 0 for a type without a fixed size. */
QN_API size_t qn_dtype_size(qn_dtype dtype);
/* Product of the dims: 1 for a scalar. */
QN_API int64_t qn_tensor_count(const qn_tensor *tensor);

/* Files: .npy, an array of a .npz, or, with any other ending, the raw bytes of a known type. A path
 * can name the array itself: "file.npz:array". */
typedef struct qn_tensor_load_options {
    int version;
    QN_TENSOR_LOAD_OPTIONS(QN_OPTION_FIELD)
} qn_tensor_load_options;
#define QN_TENSOR_LOAD_OPTIONS_INIT                                                                \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_TENSOR_LOAD_OPTIONS(QN_OPTION_STANDARD)                             \
    }

/* The data may lie in the mapped file: it is for reading only. */
QN_API QN_MUST_CHECK qn_status qn_tensor_load(qn_tensor **out, qn_context *ctx, const char *path,
                                              const qn_tensor_load_options *options);
/* Only for what qn_tensor_load gave. */
QN_API void qn_tensor_free(qn_tensor *tensor);
/* Writes a .npy file; types that numpy has no word for become the next wider one that it has. */
QN_API QN_MUST_CHECK qn_status qn_tensor_save(qn_context *ctx, const qn_tensor *tensor,
                                              const char *path);

/* ---- Reports: what a call found out, as text for people, as JSON, or as Markdown ------------- */

typedef struct qn_report qn_report;

QN_API void qn_report_free(qn_report *report);
/* These hand out a text that is freed with qn_text_free. */
QN_API QN_MUST_CHECK qn_status qn_report_text(char **out, const qn_report *report);
QN_API QN_MUST_CHECK qn_status qn_report_json(char **out, const qn_report *report);
QN_API QN_MUST_CHECK qn_status qn_report_markdown(char **out, const qn_report *report);
QN_API void qn_text_free(qn_context *ctx, char *text);

/* ---- Model ----------------------------------------------------------------------------------- */

typedef struct qn_model qn_model;

/* The frameworks that models come from ("onnx", ...), read or not; NULL past the last. */
QN_API const char *qn_framework_name(size_t i);
/* 1 where models of that framework can be read. */
QN_API int qn_framework_is_read(const char *name);

typedef struct qn_input_shape {
    const char *name;
    int32_t rank;
    /* -1: as the model has it */
    int64_t dims[QN_MAX_RANK];
} qn_input_shape;

/* What a file may not say of itself. */
typedef struct qn_model_load_options {
    int version;
    QN_MODEL_LOAD_OPTIONS(QN_OPTION_FIELD)
} qn_model_load_options;
#define QN_MODEL_LOAD_OPTIONS_INIT                                                                 \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_MODEL_LOAD_OPTIONS(QN_OPTION_STANDARD)                              \
    }

/* Reads a model from a file or folder. Tensors stay in the mapped file. Models of a framework that
 * cannot be read yet fail with QN_E_UNSUPPORTED. */
QN_API QN_MUST_CHECK qn_status qn_model_load(qn_model **out, qn_context *ctx, const char *path);
/* options NULL: as qn_model_load. */
QN_API QN_MUST_CHECK qn_status qn_model_load_with(qn_model **out, qn_context *ctx, const char *path,
                                                  const qn_model_load_options *options);
QN_API void qn_model_free(qn_model *model);

QN_API size_t qn_model_input_count(const qn_model *model);
QN_API size_t qn_model_output_count(const qn_model *model);
QN_API const char *qn_model_input_name(const qn_model *model, size_t i);
QN_API const char *qn_model_output_name(const qn_model *model, size_t i);

/* What a model says of an input or output. */
typedef struct qn_value_info {
    const char *name;
    /* QN_UNDEFINED: not known, or no tensor */
    qn_dtype dtype;
    /* -1: not known */
    int32_t rank;
    /* -1: open */
    int64_t dims[QN_MAX_RANK];
    /* The model's names of its dimensions, or NULL */
    const char *symbols[QN_MAX_RANK];
} qn_value_info;

/* i must be below the count. */
QN_API void qn_model_input_info(qn_value_info *out, const qn_model *model, size_t i);
QN_API void qn_model_output_info(qn_value_info *out, const qn_model *model, size_t i);
/* A model quantized for a chip gives integers in float tensors, unless real_outputs of
 * qn_quantize_options was set: what output i is to be multiplied with to be the real number; 1
 * where it is that already. */
QN_API double qn_model_output_scale(const qn_model *model, size_t i);

/* The passes that graphs go through, in their order; NULL past the last. */
QN_API const char *qn_pass_name(size_t i);
/* 1 where qn_graph_options.skip accepts the text: a pass's name, an older name of one, or "all". */
QN_API int qn_pass_is_known(const char *text);

/* The backends of this build, the fastest first; NULL past the last. */
QN_API const char *qn_backend_name(size_t i);

/* What is done to a model's graph before it is planned, shown or written. */
typedef struct qn_graph_options {
    int version;
    QN_GRAPH_OPTIONS(QN_OPTION_FIELD)
} qn_graph_options;
#define QN_GRAPH_OPTIONS_INIT                                                                      \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_GRAPH_OPTIONS(QN_OPTION_STANDARD)                                   \
    }

/* A model with the shapes bound and the passes done; `model` stays as it is. */
QN_API QN_MUST_CHECK qn_status qn_model_optimize(qn_model **out, qn_context *ctx, qn_model *model,
                                                 const qn_graph_options *options);

/* What is changed in a model because somebody wants another one; the passes keep what it computes,
 * this does not. */
typedef struct qn_edit_options {
    int version;
    QN_EDIT_OPTIONS(QN_OPTION_FIELD)
} qn_edit_options;
#define QN_EDIT_OPTIONS_INIT                                                                       \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_EDIT_OPTIONS(QN_OPTION_STANDARD)                                    \
    }

/* A changed copy; `model` stays as it is. */
QN_API QN_MUST_CHECK qn_status qn_model_edit(qn_model **out, qn_context *ctx, qn_model *model,
                                             const qn_edit_options *options);

typedef struct qn_save_options {
    int version;
    QN_SAVE_OPTIONS(QN_OPTION_FIELD)
} qn_save_options;
#define QN_SAVE_OPTIONS_INIT                                                                       \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_SAVE_OPTIONS(QN_OPTION_STANDARD)                                    \
    }

/* The forms of quantized files ("qdq", "qoperator", "fake"); NULL past the last. */
QN_API const char *qn_form_name(size_t i);

/* Writes ONNX, under a temporary name first: the file appears complete or not at all. */
QN_API QN_MUST_CHECK qn_status qn_model_save(qn_context *ctx, qn_model *model, const char *path,
                                             const qn_save_options *options);

typedef struct qn_inspect_options {
    int version;
    QN_INSPECT_OPTIONS(QN_OPTION_FIELD)
} qn_inspect_options;
#define QN_INSPECT_OPTIONS_INIT                                                                    \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_INSPECT_OPTIONS(QN_OPTION_STANDARD)                                 \
    }

/* Inputs, outputs, operators, sizes, multiply-accumulates, and what each pass does to the graph. */
QN_API QN_MUST_CHECK qn_status qn_model_inspect(qn_report **out, qn_context *ctx, qn_model *model,
                                                const qn_inspect_options *options);

/* ---- Plan: a model made ready for one set of input shapes ------------------------------------ */

typedef struct qn_plan qn_plan;

typedef struct qn_plan_options {
    int version;
    QN_PLAN_OPTIONS(QN_OPTION_FIELD)
} qn_plan_options;
#define QN_PLAN_OPTIONS_INIT                                                                       \
    {                                                                                              \
        QN_OPTIONS_VERSION, QN_PLAN_OPTIONS(QN_OPTION_STANDARD)                                    \
    }

/* The plan keeps what it needs of the model, which may be freed before it. Where a model with open
 * dimensions makes no sense at size 1 the plan is only begun: each session finishes it at its first
 * run, for the shapes of the inputs given there. Bind the shapes to have the work done here. */
QN_API QN_MUST_CHECK qn_status qn_plan_create(qn_plan **out, qn_context *ctx, qn_model *model,
                                              const qn_plan_options *options);
QN_API void qn_plan_free(qn_plan *plan);

/* Type and dims of an input or output as planned. Where only a run can tell them the rank is -1.
 * The data is NULL. */
QN_API void qn_plan_input(qn_tensor *out, const qn_plan *plan, size_t i);
QN_API void qn_plan_output(qn_tensor *out, const qn_plan *plan, size_t i);

/* ---- Session: one caller's buffers for a plan ------------------------------------------------ */

typedef struct qn_session qn_session;

/* A session keeps its plan, which may be freed before it; the plan's context must outlive both. */
QN_API QN_MUST_CHECK qn_status qn_session_create(qn_session **out, qn_context *ctx, qn_plan *plan);
QN_API void qn_session_free(qn_session *session);
/* Runs with inputs in the order of the model's. Their data is read in place and not kept. Inputs of
 * other shapes than the plan's get a plan of their own, made at that moment; the session keeps the
 * last few of them. */
QN_API QN_MUST_CHECK qn_status qn_session_run(qn_session *session, const qn_tensor *inputs,
                                              size_t n_inputs);
/* Output i of the last run; valid until the next one. */
QN_API const qn_tensor *qn_session_output(const qn_session *session, size_t i);

/* ---- What this library is made of ------------------------------------------------------------ */

/* The operators that this library knows; its passes; its version, backends and what it sees of the
 * machine. */
QN_API QN_MUST_CHECK qn_status qn_ops_report(qn_report **out, qn_context *ctx);
/* The operators that models of a framework (qn_framework_name) may have. */
QN_API QN_MUST_CHECK qn_status qn_framework_ops_report(qn_report **out, qn_context *ctx,
                                                       const char *framework);
QN_API QN_MUST_CHECK qn_status qn_passes_report(qn_report **out, qn_context *ctx);
QN_API QN_MUST_CHECK qn_status qn_build_report(qn_report **out, qn_context *ctx);

/* How far the name is from what somebody meant by the word: less is nearer, what the word
 * abbreviates ("trt" for "tensorrt") is nearest, and SIZE_MAX is a name of which more than a third
 * is other letters. */
QN_API size_t qn_word_distance(const char *word, const char *name);

#ifdef __cplusplus
}
#endif

#include "quench/quantize.h" /* data, calibration, quantization */

#include "quench/jobs.h" /* whole jobs, as the command does them; infer functions */

#endif
