/* Attention against the reference: masks of numbers and of booleans that broadcast any way or end
 * before the last keys, windows, causal attention, bounded scores, heads that share keys. */
#include "backend_test.h"

typedef struct shape {
    int64_t batch, heads, shared, queries, keys, size, value_size;
    /* [batch, length, heads * size] instead of [batch, heads, length, size] */
    bool flat;
} shape;

static shape random_shape(fixture *f)
{
    shape s = {.batch = 1 + pick(f, 2), .shared = 1 + (pick(f, 3) == 0), .flat = pick(f, 2)};
    s.heads = s.shared * (1 + pick(f, 3));
    s.queries = 1 + pick(f, pick(f, 2) ? 5 : 40);
    s.keys = 1 + pick(f, pick(f, 2) ? 8 : 70);
    s.size = 1 + pick(f, 40);
    s.value_size = 1 + pick(f, 40);
    return s;
}

static qn_value *add_part(fixture *f, const shape *s, int64_t heads, int64_t length, int64_t size)
{
    const int64_t four[] = {s->batch, heads, length, size};
    const int64_t three[] = {s->batch, length, heads * size};
    return s->flat ? add_input(f, 3, three) : add_input(f, 4, four);
}

/* Numbers from outside, or booleans made of them; now and then a query sees nothing. */
static qn_value *add_mask(fixture *f, const shape *s)
{
    const int64_t own = pick(f, 4) || s->keys < 3 ? s->keys : 2 + pick(f, s->keys - 2);
    const int64_t dims[] = {pick(f, 2) ? s->batch : 1, pick(f, 2) ? s->heads : 1,
                            pick(f, 2) ? s->queries : 1, pick(f, 5) ? own : 1};
    const int32_t rank = 1 + (int32_t)pick(f, 4);
    qn_value *numbers = add_input(f, rank, dims + 4 - rank);
    return pick(f, 2) ? numbers : apply(f, &qn_op_Greater, numbers, add_number(f, 0.3));
}

static double attention_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const shape s = random_shape(&f);
    qn_value *in[] = {add_part(&f, &s, s.heads, s.queries, s.size),
                      add_part(&f, &s, s.heads / s.shared, s.keys, s.size),
                      add_part(&f, &s, s.heads / s.shared, s.keys, s.value_size), NULL};
    const bool masked = pick(&f, 3) > 0;
    if (masked)
        in[3] = add_mask(&f, &s);
    qn_node *node = add_node(&f, &qn_op_Attention, masked ? 4 : 3, in);
    qn_attention_attrs *a = node->attrs;
    a->q_num_heads = s.flat ? s.heads : QN_ABSENT;
    a->kv_num_heads = s.flat ? s.heads / s.shared : QN_ABSENT;
    a->is_causal = pick(&f, 3) == 0;
    a->left_window_size = pick(&f, 3) ? -1 : pick(&f, 9);
    a->right_window_size = pick(&f, 3) ? -1 : pick(&f, 9);
    a->scale = pick(&f, 2) ? 0 : 0.7f;
    a->softcap = pick(&f, 4) ? 0 : 1.5f;
    add_output(&f, result_of(node));
    const double worst = compare(&f, "attention");
    fixture_end(&f);
    return worst;
}

static void test_attention(void **state)
{
    (void)state;
    run_cases(attention_case, 400, 1e-5);
}

/* Rows that are masked completely have no softmax: what stands behind it makes them a number. */
static double guard_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 3), 1 + pick(&f, 9), 1 + pick(&f, 60)};
    qn_value *mask = add_weights(&f, 3, dims);
    float *numbers = (float *)mask->data->data;
    for (int64_t i = 0; i < qn_tensor_count(mask->data); i++)
        numbers[i] = i / dims[2] % 3 == 0 || numbers[i] > 0.5f ? -INFINITY : 0;
    qn_node *node = add_node(&f, &qn_op_Softmax, 1,
                             (qn_value *[]){apply(&f, &qn_op_Add, add_input(&f, 3, dims), mask)});
    ((qn_softmax_attrs *)node->attrs)->axis = -1;
    qn_value *y = result_of(node);
    qn_value *const in[] = {apply(&f, &qn_op_IsNaN, y, NULL), add_number(&f, 0.25), y};
    add_output(&f, result_of(add_node(&f, &qn_op_Where, 3, in)));
    if (pick(&f, 4) == 0) /* then the nodes stay apart */
        add_output(&f, y);
    const double worst = compare(&f, "softmax");
    fixture_end(&f);
    return worst;
}

static void test_guard(void **state)
{
    (void)state;
    run_cases(guard_case, 40, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_guard)};
    return RUN_TESTS_OF("cpu", tests);
}
