/* Masks in front of a Softmax: their ranges, -inf among them, and what is no number elsewhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/quantize.h"
#include "pass/qdq_to_integer.h"
#include "pass_test.h"

enum { ROWS = 6, WIDE = 12 };

/* All above the diagonal is `low`, the rest a few tenths. */
static qn_value *mask_of(fixture *f, float low)
{
    qn_value *mask = weights(f, 2, DIMS(ROWS, ROWS));
    float *x = (float *)mask->data->data;
    for (int i = 0; i < ROWS * ROWS; i++)
        x[i] = i % ROWS > i / ROWS ? low : (float)(i % 3) / 10;
    return mask;
}

/* softmax(q k' + mask) v; at: the scores, and their sum with the mask. */
static qn_value *attend(fixture *f, qn_value *mask, bool choose, qn_value *at[2])
{
    qn_value *x = input(f, "x", 2, DIMS(ROWS, WIDE));
    qn_value *q = apply(f, &qn_op_MatMul, 2, x, weights(f, 2, DIMS(WIDE, WIDE)));
    qn_value *k = apply(f, &qn_op_MatMul, 2, x, weights(f, 2, DIMS(WIDE, ROWS)));
    qn_value *turned = apply(f, &qn_op_MatMul, 2, q, weights(f, 2, DIMS(WIDE, ROWS)));
    at[0] = apply(f, &qn_op_MatMul, 2, turned, k);
    if (choose) {
        qn_value *is_low = apply(f, &qn_op_Less, 2, mask, number(f, -1));
        at[1] = apply(f, &qn_op_Where, 3, is_low, mask, at[0]);
    } else {
        at[1] = apply(f, &qn_op_Add, 2, mask, at[0]);
    }
    qn_value *p = apply(f, &qn_op_Softmax, 1, at[1]);
    return apply(f, &qn_op_MatMul, 2, p, weights(f, 2, DIMS(ROWS, WIDE)));
}

static qn_status quantize(qn_model **out, fixture *f, qn_value *y, const qn_quantize_options *o)
{
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    return qn_model_quantize(out, NULL, f->ctx, f->model, o);
}

static void end(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

/* How wide the integers behind the value reach. */
static double width_of(const qn_model *model, const char *name)
{
    const qn_value *value = qn_graph_value(model->graph, name);
    qn_quantized q;
    bool found = false;
    assert_non_null(value);
    assert_ptr_equal(value->users[0]->op, &qn_op_QuantizeLinear);
    assert_int_equal(qn_qdq_input(&found, &q, value->users[0]->out[0]->users[0]->out[0]), QN_OK);
    assert_true(found);
    const qn_limits all = qn_limits_of(q.value->type.dtype);
    return (double)qn_quantized_scale(&q, 0) * (double)(all.max - all.min);
}

/* How far a mask reaches down changes nothing, and what is left for the others is a few times their
 * own width. */
static void depth_of_masks_does_not_count(void **state)
{
    static const float lows[] = {-1e4F, -3.4e38F, -INFINITY};
    static const char *const methods[] = {"min_max", "mse", "kl"};
    (void)state;
    for (int variant = 0; variant < 12; variant++) {
        const bool choose = variant / 2 % 2;
        double first = 0;
        for (size_t i = 0; i < QN_COUNT_OF(lows); i++) {
            fixture f = begin();
            qn_value *at[2];
            qn_model *model;
            qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
            options.bits = variant % 2 ? 16 : 8;
            options.method = methods[variant / 4];
            qn_value *y = attend(&f, mask_of(&f, lows[i]), choose, at);
            if (quantize(&model, &f, y, &options) != QN_OK)
                fail_msg("%s", qn_context_error(f.ctx));
            /* A Softmax behind a choice reads floats. */
            const double width = choose ? 0 : width_of(model, at[1]->name);
            first = i ? first : width;
            assert_true(width == first);
            assert_true(choose || width < 3 * width_of(model, at[0]->name) + 48);
            qn_model_free(model);
            end(&f);
        }
    }
}

/* A mask that reaches no further than the bound is a summand like any other: the range is the
 * method's. */
static void positions_are_no_masks(void **state)
{
    double widths[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        fixture f = begin();
        qn_value *at[2];
        qn_model *model;
        qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
        options.bits = 8;
        options.method = "min_max";
        qn_value *y = attend(&f, mask_of(&f, i ? -6 : -5), false, at);
        assert_int_equal(quantize(&model, &f, y, &options), QN_OK);
        widths[i] = width_of(model, at[1]->name);
        qn_model_free(model);
        end(&f);
    }
    assert_true(fabs(widths[1] - widths[0] - 1) < 1e-3);
}

/* Where the sum is an output too, all of it counts. */
static void others_see_the_mask(void **state)
{
    fixture f = begin();
    qn_value *at[2];
    qn_model *model;
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    (void)state;
    options.bits = 8;
    options.method = "min_max";
    qn_value *y = attend(&f, mask_of(&f, -1e4F), false, at);
    assert_int_equal(qn_graph_add_output(f.graph, at[1]), QN_OK);
    assert_int_equal(quantize(&model, &f, y, &options), QN_OK);
    assert_true(width_of(model, at[1]->name) > 9999);
    qn_model_free(model);
    end(&f);
}

/* The constant is told, not what was computed with it; dynamic quantization has no other occasion
 * to notice. */
static void weights_of_nan_are_refused(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        fixture f = begin();
        qn_model *model;
        qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
        options.dynamic = dynamic;
        qn_value *w = weights(&f, 2, DIMS(WIDE, WIDE));
        ((float *)w->data->data)[5] = NAN;
        qn_value *x = input(&f, "x", 2, DIMS(3, WIDE));
        qn_value *y = apply(&f, &qn_op_MatMul, 2, x, w);
        char text[256];
        snprintf(text, sizeof text, "constant '%s' has NaN elements", w->name);
        assert_int_equal(quantize(&model, &f, y, &options), QN_E_INVALID);
        assert_non_null(strstr(qn_context_error(f.ctx), text));
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_of_masks_does_not_count),
        cmocka_unit_test(positions_are_no_masks),
        cmocka_unit_test(others_see_the_mask),
        cmocka_unit_test(weights_of_nan_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
