/* The built-in infer function for pictures. */
#include "executor/infer_default.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/listing.h"
#include "data/loader.h"
#include "executor/functions.h"
#include "ops/op.h"
#include "pass/quant_formats.h"
#include "report/report.h"
#include "task/task.h"

typedef struct job {
    qn_executor *e;
    qn_context *ctx;
    qn_arena arena;
    qn_input_configs configs;
    /* The configuration that says what outputs are */
    const qn_input_config *config;
    /* The model at hand */
    bool is_float;
    qn_dataset *data;
    qn_loader *loader;
    /* The samples to run, and those of a forward */
    int64_t samples, batch;
    /* The model fixes the batch: the last one is filled up */
    bool fill;
    qn_tensor *inputs;
    qn_label_place label_place;
    qn_detect_options detect;
    qn_task_options task_options;
    /* NULL: nobody looks at the outputs */
    qn_task *task;
    bool measured;
    size_t first_output, n_outputs;
    /* [n_outputs] of a sample */
    qn_task_output *outputs;
} job;

/* Where the fault lies: the block of the file, if there is one. */
static qn_status blame(const job *j, qn_status status)
{
    const qn_function *f = j->e->options->function;
    if (status == QN_OK || status == QN_E_NOMEM || !f->configs)
        return status;
    return f->config_file ? qn_fail_within(j->ctx, status, "%s: input-configs", f->config_file)
                          : qn_fail_within(j->ctx, status, "input-configs");
}

/* ---- The samples ----------------------------------------------------------------------------- */

static qn_status read_configs(qn_input_configs *out, qn_context *ctx, qn_arena *arena,
                              const qn_function *f)
{
    if (f->configs)
        return qn_input_configs_read(out, ctx, arena, f->configs, f->config_file);
    if (f->dataset)
        return qn_input_configs_of(out, ctx, arena, f->dataset);
    return qn_fail(
        ctx, QN_E_OPTION,
        "infer_default has no data: a run configuration (`configs`) with \"input-configs\" says "
        "where they are: [{\"data_dir\": FOLDER, ...}]");
}

/* The configuration of input k: the one that names it, or stands at its place without a name. */
static const qn_input_config *config_of(const job *j, size_t k)
{
    for (size_t i = 0; i < j->configs.count; i++) {
        const qn_input_config *c = &j->configs.at[i];
        if (c->input_name ? strcmp(c->input_name, j->e->inputs[k].name) == 0 : i == k)
            return c;
    }
    return NULL;
}

static qn_status check_configs(const job *j)
{
    for (size_t i = 0; i < j->configs.count; i++) {
        const qn_input_config *c = &j->configs.at[i];
        size_t k = 0;
        while (k < j->e->facts.n_inputs && config_of(j, k) != c)
            k++;
        if (k == j->e->facts.n_inputs)
            return blame(j, qn_fail(j->ctx, QN_E_INVALID,
                                    c->input_name ? "the model has no input '%s' left"
                                                  : "the model has no input for %s",
                                    c->input_name ? c->input_name : c->data_dir));
    }
    return QN_OK;
}

/* Channels first, unless only the last dimension can be theirs. */
static qn_picture_shape picture_of(const qn_value_info *info)
{
    qn_picture_shape shape = {info->dtype, -1, -1, -1, false};
    if (info->rank != 4)
        return shape;
    const int64_t *d = info->dims;
    shape.nhwc = (d[3] == 1 || d[3] == 3) && d[1] != 1 && d[1] != 3;
    shape.channels = d[shape.nhwc ? 3 : 1];
    shape.height = d[shape.nhwc ? 1 : 2];
    shape.width = d[shape.nhwc ? 2 : 3];
    return shape;
}

/* Whether the model divides and subtracts by itself. Other types than the configuration's count
 * more. */
static bool takes_pixels(const job *j, const qn_input_config *c, const qn_value_info *info)
{
    const qn_executor_options *o = j->e->options;
    const size_t k = o->n_input_types == 1 ? 0 : (size_t)(info - j->e->inputs);
    const bool given = k < o->n_input_types;
    const bool folded = c->pictures.input_dtype && strcmp(c->pictures.input_dtype, "uint8") == 0 &&
                        (!given || strcmp(o->input_types[k], "uint8") == 0);
    const bool original = j->is_float && j->e->options->stage == QN_EXECUTE_INFER;
    return qn_dtype_is_integer(info->dtype) || (folded && !original);
}

