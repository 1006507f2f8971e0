/* JSON as it is read: every message names file, line, column and the way to the item; floats
 * survive. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"

static qn_status read_text(qn_json_document **out, qn_context *ctx, const char *text)
{
    return qn_json_read(out, ctx, text, strlen(text), "f.json");
}

static qn_context *context(void)
{
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    return ctx;
}

/* ---- What does not parse --------------------------------------------------------------------- */

static void refused(void **state)
{
    static const struct {
        /* How it begins */
        const char *text, *message;
    } cases[] = {
        {"", "f.json:1:1: '[' or '{' expected near end of file"},
        {"{\n  \"a\": 1,\n  \"a\": 2}", "f.json:3:5: duplicate object key near '\"a\"'"},
        {"{\"a\": nan}", "f.json:1:9: invalid token near 'nan'"},
        {"[1, 1e999]", "f.json:1:9: real number overflow near '1e999'"},
        {"[99999999999999999999]", "f.json:1:21: too big integer near '99999999999999999999'"},
        {"[1] 2", "f.json:1:5: end of file expected near '2'"},
        {"{\"\xc3\xa4\": [}", "f.json:1:8: unexpected token near '}'"},
        {"[\"\xff\"]", "f.json:1:2: unable to decode byte 0xff"},
    };
    qn_context *ctx = context();
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        qn_json_document *d;
        assert_int_equal(read_text(&d, ctx, cases[i].text), QN_E_FORMAT);
        if (strncmp(qn_context_error(ctx), cases[i].message, strlen(cases[i].message)) != 0)
            assert_string_equal(qn_context_error(ctx), cases[i].message);
        assert_null(d);
    }
    qn_context_free(ctx);
}

static void too_deep(void **state)
{
    char text[2 * QN_JSON_DEPTH + 3];
    qn_context *ctx = context();
    qn_json_document *d;
    (void)state;
    for (int more = 0; more < 2; more++) {
        const size_t depth = QN_JSON_DEPTH + (size_t)more;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        const qn_status status = qn_json_read(&d, ctx, text, 2 * depth, "f.json");
        assert_int_equal(status, more ? QN_E_FORMAT : QN_OK);
        qn_json_document_free(d);
    }
    assert_string_equal(qn_context_error(ctx),
                        "f.json:1:65: lists and objects are nested too deep");
    qn_context_free(ctx);
}

/* ---- What does not fit ----------------------------------------------------------------------- */

static const char sample[] = "\xef\xbb\xbf{\"x\": {\"scale\" : [1, 2.5,\n\"t\\\"[\", {}], "
                             "\"conv/1\":true},\n \"n\": -7, \"big\": 1e300}";

static void places(void **state)
{
    qn_context *ctx = context();
    qn_json_document *d;
    qn_json_place x, list, item;
    size_t count;
    double real = 0;
    float single = 0;
    int64_t whole = 0;
    bool yes = false;
    (void)state;
    assert_int_equal(read_text(&d, ctx, sample), QN_OK);
    const qn_json_place root = qn_json_root(d);
    assert_int_equal(qn_json_member(&x, &root, "x"), QN_OK);
    assert_int_equal(qn_json_member(&list, &x, "scale"), QN_OK);
    assert_int_equal(qn_json_length(&count, &list), QN_OK);
    assert_int_equal(count, 4);
    item = qn_json_element(&list, 1);
    assert_int_equal(qn_json_get_double(&real, &item), QN_OK);
    assert_true(real == 2.5);
    assert_int_equal(qn_json_get_int(&whole, &item, 0, 9), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx),
                        "f.json:1:22: x.scale[1]: is a number, not a whole number");
    item = qn_json_element(&list, 3);
    assert_int_equal(qn_json_get_double(&real, &item), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx),
                        "f.json:2:9: x.scale[3]: is an object, not a number");
    assert_int_equal(qn_json_member(&item, &x, "conv/1"), QN_OK);
    assert_int_equal(qn_json_get_bool(&yes, &item), QN_OK);
    assert_true(yes);
    assert_int_equal(qn_json_length(&count, &item), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx), "f.json:2:23: x[\"conv/1\"]: is true, not a list");
    assert_int_equal(qn_json_member(&item, &x, "zero"), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx), "f.json:1:7: x: has no \"zero\"");
    assert_int_equal(qn_json_member(&item, &root, "n"), QN_OK);
    assert_int_equal(qn_json_get_int(&whole, &item, 0, 9), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx), "f.json:3:7: n: is -7: it must be from 0 to 9");
    assert_int_equal(qn_json_member(&item, &root, "big"), QN_OK);
    assert_int_equal(qn_json_get_float(&single, &item), QN_E_FORMAT);
    assert_int_equal(qn_json_only(&root, (const char *const[]){"x", "n", NULL}), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx),
                        "f.json:3:18: big: nothing of this name is known here");
    qn_json_document_free(d);
    qn_context_free(ctx);
}

/* A file whose "fat" members are left out; what is said of others names the places that they have
 * in the file. */
