/* QLSTM, QGRU and QRNN: what they mean, beside the float operators over the same numbers, and that
 * the fast kernels give the reference's bits. */
#include "int8_test.h"
#include "ops/qrecurrent.h"

typedef struct net {
    const qn_op *integer, *real;
    int64_t gates, steps, batch, inputs, hidden, both, layout;
    qn_dtype x, w, y;
} net;

static net random_net(fixture *f, const qn_op *integer, const qn_op *real)
{
    net n = {.integer = integer,
             .real = real,
             .gates = qn_qcell_gates(integer),
             .steps = 1 + pick(f, pick(f, 4) ? 9 : 40),
             .batch = 1 + pick(f, pick(f, 2) ? 1 : 7),
             .inputs = 1 + pick(f, pick(f, 4) ? 50 : 600),
             .hidden = 1 + pick(f, pick(f, 2) ? 20 : 80),
             .both = 1 + pick(f, 2),
             .layout = pick(f, 4) == 0};
    n.x = pick_width(f, pick_byte(f));
    n.y = qn_dtype_size(n.x) == 2 ? pick(f, 2) ? QN_INT16 : QN_UINT16 : pick_byte(f);
    n.w = qn_dtype_size(n.x) == 2 ? QN_INT16 : QN_INT8;
    return n;
}

static double most_of(qn_dtype dtype)
{
    return qn_dtype_size(dtype) == 2 ? 32768 : 128;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static qn_value *one_scale(fixture *f, double scale)
{
    return add_number(f, scale);
}

/* The middle of the type, so that states of both signs fit. */
static qn_value *middle(fixture *f, qn_dtype dtype)
{
    const bool is_signed = dtype == QN_INT8 || dtype == QN_INT16;
    const int64_t zero = is_signed ? 0 : (int64_t)most_of(dtype);
    qn_tensor *t = constant_tensor(f, dtype, 0, NULL);
    qn_store_i64(t->data, dtype, 0, &zero, 1);
    return constant_value(f, t);
}

static qn_value *integers(fixture *f, qn_dtype dtype, int32_t rank, const int64_t *dims)
{
    qn_value *value = add_input(f, rank, dims);
    value->type.dtype = dtype;
    return value;
}

static qn_value *floats(fixture *f, int32_t rank, const int64_t *dims, float size)
{
    qn_tensor *t = constant_tensor(f, QN_FLOAT32, rank, dims);
    for (int64_t i = 0; i < qn_tensor_count(t); i++)
        ((float *)t->data)[i] = noise(f) * size;
    return constant_value(f, t);
}

static qn_value *lengths(fixture *f, const net *n)
{
    qn_tensor *t = constant_tensor(f, QN_INT32, 1, &n->batch);
    for (int64_t b = 0; b < n->batch; b++)
        ((int32_t *)t->data)[b] = (int32_t)pick(f, n->steps + 1);
    return constant_value(f, t);
}

/* Small weights: see the bounds below. */
static void add_inputs(qn_value *in[QN_QREC_INPUTS], fixture *f, const net *n)
{
    const int64_t rows = n->gates * n->hidden, first = n->layout ? n->batch : n->steps;
    const int64_t x[] = {first, n->layout ? n->steps : n->batch, n->inputs};
    const int64_t w[] = {n->both, rows, n->inputs}, r[] = {n->both, rows, n->hidden};
    const int64_t b[] = {n->both, 2 * rows}, p[] = {n->both, 3 * n->hidden};
    const int64_t h[] = {n->layout ? n->batch : n->both, n->layout ? n->both : n->batch, n->hidden};
    in[QN_QREC_X] = integers(f, n->x, 3, x);
    in[QN_QREC_X_SCALE] = one_scale(f, 2 / most_of(n->x));
    in[QN_QREC_X_ZERO] = middle(f, n->x);
    in[QN_QREC_W] = add_bytes(f, n->w, 3, w);
    in[QN_QREC_W_SCALE] =
        add_scales(f, pick(f, 2) ? rows : 0, 0.2 / ((double)n->inputs * most_of(n->w)));
    in[QN_QREC_R] = add_bytes(f, n->w, 3, r);
    in[QN_QREC_R_SCALE] =
        add_scales(f, pick(f, 2) ? rows : 0, 0.02 / ((double)n->hidden * most_of(n->w)));
    in[QN_QREC_Y_SCALE] = one_scale(f, 1 / (most_of(n->y) - 1));
    in[QN_QREC_Y_ZERO] = middle(f, n->y);
    in[QN_QREC_B] = pick(f, 3) ? floats(f, 2, b, 0.1f) : NULL;
    in[QN_QREC_LENGTHS] = pick(f, 3) ? NULL : lengths(f, n);
    in[QN_QREC_H] = pick(f, 2) ? integers(f, n->y, 3, h) : NULL;
    if (n->gates == 4) {
        in[QN_QREC_C] = pick(f, 2) ? floats(f, 3, h, 1) : NULL;
        in[QN_QREC_P] = pick(f, 3) ? NULL : floats(f, 2, p, 0.02f);
    }
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static qn_node *add_layer(fixture *f, const qn_op *op, qn_value *const *in, const net *n)
{
    static const int64_t ways[] = {QN_DIRECTION_FORWARD, QN_DIRECTION_REVERSE};
    const int32_t n_out = (int32_t)op->n_out;
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f->graph, op, "cell", (int32_t)op->n_in, n_out), QN_OK);
    for (int32_t i = 0; i < (int32_t)op->n_in; i++)
        assert_int_equal(qn_node_set_input(node, i, in[i]), QN_OK);
    for (int32_t o = 0; o < n_out; o++) {
        qn_value *out;
        assert_int_equal(qn_value_create(&out, f->graph, NULL), QN_OK);
        qn_node_set_output(node, o, out);
    }
    qn_recurrent_attrs *a = node->attrs;
    a->direction = n->both == 2 ? QN_DIRECTION_BOTH : ways[n->steps % 2];
    a->layout = n->layout;
    a->linear_before_reset = n->gates == 3 && n->inputs % 2;
    a->input_forget = n->gates == 4 && n->inputs % 5 == 0;
    if (n->hidden % 7 == 0)
        a->clip = 0.75f;
    return node;
}

