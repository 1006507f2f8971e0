/* The ONNX importer: structure of graphs, and how it refuses bad files. */
#include "onnx_test.h"

#include "fault.h"
#include "ops/op.h"

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void test_small_graph(void **state)
{
    (void)state;
    loaded l = expect_model(
        "ir_version: 8 producer_name: 'p' producer_version: '1' domain: 'd' model_version: 7\n"
        "doc_string: 'md' metadata_props { key: 'k' value: 'v' }\n"
        "opset_import { version: 13 } opset_import { domain: 'x' version: 2 }\n"
        "graph { name: 'g' doc_string: 'gd'\n"
        "node { input: ['x', 'w'] output: 'y' op_type: 'Add' name: 'add' doc_string: 'nd' }\n"
        "node { input: 'y' output: 'z' op_type: 'Relu' }\n"
        "initializer { dims: 2 data_type: 1 float_data: [1, 2] name: 'w' doc_string: 'wd' }\n"
        "input { name: 'x' doc_string: 'xd' type { tensor_type { elem_type: 1 shape {\n"
        "  dim { dim_param: 'N' } dim { dim_value: 2 } } } } }\n"
        "output { name: 'z' } }");
    const qn_model *m = l.model;
    assert_string_equal(m->producer, "p");
    assert_string_equal(m->producer_version, "1");
    assert_string_equal(m->domain, "d");
    assert_string_equal(m->doc, "md");
    assert_int_equal(m->model_version, 7);
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->metadata.count, 1);
    assert_string_equal(m->metadata.at[0].key, "k");
    assert_string_equal(m->metadata.at[0].value, "v");
    assert_int_equal(m->n_opsets, 2);
    assert_int_equal(m->opsets[1].version, 2);
    const qn_graph *g = m->graph;
    assert_string_equal(g->name, "g");
    assert_string_equal(g->doc, "gd");
    assert_int_equal(g->n_nodes, 2);
    assert_string_equal(g->first->name, "add");
    assert_string_equal(g->first->doc, "nd");
    assert_string_equal(g->last->name, "Relu_z");
    assert_int_equal(g->n_inputs, 1);
    assert_string_equal(g->inputs[0]->name, "x");
    assert_string_equal(g->inputs[0]->doc, "xd");
    assert_string_equal(g->inputs[0]->type.dims[0].symbol, "N");
    assert_int_equal(g->inputs[0]->type.dims[1].value, 2);
    const qn_value *w = qn_graph_value(g, "w");
    assert_ptr_equal(g->first->in[1], w);
    assert_string_equal(w->doc, "wd");
    assert_true(((const float *)w->data->data)[1] == 2.0f);
    /* Types are inferred. */
    assert_int_equal(g->outputs[0]->type.dtype, QN_FLOAT32);
    assert_string_equal(g->outputs[0]->type.dims[0].symbol, "N");
    unload(&l);
}

static void test_nodes_are_sorted(void **state)
{
    (void)state;
    loaded l = expect_model(MODEL("node { input: 'c' output: 'd' op_type: 'Relu' name: '4' }"
                                  "node { input: 'b' output: 'c' op_type: 'Relu' name: '3' }"
                                  "node { input: 'x' output: 'a' op_type: 'Relu' name: '1' }"
                                  "node { input: 'a' output: 'b' op_type: 'Relu' name: '2' }"
                                  "input " FLOATS("x", DIM(1)) "output { name: 'd' }"));
    const qn_node *node = l.model->graph->first;
    for (int i = 1; i <= 4; i++, node = node->next)
        assert_int_equal(node->name[0], '0' + i);
    unload(&l);
}

static void test_long_reversed_chain(void **state)
{
    (void)state;
    enum { LENGTH = 50000 };
    char *text = malloc(LENGTH * 80 + 500), *at = text;
    at += sprintf(at, "ir_version: 8 opset_import { version: 13 } graph { name: 'g' ");
    for (int i = LENGTH; i > 0; i--)
        at += sprintf(at, "node { input: 'v%d' output: 'v%d' op_type: 'Relu' }\n", i - 1, i);
    sprintf(at, "input { name: 'v0' } output { name: 'v%d' } }", LENGTH);
    loaded l = expect_model(text);
    assert_int_equal(l.model->graph->n_nodes, LENGTH);
    assert_string_equal(l.model->graph->first->in[0]->name, "v0");
    unload(&l);
    free(text);
}

