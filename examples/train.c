/* Trains a classifier for some steps: train MODEL.onnx SAMPLES LABELS FOLDER.
 *
 * SAMPLES and LABELS are what docs/data.md allows, as an .npy file and a list of classes. The
 * trained model is written into FOLDER, and the report, with the loss of every epoch, goes to
 * standard output as JSON. */
#include <stdio.h>
#include <stdlib.h>

#include <quench.h>

static int fail(qn_context *ctx, qn_status status)
{
    fprintf(stderr, "train: %s\n", status == QN_OK ? "out of memory" : qn_context_error(ctx));
    return EXIT_FAILURE;
}

static int train(qn_context *ctx, qn_model *model, char **arguments)
{
    const char *const samples[] = {arguments[0]};
    qn_train_options options = QN_TRAIN_OPTIONS_INIT;
    qn_report *report;
    options.data.data = samples;
    options.data.n_data = 1;
    options.data.labels = arguments[1];
    options.save_dir = arguments[2];
    options.iterations = 10;
    options.batch = 2;
    options.rate = 0.001;
    const qn_status status = qn_train_run(&report, ctx, model, &options);
    if (status != QN_OK)
        return fail(ctx, status);
    char *text = NULL;
    const qn_status told = qn_report_json(&text, report);
    if (told == QN_OK)
        puts(text);
    qn_text_free(ctx, text);
    qn_report_free(report);
    return told == QN_OK ? EXIT_SUCCESS : fail(ctx, told);
}

int main(int argc, char **argv)
{
    qn_context *ctx;
    qn_model *model;
    if (argc != 5) {
        fprintf(stderr, "train: usage: train MODEL.onnx SAMPLES LABELS FOLDER\n");
        return 2;
    }
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return fail(ctx, QN_OK);
    const qn_status status = qn_model_load(&model, ctx, argv[1]);
    const int code = status == QN_OK ? train(ctx, model, argv + 2) : fail(ctx, status);
    if (status == QN_OK)
        qn_model_free(model);
    qn_context_free(ctx);
    return code;
}
