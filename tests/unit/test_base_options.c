/* Tables of options: structs that grow, checks, options by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

static int set_up(void **state)
{
    qn_context *ctx = NULL;
    const int status = qn_context_create(&ctx, NULL) != QN_OK;
    *state = ctx;
    return status;
}

static int tear_down(void **state)
{
    qn_context_free(*state);
    return 0;
}

/* ---- A struct that grew, with a part that grew ----------------------------------------------- */

/* What the header of version 1 had. */
typedef struct old_part {
    int version;
    int a;
} old_part;
typedef struct old_whole {
    int version;
    int first;
    old_part part;
    const char *last;
} old_whole;

/* What today's has: new rows stand anywhere. */
#define PART_ROWS(ROW)                                                                             \
    ROW(REAL, fresh, 2, 2.5, .help = "new in version 2")                                           \
    ROW(INT, a, 1, 7, .help = "there from the start")
typedef struct new_part {
    int version;
    PART_ROWS(QN_OPTION_FIELD)
} new_part;
#define NEW_PART_INIT                                                                              \
    {                                                                                              \
        QN_OPTIONS_VERSION, PART_ROWS(QN_OPTION_STANDARD)                                          \
    }
#define WHOLE_ROWS(ROW)                                                                            \
    ROW(TEXTS, list, 2, NULL, .help = "new in version 2")                                          \
    ROW(INT, first, 1, 1, .help = "there from the start")                                          \
    ROW(PART(new_part), part, 1, NEW_PART_INIT, .help = "a part")                                  \
    ROW(LONG, middle, 2, 3, .help = "new in version 2")                                            \
    ROW(TEXT, last, 1, "z", .help = "there from the start")
typedef struct new_whole {
    int version;
    WHOLE_ROWS(QN_OPTION_FIELD)
} new_whole;

#define COLUMNS(kind_, type) .kind = (kind_), .size = sizeof(type), .align = _Alignof(type)
#define COLUMNS_INT COLUMNS(QN_OPTION_INT, int)
#define COLUMNS_LONG COLUMNS(QN_OPTION_LONG, int64_t)
#define COLUMNS_REAL COLUMNS(QN_OPTION_REAL, double)
#define COLUMNS_TEXT COLUMNS(QN_OPTION_TEXT, const char *)
#define COLUMNS_TEXTS                                                                              \
    .kind = QN_OPTION_TEXTS, .size = sizeof(void *) + sizeof(size_t), .align = _Alignof(void *)
#define COLUMNS_PART(type) COLUMNS(QN_OPTION_PART, type), .part = &type##_table
#define TABLE_ROW(type, field_, since_, standard_, ...)                                            \
    {.field = #field_,                                                                             \
     .since = (since_),                                                                            \
     .offset = offsetof(OWNER, field_),                                                            \
     COLUMNS_##type,                                                                               \
     __VA_ARGS__},

#define OWNER new_part
static const new_part part_standard = NEW_PART_INIT;
static const qn_option part_rows[] = {PART_ROWS(TABLE_ROW)};
static const qn_option_table new_part_table = {
    "new_part", sizeof(new_part), &part_standard, part_rows, QN_COUNT_OF(part_rows), NULL, 0};
#undef OWNER
#define OWNER new_whole
static const new_whole whole_standard = {QN_OPTIONS_VERSION, WHOLE_ROWS(QN_OPTION_STANDARD)};
static const qn_option whole_rows[] = {WHOLE_ROWS(TABLE_ROW)};
static const qn_option_table whole_table = {
    "new_whole", sizeof(new_whole), &whole_standard, whole_rows, QN_COUNT_OF(whole_rows), NULL, 0};

/* A program of the first header: what it set is read where it lies, the rest has its standards. */
static void older_structs_are_read(void **state)
{
    qn_context *ctx = *state;
    const old_whole given = {1, 11, {1, 12}, "thirteen"};
    new_whole taken;
    assert_int_equal(qn_options_take(&taken, ctx, &whole_table, &given), QN_OK);
    assert_int_equal(taken.first, 11);
    assert_int_equal(taken.part.a, 12);
    assert_string_equal(taken.last, "thirteen");
    assert_int_equal(taken.middle, 3);
    assert_int_equal(taken.n_list, 0);
    assert_true(taken.part.fresh == 2.5);
}

static void other_versions_are_refused(void **state)
{
    qn_context *ctx = *state;
    qn_plan_options taken, given = QN_PLAN_OPTIONS_INIT;
    given.version = 0;
    assert_int_equal(qn_options_take(&taken, ctx, &qn_plan_options_table, &given), QN_E_OPTION);
    assert_non_null(strstr(qn_context_error(ctx), "_INIT"));
    given.version = QN_OPTIONS_VERSION + 1;
    assert_int_equal(qn_options_take(&taken, ctx, &qn_plan_options_table, &given), QN_E_OPTION);
}

/* ---- All tables ------------------------------------------------------------------------------ */