static qn_value *real(fixture *f, qn_value *x, qn_value *scale, qn_value *zero)
{
    if (!x)
        return NULL;
    qn_value *const in[] = {x, scale, zero};
    qn_node *node = add_node(f, &qn_op_DequantizeLinear, zero ? 3 : 2, in);
    if (scale->data->rank)
        ((qn_quantize_attrs *)node->attrs)->axis = 1;
    return result_of(node);
}

static qn_node *add_twin(fixture *f, qn_value *const in[QN_QREC_INPUTS], const net *n)
{
    qn_value *const own[] = {real(f, in[QN_QREC_X], in[QN_QREC_X_SCALE], in[QN_QREC_X_ZERO]),
                             real(f, in[QN_QREC_W], in[QN_QREC_W_SCALE], NULL),
                             real(f, in[QN_QREC_R], in[QN_QREC_R_SCALE], NULL),
                             in[QN_QREC_B],
                             in[QN_QREC_LENGTHS],
                             real(f, in[QN_QREC_H], in[QN_QREC_Y_SCALE], in[QN_QREC_Y_ZERO]),
                             in[QN_QREC_C],
                             in[QN_QREC_P]};
    return add_layer(f, n->real, own, n);
}

/* ---- Meaning --------------------------------------------------------------------------------- */

static void fill_inputs(fixture *f, qn_tensor *in)
{
    for (size_t i = 0; i < f->graph->n_inputs; i++) {
        const qn_type *type = &f->graph->inputs[i]->type;
        in[i] = (qn_tensor){.dtype = type->dtype, .rank = type->rank};
        assert_true(qn_type_is_static(type, in[i].dims));
        const int64_t bytes = qn_tensor_count(&in[i]) * (int64_t)qn_dtype_size(type->dtype);
        in[i].data = malloc((size_t)bytes);
        fill_bytes(f, in[i].data, bytes, false);
    }
}

static double farthest(const qn_session *session, size_t pairs)
{
    double worst = 0;
    for (size_t o = 0; o < pairs; o++) {
        const qn_tensor *a = qn_session_output(session, 2 * o);
        const qn_tensor *b = qn_session_output(session, 2 * o + 1);
        for (int64_t i = 0; i < qn_tensor_count(a); i++)
            worst = fmax(worst, fabs((double)((const float *)a->data)[i] -
                                     (double)((const float *)b->data)[i]));
    }
    return worst;
}

