/* Views, parts placed in a whole, memory used again in place, and chains of element-wise nodes:
 * random graphs that split, join, slice and reshape between convolutions, against the reference. */
#include "backend_test.h"

enum { MOST = 24 };

typedef struct pool {
    fixture f;
    qn_value *values[MOST];
    int64_t count;
} pool;

static void put(pool *p, qn_value *value)
{
    if (p->count < MOST)
        p->values[p->count++] = value;
}

static int64_t dim(const qn_value *value, int32_t d)
{
    return value->type.dims[d].value;
}

/* Half of the channel counts are whole blocks of every instruction set. */
static int64_t channels(fixture *f)
{
    return pick(f, 2) ? 16 * (1 + pick(f, 3)) : 1 + pick(f, 40);
}

static qn_value *convolve(fixture *f, qn_value *x, int64_t filters, int64_t kernel)
{
    const int64_t w[] = {filters, dim(x, 1), kernel, kernel};
    const int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    qn_value *const in[] = {x, add_weights(f, 4, w)};
    float *data = (float *)in[1]->data->data;
    for (int64_t i = 0; i < qn_tensor_count(in[1]->data); i++)
        data[i] *= 2 / sqrtf((float)(w[1] * kernel * kernel));
    qn_node *node = add_node(f, &qn_op_Conv, 2, in);
    ((qn_window_attrs *)node->attrs)->pads = keep_ints(f, pads, 4);
    return result_of(node);
}

/* ---- Moves ----------------------------------------------------------------------------------- */

static void split(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    const int32_t axis = pick(f, 4) ? 1 : 2;
    const int64_t size = dim(x, axis);
    if (size < 2)
        return;
    const int64_t first = size % 32 == 0 && pick(f, 2) ? size / 2 : 1 + pick(f, size - 1);
    const int64_t parts[] = {first, size - first};
    qn_value *const in[] = {x, add_ints(f, parts, 2)};
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f->graph, &qn_op_Split, "split", 2, 2), QN_OK);
    ((qn_split_attrs *)node->attrs)->axis = axis;
    for (int32_t i = 0; i < 2; i++) {
        qn_value *part;
        assert_int_equal(qn_node_set_input(node, i, in[i]), QN_OK);
        assert_int_equal(qn_value_create(&part, f->graph, "part"), QN_OK);
        qn_node_set_output(node, i, part);
    }
    put(p, result_of(node));
    put(p, node->out[1]);
}

static void slice(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    const int64_t axis = 1 + pick(f, 3), size = dim(x, (int32_t)axis);
    const int64_t start = pick(f, size), end = start + 1 + pick(f, size - start);
    const int64_t step = 1 + pick(f, 2);
    qn_value *const in[] = {x, add_ints(f, &start, 1), add_ints(f, &end, 1), add_ints(f, &axis, 1),
                            add_ints(f, &step, 1)};
    put(p, result_of(add_node(f, &qn_op_Slice, 5, in)));
}

/* One index along an axis. */
static void gather(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    const int64_t axis = pick(f, 4), index = pick(f, dim(x, (int32_t)axis));
    const int64_t given = pick(f, 2) ? index : index - dim(x, (int32_t)axis);
    qn_value *const in[] = {x, add_ints(f, &given, 1)};
    qn_node *node = add_node(f, &qn_op_Gather, 2, in);
    *(int64_t *)node->attrs = axis;
    put(p, result_of(node));
}

static bool joins(const qn_value *a, const qn_value *b, int32_t axis)
{
    for (int32_t d = 0; d < 4; d++) {
        if (d != axis && dim(a, d) != dim(b, d))
            return false;
    }
    return a->type.rank == 4 && b->type.rank == 4;
}

static void join(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    qn_value *in[4] = {x};
    int32_t count = 1;
    const int32_t axis = pick(f, 4) ? 1 : (int32_t)pick(f, 4);
    for (int64_t i = 0; i < p->count && count < 4; i++) {
        if (joins(x, p->values[i], axis) && pick(f, 3))
            in[count++] = p->values[i];
    }
    qn_node *node = add_node(f, &qn_op_Concat, count, in);
    ((qn_concat_attrs *)node->attrs)->axis = axis;
    put(p, result_of(node));
}

