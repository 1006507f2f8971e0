/* What every layer gives for the first sample: in the float model, in the quantized one, and in the
 * quantized one when it reads the float model's values. */
#include <string.h>

#include "base/json.h"
#include "compare/dump.h"
#include "compare/layer_comparison.h"
#include "model/save_dir.h"
#include "quantize/traces.h"

const char *const qn_dump_sides[QN_SIDES] = {"float", "fixed", "single"};

typedef struct dump {
    qn_context *ctx;
    qn_arena arena;
    const char *folder;
    qn_layer_comparison comparison;
    /* [comparison.count] */
    bool (*saved)[QN_SIDES];
} dump;

/* ---- Files ----------------------------------------------------------------------------------- */

/* "<side>/0003_<name>.npy"; file systems have limits that names of tensors do not have. */
static const char *file_of(dump *d, const qn_compared_tensor *tensor, int side)
{
    char *path = qn_arena_format(&d->arena, "%s/%04zu_%.180s.npy", qn_dump_sides[side],
                                 (size_t)(tensor - d->comparison.at), tensor->name);
    for (char *c = path ? path + strlen(qn_dump_sides[side]) + 1 : NULL; c && *c; c++) {
        if (*c == '/' || *c == '\\')
            *c = '_';
    }
    return path;
}

static qn_status take(void *user, const qn_compared_tensor *tensor, qn_compared_side side,
                      const qn_tensor *rows)
{
    dump *d = user;
    bool *saved = &d->saved[tensor - d->comparison.at][side];
    if (*saved)
        return QN_OK;
    *saved = true;
    const char *file = file_of(d, tensor, side);
    const char *path = file ? qn_arena_format(&d->arena, "%s/%s", d->folder, file) : NULL;
    QN_TRY_ALLOC(d->ctx, path);
    return qn_tensor_save(d->ctx, rows, path);
}

/* ---- The index ------------------------------------------------------------------------------- */

static bool describe_integers(qn_json *row, qn_context *ctx, const qn_compared_tensor *tensor)
{
    int64_t zero = 0;
    if (tensor->zero)
        qn_load_i64(&zero, tensor->zero->dtype, tensor->zero->data, 0, 1);
    return qn_json_set(row, "type", qn_json_text(ctx, qn_dtype_name(tensor->dtype))) &&
           qn_json_set(row, "scale", qn_json_float(*(const float *)tensor->scale->data)) &&
           qn_json_set(row, "zero_point", qn_json_int(zero)) &&
           (!tensor->through || qn_json_set(row, "through", qn_json_bool(true))) &&
           (!tensor->factor || qn_json_set(row, "balanced", qn_json_bool(true)));
}

static bool describe_shape(qn_json *row, const qn_tensor *tensor)
{
    qn_json *dims = qn_json_array();
    bool good = true;
    for (int32_t i = 0; i < tensor->rank && good; i++)
        good = qn_json_push(dims, qn_json_int(tensor->dims[i]));
    return qn_json_set(row, "shape", dims) && good;
}

/* What else the layer is known by: nodes and tensors that are fused in it, and their operators. */
static bool describe_nodes(qn_json *row, qn_context *ctx, const qn_compared_tensor *tensor)
{
    qn_json *names = qn_json_array(), *ops = qn_json_array();
    bool good = true;
    for (size_t i = 0; i < tensor->n_inside && good; i++) {
        const qn_node *node = tensor->inside[i];
        good = qn_json_push(names, qn_json_text(ctx, node->name)) &&
               qn_json_push(ops, qn_json_text(ctx, node->op->name));
        for (int32_t k = 0; k < node->n_out && good; k++)
            good = !node->out[k] || qn_json_push(names, qn_json_text(ctx, node->out[k]->name));
    }
    good = qn_json_set(row, "names", names) && good;
    return qn_json_set(row, "operators", ops) && good;
}

