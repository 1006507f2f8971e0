/* The ONNX importer: functions and subgraphs. */
#include "onnx_test.h"

#include "ops/op.h"

/* ---- Functions ------------------------------------------------------------------------------- */

static void test_functions_are_inlined(void **state)
{
    (void)state;
    /* outer(a) = inner(a) + a; inner squeezes along its attribute, in an opset of its own. */
    loaded l = expect_model(
        FUNCTIONS("functions { name: 'inner' domain: 'my' input: 'i' output: 'o' attribute: 'where'"
                  "  opset_import { version: 11 }"
                  "  node { input: 't' output: 'o' op_type: 'Relu' }"
                  "  node { input: 'i' output: 't' op_type: 'Squeeze'"
                  "         attribute { name: 'axes' type: INTS ref_attr_name: 'where' } } }"
                  "functions { name: 'outer' domain: 'my' input: 'a' output: 'r'"
                  "  opset_import { version: 13 } opset_import { domain: 'my' version: 1 }"
                  "  attribute_proto { name: 'axes' ints: [0] type: INTS }"
                  "  node { input: 'a' output: 'o' op_type: 'inner' domain: 'my' name: 'call'"
                  "         attribute { name: 'where' type: INTS ref_attr_name: 'axes' } }"
                  "  node { input: ['o', 'a'] output: 'r' op_type: 'Add' } }",
                  "node { input: 'x' output: 'y' op_type: 'outer' domain: 'my' name: 'first' }"
                  "node { input: 'x' output: 'z' op_type: 'outer' domain: 'my'"
                  "       attribute { name: 'axes' ints: [1] type: INTS } }"
                  "input " FLOATS("x", DIM(1) DIM(1)) "output { name: 'y' } output { name: 'z' }"));
    const qn_graph *g = l.model->graph;
    assert_int_equal(g->n_nodes, 6);
    assert_string_equal(g->outputs[0]->name, "y");
    assert_string_equal(g->outputs[0]->producer->op->name, "Add");
    assert_non_null(qn_graph_value(g, "first/call/t"));
    assert_non_null(qn_graph_value(g, "first/o"));
    const qn_value *second = qn_graph_value(g, "outer_z/call/t");
    assert_int_equal(((const int64_t *)second->producer->in[1]->data->data)[0], 1);
    unload(&l);
}

static void test_function_with_missing_input(void **state)
{
    (void)state;
    /* The second input is left out by the caller, so Slice has no steps. */
    loaded l = expect_model(FUNCTIONS(
        "functions { name: 'f' domain: 'my' input: ['a', 'steps'] output: 'r'"
        "  opset_import { version: 13 }"
        "  node { output: 'one' op_type: 'Constant'"
        "         attribute { name: 'value_ints' ints: [1] type: INTS } }"
        "  node { input: ['a', 'one', 'one', '', 'steps'] output: 'r' op_type: 'Slice' } }",
        "node { input: 'x' output: 'y' op_type: 'f' domain: 'my' }"
        "input " FLOATS("x", DIM(3)) "output { name: 'y' }"));
    const qn_node *slice = l.model->graph->first;
    assert_int_equal(slice->n_in, 5);
    assert_null(slice->in[4]);
    unload(&l);
}

static void test_bad_functions(void **state)
{
    (void)state;
    expect_failure(FUNCTIONS("functions { name: 'f' domain: 'my' input: 'a' output: 'r'"
                             "  node { input: 'a' output: 'r' op_type: 'f' domain: 'my' } }",
                             "node { input: 'x' output: 'y' op_type: 'f' domain: 'my' }"
                             "input { name: 'x' } output { name: 'y' }"),
                   QN_E_FORMAT, "calls itself");
    expect_failure(FUNCTIONS("functions { name: 'f' domain: 'my' }"
                             "functions { name: 'f' domain: 'my' }",
                             ""),
                   QN_E_FORMAT, "'my:f:' is defined twice");
    expect_failure(FUNCTIONS("functions { name: 'f' domain: 'my' output: 'r' }",
                             "node { output: 'y' op_type: 'f' domain: 'my' name: 'n' }"
                             "output { name: 'y' }"),
                   QN_E_FORMAT, "node 'n' (f): its function does not compute the output 'r'");
    expect_failure(MODEL("node { input: 'x' output: 'y' op_type: 'Squeeze' name: 'n'"
                         "  attribute { name: 'axes' type: INTS ref_attr_name: 'w' } }"
                         "input { name: 'x' }"),
                   QN_E_FORMAT, "node 'n' (Squeeze): attribute 'axes' refers to 'w'");
}

