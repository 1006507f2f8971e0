/* Runs ONNX's backend test folders (model.onnx, test_data_set_N/{input,output}_K.pb).
 *
 *     onnx_folders BACKEND LIST LEAST ROOT...
 *
 * Every folder below the roots is loaded, planned, run and compared. LIST names the folders that
 * cannot pass, one "name reason..." a line: those must be refused with a message; one that passes
 * must leave the list. A reason that begins with "shape-only" lets a folder run whose elements are
 * random: its outputs are compared by type and shape. A wrong answer fails the test whatever the
 * list says, and so do fewer than LEAST passes. BACKEND is a backend's name, or "all" for the order
 * of the build. Exit code 77: there is no such root. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "import/import.h"
#include "ops/eval.h"

enum { PATH_SIZE = 1024, MOST_VALUES = 64 };

typedef enum outcome { PASSED, REFUSED, WRONG } outcome;

typedef struct folder_run {
    qn_context *ctx;
    const char *folder, *backend;
    bool shape_only;
    /* Tolerances */
    double relative, absolute;
    /* The noise of the tensor being compared */
    double noise;
    char message[QN_ERROR_SIZE];
} folder_run;

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Types with few bits get the width of a few steps of their own: the expected numbers were rounded
 * to the type behind every node, quench's behind the last one. Of 31808 causal attentions in
 * float16, whose answer has about eight roundings of half a step, numpy's was up to 1.9e-3 off the
 * exact one. */
static double tolerance(const folder_run *run, qn_dtype dtype)
{
    const double steps = dtype == QN_BFLOAT16 ? 1.6e-2 : dtype == QN_FLOAT16 ? 4e-3 : 0;
    return fmax(run->relative, steps);
}

static bool close_enough(const folder_run *run, qn_dtype dtype, double got, double wanted)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return wanted == got;
    return fabs(got - wanted) <=
           fmax(run->absolute, run->noise) + tolerance(run, dtype) * fabs(wanted);
}

/* One step of a float32 at the largest element: sums that cancel are no more exact than that. */
static double noise_of(const qn_tensor *wanted)
{
    double largest = 0;
    const int64_t count = qn_dtype_is_float(wanted->dtype) ? qn_tensor_count(wanted) : 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = fabs(qn_tensor_f64(wanted, i));
        largest = isfinite(x) ? fmax(largest, x) : largest;
    }
    return largest * 0x1p-23;
}

static bool element_equal(const folder_run *run, const qn_tensor *got, const qn_tensor *wanted,
                          int64_t i)
{
    const size_t size = qn_dtype_size(got->dtype);
    if (got->dtype == QN_STRING) {
        const qn_string *a = (const qn_string *)got->data + i;
        const qn_string *b = (const qn_string *)wanted->data + i;
        return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
    }
    if (got->dtype == QN_COMPLEX64 || got->dtype == QN_COMPLEX128 || !qn_dtype_is_float(got->dtype))
        return memcmp((const char *)got->data + (size_t)i * size,
                      (const char *)wanted->data + (size_t)i * size, size) == 0;
    return close_enough(run, got->dtype, qn_tensor_f64(got, i), qn_tensor_f64(wanted, i));
}

static bool same(folder_run *run, const char *what, const qn_tensor *got, const qn_tensor *wanted);

static bool same_sequence(folder_run *run, const char *what, const qn_tensor *got,
                          const qn_tensor *wanted)
{
    const qn_sequence *a = got->data, *b = wanted->data;
    if (a->count != b->count) {
        snprintf(run->message, sizeof run->message, "%s has %lld tensors, not %lld", what,
                 (long long)a->count, (long long)b->count);
        return false;
    }
    for (int64_t i = 0; i < a->count; i++) {
        if (!same(run, what, &a->items[i], &b->items[i]))
            return false;
    }
    return true;
}

static bool same(folder_run *run, const char *what, const qn_tensor *got, const qn_tensor *wanted)
{
    char a[256], b[256];
    if (got->dtype == QN_SEQUENCE && wanted->dtype == QN_SEQUENCE)
        return same_sequence(run, what, got, wanted);
    const qn_type got_type = qn_type_of(got), wanted_type = qn_type_of(wanted);
    qn_type_format(a, sizeof a, &got_type);
    qn_type_format(b, sizeof b, &wanted_type);
    if (strcmp(a, b) != 0) {
        snprintf(run->message, sizeof run->message, "%s is %s, not %s", what, a, b);
        return false;
    }
    const bool by_element = got->dtype < QN_SEQUENCE && !run->shape_only;
    run->noise = by_element ? noise_of(wanted) : 0;
    const int64_t count = by_element ? qn_tensor_count(got) : 0;
    for (int64_t i = 0; i < count; i++) {
        if (element_equal(run, got, wanted, i))
            continue;
        const bool text = got->dtype == QN_STRING;
        snprintf(run->message, sizeof run->message, "%s: element %lld of %s is %.9g, not %.9g",
                 what, (long long)i, a, text ? 0 : qn_tensor_f64(got, i),
                 text ? 0 : qn_tensor_f64(wanted, i));
        return false;
    }
    return true;
}

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct values {
    qn_tensor at[MOST_VALUES];
    qn_map maps[MOST_VALUES];
    size_t count;
} values;

