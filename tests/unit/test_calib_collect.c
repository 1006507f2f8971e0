/* A collection that is interrupted, paused, cut into stages or short of memory gives the same
 * bytes, or a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault.h"
#include "model/prepare.h"
#include "quant/observe.h"
#include "quantize/calibration.h"

static const char *const model_path = "examples/fashion.onnx";
enum { SAMPLES = 24, PIXELS = 28 * 28 };

/* ---- Samples --------------------------------------------------------------------------------- */

typedef struct pictures {
    float data[SAMPLES][PIXELS];
    qn_tensor tensors[SAMPLES];
    int64_t reads;
} pictures;

static qn_status read_picture(void *user, qn_context *ctx, int slot, int64_t i,
                              const qn_tensor **inputs)
{
    pictures *p = user;
    (void)ctx;
    (void)slot;
    *inputs = &p->tensors[i];
    return QN_OK;
}

static void name_picture(void *user, int64_t i, char *out, size_t size)
{
    (void)user;
    snprintf(out, size, "picture %lld", (long long)i);
}

static void make_pictures(pictures *p)
{
    for (int i = 0; i < SAMPLES; i++) {
        p->tensors[i] = (qn_tensor){QN_FLOAT32, 4, {1, 1, 28, 28}, p->data[i]};
        for (int k = 0; k < PIXELS; k++)
            p->data[i][k] = (float)((i * 131 + k * 29) % 255) / 255;
    }
}

typedef struct job {
    qn_context *ctx;
    qn_model *model;
    qn_plan *plan;
    qn_sample_source source;
} job;

static void open_job(job *j, pictures *p, const qn_context_options *options)
{
    const qn_observe_options watch = {
        .purpose = QN_PURPOSE_QUANTIZE, .direct = true, .observe = qn_observe_default};
    const qn_plan_options plan = {QN_OPTIONS_VERSION, .threads = 1};
    *j = (job){.source = {p, SAMPLES, 0, read_picture, name_picture}};
    make_pictures(p);
    assert_int_equal(qn_context_create(&j->ctx, options), QN_OK);
    assert_int_equal(qn_model_load(&j->model, j->ctx, model_path), QN_OK);
    assert_int_equal(qn_plan_create_observed(&j->plan, j->ctx, j->model, &plan, &watch), QN_OK);
}

static void close_job(job *j)
{
    qn_plan_free(j->plan);
    qn_model_free(j->model);
    qn_context_free(j->ctx);
}

