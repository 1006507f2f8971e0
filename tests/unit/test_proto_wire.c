/* The wire format: round trips, both encodings of repeated numbers, hostile input. */
#include "proto_test.h"

#include <stdio.h>
#include <unistd.h>

#include "fault.h"
#include "proto/tree.h"

typedef struct fixture {
    qn_context *ctx;
    qn_proto_tree tree;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->ctx = context_new();
    qn_proto_tree_init(&f->tree, f->ctx, &all);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    qn_proto_tree_free(&f->tree);
    qn_context_free(f->ctx);
    free(f);
    return 0;
}

#define PARSE(f, bytes) qn_proto_parse_wire(&(f)->tree, bytes, sizeof(bytes) - 1)

static void test_scalars(void **state)
{
    fixture *f = *state;
    const qn_proto_message *root = &f->tree.root;
    /* int32 = -1 in ten bytes, sint32 = -2 (3), bool from 2, float 1.5, string "ab" */
    static const char bytes[] = "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                "\x28\x03\x38\x02\x6d\x00\x00\xc0\x3f\x7a\x02"
                                "ab";
    assert_int_equal(PARSE(f, bytes), QN_OK);
    assert_int_equal(qn_proto_int(root, 1, 0), -1);
    assert_int_equal(qn_proto_int(root, 5, 0), -2);
    assert_int_equal(qn_proto_int(root, 7, 0), 1);
    assert_true(qn_proto_real(root, 13, 0) == 1.5);
    const qn_string s = qn_proto_string(root, 15);
    assert_int_equal(s.length, 2);
    assert_ptr_equal(s.text, bytes + sizeof bytes - 3); /* borrowed */
    assert_int_equal(qn_proto_int(root, 2, 77), 77);
    assert_false(qn_proto_has(root, 2));
    assert_int_equal(qn_proto_string(root, 16).length, 0);
    assert_null(qn_proto_get_message(root, ALL_CHILD));
    assert_int_equal(qn_proto_count(NULL, ALL_CHILD), 0);
}

static void test_last_scalar_wins_and_messages_merge(void **state)
{
    fixture *f = *state;
    /* int32 = 1, int32 = 2; child {int32 = 3} child {int64 = 4} */
    assert_int_equal(PARSE(f, "\x08\x01\x08\x02\x8a\x01\x02\x08\x03\x8a\x01\x02\x10\x04"), QN_OK);
    assert_int_equal(qn_proto_int(&f->tree.root, 1, 0), 2);
    const qn_proto_message *child = qn_proto_get_message(&f->tree.root, ALL_CHILD);
    assert_int_equal(qn_proto_int(child, 1, 0), 3);
    assert_int_equal(qn_proto_int(child, 2, 0), 4);
}

static void test_packed_and_single_numbers_mix(void **state)
{
    fixture *f = *state;
    /* r_int32 (101): 1, packed [2, 300], 4. Tag 101<<3 = 808 = a8 06, packed aa 06 */
    assert_int_equal(PARSE(f, "\xa8\x06\x01\xaa\x06\x03\x02\xac\x02\xa8\x06\x04"), QN_OK);
    assert_int_equal(qn_proto_count(&f->tree.root, ALL_INT32S), 4);
    qn_proto_numbers numbers = qn_proto_numbers_of(&f->tree.root, ALL_INT32S);
    int64_t value;
    for (int i = 0; i < 4; i++) {
        static const int expected[] = {1, 2, 300, 4};
        assert_true(qn_proto_next_int(&value, &numbers));
        assert_int_equal(value, expected[i]);
    }
    assert_false(qn_proto_next_int(&value, &numbers));
}

