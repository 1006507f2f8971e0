/* What every layer gives for the first sample, in the float model and in the quantized one. */
#include <string.h>

#include "api/save_dir.h"
#include "api/traces.h"
#include "base/json.h"
#include "ops/op.h"

enum { FLOAT, FIXED, SIDES };
static const char *const side_names[SIDES] = {"float", "fixed"};

typedef struct layer {
    const qn_value *value;          /* of the float graph */
    const qn_quant_value *integers; /* NULL: the quantized model has it in float too */
    const char *file;               /* name below each side's folder */
    qn_tensor shape;                /* as the float model had it */
    bool saved[SIDES];
} layer;

typedef struct dump {
    qn_quantize_job *j;
    qn_arena arena;
    const char *folder;
    layer *layers;
    size_t count;
    qn_names by_name[SIDES]; /* layer of an observed value */
    int side;                /* at hand */
} dump;

/* ---- Which values ------------------------------------------------------------------------------------------------------ */

static const qn_quant_value *integers_of(const qn_quantizer *q, const qn_value *value)
{
    for (size_t i = 0; i < q->n_values; i++) {
        if (q->values[i].integer && !q->values[i].through &&
            strcmp(q->values[i].value->name, value->name) == 0)
            return &q->values[i];
    }
    return NULL;
}

static qn_status add_layer(dump *d, const qn_value *value)
{
    layer *l = &d->layers[d->count];
    *l = (layer){.value = value, .integers = integers_of(d->j->quantizer, value)};
    char *file = qn_arena_format(&d->arena, "%04zu_%s.npy", d->count, value->name);
    const char *integers = qn_arena_format(&d->arena, "%s_QuantizeLinear_Output", value->name);
    if (!file || !integers)
        return qn_fail_nomem(d->j->ctx);
    for (char *c = file; *c; c++) {
        if (*c == '/' || *c == '\\')
            *c = '_';
    }
    l->file = file;
    d->count++;
    QN_TRY(qn_names_set(&d->by_name[FLOAT], value->name, l));
    return qn_names_set(&d->by_name[FIXED], l->integers ? integers : value->name, l);
}

static qn_status list_layers(dump *d)
{
    const qn_graph *graph = d->j->calibration.real->graph;
    size_t most = graph->n_inputs;
    for (const qn_node *node = graph->first; node; node = node->next)
        most += (size_t)node->n_out;
    d->layers = qn_arena_array(&d->arena, most + 1, sizeof *d->layers);
    QN_TRY_ALLOC(d->j->ctx, d->layers);
    for (const qn_node *node = graph->first; node; node = node->next) {
        for (int32_t i = 0; i < node->n_out; i++) {
            if (node->out[i])
                QN_TRY(add_layer(d, node->out[i]));
        }
    }
    return QN_OK;
}

/* ---- Their contents ------------------------------------------------------------------------------------------------------ */

/* Integers as the numbers they stand for. */
static void dequantize(float *out, const layer *l, const qn_tensor *rows)
{
    const qn_qparams *p = l->integers->value->qparams;
    const float *factor = l->integers->factor;
    int64_t channels = 1, inner = 1;
    if (factor) {
        channels = rows->dims[l->integers->axis];
        for (int32_t d = l->integers->axis + 1; d < rows->rank; d++)
            inner *= rows->dims[d];
    }
    for (int64_t i = 0; i < qn_tensor_count(rows); i++) {
        int64_t q;
        qn_load_i64(&q, rows->dtype, rows->data, i, 1);
        out[i] =
            (float)(q - p->zero[0]) * p->scale[0] * (factor ? factor[i / inner % channels] : 1.0F);
    }
}

static qn_status save_rows(dump *d, layer *l, const qn_tensor *rows, qn_arena *arena)
{
    qn_tensor out = *rows;
    const char *path = qn_arena_format(arena, "%s/%s/%s", d->folder, side_names[d->side], l->file);
    QN_TRY_ALLOC(d->j->ctx, path);
    if (d->side == FIXED && l->integers && l->integers->value->qparams &&
        rows->dtype == l->integers->value->qparams->dtype) {
        out.dtype = QN_FLOAT32;
        out.data = qn_arena_array(arena, (size_t)qn_tensor_count(rows) + 1, sizeof(float));
        QN_TRY_ALLOC(d->j->ctx, out.data);
        dequantize(out.data, l, rows);
    }
    l->saved[d->side] = true;
    l->shape = *rows;
    return qn_tensor_save(d->j->ctx, &out, path);
}

/* A plan of the quantized model may call something else by the name of a value that it has no more. */
static bool is_same_layer(const dump *d, const layer *l, const qn_tensor *tensor)
{
    if (d->side == FLOAT)
        return true;
    bool same = l->saved[FLOAT] && tensor->rank == l->shape.rank;
    for (int32_t i = 0; same && i < tensor->rank; i++)
        same = tensor->dims[i] == l->shape.dims[i];
    return same;
}

static qn_status take(void *user, const qn_observation *seen)
{
    dump *d = user;
    layer *l = qn_names_get(&d->by_name[d->side], seen->value->name);
    size_t bytes;
    qn_arena arena;
    if (!l || l->saved[d->side] || !is_same_layer(d, l, seen->tensor) ||
        !qn_tensor_bytes(&bytes, seen->tensor->dtype, seen->tensor->rank, seen->tensor->dims))
        return QN_OK;
    qn_tensor rows = *seen->tensor;
    const int64_t samples = rows.rank > 0 ? rows.dims[0] : 1;
    qn_arena_init(&arena, &d->j->ctx->allocator);
    rows.data = qn_arena_alloc(&arena, bytes + 1);
    qn_status status = rows.data ? QN_OK : qn_fail_nomem(d->j->ctx);
    if (status == QN_OK) {
        const qn_laid_out from = {seen->tensor->data, seen->layout, seen->stride};
        const qn_laid_out to = {rows.data, QN_ROWS, samples > 0 ? bytes / (size_t)samples : 0};
        qn_layout_convert(&to, &from, seen->tensor);
        status = save_rows(d, l, &rows, &arena);
    }
    qn_arena_free(&arena);
    return status;
}

