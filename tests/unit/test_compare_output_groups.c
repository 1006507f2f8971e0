/* Outputs that are boxes beside scores: an error of the scores alone is seen. */
#include "compare/output_groups.h"

#include "pass_test.h"

enum { BOXES = 4, SCORES = 3, CHANNELS = BOXES + SCORES, PIXELS = 6 };

/* Boxes and scores together, pixels along one axis, and that one in front: an output [PIXELS,
 * CHANNELS, 1]. */
static qn_value *detector(fixture *f)
{
    const int64_t boxes[4] = {1, BOXES, 2, 3}, scores[4] = {1, SCORES, 2, 3};
    qn_value *a = input(f, "boxes", 4, boxes), *b = input(f, "scores", 4, scores);
    qn_value *head = apply(f, &qn_op_Concat, 2, a, b);
    ((qn_concat_attrs *)head->producer->attrs)->axis = 1;
    qn_value *flat = apply(f, &qn_op_Reshape, 2, apply(f, &qn_op_Sigmoid, 1, head),
                           ints(f, (int64_t[]){1, CHANNELS, PIXELS}, 3));
    qn_value *y = apply(f, &qn_op_Transpose, 1, flat);
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
    return y;
}

static void finish(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

static void parts_are_found(void **state)
{
    fixture f = begin();
    qn_output_groups parts;
    (void)state;
    qn_output_groups_find(&parts, detector(&f));
    assert_int_equal(parts.count, 2);
    assert_int_equal(parts.axis, 1);
    assert_int_equal(parts.ends[0], BOXES);
    assert_int_equal(parts.ends[1], CHANNELS);
    qn_output_groups_find(&parts, f.graph->inputs[0]);
    assert_int_equal(parts.count, 0);
    finish(&f);
}

/* Scores of which nothing is left: nothing beside the boxes, and all of the scores. */
static void lost_scores_are_seen(void **state)
{
    float real[PIXELS * CHANNELS], fixed[PIXELS * CHANNELS];
    qn_tensor tensors[2] = {{QN_FLOAT32, 3, {PIXELS, CHANNELS, 1}, real},
                            {QN_FLOAT32, 3, {PIXELS, CHANNELS, 1}, fixed}};
    const qn_output_groups parts = {.axis = 1, .count = 2, .ends = {BOXES, CHANNELS}},
                           none = {.count = 0};
    (void)state;
    for (int i = 0; i < PIXELS * CHANNELS; i++) {
        const bool box = i % CHANNELS < BOXES;
        real[i] = box ? 400 : 0.5F;
        fixed[i] = box ? 200 : 0;
    }
    qn_group_sums sums = {.signal = {0}}, whole = sums;
    qn_group_sums_add(&sums, &parts, &tensors[0], &tensors[1], 2);
    qn_group_sums_add(&whole, &none, &tensors[0], &tensors[1], 2);
    assert_true(qn_group_sums_whole(&sums) < 0.01 && qn_group_sums_whole(&sums) > 0);
    assert_true(qn_group_sums_whole(&sums) == qn_group_sums_worst(&whole));
    assert_true(fabs(qn_group_sums_worst(&sums) - 0.4) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(lost_scores_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
