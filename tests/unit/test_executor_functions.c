/* Infer functions: what forward takes and gives, when it asks to stop, and what comes of the
 * numbers returned. */
#include <stdio.h>
#include <unistd.h>

#include "pass_test.h"
#include "quench.h"

enum { SIDE = 8, IMAGE = 2 * SIDE * SIDE };

static char folder[64];

/* x [n, 2, 8, 8] -> two convolutions [n, 4, 8, 8] */
static fixture network(int64_t batch)
{
    const int64_t dims[4] = {batch, 2, SIDE, SIDE}, first[4] = {32, 2, 1, 1},
                  last[4] = {4, 32, 1, 1};
    fixture f = begin();
    qn_value *y = apply(&f, &qn_op_Conv, 2, input(&f, "x", 4, dims), weights(&f, 4, first));
    y = apply(&f, &qn_op_Conv, 2, y, weights(&f, 4, last));
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    return f;
}

static void end(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

/* ---- Functions ------------------------------------------------------------------------------- */

typedef struct calls {
    int float_forwards, fixed_forwards;
    qn_dtype dtype;
    int64_t batch;
    /* The value of all elements; NAN: noise */
    double value;
    double metric;
} calls;

static qn_status forward(qn_executor *e, const calls *c, uint32_t *seed)
{
    static double numbers[8 * IMAGE];
    static char room[8 * IMAGE * 8];
    qn_tensor x = {c->dtype, 4, {c->batch, 2, SIDE, SIDE}, room};
    for (int64_t i = 0; i < c->batch * IMAGE; i++)
        numbers[i] = isnan(c->value) ? (double)noise(seed) : c->value;
    qn_store_f64(room, c->dtype, 0, numbers, c->batch * IMAGE);
    return qn_executor_forward(e, &x, 1);
}

static qn_status feed(void *user, qn_executor *e, double *metric)
{
    calls *c = user;
    const qn_executor_facts *facts = qn_executor_get(e);
    const bool is_float = strcmp(facts->stage, "float") == 0;
    uint32_t seed = 3;
    *metric = c->metric;
    for (int64_t i = 0; i < facts->iteration; i++) {
        if (forward(e, c, &seed) != QN_OK)
            return QN_E_INVALID;
        *(is_float ? &c->float_forwards : &c->fixed_forwards) += 1;
        const qn_tensor *y = qn_executor_output(e, 0);
        assert_int_equal(y->dims[0], c->batch);
        assert_int_equal(qn_tensor_count(y), c->batch * 4 * SIDE * SIDE);
        if (qn_executor_early_stop(e)) {
            assert_false(is_float);
            break;
        }
    }
    return QN_OK;
}

static qn_status run(char **report_text, fixture *f, calls *c, int64_t iteration)
{
    qn_strategies_options o = QN_STRATEGIES_OPTIONS_INIT;
    const char *const methods[] = {"min_max"};
    qn_report *report = NULL;
    o.file.save_dir = folder;
    o.function = (qn_function){.name = "feed", .run = feed, .user = c, .batch_size = c->batch};
    o.methods = methods;
    o.n_methods = 1;
    o.iterations = &iteration;
    o.n_iterations = 1;
    const qn_status status = qn_strategies_run(&report, f->ctx, f->model, &o);
    if (status != QN_OK)
        print_message("%s\n", qn_context_error(f->ctx));
    if (report_text && report)
        assert_int_equal(qn_report_json(report_text, report), QN_OK);
    qn_report_free(report);
    return status;
}

/* ---- Types and shapes ------------------------------------------------------------------------ */

static void types_that_convert_are_taken(void **state)
{
    static const struct {
        qn_dtype dtype;
        double value;
        bool taken;
    } rows[] = {
        {QN_FLOAT32, 0.1, true},    {QN_UINT8, 255, true},   {QN_INT64, 16777216, true},
        {QN_INT64, 16777217, true}, {QN_FLOAT64, 0.5, true}, {QN_FLOAT64, 0.1, true},
        {QN_FLOAT64, 1e300, false}, {QN_FLOAT16, 0.1, true}, {QN_INT8, -128, true},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        fixture f = network(1);
        calls c = {.dtype = rows[i].dtype, .batch = 1, .value = rows[i].value, .metric = NAN};
        assert_int_equal(run(NULL, &f, &c, 1), rows[i].taken ? QN_OK : QN_E_INVALID);
        if (!rows[i].taken)
            assert_non_null(
                strstr(qn_context_error(f.ctx), "input 'x': expected float32[1,2,8,8]"));
        end(&f);
    }
}

static void batches_are_divided(void **state)
{
    (void)state;
    for (int64_t fixed = -1; fixed <= 3; fixed++) {
        fixture f = network(fixed ? fixed : 1);
        calls c = {.dtype = QN_FLOAT32, .batch = 6, .value = NAN, .metric = NAN};
        assert_int_equal(run(NULL, &f, &c, 2), QN_OK);
        assert_int_equal(c.float_forwards, 2);
        end(&f);
    }
    fixture f = network(4);
    calls c = {.dtype = QN_FLOAT32, .batch = 6, .value = NAN, .metric = NAN};
    assert_int_equal(run(NULL, &f, &c, 2), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(f.ctx), "the batch must be a multiple of the model's"));
    end(&f);
}

/* ---- What comes of it ------------------------------------------------------------------------ */

/* Every forward is like the others: the error has settled after six, and the float pass goes on to
 * its end. */
static void forwards_stop_when_the_error_has_settled(void **state)
{
    fixture f = network(1);
    calls c = {.dtype = QN_FLOAT32, .batch = 1, .value = 0.3, .metric = NAN};
    (void)state;
    assert_int_equal(run(NULL, &f, &c, 20), QN_OK);
    assert_int_equal(c.float_forwards, 20);
    assert_int_equal(c.fixed_forwards, 6);
    end(&f);
}

static void a_metric_decides_and_the_error_stands_in(void **state)
{
    char *text = NULL;
    (void)state;
    for (int with_metric = 0; with_metric < 2; with_metric++) {
        fixture f = network(1);
        calls c = {.dtype = QN_FLOAT32, .batch = 1, .value = NAN, .metric = with_metric ? 75 : NAN};
        assert_int_equal(run(&text, &f, &c, 2), QN_OK);
        assert_int_equal(strstr(text, "\"float_accuracy\": 75") != NULL, with_metric);
        assert_int_equal(strstr(text, "\"quantization_loss\": 0.0,") != NULL, with_metric);
        qn_text_free(f.ctx, text);
        end(&f);
    }
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/quench_executor_%ld", (long)getpid());
    return 0;
}

static int remove_folder(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/model_quantize.onnx", folder);
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(types_that_convert_are_taken),
                                       cmocka_unit_test(batches_are_divided),
                                       cmocka_unit_test(forwards_stop_when_the_error_has_settled),
                                       cmocka_unit_test(a_metric_decides_and_the_error_stands_in)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