/* f0 calls f1 twice, f1 calls f2 twice, ...: 2^39 nodes in 40 functions. */
static void test_functions_cannot_explode(void **state)
{
    (void)state;
    enum { FUNCTIONS_COUNT = 40 };
    char *text = malloc(FUNCTIONS_COUNT * 300 + 1000), *at = text;
    at += sprintf(at, "ir_version: 10 opset_import { version: 13 } ");
    for (int i = 0; i < FUNCTIONS_COUNT; i++)
        at += sprintf(at,
                      "functions { name: 'f%d' domain: 'm' input: 'a' output: 'c'"
                      " node { input: 'a' output: 'b' op_type: 'f%d' domain: 'm' }"
                      " node { input: 'b' output: 'c' op_type: 'f%d' domain: 'm' } } ",
                      i, i + 1, i + 1);
    sprintf(at,
            "functions { name: 'f%d' domain: 'm' input: 'a' output: 'a' }"
            "graph { node { input: 'x' output: 'y' op_type: 'f0' domain: 'm' }"
            " input { name: 'x' } output { name: 'y' } }",
            FUNCTIONS_COUNT);
    loaded l;
    assert_int_equal(load_text(&l, text), QN_E_UNSUPPORTED);
    unload(&l);
    free(text);
}

/* ---- Subgraphs ------------------------------------------------------------------------------- */

#define BOOL(name) "{ name: '" name "' type { tensor_type { elem_type: 9 shape { } } } } "
#define BRANCH(which, body) "attribute { name: '" which "' type: GRAPH g { name: 'b' " body " } }"

static void test_captures(void **state)
{
    (void)state;
    /* The If stands before the node whose output its inner If captures; both branches read 'r', the
     * inner ones through two graphs. */
    loaded l = expect_model(MODEL(
        "node { input: 'c' output: 'y' op_type: 'If' name: 'outer'" BRANCH(
            "then_branch",
            "node { input: 'c' output: 'i' op_type: 'If' name: 'inner'" BRANCH(
                "then_branch", "node { input: ['r', 'x'] output: 't' op_type: 'Add' }"
                               "output { name: 't' }")
                BRANCH("else_branch", "node { input: 'r' output: 'e' op_type: 'Relu' }"
                                      "output { name: 'e' }") " } output { name: 'i' }")
            BRANCH("else_branch", "output { name: 'r' }") " }"
                                                          "node { input: 'x' output: 'r' op_type: "
                                                          "'Relu' name: 'relu' }"
                                                          "input " BOOL("c") "input " FLOATS(
                                                              "x", DIM(3)) "output { name: 'y' }"));
    const qn_graph *g = l.model->graph;
    assert_string_equal(g->first->name, "relu");
    const qn_node *outer = g->last;
    assert_int_equal(outer->n_explicit, 1);
    assert_int_equal(outer->n_in, 4); /* c, then once each: r, x, and c again as a capture */
    const qn_graph *then_branch = qn_node_subgraph(outer, 0);
    assert_ptr_equal(then_branch->owner, outer);
    assert_int_equal(then_branch->n_captures, 3);
    const qn_node *inner = then_branch->first;
    assert_int_equal(inner->n_in, 3); /* the condition, r, x */
    const qn_graph *deepest = qn_node_subgraph(inner, 0);
    assert_int_equal(deepest->n_captures, 2);
    for (size_t i = 0; i < deepest->n_captures; i++) {
        assert_true(deepest->captures[i].inner->is_capture);
        assert_true(deepest->captures[i].slot >= inner->n_explicit);
        assert_ptr_equal(inner->in[deepest->captures[i].slot]->graph, then_branch);
    }
    const qn_graph *else_branch = qn_node_subgraph(outer, 1);
    assert_true(else_branch->outputs[0]->is_capture);
    assert_ptr_equal(outer->in[else_branch->captures[0].slot], g->first->out[0]);
    assert_int_equal(g->outputs[0]->type.dims[0].value, 3);
    unload(&l);
}

static void test_inner_names_hide_outer_ones(void **state)
{
    (void)state;
    /* The branches call their results as the If calls its own: no cycle. */
    loaded l = expect_model(MODEL(
        "node { input: 'c' output: 'y' op_type: 'If'" BRANCH(
            "then_branch", "node { input: 'x' output: 'y' op_type: 'Relu' } output { name: 'y' }")
            BRANCH("else_branch", "initializer { name: 'y' dims: 1 data_type: 1 float_data: 2 }"
                                  "output { name: 'y' }") " }"
                                                          "input " BOOL("c") "input " FLOATS(
                                                              "x", DIM(1)) "output { name: 'y' }"));
    assert_int_equal(l.model->graph->n_nodes, 1);
    unload(&l);
}

static void test_loop_body(void **state)
{
    (void)state;
    loaded l = expect_model(
        MODEL("node { input: ['n', '', 'x'] output: 'y' op_type: 'Loop' attribute { name: 'body'"
              "  type: GRAPH g { name: 'body'"
              "  input { name: 'i' } input { name: 'go' } input { name: 'sum' }"
              "  node { input: ['sum', 'x'] output: 'next' op_type: 'Add' }"
              "  output { name: 'go' } output { name: 'next' } } } }"
              "initializer { name: 'n' data_type: 7 int64_data: 4 }"
              "input " FLOATS("x", DIM(3)) "output { name: 'y' }"));
    const qn_node *loop = l.model->graph->first;
    assert_int_equal(loop->n_explicit, 3);
    assert_null(loop->in[1]);
    const qn_graph *body = qn_node_subgraph(loop, 0);
    assert_int_equal(body->n_inputs, 3);
    assert_int_equal(body->n_captures, 1);
    assert_int_equal(l.model->graph->outputs[0]->type.dims[0].value, 3);
    unload(&l);
}

