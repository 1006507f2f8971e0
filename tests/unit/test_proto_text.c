/* The text format: what it accepts, what it writes, how it complains. */
#include "proto_test.h"

#include <locale.h>

#include "base/number.h"

static qn_status parse(qn_proto_tree *tree, qn_context *ctx, const char *text)
{
    qn_proto_tree_init(tree, ctx, &all);
    return qn_proto_parse_text(tree, text, strlen(text));
}

static void test_forms(void **state)
{
    (void)state;
    qn_context *ctx = context_new();
    qn_proto_tree tree;
    assert_int_equal(parse(&tree, ctx,
                           "# a comment\n"
                           "int32: -0x1f, int64: 0777; uint64: 18446744073709551615\n"
                           "bool: true enum: GREEN float: 1.5f double: -1e-3\n"
                           "string: 'a\\n\\x41' # between pieces\n  \"\\101\\u00e9\"\n"
                           "r_int32: [1, 2] r_int32: 3 r_int32: []\n"
                           "r_enum: [ODD, 1, RED] r_float: [inf, -inf, nan, 7]\n"
                           "child < r_child: {} r_child [{int32: 1}, <int32: 2>] >"),
                     QN_OK);
    const qn_proto_message *root = &tree.root;
    assert_int_equal(qn_proto_int(root, 1, 0), -31);
    assert_int_equal(qn_proto_int(root, 2, 0), 511);
    assert_int_equal(qn_proto_int(root, 4, 0), -1);
    assert_int_equal(qn_proto_int(root, 7, 0), 1);
    assert_int_equal(qn_proto_int(root, 8, 0), 1);
    assert_true(qn_proto_real(root, 13, 0) == 1.5 && qn_proto_real(root, 14, 0) == -1e-3);
    const qn_string s = qn_proto_string(root, 15);
    assert_int_equal(s.length, 6);
    assert_memory_equal(s.text, "a\nAA\xc3\xa9", 6);
    assert_int_equal(qn_proto_count(root, ALL_INT32S), 3);
    qn_proto_numbers enums = qn_proto_numbers_of(root, 108);
    int64_t value;
    assert_true(qn_proto_next_int(&value, &enums) && value == -7);
    assert_int_equal(qn_proto_count(root, ALL_FLOATS), 4);
    const qn_proto_message *child = qn_proto_get_message(root, ALL_CHILD);
    assert_int_equal(qn_proto_count(child, ALL_CHILDREN), 3);
    assert_int_equal(qn_proto_int(qn_proto_message_at(child, ALL_CHILDREN, 2), 1, 0), 2);
    qn_proto_tree_free(&tree);
    qn_context_free(ctx);
}

static void test_written_text(void **state)
{
    (void)state;
    qn_context *ctx = context_new();
    qn_proto_tree tree;
    memory *out = malloc(sizeof *out);
    assert_int_equal(parse(&tree, ctx,
                           "r_child { enum: -7 string: \"\\0tab\\t\" } double: 0.1 float: 0.1\n"
                           "bool: 0 r_int64: [1, -2] uint64: 18446744073709551615 enum: 12"),
                     QN_OK);
    assert_int_equal(qn_proto_write_text(&tree, memory_sink(out)), QN_OK);
    out->data[out->size] = 0;
    assert_string_equal((char *)out->data, "uint64: 18446744073709551615\n"
                                           "bool: false\n"
                                           "enum: 12\n"
                                           "float: 0.1\n"
                                           "double: 0.1\n"
                                           "r_int64: 1\n"
                                           "r_int64: -2\n"
                                           "r_child {\n"
                                           "  enum: ODD\n"
                                           "  string: \"\\000tab\\t\"\n"
                                           "}\n");
    qn_proto_tree_free(&tree);
    qn_context_free(ctx);
    free(out);
}

static void test_random_round_trips(void **state)
{
    (void)state;
    qn_context *ctx = context_new();
    memory *wire = malloc(sizeof *wire), *text = malloc(sizeof *text);
    memory *again = malloc(sizeof *again);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t random = seed;
        qn_proto_tree built, read;
        qn_proto_tree_init(&built, ctx, &all);
        qn_proto_tree_init(&read, ctx, &all);
        random_fill(&built, &built.root, &random, 1);
        assert_int_equal(qn_proto_write_wire(&built, memory_sink(wire)), QN_OK);
        assert_int_equal(qn_proto_write_text(&built, memory_sink(text)), QN_OK);
        const qn_status status = qn_proto_parse_text(&read, (const char *)text->data, text->size);
        if (status != QN_OK)
            fail_msg("seed %lu: %s", (unsigned long)seed, qn_context_error(ctx));
        assert_int_equal(qn_proto_write_wire(&read, memory_sink(again)), QN_OK);
        assert_int_equal(wire->size, again->size);
        assert_memory_equal(wire->data, again->data, wire->size);
        qn_proto_tree_free(&built);
        qn_proto_tree_free(&read);
    }
    free(wire);
    free(text);
    free(again);
    qn_context_free(ctx);
}

