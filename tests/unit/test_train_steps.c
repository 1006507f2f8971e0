/* Steps of optimizers beside PyTorch 2's (torch.optim, doubles, three steps), and the
 * straight-through gradients of fake quantization beside their formulas. */
#include "ops/grad_attrs.h"
#include "train_test.h"

static const double gradients[3][3] = {{.1, -.2, .3}, {-.4, .05, .2}, {.3, .3, -.6}};
static const int64_t three = 3;

static trial begin(void)
{
    trial t = {.random = 1};
    assert_int_equal(qn_context_create(&t.ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&t.model, t.ctx), QN_OK);
    t.graph = t.model->graph;
    qn_arena_init(&t.arena, &t.ctx->allocator);
    return t;
}

static void end(trial *t)
{
    qn_arena_free(&t->arena);
    qn_model_free(t->model);
    qn_context_free(t->ctx);
}

static void set(trial *t, size_t k, const double *values)
{
    memcpy(t->numbers[k]->data, values, (size_t)qn_tensor_count(t->numbers[k]) * sizeof *values);
}

static void outputs(trial *t, const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++)
        assert_int_equal(qn_graph_add_output(t->graph, node->out[o]), QN_OK);
    if (qn_graph_infer(t->graph) != QN_OK)
        fail_msg("%s", qn_context_error(t->ctx));
}

/* Input 0 is W, 1 its gradient; those behind them are fed with what the step before gave. */
static void take_steps(trial *t, qn_value *step, const double *wanted)
{
    const double start[3] = {.5, -1.25, 2};
    const qn_tensor *out[3];
    set(t, 0, start);
    for (size_t k = 2; k < t->graph->n_outputs + 1; k++)
        memset(t->numbers[k]->data, 0, 3 * sizeof(double));
    for (int i = 0; i < 3; i++) {
        const double number = i + 1;
        set(t, 1, gradients[i]);
        if (step)
            set(t, t->n_inputs - 1, &number);
        evaluate(t, out);
        set(t, 0, out[0]->data);
        for (size_t o = 1; o < t->graph->n_outputs; o++)
            set(t, o + 1, out[o]->data);
    }
    for (int i = 0; i < 3; i++) {
        const double got = ((const double *)t->numbers[0]->data)[i];
        if (!(fabs(got - wanted[i]) < 1e-6)) /* the attributes are floats */
            fail_msg("weight %d is %.9g instead of %.9g", i, got, wanted[i]);
    }
}

static void sgd(bool nesterov, const double *wanted)
{
    trial t = begin();
    qn_value *w = between(&t, 1, &three, 0, 1), *g = between(&t, 1, &three, 0, 1);
    qn_value *m = between(&t, 1, &three, 0, 1), *rate = constant(&t, .1);
    qn_node *node = add_node(&t, &qn_op_qn_SgdStep, 2, 4, w, g, m, rate);
    *(qn_sgd_attrs *)node->attrs = (qn_sgd_attrs){.9f, .01f, nesterov};
    outputs(&t, node);
    take_steps(&t, NULL, wanted);
    end(&t);
}

static void adam(bool decoupled, const double *wanted)
{
    trial t = begin();
    qn_value *w = between(&t, 1, &three, 0, 1), *g = between(&t, 1, &three, 0, 1);
    qn_value *m = between(&t, 1, &three, 0, 1), *v = between(&t, 1, &three, 0, 1);
    qn_value *rate = constant(&t, .1), *step = between(&t, 0, NULL, 0, 1);
    qn_node *node = add_node(&t, &qn_op_qn_AdamStep, 3, 6, w, g, m, v, rate, step);
    *(qn_adam_attrs *)node->attrs = (qn_adam_attrs){.8f, .99f, 1e-8f, .01f, decoupled};
    outputs(&t, node);
    take_steps(&t, step, wanted);
    end(&t);
}

static void optimizers(void **state)
{
    (void)state;
    sgd(false, (const double[]){0.5160953895, -1.22836447875, 1.929623568});
    sgd(true, (const double[]){0.51295096198, -1.24191389925, 1.94094073651});
    adam(false, (const double[]){0.452068563286, -1.13815457021, 1.82412053133});
    adam(true, (const double[]){0.453367075613, -1.14574473247, 1.82340979631});
}