static void values_close(values *v)
{
    for (size_t i = 0; i < v->count; i++)
        qn_map_close(&v->maps[i]);
    v->count = 0;
}

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* Reads "<set>/<stem>_K.pb" for the values of the graph; absent files end the list. */
static qn_status values_read(values *v, folder_run *run, qn_arena *arena, const char *stem,
                             qn_value *const *expected, size_t n_expected)
{
    v->count = 0;
    for (size_t i = 0; i < n_expected && i < MOST_VALUES; i++) {
        char path[2 * PATH_SIZE];
        snprintf(path, sizeof path, "%s_%zu.pb", stem, i);
        if (!exists(path))
            break;
        QN_TRY(qn_map_open(&v->maps[i], run->ctx, path));
        v->count++;
        const qn_type_kind declared =
            expected[i]->declared ? expected[i]->declared->kind : QN_TYPE_TENSOR;
        /* Elements lie in the file wherever they happen to; a run wants them aligned. */
        qn_tensor mapped;
        QN_TRY(qn_import_onnx_value(&mapped, run->ctx, arena, declared, v->maps[i].data,
                                    v->maps[i].size));
        QN_TRY(qn_tensor_copy(&v->at[i], run->ctx, arena, &mapped));
        /* ONNX 1.12 stored bfloat16 as the uint16 of its bits. */
        if (declared == QN_TYPE_TENSOR && expected[i]->declared &&
            expected[i]->declared->dtype == QN_BFLOAT16 && v->at[i].dtype == QN_UINT16)
            v->at[i].dtype = QN_BFLOAT16;
    }
    return QN_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

static qn_status compare_outputs(folder_run *run, qn_model *model, const qn_session *session,
                                 const values *wanted, outcome *result)
{
    for (size_t i = 0; i < wanted->count; i++) {
        if (!same(run, qn_model_output_name(model, i), qn_session_output(session, i),
                  &wanted->at[i])) {
            *result = WRONG;
            return QN_OK;
        }
    }
    return QN_OK;
}

static qn_status plan_for(qn_plan **out, folder_run *run, qn_model *model, const values *inputs)
{
    static qn_input_shape shapes[MOST_VALUES];
    size_t n_shapes = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        const qn_tensor *in = &inputs->at[i];
        if (in->dtype >= QN_SEQUENCE)
            continue;
        qn_input_shape *shape = &shapes[n_shapes++];
        *shape = (qn_input_shape){.name = qn_model_input_name(model, i), .rank = in->rank};
        memcpy(shape->dims, in->dims, sizeof shape->dims);
    }
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.graph.shapes = shapes;
    options.graph.n_shapes = n_shapes;
    options.backend = strcmp(run->backend, "all") == 0 ? NULL : run->backend;
    return qn_plan_create(out, run->ctx, model, &options);
}

static qn_status run_set(folder_run *run, qn_model *model, const char *set, outcome *result)
{
    static values inputs, wanted;
    char stem[2 * PATH_SIZE];
    qn_arena arena;
    qn_plan *plan = NULL;
    qn_session *session = NULL;
    qn_status status;
    qn_arena_init(&arena, &run->ctx->allocator);
    inputs.count = wanted.count = 0;
    snprintf(stem, sizeof stem, "%s/input", set);
    QN_TRY_OR_DONE(
        values_read(&inputs, run, &arena, stem, model->graph->inputs, model->graph->n_inputs));
    snprintf(stem, sizeof stem, "%s/output", set);
    QN_TRY_OR_DONE(
        values_read(&wanted, run, &arena, stem, model->graph->outputs, model->graph->n_outputs));
    if (wanted.count != model->graph->n_outputs || wanted.count == 0) {
        status = qn_fail(run->ctx, QN_E_FORMAT, "%s: not every output has a file", set);
        goto done;
    }
    QN_TRY_OR_DONE(plan_for(&plan, run, model, &inputs));
    QN_TRY_OR_DONE(qn_session_create(&session, run->ctx, plan));
    QN_TRY_OR_DONE(qn_session_run(session, inputs.at, inputs.count));
    status = compare_outputs(run, model, session, &wanted, result);
done:
    qn_session_free(session);
    qn_plan_free(plan);
    values_close(&inputs);
    values_close(&wanted);
    qn_arena_free(&arena);
    return status;
}

