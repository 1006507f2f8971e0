/* Mix files: what they must say, the rules over widths, and templates that obey them. Each case is
 * a small graph. */
#include <stdio.h>

#include "pass_test.h"
#include "quant/mix.h"

static qn_value *call(qn_value *value, const char *name)
{
    assert_int_equal(qn_node_rename(value->producer, name), QN_OK);
    return value;
}

static qn_value *convolve(fixture *f, qn_value *x, const char *name)
{
    return call(apply(f, &qn_op_Conv, 2, x, weights(f, 4, DIMS(12, 12, 1, 1))), name);
}

static qn_value *picture(fixture *f, const char *name)
{
    return input(f, name, 4, DIMS(1, 12, 6, 6));
}

static qn_value *normalize(fixture *f, qn_value *x, const char *name)
{
    return call(
        apply(f, &qn_op_LayerNormalization, 3, x, weights(f, 1, DIMS(6)), weights(f, 1, DIMS(6))),
        name);
}

static void finish(fixture *f, qn_value *y)
{
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
}

static void end(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

static qn_quantizer *rules_of(fixture *f)
{
    const qn_quant_settings settings = {.profile = &qn_profiles[0], .bits = 8};
    qn_quantizer *q;
    if (qn_quantizer_create(&q, f->model, &settings) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    return q;
}

/* The message of what is wrong with the file for the graph; NULL: nothing. */
static const char *fault_of(fixture *f, const char *text)
{
    qn_quant_settings settings = {.profile = &qn_profiles[0], .bits = 8};
    qn_mix *mix;
    qn_quantizer *q = NULL;
    qn_status status = qn_mix_parse(&mix, f->ctx, text, strlen(text), "mix");
    settings.mix = mix;
    if (status == QN_OK) {
        qn_quantizer *names = rules_of(f);
        status = qn_mix_check_names(names, mix, f->graph);
        qn_quantizer_free(names);
    }
    if (status == QN_OK)
        status = qn_quantizer_create(&q, f->model, &settings);
    qn_quantizer_free(q);
    qn_mix_free(mix);
    return status == QN_OK ? NULL : qn_context_error(f->ctx);
}

/* Names of one letter, each with its width: "a16 b8". */
static const char *fault_of_widths(fixture *f, const char *widths)
{
    static char text[1024];
    const char *comma = "";
    size_t at = (size_t)snprintf(text, sizeof text, "{");
    while (*widths) {
        char *behind;
        const long bits = strtol(widths + 1, &behind, 10);
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s\"%c\": {\"bitwidth\": %ld, \"mode\": \"kl\"}", comma, *widths,
                               bits);
        comma = ", ";
        widths = behind + (*behind == ' ');
    }
    snprintf(text + at, sizeof text - at, "}");
    return fault_of(f, text);
}

static void must_say(const char *message, const char *words)
{
    if (!message || !strstr(message, words))
        fail_msg("'%s' is not in: %s", words, message ? message : "(nothing)");
}

static void must_hold(const char *message)
{
    if (message)
        fail_msg("%s", message);
}

/* ---- Rules 1 to 4 ---------------------------------------------------------------------------- */

static void members_are_complete(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"a\": {\"bitwidth\": 8, \"mode\": \"kl\"}}", "node 'b'"},
        {"{\"a\": {\"bitwidth\": 8, \"mode\": \"kl\"}, \"b\": {\"bitwidth\": 8, \"mode\": \"kl\"}, "
         "\"bb\": {\"bitwidth\": 8, \"mode\": \"kl\"}}",
         "bb: the model has no such node (rule 1)"},
        {"{\"a\": {\"bitwidth\": 8}}", "a: has no 'mode'"},
        {"{\"a\": {\"mode\": \"kl\"}}",
         "a: has no 'bitwidth': bitwidth and mode are both needed (rule 2)"},
        {"{\"a\": 8}", "(rule 2)"},
        {"{\"a\": {\"bitwidth\": 4, \"mode\": \"kl\"}}",
         "a.bitwidth: is 4: a node has 8 or 16 bits (rule 3)"},
        {"{\"a\": {\"bitwidth\": \"8\", \"mode\": \"kl\"}}", "a.bitwidth"},
        {"{\"a\": {\"bitwidth\": 8, \"mode\": \"best\"}}",
         "a.mode: is 'best': it must be min_max, kl, kl_v2, percentile or mse (rule 4)"},
        {"{\"a\": {\"bitwidth\": 8, \"mode\": \"kl\", \"more\": 1}}", "more"},
        {"[]", "mix"},
        {"{", "mix"},
    };
    fixture f = begin();
    (void)state;
    finish(&f, convolve(&f, convolve(&f, picture(&f, "x"), "a"), "b"));
    must_hold(fault_of_widths(&f, "a8 b16"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        must_say(fault_of(&f, cases[i].text), cases[i].words);
    end(&f);
}

/* What is part of a node or moves numbers is no member, and one all the same has no effect; widths
 * go along. */
static void parts_have_no_width(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *a = convolve(&f, picture(&f, "x"), "a");
    qn_value *r = call(apply(&f, &qn_op_Relu, 1, a), "r");
    qn_value *m = call(apply(&f, &qn_op_Transpose, 1, r), "m");
    qn_value *b = call(apply(&f, &qn_op_Conv, 2, m, weights(&f, 4, DIMS(12, 6, 1, 1))), "b");
    finish(&f, b);
    must_hold(fault_of_widths(&f, "a16 b8"));
    must_hold(fault_of_widths(&f, "a16 b8 r8 m8"));
    static const char text[] = "{\"a\": {\"bitwidth\": 16, \"mode\": \"kl\"}, "
                               "\"b\": {\"bitwidth\": 8, \"mode\": \"mse\"}}";
    qn_mix *mix;
    assert_int_equal(qn_mix_parse(&mix, f.ctx, text, sizeof text - 1, "mix"), QN_OK);
    const qn_quant_settings settings = {.profile = &qn_profiles[0], .bits = 8, .mix = mix};
    qn_quantizer *q;
    assert_int_equal(qn_quantizer_create(&q, f.model, &settings), QN_OK);
    assert_int_equal(qn_quant_node_of(q, r->producer)->bits, 16);
    assert_int_equal(qn_quant_node_of(q, m->producer)->bits, 16);
    assert_int_equal(qn_quant_node_of(q, b->producer)->bits, 8);
    assert_string_equal(qn_quant_node_of(q, r->producer)->method->name, "kl");
    assert_true(qn_quant_reads_int8(q, qn_quant_node_of(q, b->producer), 0));
    qn_quantizer_free(q);
    qn_mix_free(mix);
    end(&f);
}

/* ---- Rules 5 to 8 ---------------------------------------------------------------------------- */

static void norms_have_their_neighbours_width(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *a = apply(&f, &qn_op_Transpose, 1, convolve(&f, picture(&f, "x"), "a"));
    qn_value *n = call(apply(&f, &qn_op_LayerNormalization, 2, a, weights(&f, 1, DIMS(1))), "n");
    finish(&f, convolve(&f, convolve(&f, apply(&f, &qn_op_Transpose, 1, n), "b"), "c"));
    must_hold(fault_of_widths(&f, "a8 n8 b8 c16"));
    must_hold(fault_of_widths(&f, "a16 n16 b16 c8"));
    must_say(fault_of_widths(&f, "a8 n16 b16 c8"), "n: has 16 bits and node 'a' 8");
    must_say(fault_of_widths(&f, "a8 n16 b16 c8"), "(rule 5)");
    must_say(fault_of_widths(&f, "a8 n8 b16 c8"), "n: has 8 bits and node 'b' 16");
    end(&f);
}

/* It is a node of integers as others are. */
static void recurrent_nodes_have_one_width_around(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *x = input(&f, "x", 3, DIMS(5, 1, 8));
    qn_value *a = call(apply(&f, &qn_op_MatMul, 2, x, weights(&f, 2, DIMS(8, 8))), "a");
    qn_value *l = call(apply(&f, &qn_op_LSTM, 3, a, weights(&f, 3, DIMS(1, 32, 8)),
                             weights(&f, 3, DIMS(1, 32, 8))),
                       "l");
    ((qn_recurrent_attrs *)l->producer->attrs)->hidden_size = 8;
    finish(&f, call(apply(&f, &qn_op_MatMul, 2, l, weights(&f, 2, DIMS(8, 16))), "b"));
    must_hold(fault_of_widths(&f, "a16 l16 b16"));
    must_say(fault_of_widths(&f, "a8 l16 b16"), "l: has 16 bits and node 'a' 8");
    must_say(fault_of_widths(&f, "a8 l16 b16"), "(rule 5)");
    must_say(fault_of_widths(&f, "a8 l8 b16"), "l: has 8 bits and node 'b' 16");
    end(&f);
}

static void widths_stay_at_abs(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *a = convolve(&f, picture(&f, "x"), "a");
    finish(&f, convolve(&f, call(apply(&f, &qn_op_Abs, 1, a), "s"), "b"));
    must_hold(fault_of_widths(&f, "a8 s8 b8"));
    must_hold(fault_of_widths(&f, "a16 s16 b16"));
    must_say(fault_of_widths(&f, "a8 s16 b16"), "(rule 6)");
    must_say(fault_of_widths(&f, "a16 s16 b8"), "(rule 6)");
    end(&f);
}

static void inputs_have_one_width(void **state)
{
    for (int two = 0; two < 2; two++) {
        fixture f = begin();
        (void)state;
        qn_value *x = picture(&f, "x"), *y = two ? picture(&f, "y") : x;
        qn_value *sum =
            call(apply(&f, &qn_op_Add, 2, convolve(&f, x, "a"), convolve(&f, y, "b")), "s");
        finish(&f, convolve(&f, sum, "c"));
        must_hold(fault_of_widths(&f, "a8 b8 s16 c8"));
        if (two)
            must_say(fault_of_widths(&f, "a16 b8 s8 c8"), "(rule 7)");
        else
            must_hold(fault_of_widths(&f, "a16 b8 s8 c8"));
        end(&f);
    }
}

static void norms_before_concat_are_not_wider(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *x = picture(&f, "x"), *n = normalize(&f, convolve(&f, x, "a"), "n");
    qn_value *c = call(apply(&f, &qn_op_Concat, 2, n, convolve(&f, x, "b")), "c");
    ((qn_concat_attrs *)c->producer->attrs)->axis = 1;
    finish(&f, call(apply(&f, &qn_op_Conv, 2, c, weights(&f, 4, DIMS(12, 24, 1, 1))), "d"));
    must_hold(fault_of_widths(&f, "a8 n8 c8 b8 d8"));
    must_hold(fault_of_widths(&f, "a8 n8 c8 b16 d16"));
    must_hold(fault_of_widths(&f, "a16 n16 c16 b16 d16"));
    must_say(fault_of_widths(&f, "a16 n16 c16 b8 d16"), "n: has 16 bits and node 'b' 8");
    must_say(fault_of_widths(&f, "a16 n16 c16 b16 d8"), "'c' (rule 8)");
    end(&f);
}

/* ---- Templates ------------------------------------------------------------------------------- */

static int bits_of(const qn_quantizer *q, const char *name)
{
    return qn_quant_node_of(q, qn_graph_node(q->graph, name))->bits;
}

/* Half of six in a row get 16 bits. */
static void ends_are_wide(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *x = picture(&f, "x");
    for (char name[2] = "a"; name[0] < 'g'; name[0]++)
        x = convolve(&f, x, name);
    finish(&f, x);
    qn_quantizer *q = rules_of(&f);
    assert_int_equal(qn_mix_fill(q, &(qn_mix_template_options){.bits = 8,
                                                               .usual = qn_methods[1],
                                                               .int16_ends = true,
                                                               .ratio = 0.6}),
                     QN_OK);
    assert_int_equal(bits_of(q, "a"), 16);
    assert_int_equal(bits_of(q, "b"), 8);
    assert_int_equal(bits_of(q, "e"), 8);
    assert_int_equal(bits_of(q, "f"), 16);
    assert_string_equal(qn_quant_node_of(q, x->producer)->method->name, "min_max");
    qn_quantizer_free(q);
    end(&f);
}

/* With a share of narrow nodes that is never less than what was asked for. */
static void templates_obey_the_rules(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *x = picture(&f, "x"), *n = normalize(&f, convolve(&f, x, "a"), "n");
    qn_value *y = apply(&f, &qn_op_Abs, 1, convolve(&f, picture(&f, "y"), "b"));
    qn_value *c = apply(&f, &qn_op_Concat, 2, n, convolve(&f, y, "c"));
    ((qn_concat_attrs *)c->producer->attrs)->axis = 1;
    finish(&f, convolve(&f, apply(&f, &qn_op_Conv, 2, c, weights(&f, 4, DIMS(12, 24, 1, 1))), "e"));
    for (int tenths = 0; tenths <= 10; tenths++) {
        qn_quantizer *q = rules_of(&f);
        qn_mix_constraints bonds;
        size_t counts[2] = {0, 0};
        assert_int_equal(qn_mix_fill(q, &(qn_mix_template_options){.bits = 8,
                                                                   .usual = qn_methods[1],
                                                                   .int16_ends = true,
                                                                   .ratio = tenths / 10.0}),
                         QN_OK);
        for (size_t i = 0; i < q->n_nodes; i++)
            counts[q->nodes[i].bits > 8] += qn_mix_is_node(q, &q->nodes[i]);
        assert_int_equal(counts[0] + counts[1], 8);
        assert_true((double)counts[0] >= tenths / 10.0 * 8);
        assert_true(counts[1] > 0 || tenths > 2);
        assert_int_equal(qn_mix_constraints_find(&bonds, q), QN_OK);
        assert_true(bonds.count > 5);
        assert_null(qn_mix_constraints_broken(&bonds));
        qn_mix_constraints_free(&bonds, q);
        qn_quantizer_free(q);
    }
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_complete),
        cmocka_unit_test(parts_have_no_width),
        cmocka_unit_test(norms_have_their_neighbours_width),
        cmocka_unit_test(recurrent_nodes_have_one_width_around),
        cmocka_unit_test(widths_stay_at_abs),
        cmocka_unit_test(inputs_have_one_width),
        cmocka_unit_test(norms_before_concat_are_not_wider),
        cmocka_unit_test(ends_are_wide),
        cmocka_unit_test(templates_obey_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
