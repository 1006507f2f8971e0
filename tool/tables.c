/* The library's tables of options as groups of the command line. */
#include "cli.h"

/* A row of a table of include/quench/options, over the struct CLI_OWNER. */
#define CLI_ROW(type_, field_, since_, standard_, ...)                                             \
    {.field = #field_,                                                                             \
     .library = true,                                                                              \
     .type = CLI_TYPE_##type_,                                                                     \
     .offset = offsetof(CLI_OWNER, field_),                                                        \
     .standard = #standard_,                                                                       \
     __VA_ARGS__},
#define CLI_TYPE_FLAG CLI_FLAG
#define CLI_TYPE_INT CLI_INT32
#define CLI_TYPE_LONG CLI_INT
#define CLI_TYPE_SEED CLI_INT
#define CLI_TYPE_SIZE CLI_INT
#define CLI_TYPE_REAL CLI_REAL
#define CLI_TYPE_TEXT CLI_TEXT
#define CLI_TYPE_TEXTS CLI_LIST
#define CLI_TYPE_REALS CLI_REALS
#define CLI_TYPE_LONGS CLI_LONGS
#define CLI_TYPE_SHAPES CLI_SHAPES
#define CLI_TYPE_PLAIN(type) CLI_FLAG
#define CLI_TYPE_PART(type) CLI_FLAG
#define CLI_RULE(relation_, field_, other_, why_) {QN_OPTION_##relation_, #field_, #other_, (why_)},
#define NO_RULES(RULE)

/* A group over CLI_OWNER. A row behind the rules makes room where there are none. */
#define TABLE(group, heading, ROWS, RULES)                                                         \
    static const CLI_OWNER group##_standard = {QN_OPTIONS_VERSION, ROWS(QN_OPTION_STANDARD)};      \
    static const cli_option group##_rows[] = {ROWS(CLI_ROW)};                                      \
    static const qn_option_rule group##_rules[] = {                                                \
        RULES(CLI_RULE){QN_OPTION_EXCLUDES, NULL, NULL, NULL}};                                    \
    const cli_group group = {.title = (heading),                                                   \
                             .options = group##_rows,                                              \
                             .count = sizeof group##_rows / sizeof *group##_rows,                  \
                             .standard = &group##_standard,                                        \
                             .size = sizeof group##_standard,                                      \
                             .rules = group##_rules,                                               \
                             .n_rules = sizeof group##_rules / sizeof *group##_rules - 1};

#define CLI_OWNER qn_model_load_options
TABLE(cli_origin_group, "for models that are no ONNX", QN_MODEL_LOAD_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_graph_options
TABLE(cli_graph_group, "for the graph", QN_GRAPH_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_plan_options
TABLE(cli_engine_group, "for the engine", QN_PLAN_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_data_options
TABLE(cli_data_group, "for the data", QN_DATA_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_detect_options
TABLE(cli_detect_group, "for detection", QN_DETECT_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_calibrate_options
TABLE(cli_calibrate_group, "for the calibration", QN_CALIBRATE_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_edit_options
TABLE(cli_edit_group, "for inputs, outputs and tables", QN_EDIT_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_quantize_options
TABLE(cli_quantize_group, "of quant", QN_QUANTIZE_OPTIONS, QN_QUANTIZE_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_quantize_file_options
TABLE(cli_quantize_file_group, "of quant", QN_QUANTIZE_FILE_OPTIONS, QN_QUANTIZE_FILE_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_accuracy_budget
TABLE(cli_accuracy_budget_group, "of quant", QN_ACCURACY_BUDGET, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_strategies_options
TABLE(cli_strategies_group, "for the run", QN_STRATEGIES_OPTIONS, QN_STRATEGIES_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_function
TABLE(cli_function_group, "for the run", QN_FUNCTION, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_mix_options
TABLE(cli_mix_group, "for mixed widths", QN_MIX_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_infer_options
TABLE(cli_infer_group, "of infer", QN_INFER_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_bench_options
TABLE(cli_bench_group, "of bench", QN_BENCH_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_train_options
TABLE(cli_train_group, "of train", QN_TRAIN_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_verify_options
TABLE(cli_verify_group, "of verify", QN_VERIFY_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_eval_options
TABLE(cli_eval_group, "of eval", QN_EVAL_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_lint_options
TABLE(cli_lint_group, "of lint", QN_LINT_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_inspect_options
TABLE(cli_inspect_group, "of inspect", QN_INSPECT_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_convert_options
TABLE(cli_convert_group, "of convert", QN_CONVERT_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_save_options
TABLE(cli_save_group, "of convert", QN_SAVE_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_compare_options
TABLE(cli_compare_group, "of compare", QN_COMPARE_OPTIONS, NO_RULES)
#undef CLI_OWNER

#define CLI_OWNER qn_calibrate_options
#define FEED_ROWS(ROW) QN_INPUT_ROW(ROW, "i") QN_SEED_ROW(ROW)
static const cli_option feed_rows[] = {FEED_ROWS(CLI_ROW)};
const cli_group cli_feed_group = CLI_GROUP("for the inputs", feed_rows);
#undef CLI_OWNER