static qn_status check_format(job *j, const qn_input_config *c)
{
    static const struct {
        const char *name;
        qn_file_kind kind, other;
    } formats[] = {{"Image", QN_FILE_PICTURE, QN_FILE_PICTURE},
                   {"Numpy", QN_FILE_NPY, QN_FILE_NPZ},
                   {"Bin", QN_FILE_RAW, QN_FILE_RAW}};
    qn_listing files = {.count = 0};
    if (!c->data_format || !qn_path_is_folder(c->data_dir))
        return QN_OK;
    QN_TRY(qn_listing_folder(&files, j->ctx, &j->arena, c->data_dir));
    for (size_t i = 0; i < QN_COUNT_OF(formats); i++) {
        if (strcmp(formats[i].name, c->data_format) == 0 && files.kind != formats[i].kind &&
            files.kind != formats[i].other)
            return blame(j, qn_fail(j->ctx, QN_E_INVALID, "quant_data_format is %s, but %s has %s",
                                    c->data_format, c->data_dir, qn_file_kind_name(files.kind)));
    }
    return QN_OK;
}

/* Whether a forward may have any number of samples. */
static bool is_open(const job *j)
{
    for (size_t k = 0; k < j->e->facts.n_inputs; k++) {
        if (j->e->inputs[k].rank > 0 && j->e->inputs[k].dims[0] > 1)
            return false;
    }
    return true;
}

/* Samples of a forward: -bs, or the model's own batch or a multiple of it. */
static int64_t batch_of(const job *j)
{
    int64_t own = 1;
    for (size_t k = 0; k < j->e->facts.n_inputs; k++) {
        const qn_value_info *info = &j->e->inputs[k];
        own = info->rank > 0 ? QN_MAX(own, info->dims[0]) : own;
    }
    return (j->e->facts.batch_size + own - 1) / own * own;
}

/* Every input's samples, and the steps that make them. */
static qn_status open_data(job *j)
{
    const size_t n = j->e->facts.n_inputs;
    const char **data = qn_arena_array(&j->arena, n + 1, sizeof *data);
    qn_preprocess *steps = qn_arena_array(&j->arena, n + 1, sizeof *steps);
    if (!data || !steps)
        return qn_fail_nomem(j->ctx);
    for (size_t k = 0; k < n; k++) {
        const qn_value_info *info = &j->e->inputs[k];
        const qn_input_config *c = config_of(j, k);
        const qn_picture_shape shape = picture_of(info);
        if (!c)
            return blame(j, qn_fail(j->ctx, QN_E_INVALID,
                                    "input '%s' has none: one object per input is expected",
                                    info->name));
        QN_TRY(check_format(j, c));
        QN_TRY(blame(
            j, qn_input_config_steps(&steps[k], j->ctx, c, &shape, takes_pixels(j, c, info))));
        data[k] = qn_arena_format(&j->arena, "%s=%s", info->name, c->data_dir);
        QN_TRY_ALLOC(j->ctx, data[k]);
    }
    const qn_dataset_spec spec = {.inputs = j->e->inputs,
                                  .n_inputs = n,
                                  .data = data,
                                  .n_data = n,
                                  .list = j->config->data_list,
                                  .labels = j->config->is_yolo ? NULL : j->label_place.labels,
                                  .steps = steps,
                                  .strict = j->e->options->function->strict != 0,
                                  .labelled = j->e->facts.iteration * batch_of(j)};
    return qn_dataset_open(&j->data, j->ctx, &spec);
}

static qn_status open_loader(job *j)
{
    const qn_executor_facts *facts = &j->e->facts;
    bool whole = false;
    for (size_t k = 0; k < facts->n_inputs; k++)
        whole = whole || qn_dataset_inputs(j->data)[k].whole || qn_dataset_inputs(j->data)[k].dims;
    j->batch = whole ? 1 : batch_of(j);
    j->fill = !whole && !is_open(j);
    j->samples = QN_MIN(qn_dataset_count(j->data), facts->iteration * j->batch);
    const qn_loader_options options = {
        .count = j->samples, .batch = j->batch, .fill = j->fill ? j->batch : 0};
    return qn_loader_create(&j->loader, j->ctx, j->data, facts->n_inputs, &options);
}

/* ---- What is made of the outputs ------------------------------------------------------------- */

static qn_status find_outputs(job *j)
{
    const char *wanted = j->config->outputs.output_name;
    const size_t count = j->e->facts.n_outputs;
    j->n_outputs = wanted ? 1 : count;
    j->outputs = qn_arena_array(&j->arena, j->n_outputs + 1, sizeof *j->outputs);
    QN_TRY_ALLOC(j->ctx, j->outputs);
    while (wanted && j->first_output < count &&
           strcmp(qn_executor_output_name(j->e, j->first_output), wanted) != 0)
        j->first_output++;
    return j->first_output < count || !wanted
               ? QN_OK
               : blame(j, qn_fail(j->ctx, QN_E_INVALID, "the model has no output '%s'", wanted));
}

