/* classify MODEL IMAGE.npy: which class an image belongs to, by the largest score. */
#include <err.h>
#include <quench.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_plan *plan = NULL;
    qn_session *session = NULL;
    qn_tensor *image = NULL;
    if (argc != 3)
        errx(2, "usage: classify MODEL IMAGE.npy");
    if (qn_context_create(&ctx, NULL) || qn_model_load(&model, ctx, argv[1]) ||
        qn_plan_create(&plan, ctx, model, NULL) || qn_session_create(&session, ctx, plan) ||
        qn_tensor_load(&image, ctx, argv[2], NULL) || qn_session_run(session, image, 1))
        errx(1, "%s", qn_context_error(ctx));
    const qn_tensor *y = qn_session_output(session, 0); /* float32[1, classes] */
    const float *scores = y->data, *best = scores;
    for (int64_t i = 1; i < qn_tensor_count(y); i++)
        best = scores[i] > *best ? &scores[i] : best;
    printf("class %d with score %.3f\n", (int)(best - scores), (double)*best);
    qn_tensor_free(image);
    qn_session_free(session);
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
}
