/* Pairs at outputs, types of inputs, one scale for what is put together, limits around
 * LayerNormalization, short tables. */
#include <stdio.h>
#include <unistd.h>

#include "ops/quantize.h"
#include "pass/qdq_to_integer.h"
#include "pass_test.h"

static qn_value *convolve(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_Conv, 2, x, weights(f, 4, DIMS(12, 12, 1, 1)));
}

static qn_value *picture(fixture *f, const char *name)
{
    return input(f, name, 4, DIMS(1, 12, 6, 6));
}

static qn_quantize_options base(int bits)
{
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    options.bits = bits;
    options.method = "min_max";
    return options;
}

/* On random numbers; NULL: it fails. */
static qn_model *try_quantize(fixture *f, const qn_quantize_options *options)
{
    qn_model *quantized;
    return qn_model_quantize(&quantized, NULL, f->ctx, f->model, options) == QN_OK ? quantized
                                                                                   : NULL;
}

static qn_model *quantize(fixture *f, const qn_quantize_options *options)
{
    qn_model *quantized = try_quantize(f, options);
    if (!quantized)
        fail_msg("%s", qn_context_error(f->ctx));
    return quantized;
}

static void end(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

static void finish(fixture *f, qn_value *y)
{
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
}

/* The D that reads the value. */
static qn_quantized read_by(const qn_value *value)
{
    qn_quantized q;
    bool found = false;
    assert_ptr_equal(value->users[0]->op, &qn_op_DequantizeLinear);
    assert_int_equal(qn_qdq_input(&found, &q, value->users[0]->out[0]), QN_OK);
    assert_true(found);
    return q;
}

/* The Q behind the value that a node of the float graph wrote. */
static qn_quantized written(const qn_model *model, const char *name)
{
    const qn_value *value = qn_graph_value(model->graph, name);
    assert_non_null(value);
    assert_ptr_equal(value->users[0]->op, &qn_op_QuantizeLinear);
    return read_by(value->users[0]->out[0]);
}

/* ---- Files with pairs ------------------------------------------------------------------------ */

static float constant(const qn_value *value)
{
    assert_non_null(value->data);
    return ((const float *)value->data->data)[0];
}

/* A pair at the end goes: the result may come out in float, but within what its integers reach. */
static void outputs_keep_their_ends(void **state)
{
    (void)state;
    for (int zero = 0; zero < 200; zero += 100) {
        fixture f = begin();
        qn_value *q[3] = {convolve(&f, convolve(&f, picture(&f, "x"))), number(&f, 0.125)};
        assert_int_equal(qn_value_number(&q[2], f.graph, QN_UINT8, zero), QN_OK);
        q[0] = apply(&f, &qn_op_QuantizeLinear, 3, q[0], q[1], q[2]);
        finish(&f, apply(&f, &qn_op_DequantizeLinear, 3, q[0], q[1], q[2]));
        const qn_quantize_options options = base(8);
        qn_model *quantized = quantize(&f, &options);
        const qn_node *last = quantized->graph->outputs[0]->producer;
        assert_ptr_equal(last->op, &qn_op_Clip);
        assert_true(constant(last->in[1]) == (float)-zero * 0.125f);
        assert_true(constant(last->in[2]) == (float)(255 - zero) * 0.125f);
        qn_model_free(quantized);
        end(&f);
    }
}

/* ---- Float beside integers ------------------------------------------------------------------- */

/* What is there in float is read before it is rounded; what integers computed is not. */
static void floats_are_read_as_they_are(void **state)
{
    fixture f = begin();
    qn_value *x = picture(&f, "x"), *a = convolve(&f, x);
    (void)state;
    finish(&f, convolve(&f, a));
    finish(&f, apply(&f, &qn_op_ReduceMax, 1, x));
    finish(&f, apply(&f, &qn_op_ReduceMax, 1, a));
    const qn_quantize_options options = base(8);
    qn_model *quantized = quantize(&f, &options);
    qn_value *const *outputs = quantized->graph->outputs;
    assert_ptr_equal(outputs[1]->producer->in[0], quantized->graph->inputs[0]);
    assert_ptr_equal(outputs[2]->producer->in[0]->producer->op, &qn_op_DequantizeLinear);
    qn_model_free(quantized);
    end(&f);
}

/* A target that rounds the last product rounds it to what the Relu leaves: the network's output
 * tells its range. */
static void last_products_end_where_limits_do(void **state)
{
    fixture f = begin();
    qn_value *a = convolve(&f, convolve(&f, picture(&f, "x")));
    (void)state;
    finish(&f, apply(&f, &qn_op_Relu, 1, a));
    qn_quantize_options options = base(8);
    options.target = "ort";
    qn_model *quantized = quantize(&f, &options);
    const qn_quantized q = written(quantized, a->name);
    assert_int_equal(q.params.zero, 0);
    assert_true(qn_quantized_scale(&q, 0) != 1);
    qn_model_free(quantized);
    end(&f);
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Two products with 255 must fit 16 bits together: no weight is beyond 64, and some reach it. */
static void weights_have_half_the_range(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        fixture f = begin();
        qn_value *x = input(&f, "x", 2, DIMS(3, 12)), *w = weights(&f, 2, DIMS(12, 12));
        finish(&f, apply(&f, &qn_op_MatMul, 2, apply(&f, &qn_op_MatMul, 2, x, w), w));
        qn_quantize_options options = base(8);
        options.reduce_range = 1;
        options.no_weight_clipping = 1;
        options.dynamic = dynamic;
        qn_model *quantized = quantize(&f, &options);
        int seen = 0;
        for (size_t i = 0; i < quantized->graph->n_values; i++) {
            const qn_tensor *t = quantized->graph->values[i]->data;
            if (!t || t->dtype != QN_INT8 || qn_tensor_count(t) < 144)
                continue;
            int64_t most = 0;
            for (int64_t k = 0; k < 144; k++)
                most = QN_MAX(most, llabs(qn_tensor_i64(t, k)));
            assert_int_equal(most, 64);
            seen++;
        }
        assert_true(seen > 0);
        qn_model_free(quantized);
        end(&f);
    }
}

/* As matrix products, under the name of the Einsum. */
static void sums_of_products_are_integers(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 2, DIMS(3, 12));
    qn_value *y = apply(&f, &qn_op_Einsum, 2, x, weights(&f, 2, DIMS(12, 12)));
    ((qn_einsum_attrs *)y->producer->attrs)->equation = "ij,kj->ik";
    char name[64];
    snprintf(name, sizeof name, "%s_product", y->name);
    finish(&f, apply(&f, &qn_op_MatMul, 2, y, weights(&f, 2, DIMS(12, 12))));
    const qn_quantize_options options = base(8);
    qn_model *quantized = quantize(&f, &options);
    const qn_quantized q = written(quantized, name);
    (void)state;
    assert_true(qn_quantized_scale(&q, 0) > 0);
    qn_model_free(quantized);
    end(&f);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* Without a Q in front: the input is the integer, whoever reads it, with a scale of its own. */
static void inputs_have_types(void **state)
{
    static const struct {
        const char *name;
        qn_dtype dtype;
        int bits;
    } cases[] = {{"uint8", QN_UINT8, 8},  {"int8", QN_INT8, 8},       {"uint8", QN_UINT8, 16},
                 {"int16", QN_INT16, 16}, {"float32", QN_FLOAT32, 8}, {"None", QN_FLOAT32, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = begin();
        qn_value *x = picture(&f, "x");
        finish(&f, convolve(&f, convolve(&f, x)));
        qn_quantize_options options = base(cases[i].bits);
        options.input_types = &cases[i].name;
        options.n_input_types = 1;
        qn_model *quantized = quantize(&f, &options);
        const qn_value *input = quantized->graph->inputs[0];
        assert_int_equal(input->type.dtype, cases[i].dtype);
        if (cases[i].dtype == QN_FLOAT32) {
            assert_ptr_equal(input->users[0]->op, &qn_op_QuantizeLinear);
        } else {
            const qn_quantized q = read_by(input);
            assert_true(qn_quantized_scale(&q, 0) < 0.1f && qn_quantized_scale(&q, 0) > 0);
        }
        qn_model_free(quantized);
        end(&f);
    }
}

/* Statistics of integers. */
static qn_stats *pixels(fixture *f, const qn_quantize_options *options, double step)
{
    qn_stats *stats;
    qn_calibrate_options calibrate = options->calibrate;
    char path[] = "/tmp/quench-edges-XXXXXX";
    qn_tensor *x;
    qn_arena arena;
    const char *file = path;
    const int handle = mkstemp(path);
    assert_true(handle >= 0);
    qn_arena_init(&arena, &f->ctx->allocator);
    assert_int_equal(qn_tensor_create(&x, f->ctx, &arena, &f->graph->inputs[0]->type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(x); i++)
        ((float *)x->data)[i] = (float)((double)(i * 37 % 256) * step);
    assert_int_equal(write(handle, x->data, (size_t)qn_tensor_count(x) * sizeof(float)),
                     (ssize_t)((size_t)qn_tensor_count(x) * sizeof(float)));
    close(handle);
    calibrate.inputs = &file;
    calibrate.n_inputs = 1;
    if (qn_calibrate(&stats, NULL, f->ctx, f->model, &calibrate) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    remove(path);
    qn_arena_free(&arena);
    return stats;
}

/* Numbers that are integers of the type are taken as they are, others by the input's scale. */
static void integers_are_raw(void **state)
{
    static const struct {
        const char *type;
        double step;
        bool raw;
    } cases[] = {{"uint8", 1, true},
                 {"int8", 1, false},
                 {"int8", 0.25, false},
                 {"uint8", 0.5, false},
                 {"uint8", 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = begin();
        qn_value *x = picture(&f, "x");
        finish(&f, convolve(&f, convolve(&f, x)));
        qn_quantize_options options = base(8);
        qn_stats *stats = pixels(&f, &options, cases[i].step);
        char path[] = "/tmp/quench-edges-XXXXXX";
        const int handle = mkstemp(path);
        close(handle);
        assert_int_equal(qn_stats_save(f.ctx, stats, path), QN_OK);
        qn_stats_free(stats);
        options.stats = path;
        options.input_types = &cases[i].type;
        options.n_input_types = 1;
        qn_model *quantized = quantize(&f, &options);
        const qn_quantized q = read_by(quantized->graph->inputs[0]);
        const bool raw = qn_quantized_scale(&q, 0) == 1 && q.params.zero == 0;
        assert_int_equal(raw, cases[i].raw);
        remove(path);
        qn_model_free(quantized);
        end(&f);
    }
}

static void wrong_types_are_refused(void **state)
{
    static const struct {
        const char *types[3];
        size_t n;
        const char *words;
    } cases[] = {
        {{"int16", "None"}, 2, "node 'Conv', which reads it, has 8 bits"},
        {{"uint8", "int8", "int8"}, 3, "3 input types (`input_types`) for 2 inputs"},
        {{"uint4"}, 1, "input_types: 'uint4' is none of: float32, int8"},
        {{"None", "int8"}, 2, "input 'k' is int64: `input_types` changes inputs of float32 only"}};
    fixture f = begin();
    (void)state;
    qn_value *x = picture(&f, "x"), *k = input(&f, "k", 1, DIMS(1));
    k->type.dtype = QN_INT64;
    finish(&f, apply(&f, &qn_op_Gather, 2, convolve(&f, convolve(&f, x)), k));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_quantize_options options = base(8);
        options.input_types = cases[i].types;
        options.n_input_types = cases[i].n;
        assert_null(try_quantize(&f, &options));
        if (!strstr(qn_context_error(f.ctx), cases[i].words))
            fail_msg("%s", qn_context_error(f.ctx));
    }
    end(&f);
}

/* ---- One scale ------------------------------------------------------------------------------- */

/* A part that others read too has its own scale unless one is asked for; so has one behind an
 * Unsqueeze. */
static void parts_share_a_scale(void **state)
{
    (void)state;
    for (int unify = 0; unify < 2; unify++) {
        fixture f = begin();
        qn_value *x = picture(&f, "x"), *a = convolve(&f, x), *b = convolve(&f, x);
        for (int64_t i = 0; i < 144; i++)
            ((float *)b->producer->in[1]->data->data)[i] *= 10;
        qn_value *c = apply(&f, &qn_op_Concat, 2, a, b);
        ((qn_concat_attrs *)c->producer->attrs)->axis = 2;
        qn_value *y = apply(&f, &qn_op_Concat, 2, convolve(&f, c), convolve(&f, a));
        ((qn_concat_attrs *)y->producer->attrs)->axis = 2;
        finish(&f, y);
        qn_quantize_options options = base(8);
        options.unify_inputs = unify;
        qn_model *quantized = quantize(&f, &options);
        const qn_quantized p = written(quantized, a->name), q = written(quantized, b->name);
        assert_int_equal(qn_quantized_scale(&p, 0) == qn_quantized_scale(&q, 0), unify);
        qn_model_free(quantized);
        end(&f);
    }
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void norms_are_limited(void **state)
{
    (void)state;
    for (int bits = 8; bits <= 16; bits += 8) {
        fixture f = begin();
        qn_value *a = convolve(&f, picture(&f, "x"));
        qn_value *n = apply(&f, &qn_op_LayerNormalization, 2, a, weights(&f, 1, DIMS(6)));
        finish(&f, convolve(&f, n));
        qn_quantize_options options = base(bits);
        options.norm_limit = 0.125;
        qn_model *quantized = quantize(&f, &options);
        const char *const names[] = {a->name, n->name};
        for (int i = 0; i < 2; i++) {
            const qn_quantized q = written(quantized, names[i]);
            const double most = ldexp(1, bits) * (double)qn_quantized_scale(&q, 0);
            assert_true(most <= 0.25 * 1.01 && most > 0.01);
        }
        qn_model_free(quantized);
        end(&f);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int64_t entry(const qn_tensor *table, int64_t i)
{
    int64_t q;
    qn_load_i64(&q, table->dtype, table->data, i, 1);
    return q;
}

static const qn_tensor *table_of(const qn_model *model)
{
    for (const qn_node *node = model->graph->first; node; node = node->next) {
        if (node->op == &qn_op_qn_QTable)
            return node->in[1]->data;
    }
    fail_msg("there is no table");
    return NULL;
}

/* The graph as it runs, of a network with a sigmoid between convolutions. */
static qn_model *lowered(fixture *f, int table_bits)
{
    qn_quantize_options options = base(16);
    const qn_pass_options passes = {.purpose = QN_PURPOSE_RUN};
    options.table_bits = table_bits;
    qn_model *quantized = quantize(f, &options);
    if (qn_passes_run(quantized, &passes, NULL) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    return quantized;
}

/* The first entry of each step is the exact one, the others lie on the line to the next. */
static void tables_are_short(void **state)
{
    (void)state;
    for (int bits = 8; bits <= 12; bits += 2) {
        fixture f = begin();
        finish(&f, convolve(&f, apply(&f, &qn_op_Sigmoid, 1, convolve(&f, picture(&f, "x")))));
        qn_model *exact = lowered(&f, 0), *brief = lowered(&f, bits);
        const qn_tensor *all = table_of(exact), *few = table_of(brief);
        const int64_t step = 65536 >> bits;
        int64_t differ = 0;
        assert_int_equal(few->dims[0], 65536);
        for (int64_t i = 0; i + step < 65536; i++) {
            const int64_t at = i / step * step, a = entry(all, at), b = entry(all, at + step);
            const double line = (double)a + (double)(b - a) * (double)(i - at) / (double)step;
            assert_true(fabs((double)entry(few, i) - line) <= 0.5);
            differ += entry(few, i) != entry(all, i);
        }
        assert_true(bits > 8 || differ > 0);
        qn_model_free(exact);
        qn_model_free(brief);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_keep_their_ends),
        cmocka_unit_test(floats_are_read_as_they_are),
        cmocka_unit_test(last_products_end_where_limits_do),
        cmocka_unit_test(weights_have_half_the_range),
        cmocka_unit_test(sums_of_products_are_integers),
        cmocka_unit_test(inputs_have_types),
        cmocka_unit_test(integers_are_raw),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(parts_share_a_scale),
        cmocka_unit_test(norms_are_limited),
        cmocka_unit_test(tables_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