static void test_initializer_that_is_an_input(void **state)
{
    (void)state;
    loaded l = expect_model(
        MODEL("node { input: ['x', 'w'] output: 'y' op_type: 'Add' }"
              "initializer { dims: 1 data_type: 1 float_data: 3 name: 'w' }"
              "input " FLOATS("w", DIM(1)) "input " FLOATS("x", DIM(1)) "output { name: 'y' }"));
    assert_int_equal(l.model->graph->n_inputs, 1);
    assert_string_equal(l.model->graph->inputs[0]->name, "x");
    assert_non_null(qn_graph_value(l.model->graph, "w")->data);
    unload(&l);
}

static void test_constant_nodes(void **state)
{
    (void)state;
    loaded l = expect_model(MODEL(
        "node { output: 'a' op_type: 'Constant' attribute { name: 'value_int' i: -3 type: INT } }"
        "node { output: 'b' op_type: 'Constant'"
        "  attribute { name: 'value_floats' floats: [1, 2.5] type: FLOATS } }"
        "node { output: 'c' op_type: 'Constant'"
        "  attribute { name: 'value_strings' strings: ['p', 'qr'] type: STRINGS } }"
        "node { output: 'd' op_type: 'Constant' attribute { name: 'value' type: TENSOR"
        "  t { dims: 2 data_type: 10 int32_data: [15360, 16384] } } }"
        "node { output: 'e' op_type: 'Constant' attribute { name: 'sparse_value'"
        "  type: SPARSE_TENSOR sparse_tensor { values { dims: 1 data_type: 7 int64_data: 9 }"
        "  indices { dims: [1, 2] data_type: 7 int64_data: [1, 0] } dims: [2, 2] } } }"
        "output { name: 'a' } output { name: 'b' } output { name: 'c' } output { name: 'd' }"
        "output { name: 'e' }"));
    const qn_graph *g = l.model->graph;
    assert_int_equal(g->n_nodes, 0);
    assert_int_equal(((const int64_t *)g->outputs[0]->data->data)[0], -3);
    assert_int_equal(g->outputs[0]->data->rank, 0);
    assert_true(((const float *)g->outputs[1]->data->data)[1] == 2.5f);
    const qn_string *strings = g->outputs[2]->data->data;
    assert_int_equal(strings[1].length, 2);
    assert_memory_equal(strings[1].text, "qr", 2);
    assert_int_equal(((const uint16_t *)g->outputs[3]->data->data)[1], 16384);
    const int64_t *dense = g->outputs[4]->data->data;
    assert_true(dense[0] == 0 && dense[1] == 0 && dense[2] == 9 && dense[3] == 0);
    unload(&l);
}

static void test_old_forms_are_upgraded(void **state)
{
    (void)state;
    /* Squeeze got its axes as an attribute until opset 13; consumed_inputs went with opset 6. */
    loaded l = expect_model("ir_version: 3 opset_import { version: 5 } graph { name: 'g'"
                            "node { input: 'x' output: 'y' op_type: 'Squeeze'"
                            "       attribute { name: 'axes' ints: [0] type: INTS } }"
                            "node { input: 'y' output: 'z' op_type: 'Relu'"
                            "       attribute { name: 'consumed_inputs' ints: [0] type: INTS } }"
                            "input " FLOATS("x", DIM(1) DIM(5)) "output { name: 'z' } }");
    const qn_node *squeeze = l.model->graph->first;
    assert_int_equal(squeeze->n_in, 2);
    assert_int_equal(((const int64_t *)squeeze->in[1]->data->data)[0], 0);
    assert_int_equal(l.model->graph->outputs[0]->type.rank, 1);
    assert_int_equal(l.model->graph->outputs[0]->type.dims[0].value, 5);
    unload(&l);
}