static void test_packed_floats_are_borrowed(void **state)
{
    fixture *f = *state;
    /* r_float (113) packed: tag 113<<3|2 = 906 = 8a 07 */
    static const char bytes[] = "\x8a\x07\x08\x00\x00\x80\x3f\x00\x00\x00\xc0";
    assert_int_equal(PARSE(f, bytes), QN_OK);
    assert_int_equal(qn_proto_count(&f->tree.root, ALL_FLOATS), 2);
    assert_ptr_equal(qn_proto_packed(&f->tree.root, ALL_FLOATS).text, bytes + 3);
    qn_proto_numbers numbers = qn_proto_numbers_of(&f->tree.root, ALL_FLOATS);
    double value;
    assert_true(qn_proto_next_real(&value, &numbers) && value == 1.0);
    assert_true(qn_proto_next_real(&value, &numbers) && value == -2.0);
    assert_false(qn_proto_next_real(&value, &numbers));
}

static void test_unknown_fields_are_skipped(void **state)
{
    fixture *f = *state;
    /* Field 50 of every wire type, a group 51 with a group inside, then int32 = 5. */
    assert_int_equal(PARSE(f, "\x90\x03\x80\x01\x91\x03"
                              "12345678"
                              "\x92\x03\x02xx\x95\x03"
                              "1234"
                              "\x9b\x03\x90\x03\x01\xa3\x03\xa4\x03\x9c\x03\x08\x05"),
                     QN_OK);
    assert_int_equal(qn_proto_int(&f->tree.root, 1, 0), 5);
    assert_int_equal(f->tree.root.count, 1);
}

static void test_random_round_trips(void **state)
{
    fixture *f = *state;
    memory *first = malloc(sizeof *first), *second = malloc(sizeof *second);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t random = seed;
        qn_proto_tree built, read;
        qn_proto_tree_init(&built, f->ctx, &all);
        qn_proto_tree_init(&read, f->ctx, &all);
        random_fill(&built, &built.root, &random, 0);
        assert_int_equal(qn_proto_write_wire(&built, memory_sink(first)), QN_OK);
        assert_int_equal(first->size, qn_proto_wire_size(&built.root));
        assert_int_equal(qn_proto_parse_wire(&read, first->data, first->size), QN_OK);
        assert_int_equal(qn_proto_write_wire(&read, memory_sink(second)), QN_OK);
        assert_int_equal(first->size, second->size);
        assert_memory_equal(first->data, second->data, first->size);
        qn_proto_tree_free(&built);
        qn_proto_tree_free(&read);
    }
    free(first);
    free(second);
}

static void test_large_spans_go_out_directly(void **state)
{
    fixture *f = *state;
    memory *out = malloc(sizeof *out);
    char *large = calloc(1, 40000);
    assert_int_equal(qn_proto_add_int(&f->tree, &f->tree.root, ALL_INT32, 1), QN_OK);
    assert_int_equal(
        qn_proto_add_string(&f->tree, &f->tree.root, ALL_BYTES, (qn_string){large, 40000}), QN_OK);
    assert_int_equal(qn_proto_write_wire(&f->tree, memory_sink(out)), QN_OK);
    assert_int_equal(out->direct, 40000);
    assert_int_equal(out->size, 2 + 2 + 3 + 40000);
    free(large);
    free(out);
}

/* ---- Hostile input --------------------------------------------------------------------------- */

static qn_status parse_copy(qn_context *ctx, const uint8_t *data, size_t size)
{
    /* A block of its own: reading one byte too far is seen by the address sanitizer. */
    uint8_t *copy = malloc(size ? size : 1);
    qn_proto_tree tree;
    memcpy(copy, data, size);
    qn_proto_tree_init(&tree, ctx, &all);
    const qn_status status = qn_proto_parse_wire(&tree, copy, size);
    qn_proto_tree_free(&tree);
    free(copy);
    return status;
}

static void test_truncated_everywhere(void **state)
{
    fixture *f = *state;
    memory *out = malloc(sizeof *out);
    uint64_t random = 42;
    random_fill(&f->tree, &f->tree.root, &random, 2);
    assert_int_equal(qn_proto_write_wire(&f->tree, memory_sink(out)), QN_OK);
    size_t failed = 0;
    for (size_t size = 0; size < out->size; size++) {
        const qn_status status = parse_copy(f->ctx, out->data, size);
        assert_true(status == QN_OK || status == QN_E_FORMAT);
        failed += status != QN_OK;
    }
    /* Only a cut between two fields of the root can pass. */
    assert_true(failed > 0 && out->size - failed <= 200);
    free(out);
}

