/* quench: how options are declared.
 *
 * Every struct of options is one table, a file of options/ named after it: a row for each option.
 * The struct, its _INIT, its checks, qn_..._set and qn_..._get, the words of the command and of run
 * configurations and the parameters of bindings all come from that row.
 *
 *     ROW(TYPE, field, SINCE, STANDARD, .help = "one line", ...)
 *
 *     TYPE      FLAG (int), INT, LONG (int64_t), SEED (uint64_t), SIZE (size_t), REAL (double),
 *               TEXT; TEXTS, REALS, LONGS and SHAPES: a pointer `field` and a number `n_field`;
 *               PART(struct): options inside options; PLAIN(type): what only code can give
 *     SINCE     the QN_OPTIONS_VERSION that brought it: new rows may stand anywhere
 *     STANDARD  the value that _INIT gives; checks pass it over
 *     .help     one line, for people who type it
 *     .least .most          range of numbers
 *     .word .words .known   texts allowed: the i-th; more of them, with NULL behind; whether one is
 *     .open                 others are allowed too
 *     .name .also .shorts   how the command calls it (--name, -short); none: not at all
 *     .value                what the command calls its value
 *     .several              the command takes several values behind one name
 *     .result               the key under which results tell it: members of scale files, metadata
 *                           "quench.KEY" of models; none: they do not
 *
 * What several structs have in common stands once, in options/shared.def, and their tables take the
 * row from there.
 *
 * A second list of the same file, QN_..._RULES, has a row RULE(RELATION, field, other, "why") for
 * options that do not go together (qn_option_relation). */
#ifndef QUENCH_OPTIONS_H
#define QUENCH_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* A struct of options begins with the version of the header that its program was compiled with, so
 * that structs can grow: the library computes from the tables where the fields lay then, and those
 * that came later have their standards. */
#define QN_OPTIONS_VERSION 1

/* The rows as fields of a struct, and as its initializer. */
#define QN_OPTION_FIELD(type, field, since, standard, ...) QN_FIELD_##type(field)
#define QN_FIELD_FLAG(field) int field;
#define QN_FIELD_INT(field) int field;
#define QN_FIELD_LONG(field) int64_t field;
#define QN_FIELD_SEED(field) uint64_t field;
#define QN_FIELD_SIZE(field) size_t field;
#define QN_FIELD_REAL(field) double field;
#define QN_FIELD_TEXT(field) const char *field;
#define QN_FIELD_TEXTS(field)                                                                      \
    const char *const *field;                                                                      \
    size_t n_##field;
#define QN_FIELD_REALS(field)                                                                      \
    const double *field;                                                                           \
    size_t n_##field;
#define QN_FIELD_LONGS(field)                                                                      \
    const int64_t *field;                                                                          \
    size_t n_##field;
#define QN_FIELD_SHAPES(field)                                                                     \
    const struct qn_input_shape *field;                                                            \
    size_t n_##field;
#define QN_FIELD_PLAIN(type) type QN_FIELD_NAME
#define QN_FIELD_PART(type) type QN_FIELD_NAME
#define QN_FIELD_NAME(field) field;

#define QN_OPTION_STANDARD(type, field, since, standard, ...) QN_STANDARD_##type(standard),
#define QN_STANDARD_FLAG(standard) standard
#define QN_STANDARD_INT(standard) standard
#define QN_STANDARD_LONG(standard) standard
#define QN_STANDARD_SEED(standard) standard
#define QN_STANDARD_SIZE(standard) standard
#define QN_STANDARD_REAL(standard) standard
#define QN_STANDARD_TEXT(standard) standard
#define QN_STANDARD_TEXTS(standard) standard, 0
#define QN_STANDARD_REALS(standard) standard, 0
#define QN_STANDARD_LONGS(standard) standard, 0
#define QN_STANDARD_SHAPES(standard) standard, 0
#define QN_STANDARD_PLAIN(type) QN_STANDARD_VALUE
#define QN_STANDARD_PART(type) QN_STANDARD_VALUE
#define QN_STANDARD_VALUE(...) __VA_ARGS__

/* ---- The rows as data ------------------------------------------------------------------------ */

