/* A small network that learns: every backend takes the same steps as the reference, batch
 * normalization follows the batch, checkpoints carry all of it, and what cannot go on says so. */
#include <stdio.h>
#include <unistd.h>

#include "run/session.h"
#include "train/checkpoint.h"
#include "train_test.h"

enum { BATCH = 4, CLASSES = 3 };

static qn_value *weight(trial *t, int32_t rank, const int64_t *dims, double low, double high)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_tensor *tensor;
    qn_value *value;
    assert_int_equal(qn_tensor_create(&tensor, t->ctx, &t->model->arena, &type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = (float)draw_real(t, low, high);
    assert_int_equal(qn_value_constant(&value, t->graph, "w", tensor), QN_OK);
    return value;
}

static qn_value *convolve(trial *t, qn_value *x, int64_t from, int64_t to, int64_t stride)
{
    const int64_t pads[4] = {1, 1, 1, 1}, strides[2] = {stride, stride};
    qn_value *y =
        APPLY(t, Conv, x, weight(t, DIMS(to, from, 3, 3), -.3, .3), weight(t, DIMS(to), -.1, .1));
    set_ints(t, y, "pads", pads, 4);
    set_ints(t, y, "strides", strides, 2);
    return y;
}

/* Convolutions with 3, 16 and 32 channels, one with batch normalization, a shortcut, a Gemm. */
static trial begin(void)
{
    trial t = {.random = 5};
    qn_value *x;
    assert_int_equal(qn_context_create(&t.ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&t.model, t.ctx), QN_OK);
    t.graph = t.model->graph;
    assert_int_equal(qn_value_create(&x, t.graph, "x"), QN_OK);
    x->type = qn_type_tensor(QN_FLOAT32, DIMS(-1, 3, 10, 10));
    assert_int_equal(qn_graph_add_input(t.graph, x), QN_OK);
    qn_value *a = APPLY(&t, Relu, convolve(&t, x, 3, 16, 1));
    qn_value *b = convolve(&t, a, 16, 16, 1);
    b = APPLY(&t, BatchNormalization, b, weight(&t, DIMS(16), .5, 1), weight(&t, DIMS(16), -1, 1),
              weight(&t, DIMS(16), -1, 1), weight(&t, DIMS(16), .5, 1));
    b = APPLY(&t, Relu, APPLY(&t, Add, b, a));
    b = APPLY(&t, Relu, convolve(&t, b, 16, 32, 2));
    b = APPLY(&t, Flatten, APPLY(&t, GlobalAveragePool, b));
    qn_value *y = APPLY(&t, Gemm, b, weight(&t, DIMS(32, CLASSES), -.5, .5),
                        weight(&t, DIMS(CLASSES), -.1, .1));
    assert_int_equal(qn_graph_add_output(t.graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(t.graph), QN_OK);
    return t;
}

static void end(trial *t)
{
    qn_model_free(t->model);
    qn_context_free(t->ctx);
}

static qn_training *create(trial *t, const char *backend, const char *optimizer)
{
    const qn_training_settings settings = {.optimizer = {optimizer, .9, 1e-3, 1},
                                           .loss = {.1, .25, 2},
                                           .batch = BATCH,
                                           .threads = 2,
                                           .backend = backend};
    qn_training *training;
    if (qn_training_create(&training, t->ctx, t->model, &settings) != QN_OK)
        fail_msg("%s", qn_context_error(t->ctx));
    return training;
}

static qn_training_result step(qn_training *training, int64_t number, double rate)
{
    static float x[BATCH * 300];
    int64_t labels[BATCH];
    uint32_t random = (uint32_t)number * 977u + 3u;
    const qn_tensor input = {QN_FLOAT32, 4, {BATCH, 3, 10, 10}, x};
    qn_training_result result;
    for (size_t i = 0; i < QN_COUNT_OF(x); i++) {
        random = random * 1664525u + 1013904223u;
        x[i] = (float)(random >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < BATCH; i++)
        labels[i] = (number + i) % CLASSES;
    const qn_training_batch batch = {&input, labels, rate, number};
    if (qn_training_step(&result, training, &batch) != QN_OK)
        fail_msg("%s", qn_context_error(training->ctx));
    return result;
}

/* Both train in float32; sums of some hundred products in another order differ by about 1e-6 of
 * their size, which a few steps multiply by less than a hundred. */
static void expect_same(qn_training *a, qn_training *b, double bound)
{
    assert_int_equal(a->n_names, b->n_names);
    for (size_t k = 0; k < a->n_names; k++) {
        const qn_tensor *x, *y;
        double most = 1e-3, worst = 0;
        assert_int_equal(qn_session_parameter_get(&x, a->session, a->names[k]), QN_OK);
        assert_int_equal(qn_session_parameter_get(&y, b->session, a->names[k]), QN_OK);
        for (int64_t i = 0; i < qn_tensor_count(x); i++) {
            most = fmax(most, fabs(qn_tensor_f64(x, i)));
            worst = fmax(worst, fabs(qn_tensor_f64(x, i) - qn_tensor_f64(y, i)));
        }
        if (!(worst <= bound * most))
            fail_msg("'%s' is %g of %g apart", a->names[k], worst, most);
    }
}

static void backends_agree(void **state)
{
    static const char *const optimizers[] = {"nesterov", "adamw"};
    (void)state;
    for (size_t k = 0; k < QN_COUNT_OF(optimizers); k++) {
        trial t = begin();
        qn_training *fast = create(&t, NULL, optimizers[k]),
                    *slow = create(&t, "ref", optimizers[k]);
        for (int64_t i = 1; i <= 3; i++) {
            const qn_training_result a = step(fast, i, .01), b = step(slow, i, .01);
            assert_true(fabs(a.loss - b.loss) < 1e-4);
            assert_true(a.correct == b.correct);
        }
        /* Adam divides by the root of squares: a gradient that is nothing but rounding moves a
         * weight by as much as any other, and only the loss can be compared. */
        if (k == 0)
            expect_same(fast, slow, 1e-4);
        qn_training_free(fast);
        qn_training_free(slow);
        end(&t);
    }
}

static void learns(void **state)
{
    trial t = begin();
    qn_training *training = create(&t, NULL, "nesterov");
    double first = 0, last = 0;
    qn_model *trained;
    (void)state;
    for (int64_t i = 0; i < 60; i++) {
        last = step(training, 1 + i % 3, .02).loss;
        first = i == 0 ? last : first;
    }
    assert_true(last < .7 * first);
    assert_int_equal(qn_training_model(&trained, training), QN_OK);
    assert_int_equal(trained->graph->n_nodes, training->base->graph->n_nodes);
    assert_int_equal(trained->graph->inputs[0]->type.dims[0].value, -1);
    qn_model_free(trained);
    qn_training_free(training);
    end(&t);
}

static void goes_on_from_checkpoints(void **state)
{
    trial t = begin();
    qn_training *whole = create(&t, NULL, "adam"), *first = create(&t, NULL, "adam");
    qn_training *second = create(&t, NULL, "adam");
    qn_train_sums sums[2] = {{1, 2, 3}, {4, 5, 6}}, got[2];
    qn_train_progress progress = {4, {7, 8, 9}, sums, 2}, now = {.epochs = got};
    const qn_fingerprint of = {{1, 2}}, other = {{1, 3}};
    char path[] = "/tmp/quench_checkpoint_XXXXXX";
    bool found;
    (void)state;
    close(mkstemp(path));
    unlink(path);
    for (int64_t i = 1; i <= 8; i++)
        step(whole, i, .01);
    for (int64_t i = 1; i <= 4; i++)
        step(first, i, .01);
    assert_int_equal(qn_checkpoint_load(&found, second, path, of, &now, 2), QN_OK);
    assert_false(found);
    assert_int_equal(qn_checkpoint_save(first, path, of, &progress), QN_OK);
    assert_int_equal(qn_checkpoint_load(&found, second, path, other, &now, 2), QN_E_FORMAT);
    assert_non_null(strstr(qn_context_error(t.ctx), "of another model"));
    assert_int_equal(qn_checkpoint_load(&found, second, path, of, &now, 1), QN_E_FORMAT);
    assert_int_equal(qn_checkpoint_load(&found, second, path, of, &now, 2), QN_OK);
    assert_true(found && now.step == 4 && now.n_epochs == 2 && now.now.correct == 8);
    assert_true(got[1].loss == 4 && got[1].steps == 6);
    for (int64_t i = 5; i <= 8; i++)
        step(second, i, .01);
    expect_same(whole, second, 0);
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(qn_checkpoint_load(&found, second, path, of, &now, 2), QN_E_FORMAT);
    assert_non_null(strstr(qn_context_error(t.ctx), "cut off"));
    unlink(path);
    qn_training_free(whole);
    qn_training_free(first);
    qn_training_free(second);
    end(&t);
}

/* A loss that is no number changes nothing. */
static void stops(void **state)
{
    trial t = begin();
    qn_training *training = create(&t, NULL, "sgd"), *same = create(&t, NULL, "sgd");
    static float x[BATCH * 300];
    const qn_tensor input = {QN_FLOAT32, 4, {BATCH, 3, 10, 10}, x};
    const int64_t labels[BATCH] = {0};
    const qn_training_batch batch = {&input, labels, .1, 17};
    qn_training_result result;
    (void)state;
    step(training, 16, NAN);
    step(same, 16, NAN);
    assert_int_equal(qn_training_step(&result, training, &batch), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(t.ctx), "step 17: the loss is no number"));
    expect_same(training, same, 0);
    qn_training_free(training);
    qn_training_free(same);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backends_agree),
        cmocka_unit_test(learns),
        cmocka_unit_test(goes_on_from_checkpoints),
        cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