static void test_bits_flipped_everywhere(void **state)
{
    fixture *f = *state;
    memory *out = malloc(sizeof *out);
    uint64_t random = 7;
    random_fill(&f->tree, &f->tree.root, &random, 3);
    assert_int_equal(qn_proto_write_wire(&f->tree, memory_sink(out)), QN_OK);
    for (size_t i = 0; i < out->size * 8; i++) {
        out->data[i / 8] ^= (uint8_t)(1 << i % 8);
        const qn_status status = parse_copy(f->ctx, out->data, out->size);
        assert_true(status == QN_OK || status == QN_E_FORMAT);
        out->data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    free(out);
}

typedef struct bad {
    const char *bytes;
    size_t size;
    const char *message;
} bad;
#define BAD(bytes, message)                                                                        \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, message                                                          \
    }

static void test_messages(void **state)
{
    fixture *f = *state;
    static const bad cases[] = {
        BAD("\x08", "int32: the input ends inside a number at offset 1"),
        BAD("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            "int32: a number has more than 10 bytes at offset 1"),
        BAD("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "All: a number has more than 10 bytes at offset 0"),
        BAD("\x7a\x05"
            "abc",
            "string: length 5 runs past the end at offset 1"),
        BAD("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "string: length 18446744073709551615 runs past the end at offset 1"),
        BAD("\x0a\x00", "int32: wire type 2 instead of 0 at offset 1"),
        BAD("\x78\x00", "string: wire type 0 instead of 2 at offset 1"),
        BAD("\x00\x00", "All: 0 is no field number at offset 0"),
        BAD("\x0e\x00", "int32: wire type 6 instead of 0 at offset 1"),
        BAD("\x97\x03\x00", "All: field 50 has wire type 7 at offset 2"),
        BAD("\x94\x03\x00", "All: field 50 has wire type 4 at offset 2"),
        BAD("\x9b\x03\xa4\x03", "All: group 51 ends as group 52 at offset 2"),
        BAD("\x8a\x07\x03"
            "abc",
            "r_float: 3 packed bytes are no multiple of 4 at offset 3"),
        BAD("\xaa\x06\x02\x01\x80", "r_int32: the input ends inside a number at offset 4"),
        /* r_child (117, aa 07): an empty one, then one whose child has a bad string. */
        BAD("\xaa\x07\x00\xaa\x07\x05\x8a\x01\x02\x7a\x09",
            "r_child[1].child.string: length 9 runs past the end at offset 10"),
        /* The inner length fits the file, not its message. */
        BAD("\x8a\x01\x02\x7a\x01z", "child.string: length 1 runs past the end at offset 4"),
    };
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        const qn_status status = parse_copy(f->ctx, (const uint8_t *)cases[i].bytes, cases[i].size);
        assert_int_equal(status, QN_E_FORMAT);
        assert_string_equal(qn_context_error(f->ctx), cases[i].message);
    }
}

/* `depth` messages in one another, built from the inside out. */
static size_t nest(uint8_t *out, size_t capacity, int depth)
{
    size_t start = capacity;
    for (int d = 0; d < depth; d++) {
        uint8_t length[QN_PROTO_MAX_VARINT];
        const size_t size = qn_proto_put_varint(length, capacity - start);
        start -= size + 2;
        memcpy(out + start, "\x8a\x01", 2);
        memcpy(out + start + 2, length, size);
    }
    memmove(out, out + start, capacity - start);
    return capacity - start;
}

static void test_depth_is_limited(void **state)
{
    fixture *f = *state;
    uint8_t *bytes = malloc(1 << 20);
    size_t size = nest(bytes, 1 << 20, QN_PROTO_MAX_DEPTH);
    assert_int_equal(parse_copy(f->ctx, bytes, size), QN_OK);
    size = nest(bytes, 1 << 20, QN_PROTO_MAX_DEPTH + 1);
    assert_int_equal(parse_copy(f->ctx, bytes, size), QN_E_FORMAT);
    assert_non_null(strstr(qn_context_error(f->ctx), "more than 100 deep"));
    size = nest(bytes, 1 << 20, 100000);
    assert_int_equal(parse_copy(f->ctx, bytes, size), QN_E_FORMAT);
    /* Groups that nobody knows count too. */
    for (size_t i = 0; i < 1000; i++)
        memcpy(bytes + 2 * i, "\x9b\x03", 2);
    assert_int_equal(parse_copy(f->ctx, bytes, 2000), QN_E_FORMAT);
    free(bytes);
}

static qn_status round_trip(qn_context *ctx, const memory *in, memory *out)
{
    qn_proto_tree tree;
    qn_status status;
    qn_proto_tree_init(&tree, ctx, &all);
    QN_TRY_OR_DONE(qn_proto_parse_wire(&tree, in->data, in->size));
    QN_TRY_OR_DONE(qn_proto_write_wire(&tree, memory_sink(out)));
    QN_TRY_OR_DONE(qn_proto_write_text(&tree, memory_sink(out)));
    qn_proto_tree_free(&tree);
    qn_proto_tree_init(&tree, ctx, &all);
    QN_TRY_OR_DONE(qn_proto_parse_text(&tree, (const char *)out->data, out->size));
done:
    qn_proto_tree_free(&tree);
    return status;
}

static void test_every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    memory *in = malloc(sizeof *in), *out = malloc(sizeof *out);
    for (uint64_t seed = 1; seed < 40; seed++) { /* enough for several chunks of the arena */
        uint64_t random = seed;
        random_fill(&f->tree, &f->tree.root, &random, 3);
    }
    assert_int_equal(qn_proto_write_wire(&f->tree, memory_sink(in)), QN_OK);
    qn_status status = QN_E_NOMEM;
    long steps = 0;
    for (; status != QN_OK; steps++) {
        fault injected = {.until = steps + 1};
        qn_context *ctx;
        assert_int_equal(fault_context(&ctx, &injected), QN_OK);
        status = round_trip(ctx, in, out);
        assert_int_equal(status, injected.struck ? QN_E_NOMEM : QN_OK);
        qn_context_free(ctx);
        assert_int_equal(injected.live, 0);
    }
    assert_true(steps > 4);
    free(in);
    free(out);
}

static void test_file_sink(void **state)
{
    fixture *f = *state;
    char path[64];
    qn_output_file *file;
    qn_map map;
    snprintf(path, sizeof path, "/tmp/test_proto_wire_%ld", (long)getpid());
    assert_int_equal(qn_proto_add_int(&f->tree, &f->tree.root, ALL_INT32, 300), QN_OK);
    assert_int_equal(qn_output_open(&file, f->ctx, path), QN_OK);
    assert_int_equal(qn_proto_write_wire(&f->tree, qn_proto_sink_file(file)), QN_OK);
    assert_int_equal(qn_output_commit(file), QN_OK);
    assert_int_equal(qn_map_open(&map, f->ctx, path), QN_OK);
    assert_int_equal(map.size, 3);
    assert_memory_equal(map.data, "\x08\xac\x02", 3);
    qn_map_close(&map);
    remove(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_scalars),
        TEST(test_last_scalar_wins_and_messages_merge),
        TEST(test_packed_and_single_numbers_mix),
        TEST(test_packed_floats_are_borrowed),
        TEST(test_unknown_fields_are_skipped),
        TEST(test_random_round_trips),
        TEST(test_large_spans_go_out_directly),
        TEST(test_truncated_everywhere),
        TEST(test_bits_flipped_everywhere),
        TEST(test_messages),
        TEST(test_depth_is_limited),
        TEST(test_every_allocation_may_fail),
        TEST(test_file_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
