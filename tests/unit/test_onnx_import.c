/* The ONNX importer: structure of graphs, functions, subgraphs, and how it refuses bad files. */
#include "onnx_test.h"

#include "fault.h"
#include "ops/op.h"

static void expect_failure(const char *text, qn_status status, const char *message)
{
    loaded l;
    assert_int_equal(load_text(&l, text), status);
    if (!strstr(qn_context_error(l.ctx), message))
        fail_msg("\"%s\" does not contain \"%s\"", qn_context_error(l.ctx), message);
    unload(&l);
}

static loaded expect_model(const char *text)
{
    loaded l;
    if (load_text(&l, text) != QN_OK)
        fail_msg("%s", qn_context_error(l.ctx));
    return l;
}

/* ---- Graphs ---------------------------------------------------------------------------------------- */

static void test_small_graph(void **state)
{
    (void)state;
    loaded l = expect_model(
        "ir_version: 8 producer_name: 'p' producer_version: '1' domain: 'd' model_version: 7\n"
        "doc_string: 'md' metadata_props { key: 'k' value: 'v' }\n"
        "opset_import { version: 13 } opset_import { domain: 'x' version: 2 }\n"
        "graph { name: 'g' doc_string: 'gd'\n"
        "node { input: ['x', 'w'] output: 'y' op_type: 'Add' name: 'add' doc_string: 'nd' }\n"
        "node { input: 'y' output: 'z' op_type: 'Relu' }\n"
        "initializer { dims: 2 data_type: 1 float_data: [1, 2] name: 'w' doc_string: 'wd' }\n"
        "input { name: 'x' doc_string: 'xd' type { tensor_type { elem_type: 1 shape {\n"
        "  dim { dim_param: 'N' } dim { dim_value: 2 } } } } }\n"
        "output { name: 'z' } }");
    const qn_model *m = l.model;
    assert_string_equal(m->producer, "p");
    assert_string_equal(m->producer_version, "1");
    assert_string_equal(m->domain, "d");
    assert_string_equal(m->doc, "md");
    assert_int_equal(m->model_version, 7);
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->metadata.count, 1);
    assert_string_equal(m->metadata.at[0].key, "k");
    assert_string_equal(m->metadata.at[0].value, "v");
    assert_int_equal(m->n_opsets, 2);
    assert_int_equal(m->opsets[1].version, 2);
    const qn_graph *g = m->graph;
    assert_string_equal(g->name, "g");
    assert_string_equal(g->doc, "gd");
    assert_int_equal(g->n_nodes, 2);
    assert_string_equal(g->first->name, "add");
    assert_string_equal(g->first->doc, "nd");
    assert_string_equal(g->last->name, "Relu_z");
    assert_int_equal(g->n_inputs, 1);
    assert_string_equal(g->inputs[0]->name, "x");
    assert_string_equal(g->inputs[0]->doc, "xd");
    assert_string_equal(g->inputs[0]->type.dims[0].symbol, "N");
    assert_int_equal(g->inputs[0]->type.dims[1].value, 2);
    const qn_value *w = qn_graph_value(g, "w");
    assert_ptr_equal(g->first->in[1], w);
    assert_string_equal(w->doc, "wd");
    assert_true(((const float *)w->data->data)[1] == 2.0f);
    /* Types are inferred. */
    assert_int_equal(g->outputs[0]->type.dtype, QN_FLOAT32);
    assert_string_equal(g->outputs[0]->type.dims[0].symbol, "N");
    unload(&l);
}

static void test_nodes_are_sorted(void **state)
{
    (void)state;
    loaded l = expect_model(MODEL("node { input: 'c' output: 'd' op_type: 'Relu' name: '4' }"
                                  "node { input: 'b' output: 'c' op_type: 'Relu' name: '3' }"
                                  "node { input: 'x' output: 'a' op_type: 'Relu' name: '1' }"
                                  "node { input: 'a' output: 'b' op_type: 'Relu' name: '2' }"
                                  "input " FLOATS("x", DIM(1)) "output { name: 'd' }"));
    const qn_node *node = l.model->graph->first;
    for (int i = 1; i <= 4; i++, node = node->next)
        assert_int_equal(node->name[0], '0' + i);
    unload(&l);
}

