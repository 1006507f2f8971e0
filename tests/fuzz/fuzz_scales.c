/* A scale file of a small graph: two convolutions with a Relu between them. What is taken must be
 * usable: the nodes are inserted, and the scales written again are taken again. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ops/infer.h"
#include "quant/insert.h"
#include "quant/scales.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Anything that fails here is a fault of the test. */
static void must(qn_status status)
{
    if (status != QN_OK)
        abort();
}

static qn_value *constant(qn_graph *graph, const char *name, int32_t rank, const int64_t *dims)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_tensor *tensor;
    qn_value *value;
    must(qn_model_tensor(&tensor, graph->model, &type));
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = (float)(i % 7) - 3;
    must(qn_value_constant(&value, graph, name, tensor));
    return value;
}

static qn_value *apply(qn_graph *graph, const qn_op *op, qn_value *x, qn_value *w)
{
    qn_node *node;
    must(qn_node_build(&node, graph, &(qn_node_spec){.op = op, .in = {x, w}, .n_in = w ? 2 : 1}));
    return node->out[0];
}

/* x [1, 2, 4, 4] -> Conv -> Relu -> Conv -> y */
static qn_model *make_model(qn_context *ctx)
{
    qn_model *model;
    qn_value *x;
    must(qn_model_create(&model, ctx));
    qn_graph *graph = model->graph;
    must(qn_value_create(&x, graph, "x"));
    x->type = qn_type_tensor(QN_FLOAT32, 4, (const int64_t[]){1, 2, 4, 4});
    must(qn_graph_add_input(graph, x));
    qn_value *a =
        apply(graph, &qn_op_Conv, x, constant(graph, "w", 4, (const int64_t[]){3, 2, 1, 1}));
    qn_value *b = apply(graph, &qn_op_Relu, a, NULL);
    qn_value *c =
        apply(graph, &qn_op_Conv, b, constant(graph, "v", 4, (const int64_t[]){24, 3, 1, 1}));
    must(qn_graph_add_output(graph, c));
    must(qn_graph_infer(graph));
    return model;
}

static qn_status take(char **text, qn_context *ctx, const qn_scales *scales)
{
    qn_model *model = make_model(ctx);
    qn_quantizer *q = NULL;
    qn_status status = qn_quantizer_create(&q, model, &scales->settings);
    if (status == QN_OK)
        status = qn_scales_apply(q, scales);
    if (status == QN_OK)
        status = qn_scales_write(text, q, scales->model, scales->data, &scales->params);
    if (status == QN_OK)
        status = qn_encodings_apply(q);
    if (status == QN_OK)
        status = qn_quant_insert(q);
    qn_quantizer_free(q);
    qn_model_free(model);
    return status;
}

static void again(qn_context *ctx, const char *text)
{
    qn_scales *scales;
    char *twice = NULL;
    must(qn_scales_read(&scales, ctx, text, strlen(text), "again"));
    must(take(&twice, ctx, scales));
    if (strcmp(text, twice) != 0)
        abort();
    qn_text_free(ctx, twice);
    qn_scales_free(scales);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_scales *scales;
    char *text = NULL;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    qn_status status = qn_scales_read(&scales, ctx, data, size, "input");
    if (status == QN_OK) {
        status = take(&text, ctx, scales);
        if (status == QN_OK)
            again(ctx, text);
        qn_text_free(ctx, text);
        qn_scales_free(scales);
    }
    if (status != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_context_free(ctx);
    return 0;
}