static void count_warning(void *user, qn_log_level level, const char *line)
{
    if (level == QN_LOG_WARN && strstr(line, "opset 99 is newer than 23"))
        ++*(int *)user;
}

/* Heard without asking for more than warnings. */
static void test_newer_opsets_are_warned_of(void **state)
{
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model;
    int count = 0;
    (void)state;
    options.log_level = QN_LOG_WARN;
    options.log = count_warning;
    options.log_user = &count;
    assert_int_equal(qn_context_create(&ctx, &options), QN_OK);
    const bytes wire = encode(ctx, &qn_onnx_model_schema,
                              "ir_version: 13 opset_import { version: 99 } graph { name: 'g' }");
    assert_int_equal(qn_import_onnx_memory(&model, ctx, wire.data, wire.size), QN_OK);
    assert_int_equal(count, 1);
    qn_model_free(model);
    qn_context_free(ctx);
    free(wire.data);
}

static void test_newer_opsets(void **state)
{
    (void)state;
    static const char form[] = "ir_version: 13 opset_import { version: 99 } graph { name: 'g'"
                               " node { input: 'x' output: 'y' op_type: 'Relu' name: 'n' }"
                               " input { name: 'x' type { tensor_type { elem_type: %d } } }"
                               " output { name: 'y' } }";
    char text[512];
    snprintf(text, sizeof text, form, QN_FLOAT32);
    loaded l = expect_model(text);
    assert_int_equal(l.model->opsets[0].version, 99);
    unload(&l);
    snprintf(text, sizeof text, form, QN_STRING);
    expect_failure(text, QN_E_UNSUPPORTED, "opset 99, newer than 23: node 'n' (Relu)");
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void test_bad_structure(void **state)
{
    (void)state;
    expect_failure("", QN_E_FORMAT, "it is empty");
    expect_failure("graph {}", QN_E_FORMAT, "IR version is missing");
    expect_failure("ir_version: 8", QN_E_FORMAT, "it has no graph");
    expect_failure("ir_version: 99 graph {}", QN_E_UNSUPPORTED, "IR version 99 is newer than 14");
    expect_failure("ir_version: 8 opset_import { version: 0 } graph {}", QN_E_FORMAT,
                   "the opset of domain 'ai.onnx' has version 0; versions begin with 1");
    expect_failure("ir_version: 8 graph { node { op_type: 'Relu' name: 'n' } }", QN_E_FORMAT,
                   "node 'n' (Relu): the model imports no opset");
    expect_failure(MODEL("node { input: 'x' output: 'y' op_type: 'Relu' name: 'n' }"), QN_E_FORMAT,
                   "node 'n' (Relu): nothing computes its input 'x'");
    expect_failure(MODEL("node { input: 'b' output: 'a' op_type: 'Relu' name: 'n' }"
                         "node { input: 'a' output: 'b' op_type: 'Relu' }"),
                   QN_E_FORMAT, "node 'n' (Relu) depends on its own output");
    expect_failure(MODEL("node { input: 'a' output: 'a' op_type: 'Relu' }"), QN_E_FORMAT,
                   "node of output 'a' (Relu) depends on its own output");
    expect_failure(MODEL("input { name: 'x' } input { name: 'x' }"), QN_E_FORMAT,
                   "the value 'x' is defined twice");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Relu' }"
                         "node { input: 'x' output: 'y' op_type: 'Relu' }"),
                   QN_E_FORMAT, "the value 'y' is defined twice");
    expect_failure(MODEL("initializer { name: 'w' data_type: 1 float_data: 1 }"
                         "initializer { name: 'w' data_type: 1 float_data: 1 }"),
                   QN_E_FORMAT, "the value 'w' is defined twice");
    expect_failure(MODEL("output { name: 'y' }"), QN_E_FORMAT,
                   "graph 'g': nothing computes the output 'y'");
    expect_failure(MODEL("input { type { } }"), QN_E_FORMAT, "a value has no name");
    expect_failure(MODEL("input { name: 'a\\0b' }"), QN_E_FORMAT, "contains a zero byte");
}

