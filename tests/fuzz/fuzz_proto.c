/* The first byte chooses: wire or text input, of a model or of a sequence. What parses is written
 * in both formats and must come back the same. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/buffer.h"
#include "proto/onnx_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(qn_status status)
{
    if (status != QN_OK)
        abort();
}

static buffer written(qn_proto_tree *tree, bool text)
{
    buffer out = {NULL, 0};
    const qn_proto_sink sink = {buffer_write, &out};
    must(text ? qn_proto_write_text(tree, sink) : qn_proto_write_wire(tree, sink));
    return out;
}

static void compare(buffer a, buffer b)
{
    if (a.size != b.size || (a.size && memcmp(a.data, b.data, a.size) != 0))
        abort();
}

/* tree -> text -> tree -> text, and the same on the wire. */
static void round_trip(qn_context *ctx, qn_proto_tree *tree, bool text)
{
    qn_proto_tree again;
    const buffer first = written(tree, text);
    qn_proto_tree_init(&again, ctx, tree->root.schema);
    must(text ? qn_proto_parse_text(&again, (const char *)first.data, first.size)
              : qn_proto_parse_wire(&again, first.data, first.size));
    const buffer second = written(&again, text);
    compare(first, second);
    free(first.data);
    free(second.data);
    qn_proto_tree_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_proto_tree tree;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    const bool text = data[0] & 1;
    qn_proto_tree_init(&tree, ctx, data[0] & 2 ? &qn_onnx_sequence_schema : &qn_onnx_model_schema);
    const qn_status status = text ? qn_proto_parse_text(&tree, (const char *)data + 1, size - 1)
                                  : qn_proto_parse_wire(&tree, data + 1, size - 1);
    if (status == QN_OK) {
        round_trip(ctx, &tree, false);
        round_trip(ctx, &tree, true);
    }
    qn_proto_tree_free(&tree);
    qn_context_free(ctx);
    return 0;
}
