/* What passes recognize in a file's spelling of a function is that function only while its
 * constants leave the shape of the input as it is. Each spelling is built with every one of its
 * constants in turn shaped so that it makes the result larger: the passes must not change what is
 * computed. */
#include "pass_test.h"

static const struct shape {
    int32_t rank;
    int64_t dims[6];
} shapes[] = {
    {0, {0}},                /* fits every input */
    {5, {1, 1, 1, 1, 1}},    /* one dimension more */
    {4, {3, 1, 1, 1}},       /* repeats the only sample */
    {6, {1, 2, 1, 1, 1, 1}}, /* both */
};

typedef struct speller {
    fixture f;
    /* Made so far */
    int constants;
    /* The one of them that has the shape */
    int special;
    /* The others are single numbers */
    const struct shape *shape;
} speller;

static qn_value *constant(speller *s, double x)
{
    const struct shape *shape = s->constants++ == s->special ? s->shape : &shapes[0];
    const qn_type type = qn_type_tensor(QN_FLOAT32, shape->rank, shape->dims);
    qn_tensor *tensor;
    qn_value *value;
    assert_int_equal(qn_tensor_create(&tensor, s->f.ctx, s->f.graph->arena, &type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        qn_store_f64(tensor->data, QN_FLOAT32, i, &x, 1);
    assert_int_equal(qn_value_constant(&value, s->f.graph, "c", tensor), QN_OK);
    return value;
}

static qn_value *sample(speller *s)
{
    const int64_t dims[] = {1, 4, 5, 6};
    return input(&s->f, "x", 4, dims);
}

static qn_value *binary(speller *s, const qn_op *op, qn_value *x, double c)
{
    return apply(&s->f, op, 2, x, constant(s, c));
}

/* ---- Spellings ------------------------------------------------------------------------------- */

static qn_value *swish(speller *s)
{
    qn_value *x = sample(s), *scaled = binary(s, &qn_op_Mul, x, 1.7);
    return apply(&s->f, &qn_op_Mul, 2, x, apply(&s->f, &qn_op_Sigmoid, 1, scaled));
}

static qn_value *clipped(speller *s, qn_value *x)
{
    qn_value *shifted = binary(s, &qn_op_Add, x, 3);
    return apply(&s->f, &qn_op_Clip, 3, shifted, number(&s->f, 0), number(&s->f, 6));
}

static qn_value *hard_sigmoid(speller *s)
{
    return binary(s, &qn_op_Div, clipped(s, sample(s)), 6);
}

static qn_value *hard_swish(speller *s)
{
    qn_value *x = sample(s);
    return binary(s, &qn_op_Div, apply(&s->f, &qn_op_Mul, 2, x, clipped(s, x)), 6);
}

static qn_value *hard_swish_of_gate(speller *s)
{
    qn_value *x = sample(s);
    return apply(&s->f, &qn_op_Mul, 2, x, binary(s, &qn_op_Div, clipped(s, x), 6));
}

static qn_value *gelu_of(speller *s, qn_value *x, qn_value *inner, const qn_op *op)
{
    qn_value *gate = binary(s, &qn_op_Add, apply(&s->f, op, 1, inner), 1);
    return binary(s, &qn_op_Mul, apply(&s->f, &qn_op_Mul, 2, x, gate), 0.5);
}

static qn_value *gelu(speller *s)
{
    qn_value *x = sample(s);
    return gelu_of(s, x, binary(s, &qn_op_Div, x, sqrt(2)), &qn_op_Erf);
}

static qn_value *gelu_tanh(speller *s, qn_value *x, qn_value *cube)
{
    qn_value *sum = apply(&s->f, &qn_op_Add, 2, x, binary(s, &qn_op_Mul, cube, 0.044715));
    return gelu_of(s, x, binary(s, &qn_op_Mul, sum, 0.7978845608), &qn_op_Tanh);
}

static qn_value *gelu_cube(speller *s)
{
    qn_value *x = sample(s);
    return gelu_tanh(s, x, binary(s, &qn_op_Pow, x, 3));
}

static qn_value *gelu_square(speller *s)
{
    qn_value *x = sample(s);
    return gelu_tanh(s, x, apply(&s->f, &qn_op_Mul, 2, x, binary(s, &qn_op_Pow, x, 2)));
}

static qn_value *mean(speller *s, qn_value *x)
{
    const int64_t last = -1;
    return apply(&s->f, &qn_op_ReduceMean, 2, x, ints(&s->f, &last, 1));
}

static qn_value *centred(speller *s, qn_value **variance)
{
    qn_value *x = sample(s), *d = apply(&s->f, &qn_op_Sub, 2, x, mean(s, x));
    *variance = binary(s, &qn_op_Add, mean(s, binary(s, &qn_op_Pow, d, 2)), 1e-5);
    return d;
}

static qn_value *layer_norm(speller *s)
{
    qn_value *variance, *d = centred(s, &variance);
    return apply(&s->f, &qn_op_Div, 2, d, binary(s, &qn_op_Pow, variance, 0.5));
}

static qn_value *layer_norm_inverse(speller *s)
{
    qn_value *variance, *d = centred(s, &variance);
    qn_value *root = apply(&s->f, &qn_op_Sqrt, 1, variance);
    return apply(&s->f, &qn_op_Mul, 2, d, apply(&s->f, &qn_op_Div, 2, constant(s, 1), root));
}

/* The last two axes change places. */
static qn_value *turn(speller *s, qn_value *x)
{
    const int64_t perm[] = {0, 1, 3, 2};
    qn_value *y = apply(&s->f, &qn_op_Transpose, 1, x);
    qn_transpose_attrs *a = y->producer->attrs;
    assert_int_equal(qn_ints_copy(&a->perm, s->f.graph, perm, 4), QN_OK);
    return y;
}

static qn_value *attention(speller *s)
{
    const int64_t dims[] = {1, 2, 5, 6};
    qn_value *q = input(&s->f, "q", 4, dims), *k = input(&s->f, "k", 4, dims);
    qn_value *scores = apply(&s->f, &qn_op_MatMul, 2, binary(s, &qn_op_Mul, q, 0.8),
                             binary(s, &qn_op_Mul, turn(s, k), 0.7));
    qn_value *weight = apply(&s->f, &qn_op_Softmax, 1, binary(s, &qn_op_Div, scores, 2));
    return apply(&s->f, &qn_op_MatMul, 2, weight, input(&s->f, "v", 4, dims));
}

static qn_value *identities(speller *s)
{
    qn_value *y = binary(s, &qn_op_Mul, binary(s, &qn_op_Add, sample(s), 0), 1);
    return apply(&s->f, &qn_op_Exp, 1, y);
}

static qn_value *convolution(speller *s)
{
    const int64_t dims[] = {6, 4, 3, 3};
    qn_value *y = apply(&s->f, &qn_op_Conv, 2, sample(s), weights(&s->f, 4, dims));
    return binary(s, &qn_op_Add, binary(s, &qn_op_Mul, y, 2), 0.25);
}

static qn_value *between_transposes(speller *s)
{
    qn_value *y = binary(s, &qn_op_Mul, turn(s, sample(s)), 2);
    const int64_t shape[] = {-1, 4, 6, 5};
    y = apply(&s->f, &qn_op_Reshape, 2, y, ints(&s->f, shape, 4));
    return turn(s, y);
}

static const struct spelling {
    qn_value *(*spell)(speller *s);
    const char *pass;
} spellings[] = {
    {swish, "fuse-activations"},
    {hard_sigmoid, "fuse-activations"},
    {hard_swish, "fuse-activations"},
    {hard_swish_of_gate, "fuse-activations"},
    {gelu, "fuse-activations"},
    {gelu_cube, "fuse-activations"},
    {gelu_square, "fuse-activations"},
    {layer_norm, "fuse-norms"},
    {layer_norm_inverse, "fuse-norms"},
    {attention, "fuse-attention"},
    {identities, "remove-identities"},
    {convolution, "fold-mul-add"},
    {between_transposes, "cancel-transposes"},
};

/* ---- Checking -------------------------------------------------------------------------------- */

static void assert_same_shape(const qn_tensor *a, const qn_tensor *b)
{
    assert_int_equal(a->rank, b->rank);
    for (int32_t d = 0; d < a->rank; d++)
        assert_int_equal(a->dims[d], b->dims[d]);
}

/* Returns how many constants the spelling has. */
static int check(const struct spelling *spelling, int special, const struct shape *shape)
{
    int64_t changes[64];
    qn_arena arena;
    const qn_pass_options options = {.purpose = purpose_of(spelling->pass)};
    speller s = {.f = begin(), .special = special, .shape = shape};
    qn_arena_init(&arena, &s.f.ctx->allocator);
    assert_int_equal(qn_graph_add_output(s.f.graph, spelling->spell(&s)), QN_OK);
    if (qn_graph_infer(s.f.graph) != QN_OK)
        fail_msg("%s", qn_context_error(s.f.ctx));
    const qn_tensor *before = evaluate(&s.f, &arena, s.f.graph);
    if (qn_passes_run(s.f.model, &options, changes) != QN_OK)
        fail_msg("%s", qn_context_error(s.f.ctx));
    if (shape == &shapes[0] && changes[pass_index(spelling->pass)] == 0)
        fail_msg("%s knows spelling %d no more", spelling->pass, (int)(spelling - spellings));
    const qn_tensor *after = evaluate(&s.f, &arena, s.f.graph);
    assert_same_shape(before, after);
    assert_close(before, after);
    qn_arena_free(&arena);
    qn_model_free(s.f.model);
    qn_context_free(s.f.ctx);
    return s.constants;
}

static void keeps_what_constants_enlarge(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(spellings); i++) {
        const int constants = check(&spellings[i], 0, &shapes[0]);
        for (size_t k = 1; k < QN_COUNT_OF(shapes); k++) {
            for (int special = 0; special < constants; special++)
                check(&spellings[i], special, &shapes[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_what_constants_enlarge)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