static void test_bad_nodes(void **state)
{
    (void)state;
    expect_failure(MODEL("node { op_type: 'Frobnicate' name: 'n' }"), QN_E_UNSUPPORTED,
                   "node 'n' (Frobnicate): no operator 'Frobnicate' of domain 'ai.onnx' is known");
    expect_failure(MODEL("node { op_type: 'Relu' domain: 'acme' name: 'n' }"), QN_E_UNSUPPORTED,
                   "no operator 'Relu' of domain 'acme'");
    expect_failure("ir_version: 3 opset_import { version: 8 } graph { input { name: 'x' }"
                   "node { input: ['x', 'x'] output: 'y' op_type: 'GatherND' } }",
                   QN_E_UNSUPPORTED, "opset 8 of domain 'ai.onnx' has no 'GatherND'");
    expect_failure(MODEL("input { name: 'x' }"
                         "node { input: ['x', 'x'] output: 'y' op_type: 'Relu' name: 'n' }"),
                   QN_E_FORMAT, "node 'n' (Relu): has 2 inputs, the operator takes 1");
    expect_failure(MODEL("input { name: 'x' }"
                         "node { input: 'x' output: ['y', 'z'] op_type: 'Relu' name: 'n' }"),
                   QN_E_FORMAT, "node 'n' (Relu): has 2 outputs, the operator makes 1");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Relu'"
                         " name: 'n' attribute { name: 'beta' f: 1 type: FLOAT } }"),
                   QN_E_UNSUPPORTED,
                   "node 'n' (Relu): opset 13 is not known to have an attribute 'beta' here");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Concat'"
                         " name: 'n' attribute { name: 'axis' f: 1 type: FLOAT } }"),
                   QN_E_FORMAT,
                   "node 'n' (Concat): attribute 'axis': it is a float instead of an int");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Concat'"
                         " name: 'n' attribute { name: 'axis' i: 1 type: INT }"
                         " attribute { name: 'axis' i: 1 type: INT } }"),
                   QN_E_FORMAT, "attribute 'axis' is there twice");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Concat'"
                         " name: 'n' }"),
                   QN_E_FORMAT, "node 'n' (Concat): attribute 'axis' is missing");
    expect_failure(MODEL("node { output: 'y' op_type: 'Constant' name: 'n' }"), QN_E_FORMAT,
                   "node 'n' (Constant): a constant has exactly one value");
}

/* What a file says twice, in two ways. */
static void test_contradictions(void **state)
{
    (void)state;
    static const char twice[] =
        "ir_version: 8 opset_import { version: 13 }"
        "opset_import { domain: 'ai.onnx' version: %d } graph { name: 'g' }";
    char text[256];
    snprintf(text, sizeof text, twice, 13);
    loaded l = expect_model(text);
    unload(&l);
    snprintf(text, sizeof text, twice, 9);
    expect_failure(text, QN_E_FORMAT, "the opsets 13 and 9 of domain 'ai.onnx' are both imported");
    expect_failure(MODEL("input " FLOATS(
                       "x", DIM(2)) "node { input: 'x' output: 'y'"
                                    " op_type: 'Relu' } output { name: 'y' type { tensor_type {"
                                    " elem_type: 7 } } }"),
                   QN_E_FORMAT, "output 'y' is declared as int64 and computed as float32");
    expect_failure(MODEL("initializer { name: 'w' data_type: 1 dims: 1 float_data: 1"
                         " raw_data: 'abcd' }"),
                   QN_E_FORMAT, "initializer 'w': raw data and typed data are both there");
}

/* -1 is what some exporters write for a size that is not known; other numbers below 0 mean
 * nothing. */
static void test_negative_dimensions(void **state)
{
    (void)state;
    loaded l = expect_model(MODEL("input " FLOATS("x", DIM(-1) DIM(2)) "output { name: 'x' }"));
    assert_int_equal(l.model->graph->inputs[0]->type.dims[0].value, -1);
    unload(&l);
    expect_failure(MODEL("input " FLOATS("x", DIM(2) DIM(-5)) "output { name: 'x' }"), QN_E_FORMAT,
                   "value 'x': a dimension is -5");
}

