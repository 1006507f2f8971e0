/* Tensors of ONNX files: every element type in every place that can hold it, sparse and external
 * data. */
#include "onnx_test.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- Element types --------------------------------------------------------------------------- */

typedef struct element_case {
    qn_dtype dtype;
    /* The same three elements */
    const char *raw, *typed;
    uint8_t memory[48];
} element_case;

/* clang-format off */
static const element_case element_cases[] = {
    {QN_FLOAT32, "\\0\\0\\x80\\x3f\\0\\0\\0\\xc0\\0\\0\\0\\0", "float_data: [1, -2, 0]",
     {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0}},
    {QN_UINT8, "\\1\\xff\\0", "int32_data: [1, 255, 0]", {1, 255, 0}},
    {QN_INT8, "\\1\\xff\\x80", "int32_data: [1, -1, -128]", {1, 255, 128}},
    {QN_UINT16, "\\1\\0\\xff\\xff\\0\\0", "int32_data: [1, 65535, 0]", {1, 0, 255, 255, 0, 0}},
    {QN_INT16, "\\1\\0\\xff\\xff\\0\\x80", "int32_data: [1, -1, -32768]", {1, 0, 255, 255, 0, 128}},
    {QN_INT32, "\\1\\0\\0\\0\\xff\\xff\\xff\\xff\\0\\0\\0\\x80", "int32_data: [1, -1, -2147483648]",
     {1, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 128}},
    {QN_INT64, "\\1\\0\\0\\0\\0\\0\\0\\0\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\0\\0\\0\\0\\0\\0\\0\\x80",
     "int64_data: [1, -1, -9223372036854775808]",
     {1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 128}},
    {QN_BOOL, "\\1\\0\\1", "int32_data: [1, 0, 1]", {1, 0, 1}},
    {QN_FLOAT16, "\\0\\x3c\\0\\xc0\\0\\0", "int32_data: [15360, 49152, 0]", {0, 0x3c, 0, 0xc0, 0, 0}},
    {QN_FLOAT64, "\\0\\0\\0\\0\\0\\0\\xf0\\x3f\\0\\0\\0\\0\\0\\0\\0\\xc0\\0\\0\\0\\0\\0\\0\\0\\0",
     "double_data: [1, -2, 0]",
     {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {QN_UINT32, "\\1\\0\\0\\0\\xff\\xff\\xff\\xff\\0\\0\\0\\0", "uint64_data: [1, 4294967295, 0]",
     {1, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}},
    {QN_UINT64, "\\1\\0\\0\\0\\0\\0\\0\\0\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\0\\0\\0\\0\\0\\0\\0\\0",
     "uint64_data: [1, 18446744073709551615, 0]",
     {1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}},
    {QN_COMPLEX64, "\\0\\0\\x80\\x3f\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\x80\\x3f\\0\\0\\0\\0\\0\\0\\0\\0",
     "float_data: [1, 0, 0, 1, 0, 0]",
     {0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}},
    {QN_COMPLEX128,
     "\\0\\0\\0\\0\\0\\0\\xf0\\x3f\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0"
     "\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0",
     "double_data: [1, 0, 0, 0, 0, 0]", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
    {QN_BFLOAT16, "\\x80\\x3f\\0\\xc0\\0\\0", "int32_data: [16256, 49152, 0]",
     {0x80, 0x3f, 0, 0xc0, 0, 0}},
    {QN_FLOAT8E4M3FN, "\\x38\\xc0\\0", "int32_data: [56, 192, 0]", {0x38, 0xc0, 0}},
    {QN_FLOAT8E4M3FNUZ, "\\x38\\xc0\\0", "int32_data: [56, 192, 0]", {0x38, 0xc0, 0}},
    {QN_FLOAT8E5M2, "\\x38\\xc0\\0", "int32_data: [56, 192, 0]", {0x38, 0xc0, 0}},
    {QN_FLOAT8E5M2FNUZ, "\\x38\\xc0\\0", "int32_data: [56, 192, 0]", {0x38, 0xc0, 0}},
    {QN_UINT4, "\\x2f\\x1", "int32_data: [47, 1]", {15, 2, 1}},
    {QN_INT4, "\\x2f\\x8", "int32_data: [47, 8]", {255, 2, 248}},
    {QN_FLOAT4E2M1, "\\x2f\\x8", "int32_data: [47, 8]", {15, 2, 8}},
    {QN_FLOAT8E8M0, "\\x38\\xc0\\0", "int32_data: [56, 192, 0]", {0x38, 0xc0, 0}},
    {QN_UINT2, "\\x2d", "int32_data: [45]", {1, 3, 2}},
    {QN_INT2, "\\x2d", "int32_data: [45]", {1, 255, 254}},
    {QN_FLOAT6E2M3, "\\x6a\\x5c\\x1", "int32_data: [42, 49, 21]", {42, 49, 21}},
    {QN_FLOAT6E3M2, "\\x6a\\x5c\\x1", "int32_data: [42, 49, 21]", {42, 49, 21}},
};
/* clang-format on */

static void check_elements(const element_case *c, const char *field, const char *contents)
{
    char text[1024];
    loaded l;
    snprintf(text, sizeof text,
             "ir_version: 14 opset_import { version: 13 } graph { name: 'g' initializer {"
             " name: 'w' dims: 3 data_type: %d %s%s%s } output { name: 'w' } }",
             c->dtype, field, contents, *field ? "'" : "");
    if (load_text(&l, text) != QN_OK)
        fail_msg("%s: %s", qn_dtype_name(c->dtype), qn_context_error(l.ctx));
    const qn_tensor *data = l.model->graph->outputs[0]->data;
    assert_int_equal(data->dtype, c->dtype);
    assert_int_equal(data->rank, 1);
    assert_int_equal(data->dims[0], 3);
    assert_memory_equal(data->data, c->memory, 3 * qn_dtype_size(c->dtype));
    unload(&l);
}

static void test_every_type(void **state)
{
    (void)state;
    uint64_t seen = 1; /* "undefined" */
    for (size_t i = 0; i < QN_COUNT_OF(element_cases); i++) {
        check_elements(&element_cases[i], "raw_data: '", element_cases[i].raw);
        check_elements(&element_cases[i], "", element_cases[i].typed);
        seen |= UINT64_C(1) << element_cases[i].dtype;
    }
    seen |= UINT64_C(1) << QN_STRING;
    assert_true(seen == (UINT64_C(1) << QN_SEQUENCE) - 1);
}

/* x + w through a plan: kernels are given aligned data wherever the file has it. */
static void run_with_zeros(loaded *l, int64_t count)
{
    qn_plan *plan = NULL;
    qn_session *session = NULL;
    qn_tensor x = {QN_FLOAT32, 1, {count}, calloc((size_t)count, sizeof(float))};
    if (qn_plan_create(&plan, l->ctx, l->model, NULL) != QN_OK ||
        qn_session_create(&session, l->ctx, plan) != QN_OK ||
        qn_session_run(session, &x, 1) != QN_OK)
        fail_msg("%s", qn_context_error(l->ctx));
    const qn_tensor *y = qn_session_output(session, 0);
    assert_int_equal(y->dims[0], count);
    assert_true(((const float *)y->data)[count - 1] == 7);
    qn_session_free(session);
    qn_plan_free(plan);
    free(x.data);
}

static void test_large_tensors_stay_in_the_file(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    qn_context *ctx;
    loaded l;
    size_t misaligned = 0;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    for (size_t odd = 0; odd < 4; odd++) {
        bytes wire = {NULL, 0};
        qn_proto_tree tree;
        qn_proto_message *graph, *tensor, *node;
        float *contents = calloc(COUNT, sizeof *contents);
        contents[COUNT - 1] = 7;
        qn_proto_tree_init(&tree, ctx, &qn_onnx_model_schema);
        qn_proto_message *root = &tree.root;
        assert_int_equal(qn_proto_add_int(&tree, root, QN_ONNX_MODEL_IR_VERSION, 8), QN_OK);
        /* Shifts what follows by some bytes. */
        assert_int_equal(
            qn_proto_add_string(&tree, root, QN_ONNX_MODEL_DOMAIN, (qn_string){"xxxx", odd}),
            QN_OK);
        assert_int_equal(qn_proto_add_message(&graph, &tree, root, QN_ONNX_MODEL_GRAPH), QN_OK);
        assert_int_equal(qn_proto_add_message(&tensor, &tree, graph, QN_ONNX_GRAPH_INITIALIZER),
                         QN_OK);
        assert_int_equal(qn_proto_add_int(&tree, tensor, QN_ONNX_TENSOR_DIMS, COUNT), QN_OK);
        assert_int_equal(qn_proto_add_int(&tree, tensor, QN_ONNX_TENSOR_DATA_TYPE, 1), QN_OK);
        assert_int_equal(qn_proto_add_text(&tree, tensor, QN_ONNX_TENSOR_NAME, "w"), QN_OK);
        assert_int_equal(
            qn_proto_add_string(&tree, tensor, QN_ONNX_TENSOR_RAW_DATA,
                                (qn_string){(const char *)contents, COUNT * sizeof *contents}),
            QN_OK);
        assert_int_equal(qn_proto_add_message(&node, &tree, graph, QN_ONNX_GRAPH_NODE), QN_OK);
        assert_int_equal(qn_proto_add_text(&tree, node, QN_ONNX_NODE_INPUT, "x"), QN_OK);
        assert_int_equal(qn_proto_add_text(&tree, node, QN_ONNX_NODE_INPUT, "w"), QN_OK);
        assert_int_equal(qn_proto_add_text(&tree, node, QN_ONNX_NODE_OUTPUT, "y"), QN_OK);
        assert_int_equal(qn_proto_add_text(&tree, node, QN_ONNX_NODE_OP_TYPE, "Add"), QN_OK);
        const bytes rest = encode(ctx, &qn_onnx_model_schema,
                                  "opset_import { version: 13 } graph { input " FLOATS(
                                      "x", DIM(50000)) "output { name: 'y' } }");
        assert_int_equal(qn_proto_parse_wire(&tree, rest.data, rest.size), QN_OK);
        assert_int_equal(qn_proto_write_wire(&tree, (qn_proto_sink){bytes_write, &wire}), QN_OK);
        qn_proto_tree_free(&tree);
        free(contents);
        free(rest.data);
        if (load_wire(&l, wire) != QN_OK)
            fail_msg("%s", qn_context_error(l.ctx));
        const uint8_t *data = qn_graph_value(l.model->graph, "w")->data->data;
        assert_true(data >= wire.data && data < wire.data + wire.size);
        float last;
        memcpy(&last, data + (COUNT - 1) * sizeof last, sizeof last);
        assert_true(last == 7);
        misaligned += (uintptr_t)data % sizeof last != 0;
        run_with_zeros(&l, COUNT);
        unload(&l);
    }
    assert_int_equal(misaligned, 3);
    qn_context_free(ctx);
}

static void test_strings(void **state)
{
    (void)state;
    loaded l;
    assert_int_equal(load_text(&l, MODEL("initializer { name: 's' dims: [1, 3] data_type: 8"
                                         "  string_data: ['', 'a\\0b', 'xyz'] }"
                                         "output { name: 's' }")),
                     QN_OK);
    const qn_string *strings = l.model->graph->outputs[0]->data->data;
    assert_int_equal(strings[0].length, 0);
    assert_int_equal(strings[1].length, 3);
    assert_memory_equal(strings[1].text, "a\0b", 3);
    unload(&l);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void test_bad_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *tensor, *message;
        qn_status status;
    } cases[] = {
        {"dims: 3 data_type: 1 float_data: [1, 2]",
         "initializer 'w': typed data in bytes has 8 where the dimensions ask for 12", QN_E_FORMAT},
        {"dims: 3 data_type: 7 int64_data: [1, 2, 3, 4]",
         "typed data in numbers has 4 where the dimensions ask for 3", QN_E_FORMAT},
        {"dims: 3 data_type: 1 raw_data: 'abc'",
         "raw data in bytes has 3 where the dimensions ask for 12", QN_E_FORMAT},
        {"dims: 3 data_type: 22 raw_data: 'abc'",
         "raw data in bytes has 3 where the dimensions ask for 2", QN_E_FORMAT},
        {"dims: -3 data_type: 1", "dimension 0 is -3", QN_E_FORMAT},
        {"dims: [4294967296, 4294967296] data_type: 1", "multiply to more than memory",
         QN_E_FORMAT},
        {"dims: [9223372036854775807, 2] data_type: 2", "multiply to more than memory",
         QN_E_FORMAT},
        {"dims: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] data_type: 1 float_data: 1",
         "17 dimensions are more than 16", QN_E_UNSUPPORTED},
        {"dims: 1 data_type: 99", "element type 99 is not known", QN_E_UNSUPPORTED},
        {"dims: 1", "element type 0 is not known", QN_E_UNSUPPORTED},
        {"dims: 1 data_type: 8 raw_data: 'a'", "strings cannot be raw data", QN_E_FORMAT},
        {"dims: 2 data_type: 8 string_data: 'a'", "string data in elements has 1", QN_E_FORMAT},
        {"dims: 1 data_type: 1 segment { begin: 0 end: 1 }", "segments", QN_E_UNSUPPORTED},
        {"dims: 1 data_type: 1 data_location: EXTERNAL", "without a location", QN_E_FORMAT},
        {"dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: 'location' value: 'x' "
         "}",
         "needs a model that is a file", QN_E_UNSUPPORTED},
    };
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        char text[512];
        loaded l;
        snprintf(text, sizeof text, MODEL("initializer { name: 'w' %s }"), cases[i].tensor);
        assert_int_equal(load_text(&l, text), cases[i].status);
        if (!strstr(qn_context_error(l.ctx), cases[i].message))
            fail_msg("%s\nis not\n%s", qn_context_error(l.ctx), cases[i].message);
        unload(&l);
    }
}

/* ---- Sparse ---------------------------------------------------------------------------------- */

static void test_sparse(void **state)
{
    (void)state;
    static const struct {
        /* NULL: values 5 and 6 go to 1 and 5 of [2, 3] */
        const char *indices, *dims, *message;
    } cases[] = {
        {"dims: 2 data_type: 7 int64_data: [1, 5]", "dims: [2, 3]", NULL},
        {"dims: [2, 2] data_type: 7 int64_data: [0, 1, 1, 2]", "dims: [2, 3]", NULL},
        {"dims: 2 data_type: 7 int64_data: [1, 6]", "dims: [2, 3]",
         "sparse initializer 's': index 1 of a sparse tensor is out of range"},
        {"dims: 2 data_type: 7 int64_data: [-1, 5]", "dims: [2, 3]", "out of range"},
        {"dims: [2, 2] data_type: 7 int64_data: [0, 3, 1, 2]", "dims: [2, 3]", "out of range"},
        {"dims: [2, 3] data_type: 7 int64_data: [0, 1, 0, 1, 2, 0]", "dims: [2, 3]",
         "must be int64"},
        {"dims: 3 data_type: 7 int64_data: [0, 1, 2]", "dims: [2, 3]", "must be int64"},
        {"dims: 2 data_type: 6 int32_data: [0, 1]", "dims: [2, 3]", "must be int64"},
        {"dims: 2 data_type: 7 int64_data: [1, 5]", "dims: [2000000000, 3]", "larger than"},
    };
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        char text[512];
        loaded l;
        snprintf(text, sizeof text,
                 MODEL("sparse_initializer { values { name: 's' dims: 2 data_type: 1"
                       " float_data: [5, 6] } indices { %s } %s } output { name: 's' }"),
                 cases[i].indices, cases[i].dims);
        const qn_status status = load_text(&l, text);
        if (cases[i].message) {
            assert_int_not_equal(status, QN_OK);
            if (!strstr(qn_context_error(l.ctx), cases[i].message))
                fail_msg("%s\nis not\n%s", qn_context_error(l.ctx), cases[i].message);
        } else {
            static const float expected[] = {0, 5, 0, 0, 0, 6};
            assert_int_equal(status, QN_OK);
            assert_memory_equal(l.model->graph->outputs[0]->data->data, expected, sizeof expected);
        }
        unload(&l);
    }
}

