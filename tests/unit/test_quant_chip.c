/* Chips: their names, and what a model quantized for one gives. */
#include "pass_test.h"
#include "quench.h"

/* ---- Names ----------------------------------------------------------------------------------- */

static void chips_are_known_by_their_full_names(void **state)
{
    static const struct {
        const char *name, *chip;
    } rows[] = {{"TX510x", "TX510x"},
                {"TX510", "TX510x"},
                {"TX5101", "TX510x"},
                {"TX510AV100", "TX510x"},
                {"TX5336AV200", "TX5336x_TX5256x"},
                {"tx5256b", "TX5336x_TX5256x"},
                {"TX5368AV200", "TX5368x_TX5339x_TX5335x"},
                {"TX5368x", "TX5368x_TX5339x_TX5335x"},
                {"TX5339A", "TX5368x_TX5339x_TX5335x"},
                {"tx5335av300", "TX5368x_TX5339x_TX5335x"},
                {"TX5368x_TX5339x_TX5335x", "TX5368x_TX5339x_TX5335x"},
                {"TX5215AV200", "TX5215x_TX5239x200_TX5239x220_TX5239x300"},
                {"TX5239AV200", "TX5215x_TX5239x200_TX5239x220_TX5239x300"},
                {"TX5239A220", "TX5215x_TX5239x200_TX5239x220_TX5239x300"},
                {"TX5239x300", "TX5215x_TX5239x200_TX5239x220_TX5239x300"},
                {"TX5239A201", "TX5112x_TX5239x201"},
                {"TX5239AV201", "TX5112x_TX5239x201"},
                {"TX5112C", "TX5112x_TX5239x201"},
                {"TX5239", NULL},
                {"TX5239A", NULL},
                {"TX5239AV", NULL},
                {"TX5239AV2", NULL},
                {"TX5239AV400", NULL},
                {"TX536", NULL},
                {"TX5368x_TX5339x", NULL},
                {"TX5368 A", NULL},
                {"", NULL},
                {"TX", NULL},
                {"quench", NULL}};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        qn_chip_info chip;
        const int found = qn_chip_find(&chip, rows[i].name);
        if (found != (rows[i].chip != NULL) || (found && strcmp(chip.name, rows[i].chip) != 0))
            fail_msg("'%s' is '%s'", rows[i].name, found ? chip.name : "no chip");
    }
}

static void one_chip_has_8_bits_only(void **state)
{
    qn_chip_info chip;
    (void)state;
    for (size_t i = 0; qn_chip_name(i); i++) {
        assert_true(qn_chip_find(&chip, qn_chip_name(i)));
        assert_int_equal(chip.int16, strcmp(chip.name, "TX510x") != 0);
    }
}

/* ---- Outputs --------------------------------------------------------------------------------- */

enum { FILTERS = 8, CHANNELS = 3 };

/* x -> Conv -> Relu (output "seen") -> Conv -> Sigmoid (output "y"); beside it a Concat of both
 * ("joined"), and the best channel ("best"). */
static fixture network(void)
{
    static const char *const names[] = {"seen", "y", "joined", "best"};
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, CHANNELS, 8, 8)), *out[4];
    qn_value *a = apply(&f, &qn_op_Conv, 2, x, weights(&f, 4, DIMS(FILTERS, CHANNELS, 3, 3)));
    out[0] = apply(&f, &qn_op_Relu, 1, a);
    qn_value *b = apply(&f, &qn_op_Conv, 2, out[0], weights(&f, 4, DIMS(FILTERS, FILTERS, 3, 3)));
    out[1] = apply(&f, &qn_op_Sigmoid, 1, b);
    out[2] = apply(&f, &qn_op_Concat, 2, out[1], b);
    ((qn_concat_attrs *)out[2]->producer->attrs)->axis = 1;
    out[3] = apply(&f, &qn_op_ArgMax, 1, out[1]);
    ((qn_arg_attrs *)out[3]->producer->attrs)->axis = 1;
    for (size_t i = 0; i < QN_COUNT_OF(out); i++) {
        assert_int_equal(qn_value_rename(out[i], names[i]), QN_OK);
        assert_int_equal(qn_graph_add_output(f.graph, out[i]), QN_OK);
    }
    return f;
}