static qn_status set_detection(job *j)
{
    const qn_input_config *c = j->config;
    j->detect = (qn_detect_options)QN_DETECT_OPTIONS_INIT;
    j->detect.form = c->outputs.output_kind;
    j->detect.classes = c->outputs.nc;
    j->detect.anchors = c->outputs.anchors.at;
    j->detect.n_anchors = c->outputs.anchors.count;
    j->detect.conf_thres = c->outputs.conf_thres;
    j->detect.iou_thres = c->outputs.iou_thres;
    j->detect.max_det = c->outputs.max_det;
    j->detect.names = c->outputs.names.at;
    j->detect.n_names = c->outputs.names.count;
    j->detect.draw_conf = c->outputs.draw_conf;
    if (!c->outputs.draw_box || j->e->options->stage != QN_EXECUTE_INFER)
        return QN_OK;
    j->detect.draw_dir = qn_sibling_folder(&j->arena, c->data_dir, "label_imgs");
    QN_TRY_ALLOC(j->ctx, j->detect.draw_dir);
    return QN_OK;
}

static qn_status open_task(job *j)
{
    const qn_input_config *c = j->config;
    QN_TRY(find_outputs(j));
    QN_TRY(set_detection(j));
    if (!j->measured && !(c->is_yolo && j->detect.draw_dir))
        return QN_OK;
    j->task_options =
        (qn_task_options){.labels = c->is_yolo ? j->label_place.labels : NULL,
                          .label_dir = j->label_place.made,
                          .class_offset = j->label_place.generated ? 0 : c->outputs.class_offset,
                          .detect = &j->detect};
    return qn_task_create(&j->task, j->ctx, c->is_yolo ? "detection" : "classification",
                          &j->task_options);
}

/* Folders of samples that are classes are labels, too. */
static void use_folders(job *j)
{
    if (j->config->is_yolo || j->label_place.labels || qn_dataset_label(j->data, 0) < 0)
        return;
    j->label_place = (qn_label_place){.labels = NULL};
}

/* ---- Running --------------------------------------------------------------------------------- */

static qn_status forward(job *j, const qn_batch *batch, int64_t rows)
{
    const qn_dataset_input *in = qn_dataset_inputs(j->data);
    for (size_t k = 0; k < j->e->facts.n_inputs; k++) {
        qn_tensor *t = &j->inputs[k];
        qn_dataset_sample(t, j->data, k, batch->first);
        if (!in[k].whole) {
            memmove(t->dims + 1, t->dims, (size_t)t->rank++ * sizeof *t->dims);
            t->dims[0] = rows;
        }
        t->data = batch->data[k];
    }
    return qn_executor_forward(j->e, j->inputs, j->e->facts.n_inputs);
}

/* Sample `row` of `rows`, as real numbers. */
static qn_status cut_outputs(job *j, int64_t row, int64_t rows)
{
    for (size_t i = 0; i < j->n_outputs; i++) {
        const qn_tensor *output = qn_executor_output(j->e, j->first_output + i);
        const bool fits = rows == 1 || (output->rank > 0 && output->dims[0] == rows);
        j->outputs[i].name = qn_executor_output_name(j->e, j->first_output + i);
        QN_TRY(qn_task_cut(&j->outputs[i], j->ctx, output, row, fits ? rows : 0));
        j->outputs[i].scale = qn_executor_output_scale(j->e, j->first_output + i);
    }
    return QN_OK;
}

static qn_status judge(job *j, const qn_batch *batch, int64_t row, int64_t rows)
{
    qn_task_sample sample = {
        .data = j->data, .index = batch->first + row, .place = batch->places[row]};
    char name[256];
    qn_status status = cut_outputs(j, row, rows);
    qn_task_place(&sample.place, j->inputs, j->e->facts.n_inputs);
    sample.outputs = j->outputs;
    sample.n_outputs = j->n_outputs;
    if (j->label_place.made) {
        sample.float_outputs = j->outputs;
        sample.n_float_outputs = j->n_outputs;
    }
    if (status == QN_OK)
        status = qn_task_add(j->task, &sample);
    if (status == QN_OK)
        return QN_OK;
    qn_dataset_name(name, sizeof name, j->data, sample.index);
    return qn_fail_within(j->ctx, status, "sample '%s'", name);
}

/* An accuracy of fewer samples than the float model's cannot be compared with it: only what is not
 * measured ends early. */
static qn_status run_samples(job *j)
{
    const qn_batch *batch = NULL;
    while (!qn_executor_early_stop(j->e) || j->measured) {
        QN_TRY(qn_loader_next(&batch, j->loader));
        if (!batch)
            break;
        const int64_t rows = j->fill ? j->batch : batch->count;
        QN_TRY(forward(j, batch, rows));
        for (int64_t row = 0; j->task && row < batch->count; row++)
            QN_TRY(judge(j, batch, row, rows));
    }
    return j->task ? qn_task_finish(j->task) : QN_OK;
}

