/* LSTM, GRU and RNN against the reference: directions, lengths, states, biases, odd sizes. */
#include "int8_test.h"

enum { OUTPUTS = 3 };

typedef struct sizes {
    int64_t steps, batch, inputs, hidden, directions, gates;
} sizes;

static sizes random_sizes(fixture *f, int64_t gates)
{
    return (sizes){.steps = 1 + pick(f, pick(f, 4) ? 9 : 40),
                   .batch = 1 + pick(f, pick(f, 4) ? 7 : 20),
                   .inputs = 1 + pick(f, 50),
                   .hidden = 1 + pick(f, pick(f, 2) ? 20 : 80),
                   .directions = 1 + pick(f, 2),
                   .gates = gates};
}

/* Small enough that a state does not blow up what differs in the last digit. */
static qn_value *weights(fixture *f, int32_t rank, const int64_t *dims)
{
    qn_value *value = add_weights(f, rank, dims);
    for (int64_t i = 0; i < qn_tensor_count(value->data); i++)
        ((float *)value->data->data)[i] /= sqrtf((float)dims[rank - 1]);
    return value;
}

static qn_value *lengths(fixture *f, const sizes *s)
{
    qn_tensor *t = constant_tensor(f, QN_INT32, 1, &s->batch);
    for (int64_t b = 0; b < s->batch; b++)
        ((int32_t *)t->data)[b] = (int32_t)pick(f, s->steps + 1);
    return constant_value(f, t);
}

static qn_node *add_recurrent(fixture *f, const qn_op *op, const sizes *s)
{
    const int64_t x[] = {s->steps, s->batch, s->inputs}, rows = s->gates * s->hidden;
    const int64_t w[] = {s->directions, rows, s->inputs}, r[] = {s->directions, rows, s->hidden};
    const int64_t b[] = {s->directions, 2 * rows}, h[] = {s->directions, s->batch, s->hidden};
    const bool has_cell = op == &qn_op_LSTM;
    qn_value *const in[] = {add_input(f, 3, x),
                            weights(f, 3, w),
                            weights(f, 3, r),
                            pick(f, 3) ? weights(f, 2, b) : NULL,
                            pick(f, 3) ? NULL : lengths(f, s),
                            pick(f, 2) ? add_input(f, 3, h) : NULL,
                            has_cell && pick(f, 2) ? add_input(f, 3, h) : NULL};
    const int32_t n_in = has_cell ? 7 : 6, n_out = has_cell ? 3 : 2;
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f->graph, op, "cell", n_in, n_out), QN_OK);
    for (int32_t i = 0; i < n_in; i++)
        assert_int_equal(qn_node_set_input(node, i, in[i]), QN_OK);
    const int64_t wanted = 1 + pick(f, 7);
    for (int32_t o = 0; o < n_out; o++) {
        qn_value *out;
        if (!(wanted >> o & 1) && (o > 0 || wanted & 2))
            continue;
        assert_int_equal(qn_value_create(&out, f->graph, NULL), QN_OK);
        qn_node_set_output(node, o, out);
    }
    ((qn_recurrent_attrs *)node->attrs)->direction = s->directions == 2 ? QN_DIRECTION_BOTH
                                                     : pick(f, 2)       ? QN_DIRECTION_FORWARD
                                                                        : QN_DIRECTION_REVERSE;
    return node;
}

static double finish_case(fixture *f, qn_node *node, const char *kernel)
{
    (void)result_of(node);
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o])
            add_output(f, node->out[o]);
    }
    const double worst = compare(f, kernel);
    fixture_end(f);
    return worst;
}

static double lstm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const sizes s = random_sizes(&f, 4);
    return finish_case(&f, add_recurrent(&f, &qn_op_LSTM, &s), "recurrent");
}

static double gru_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const sizes s = random_sizes(&f, 3);
    qn_node *node = add_recurrent(&f, &qn_op_GRU, &s);
    ((qn_recurrent_attrs *)node->attrs)->linear_before_reset = pick(&f, 2);
    return finish_case(&f, node, "recurrent");
}

static const qn_string words[] = {{"Tanh", 4}, {"relu", 4}, {"Sigmoid", 7}};

