/* The ONNX writer: what is read, written and read again is the same. */
#include "onnx_test.h"

#include <unistd.h>

#include "export/export.h"
#include "fault.h"
#include "ops/op.h"

typedef struct fixture {
    char path[64], data_path[80];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    snprintf(f->path, sizeof f->path, "/tmp/test_onnx_export_%ld.onnx", (long)getpid());
    snprintf(f->data_path, sizeof f->data_path, "%s.data", f->path);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    remove(f->path);
    remove(f->data_path);
    free(f);
    return 0;
}

/* Writes the model and reads it back. */
static loaded written(const fixture *f, loaded *l, int opset, size_t external_from)
{
    const qn_export_options options = {opset, external_from};
    loaded again = {0};
    if (qn_export_onnx(l->ctx, l->model, f->path, &options) != QN_OK)
        fail_msg("%s", qn_context_error(l->ctx));
    assert_int_equal(qn_context_create(&again.ctx, NULL), QN_OK);
    if (qn_import_onnx(&again.model, again.ctx, f->path) != QN_OK)
        fail_msg("%s", qn_context_error(again.ctx));
    return again;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static void same_text(const char *a, const char *b)
{
    assert_string_equal(a ? a : "", b ? b : "");
}

static void same_metadata(const qn_metadata *a, const qn_metadata *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        same_text(a->at[i].key, b->at[i].key);
        same_text(a->at[i].value, b->at[i].value);
    }
}

static void same_value(const qn_value *a, const qn_value *b)
{
    char x[256], y[256];
    assert_true((a != NULL) == (b != NULL));
    if (!a)
        return;
    same_text(a->name, b->name);
    same_text(a->doc, b->doc);
    same_metadata(&a->metadata, &b->metadata);
    qn_type_format(x, sizeof x, &a->type);
    qn_type_format(y, sizeof y, &b->type);
    same_text(x, y);
    assert_true((a->data != NULL) == (b->data != NULL));
    if (a->data && !a->is_capture)
        assert_true(qn_tensor_equal(a->data, b->data));
}

static void same_graph(const qn_graph *a, const qn_graph *b)
{
    same_text(a->name, b->name);
    same_text(a->doc, b->doc);
    same_metadata(&a->metadata, &b->metadata);
    assert_int_equal(a->n_inputs, b->n_inputs);
    assert_int_equal(a->n_outputs, b->n_outputs);
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (size_t i = 0; i < a->n_inputs; i++)
        same_value(a->inputs[i], b->inputs[i]);
    for (size_t i = 0; i < a->n_outputs; i++)
        same_value(a->outputs[i], b->outputs[i]);
    const qn_node *y = b->first;
    for (const qn_node *x = a->first; x; x = x->next, y = y->next) {
        same_text(x->name, y->name);
        same_text(x->doc, y->doc);
        same_metadata(&x->metadata, &y->metadata);
        assert_ptr_equal(x->op, y->op);
        assert_int_equal(x->n_in, y->n_in);
        assert_int_equal(x->n_out, y->n_out);
        for (int32_t i = 0; i < x->n_in; i++)
            same_value(x->in[i], y->in[i]);
        for (int32_t i = 0; i < x->n_out; i++)
            same_value(x->out[i], y->out[i]);
    }
}

static void same_model(const qn_model *a, const qn_model *b)
{
    same_text(a->producer, b->producer);
    same_text(a->producer_version, b->producer_version);
    same_text(a->domain, b->domain);
    same_text(a->doc, b->doc);
    assert_int_equal(a->model_version, b->model_version);
    same_metadata(&a->metadata, &b->metadata);
    same_graph(a->graph, b->graph);
}

