/* Runs that start from kept values: only values that the float network computes are taken, and the
 * results are those of the whole run. */
#include "quantize/prefix_cache.h"

#include "ops/clone.h"
#include "pass_test.h"
#include "quench.h"

enum { LAYERS = 6, SIZE = 2 * 8 * 8 };

/* x [1, 2, 8, 8] -> layers of convolutions called "0", "1", ... */
static fixture network(void)
{
    const int64_t dims[4] = {1, 2, 8, 8}, filters[4] = {2, 2, 1, 1};
    fixture f = begin();
    qn_value *y = input(&f, "x", 4, dims);
    for (int i = 0; i < LAYERS; i++) {
        char name[2] = {(char)('0' + i), 0};
        y = apply(&f, &qn_op_Conv, 2, y, weights(&f, 4, filters));
        assert_int_equal(qn_value_rename(y, name), QN_OK);
    }
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    return f;
}

/* A copy with other weights in one layer. */
static qn_model *changed(fixture *f, const char *layer)
{
    qn_model *model;
    qn_value *other;
    assert_int_equal(qn_model_clone(&model, f->ctx, f->model), QN_OK);
    qn_node *node = qn_graph_value(model->graph, layer)->producer;
    qn_tensor *tensor = qn_arena_alloc(&model->arena, sizeof *tensor);
    *tensor = *node->in[1]->data;
    tensor->data = qn_arena_array(&model->arena, 4, sizeof(float));
    memcpy(tensor->data, (float[]){0.5f, -0.25f, 1, 2}, 4 * sizeof(float));
    assert_int_equal(qn_value_constant(&other, model->graph, NULL, tensor), QN_OK);
    assert_int_equal(qn_node_set_input(node, 1, other), QN_OK);
    return model;
}

/* The outputs of a model one after the other. */
static void run(float *out, qn_context *ctx, qn_model *model, const qn_tensor *inputs)
{
    qn_plan *plan;
    qn_session *session;
    assert_int_equal(qn_plan_create(&plan, ctx, model, NULL), QN_OK);
    assert_int_equal(qn_session_create(&session, ctx, plan), QN_OK);
    assert_int_equal(qn_session_run(session, inputs, model->graph->n_inputs), QN_OK);
    for (size_t i = 0; i < model->graph->n_outputs; i++)
        memcpy(out + i * SIZE, qn_session_output(session, i)->data, SIZE * sizeof *out);
    qn_session_free(session);
    qn_plan_free(plan);
}

static void compare_runs(const char *layer)
{
    static float x[SIZE], kept[(LAYERS + 1) * SIZE], whole[SIZE], part[SIZE];
    const qn_graph_options shapes = {QN_OPTIONS_VERSION, .batch = 0};
    fixture f = network();
    qn_prefix_cache starts;
    qn_model *tapped, *cut, *models[2] = {f.model, changed(&f, layer)};
    qn_tensor inputs[LAYERS + 1] = {{QN_FLOAT32, 4, {1, 2, 8, 8}, x}}, all[LAYERS + 1];
    size_t used[LAYERS], n_used;
    qn_arena arena;
    qn_arena_init(&arena, &f.ctx->allocator);
    for (size_t i = 0; i < SIZE; i++)
        x[i] = (float)(i % 7) - 3;
    assert_int_equal(qn_prefix_cache_choose(&starts, &tapped, &arena, f.model, &shapes, 1 << 20),
                     QN_OK);
    assert_true(starts.count > 1 && starts.count < LAYERS);
    assert_int_equal(tapped->graph->n_outputs, 1 + starts.count);
    run(kept, f.ctx, tapped, inputs);
    for (size_t i = 0; i < starts.count; i++) {
        all[i] = inputs[0];
        all[i].data = kept + (i + 1) * SIZE;
    }
    assert_int_equal(qn_prefix_cache_cut(&cut, used, &n_used, &starts, models, all), QN_OK);
    for (size_t i = 0; i < n_used; i++) {
        assert_true(starts.names[used[i]][0] < layer[0]);
        inputs[1 + i] = all[used[i]];
    }
    assert_int_equal(n_used > 0, layer[0] > starts.names[0][0]);
    assert_true(n_used == 0 || cut->graph->n_nodes < LAYERS);
    run(whole, f.ctx, models[1], inputs);
    run(part, f.ctx, cut, inputs);
    assert_memory_equal(whole, part, sizeof whole);
    qn_model_free(cut);
    qn_model_free(tapped);
    qn_model_free(models[1]);
    qn_arena_free(&arena);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

static void only_what_comes_before_is_taken(void **state)
{
    (void)state;
    compare_runs("0");
    compare_runs("3");
    compare_runs("5");
}

static void no_memory_no_starts(void **state)
{
    const qn_graph_options shapes = {QN_OPTIONS_VERSION, .batch = 0};
    fixture f = network();
    qn_prefix_cache starts;
    qn_model *tapped;
    qn_arena arena;
    (void)state;
    qn_arena_init(&arena, &f.ctx->allocator);
    assert_int_equal(qn_prefix_cache_choose(&starts, &tapped, &arena, f.model, &shapes, 1), QN_OK);
    assert_int_equal(starts.count, 0);
    assert_null(tapped);
    qn_arena_free(&arena);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_comes_before_is_taken),
                                       cmocka_unit_test(no_memory_no_starts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
