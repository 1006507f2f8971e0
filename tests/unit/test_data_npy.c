/* Tensors in .npy, .npz and raw files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/array.h"
#include "fault.h"

static qn_context *ctx;
static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/quench-npy-%ld.npy", (long)getpid());
    return qn_context_create(&ctx, NULL) != QN_OK;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    qn_context_free(ctx);
    return 0;
}

static void write_bytes(const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file around a header, in version 1 or 2 of the format. */
static size_t make_npy(uint8_t *out, int version, const char *header, const void *data, size_t size)
{
    const size_t length = strlen(header), begin = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < begin; i++)
        out[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(out + begin, header, length);
    if (size)
        memcpy(out + begin + length, data, size);
    return begin + length + size;
}

static qn_status load(qn_tensor **out, int version, const char *header, const void *data,
                      size_t size)
{
    uint8_t file[1024];
    const size_t total = make_npy(file, version, header, data, size);
    write_bytes(file, total);
    return qn_tensor_load(out, ctx, path, NULL);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void orders(void **state)
{
    static const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
    static const int16_t little[] = {1, 2, 3, 4, 5, 6}, by_column[] = {1, 4, 2, 5, 3, 6};
    static const struct {
        const char *header;
        const void *data;
    } cases[] = {
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", little},
        {"{\"shape\":(2,3),'descr':'<i2','fortran_order':False}", little},
        {"{'descr': '=i2', 'fortran_order': False, 'shape': (2L, 3L), }   \n", little},
        {"{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }", big},
        {"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", by_column},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        for (int version = 1; version <= 3; version++) {
            qn_tensor *t;
            if (load(&t, version, cases[i].header, cases[i].data, 12) != QN_OK)
                fail_msg("%s: %s", cases[i].header, qn_context_error(ctx));
            assert_int_equal(t->dtype, QN_INT16);
            assert_int_equal(t->rank, 2);
            assert_int_equal(t->dims[0] * 10 + t->dims[1], 23);
            assert_memory_equal(t->data, little, sizeof little);
            qn_tensor_free(t);
        }
    }
}

static void swapped_columns(void **state)
{
    static const uint8_t big_by_column[] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
    static const int16_t rows[] = {1, 2, 3, 4, 5, 6};
    static const char *const header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}";
    qn_tensor *t;
    (void)state;
    assert_int_equal(load(&t, 1, header, big_by_column, 12), QN_OK);
    assert_memory_equal(t->data, rows, sizeof rows);
    qn_tensor_free(t);
}

/* Memory runs out at each allocation in turn, and nothing stays behind. */
static void load_without_memory(const char *header)
{
    static const uint8_t data[12] = {0};
    uint8_t file[1024];
    int struck = 1;
    write_bytes(file, make_npy(file, 1, header, data, sizeof data));
    for (long n = 0; struck; n++) {
        fault f = {.until = -1};
        qn_context *own;
        qn_tensor *t;
        assert_int_equal(fault_context(&own, &f), QN_OK);
        f.until = n;
        const qn_status status = qn_tensor_load(&t, own, path, NULL);
        struck = f.struck;
        assert_int_equal(status, struck ? QN_E_NOMEM : QN_OK);
        qn_tensor_free(t);
        qn_context_free(own);
        assert_int_equal(f.live, 0);
    }
}

static void swapped_columns_without_memory(void **state)
{
    (void)state;
    load_without_memory("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}");
    load_without_memory("{'descr': '>U1', 'fortran_order': True, 'shape': (1, 3)}");
}

