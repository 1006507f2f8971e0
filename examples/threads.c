/* threads MODEL: four threads share one plan, each with a context and a session of its own. */
#include <pthread.h>
#include <quench.h>
#include <stdio.h>
#include <stdlib.h>

/* What examples/fashion.onnx takes: float32[N,1,28,28]. */
static const qn_tensor image = {QN_FLOAT32, 4, {1, 1, 28, 28}, (float[28 * 28]){0}};

static void must(qn_status status)
{
    if (status != QN_OK)
        exit(1); /* qn_context_error would say why */
}

static void *work(void *plan)
{
    qn_context *ctx;
    qn_session *session;
    must(qn_context_create(&ctx, NULL));
    must(qn_session_create(&session, ctx, plan));
    must(qn_session_run(session, &image, 1));
    qn_session_free(session);
    qn_context_free(ctx);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    qn_context *ctx;
    qn_model *model;
    qn_plan *plan;
    must(qn_context_create(&ctx, NULL));
    must(qn_model_load(&model, ctx, argc > 1 ? argv[1] : "model.onnx"));
    must(qn_plan_create(&plan, ctx, model, &(qn_plan_options){.threads = 1}));
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, plan);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    return puts("four threads ran one plan") < 0;
}