static void check_table(qn_context *ctx, const qn_option_table *table)
{
    char taken[4096], filled[4096];
    size_t end = sizeof(int);
    assert_true(table->size <= sizeof taken);
    for (size_t i = 0; i < table->n_rows; i++) {
        const qn_option *row = &table->rows[i];
        assert_true(row->offset >= end); /* the struct has the rows in this order */
        end = row->offset + row->size;
        assert_true(row->since >= 1 && row->since <= QN_OPTIONS_VERSION);
        assert_true(row->help && row->help[0] && !strchr(row->help, '\n'));
        assert_true(row->kind != QN_OPTION_PART || row->part->size == row->size);
    }
    for (size_t i = 0; i < table->n_rules; i++) {
        qn_option_place at;
        assert_true(qn_options_find(&at, table, table->rules[i].field));
        assert_true(qn_options_find(&at, table, table->rules[i].other));
    }
    /* What compilers made of the struct is what qn_options_take computes. */
    memset(taken, 0x55, sizeof taken);
    memcpy(filled, table->standard, table->size);
    assert_int_equal(qn_options_take(taken, ctx, table, filled), QN_OK);
    for (size_t i = 0; i < table->n_rows; i++) {
        const qn_option *row = &table->rows[i];
        if (!row->part)
            assert_memory_equal(taken + row->offset, filled + row->offset, row->size);
    }
}

static void tables_are_sound(void **state)
{
    size_t count = 0;
    for (const qn_option_table *table; (table = qn_option_table_at(count)) != NULL; count++)
        check_table(*state, table);
    assert_true(count > 20);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static void wrong_values_name_the_field(void **state)
{
    qn_context *ctx = *state;
    qn_eval_options taken, given = QN_EVAL_OPTIONS_INIT;
    given.detect.iou_thres = 2;
    assert_int_equal(qn_options_take(&taken, ctx, &qn_eval_options_table, &given), QN_E_OPTION);
    assert_string_equal(qn_context_error(ctx), "iou_thres: 2 is not from 0 to 1");
    given = (qn_eval_options)QN_EVAL_OPTIONS_INIT;
    given.task = "guessing";
    assert_int_equal(qn_options_take(&taken, ctx, &qn_eval_options_table, &given), QN_E_OPTION);
    assert_int_equal(strncmp(qn_context_error(ctx), "task: 'guessing' is none of: ", 29), 0);
    given = (qn_eval_options)QN_EVAL_OPTIONS_INIT;
    given.n_inputs = 1;
    assert_int_equal(qn_options_take(&taken, ctx, &qn_eval_options_table, &given), QN_E_OPTION);
}

/* ---- By name --------------------------------------------------------------------------------- */

static void check_get(qn_context *ctx, const qn_strategies_options *o, const char *name,
                      const char *expected)
{
    char *text;
    assert_int_equal(qn_strategies_options_get(&text, ctx, o, name), QN_OK);
    assert_string_equal(text, expected);
    qn_text_free(ctx, text);
}

static void options_are_set_by_name(void **state)
{
    static const char *const rows[][2] = {
        {"bits", "16"},         {"prove", "true"},     {"percentile", "0.75"},
        {"target", "ort"},      {"methods", "kl,mse"}, {"iterations", "1,2,30"},
        {"data.samples", "12"}, {"seed", "99"},        {"quantize.keep_float", "a*,b"},
        {"detect", ""},
    };
    qn_context *ctx = *state;
    qn_strategies_options o = QN_STRATEGIES_OPTIONS_INIT;
    for (size_t i = 0; i + 1 < QN_COUNT_OF(rows); i++) {
        assert_int_equal(qn_strategies_options_set(ctx, &o, rows[i][0], rows[i][1]), QN_OK);
        check_get(ctx, &o, rows[i][0], rows[i][1]);
    }
    assert_int_equal(o.file.quantize.bits, 16);
    assert_int_equal(o.file.quantize.calibrate.data.samples, 12);
    assert_int_equal(o.n_iterations, 3);
    assert_int_equal(o.iterations[2], 30);
    assert_string_equal(o.file.quantize.keep_float[0], "a*");
}

static void wrong_names_and_texts_are_refused(void **state)
{
    static const char *const rows[][2] = {
        {"bitts", "16"}, {"bits", "12x"}, {"bits", "17"},      {"prove", "perhaps"},
        {"goal", "1"},   {"seed", "-1"},  {"percentile", "2"},
    };
    qn_context *ctx = *state;
    const qn_quantize_options untouched = QN_QUANTIZE_OPTIONS_INIT;
    qn_quantize_options o = QN_QUANTIZE_OPTIONS_INIT;
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++)
        assert_int_equal(qn_quantize_options_set(ctx, &o, rows[i][0], rows[i][1]), QN_E_OPTION);
    assert_memory_equal(&o, &untouched, sizeof o);
    assert_int_equal(qn_quantize_options_set(ctx, &o, "bitts", "16"), QN_E_OPTION);
    assert_string_equal(qn_context_error(ctx),
                        "qn_quantize_options has no option 'bitts'; did you mean bits?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_structs_are_read),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(wrong_values_name_the_field),
        cmocka_unit_test(options_are_set_by_name),
        cmocka_unit_test(wrong_names_and_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