static void shapes(void **state)
{
    static const float one = 1.5f;
    qn_tensor *t;
    (void)state;
    assert_int_equal(
        load(&t, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &one, 4), QN_OK);
    assert_int_equal(t->rank, 0);
    assert_true(*(float *)t->data == one);
    qn_tensor_free(t);
    assert_int_equal(
        load(&t, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", NULL, 0), QN_OK);
    assert_int_equal(qn_tensor_count(t), 0);
    qn_tensor_free(t);
}

static void refused(void **state)
{
    static const struct {
        const char *header;
        qn_status status;
        const char *message;
    } cases[] = {
        {"", QN_E_FORMAT, "not a .npy file"},
        {"  ", QN_E_FORMAT, "no dictionary"},
        {"{  ", QN_E_FORMAT, "no key"},
        {"{'descr': '<f4'", QN_E_FORMAT, "does not end"},
        {"{'descr': '<f4', }", QN_E_FORMAT, "missing"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", QN_E_FORMAT, "fortran_order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", QN_E_FORMAT, "no tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", QN_E_FORMAT, "no number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", QN_E_FORMAT, "no number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 'other': 2}", QN_E_FORMAT,
         "no number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999999,)}",
         QN_E_FORMAT, "no number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", QN_E_FORMAT,
         "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (100,)}", QN_E_FORMAT, "0 of 400"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", QN_E_FORMAT, "unknown"},
        {"{'descr': '<U0', 'fortran_order': False, 'shape': (1,)}", QN_E_UNSUPPORTED, "'<U0'"},
        {"{'descr': '<U5x', 'fortran_order': False, 'shape': (1,)}", QN_E_UNSUPPORTED, "'<U5x'"},
        {"{'descr': '<U9223372036854775807', 'fortran_order': False, 'shape': (1,)}",
         QN_E_UNSUPPORTED, "'<U9223372036854775807'"},
        {"{'descr': '|S4611686018427387904', 'fortran_order': False, 'shape': (9,)}", QN_E_FORMAT,
         "overflow"},
        {"{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", QN_E_FORMAT, "0 of 20"},
        {"{'descr': '<M8', 'fortran_order': False, 'shape': (1,)}", QN_E_UNSUPPORTED, "'<M8'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", QN_E_UNSUPPORTED, "''"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", QN_E_UNSUPPORTED,
         "fields"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
         QN_E_UNSUPPORTED, "dimensions"},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        qn_tensor *t;
        assert_int_equal(load(&t, 1, cases[i].header, NULL, 0), cases[i].status);
        assert_null(t);
        if (!strstr(qn_context_error(ctx), cases[i].message) ||
            !strstr(qn_context_error(ctx), path))
            fail_msg("%s: '%s'", cases[i].header, qn_context_error(ctx));
    }
}

static void odd_bools(void **state)
{
    static const uint8_t bytes[] = {0, 1, 2};
    qn_tensor *t;
    (void)state;
    assert_int_equal(
        load(&t, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", bytes, 3),
        QN_E_FORMAT);
    assert_int_equal(
        load(&t, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", bytes, 2), QN_OK);
    qn_tensor_free(t);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void every_type_comes_back(void **state)
{
    uint8_t data[2 * 3 * 16] = {0};
    (void)state;
    for (int d = 1; d < QN_DTYPE_COUNT; d++) {
        const qn_dtype_info *info = qn_dtype_get((qn_dtype)d);
        const qn_tensor t = {(qn_dtype)d, 2, {2, 3}, data};
        qn_tensor *back;
        if (!info->npy)
            continue;
        data[0] = 1;
        assert_int_equal(qn_tensor_save(ctx, &t, path), QN_OK);
        assert_int_equal(qn_tensor_load(&back, ctx, path, NULL), QN_OK);
        assert_true(qn_tensor_equal(&t, back));
        qn_tensor_free(back);
    }
}

/* What numpy has no word for is widened. */
static void widened(void **state)
{
    uint16_t half_of_float[] = {0x3fc0, 0xc000}; /* bfloat16: 1.5, -2 */
    int8_t small[] = {-8, 7};
    const qn_tensor brain = {QN_BFLOAT16, 1, {2}, half_of_float}, four = {QN_INT4, 1, {2}, small};
    qn_tensor *back;
    (void)state;
    assert_int_equal(qn_tensor_save(ctx, &brain, path), QN_OK);
    assert_int_equal(qn_tensor_load(&back, ctx, path, NULL), QN_OK);
    assert_int_equal(back->dtype, QN_FLOAT32);
    assert_true(((float *)back->data)[0] == 1.5f && ((float *)back->data)[1] == -2.0f);
    qn_tensor_free(back);
    assert_int_equal(qn_tensor_save(ctx, &four, path), QN_OK);
    assert_int_equal(qn_tensor_load(&back, ctx, path, NULL), QN_OK);
    assert_int_equal(back->dtype, QN_INT8);
    assert_memory_equal(back->data, small, 2);
    qn_tensor_free(back);
}

static void strings_come_back(void **state)
{
    qn_string words[] = {{"\xe6\x97\xa5", 3}, {NULL, 0}, {"a\xff", 2}};
    const qn_tensor t = {QN_STRING, 1, {3}, words};
    qn_tensor *back;
    (void)state;
    assert_int_equal(qn_tensor_save(ctx, &t, path), QN_OK);
    assert_int_equal(qn_tensor_load(&back, ctx, path, NULL), QN_OK);
    words[2] = (qn_string){"a\xef\xbf\xbd", 4}; /* what is no UTF-8 becomes U+FFFD */
    assert_true(qn_tensor_equal(back, &t));
    qn_tensor_free(back);
}

static void not_to_be_written(void **state)
{
    const qn_tensor t = {.dtype = QN_NONE};
    (void)state;
    unlink(path);
    assert_int_equal(qn_tensor_save(ctx, &t, path), QN_E_UNSUPPORTED);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* ---- Raw ------------------------------------------------------------------------------------- */

static void raw(void **state)
{
    char name[80];
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    const qn_tensor exact = {QN_FLOAT32, 2, {2, 3}, NULL}, open = {QN_FLOAT32, 2, {-1, 2}, NULL};
    qn_tensor_load_options options = {QN_OPTIONS_VERSION, NULL, &exact};
    qn_tensor *t;
    (void)state;
    write_bytes(numbers, sizeof numbers);
    snprintf(name, sizeof name, "%.*s.raw", (int)strlen(path) - 4, path);
    assert_int_equal(rename(path, name), 0);
    assert_int_equal(qn_tensor_load(&t, ctx, name, &options), QN_OK);
    assert_memory_equal(t->data, numbers, sizeof numbers);
    qn_tensor_free(t);
    options.like = &open;
    assert_int_equal(qn_tensor_load(&t, ctx, name, &options), QN_OK);
    assert_int_equal(t->dims[0], 3);
    qn_tensor_free(t);
    assert_int_equal(qn_tensor_load(&t, ctx, name, NULL), QN_E_INVALID);
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),
        cmocka_unit_test(swapped_columns),
        cmocka_unit_test(swapped_columns_without_memory),
        cmocka_unit_test(shapes),
        cmocka_unit_test(refused),
        cmocka_unit_test(odd_bools),
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(strings_come_back),
        cmocka_unit_test(widened),
        cmocka_unit_test(not_to_be_written),
        cmocka_unit_test(raw),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
