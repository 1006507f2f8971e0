/* qn_quantize_file: one strategy, and what is said of its file. */
#include <sys/stat.h>

#include "api/save_dir.h"

static int64_t file_size(const char *path)
{
    struct stat status;
    return path && stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

void qn_quantized_tell(qn_report *report, const qn_model *model, const char *path, int opset)
{
    qn_item *root = &report->root, *rest = root->first;
    root->first = root->last = NULL;
    qn_item_text(root, "file", path);
    qn_item_int(root, "opset", opset);
    qn_item_int(root, "bytes_before", file_size(model->path));
    qn_item_int(root, "bytes_after", file_size(path));
    if (root->last) {
        root->last->next = rest;
        while (root->last->next)
            root->last = root->last->next;
    }
}

qn_status qn_quantize_file(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_quantize_file_options *options)
{
    qn_strategies_options strategies = QN_STRATEGIES_OPTIONS_INIT;
    if (options)
        strategies.file = *options;
    return qn_strategies_run(out, ctx, model, &strategies);
}
