/* stream MODEL IN.npy OUT.npy: runs silero's voice detector over chunks [count, 1, samples], each
 * with the state that the one before has left, and writes the probabilities [count]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quench.h"

static qn_context *ctx;

static void must(qn_status status)
{
    if (status == QN_OK)
        return;
    fprintf(stderr, "stream: %s\n", qn_context_error(ctx));
    exit(1);
}

int main(int argc, char **argv)
{
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    qn_tensor *chunks;
    float state[2 * 128] = {0};
    int64_t rate = 16000;
    if (argc != 4 || qn_context_create(&ctx, NULL) != QN_OK)
        return 2;
    must(qn_model_load(&model, ctx, argv[1]));
    must(qn_tensor_load(&chunks, ctx, argv[2], NULL));
    const int64_t count = chunks->dims[0], size = chunks->dims[2];
    const qn_input_shape shape = {.name = "input", .rank = 2, .dims = {1, size}};
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.graph.shapes = &shape;
    options.graph.n_shapes = 1;
    must(qn_plan_create(&plan, ctx, model, &options));
    must(qn_session_create(&session, ctx, plan));
    float *out = malloc((size_t)count * sizeof *out);
    for (int64_t i = 0; out && i < count; i++) {
        const qn_tensor inputs[] = {
            {QN_FLOAT32, 2, {1, size}, (float *)chunks->data + i * size},
            {QN_FLOAT32, 3, {2, 1, 128}, state},
            {QN_INT64, 0, {0}, &rate},
        };
        must(qn_session_run(session, inputs, 3));
        out[i] = *(const float *)qn_session_output(session, 0)->data;
        memcpy(state, qn_session_output(session, 1)->data, sizeof state);
    }
    const qn_tensor all = {QN_FLOAT32, 1, {count}, out};
    must(qn_tensor_save(ctx, &all, argv[3]));
    free(out);
    qn_tensor_free(chunks);
    qn_session_free(session);
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    return 0;
}