/* ONNX's own tolerances, unless the folder has others. */
static void read_tolerance(folder_run *run)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/tolerance.txt", run->folder);
    FILE *file = fopen(path, "r");
    run->relative = 1e-3;
    run->absolute = 1e-7;
    if (!file)
        return;
    if (fscanf(file, "%lf %lf", &run->relative, &run->absolute) != 2)
        run->relative = run->absolute = 0;
    fclose(file);
}

static outcome run_folder(folder_run *run)
{
    char path[PATH_SIZE];
    qn_model *model = NULL;
    outcome result = PASSED;
    int sets = 0;
    read_tolerance(run);
    snprintf(path, sizeof path, "%s/model.onnx", run->folder);
    qn_status status = qn_import_onnx(&model, run->ctx, path);
    for (; status == QN_OK && result == PASSED; sets++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d", run->folder, sets);
        if (!exists(path))
            break;
        status = run_set(run, model, path, &result);
    }
    qn_model_free(model);
    if (status != QN_OK)
        snprintf(run->message, sizeof run->message, "%s", qn_context_error(run->ctx));
    else if (sets == 0)
        snprintf(run->message, sizeof run->message, "has no test_data_set_0");
    if (status != QN_OK)
        return REFUSED;
    return sets == 0 ? WRONG : result;
}

/* ---- The list -------------------------------------------------------------------------------- */

typedef struct tally {
    /* Text of the list file */
    const char *list;
    int passed, listed, failed, shape_only;
} tally;

static bool is_shape_only(const char *reason)
{
    return reason && strncmp(reason, "shape-only", 10) == 0;
}

/* The reason that the list gives for `name`, up to its line's end, or NULL. */
static const char *listed_reason(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *line = list; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return line + length + 1;
    }
    return NULL;
}

static void judge(tally *t, const char *name, outcome result, const char *message)
{
    const char *reason = listed_reason(t->list, name);
    if (result == PASSED && (!reason || is_shape_only(reason))) {
        t->passed += !reason;
        t->shape_only += reason != NULL;
    } else if (result == REFUSED && reason) {
        printf("not run  %s: %.*s\n", name, (int)strcspn(reason, "\n"), reason);
        t->listed++;
    } else {
        printf("FAILED   %s: %s\n", name,
               result == PASSED ? "passes, but is listed as one that cannot" : message);
        t->failed++;
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void run_root(tally *t, qn_context *ctx, const char *backend, const char *root)
{
    struct dirent **entries;
    const int count = scandir(root, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char folder[PATH_SIZE], model[2 * PATH_SIZE];
        snprintf(folder, sizeof folder, "%s/%s", root, entries[i]->d_name);
        snprintf(model, sizeof model, "%s/model.onnx", folder);
        if (entries[i]->d_name[0] != '.' && exists(model)) {
            folder_run run = {.ctx = ctx, .folder = folder, .backend = backend};
            run.shape_only = is_shape_only(listed_reason(t->list, entries[i]->d_name));
            const outcome result = run_folder(&run);
            judge(t, entries[i]->d_name, result, run.message);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static char *read_list(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (file && text && fread(text, 1, (1 << 20) - 1, file) == 0)
        text[0] = 0;
    if (file)
        fclose(file);
    return file ? text : NULL;
}

int main(int argc, char **argv)
{
    qn_context *ctx;
    tally t = {0};
    if (argc < 5) {
        fprintf(stderr, "usage: onnx_folders BACKEND LIST LEAST ROOT...\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        if (!exists(argv[i])) {
            printf("skipped: there is no %s\n", argv[i]);
            return 77;
        }
    }
    char *list = read_list(argv[2]);
    t.list = list;
    if (!list || qn_context_create(&ctx, NULL) != QN_OK) {
        fprintf(stderr, "%s: cannot read\n", argv[2]);
        return 1;
    }
    for (int i = 4; i < argc; i++)
        run_root(&t, ctx, argv[1], argv[i]);
    const int least = atoi(argv[3]);
    printf("%d passed, %d failed, %d not run, %d by shape only; at least %d must pass\n", t.passed,
           t.failed, t.listed, t.shape_only, least);
    qn_context_free(ctx);
    free(list);
    return t.failed || t.passed < least;
}