static void test_long_reversed_chain(void **state)
{
    (void)state;
    enum { LENGTH = 50000 };
    char *text = malloc(LENGTH * 80 + 500), *at = text;
    at += sprintf(at, "ir_version: 8 opset_import { version: 13 } graph { name: 'g' ");
    for (int i = LENGTH; i > 0; i--)
        at += sprintf(at, "node { input: 'v%d' output: 'v%d' op_type: 'Relu' }\n", i - 1, i);
    sprintf(at, "input { name: 'v0' } output { name: 'v%d' } }", LENGTH);
    loaded l = expect_model(text);
    assert_int_equal(l.model->graph->n_nodes, LENGTH);
    assert_string_equal(l.model->graph->first->in[0]->name, "v0");
    unload(&l);
    free(text);
}

static void test_initializer_that_is_an_input(void **state)
{
    (void)state;
    loaded l = expect_model(
        MODEL("node { input: ['x', 'w'] output: 'y' op_type: 'Add' }"
              "initializer { dims: 1 data_type: 1 float_data: 3 name: 'w' }"
              "input " FLOATS("w", DIM(1)) "input " FLOATS("x", DIM(1)) "output { name: 'y' }"));
    assert_int_equal(l.model->graph->n_inputs, 1);
    assert_string_equal(l.model->graph->inputs[0]->name, "x");
    assert_non_null(qn_graph_value(l.model->graph, "w")->data);
    unload(&l);
}

static void test_constant_nodes(void **state)
{
    (void)state;
    loaded l = expect_model(MODEL(
        "node { output: 'a' op_type: 'Constant' attribute { name: 'value_int' i: -3 type: INT } }"
        "node { output: 'b' op_type: 'Constant'"
        "  attribute { name: 'value_floats' floats: [1, 2.5] type: FLOATS } }"
        "node { output: 'c' op_type: 'Constant'"
        "  attribute { name: 'value_strings' strings: ['p', 'qr'] type: STRINGS } }"
        "node { output: 'd' op_type: 'Constant' attribute { name: 'value' type: TENSOR"
        "  t { dims: 2 data_type: 10 int32_data: [15360, 16384] } } }"
        "node { output: 'e' op_type: 'Constant' attribute { name: 'sparse_value'"
        "  type: SPARSE_TENSOR sparse_tensor { values { dims: 1 data_type: 7 int64_data: 9 }"
        "  indices { dims: [1, 2] data_type: 7 int64_data: [1, 0] } dims: [2, 2] } } }"
        "output { name: 'a' } output { name: 'b' } output { name: 'c' } output { name: 'd' }"
        "output { name: 'e' }"));
    const qn_graph *g = l.model->graph;
    assert_int_equal(g->n_nodes, 0);
    assert_int_equal(((const int64_t *)g->outputs[0]->data->data)[0], -3);
    assert_int_equal(g->outputs[0]->data->rank, 0);
    assert_true(((const float *)g->outputs[1]->data->data)[1] == 2.5f);
    const qn_string *strings = g->outputs[2]->data->data;
    assert_int_equal(strings[1].length, 2);
    assert_memory_equal(strings[1].text, "qr", 2);
    assert_int_equal(((const uint16_t *)g->outputs[3]->data->data)[1], 16384);
    const int64_t *dense = g->outputs[4]->data->data;
    assert_true(dense[0] == 0 && dense[1] == 0 && dense[2] == 9 && dense[3] == 0);
    unload(&l);
}

static void test_old_forms_are_upgraded(void **state)
{
    (void)state;
    /* Squeeze got its axes as an attribute until opset 13; consumed_inputs went with opset 6. */
    loaded l = expect_model("ir_version: 3 opset_import { version: 5 } graph { name: 'g'"
                            "node { input: 'x' output: 'y' op_type: 'Squeeze'"
                            "       attribute { name: 'axes' ints: [0] type: INTS } }"
                            "node { input: 'y' output: 'z' op_type: 'Relu'"
                            "       attribute { name: 'consumed_inputs' ints: [0] type: INTS } }"
                            "input " FLOATS("x", DIM(1) DIM(5)) "output { name: 'z' } }");
    const qn_node *squeeze = l.model->graph->first;
    assert_int_equal(squeeze->n_in, 2);
    assert_int_equal(((const int64_t *)squeeze->in[1]->data->data)[0], 0);
    assert_int_equal(l.model->graph->outputs[0]->type.rank, 1);
    assert_int_equal(l.model->graph->outputs[0]->type.dims[0].value, 5);
    unload(&l);
}