/* Five outputs were the training form; a file for inference may name them all the same. */
static void test_batchnorm_of_training(void **state)
{
    (void)state;
    static const char form[] =
        "ir_version: 3 opset_import { version: 7 } graph { name: 'g'"
        " node { input: ['x', 's', 's', 's', 's'] output: ['y', 'm', 'v', 'sm', 'sv']"
        " op_type: 'BatchNormalization' name: 'n' }"
        " input " FLOATS("x", DIM(1) DIM(2)
                                  DIM(3)) " input " FLOATS("s", DIM(2)) " output { name: '%s' } }";
    char text[1024];
    snprintf(text, sizeof text, form, "y");
    loaded l = expect_model(text);
    assert_int_equal(l.model->graph->first->n_out, 1);
    unload(&l);
    snprintf(text, sizeof text, form, "sv");
    expect_failure(text, QN_E_UNSUPPORTED,
                   "node 'n' (BatchNormalization): this is the training form");
}

/* A first dimension that is not known yet is no fault: it must be 1 when the node runs. */
static void test_string_normalizer_with_open_dims(void **state)
{
    (void)state;
    loaded l = expect_model(MODEL(
        "input { name: 'x' type { tensor_type { elem_type: 8 shape { dim { dim_param: 'N' } dim { "
        "dim_param: 'C' } } } } } node { input: 'x' output: 'y' op_type: 'StringNormalizer' }"
        "output { name: 'y' }"));
    char text[64];
    qn_type_format(text, sizeof text, &l.model->graph->outputs[0]->type);
    assert_string_equal(text, "string[1,?]");
    unload(&l);
    expect_failure(
        MODEL("input { name: 'x' type { tensor_type { elem_type: 8 shape { " DIM(2) DIM(
            3) "} } } } node { input: 'x' output: 'y' op_type: 'StringNormalizer' name: 'n' }"
               "output { name: 'y' }"),
        QN_E_INVALID, "node 'n' (StringNormalizer): the input must be [C] or [1, C]");
}

/* 2^40 x 2^40: neither declared nor inferred. */
static void test_sizes_that_overflow(void **state)
{
    (void)state;
    expect_failure(
        MODEL("input " FLOATS("x", DIM(1099511627776) DIM(1099511627776)) "output { name: 'x' }"),
        QN_E_FORMAT, "value 'x': no memory can hold a tensor float32[1099511627776,");
    expect_failure(
        MODEL("input " FLOATS("x", DIM(2)) "node { input: 'x' output: 'y' op_type: 'Neg' }"
                                           "output " FLOATS("y", "dim { dim_param: 'N' } " DIM(
                                                                     4611686018427387904) DIM(2))),
        QN_E_FORMAT, "value 'y': no memory can hold a tensor float32[N,46116");
    expect_failure(MODEL("input " FLOATS("x", DIM(1099511627776) DIM(1)) "input " FLOATS(
                       "y", DIM(1) DIM(1099511627776)) "node { input: ['x', 'y'] output: 'z' "
                                                       "op_type: 'Add' name: 'sum' }"
                                                       "output { name: 'z' }"),
                   QN_E_INVALID,
                   "node 'sum' (Add): output 0 would be float32[1099511627776,1099511627776], "
                   "which no memory can hold");
}

#define RANGE(type, field, start, limit, delta)                                                    \
    MODEL("initializer { name: 'a' data_type: " type " " field ": " start " } "                    \
          "initializer { name: 'b' data_type: " type " " field ": " limit " } "                    \
          "initializer { name: 'c' data_type: " type " " field ": " delta " } "                    \
          "node { input: ['a', 'b', 'c'] output: 'y' op_type: 'Range' name: 'n' }"                 \
          "output { name: 'y' }")