typedef enum qn_option_kind {
    QN_OPTION_FLAG,
    QN_OPTION_INT,
    QN_OPTION_LONG,
    QN_OPTION_SEED,
    QN_OPTION_SIZE,
    QN_OPTION_REAL,
    QN_OPTION_TEXT,
    QN_OPTION_TEXTS,
    QN_OPTION_REALS,
    QN_OPTION_LONGS,
    QN_OPTION_SHAPES,
    QN_OPTION_PLAIN,
    QN_OPTION_PART
} qn_option_kind;

/* A row of a table. */
typedef struct qn_option {
    const char *field;
    qn_option_kind kind;
    int since;
    /* Of the field, in this version */
    size_t offset, size, align;
    /* The table of a PART */
    const struct qn_option_table *part;
    const char *help;
    /* Both 0: any number */
    double least, most;
    const char *const *words;
    const char *(*word)(size_t i);
    int (*known)(const char *text);
    int open, several;
    const char *name, *also, *shorts, *value;
    const char *result;
} qn_option;

/* EXCLUDES: both together are an error. WITHOUT: the option has no effect beside the other one, and
 * NEEDS: it has none without it; that is for whoever reads options from people to say. */
typedef enum qn_option_relation {
    QN_OPTION_EXCLUDES,
    QN_OPTION_WITHOUT,
    QN_OPTION_NEEDS
} qn_option_relation;

/* Two options of one struct, or of its parts, and why they do not go together. */
typedef struct qn_option_rule {
    qn_option_relation relation;
    const char *field, *other, *why;
} qn_option_rule;

typedef struct qn_option_table {
    /* "qn_quantize_options" */
    const char *name;
    size_t size;
    /* A struct of this version that has the standards */
    const void *standard;
    const qn_option *rows;
    size_t n_rows;
    const qn_option_rule *rules;
    size_t n_rules;
} qn_option_table;

/* All structs of options: macros of their tables and their types. */
#define QN_OPTION_TABLES(TABLE)                                                                    \
    TABLE(QN_CONTEXT_OPTIONS, qn_context_options)                                                  \
    TABLE(QN_TENSOR_LOAD_OPTIONS, qn_tensor_load_options)                                          \
    TABLE(QN_MODEL_LOAD_OPTIONS, qn_model_load_options)                                            \
    TABLE(QN_GRAPH_OPTIONS, qn_graph_options)                                                      \
    TABLE(QN_EDIT_OPTIONS, qn_edit_options)                                                        \
    TABLE(QN_SAVE_OPTIONS, qn_save_options)                                                        \
    TABLE(QN_INSPECT_OPTIONS, qn_inspect_options)                                                  \
    TABLE(QN_PLAN_OPTIONS, qn_plan_options)                                                        \
    TABLE(QN_DATA_OPTIONS, qn_data_options)                                                        \
    TABLE(QN_CALIBRATE_OPTIONS, qn_calibrate_options)                                              \
    TABLE(QN_ACCURACY_BUDGET, qn_accuracy_budget)                                                  \
    TABLE(QN_QUANTIZE_OPTIONS, qn_quantize_options)                                                \
    TABLE(QN_FUNCTION, qn_function)                                                                \
    TABLE(QN_INFER_OPTIONS, qn_infer_options)                                                      \
    TABLE(QN_DETECT_OPTIONS, qn_detect_options)                                                    \
    TABLE(QN_EVAL_OPTIONS, qn_eval_options)                                                        \
    TABLE(QN_BENCH_OPTIONS, qn_bench_options)                                                      \
    TABLE(QN_VERIFY_OPTIONS, qn_verify_options)                                                    \
    TABLE(QN_LINT_OPTIONS, qn_lint_options)                                                        \
    TABLE(QN_CONVERT_OPTIONS, qn_convert_options)                                                  \
    TABLE(QN_QUANTIZE_FILE_OPTIONS, qn_quantize_file_options)                                      \
    TABLE(QN_MIX_OPTIONS, qn_mix_options)                                                          \
    TABLE(QN_FUNCTION_OPTIONS, qn_function_options)                                                \
    TABLE(QN_STRATEGIES_OPTIONS, qn_strategies_options)                                            \
    TABLE(QN_COMPARE_OPTIONS, qn_compare_options)                                                  \
    TABLE(QN_TRAIN_OPTIONS, qn_train_options)

#endif
