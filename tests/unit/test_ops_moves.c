/* Kernels that choose and copy elements, where they take rows and parts instead of single ones. */
#include "ops_test.h"

#define TEST(name) static void name(void **state)

enum { LONG = 400, LANES = 3, CHOSEN = 7 };

/* The place of the best that has not been taken; of equal ones the first. NaN is the largest. */
static int64_t best_of(const qn_tensor *x, int64_t lane, bool largest, bool *taken)
{
    int64_t best = -1;
    double most = 0;
    for (int64_t d = 0; d < LONG; d++) {
        const double number = qn_tensor_f64(x, d * LANES + lane);
        const double rank = (isnan(number) ? (double)INFINITY : number) * (largest ? 1 : -1);
        if (taken[d] || (best >= 0 && rank <= most))
            continue;
        best = d;
        most = rank;
    }
    taken[best] = true;
    return best;
}

static void topk_case(bench *b, qn_dtype dtype, bool largest)
{
    double values[LONG * LANES];
    for (int64_t i = 0; i < LONG * LANES; i++)
        values[i] = i * 7919 % 101 == 5 && dtype == QN_FLOAT32 ? (double)NAN : i * 7919 % 101 - 50;
    bench_node(b, &qn_op_TopK, 2, 2);
    ATTR(b, int64_t, "axis", 13) = 0;
    ATTR(b, int64_t, "largest", 13) = largest;
    const qn_tensor *x = numbers(b, dtype, DIMS(LONG, LANES), values);
    bench_feed(b, 0, x);
    bench_constant(b, 1, numbers(b, QN_INT64, DIMS(1), VALUES(CHOSEN)));
    bench_run(b);
    for (int64_t lane = 0; lane < LANES; lane++) {
        bool taken[LONG] = {false};
        for (int64_t d = 0; d < CHOSEN; d++)
            assert_int_equal(((const int64_t *)b->out[1]->data)[d * LANES + lane],
                             best_of(x, lane, largest, taken));
    }
}

TEST(the_few_largest)
{
    topk_case(*state, QN_FLOAT32, true);
}

TEST(the_few_smallest)
{
    topk_case(*state, QN_FLOAT32, false);
}

TEST(the_few_largest_integers)
{
    topk_case(*state, QN_INT64, true);
}

/* Rows that are cut at one end and grow at the other, shorter than their borders. */
TEST(borders_longer_than_rows)
{
    bench *b = *state;
    bench_node(b, &qn_op_Pad, 2, 1);
    ATTR(b, int64_t, "mode", 21) = 3; /* wrap */
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 3), VALUES(1, 2, 3)));
    bench_constant(b, 1, numbers(b, QN_INT64, DIMS(4), VALUES(0, -1, 1, 5)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2, 7), VALUES(2, 3, 1, 2, 3, 1, 2, 2, 3, 1, 2, 3, 1, 2));
}

/* Going down from before the first element is going down from that: other than Python has it. */
TEST(slices_down_from_outside)
{
    bench *b = *state;
    bench_node(b, &qn_op_Slice, 5, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6)));
    bench_constant(b, 1, numbers(b, QN_INT64, DIMS(2), VALUES(9, -5)));
    bench_constant(b, 2, numbers(b, QN_INT64, DIMS(2), VALUES(-9, -9)));
    bench_constant(b, 3, numbers(b, QN_INT64, DIMS(2), VALUES(0, 1)));
    bench_constant(b, 4, numbers(b, QN_INT64, DIMS(2), VALUES(-1, -2)));
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2, 1), VALUES(4, 1));
}

/* ---- Elements at indices --------------------------------------------------------------------- */

enum { D0 = 4, D1 = 5, D2 = 6, I0 = 3, I1 = 4, I2 = 5, ALL = D0 * D1 * D2, CHOICES = I0 * I1 * I2 };

/* Where the index of element i points, in data [D0, D1, D2] from indices [I0, I1, I2]. */
static int64_t place_of(int64_t i, int axis, int64_t index)
{
    const int64_t dims[] = {D0, D1, D2};
    int64_t at[] = {i / (I1 * I2), i / I2 % I1, i % I2};
    at[axis] = index < 0 ? index + dims[axis] : index;
    return (at[0] * D1 + at[1]) * D2 + at[2];
}