static bool describe(qn_json *list, dump *d, const qn_compared_tensor *tensor)
{
    qn_context *ctx = d->ctx;
    qn_json *row = qn_json_object();
    bool good = qn_json_set(row, "index", qn_json_int(tensor - d->comparison.at)) &&
                qn_json_set(row, "tensor", qn_json_text(ctx, tensor->name)) &&
                qn_json_set(row, "node", qn_json_text(ctx, tensor->node)) &&
                qn_json_set(row, "operator", qn_json_text(ctx, tensor->op)) &&
                describe_nodes(row, ctx, tensor) && describe_shape(row, &tensor->real);
    for (int side = 0; side < QN_SIDES && good; side++) {
        const char *path = file_of(d, tensor, side);
        good = path && qn_json_set(row, qn_dump_sides[side], qn_json_text(ctx, path));
    }
    if (good && tensor->dtype != QN_UNDEFINED)
        good = describe_integers(row, ctx, tensor);
    return qn_json_push(list, row) && good;
}

static qn_status write_index(dump *d)
{
    qn_context *ctx = d->ctx;
    const char *path = qn_arena_format(&d->arena, "%s/" QN_DUMP_INDEX, d->folder);
    qn_json *root = qn_json_object(), *list = qn_json_array();
    char *text = NULL;
    bool good = path != NULL;
    for (size_t i = 0; i < d->comparison.count && good; i++) {
        if (d->saved[i][QN_SIDE_FLOAT] && d->saved[i][QN_SIDE_QUANTIZED])
            good = describe(list, d, &d->comparison.at[i]);
    }
    good = qn_json_set(root, "layers", list) && good;
    qn_status status = good ? qn_json_write(&text, ctx, root) : qn_fail_nomem(ctx);
    if (status == QN_OK)
        status = qn_output_save(ctx, path, text, strlen(text));
    qn_text_free(ctx, text);
    qn_json_free(root);
    return status;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status make_folders(dump *d, const char *folder)
{
    d->folder = qn_arena_format(&d->arena, "%s/dump", folder);
    QN_TRY_ALLOC(d->ctx, d->folder);
    for (int side = 0; side < QN_SIDES; side++) {
        const char *path = qn_arena_format(&d->arena, "%s/%s", d->folder, qn_dump_sides[side]);
        QN_TRY_ALLOC(d->ctx, path);
        QN_TRY(qn_folder_make(d->ctx, path));
    }
    return QN_OK;
}

static qn_status run(dump *d, const qn_calibration *data, qn_model *quantized)
{
    const qn_tensor *inputs = NULL;
    const qn_layer_comparison_options options = {.graph = &data->graph, .all = true};
    QN_TRY(qn_layer_comparison_open(&d->comparison, d->ctx, data->real, quantized, &options));
    d->comparison.take = take;
    d->comparison.user = d;
    d->saved = qn_arena_array(&d->arena, d->comparison.count + 1, sizeof *d->saved);
    QN_TRY_ALLOC(d->ctx, d->saved);
    QN_TRY(data->source->read(data->source->user, d->ctx, 0, 0, &inputs));
    QN_TRY(qn_layer_comparison_run(&d->comparison, inputs, data->n_inputs, true));
    const qn_model *original = data->real->origin;
    if (original)
        QN_TRY(qn_layer_comparison_find_nodes(&d->comparison, original->graph));
    return write_index(d);
}

qn_status qn_trace_dump(const qn_quantize_input *input, const qn_quantized_model *quantized,
                        const char *folder)
{
    dump d = {.ctx = input->ctx};
    if (!input->data->fed)
        return qn_fail(input->ctx, QN_E_OPTION,
                       "`dump` needs data: there is no sample to run the layers with");
    qn_arena_init(&d.arena, &input->ctx->allocator);
    qn_status status = make_folders(&d, folder);
    if (status == QN_OK)
        status = run(&d, input->data, quantized->model);
    qn_layer_comparison_close(&d.comparison);
    qn_arena_free(&d.arena);
    return status;
}