static qn_model *quantize(fixture *f, int bits, int real)
{
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    qn_model *quantized;
    options.target = "TX5368AV200";
    options.bits = bits;
    options.real_outputs = real;
    if (qn_model_quantize(&quantized, NULL, f->ctx, f->model, &options) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    return quantized;
}

static void end(fixture *f, qn_model *quantized)
{
    qn_model_free(quantized);
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

/* Activations and weights alike. */
static void all_is_symmetric(void **state)
{
    (void)state;
    for (int bits = 8; bits <= 16; bits += 8) {
        fixture f = network();
        qn_model *quantized = quantize(&f, bits, 0);
        int64_t pairs = 0;
        for (const qn_node *n = quantized->graph->first; n; n = n->next) {
            if (n->op != &qn_op_QuantizeLinear)
                continue;
            pairs++;
            assert_int_equal(n->out[0]->type.dtype, bits == 8 ? QN_INT8 : QN_INT16);
            assert_int_equal(qn_tensor_i64(n->in[2]->data, 0), 0);
        }
        assert_true(pairs >= 4);
        end(&f, quantized);
    }
}

/* Runs a model; `values` gets the numbers of an output, in the unit that it tells. */
static int64_t run(double *values, fixture *f, qn_model *model, size_t output)
{
    qn_arena arena;
    qn_tensor *x;
    qn_plan *plan;
    qn_session *session;
    uint32_t state = 3;
    qn_arena_init(&arena, &f->ctx->allocator);
    assert_int_equal(qn_tensor_create(&x, f->ctx, &arena, &f->graph->inputs[0]->type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(x); i++)
        ((float *)x->data)[i] = 0.45f * (1 + noise(&state));
    assert_int_equal(qn_plan_create(&plan, f->ctx, model, NULL), QN_OK);
    assert_int_equal(qn_session_create(&session, f->ctx, plan), QN_OK);
    assert_int_equal(qn_session_run(session, x, 1), QN_OK);
    const qn_tensor *y = qn_session_output(session, output);
    const int64_t count = qn_tensor_count(y);
    for (int64_t i = 0; i < count; i++)
        values[i] = qn_tensor_f64(y, i);
    qn_session_free(session);
    qn_plan_free(plan);
    qn_arena_free(&arena);
    return count;
}

/* "seen", "y" and "joined" are integers with a scale; an index has none. */
static void outputs_are_integers_with_a_scale(void **state)
{
    enum { MOST = 2 * FILTERS * 64 };
    static double fixed[MOST], real[MOST];
    (void)state;
    for (int bits = 8; bits <= 16; bits += 8) {
        fixture f = network();
        qn_model *integers = quantize(&f, bits, 0), *reals = quantize(&f, bits, 1);
        for (size_t o = 0; o < 4; o++) {
            const double scale = qn_model_output_scale(integers, o);
            const int64_t count = run(fixed, &f, integers, o);
            assert_int_equal(run(real, &f, reals, o), count);
            assert_true(qn_model_output_scale(reals, o) == 1);
            assert_true((o < 3) == (scale != 1));
            const qn_metadata metadata = integers->metadata;
            integers->metadata = (qn_metadata){NULL, 0}; /* a tool may strip it */
            assert_true((float)qn_model_output_scale(integers, o) == (float)scale);
            integers->metadata = metadata;
            for (int64_t i = 0; i < count; i++) {
                if (o < 3 && (fixed[i] != nearbyint(fixed[i]) || fabs(fixed[i]) >= 1 << (bits - 1)))
                    fail_msg("output %zu has %g", o, fixed[i]);
                if (fabs(fixed[i] * scale - real[i]) > 1e-5 * fabs(real[i]))
                    fail_msg("output %zu: %g * %g is not %g", o, fixed[i], scale, real[i]);
            }
        }
        qn_model_free(reals);
        end(&f, integers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chips_are_known_by_their_full_names),
                                       cmocka_unit_test(one_chip_has_8_bits_only),
                                       cmocka_unit_test(all_is_symmetric),
                                       cmocka_unit_test(outputs_are_integers_with_a_scale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