static void free_again(loaded *l)
{
    qn_model_free(l->model);
    qn_context_free(l->ctx);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static const char everything[] =
    "ir_version: 8 producer_name: 'p' producer_version: '1' domain: 'd' model_version: 7\n"
    "doc_string: 'md' metadata_props { key: 'k' value: 'v' } metadata_props { key: 'l' }\n"
    "opset_import { version: 13 } graph { name: 'g' doc_string: 'gd'\n"
    "metadata_props { key: 'g' value: '2' }\n"
    "node { input: ['x', 'w'] output: 'a' op_type: 'Add' name: 'add' doc_string: 'nd'\n"
    "  metadata_props { key: 'n' value: '1' } }\n"
    "node { input: ['a', 'i'] output: 'b' op_type: 'Gather' attribute {\n"
    "  name: 'axis' i: 1 type: INT } }\n"
    "node { input: ['b', 's', 'e', '', 't'] output: 'c' op_type: 'Slice' }\n"
    "node { input: ['c', 'c'] output: 'y' op_type: 'Concat' attribute {\n"
    "  name: 'axis' i: 0 type: INT } }\n"
    "initializer { dims: 2 data_type: 1 float_data: [1, 2] name: 'w' doc_string: 'wd'\n"
    "  metadata_props { key: 'w' value: '3' } }\n"
    "initializer { dims: 1 data_type: 7 int64_data: [1] name: 'i' }\n"
    "initializer { dims: 1 data_type: 7 int64_data: [0] name: 's' }\n"
    "initializer { dims: 1 data_type: 7 int64_data: [-1] name: 'e' }\n"
    "initializer { dims: 1 data_type: 7 int64_data: [1] name: 't' }\n"
    "initializer { dims: 3 data_type: 22 int32_data: [47, 8] name: 'four' }\n"
    "initializer { dims: 2 data_type: 8 string_data: ['', 'a\\0b'] name: 'text' }\n"
    "initializer { dims: 0 data_type: 1 name: 'empty' }\n"
    "input { name: 'x' doc_string: 'xd' metadata_props { key: 'x' } type { tensor_type { "
    "elem_type: 1 shape {\n"
    "  dim { dim_param: 'N' denotation: 'DATA_BATCH' } dim { dim_value: 2 } } } denotation: "
    "'TENSOR' } "
    "}\n"
    "output { name: 'y' doc_string: 'yd' } output { name: 'four' } output { name: 'text' }\n"
    "output { name: 'empty' } }";

static void test_round_trip(void **state)
{
    const fixture *f = *state;
    loaded l = expect_model(everything);
    loaded again = written(f, &l, 0, 0);
    assert_int_equal(again.model->opsets[0].version, 13);
    assert_int_equal(again.model->ir_version, 10); /* int4 came with it */
    same_model(l.model, again.model);
    free_again(&again);
    unload(&l);
}

static void test_denotations(void **state)
{
    const fixture *f = *state;
    loaded l = expect_model(everything);
    loaded again = written(f, &l, 0, 0);
    const qn_type *type = &again.model->graph->inputs[0]->type;
    same_text(type->denotation, "TENSOR");
    assert_non_null(type->dim_denotations);
    same_text(type->dim_denotations[0], "DATA_BATCH");
    assert_null(type->dim_denotations[1]);
    free_again(&again);
    unload(&l);
}

/* Only the model itself had metadata before IR version 10. */
static void test_metadata_of_old_versions(void **state)
{
    const fixture *f = *state;
    loaded l =
        expect_model("ir_version: 10 metadata_props { key: 'm' } opset_import { version: 13 }"
                     "graph { name: 'g' metadata_props { key: 'g' }"
                     "node { input: 'x' output: 'y' op_type: 'Relu' metadata_props { key: 'n' } }"
                     "input " FLOATS("x", DIM(2)) "output " FLOATS("y", DIM(2)) "}");
    loaded old = written(f, &l, 0, 0), new = written(f, &l, 21, 0);
    assert_int_equal(old.model->ir_version, 7);
    assert_int_equal(old.model->metadata.count, 1);
    assert_int_equal(old.model->graph->metadata.count + old.model->graph->first->metadata.count, 0);
    assert_int_equal(new.model->ir_version, 10);
    assert_int_equal(new.model->graph->metadata.count + new.model->graph->first->metadata.count, 2);
    free_again(&old);
    free_again(&new);
    unload(&l);
}

static void test_same_bytes(void **state)
{
    const fixture *f = *state;
    loaded l = expect_model(everything);
    loaded first = written(f, &l, 0, 0);
    qn_map a, b;
    assert_int_equal(qn_map_open(&a, l.ctx, f->path), QN_OK);
    loaded second = written(f, &first, 0, 0);
    assert_int_equal(qn_map_open(&b, l.ctx, f->path), QN_OK);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    qn_map_close(&a);
    qn_map_close(&b);
    free_again(&first);
    free_again(&second);
    unload(&l);
}

static void test_external_data(void **state)
{
    const fixture *f = *state;
    loaded l = expect_model(everything);
    loaded again = written(f, &l, 0, 1);
    same_model(l.model, again.model);
    assert_int_equal(again.model->n_maps, 2);
    /* Each at a page of its own: w, i, s, e, t, four; nothing of "empty" and no strings. */
    assert_int_equal(again.model->maps[1].size, 5 * 4096 + 2);
    free_again(&again);
    unload(&l);
}

static void test_opset_is_lowered(void **state)
{
    const fixture *f = *state;
    loaded l =
        expect_model(MODEL("node { input: ['x', 'axes'] output: 'y' op_type: 'Squeeze' }"
                           "initializer { dims: 1 data_type: 7 int64_data: [1] name: 'axes' }"
                           "input " FLOATS("x", DIM(2) DIM(1)) "output " FLOATS("y", DIM(2))));
    loaded again = written(f, &l, 11, 0);
    assert_int_equal(again.model->opsets[0].version, 11);
    assert_int_equal(again.model->ir_version, 6);
    const qn_node *squeeze = again.model->graph->first; /* upgraded again by the reader */
    assert_int_equal(squeeze->n_in, 2);
    free_again(&again);
    unload(&l);
}

#define BRANCH(which, body) "attribute { name: '" which "' type: GRAPH g { name: 'b' " body " } }"

/* Names of subgraphs that are taken outside are changed, captured values keep the outer name, and a
 * value handed out as it came in is copied. */
static void test_subgraphs(void **state)
{
    const fixture *f = *state;
    loaded l = expect_model(MODEL(
        "node { input: 'x' output: 'r' op_type: 'Relu' }"
        "node { input: 'c' output: 'y' op_type: 'If' name: 'if'" BRANCH(
            "then_branch",
            "node { input: ['r', 'x'] output: 'y' op_type: 'Add' } output { name: 'y' }")
            BRANCH("else_branch",
                   "output { name: 'r' }") " }"
                                           "input { name: 'c' type { tensor_type { elem_type: 9 "
                                           "shape { } } } }"
                                           "input " FLOATS("x", DIM(3)) "output { name: 'y' }"));
    loaded again = written(f, &l, 0, 0);
    const qn_graph *g = again.model->graph;
    assert_string_equal(g->outputs[0]->name, "y");
    const qn_node *node = g->last;
    assert_string_equal(node->name, "if");
    const qn_graph *then_branch = qn_node_subgraph(node, 0);
    assert_string_equal(then_branch->outputs[0]->name, "y_1");
    assert_string_equal(then_branch->first->in[0]->name, "r");
    const qn_graph *else_branch = qn_node_subgraph(node, 1);
    assert_string_equal(else_branch->first->op->name, "Identity");
    assert_string_equal(else_branch->first->in[0]->name, "r");
    free_again(&again);
    unload(&l);
}

static void test_what_prevents_an_opset(void **state)
{
    const fixture *f = *state;
    loaded l =
        expect_model(MODEL("node { input: ['x', 'axes'] output: 'y' op_type: 'Squeeze' name: 'n' }"
                           "input { name: 'axes' type { tensor_type { elem_type: 7 shape {" DIM(
                               1) "} } } }"
                                  "input " FLOATS("x", DIM(2) DIM(1)) "output { name: 'y' }"));
    qn_export_options options = {11, 0};
    assert_int_equal(qn_export_onnx(l.ctx, l.model, f->path, &options), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(l.ctx), "node 'n' (Squeeze)"));
    assert_int_not_equal(access(f->path, F_OK), 0); /* nothing half-written */
    options.opset = 24;
    assert_int_equal(qn_export_onnx(l.ctx, l.model, f->path, &options), QN_E_INVALID);
    unload(&l);
}

