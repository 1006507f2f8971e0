/* quantize MODEL DATA [FOLDER]: writes FOLDER/<name>_quantize.onnx, with integers where the model
 * had floats, and tells how far the two are apart. DATA: samples as `quench quant -d` takes
 * them. */
#include <err.h>
#include <quench.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_report *report = NULL;
    char *text = NULL;
    qn_quantize_file_options options = QN_QUANTIZE_FILE_OPTIONS_INIT;
    if (argc < 3)
        errx(2, "usage: quantize MODEL DATA [FOLDER]");
    options.quantize.calibrate.data.data = (const char *const *)argv + 2;
    options.quantize.calibrate.data.n_data = 1;
    options.save_dir = argv[3];
    if (qn_context_create(&ctx, NULL) || qn_model_load(&model, ctx, argv[1]) ||
        qn_quantize_file(&report, ctx, model, &options) || qn_report_text(&text, report))
        errx(1, "%s", qn_context_error(ctx));
    fputs(text, stdout);
    qn_text_free(ctx, text);
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
}