/* Indices smaller than the data in every dim, half of them from the end. */
static void elements_case(int axis, qn_dtype dtype, qn_dtype index_type)
{
    static const int64_t dims[] = {D0, D1, D2};
    double data[ALL], indices[CHOICES], updates[CHOICES], wanted[ALL], gathered[CHOICES];
    for (int64_t i = 0; i < ALL; i++)
        wanted[i] = data[i] = (double)(i % 120);
    for (int64_t i = 0; i < CHOICES; i++) {
        const int64_t index = i * 7919 % (2 * dims[axis]) - dims[axis];
        indices[i] = (double)index;
        updates[i] = (double)(i + 1);
        gathered[i] = data[place_of(i, axis, index)];
        wanted[place_of(i, axis, index)] = updates[i];
    }
    for (int k = 0; k < 2; k++) {
        void *state;
        bench_setup(&state);
        bench *b = state;
        bench_node(b, k ? &qn_op_ScatterElements : &qn_op_GatherElements, k ? 3 : 2, 1);
        ATTR(b, int64_t, "axis", 18) = k ? axis : axis - 3;
        bench_feed(b, 0, numbers(b, dtype, DIMS(D0, D1, D2), data));
        bench_feed(b, 1, numbers(b, index_type, DIMS(I0, I1, I2), indices));
        if (k)
            bench_feed(b, 2, numbers(b, dtype, DIMS(I0, I1, I2), updates));
        bench_run(b);
        if (k)
            expect(b, 0, dtype, DIMS(D0, D1, D2), wanted);
        else
            expect(b, 0, dtype, DIMS(I0, I1, I2), gathered);
        bench_teardown(&state);
    }
}

TEST(elements_along_every_axis)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++) {
        elements_case(axis, QN_FLOAT32, QN_INT64);
        elements_case(axis, QN_INT8, QN_INT32);
        elements_case(axis, QN_INT16, QN_INT64);
        elements_case(axis, QN_FLOAT64, QN_INT32);
    }
}

/* Rows that are walked through in parts. */
TEST(elements_of_long_rows)
{
    enum { ROWS = 3, COLUMNS = 700, WANTED = 600 };
    static double data[ROWS * COLUMNS], indices[ROWS * WANTED], wanted[ROWS * WANTED];
    (void)state;
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        data[i] = (double)i;
    for (int axis = 0; axis < 2; axis++) {
        void *own;
        bench_setup(&own);
        bench *b = own;
        for (int64_t i = 0; i < ROWS * WANTED; i++) {
            const int64_t at = i * 7919 % (axis ? COLUMNS : ROWS);
            indices[i] = (double)at;
            wanted[i] = data[axis ? i / WANTED * COLUMNS + at : at * COLUMNS + i % WANTED];
        }
        bench_node(b, &qn_op_GatherElements, 2, 1);
        ATTR(b, int64_t, "axis", 13) = axis;
        bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(ROWS, COLUMNS), data));
        bench_feed(b, 1, numbers(b, QN_INT64, DIMS(ROWS, WANTED), indices));
        bench_run(b);
        expect(b, 0, QN_FLOAT32, DIMS(ROWS, WANTED), wanted);
        bench_teardown(&own);
    }
}

/* An index just outside fails on both sides, and nothing is read there. */
TEST(elements_outside)
{
    static const double bad[] = {3, -4, -9e18};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(bad); i++) {
        void *own;
        bench_setup(&own);
        bench *b = own;
        bench_node(b, &qn_op_GatherElements, 2, 1);
        bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(3), VALUES(1, 2, 3)));
        bench_feed(b, 1, numbers(b, QN_INT64, DIMS(2), VALUES(-3, bad[i])));
        const qn_graph_args args = {b->fed, NULL};
        assert_int_equal(qn_graph_infer(b->model->graph), QN_OK);
        assert_int_equal(qn_graph_eval(b->out, b->ctx, &b->arena, b->model->graph, &args),
                         QN_E_INVALID);
        assert_non_null(strstr(qn_context_error(b->ctx), "is outside [-3, 3)"));
        bench_teardown(&own);
    }
}