/* The norm of {3, 4} is 5. */
static void limits_the_norm(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const int64_t one = 1;
        const qn_tensor *out[1];
        trial t = begin();
        qn_value *a = between(&t, 1, &one, 3, 3), *b = between(&t, 1, &one, 4, 4);
        qn_node *node = add_node(&t, &qn_op_qn_GradientScale, 1, 2, a, b);
        ((qn_gradient_scale_attrs *)node->attrs)->max_norm = i ? 10 : 2;
        outputs(&t, node);
        assert_true(fabs(evaluate(&t, out) - (i ? 1 : .4)) < 1e-12);
        end(&t);
    }
}

/* ---- Fake quantization ----------------------------------------------------------------------- */

typedef struct fake {
    int64_t qmin, qmax;
    bool has_offset, limits_only;
} fake;

/* LSQ: y = s clamp(v + r) + offset with v = (x - offset) / s and r, what rint(v) adds, held fixed;
 * with limits_only r is 0. The offset lies on the grid of s here. */
static void expect_fake(trial *t, const fake *f, const qn_tensor *const *out)
{
    const double *x = t->numbers[0]->data, *s = t->numbers[1]->data;
    double ds[2] = {0, 0}, d_offset[2] = {0, 0};
    for (int i = 0; i < 24; i++) {
        const int c = i / 4 % 2; /* [3, 2, 4] along axis 1 */
        const double offset = f->has_offset ? ((const double *)t->numbers[2]->data)[c] : 0;
        const double v = (x[i] - offset) / s[c], low = (double)f->qmin, high = (double)f->qmax;
        const bool below = v<low, above = v> high;
        const double q = below ? low : above ? high : rint(v);
        const double slope = below || above ? q : f->limits_only ? 0 : q - v;
        const double weight = (i % 7) - 2.5;
        assert_true(fabs(((const double *)out[0]->data)[i] - (q * s[c] + offset)) < 1e-12);
        assert_true(((const double *)out[1]->data)[i] == (below || above ? 0 : weight));
        ds[c] += weight * slope;
        d_offset[c] += below || above ? weight : 0;
    }
    for (int c = 0; c < 2; c++) {
        assert_true(fabs(((const double *)out[2]->data)[c] - .5 * ds[c]) < 1e-9);
        if (f->has_offset)
            assert_true(fabs(((const double *)out[3]->data)[c] - .5 * d_offset[c]) < 1e-9);
    }
}

static void check_fake(const fake *f)
{
    const qn_tensor *out[4];
    trial t = begin();
    const int64_t dims[3] = {3, 2, 4}, channels = 2;
    qn_value *x = between(&t, 3, dims, -3, 3), *s = between(&t, 1, &channels, .2, .5), *weight;
    qn_value *offset = f->has_offset ? between(&t, 1, &channels, 0, 1) : NULL;
    qn_tensor *weights = random_tensor(&t, 3, dims, 0, 1);
    for (int i = 0; i < 24; i++)
        ((double *)weights->data)[i] = (i % 7) - 2.5;
    for (int c = 0; f->has_offset && c < 2; c++)
        ((double *)t.numbers[2]->data)[c] = (c ? -2 : 3) * ((double *)t.numbers[1]->data)[c];
    assert_int_equal(qn_value_constant(&weight, t.graph, "w", weights), QN_OK);
    qn_value *y = APPLY(&t, qn_FakeQuant, x, s, offset);
    *(qn_fake_quant_attrs *)y->producer->attrs =
        (qn_fake_quant_attrs){1, f->qmin, f->qmax, f->limits_only, .5f};
    qn_value *loss = APPLY(&t, ReduceSum, APPLY(&t, Mul, y, weight)), *by[3];
    set_int(loss, "keepdims", 0);
    assert_int_equal(qn_graph_infer(t.graph), QN_OK);
    assert_int_equal(qn_differentiate(by, t.graph, loss, t.inputs, t.n_inputs), QN_OK);
    assert_int_equal(qn_graph_add_output(t.graph, y), QN_OK);
    for (size_t k = 0; k < t.n_inputs; k++)
        assert_int_equal(qn_graph_add_output(t.graph, by[k]), QN_OK);
    evaluate(&t, out);
    expect_fake(&t, f, out);
    end(&t);
}

static void fake_quantization(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        check_fake(&(fake){i & 1 ? 0 : -4, i & 1 ? 7 : 3, (i & 2) != 0, (i & 4) != 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers),
        cmocka_unit_test(limits_the_norm),
        cmocka_unit_test(fake_quantization),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