static double rnn_case(uint32_t seed)
{
    static const qn_string pairs[][2] = {{{"Tanh", 4}, {"tanh", 4}}, {{"relu", 4}, {"Relu", 4}}};
    fixture f = fixture_begin(seed);
    const sizes s = random_sizes(&f, 1);
    qn_node *node = add_recurrent(&f, &qn_op_RNN, &s);
    if (pick(&f, 3))
        ((qn_recurrent_attrs *)node->attrs)->activations =
            (qn_strings){pairs[pick(&f, 2)], (size_t)s.directions};
    return finish_case(&f, node, "recurrent");
}

/* What the kernel has not is left to the reference. */
static double odd_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    sizes s = random_sizes(&f, 1);
    s.directions = 2;
    qn_node *node = add_recurrent(&f, &qn_op_RNN, &s);
    qn_recurrent_attrs *a = node->attrs;
    if (pick(&f, 2))
        a->activations = (qn_strings){words + pick(&f, 2), 2};
    else
        a->clip = 0.3f;
    return finish_case(&f, node, NULL);
}

static void test_lstm(void **state)
{
    (void)state;
    run_cases(lstm_case, 40, 1e-5);
}

static void test_gru(void **state)
{
    (void)state;
    run_cases(gru_case, 60, 1e-5);
}

static void test_rnn(void **state)
{
    (void)state;
    run_cases(rnn_case, 40, 1e-5);
    run_cases(odd_case, 20, 1e-5);
}

/* A length that the sequence does not have fails, as the reference does. */
static void test_bad_length(void **state)
{
    (void)state;
    const int64_t dims[] = {3, 2, 4}, w[] = {1, 15, 4}, r[] = {1, 15, 5}, batch = 2;
    static float x[3 * 2 * 4];
    static int32_t bad[] = {3, 4};
    fixture f = fixture_begin(1);
    qn_value *given = add_input(&f, 1, &batch);
    given->type.dtype = QN_INT32;
    qn_value *const in[] = {add_input(&f, 3, dims), weights(&f, 3, w), weights(&f, 3, r), NULL,
                            given};
    add_output(&f, result_of(add_node(&f, &qn_op_GRU, 5, in)));
    const qn_tensor fed[] = {{.dtype = QN_INT32, .rank = 1, .dims = {2}, .data = bad},
                             {.dtype = QN_FLOAT32, .rank = 3, .dims = {3, 2, 4}, .data = x}};
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    qn_plan *plan;
    qn_session *session;
    assert_int_equal(qn_plan_create(&plan, f.ctx, f.model, &options), QN_OK);
    assert_int_equal(qn_session_create(&session, f.ctx, plan), QN_OK);
    must_use(plan, "recurrent");
    assert_int_equal(qn_session_run(session, fed, 2), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(f.ctx), "sequence length 4 is outside [0, 3]"));
    bad[1] = 0;
    assert_int_equal(qn_session_run(session, fed, 2), QN_OK);
    qn_session_free(session);
    qn_plan_free(plan);
    fixture_end(&f);
}

/* Not a number in one item stays there and reaches all later steps of it. */
static void test_nan(void **state)
{
    (void)state;
    const int64_t dims[] = {3, 2, 4}, w[] = {1, 60, 4}, r[] = {1, 60, 20};
    float x[3 * 2 * 4] = {0};
    fixture f = fixture_begin(2);
    qn_value *const in[] = {add_input(&f, 3, dims), weights(&f, 3, w), weights(&f, 3, r)};
    add_output(&f, result_of(add_node(&f, &qn_op_GRU, 3, in)));
    x[8] = NAN; /* step 1 of item 0 */
    const qn_tensor fed = {.dtype = QN_FLOAT32, .rank = 3, .dims = {3, 2, 4}, .data = x};
    for (int k = 0; k < 2; k++) {
        outcome o = run_with(&f, k ? NULL : "ref", &fed, 1);
        const float *y = qn_session_output(o.session, 0)->data;
        for (int i = 0; i < 3 * 2 * 20; i++)
            assert_int_equal(isnan(y[i]) != 0, i >= 40 && i / 20 % 2 == 0);
        outcome_end(&o);
    }
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lstm), cmocka_unit_test(test_gru), cmocka_unit_test(test_rnn),
        cmocka_unit_test(test_bad_length), cmocka_unit_test(test_nan)};
    return RUN_TESTS_OF("cpu", tests);
}
