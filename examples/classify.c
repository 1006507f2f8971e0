/* classify MODEL [IMAGE.npy]: which class an image belongs to. Without one it looks at darkness. */
#include <quench.h>
#include <stdio.h>
#include <stdlib.h>

static qn_context *ctx;
static float dark[28 * 28]; /* examples/fashion.onnx takes float32[N,1,28,28] */

static void must(qn_status status)
{
    if (status != QN_OK) {
        fprintf(stderr, "classify: %s\n", qn_context_error(ctx));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    qn_tensor image = {QN_FLOAT32, 4, {1, 1, 28, 28}, dark}, *file = NULL;
    if (argc < 2 || qn_context_create(&ctx, NULL) != QN_OK)
        return 2;
    must(qn_model_load(&model, ctx, argv[1]));
    if (argc > 2)
        must(qn_tensor_load(&file, ctx, argv[2], NULL));
    must(qn_plan_create(&plan, ctx, model, NULL));
    must(qn_session_create(&session, ctx, plan));
    must(qn_session_run(session, file ? file : &image, 1));

    const float *scores = qn_session_output(session, 0)->data, *best = scores; /* [1, 10] */
    for (int i = 1; i < 10; i++)
        best = scores[i] > *best ? &scores[i] : best;
    printf("class %d with score %.3f\n", (int)(best - scores), (double)*best);

    qn_session_free(session);
    qn_plan_free(plan);
    qn_tensor_free(file);
    qn_model_free(model);
    qn_context_free(ctx);
    return 0;
}
