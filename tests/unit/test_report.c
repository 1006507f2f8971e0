/* Reports as text and as JSON. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "fault.h"
#include "report/report.h"

static void fill(qn_report *report)
{
    qn_item *root = &report->root;
    qn_item_text(root, "name", "a\x1b[31mb");
    qn_item_int(root, "weight_bytes", -12);
    qn_item_real(root, "share", 0.12345, 2);
    qn_item_bool(root, "good", true);
    qn_item *table = qn_item_table(root, "rows");
    for (int i = 0; i < 2; i++) {
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "text", i ? "\xc3\xa4\xc3\xb6" : "longer");
        qn_item_int(row, "count", i ? 7 : 12345);
    }
    qn_item_table(root, "nothing");
    qn_item_int(qn_item_group(root, "inner"), "value", 3);
}

static void rendered(char **text, char **json, qn_context *ctx)
{
    qn_report *report;
    assert_int_equal(qn_report_create(&report, ctx), QN_OK);
    fill(report);
    assert_int_equal(qn_report_finish(report), QN_OK);
    assert_int_equal(qn_report_text(text, report), QN_OK);
    assert_int_equal(qn_report_json(json, report), QN_OK);
    qn_report_free(report);
}

static void both_forms(void **state)
{
    qn_context *ctx;
    char *text, *json;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    rendered(&text, &json, ctx);
    assert_string_equal(text, "name          a?[31mb\n"
                              "weight bytes  -12\n"
                              "share         0.12\n"
                              "good          yes\n"
                              "\n"
                              "rows\n"
                              "  text    count\n"
                              "  longer  12345\n"
                              "  \xc3\xa4\xc3\xb6          7\n"
                              "\n"
                              "nothing\n"
                              "  none\n"
                              "\n"
                              "inner\n"
                              "  value  3\n");
    assert_non_null(strstr(json, "\"name\": \"a\\u001B[31mb\""));
    assert_non_null(strstr(json, "\"weight_bytes\": -12"));
    assert_non_null(strstr(json, "\"share\": 0.12345"));
    assert_non_null(strstr(json, "\"good\": true"));
    assert_non_null(strstr(json, "\"nothing\": []"));
    qn_text_free(ctx, text);
    qn_text_free(ctx, json);
    qn_context_free(ctx);
}

/* Names and numbers that JSON cannot hold. */
static void not_for_json(void **state)
{
    qn_context *ctx;
    qn_report *report;
    char *text, *json;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    assert_int_equal(qn_report_create(&report, ctx), QN_OK);
    qn_item_text(&report->root, "broken", "a\xff\xc3");
    qn_item_real(&report->root, "number", NAN, 1);
    assert_int_equal(qn_report_json(&json, report), QN_OK);
    assert_non_null(strstr(json, "\"a\xef\xbf\xbd\xef\xbf\xbd\""));
    assert_non_null(strstr(json, "\"number\": null"));
    assert_int_equal(qn_report_text(&text, report), QN_OK);
    assert_non_null(strstr(text, "broken  a??\n"));
    qn_text_free(ctx, text);
    qn_text_free(ctx, json);
    qn_report_free(report);
    qn_context_free(ctx);
}

/* What a text was made of did not fit the memory. */
static void missing_text(void **state)
{
    qn_context *ctx;
    qn_report *report;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    assert_int_equal(qn_report_create(&report, ctx), QN_OK);
    qn_item_text(&report->root, "name", NULL);
    assert_int_equal(qn_report_finish(report), QN_E_NOMEM);
    qn_report_free(report);
    qn_context_free(ctx);
}

static void utf8_forms(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"a", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\xc0\x80", 0},         /* longer than needed */
        {"\xe0\x80\x80", 0},     /* the same */
        {"\xed\xa0\x80", 0},     /* half of a pair */
        {"\xf4\x90\x80\x80", 0}, /* beyond the last code */
        {"\xe2\x82", 0},         /* cut */
        {"\x80", 0},
        {"\xff", 0},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++)
        assert_int_equal(qn_utf8_length(cases[i].bytes, strlen(cases[i].bytes)), cases[i].length);
}

/* Text and JSON through an allocator that fails once. */
static qn_status attempt(fault *f)
{
    qn_context *ctx;
    qn_report *report = NULL;
    char *text = NULL, *json = NULL;
    if (fault_context(&ctx, f) != QN_OK)
        return QN_E_NOMEM;
    qn_status status = qn_report_create(&report, ctx);
    if (status == QN_OK) {
        fill(report);
        qn_item_text(&report->root, "broken", "\xff");
        status = qn_report_finish(report);
    }
    if (status == QN_OK)
        status = qn_report_text(&text, report);
    if (status == QN_OK)
        status = qn_report_json(&json, report);
    qn_text_free(ctx, text);
    qn_text_free(ctx, json);
    qn_report_free(report);
    qn_context_free(ctx);
    return status;
}

static void short_memory(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        fault f = {.until = n};
        const qn_status status = attempt(&f);
        assert_int_equal(f.live, 0);
        assert_int_equal(status, f.struck ? QN_E_NOMEM : QN_OK);
        if (!f.struck)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_forms), cmocka_unit_test(not_for_json),
                                       cmocka_unit_test(missing_text), cmocka_unit_test(utf8_forms),
                                       cmocka_unit_test(short_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
