/* named MODEL [NAME=FILE]...: runs a model with inputs from files, random ones for the rest, and
 * tells what comes out. The whole job is one call; options.output_dir would keep the outputs as
 * .npy files. */
#include <err.h>
#include <quench.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_report *report = NULL;
    char *text = NULL;
    qn_infer_options options = QN_INFER_OPTIONS_INIT;
    if (argc < 2)
        errx(2, "usage: named MODEL [NAME=FILE]...");
    options.inputs = (const char *const *)argv + 2;
    options.n_inputs = (size_t)argc - 2;
    if (qn_context_create(&ctx, NULL) || qn_model_load(&model, ctx, argv[1]) ||
        qn_infer_files(&report, ctx, model, &options) || qn_report_text(&text, report))
        errx(1, "%s", qn_context_error(ctx));
    fputs(text, stdout);
    qn_text_free(ctx, text);
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
}