static void tell(const job *j, double *metric)
{
    qn_task_metric m[QN_TASK_METRICS];
    qn_item *root = j->e->options->report;
    const char *labels = j->label_place.generated ? "generated" : "given";
    qn_task_metrics(m, j->task, false);
    if (j->measured)
        *metric = m[0].value;
    if (root) {
        qn_task_describe(root, j->task);
        if (j->measured && !j->config->is_yolo)
            qn_item_text(root, "labels", labels);
        qn_task_describe_model(root, j->task, false);
        if (j->detect.draw_dir)
            qn_item_text(root, "drawn", j->detect.draw_dir);
    }
    if (!j->measured || j->e->facts.quiet)
        return;
    qn_log(j->ctx, QN_LOG_NOTE, "%s model: %s %.4f, %s %.4f on %lld samples (labels %s)",
           j->is_float ? "float" : "quantized", m[0].name, m[0].value, m[1].name, m[1].value,
           (long long)j->samples, labels);
}

/* Once, and not again for every quantized model. */
static void warn_ignored(const job *j)
{
    const qn_input_config *c = j->config;
    if (j->e->options->stage == QN_EXECUTE_QUANTIZED)
        return;
    if (!c->pictures.mean.count != !c->pictures.std.count)
        qn_log(j->ctx, QN_LOG_NOTE,
               "input-configs: %s without %s is ignored: pixels become x / 255",
               c->pictures.mean.count ? "mean" : "std", c->pictures.mean.count ? "std" : "mean");
    if (c->outputs.draw_box && (!c->is_yolo || j->e->options->stage != QN_EXECUTE_INFER))
        qn_log(j->ctx, QN_LOG_NOTE, "input-configs: draw_box has no effect here: it needs %s",
               c->is_yolo ? "run mode infer" : "is_yolo");
    if (j->label_place.ignored)
        qn_log(j->ctx, QN_LOG_NOTE,
               "input-configs: no label_dir: the float model's results are the truth, and the "
               "labels in %s are not looked at",
               j->label_place.ignored);
}

static qn_status run(job *j, double *metric)
{
    const qn_executor_options *o = j->e->options;
    QN_TRY(read_configs(&j->configs, j->ctx, &j->arena, o->function));
    QN_TRY(check_configs(j));
    j->config = j->configs.at;
    j->is_float = o->stage != QN_EXECUTE_QUANTIZED && !qn_graph_is_quantized(o->model->graph);
    j->measured = j->config->outputs.calculate_acc;
    if (j->measured)
        QN_TRY(qn_label_place_find(&j->label_place, j->ctx, &j->arena, j->config, j->is_float));
    warn_ignored(j);
    QN_TRY(open_data(j));
    use_folders(j);
    j->inputs = qn_arena_array(&j->arena, j->e->facts.n_inputs + 1, sizeof *j->inputs);
    QN_TRY_ALLOC(j->ctx, j->inputs);
    QN_TRY(open_task(j));
    QN_TRY(open_loader(j));
    QN_TRY(run_samples(j));
    if (j->task)
        tell(j, metric);
    return QN_OK;
}

qn_status qn_infer_default(void *user, qn_executor *executor, double *metric)
{
    job j = {.e = executor, .ctx = executor->ctx};
    (void)user;
    qn_arena_init(&j.arena, &executor->ctx->allocator);
    const qn_status status = run(&j, metric);
    qn_task_free(j.task);
    qn_loader_free(j.loader);
    qn_dataset_free(j.data);
    qn_arena_free(&j.arena);
    return status;
}

/* ---- What it depends on ---------------------------------------------------------------------- */

/* Labels that a model made change with every float pass. */
static qn_status fingerprint_config(qn_fingerprint *print, qn_context *ctx, qn_arena *arena,
                                    const qn_input_config *c)
{
    qn_label_place label_place;
    QN_TRY(qn_fingerprint_listing(print, ctx, c->data_dir));
    if (c->data_list)
        QN_TRY(qn_fingerprint_listing(print, ctx, c->data_list));
    if (!c->outputs.calculate_acc)
        return QN_OK;
    QN_TRY(qn_label_place_find(&label_place, ctx, arena, c, true));
    return label_place.labels ? qn_fingerprint_listing(print, ctx, label_place.labels) : QN_OK;
}

qn_status qn_infer_default_print(qn_fingerprint *print, qn_context *ctx,
                                 const qn_function *function)
{
    qn_input_configs configs = {.count = 0};
    qn_arena arena;
    qn_arena_init(&arena, &ctx->allocator);
    qn_status status = read_configs(&configs, ctx, &arena, function);
    for (size_t i = 0; i < configs.count && status == QN_OK; i++)
        status = fingerprint_config(print, ctx, &arena, &configs.at[i]);
    qn_arena_free(&arena);
    return status;
}
