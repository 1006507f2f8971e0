/* ONNX's tables: their own order and references, and a small model through both formats. */
#include "proto_test.h"

#include "proto/onnx_schema.h"

static size_t check_schema(const qn_proto_schema *schema, const qn_proto_schema **seen,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (seen[i] == schema)
            return count;
    }
    assert_true(count < 64);
    seen[count++] = schema;
    for (size_t i = 0; i < schema->count; i++) {
        const qn_proto_field *field = &schema->fields[i];
        assert_true(i == 0 || field[-1].number < field->number);
        assert_true((field->kind == QN_PROTO_MESSAGE) == (field->message != NULL));
        assert_true((field->kind == QN_PROTO_ENUM) == (field->names != NULL));
        if (field->message)
            count = check_schema(field->message, seen, count);
    }
    return count;
}

static void test_tables(void **state)
{
    (void)state;
    const qn_proto_schema *seen[64];
    size_t count = check_schema(&qn_onnx_model_schema, seen, 0);
    assert_int_equal(count, 28);
    count = check_schema(&qn_onnx_optional_schema, seen, count);
    assert_int_equal(count, 31);
}

static void test_model(void **state)
{
    (void)state;
    static const char text[] =
        "ir_version: 8 opset_import { version: 13 }\n"
        "graph { name: 'g'\n"
        "  node { input: ['x', 'w'] output: 'y' op_type: 'Conv'\n"
        "         attribute { name: 'pads' ints: [1, 1, 1, 1] type: INTS } }\n"
        "  initializer { dims: [2, 3] data_type: 1 name: 'w' raw_data: '\\x00\\x00\\x80\\x3f' }\n"
        "  input { name: 'x' type { tensor_type { elem_type: 1 shape {\n"
        "            dim { dim_param: 'N' } dim { dim_value: 3 } } } } } }";
    qn_context *ctx = context_new();
    qn_proto_tree from_text, tree;
    memory *wire = malloc(sizeof *wire);
    qn_proto_tree_init(&from_text, ctx, &qn_onnx_model_schema);
    qn_proto_tree_init(&tree, ctx, &qn_onnx_model_schema);
    if (qn_proto_parse_text(&from_text, text, sizeof text - 1) != QN_OK)
        fail_msg("%s", qn_context_error(ctx));
    assert_int_equal(qn_proto_write_wire(&from_text, memory_sink(wire)), QN_OK);
    assert_int_equal(qn_proto_parse_wire(&tree, wire->data, wire->size), QN_OK);
    const qn_proto_message *graph = qn_proto_get_message(&tree.root, QN_ONNX_MODEL_GRAPH);
    const qn_proto_message *node = qn_proto_message_at(graph, QN_ONNX_GRAPH_NODE, 0);
    assert_int_equal(qn_proto_count(node, QN_ONNX_NODE_INPUT), 2);
    assert_memory_equal(qn_proto_string_at(node, QN_ONNX_NODE_INPUT, 1).text, "w", 1);
    const qn_proto_message *pads = qn_proto_message_at(node, QN_ONNX_NODE_ATTRIBUTE, 0);
    assert_int_equal(qn_proto_int(pads, QN_ONNX_ATTRIBUTE_TYPE, 0), QN_ONNX_TYPE_INTS);
    assert_int_equal(qn_proto_count(pads, QN_ONNX_ATTRIBUTE_INTS), 4);
    const qn_proto_message *w = qn_proto_message_at(graph, QN_ONNX_GRAPH_INITIALIZER, 0);
    assert_int_equal(qn_proto_string(w, QN_ONNX_TENSOR_RAW_DATA).length, 4);
    qn_proto_tree_free(&from_text);
    qn_proto_tree_free(&tree);
    qn_context_free(ctx);
    free(wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
