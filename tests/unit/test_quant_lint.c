/* What keeps a quantized graph from running as integers on a target: each case breaks one rule. */
#include <stdio.h>

#include "ops/quantize.h"
#include "pass_test.h"
#include "quant/lint.h"

typedef struct meaning {
    qn_dtype dtype;
    double scale;
    int64_t zero;
} meaning;

static const meaning byte = {QN_UINT8, 0.03, 0}, other = {QN_UINT8, 0.04, 0},
                     level = {QN_INT8, 0.03, 0}, word = {QN_UINT16, 0.0003, 0},
                     weight = {QN_INT8, 1.0 / 127, 0};
static const int64_t image[4] = {1, 4, 6, 6}, filters[4] = {4, 4, 3, 3}, four[1] = {4};

static qn_value *node(fixture *f, const qn_op *op, qn_value *x, meaning m)
{
    qn_value *zero;
    assert_int_equal(qn_value_number(&zero, f->graph, m.dtype, (double)m.zero), QN_OK);
    return apply(f, op, 3, x, number(f, m.scale), zero);
}

static qn_value *both(fixture *f, qn_value *x, meaning m)
{
    return node(f, &qn_op_DequantizeLinear, node(f, &qn_op_QuantizeLinear, x, m), m);
}

static qn_value *conv(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_Conv, 2, x, both(f, weights(f, 4, filters), weight));
}

static qn_value *start(fixture *f, meaning m)
{
    return both(f, input(f, "x", 4, image), m);
}

static qn_value *clean(fixture *f)
{
    return both(f, conv(f, start(f, byte)), byte);
}

static qn_value *unsigned_numbers(fixture *f)
{
    return both(f, conv(f, start(f, byte)), level);
}

static qn_value *shifted(fixture *f)
{
    return both(f, conv(f, start(f, (meaning){QN_INT8, 0.03, 5})), level);
}

static qn_value *wide(fixture *f)
{
    return both(f, conv(f, start(f, word)), word);
}

static qn_value *float_input(fixture *f)
{
    return both(f, conv(f, input(f, "x", 4, image)), byte);
}

static qn_value *float_weights(fixture *f)
{
    return both(f, apply(f, &qn_op_Conv, 2, start(f, byte), weights(f, 4, filters)), byte);
}

static qn_value *float_result(fixture *f)
{
    return conv(f, start(f, byte));
}

/* A bias of 1 in units of 1e-7 * 1e-7. */
static qn_value *large_bias(fixture *f)
{
    qn_value *x = start(f, (meaning){QN_UINT8, 1e-7, 0});
    qn_value *w = both(f, weights(f, 4, filters), (meaning){QN_INT8, 1e-7, 0});
    return both(f, apply(f, &qn_op_Conv, 3, x, w, weights(f, 1, four)), byte);
}

/* Two scales of a group's filters, and 64 biases of all groups'. */
static qn_value *groups(fixture *f)
{
    const int64_t many[3] = {1, 32, 2}, kernel[3] = {32, 2, 1}, all[1] = {64}, two[1] = {2};
    const qn_type type = qn_type_tensor(QN_INT8, 3, kernel);
    qn_tensor *integers;
    qn_value *w, *scale = weights(f, 1, two);
    assert_int_equal(qn_tensor_create(&integers, f->ctx, f->graph->arena, &type), QN_OK);
    assert_int_equal(qn_value_constant(&w, f->graph, "w", integers), QN_OK);
    ((float *)scale->data->data)[0] = ((float *)scale->data->data)[1] = (float)weight.scale;
    w = apply(f, &qn_op_DequantizeLinear, 2, w, scale);
    qn_value *y = apply(f, &qn_op_ConvTranspose, 3, both(f, input(f, "x", 3, many), byte), w,
                        weights(f, 1, all));
    ((qn_window_attrs *)y->producer->attrs)->group = 32;
    return both(f, y, byte);
}

static qn_value *function(fixture *f)
{
    qn_value *y = apply(f, &qn_op_Tanh, 1, start(f, byte));
    return both(f, conv(f, both(f, y, byte)), byte);
}

/* Rounded once, behind the function. */
static qn_value *behind(fixture *f)
{
    qn_value *y = apply(f, &qn_op_Swish, 1, conv(f, start(f, byte)));
    return both(f, conv(f, both(f, y, byte)), byte);
}

/* One table: nothing is rounded between its functions, and their constants are exact. */
static qn_value *chain(fixture *f)
{
    qn_value *y = apply(f, &qn_op_Tanh, 1, start(f, byte));
    y = apply(f, &qn_op_Mul, 2, number(f, 0.5), y);
    return both(f, conv(f, both(f, y, byte)), byte);
}