static void test_newer_opsets(void **state)
{
    (void)state;
    static const char form[] = "ir_version: 13 opset_import { version: 99 } graph { name: 'g'"
                               " node { input: 'x' output: 'y' op_type: 'Relu' name: 'n' }"
                               " input { name: 'x' type { tensor_type { elem_type: %d } } }"
                               " output { name: 'y' } }";
    char text[512];
    snprintf(text, sizeof text, form, QN_FLOAT32);
    loaded l = expect_model(text);
    assert_int_equal(l.model->opsets[0].version, 99);
    unload(&l);
    snprintf(text, sizeof text, form, QN_STRING);
    expect_failure(text, QN_E_UNSUPPORTED, "opset 99, newer than 23: node 'n' (Relu)");
}

/* ---- Functions ------------------------------------------------------------------------------------- */

#define FUNCTIONS(functions, graph)                                                                \
    "ir_version: 10 opset_import { version: 13 } opset_import { domain: 'my' version: 1 "          \
    "} " functions " graph { name: 'g' " graph " }"

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

/* ---- Subgraphs ------------------------------------------------------------------------------------- */

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

/* ---- Refusals ------------------------------------------------------------------------------------- */

static void test_bad_structure(void **state)
{
    (void)state;
    expect_failure("", QN_E_FORMAT, "IR version is missing");
    expect_failure("ir_version: 8", QN_E_FORMAT, "it has no graph");
    expect_failure("ir_version: 99 graph {}", QN_E_UNSUPPORTED, "IR version 99 is newer than 14");
    expect_failure("ir_version: 8 opset_import { version: 0 } graph {}", QN_E_FORMAT,
                   "opset version 0");
    expect_failure("ir_version: 8 graph { node { op_type: 'Relu' name: 'n' } }", QN_E_FORMAT,
                   "node 'n' (Relu): the model imports no opset");
    expect_failure(MODEL("node { input: 'x' output: 'y' op_type: 'Relu' name: 'n' }"), QN_E_FORMAT,
                   "node 'n' (Relu): nothing computes its input 'x'");
    expect_failure(MODEL("node { input: 'b' output: 'a' op_type: 'Relu' name: 'n' }"
                         "node { input: 'a' output: 'b' op_type: 'Relu' }"),
                   QN_E_FORMAT, "node 'n' (Relu) depends on its own output");
    expect_failure(MODEL("node { input: 'a' output: 'a' op_type: 'Relu' }"), QN_E_FORMAT,
                   "node of output 'a' (Relu) depends on its own output");
    expect_failure(MODEL("input { name: 'x' } input { name: 'x' }"), QN_E_FORMAT,
                   "the value 'x' is defined twice");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Relu' }"
                         "node { input: 'x' output: 'y' op_type: 'Relu' }"),
                   QN_E_FORMAT, "the value 'y' is defined twice");
    expect_failure(MODEL("initializer { name: 'w' data_type: 1 float_data: 1 }"
                         "initializer { name: 'w' data_type: 1 float_data: 1 }"),
                   QN_E_FORMAT, "the value 'w' is defined twice");
    expect_failure(MODEL("output { name: 'y' }"), QN_E_FORMAT,
                   "graph 'g': nothing computes the output 'y'");
    expect_failure(MODEL("input { type { } }"), QN_E_FORMAT, "a value has no name");
    expect_failure(MODEL("input { name: 'a\\0b' }"), QN_E_FORMAT, "contains a zero byte");
}

static void test_bad_nodes(void **state)
{
    (void)state;
    expect_failure(MODEL("node { op_type: 'Frobnicate' name: 'n' }"), QN_E_UNSUPPORTED,
                   "node 'n' (Frobnicate): no operator 'Frobnicate' of domain 'ai.onnx' is known");
    expect_failure(MODEL("node { op_type: 'Relu' domain: 'acme' name: 'n' }"), QN_E_UNSUPPORTED,
                   "no operator 'Relu' of domain 'acme'");
    expect_failure("ir_version: 3 opset_import { version: 8 } graph { input { name: 'x' }"
                   "node { input: ['x', 'x'] output: 'y' op_type: 'GatherND' } }",
                   QN_E_UNSUPPORTED, "opset 8 of domain 'ai.onnx' has no 'GatherND'");
    expect_failure(MODEL("input { name: 'x' }"
                         "node { input: ['x', 'x'] output: 'y' op_type: 'Relu' name: 'n' }"),
                   QN_E_FORMAT, "node 'n' (Relu): has 2 inputs, the operator takes 1");
    expect_failure(MODEL("input { name: 'x' }"
                         "node { input: 'x' output: ['y', 'z'] op_type: 'Relu' name: 'n' }"),
                   QN_E_FORMAT, "node 'n' (Relu): has 2 outputs, the operator makes 1");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Relu'"
                         " name: 'n' attribute { name: 'beta' f: 1 type: FLOAT } }"),
                   QN_E_UNSUPPORTED,
                   "node 'n' (Relu): opset 13 is not known to have an attribute 'beta' here");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Concat'"
                         " name: 'n' attribute { name: 'axis' f: 1 type: FLOAT } }"),
                   QN_E_FORMAT, "node 'n' (Concat): attribute 'axis': it has type 1 instead of 2");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Concat'"
                         " name: 'n' attribute { name: 'axis' i: 1 type: INT }"
                         " attribute { name: 'axis' i: 1 type: INT } }"),
                   QN_E_FORMAT, "attribute 'axis' is there twice");
    expect_failure(MODEL("input { name: 'x' } node { input: 'x' output: 'y' op_type: 'Concat'"
                         " name: 'n' }"),
                   QN_E_FORMAT, "node 'n' (Concat): attribute 'axis' is missing");
    expect_failure(MODEL("node { output: 'y' op_type: 'Constant' name: 'n' }"), QN_E_FORMAT,
                   "node 'n' (Constant): a constant has exactly one value");
}