static void without_a_key(void **state)
{
    static const char text[] =
        "{\"a\": [{\"fat\": [[1, \"]\"],\n {\"fat\": 2}], \"b\": \"fat\"}],\n"
        " \"fat\" : 3.5, \"c\": \"x\"}";
    qn_context *ctx = context();
    qn_json_document *d = NULL;
    qn_json_place member;
    const char *b = NULL;
    int64_t number = -1;
    FILE *file = fopen("without_a_key.json", "w");
    (void)state;
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(qn_json_load_without(&d, ctx, "without_a_key.json", "fat"), QN_OK);
    remove("without_a_key.json");
    const qn_json_place root = qn_json_root(d);
    assert_true(qn_json_find(&member, &root, "a"));
    const qn_json_place first = qn_json_element(&member, 0);
    qn_json_place found;
    assert_true(qn_json_find(&found, &first, "fat"));
    assert_int_equal(qn_json_get_int(&number, &found, 0, 9), QN_OK);
    assert_int_equal(number, 0);
    assert_true(qn_json_find(&found, &first, "b"));
    assert_int_equal(qn_json_get_text(&b, &found), QN_OK);
    assert_string_equal(b, "fat");
    assert_true(qn_json_find(&found, &root, "c"));
    assert_int_equal(qn_json_get_int(&number, &found, 0, 9), QN_E_FORMAT);
    assert_string_equal(qn_context_error(ctx),
                        "without_a_key.json:3:20: c: is a text, not a whole number");
    qn_json_document_free(d);
    qn_context_free(ctx);
}

/* As a document of its own an item stands where it stood. */
static void excerpts(void **state)
{
    qn_context *ctx = context();
    qn_json_document *d = NULL;
    qn_json_place member;
    qn_arena arena;
    (void)state;
    qn_arena_init(&arena, &ctx->allocator);
    assert_int_equal(read_text(&d, ctx, "{\"\xc3\xa4\": 1,\n \"b\": [{\n}], \"c\": 2}"), QN_OK);
    const qn_json_place root = qn_json_root(d);
    assert_true(qn_json_find(&member, &root, "b"));
    assert_string_equal(qn_json_excerpt(&arena, &member), "        \n      [{\n}]");
    qn_json_document_free(d);
    qn_arena_free(&arena);
    qn_context_free(ctx);
}

static void members_in_order(void **state)
{
    qn_context *ctx = context();
    qn_json_document *d;
    qn_json_place member;
    char keys[8] = "";
    (void)state;
    assert_int_equal(read_text(&d, ctx, "{\"z\":1,\"a\":2,\"m\":3}"), QN_OK);
    const qn_json_place root = qn_json_root(d);
    for (void *i = NULL; qn_json_next(&member, &root, &i);)
        strcat(keys, member.key);
    assert_string_equal(keys, "zam");
    qn_json_document_free(d);
    qn_context_free(ctx);
}

/* ---- Numbers that come back ------------------------------------------------------------------ */

enum { NUMBERS = 4096 };

/* All magnitudes, and neighbours of powers of two and of ten. */
static float float_of(uint32_t i)
{
    uint32_t bits = i * 1048583U ^ (i << 9);
    float f;
    if (i % 4 == 0)
        return nextafterf(powf(10, (float)(i % 76) - 37), i % 8 ? 0 : 1);
    memcpy(&f, &bits, sizeof f);
    return isfinite(f) ? f : 1 / (float)(i + 1);
}

static void floats_survive(void **state)
{
    qn_context *ctx = context();
    qn_json *list = qn_json_array();
    qn_json_document *d;
    char *text;
    (void)state;
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_true(qn_json_push(list, qn_json_float(float_of(i))));
    assert_int_equal(qn_json_write(&text, ctx, list), QN_OK);
    assert_int_equal(read_text(&d, ctx, text), QN_OK);
    const qn_json_place root = qn_json_root(d);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const float wanted = float_of(i);
        const qn_json_place one = qn_json_element(&root, i);
        float back = 0;
        assert_int_equal(qn_json_get_float(&back, &one), QN_OK);
        assert_memory_equal(&back, &wanted, sizeof back);
    }
    qn_json_document_free(d);
    qn_text_free(ctx, text);
    qn_json_free(list);
    qn_context_free(ctx);
}

/* People read these files: no digit more than it takes. */
static void floats_are_short(void **state)
{
    qn_context *ctx = context();
    qn_json *list = qn_json_array();
    char *text;
    (void)state;
    assert_true(qn_json_push(list, qn_json_float(0.1F)));
    assert_true(qn_json_push(list, qn_json_float(1)));
    assert_true(qn_json_push(list, qn_json_float(0.00392156886F)));
    assert_int_equal(qn_json_write(&text, ctx, list), QN_OK);
    assert_string_equal(text, "[\n  0.1,\n  1.0,\n  0.003921569\n]\n");
    qn_text_free(ctx, text);
    qn_json_free(list);
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_key),  cmocka_unit_test(excerpts),
        cmocka_unit_test(refused),        cmocka_unit_test(too_deep),
        cmocka_unit_test(places),         cmocka_unit_test(members_in_order),
        cmocka_unit_test(floats_survive), cmocka_unit_test(floats_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
