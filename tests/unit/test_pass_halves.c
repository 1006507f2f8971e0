/* 16-bit floats are computed in float32, in graphs that run and not in those that become files. */
#include "pass_test.h"

/* x -> Conv -> Relu -> y in halves, and z, a Cast to an integer of what Conv gives. */
static void half_model(fixture *f, qn_dtype half)
{
    const int64_t x_dims[] = {2, 4, 5, 6}, w_dims[] = {6, 4, 3, 3};
    qn_value *x = input(f, "x", 4, x_dims), *w = weights(f, 4, w_dims);
    qn_value *y = apply(f, &qn_op_Conv, 2, x, w);
    const qn_type type = qn_type_tensor(half, 4, w->data->dims);
    qn_tensor *small;
    x->type.dtype = half;
    assert_int_equal(qn_tensor_create(&small, f->ctx, f->graph->arena, &type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(small); i++) {
        const double number = qn_tensor_f64(w->data, i);
        qn_store_f64(small->data, half, i, &number, 1);
    }
    assert_int_equal(qn_value_constant(&w, f->graph, "small", small), QN_OK);
    assert_int_equal(qn_node_set_input(y->producer, 1, w), QN_OK);
    qn_value *z = apply(f, &qn_op_Cast, 1, y);
    ((qn_cast_attrs *)z->producer->attrs)->to = QN_INT32;
    assert_int_equal(qn_graph_add_output(f->graph, apply(f, &qn_op_Relu, 1, y)), QN_OK);
    assert_int_equal(qn_graph_add_output(f->graph, z), QN_OK);
}

/* Conv and Relu in float32, with a Cast at x, at y, and before the one that was there, which reads
 * halves. */
static void check_widened(const qn_graph *graph, qn_dtype half)
{
    const qn_node *relu = graph->outputs[0]->producer->in[0]->producer;
    const qn_node *back = graph->outputs[1]->producer->in[0]->producer;
    assert_int_equal(graph->n_nodes, 6);
    assert_int_equal(count_op(graph, &qn_op_Cast), 4);
    assert_int_equal(graph->inputs[0]->type.dtype, half);
    assert_int_equal(graph->outputs[0]->type.dtype, half);
    assert_string_equal(graph->outputs[0]->name, "Relu");
    assert_ptr_equal(relu->op, &qn_op_Relu);
    assert_string_equal(relu->in[0]->name, "Conv");
    assert_int_equal(relu->in[0]->producer->in[1]->data->dtype, QN_FLOAT32);
    assert_ptr_equal(back->in[0], relu->in[0]);
    assert_int_equal(back->out[0]->type.dtype, half);
}

static void widens_halves(void **state)
{
    static const qn_dtype halves[] = {QN_FLOAT16, QN_BFLOAT16};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        fixture f = begin();
        const qn_dtype half = halves[i % 2];
        const qn_pass_options options = {.purpose = i < 2 ? QN_PURPOSE_RUN : QN_PURPOSE_CONVERT};
        half_model(&f, half);
        assert_int_equal(qn_passes_run(f.model, &options, NULL), QN_OK);
        if (i < 2)
            check_widened(f.graph, half);
        else
            assert_int_equal(f.graph->n_nodes, 3);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(widens_halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