/* How far the integers are from the float operator: of the states in steps, of the cell in the
 * steps of 8 bits. */
static double meaning_of(uint32_t seed, const qn_op *integer, const qn_op *real_op)
{
    fixture f = fixture_begin(seed);
    const net n = random_net(&f, integer, real_op);
    qn_value *in[QN_QREC_INPUTS] = {NULL};
    qn_tensor fed[4];
    add_inputs(in, &f, &n);
    qn_node *nodes[] = {add_layer(&f, integer, in, &n), add_twin(&f, in, &n)};
    for (int k = 0; k < 2; k++)
        (void)result_of(nodes[k]);
    for (int32_t o = 0; o < nodes[0]->n_out; o++) {
        qn_value *got = nodes[0]->out[o];
        add_output(&f, o < 2 ? real(&f, got, in[QN_QREC_Y_SCALE], in[QN_QREC_Y_ZERO]) : got);
        add_output(&f, nodes[1]->out[o]);
    }
    fill_inputs(&f, fed);
    const double inside = 0.003, unit = 1 / (most_of(n.y) - 1);
    outcome o = run_with(&f, "ref", fed, f.graph->n_inputs);
    const double worst = farthest(o.session, (size_t)nodes[0]->n_out);
    outcome_end(&o);
    for (size_t i = 0; i < f.graph->n_inputs; i++)
        free(fed[i].data);
    fixture_end(&f);
    return worst / (inside + unit);
}

/* Arguments of functions are within 1.3: |x| <= 2, sums of |w| at most 0.5, of |r| 0.05, biases and
 * peepholes 0.22. So gates are below 0.79, and what an error d of the state does to the next one is
 * small: 0.05 d in each argument, 0.4 d in the cell, which has 1 / (1 - 0.79) times what a step
 * adds, 0.35 d in the state of an LSTM, whose own rounding is half a unit: 0.8 units together. A
 * GRU carries 0.79 of its rounding on: 2.4 units; and RNN half a unit and a little. What the units
 * inside do to arguments and functions is below 4e-4 and grows in the same way, to 0.003. */
static double lstm_meaning(uint32_t seed)
{
    return meaning_of(seed, &qn_op_qn_QLSTM, &qn_op_LSTM);
}

static double gru_meaning(uint32_t seed)
{
    return meaning_of(seed, &qn_op_qn_QGRU, &qn_op_GRU);
}

static double rnn_meaning(uint32_t seed)
{
    return meaning_of(seed, &qn_op_qn_QRNN, &qn_op_RNN);
}

static void test_meaning(void **state)
{
    (void)state;
    run_cases(lstm_meaning, 40, 1);
    run_cases(gru_meaning, 40, 2.4);
    run_cases(rnn_meaning, 20, 1);
}

/* ---- Fast kernels ---------------------------------------------------------------------------- */

static double kernel_case(uint32_t seed, const qn_op *integer)
{
    fixture f = fixture_begin(seed);
    const net n = random_net(&f, integer, NULL);
    qn_value *in[QN_QREC_INPUTS] = {NULL};
    add_inputs(in, &f, &n);
    qn_node *node = add_layer(&f, integer, in, &n);
    (void)result_of(node);
    for (int32_t o = 0; o < node->n_out; o++)
        add_output(&f, node->out[o]);
    const double count = differing(&f, "int recurrent");
    fixture_end(&f);
    return count;
}

static double lstm_kernel(uint32_t seed)
{
    return kernel_case(seed, &qn_op_qn_QLSTM);
}

static double gru_kernel(uint32_t seed)
{
    return kernel_case(seed, &qn_op_qn_QGRU);
}

static double rnn_kernel(uint32_t seed)
{
    return kernel_case(seed, &qn_op_qn_QRNN);
}

static void test_kernels(void **state)
{
    (void)state;
    run_cases(lstm_kernel, 60, 0);
    run_cases(gru_kernel, 60, 0);
    run_cases(rnn_kernel, 30, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meaning),
                                       cmocka_unit_test(test_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