static char *file_bytes(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

static void assert_same(job *j, const qn_stats *a, const qn_stats *b)
{
    size_t na, nb;
    char first[64], second[64];
    snprintf(first, sizeof first, "/tmp/quench-stats-a-%ld", (long)getpid());
    snprintf(second, sizeof second, "/tmp/quench-stats-b-%ld", (long)getpid());
    assert_int_equal(qn_stats_save(j->ctx, a, first), QN_OK);
    assert_int_equal(qn_stats_save(j->ctx, b, second), QN_OK);
    char *x = file_bytes(first, &na), *y = file_bytes(second, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(x, y, na);
    free(x);
    free(y);
    remove(first);
    remove(second);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static pictures shared;

static void stages(void **unused)
{
    static const int64_t after[] = {5, 6, 18};
    job j;
    qn_stats *out[4], *part, *first;
    qn_convergence convergence;
    const qn_collect_options with = {.threads = 2, .after = after, .n_after = 3};
    const qn_collect_options plain = {.threads = 1};
    (void)unused;
    open_job(&j, &shared, NULL);
    assert_int_equal(qn_collect(out, &convergence, j.plan, j.ctx, &j.source, &with), QN_OK);
    for (int i = 0; i < 4; i++) {
        j.source.count = i < 3 ? after[i] : SAMPLES;
        assert_int_equal(qn_collect(&part, NULL, j.plan, j.ctx, &j.source, &plain), QN_OK);
        assert_same(&j, out[i], part);
        qn_stats_free(part);
    }
    assert_int_equal(convergence.samples, SAMPLES);
    assert_int_equal(convergence.n_points, 4);
    assert_int_equal(convergence.points[3].samples, 18);
    j.source.count = 0;
    assert_int_equal(qn_collect(&first, NULL, j.plan, j.ctx, &j.source, &plain), QN_E_INVALID);
    for (int i = 0; i < 4; i++)
        qn_stats_free(out[i]);
    close_job(&j);
}

static void cancel_at_seven(void *user, const char *what, int64_t done, int64_t total)
{
    qn_context **ctx = user;
    (void)what;
    (void)total;
    if (done >= 7 && *ctx)
        qn_context_cancel(*ctx);
}

static void interrupted(void **unused)
{
    char path[64];
    qn_context *cancelled = NULL;
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    qn_collect_options collect = {.threads = 1, .checkpoint_seconds = 1e-6};
    qn_stats *whole, *out;
    job j, first; /* whose context the statistics in `whole` belong to */
    (void)unused;
    open_job(&first, &shared, NULL);
    assert_int_equal(qn_collect(&whole, NULL, first.plan, first.ctx, &first.source, &collect),
                     QN_OK);
    snprintf(path, sizeof path, "/tmp/quench-part-%ld", (long)getpid());
    remove(path);
    collect.checkpoint = path;
    options.progress = cancel_at_seven;
    options.progress_user = &cancelled;
    options.log_level = QN_LOG_ERROR;
    open_job(&j, &shared, &options);
    cancelled = j.ctx;
    assert_int_equal(qn_collect(&out, NULL, j.plan, j.ctx, &j.source, &collect), QN_E_CANCELLED);
    assert_null(out);
    assert_int_equal(access(path, F_OK), 0);
    close_job(&j);
    /* Other data: not used, and said. The same data: it goes on, with two threads and pauses. */
    cancelled = NULL;
    open_job(&j, &shared, &options);
    collect.threads = 2;
    assert_int_equal(qn_collect(&out, NULL, j.plan, j.ctx, &j.source, &collect), QN_OK);
    assert_same(&j, whole, out);
    qn_stats_free(out);
    shared.data[0][5] = 0.75f;
    assert_int_equal(qn_collect(&out, NULL, j.plan, j.ctx, &j.source, &collect), QN_OK);
    assert_false(qn_fingerprint_same(out->data, whole->data));
    remove(path);
    qn_stats_free(out);
    qn_stats_free(whole);
    close_job(&first);
    close_job(&j);
}

static void not_a_number(void **unused)
{
    const qn_collect_options collect = {.threads = 3};
    qn_stats *out;
    job j;
    (void)unused;
    open_job(&j, &shared, NULL);
    shared.data[11][3] = shared.data[20][3] = 0.0f / (shared.data[0][0] - shared.data[0][0]);
    assert_int_equal(qn_collect(&out, NULL, j.plan, j.ctx, &j.source, &collect), QN_E_INVALID);
    assert_string_equal(qn_context_error(j.ctx),
                        "picture 11: tensor 'image' has NaN or infinite elements");
    close_job(&j);
}

static qn_status attempt(fault *f, char *message, size_t size)
{
    qn_calibrate_options calibrate = QN_CALIBRATE_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_stats *stats = NULL;
    qn_report *report = NULL;
    calibrate.data.samples = 4;
    qn_status status = fault_context(&ctx, f);
    if (status == QN_OK)
        status = qn_model_load(&model, ctx, model_path);
    if (status == QN_OK)
        status = qn_calibrate(&stats, &report, ctx, model, &calibrate);
    snprintf(message, size, "%s", qn_context_error(ctx));
    qn_stats_free(stats);
    qn_report_free(report);
    qn_model_free(model);
    qn_context_free(ctx);
    return status;
}

/* As test_api_allocations does it, with growing steps. */
static void short_memory(void **unused)
{
    char message[256];
    int struck = 0;
    (void)unused;
    for (long n = 0;; n += 1 + n / 40) {
        fault f = {.until = n};
        const qn_status status = attempt(&f, message, sizeof message);
        if (f.live != 0)
            fail_msg("allocation %ld fails: %ld blocks are left behind", n, f.live);
        if (!f.struck) {
            assert_int_equal(status, QN_OK);
            break;
        }
        struck++;
        if (status != QN_OK && (status != QN_E_NOMEM || message[0] == 0))
            fail_msg("allocation %ld fails: status %d, '%s'", n, (int)status, message);
    }
    assert_true(struck > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(short_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
