/* named MODEL [NAME=FILE]...: runs a model with inputs given by name, random ones for the rest, and tells what
 * comes out. The whole job is one call; options.output_dir would keep the outputs as .npy files. */
#include <quench.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    qn_context *ctx;
    qn_model *model = NULL;
    qn_report *report = NULL;
    char *text = NULL;
    qn_infer_options options = QN_INFER_OPTIONS_INIT;
    if (argc < 2 || qn_context_create(&ctx, NULL) != QN_OK)
        return 2;
    options.inputs = (const char *const *)argv + 2;
    options.n_inputs = (size_t)argc - 2;

    qn_status status = qn_model_load(&model, ctx, argv[1]);
    if (status == QN_OK)
        status = qn_infer_files(&report, ctx, model, &options);
    if (status == QN_OK)
        status = qn_report_text(&text, report);
    if (status == QN_OK)
        fputs(text, stdout);
    else
        fprintf(stderr, "named: %s\n", qn_context_error(ctx));

    qn_text_free(ctx, text);
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
    return status != QN_OK;
}