static void test_unwritable_path(void **state)
{
    (void)state;
    loaded l = expect_model(everything);
    assert_int_equal(qn_export_onnx(l.ctx, l.model, "/nowhere/at/all.onnx", NULL), QN_E_IO);
    assert_non_null(strstr(qn_context_error(l.ctx), "/nowhere/at/all.onnx"));
    unload(&l);
}

static void test_every_allocation_may_fail(void **state)
{
    const fixture *f = *state;
    qn_context *plain;
    assert_int_equal(qn_context_create(&plain, NULL), QN_OK);
    const bytes wire = encode(plain, &qn_onnx_model_schema, everything);
    qn_context_free(plain);
    /* An older pair, which every failure leaves as it is. */
    FILE *old = fopen(f->data_path, "wb");
    assert_non_null(old);
    assert_int_equal(fclose(old), 0);
    qn_status status = QN_E_NOMEM;
    long steps = 0;
    for (; status != QN_OK; steps++) {
        fault injected = {.until = -1};
        const qn_export_options out = {0, 1};
        qn_context *ctx;
        qn_model *model;
        assert_int_equal(fault_context(&ctx, &injected), QN_OK);
        assert_int_equal(qn_import_onnx_memory(&model, ctx, wire.data, wire.size), QN_OK);
        injected.until = steps;
        status = qn_export_onnx(ctx, model, f->path, &out);
        assert_int_equal(status, injected.struck ? QN_E_NOMEM : QN_OK);
        old = fopen(f->data_path, "rb");
        assert_non_null(old);
        assert_int_equal(fgetc(old) == EOF, injected.struck);
        assert_int_equal(fclose(old), 0);
        qn_model_free(model);
        qn_context_free(ctx);
        assert_int_equal(injected.live, 0);
    }
    assert_true(steps > 10);
    free(wire.data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),      TEST(test_same_bytes),
        TEST(test_denotations),     TEST(test_metadata_of_old_versions),
        TEST(test_external_data),   TEST(test_opset_is_lowered),
        TEST(test_subgraphs),       TEST(test_what_prevents_an_opset),
        TEST(test_unwritable_path), TEST(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