static void test_function_with_subgraph(void **state)
{
    (void)state;
    /* A branch inside a function reads the function's input and refers to its attribute. */
    loaded l = expect_model(FUNCTIONS(
        "functions { name: 'f' domain: 'my' input: ['p', 'a'] output: 'r' attribute: 'along'"
        "  opset_import { version: 13 }"
        "  node { input: 'p' output: 'r' op_type: 'If'" BRANCH(
            "then_branch", "node { input: ['a', 'a'] output: 't' op_type: 'Concat'"
                           "       attribute { name: 'axis' type: INT ref_attr_name: 'along' } }"
                           "output { name: 't' }")
            BRANCH("else_branch", "output { name: 'a' }") " } }",
        "node { input: ['c', 'x'] output: 'y' op_type: 'f' domain: 'my'"
        "       attribute { name: 'along' i: 1 type: INT } }"
        "input " BOOL("c") "input " FLOATS("x", DIM(2) DIM(3)) "output { name: 'y' }"));
    const qn_graph *branch = qn_node_subgraph(l.model->graph->first, 0);
    assert_int_equal(branch->outputs[0]->type.dims[1].value, 6);
    unload(&l);
}

/* Loops in loops whose carried value never keeps its shape: inference must not multiply. */
static void test_nested_loops_are_inferred_quickly(void **state)
{
    (void)state;
    enum { DEPTH = 25 };
    char *text = malloc(DEPTH * 600 + 1000), *at = text;
    at += sprintf(at, "ir_version: 8 opset_import { version: 13 } graph { name: 'g' "
                      "initializer { name: 'n' data_type: 7 int64_data: 4 } input " FLOATS(
                          "v0", DIM(1) DIM(1) DIM(1) DIM(1)));
    for (int i = 0; i < DEPTH; i++)
        at += sprintf(at,
                      "node { input: ['n', '', 'v%d'] output: 'w%d' op_type: 'Loop' attribute {"
                      " name: 'body' type: GRAPH g { name: 'b' input { name: 'i%d' }"
                      " input { name: 'c%d' } input { name: 'v%d' } ",
                      i, i, i, i, i + 1);
    at += sprintf(at,
                  "node { input: ['v%d', 'v%d'] output: 'w%d' op_type: 'Concat'"
                  " attribute { name: 'axis' i: 0 type: INT } } ",
                  DEPTH, DEPTH, DEPTH);
    for (int i = DEPTH; i > 0; i--)
        at += sprintf(at, "output { name: 'c%d' } output { name: 'w%d' } } } } ", i - 1, i);
    sprintf(at, "output { name: 'w0' } }");
    loaded l = expect_model(text);
    assert_int_equal(l.model->graph->outputs[0]->type.dtype, QN_FLOAT32);
    unload(&l);
    free(text);
}

static void test_bad_subgraphs(void **state)
{
    (void)state;
    expect_failure(
        MODEL("node { input: 'c' output: 'y' op_type: 'If' name: 'n'" BRANCH(
            "then_branch", "node { input: 'y' output: 't' op_type: 'Relu' }"
                           "output { name: 't' }") BRANCH("else_branch", "") " } input " BOOL("c")),
        QN_E_FORMAT, "node 'n' (If) depends on its own output");
    expect_failure(
        MODEL("node { input: 'c' output: 'y' op_type: 'If' name: 'n'" BRANCH(
            "then_branch", "node { input: 'q' output: 't' op_type: 'Relu' name: 'm' }"
                           "output { name: 't' }") BRANCH("else_branch", "") " } input " BOOL("c")),
        QN_E_FORMAT, "node 'n' (If): attribute 'then_branch': node 'm' (Relu): nothing computes");
    expect_failure(MODEL("node { input: 'c' output: 'y' op_type: 'If' name: 'n'"
                         " attribute { name: 'then_branch' type: GRAPH } } input " BOOL("c")),
                   QN_E_FORMAT, "attribute 'then_branch': it has no value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_are_inlined),
        cmocka_unit_test(test_function_with_missing_input),
        cmocka_unit_test(test_bad_functions),
        cmocka_unit_test(test_functions_cannot_explode),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_inner_names_hide_outer_ones),
        cmocka_unit_test(test_loop_body),
        cmocka_unit_test(test_function_with_subgraph),
        cmocka_unit_test(test_nested_loops_are_inferred_quickly),
        cmocka_unit_test(test_bad_subgraphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