/* Too many elements is not the same as no end. */
static void test_ranges_without_end(void **state)
{
    (void)state;
    static const char endless[] = "node 'n' (Range): start, limit and delta give no finite range",
                      large[] = "node 'n' (Range): start, limit and delta give a range too large "
                                "for any tensor";
    expect_failure(RANGE("1", "float_data", "0", "1e30", "1"), QN_E_INVALID, large);
    expect_failure(RANGE("1", "float_data", "0", "1", "0"), QN_E_INVALID, endless);
    expect_failure(RANGE("7", "int64_data", "-9223372036854775808", "9223372036854775807", "1"),
                   QN_E_INVALID, large);
    expect_failure(RANGE("7", "int64_data", "0", "1", "0"), QN_E_INVALID, endless);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    qn_context *plain;
    assert_int_equal(qn_context_create(&plain, NULL), QN_OK);
    const bytes wire = encode(
        plain, &qn_onnx_model_schema,
        FUNCTIONS("functions { name: 'f' domain: 'my' input: 'a' output: 'r' attribute: 'axes'"
                  "  opset_import { version: 11 }"
                  "  node { input: 'a' output: 'r' op_type: 'Squeeze'"
                  "         attribute { name: 'axes' type: INTS ref_attr_name: 'axes' } } }",
                  "node { input: 'x' output: 'y' op_type: 'f' domain: 'my'"
                  "       attribute { name: 'axes' ints: [0] type: INTS } }"
                  "node { input: ['y', 'w'] output: 'z' op_type: 'Add' }"
                  "initializer { dims: 5 data_type: 1 name: 'w' raw_data: '01234567890123456789' }"
                  "input " FLOATS("x", DIM(1) DIM(5)) "output { name: 'z' }"));
    qn_context_free(plain);
    qn_status status = QN_E_NOMEM;
    long steps = 0;
    for (; status != QN_OK; steps++) {
        fault injected = {.until = steps + 1};
        qn_context *ctx;
        qn_model *model;
        assert_int_equal(fault_context(&ctx, &injected), QN_OK);
        status = qn_import_onnx_memory(&model, ctx, wire.data, wire.size);
        assert_int_equal(status, injected.struck ? QN_E_NOMEM : QN_OK);
        qn_model_free(model);
        qn_context_free(ctx);
        assert_int_equal(injected.live, 0);
    }
    assert_true(steps > 10);
    free(wire.data);
}

static void test_truncated_everywhere(void **state)
{
    (void)state;
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    const bytes wire =
        encode(ctx, &qn_onnx_model_schema,
               MODEL("node { input: ['x', 'w'] output: 'y' op_type: 'Add' name: 'add' }"
                     "initializer { dims: 2 data_type: 1 float_data: [1, 2] name: 'w' }"
                     "input " FLOATS("x", DIM(2)) "output { name: 'y' }"));
    for (size_t size = 0; size < wire.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        qn_model *model;
        memcpy(copy, wire.data, size);
        const qn_status status = qn_import_onnx_memory(&model, ctx, copy, size);
        assert_true(status == QN_OK || status == QN_E_FORMAT);
        qn_model_free(model);
        free(copy);
    }
    for (size_t i = 0; i < wire.size * 8; i++) {
        qn_model *model;
        wire.data[i / 8] ^= (uint8_t)(1 << i % 8);
        (void)!qn_import_onnx_memory(&model, ctx, wire.data, wire.size);
        qn_model_free(model);
        wire.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    qn_context_free(ctx);
    free(wire.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_graph),
        cmocka_unit_test(test_nodes_are_sorted),
        cmocka_unit_test(test_long_reversed_chain),
        cmocka_unit_test(test_initializer_that_is_an_input),
        cmocka_unit_test(test_constant_nodes),
        cmocka_unit_test(test_old_forms_are_upgraded),
        cmocka_unit_test(test_newer_opsets),
        cmocka_unit_test(test_newer_opsets_are_warned_of),
        cmocka_unit_test(test_bad_structure),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_negative_dimensions),
        cmocka_unit_test(test_batchnorm_of_training),
        cmocka_unit_test(test_bad_nodes),
        cmocka_unit_test(test_string_normalizer_with_open_dims),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_ranges_without_end),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_truncated_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
