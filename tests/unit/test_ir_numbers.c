/* Numbers of values and nodes, by which tables go: they stay the same while a graph is edited. */
#include "backend_test.h"
#include "ops/clone.h"

enum { NODES = 5 };

/* x -> Relu -> Relu -> ... */
static fixture make_chain(qn_node **nodes)
{
    const int64_t dims[] = {2};
    fixture f = fixture_begin(1);
    qn_value *value = add_input(&f, 1, dims);
    for (int i = 0; i < NODES; i++) {
        value = apply(&f, &qn_op_Relu, value, NULL);
        nodes[i] = value->producer;
    }
    add_output(&f, value);
    return f;
}

static void expect_values(const qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_values; i++)
        assert_int_equal(graph->values[i]->number, i);
}

static void test_edits(void **state)
{
    (void)state;
    qn_node *nodes[NODES], *fresh;
    fixture f = make_chain(nodes);
    bool done;
    assert_int_equal(qn_value_replace(&done, nodes[2]->out[0], nodes[1]->out[0]), QN_OK);
    qn_node_remove(nodes[2]);
    assert_int_equal(qn_node_create(&fresh, f.graph, &qn_op_Relu, nodes[0]), QN_OK);
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(nodes[i]->number, i);
        nodes[i]->mark = 77; /* scratch: nobody's number */
        assert_int_equal(nodes[i]->number, i);
    }
    assert_int_equal(fresh->number, NODES);
    assert_int_equal(f.graph->made.numbers, NODES + 1);
    expect_values(f.graph);
    fixture_end(&f);
}

static void test_renumber(void **state)
{
    (void)state;
    qn_node *nodes[NODES], *fresh;
    fixture f = make_chain(nodes);
    uint32_t place = 0;
    assert_int_equal(qn_node_create(&fresh, f.graph, &qn_op_Relu, nodes[0]), QN_OK);
    qn_graph_renumber(f.graph);
    for (const qn_node *node = f.graph->first; node; node = node->next)
        assert_int_equal(node->number, place++);
    assert_int_equal(f.graph->made.numbers, f.graph->n_nodes);
    assert_int_equal(fresh->number, 0);
    fixture_end(&f);
}

/* A clone has numbers of its own, without gaps. */
static void test_clone(void **state)
{
    (void)state;
    qn_node *nodes[NODES];
    fixture f = make_chain(nodes);
    qn_model *clone;
    bool done;
    assert_int_equal(qn_value_replace(&done, nodes[2]->out[0], nodes[1]->out[0]), QN_OK);
    qn_node_remove(nodes[2]);
    assert_int_equal(qn_model_clone(&clone, f.ctx, f.model), QN_OK);
    assert_int_equal(clone->graph->made.numbers, NODES - 1);
    expect_values(clone->graph);
    qn_model_free(clone);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_renumber),
        cmocka_unit_test(test_clone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