/* ---- Memory ---------------------------------------------------------------------------------------- */

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    qn_context *plain;
    assert_int_equal(qn_context_create(&plain, NULL), QN_OK);
    const bytes wire = encode(
        plain, &qn_onnx_model_schema,
        FUNCTIONS("functions { name: 'f' domain: 'my' input: 'a' output: 'r' attribute: 'axes'"
                  "  opset_import { version: 11 }"
                  "  node { input: 'a' output: 'r' op_type: 'Squeeze'"
                  "         attribute { name: 'axes' type: INTS ref_attr_name: 'axes' } } }",
                  "node { input: 'x' output: 'y' op_type: 'f' domain: 'my'"
                  "       attribute { name: 'axes' ints: [0] type: INTS } }"
                  "node { input: ['y', 'w'] output: 'z' op_type: 'Add' }"
                  "initializer { dims: 5 data_type: 1 name: 'w' raw_data: '01234567890123456789' }"
                  "input " FLOATS("x", DIM(1) DIM(5)) "output { name: 'z' }"));
    qn_context_free(plain);
    qn_status status = QN_E_NOMEM;
    long steps = 0;
    for (; status != QN_OK; steps++) {
        fault injected = {.until = steps + 1};
        const qn_allocator allocator = fault_allocator(&injected);
        qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
        options.allocator = &allocator;
        qn_context *ctx;
        qn_model *model;
        assert_int_equal(qn_context_create(&ctx, &options), QN_OK);
        status = qn_import_onnx_memory(&model, ctx, wire.data, wire.size);
        assert_int_equal(status, injected.struck ? QN_E_NOMEM : QN_OK);
        qn_model_free(model);
        qn_context_free(ctx);
        assert_int_equal(injected.live, 0);
    }
    assert_true(steps > 10);
    free(wire.data);
}

static void test_truncated_everywhere(void **state)
{
    (void)state;
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    const bytes wire =
        encode(ctx, &qn_onnx_model_schema,
               MODEL("node { input: ['x', 'w'] output: 'y' op_type: 'Add' name: 'add' }"
                     "initializer { dims: 2 data_type: 1 float_data: [1, 2] name: 'w' }"
                     "input " FLOATS("x", DIM(2)) "output { name: 'y' }"));
    for (size_t size = 0; size < wire.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        qn_model *model;
        memcpy(copy, wire.data, size);
        const qn_status status = qn_import_onnx_memory(&model, ctx, copy, size);
        assert_true(status == QN_OK || status == QN_E_FORMAT);
        qn_model_free(model);
        free(copy);
    }
    for (size_t i = 0; i < wire.size * 8; i++) {
        qn_model *model;
        wire.data[i / 8] ^= (uint8_t)(1 << i % 8);
        (void)!qn_import_onnx_memory(&model, ctx, wire.data, wire.size);
        qn_model_free(model);
        wire.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    qn_context_free(ctx);
    free(wire.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_graph),
        cmocka_unit_test(test_nodes_are_sorted),
        cmocka_unit_test(test_long_reversed_chain),
        cmocka_unit_test(test_initializer_that_is_an_input),
        cmocka_unit_test(test_constant_nodes),
        cmocka_unit_test(test_old_forms_are_upgraded),
        cmocka_unit_test(test_newer_opsets),
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
        cmocka_unit_test(test_bad_structure),
        cmocka_unit_test(test_bad_nodes),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_truncated_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