static void test_messages(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"int32 5", "line 1, column 7: ':' is expected behind int32"},
        {"\n  wrong: 5", "line 2, column 3: All has no field \"wrong\""},
        {"int32: 1 int32: 2", "line 1, column 10: int32 is set a second time"},
        {"int32: 2147483648", "line 1, column 8: \"2147483648\" is no value for int32"},
        {"int32: -2147483649", "line 1, column 8: \"-2147483649\" is no value for int32"},
        {"uint32: -1", "line 1, column 9: \"-1\" is no value for uint32"},
        {"uint64: 18446744073709551616",
         "line 1, column 9: \"18446744073709551616\" is no value for uint64"},
        {"int32: 08", "line 1, column 8: \"08\" is no value for int32"},
        {"int32: ", "line 1, column 8: \"\" is no value for int32"},
        {"enum: BLUE", "line 1, column 7: \"BLUE\" is no value for enum"},
        {"float: 1.5.2", "line 1, column 8: \"1.5.2\" is no value for float"},
        {"string: abc", "line 1, column 9: a string in quotes is expected"},
        {"string: 'abc", "line 1, column 9: this string has no end"},
        {"string: 'abc\n'", "line 1, column 9: this string has no end"},
        {"string: 'a\\q'", "line 1, column 11: unknown escape in a string"},
        {"string: '\\777'", "line 1, column 10: an octal escape is larger than a byte"},
        {"string: '\\", "line 1, column 10: unknown escape in a string"},
        {"child { int32: 1", "line 1, column 17: the text ends where '}' is expected"},
        {"child { int32: 1 >", "line 1, column 18: a field name is expected"},
        {"child: 5", "line 1, column 8: child is a message: '{' is expected"},
        {"r_int32: [1, 2", "line 1, column 15: ']' is expected"},
        {"int32: [1]", "line 1, column 8: \"\" is no value for int32"},
        {"int32: 1 }", "line 1, column 10: a field name is expected"},
    };
    qn_context *ctx = context_new();
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        qn_proto_tree tree;
        assert_int_equal(parse(&tree, ctx, cases[i].text), QN_E_FORMAT);
        assert_string_equal(qn_context_error(ctx), cases[i].message);
        qn_proto_tree_free(&tree);
    }
    qn_context_free(ctx);
}

static void test_truncated_everywhere(void **state)
{
    (void)state;
    static const char text[] =
        "r_child { string: 'a\\x41' r_int32: [1, 2] child <float: -1e5> } # c";
    qn_context *ctx = context_new();
    for (size_t size = 0; size < sizeof text; size++) {
        char *copy = malloc(size ? size : 1); /* exact: overreads are seen */
        qn_proto_tree tree;
        memcpy(copy, text, size);
        qn_proto_tree_init(&tree, ctx, &all);
        const qn_status status = qn_proto_parse_text(&tree, copy, size);
        assert_true(status == QN_OK || status == QN_E_FORMAT);
        qn_proto_tree_free(&tree);
        free(copy);
    }
    qn_context_free(ctx);
}

static void test_depth_is_limited(void **state)
{
    (void)state;
    qn_context *ctx = context_new();
    qn_proto_tree tree;
    char *text = calloc(1, 200000);
    for (int i = 0; i < 20000; i++)
        memcpy(text + 6 * i, "child{", 6);
    assert_int_equal(parse(&tree, ctx, text), QN_E_FORMAT);
    assert_non_null(strstr(qn_context_error(ctx), "more than 100 deep"));
    qn_proto_tree_free(&tree);
    free(text);
    qn_context_free(ctx);
}

/* The decimal point stays one where the user's locale writes a comma. */
static void test_numbers(void **state)
{
    (void)state;
    static const char *const locales[] = {"C", "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    for (size_t i = 0; i < QN_COUNT_OF(locales); i++) {
        char text[QN_NUMBER_SIZE];
        double value = 0;
        if (!setlocale(LC_ALL, locales[i]))
            continue;
        assert_string_equal(qn_number_format_double(text, -1234.5), "-1234.5");
        assert_string_equal(qn_number_format_float(text, 3.4e38f), "3.4e+38");
        assert_true(qn_number_parse(&value, "-12.25e1", 8) && value == -122.5);
        assert_false(qn_number_parse(&value, "1,5", 3));
        assert_false(qn_number_parse(&value, " 1", 2));
        assert_false(qn_number_parse(&value, "1 ", 2));
        assert_false(qn_number_parse(&value, "", 0));
        assert_true(qn_number_parse(&value, "-inf", 4) && value < -1e308);
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_written_text),
        cmocka_unit_test(test_random_round_trips),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_truncated_everywhere),
        cmocka_unit_test(test_depth_is_limited),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
