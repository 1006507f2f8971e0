/* Models as text for the tests of the ONNX importer and exporter. */
#ifndef QN_ONNX_TEST_H
#define QN_ONNX_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/import.h"
#include "proto/onnx_schema.h"

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static inline qn_status bytes_write(void *user, const void *data, size_t size)
{
    bytes *b = user;
    b->data = realloc(b->data, b->size + size + 1);
    assert_non_null(b->data);
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return QN_OK;
}

/* Wire bytes of a message in text form; to be freed. */
static inline bytes encode(qn_context *ctx, const qn_proto_schema *schema, const char *text)
{
    bytes out = {NULL, 0};
    qn_proto_tree tree;
    qn_proto_tree_init(&tree, ctx, schema);
    if (qn_proto_parse_text(&tree, text, strlen(text)) != QN_OK)
        fail_msg("%s in:\n%s", qn_context_error(ctx), text);
    assert_int_equal(qn_proto_write_wire(&tree, (qn_proto_sink){bytes_write, &out}), QN_OK);
    qn_proto_tree_free(&tree);
    return out;
}

/* A fixture: context, model and the bytes that the model points into. */
typedef struct loaded {
    qn_context *ctx;
    bytes wire;
    qn_model *model;
} loaded;

static inline qn_status load_wire(loaded *l, bytes wire)
{
    l->wire = wire;
    assert_int_equal(qn_context_create(&l->ctx, NULL), QN_OK);
    return qn_import_onnx_memory(&l->model, l->ctx, wire.data, wire.size);
}

static inline qn_status load_text(loaded *l, const char *text)
{
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    const bytes wire = encode(ctx, &qn_onnx_model_schema, text);
    qn_context_free(ctx);
    return load_wire(l, wire);
}

static inline void unload(loaded *l)
{
    qn_model_free(l->model);
    qn_context_free(l->ctx);
    free(l->wire.data);
}

static inline void expect_failure(const char *text, qn_status status, const char *message)
{
    loaded l;
    assert_int_equal(load_text(&l, text), status);
    if (!strstr(qn_context_error(l.ctx), message))
        fail_msg("\"%s\" does not contain \"%s\"", qn_context_error(l.ctx), message);
    unload(&l);
}

static inline loaded expect_model(const char *text)
{
    loaded l;
    if (load_text(&l, text) != QN_OK)
        fail_msg("%s", qn_context_error(l.ctx));
    return l;
}

/* A model around the fields of a graph, opset 13. */
#define MODEL(graph) "ir_version: 8 opset_import { version: 13 } graph { name: 'g' " graph " }"
/* The same with functions of a domain of their own, "my". */
#define FUNCTIONS(functions, graph)                                                                \
    "ir_version: 10 opset_import { version: 13 } opset_import { domain: 'my' version: 1 "          \
    "} " functions " graph { name: 'g' " graph " }"
#define FLOATS(name, dims)                                                                         \
    "{ name: '" name "' type { tensor_type { elem_type: 1 shape { " dims " } } } } "
#define DIM(n) "dim { dim_value: " #n " } "

#endif
