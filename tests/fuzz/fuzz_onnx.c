/* Loads a model, infers its shapes once more, lints it for every target, runs the passes and plans
 * it for the reference backend. An input that begins with '#' is in text format, where mutations
 * keep the structure of the file intact. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/buffer.h"
#include "import/import.h"
#include "ops/infer.h"
#include "proto/onnx_schema.h"
#include "quant/lint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static buffer wire_of(qn_context *ctx, const uint8_t *data, size_t size)
{
    buffer out = {NULL, 0};
    qn_proto_tree tree;
    qn_proto_tree_init(&tree, ctx, &qn_onnx_model_schema);
    if (size == 0 || data[0] != '#')
        (void)!buffer_write(&out, data, size);
    else if (qn_proto_parse_text(&tree, (const char *)data, size) == QN_OK &&
             qn_proto_write_wire(&tree, (qn_proto_sink){buffer_write, &out}) != QN_OK)
        abort();
    qn_proto_tree_free(&tree);
    return out;
}

static void ignore(void *user, const qn_lint_finding *finding)
{
    (void)user;
    if (finding->why[0] == 0)
        abort();
}

static void lint(qn_context *ctx, qn_model *model)
{
    const qn_lint_sink sink = {ignore, NULL};
    for (size_t i = 0; i < qn_profiles_count; i++) {
        if (qn_lint(model, &qn_profiles[i], &sink) != QN_OK && qn_context_error(ctx)[0] == 0)
            abort();
    }
}

/* A model that loads need not have a plan: its shapes may depend on inputs in a way that does not
 * fit. But it must say why. */
static void plan(qn_context *ctx, qn_model *model)
{
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    qn_plan *made;
    options.backend = "ref";
    options.threads = 1;
    if (qn_plan_create(&made, ctx, model, &options) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort();
    qn_plan_free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_model *model;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    const buffer wire = wire_of(ctx, data, size);
    if (qn_import_onnx_memory(&model, ctx, wire.data, wire.size) == QN_OK) {
        /* What the loader has inferred once it can infer again. */
        if (qn_graph_infer(model->graph) != QN_OK)
            abort();
        lint(ctx, model);
        plan(ctx, model);
    } else if (qn_context_error(ctx)[0] == 0) {
        abort(); /* a failure without a message */
    }
    qn_model_free(model);
    qn_context_free(ctx);
    free(wire.data);
    return 0;
}