/* ---- External -------------------------------------------------------------------------------- */

typedef struct folder {
    char root[64], model[128], data[128], outside[128], link[128];
    qn_context *ctx;
} folder;

static void write_bytes(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static int folder_setup(void **state)
{
    folder *f = calloc(1, sizeof *f);
    static const float contents[] = {0, 1, 2, 3};
    snprintf(f->root, sizeof f->root, "/tmp/test_onnx_tensor_%ld", (long)getpid());
    snprintf(f->model, sizeof f->model, "%s/in/model.onnx", f->root);
    snprintf(f->data, sizeof f->data, "%s/in/data", f->root);
    snprintf(f->outside, sizeof f->outside, "%s/outside", f->root);
    snprintf(f->link, sizeof f->link, "%s/in/link", f->root);
    mkdir(f->root, 0777);
    char inner[128];
    snprintf(inner, sizeof inner, "%s/in", f->root);
    mkdir(inner, 0777);
    write_bytes(f->data, contents, sizeof contents);
    write_bytes(f->outside, contents, sizeof contents);
    assert_int_equal(symlink(f->outside, f->link), 0);
    snprintf(inner, sizeof inner, "%s/in/fifo", f->root);
    assert_int_equal(mkfifo(inner, 0666), 0);
    assert_int_equal(qn_context_create(&f->ctx, NULL), QN_OK);
    *state = f;
    return 0;
}

static int folder_teardown(void **state)
{
    folder *f = *state;
    char inner[128];
    snprintf(inner, sizeof inner, "%s/in/fifo", f->root);
    remove(inner);
    snprintf(inner, sizeof inner, "%s/in", f->root);
    remove(f->model);
    remove(f->data);
    remove(f->outside);
    remove(f->link);
    rmdir(inner);
    rmdir(f->root);
    qn_context_free(f->ctx);
    free(f);
    return 0;
}

static qn_status load_external(qn_model **model, folder *f, const char *entries)
{
    char text[1024];
    snprintf(text, sizeof text,
             MODEL("initializer { name: 'w' dims: 2 data_type: 1 data_location: EXTERNAL %s }"
                   "initializer { name: 'v' dims: 1 data_type: 1 data_location: EXTERNAL %s }"
                   "output { name: 'w' } output { name: 'v' }"),
             entries, "external_data { key: 'location' value: 'data' }");
    const bytes wire = encode(f->ctx, &qn_onnx_model_schema, text);
    write_bytes(f->model, wire.data, wire.size);
    free(wire.data);
    return qn_import_onnx(model, f->ctx, f->model);
}

#define ENTRY(key, value) "external_data { key: '" key "' value: '" value "' } "

static void test_external(void **state)
{
    folder *f = *state;
    qn_model *model;
    const qn_status status = load_external(
        &model, f, ENTRY("location", "data") ENTRY("offset", "8") ENTRY("length", "8"));
    if (status != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    const float *w = model->graph->outputs[0]->data->data;
    assert_true(w[0] == 2 && w[1] == 3);
    assert_int_equal(model->n_maps, 2); /* the model, and the data once */
    qn_model_free(model);
    assert_int_equal(load_external(&model, f, ENTRY("location", "./data")), QN_OK);
    qn_model_free(model);
}

static void test_bad_external(void **state)
{
    folder *f = *state;
    static const struct {
        const char *entries, *message;
    } cases[] = {
        {ENTRY("location", "/etc/passwd"), "'/etc/passwd' is outside of the model's folder"},
        {ENTRY("location", "../outside"), "'../outside' is outside of the model's folder"},
        {ENTRY("location", "x/../../outside"), "is outside of the model's folder"},
        {ENTRY("location", ".."), "is outside of the model's folder"},
        {ENTRY("location", ""), "is outside of the model's folder"},
        {ENTRY("location", "link"), "'link' leads out of the model's folder"},
        {ENTRY("location", "missing"), "cannot be found"},
        {ENTRY("location", "fifo"), "not a regular file"},
        {ENTRY("location", "."), "leads out of the model's folder"},
        {ENTRY("location", "data") ENTRY("offset", "9"), "too few for 8 at offset 9"},
        {ENTRY("location", "data") ENTRY("offset", "18446744073709551615"), "too few"},
        {ENTRY("location", "data") ENTRY("offset", "18446744073709551616"), "is no offset"},
        {ENTRY("location", "data") ENTRY("offset", "-1"), "'-1' is no offset"},
        {ENTRY("location", "data") ENTRY("length", "9"), "has 9 bytes where the dimensions"},
        {ENTRY("offset", "0"), "without a location"},
    };
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        qn_model *model;
        const qn_status status = load_external(&model, f, cases[i].entries);
        assert_true(status == QN_E_FORMAT || status == QN_E_IO);
        assert_null(model);
        const char *error = qn_context_error(f->ctx);
        if (!strstr(error, cases[i].message) || strncmp(error, f->model, strlen(f->model)) != 0)
            fail_msg("%s\nis not\n%s", error, cases[i].message);
    }
}

/* ---- Large files ----------------------------------------------------------------------------- */

static size_t put_length(uint8_t *out, uint8_t tag, uint64_t length)
{
    size_t size = 0;
    out[size++] = tag;
    for (; length >= 0x80; length >>= 7)
        out[size++] = (uint8_t)(length | 0x80);
    out[size++] = (uint8_t)length;
    return size;
}

/* A model of 2.5 GB, almost all of it a hole in the file; what comes behind the tensor is read
 * too. */
static void test_beyond_2_gb(void **state)
{
    folder *f = *state;
    const uint64_t elements = 625000000, bytes_raw = elements * 4;
    uint8_t head[64], raw[16], tensor[32];
    static const uint8_t tail[] = {0x62, 3, 0x0a, 1, 'w'}; /* output { name: 'w' } */
    size_t at = 0, size = 0;
    const size_t raw_head = put_length(raw, 0x4a, bytes_raw);
    size += put_length(tensor, 0x08, elements);    /* dims */
    memcpy(tensor + size, "\x10\x01\x42\x01w", 5); /* data_type, name */
    size += 5;
    const uint64_t tensor_size = size + raw_head + bytes_raw;
    uint8_t tensor_head[16];
    const size_t tensor_head_size = put_length(tensor_head, 0x2a, tensor_size);
    memcpy(head, "\x08\x08\x42\x02\x10\x0d", at = 6); /* ir_version: 8 opset_import: 13 */
    at += put_length(head + at, 0x3a, tensor_head_size + tensor_size + sizeof tail);
    memcpy(head + at, tensor_head, tensor_head_size);
    at += tensor_head_size;
    memcpy(head + at, tensor, size);
    at += size;
    memcpy(head + at, raw, raw_head);
    at += raw_head;
    FILE *file = fopen(f->model, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, at, file), at);
    assert_int_equal(fseek(file, (long)(at + bytes_raw), SEEK_SET), 0);
    assert_int_equal(fwrite(tail, 1, sizeof tail, file), sizeof tail);
    fclose(file);
    qn_model *model;
    if (qn_import_onnx(&model, f->ctx, f->model) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    const qn_tensor *data = model->graph->outputs[0]->data;
    assert_int_equal(data->dims[0], elements);
    assert_int_equal(((const uint8_t *)data->data)[bytes_raw - 1], 0);
    qn_model_free(model);
}

/* ---- Values of their own --------------------------------------------------------------------- */

static void test_values(void **state)
{
    (void)state;
    qn_context *ctx;
    qn_arena arena;
    qn_tensor value;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    qn_arena_init(&arena, &ctx->allocator);
    bytes wire = encode(ctx, &qn_onnx_sequence_schema,
                        "elem_type: 1 tensor_values { dims: 1 data_type: 1 float_data: 4 }"
                        "tensor_values { dims: 0 data_type: 1 }");
    assert_int_equal(
        qn_import_onnx_value(&value, ctx, &arena, QN_TYPE_SEQUENCE, wire.data, wire.size), QN_OK);
    assert_int_equal(value.dtype, QN_SEQUENCE);
    const qn_sequence *sequence = value.data;
    assert_int_equal(sequence->count, 2);
    assert_true(*(const float *)sequence->items[0].data == 4);
    assert_int_equal(sequence->items[1].dims[0], 0);
    free(wire.data);
    wire = encode(ctx, &qn_onnx_optional_schema, "elem_type: 1");
    assert_int_equal(
        qn_import_onnx_value(&value, ctx, &arena, QN_TYPE_OPTIONAL, wire.data, wire.size), QN_OK);
    assert_int_equal(value.dtype, QN_NONE);
    free(wire.data);
    qn_arena_free(&arena);
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_large_tensors_stay_in_the_file),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test_setup_teardown(test_external, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_bad_external, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_beyond_2_gb, folder_setup, folder_teardown),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