/* To other spatial dims and back. */
static void reshape(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    const int64_t flat[] = {dim(x, 0), pick(f, 2) ? dim(x, 1) : -1, dim(x, 2) * dim(x, 3)};
    const int64_t back[] = {dim(x, 0), dim(x, 1), dim(x, 2), dim(x, 3)};
    qn_value *y = apply(f, &qn_op_Reshape, x, add_ints(f, flat, 3));
    if (pick(f, 2))
        y = apply(f, &qn_op_Relu, y, NULL);
    put(p, apply(f, &qn_op_Reshape, y, add_ints(f, back, 4)));
}

static void pad(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    int64_t pads[8] = {0};
    for (int d = 1; d < 4; d++) {
        pads[d] = pick(f, 2) ? pick(f, d == 1 ? 9 : 3) : 0;
        pads[4 + d] = pick(f, 2) ? pick(f, d == 1 ? 9 : 3) : 0;
    }
    qn_value *const in[] = {x, add_ints(f, pads, 8), add_number(f, 0.5)};
    qn_node *node = add_node(f, &qn_op_Pad, pick(f, 3) ? 2 : 3, in);
    ((qn_pad_attrs *)node->attrs)->mode = pick(f, 3) ? QN_PAD_CONSTANT : 1 + pick(f, 3);
    put(p, result_of(node));
}

/* ---- Element-wise ---------------------------------------------------------------------------- */

/* Something that broadcasts to x: constant or computed, in one of the ways that kernels tell
 * apart. */
static qn_value *operand(pool *p, qn_value *x)
{
    fixture *f = &p->f;
    int64_t dims[4];
    for (int64_t i = 0; i < p->count && pick(f, 2); i++) {
        if (p->values[i] != x && joins(x, p->values[i], -1))
            return p->values[i];
    }
    const int64_t kept = pick(f, 16); /* which dims it has */
    for (int32_t d = 0; d < 4; d++)
        dims[d] = kept & (1 << d) ? dim(x, d) : 1;
    const int32_t rank = 1 + (int32_t)pick(f, 4);
    if (pick(f, 2) || f->graph->n_inputs > 5)
        return add_weights(f, rank, dims + 4 - rank);
    return apply(f, &qn_op_Tanh, add_input(f, rank, dims + 4 - rank), NULL);
}