/* Slices that meet: the last one stays, or all are added. */
TEST(slices_at_tuples)
{
    (void)state;
    for (int add = 0; add < 2; add++) {
        void *own;
        bench_setup(&own);
        bench *b = own;
        bench_node(b, &qn_op_ScatterND, 3, 1);
        ATTR(b, int64_t, "reduction", 18) = add;
        bench_feed(
            b, 0,
            numbers(b, QN_FLOAT32, DIMS(3, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)));
        bench_feed(b, 1, numbers(b, QN_INT64, DIMS(3, 2), VALUES(0, 1, -1, 0, 0, -1)));
        bench_feed(b, 2, numbers(b, QN_FLOAT32, DIMS(3, 2), VALUES(20, 21, 22, 23, 24, 25)));
        bench_run(b);
        expect(b, 0, QN_FLOAT32, DIMS(3, 2, 2),
               add ? VALUES(1, 2, 47, 50, 5, 6, 7, 8, 31, 33, 11, 12)
                   : VALUES(1, 2, 24, 25, 5, 6, 7, 8, 22, 23, 11, 12));
        bench_teardown(&own);
    }
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

enum { BOXES = 60, CLASSES = 3, MOST_BOXES = 9 };

/* Boxes of side 10 in rows of ten, five apart: neighbours overlap by a third. */
static bool overlap_much(int64_t a, int64_t b)
{
    const double dx = fabs((double)(a % 10 - b % 10)) * 5, dy = fabs((double)(a / 10 - b / 10)) * 5;
    const double common = fmax(0, 10 - dx) * fmax(0, 10 - dy);
    return common / (200 - common) > 0.3;
}

/* The best of those left again and again, of equal ones the first, as one would do it by hand. */
static int64_t choose_boxes(double *out, const double *scores, int64_t class_at, double threshold)
{
    bool gone[BOXES] = {false};
    int64_t chosen[MOST_BOXES], count = 0;
    while (count < MOST_BOXES) {
        int64_t best = -1;
        for (int64_t i = 0; i < BOXES; i++) {
            if (!gone[i] && scores[i] > threshold && (best < 0 || scores[i] > scores[best]))
                best = i;
        }
        if (best < 0)
            break;
        gone[best] = true;
        bool keep = true;
        for (int64_t k = 0; k < count; k++)
            keep = keep && !overlap_much(best, chosen[k]);
        if (!keep)
            continue;
        out[3 * count] = 0;
        out[3 * count + 1] = (double)class_at;
        out[3 * count + 2] = (double)best;
        chosen[count++] = best;
    }
    return count;
}

TEST(best_boxes_of_each_class)
{
    bench *b = *state;
    double boxes[BOXES * 4], scores[CLASSES * BOXES], wanted[CLASSES * MOST_BOXES * 3];
    int64_t total = 0;
    for (int64_t i = 0; i < BOXES; i++) {
        const double x = (double)(i % 10) * 5, y = (double)(i / 10) * 5;
        const double corners[] = {y, x, y + 10, x + 10};
        memcpy(boxes + 4 * i, corners, sizeof corners);
    }
    for (int64_t i = 0; i < CLASSES * BOXES; i++)
        scores[i] = (double)(i * 7919 % 23) / 32; /* many are equal */
    for (int64_t c = 0; c < CLASSES; c++)
        total += choose_boxes(wanted + 3 * total, scores + c * BOXES, c, 0.25);
    bench_node(b, &qn_op_NonMaxSuppression, 5, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, BOXES, 4), boxes));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, CLASSES, BOXES), scores));
    bench_feed(b, 2, numbers(b, QN_INT64, SCALAR, VALUES(MOST_BOXES)));
    bench_feed(b, 3, numbers(b, QN_FLOAT32, SCALAR, VALUES(0.3)));
    bench_feed(b, 4, numbers(b, QN_FLOAT32, SCALAR, VALUES(0.25)));
    bench_run(b);
    assert_true(total > CLASSES);
    expect(b, 0, QN_INT64, DIMS(total, 3), wanted);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        T(the_few_largest),
        T(the_few_smallest),
        T(the_few_largest_integers),
        T(borders_longer_than_rows),
        T(slices_down_from_outside),
        cmocka_unit_test(elements_along_every_axis),
        cmocka_unit_test(elements_of_long_rows),
        cmocka_unit_test(elements_outside),
        cmocka_unit_test(slices_at_tuples),
        T(best_boxes_of_each_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
