/* roundtrip IN.onnx OUT.onnx [OPSET [EXTERNAL_FROM]]: reads a model and writes it. Exit codes as
 * the command's: 3 where something is not supported. */
#include <stdio.h>
#include <stdlib.h>

#include "export/export.h"
#include "import/import.h"

int main(int argc, char **argv)
{
    qn_context *ctx;
    qn_model *model;
    qn_export_options options = {0, 0};
    if (argc < 3 || qn_context_create(&ctx, NULL) != QN_OK)
        return 2;
    options.opset = argc > 3 ? atoi(argv[3]) : 0;
    options.external_from = argc > 4 ? (size_t)atol(argv[4]) : 0;
    qn_status status = qn_import_onnx(&model, ctx, argv[1]);
    if (status == QN_OK)
        status = qn_export_onnx(ctx, model, argv[2], &options);
    if (status != QN_OK)
        fprintf(stderr, "%s\n", qn_context_error(ctx));
    qn_model_free(model);
    qn_context_free(ctx);
    return status == QN_OK ? 0 : status == QN_E_UNSUPPORTED ? 3 : 1;
}
