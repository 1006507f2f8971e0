/* threads MODEL: four threads share one plan, each with a context and a session of its own. */
#include <err.h>
#include <pthread.h>
#include <quench.h>
#include <stdio.h>

/* What it returns is NULL where all went well: a thread must not end the program while others
 * run. */
static void *work(void *plan)
{
    /* What examples/fashion.onnx takes: float32[N,1,28,28]. */
    const qn_tensor black = {QN_FLOAT32, 4, {1, 1, 28, 28}, (float[28 * 28]){0}};
    qn_context *ctx = NULL;
    qn_session *session = NULL;
    const int failed = qn_context_create(&ctx, NULL) || qn_session_create(&session, ctx, plan) ||
                       qn_session_run(session, &black, 1);
    if (failed)
        warnx("%s", qn_context_error(ctx));
    qn_session_free(session);
    qn_context_free(ctx);
    return failed ? plan : NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    void *failed[4];
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_plan *plan = NULL;
    if (argc != 2)
        errx(2, "usage: threads MODEL");
    if (qn_context_create(&ctx, NULL) || qn_model_load(&model, ctx, argv[1]) ||
        qn_plan_create(&plan, ctx, model, &(qn_plan_options){QN_OPTIONS_VERSION, .threads = 1}))
        errx(1, "%s", qn_context_error(ctx));
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, work, plan))
            errx(1, "cannot begin thread %d", i);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &failed[i]);
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    if (failed[0] || failed[1] || failed[2] || failed[3])
        return 1;
    puts("four threads ran one plan");
}