static void compute(pool *p, qn_value *x)
{
    static const qn_op *const unary[] = {&qn_op_Relu, &qn_op_Sigmoid, &qn_op_Swish, &qn_op_Abs,
                                         &qn_op_Neg,  &qn_op_Exp,     &qn_op_Cos,   &qn_op_Tanh};
    static const qn_op *const binary[] = {&qn_op_Add, &qn_op_Sub, &qn_op_Mul,
                                          &qn_op_Max, &qn_op_Min, &qn_op_Add};
    fixture *f = &p->f;
    const int64_t steps = 1 + pick(f, 4);
    for (int64_t i = 0; i < steps; i++) {
        if (pick(f, 2)) {
            x = apply(f, unary[pick(f, (int64_t)QN_COUNT_OF(unary))],
                      apply(f, &qn_op_Tanh, x, NULL), NULL);
            continue;
        }
        const qn_op *op = binary[pick(f, (int64_t)QN_COUNT_OF(binary))];
        qn_value *other = operand(p, x);
        x = pick(f, 2) ? apply(f, op, x, other) : apply(f, op, other, x);
    }
    put(p, x);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void grow(pool *p)
{
    fixture *f = &p->f;
    qn_value *x = p->values[pick(f, 2) ? p->count - 1 : pick(f, p->count)];
    switch (pick(f, 9)) {
    case 0: split(p, x); break;
    case 1: slice(p, x); break;
    case 2: reshape(p, x); break;
    case 3: compute(p, x); break;
    case 4: pad(p, x); break;
    case 5:
    case 6: join(p, x); break;
    case 7: gather(p, x); break;
    default: put(p, convolve(f, x, channels(f), 1 + 2 * pick(f, 2))); break;
    }
}

static double graph_case(uint32_t seed)
{
    pool p = {.f = fixture_begin(seed)};
    fixture *f = &p.f;
    const int64_t dims[] = {1 + pick(f, 3), channels(f), 2 + pick(f, 9), 2 + pick(f, 9)};
    put(&p, add_input(f, 4, dims));
    if (pick(f, 4))
        put(&p, convolve(f, p.values[0], channels(f), 3));
    const int64_t steps = 3 + pick(f, 12);
    for (int64_t i = 0; i < steps && p.count < MOST; i++)
        grow(&p);
    /* The last, and some of the others: outputs must survive what comes after them. */
    for (int64_t i = 1; i < p.count; i++) {
        if (i == p.count - 1 || pick(f, 5) == 0)
            add_output(f, p.values[i]);
    }
    if (f->graph->n_outputs == 0)
        add_output(f, apply(f, &qn_op_Relu, p.values[0], NULL));
    const double worst = compare(f, NULL);
    fixture_end(f);
    return worst;
}

static void test_graphs(void **state)
{
    (void)state;
    run_cases(graph_case, 300, 2e-5);
}

/* ---- Functions ------------------------------------------------------------------------------- */

/* Every element on its own: what is small must be as exact as what is large. */
static void check_function(const qn_op *op, float least, float most)
{
    enum { COUNT = 1001 };
    fixture f = fixture_begin(1);
    const int64_t dims[] = {1, COUNT};
    float x[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = least + (most - least) * (float)i / (float)(COUNT - 1);
    const qn_tensor in = {.dtype = QN_FLOAT32, .rank = 2, .dims = {1, COUNT}, .data = x};
    add_output(&f, apply(&f, op, add_input(&f, 2, dims), NULL));
    outcome plain = run_with(&f, "ref", &in, 1), fast = run_with(&f, NULL, &in, 1);
    const float *a = qn_session_output(fast.session, 0)->data;
    const float *b = qn_session_output(plain.session, 0)->data;
    for (int i = 0; i < COUNT; i++) {
        if (!(fabsf(a[i] - b[i]) <= 1e-5f * fabsf(b[i]) + 1e-7f))
            fail_msg("%s(%g) is %g, not %g", op->name, (double)x[i], (double)a[i], (double)b[i]);
    }
    outcome_end(&plain);
    outcome_end(&fast);
    fixture_end(&f);
}

static void test_functions(void **state)
{
    static const struct {
        const qn_op *op;
        float least, most;
    } list[] = {
        {&qn_op_Abs, -9, 9},           {&qn_op_Ceil, -9, 9},
        {&qn_op_Celu, -20, 9},         {&qn_op_Elu, -20, 9},
        {&qn_op_Erf, -5, 5},           {&qn_op_Exp, -80, 80},
        {&qn_op_Floor, -9, 9},         {&qn_op_Gelu, -5, 9},
        {&qn_op_HardSigmoid, -9, 9},   {&qn_op_HardSwish, -9, 9},
        {&qn_op_LeakyRelu, -9, 9},     {&qn_op_Log, 1e-30f, 9},
        {&qn_op_Mish, -20, 20},        {&qn_op_Neg, -9, 9},
        {&qn_op_Reciprocal, 0.01f, 9}, {&qn_op_Relu, -9, 9},
        {&qn_op_Round, -9, 9},         {&qn_op_Selu, -20, 9},
        {&qn_op_Shrink, -2, 2},        {&qn_op_Sigmoid, -80, 80},
        {&qn_op_Softplus, -30, 30},    {&qn_op_Softsign, -9, 9},
        {&qn_op_Sqrt, 0, 9},           {&qn_op_Swish, -30, 30},
        {&qn_op_Tanh, -20, 20},        {&qn_op_ThresholdedRelu, -9, 9},
        {&qn_op_Tanh, -1e-3f, 1e-3f},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(list); i++)
        check_function(list[i].op, list[i].least, list[i].most);
}

/* Powers by a constant, those with a function of their own and one without. */
static void test_powers(void **state)
{
    const double exponents[] = {-1, 1, 2, 3, 0.5};
    const int64_t dims[] = {5, 33};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(exponents); i++) {
        fixture f = fixture_begin((uint32_t)i);
        qn_value *x = apply(&f, &qn_op_Exp, add_input(&f, 2, dims), NULL);
        add_output(&f, apply(&f, &qn_op_Pow, x, add_number(&f, exponents[i])));
        assert_true(compare(&f, NULL) <= 1e-6);
        fixture_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
