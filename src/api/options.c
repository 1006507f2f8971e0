/* The tables of options, made of the files in include/quench/options, and their public doors. */
#include "base/options.h"

/* ---- Columns that follow from the type ------------------------------------------------------- */

/* A pointer and a number behind it. */
#define LIST_SIZE (sizeof(void *) + sizeof(size_t))

#define COLUMNS(kind_, type) .kind = (kind_), .size = sizeof(type), .align = _Alignof(type)
#define LIST_COLUMNS(kind_) .kind = (kind_), .size = LIST_SIZE, .align = _Alignof(void *)
#define COLUMNS_FLAG COLUMNS(QN_OPTION_FLAG, int)
#define COLUMNS_INT COLUMNS(QN_OPTION_INT, int)
#define COLUMNS_LONG COLUMNS(QN_OPTION_LONG, int64_t)
#define COLUMNS_SEED COLUMNS(QN_OPTION_SEED, uint64_t)
#define COLUMNS_SIZE COLUMNS(QN_OPTION_SIZE, size_t)
#define COLUMNS_REAL COLUMNS(QN_OPTION_REAL, double)
#define COLUMNS_TEXT COLUMNS(QN_OPTION_TEXT, const char *)
#define COLUMNS_TEXTS LIST_COLUMNS(QN_OPTION_TEXTS)
#define COLUMNS_REALS LIST_COLUMNS(QN_OPTION_REALS)
#define COLUMNS_LONGS LIST_COLUMNS(QN_OPTION_LONGS)
#define COLUMNS_SHAPES LIST_COLUMNS(QN_OPTION_SHAPES)
#define COLUMNS_PLAIN(type) COLUMNS(QN_OPTION_PLAIN, type)
#define COLUMNS_PART(type) COLUMNS(QN_OPTION_PART, type), .part = &type##_table

#define ROW(type, field_, since_, standard_, ...)                                                  \
    {.field = #field_,                                                                             \
     .since = (since_),                                                                            \
     .offset = offsetof(OWNER, field_),                                                            \
     COLUMNS_##type,                                                                               \
     __VA_ARGS__},
#define RULE(relation_, field_, other_, why_) {QN_OPTION_##relation_, #field_, #other_, (why_)},
#define TEXT_OF_(name) #name
#define TEXT_OF(name) TEXT_OF_(name)

/* ---- The tables ------------------------------------------------------------------------------ */

#define OWNER qn_context_options
#define ROWS QN_CONTEXT_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_tensor_load_options
#define ROWS QN_TENSOR_LOAD_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_model_load_options
#define ROWS QN_MODEL_LOAD_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_graph_options
#define ROWS QN_GRAPH_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_edit_options
#define ROWS QN_EDIT_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_save_options
#define ROWS QN_SAVE_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_inspect_options
#define ROWS QN_INSPECT_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_plan_options
#define ROWS QN_PLAN_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_data_options
#define ROWS QN_DATA_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_calibrate_options
#define ROWS QN_CALIBRATE_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_accuracy_budget
#define ROWS QN_ACCURACY_BUDGET
#include "api/option_table_inc.h"

#define OWNER qn_quantize_options
#define ROWS QN_QUANTIZE_OPTIONS
#define RULES QN_QUANTIZE_RULES
#include "api/option_table_inc.h"

#define OWNER qn_function
#define ROWS QN_FUNCTION
#include "api/option_table_inc.h"

#define OWNER qn_infer_options
#define ROWS QN_INFER_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_detect_options
#define ROWS QN_DETECT_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_eval_options
#define ROWS QN_EVAL_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_bench_options
#define ROWS QN_BENCH_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_verify_options
#define ROWS QN_VERIFY_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_lint_options
#define ROWS QN_LINT_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_convert_options
#define ROWS QN_CONVERT_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_quantize_file_options
#define ROWS QN_QUANTIZE_FILE_OPTIONS
#define RULES QN_QUANTIZE_FILE_RULES
#include "api/option_table_inc.h"

#define OWNER qn_mix_options
#define ROWS QN_MIX_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_function_options
#define ROWS QN_FUNCTION_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_strategies_options
#define ROWS QN_STRATEGIES_OPTIONS
#define RULES QN_STRATEGIES_RULES
#include "api/option_table_inc.h"

#define OWNER qn_compare_options
#define ROWS QN_COMPARE_OPTIONS
#include "api/option_table_inc.h"

#define OWNER qn_train_options
#define ROWS QN_TRAIN_OPTIONS
#include "api/option_table_inc.h"

/* ---- Doors ----------------------------------------------------------------------------------- */

const qn_option_table *qn_option_table_at(size_t i)
{
#define ADDRESS(rows, type) &type##_table,
    static const qn_option_table *const tables[] = {QN_OPTION_TABLES(ADDRESS)};
    return i < QN_COUNT_OF(tables) ? tables[i] : NULL;
}

#define BY_NAME(rows, type)                                                                        \
    qn_status type##_set(qn_context *ctx, type *options, const char *name, const char *text)       \
    {                                                                                              \
        return qn_options_set(ctx, &type##_table, options, name, text);                            \
    }                                                                                              \
    qn_status type##_get(char **out, qn_context *ctx, const type *options, const char *name)       \
    {                                                                                              \
        return qn_options_get(out, ctx, &type##_table, options, name);                             \
    }
QN_OPTION_TABLES(BY_NAME)