static bool is_named(const void *user, const qn_value *value)
{
    return qn_names_get(user, value->name) != NULL;
}

static qn_status run_side(dump *d, int side)
{
    qn_quantize_job *j = d->j;
    const qn_calibration *c = &j->calibration;
    const qn_plan_options options = {.graph = c->graph};
    const qn_watch watch = {.purpose = side == FLOAT ? QN_PURPOSE_QUANTIZE : QN_PURPOSE_RUN,
                            .direct = true,
                            .observe = is_named,
                            .user = &d->by_name[side]};
    const qn_session_hooks hooks = {.user = d, .seen = take};
    const qn_tensor *inputs = NULL;
    qn_session *session = NULL;
    qn_plan *plan = NULL;
    d->side = side;
    qn_status status = qn_plan_create_watched(&plan, j->ctx, side == FLOAT ? c->real : j->quantized,
                                              &options, &watch);
    if (status == QN_OK)
        status = qn_session_create(&session, j->ctx, plan);
    if (status == QN_OK)
        status = c->source->read(c->source->user, j->ctx, 0, 0, &inputs);
    if (status == QN_OK)
        status = qn_session_run_hooked(session, inputs, c->n_inputs, &hooks);
    qn_session_free(session);
    qn_plan_free(plan);
    return status;
}

/* ---- The index ------------------------------------------------------------------------------------------------------------ */

static bool describe(qn_json *list, dump *d, const layer *l)
{
    qn_context *ctx = d->j->ctx;
    qn_json *row = qn_json_object();
    bool good = qn_json_set(row, "tensor", qn_json_text(ctx, l->value->name)) &&
                qn_json_set(row, "node", qn_json_text(ctx, l->value->producer->name)) &&
                qn_json_set(row, "operator", qn_json_text(ctx, l->value->producer->op->name));
    for (int side = 0; side < SIDES && good; side++) {
        const char *path = qn_arena_format(&d->arena, "%s/%s", side_names[side], l->file);
        good = path && qn_json_set(row, side_names[side], qn_json_text(ctx, path));
    }
    const qn_qparams *p = l->integers ? l->integers->value->qparams : NULL;
    if (p)
        good = good && qn_json_set(row, "type", qn_json_text(ctx, qn_dtype_name(p->dtype))) &&
               qn_json_set(row, "scale", qn_json_float(p->scale[0])) &&
               qn_json_set(row, "zero_point", qn_json_int(p->zero[0]));
    return qn_json_push(list, row) && good;
}

static qn_status write_text(qn_context *ctx, const char *path, const char *text)
{
    qn_output_file *file;
    QN_TRY(qn_output_open(&file, ctx, path));
    const qn_status status = qn_output_write(file, text, strlen(text));
    if (status == QN_OK)
        return qn_output_commit(file);
    qn_output_discard(file);
    return status;
}

static qn_status write_index(dump *d)
{
    qn_context *ctx = d->j->ctx;
    const char *path = qn_arena_format(&d->arena, "%s/index.json", d->folder);
    qn_json *root = qn_json_object(), *list = qn_json_array();
    char *text = NULL;
    bool good = path != NULL;
    for (size_t i = 0; i < d->count && good; i++) {
        if (d->layers[i].saved[FLOAT] && d->layers[i].saved[FIXED])
            good = describe(list, d, &d->layers[i]);
    }
    good = qn_json_set(root, "layers", list) && good;
    qn_status status = good ? qn_json_write(&text, ctx, root) : qn_fail_nomem(ctx);
    if (status == QN_OK)
        status = write_text(ctx, path, text);
    qn_text_free(ctx, text);
    qn_json_free(root);
    return status;
}

/* ---- The whole -------------------------------------------------------------------------------------------------------------- */

static qn_status make_folders(dump *d, const char *folder)
{
    d->folder = qn_arena_format(&d->arena, "%s/dump", folder);
    QN_TRY_ALLOC(d->j->ctx, d->folder);
    for (int side = 0; side < SIDES; side++) {
        const char *path = qn_arena_format(&d->arena, "%s/%s", d->folder, side_names[side]);
        QN_TRY_ALLOC(d->j->ctx, path);
        QN_TRY(qn_folder_make(d->j->ctx, path));
    }
    return QN_OK;
}

static qn_status run(dump *d, const char *folder)
{
    QN_TRY(make_folders(d, folder));
    QN_TRY(list_layers(d));
    for (int side = 0; side < SIDES; side++)
        QN_TRY(run_side(d, side));
    return write_index(d);
}

qn_status qn_trace_dump(qn_quantize_job *j, const char *folder)
{
    dump d = {.j = j};
    if (!j->calibration.fed)
        return qn_fail(j->ctx, QN_E_INVALID,
                       "--dump needs data: there is no sample to run the layers with");
    qn_arena_init(&d.arena, &j->ctx->allocator);
    for (int side = 0; side < SIDES; side++)
        qn_names_init(&d.by_name[side], j->ctx);
    const qn_status status = run(&d, folder);
    for (int side = 0; side < SIDES; side++)
        qn_names_free(&d.by_name[side]);
    qn_arena_free(&d.arena);
    return status;
}