/* No table: a constant for each channel. */
static qn_value *rows(fixture *f)
{
    const int64_t channels[3] = {4, 1, 1};
    qn_value *y = apply(f, &qn_op_Mul, 2, start(f, byte), weights(f, 3, channels));
    return both(f, conv(f, both(f, y, byte)), byte);
}

static qn_value *limited(fixture *f)
{
    qn_value *y = apply(f, &qn_op_Relu, 1, conv(f, start(f, byte)));
    return both(f, y, (meaning){QN_UINT8, 0.03, 100});
}

static qn_value *parts(fixture *f)
{
    qn_value *x = start(f, byte);
    qn_value *y = apply(f, &qn_op_Concat, 2, x, both(f, x, other));
    ((qn_concat_attrs *)y->producer->attrs)->axis = 1;
    return both(f, y, byte);
}

static qn_value *moved(fixture *f)
{
    const int64_t flat[2] = {1, 144};
    return both(f, apply(f, &qn_op_Reshape, 2, start(f, byte), ints(f, flat, 2)), other);
}

static qn_value *dynamic(fixture *f)
{
    qn_value *x = input(f, "x", 4, image), *scale = input(f, "scale", 0, NULL);
    qn_value *zero;
    assert_int_equal(qn_value_number(&zero, f->graph, QN_UINT8, 0), QN_OK);
    return both(f,
                apply(f, &qn_op_DequantizeLinear, 3,
                      apply(f, &qn_op_QuantizeLinear, 3, x, scale, zero), scale, zero),
                byte);
}

static const struct {
    const char *name;
    qn_value *(*build)(fixture *f);
    /* NULL: nothing is found */
    const char *target, *rule;
} cases[] = {
    {"clean", clean, "quench", NULL},
    {"clean", clean, "ort", NULL},
    {"clean", clean, "openvino", NULL},
    {"unsigned", unsigned_numbers, "tensorrt", "zero-point"},
    {"unsigned", unsigned_numbers, "ort", NULL},
    {"zero point", shifted, "tensorrt", "zero-point"},
    {"16 bits", wide, "ort", "width"},
    {"16 bits", wide, "quench", NULL},
    {"float input", float_input, "quench", "input"},
    {"float weights", float_weights, "quench", "weights"},
    {"float result", float_result, "ort", "result"},
    {"float result", float_result, "quench", NULL},
    {"float bias", large_bias, "ort", "bias"},
    {"groups", groups, "quench", "bias"},
    {"float bias", large_bias, "tensorrt", "zero-point"},
    {"Tanh", function, "ort", "kernel"},
    {"Tanh", function, "quench", NULL},
    {"SiLU behind a convolution", behind, "quench", NULL},
    {"functions in a row", chain, "quench", NULL},
    {"functions in a row", chain, "qdq-generic", "kernel"},
    {"constants", rows, "quench", "input"},
    {"Relu inside the range", limited, "ort", "limit"},
    {"Relu inside the range", limited, "quench", NULL},
    {"Concat", parts, "openvino", "scales"},
    {"Concat", parts, "quench", NULL},
    {"Reshape", moved, "ort", "scales"},
    {"scale of a run", dynamic, "ort", "dynamic"},
};

typedef struct found {
    size_t count;
    char first[32];
    /* A message says that int32 is too small */
    bool has_large;
} found;

static void take(void *user, const qn_lint_finding *finding)
{
    found *all = user;
    if (all->count++ == 0)
        snprintf(all->first, sizeof all->first, "%s", finding->rule);
    all->has_large = all->has_large || strstr(finding->why, "does not fit into int32");
}

static found lint(qn_value *(*build)(fixture *f), const char *target)
{
    fixture f = begin();
    found all = {.count = 0};
    const qn_profile *profile;
    const qn_lint_sink sink = {take, &all};
    assert_int_equal(qn_graph_add_output(f.graph, build(&f)), QN_OK);
    assert_int_equal(qn_graph_infer(f.graph), QN_OK);
    assert_int_equal(qn_profile_find(&profile, f.ctx, target), QN_OK);
    assert_int_equal(qn_lint(f.model, profile, &sink), QN_OK);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
    return all;
}

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        const found all = lint(cases[i].build, cases[i].target);
        const char *rule = all.count ? all.first : NULL;
        if ((!rule) != (!cases[i].rule) || (rule && strcmp(rule, cases[i].rule) != 0))
            fail_msg("%s on %s: found '%s', not '%s'", cases[i].name, cases[i].target,
                     rule ? rule : "nothing", cases[i].rule ? cases[i].rule : "nothing");
    }
    assert_true(lint(large_bias, "ort").has_large);
    assert_false(lint(groups, "quench").has_large);
}

static void test_names(void **state)
{
    const char *brief = NULL;
    size_t count = 0;
    (void)state;
    while (qn_lint_rule_name(count, &brief))
        count++;
    assert_int_equal(count, 13);
    assert_non_null(brief);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules), cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
