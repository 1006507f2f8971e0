/* The program of widths beside trying all combinations, and a published example: ResNet-18 with
 * 4 and 8 bits under budgets of size, bit operations and latency. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "quant/width_program.h"

/* ---- The published example ------------------------------------------------------------------- */

enum { LAYERS = 19 };

static const double traces[LAYERS] = {0.06857826, 0.03162379, 0.03298575, 0.01205663, 0.02222431,
                                      0.00596336, 0.06931772, 0.00807129, 0.00372905, 0.00530698,
                                      0.00209011, 0.00737569, 0.00210454, 0.00151197, 0.00158041,
                                      0.00078146, 0.00451841, 0.00098745, 0.00072944};
static const double error8[LAYERS] = {0.0235, 0.0125, 0.0102, 0.0082, 0.0145, 0.0344, 0.0023,
                                      0.0287, 0.0148, 0.0333, 0.0682, 0.0027, 0.0448, 0.0336,
                                      0.0576, 0.1130, 0.0102, 0.0947, 0.0532};
static const double error4[LAYERS] = {6.7430,  3.9691,  3.3281,  2.6796,  4.7277, 10.5966, 0.6827,
                                      9.0942,  4.8857,  10.7599, 21.7546, 0.8603, 14.5324, 10.9651,
                                      18.7706, 36.4044, 3.1572,  29.6994, 17.4016};
static const double parameters[LAYERS] = {36864,   36864,   36864,  36864,   73728,  147456, 8192,
                                          147456,  147456,  294912, 589824,  32768,  589824, 589824,
                                          1179648, 2359296, 131072, 2359296, 2359296};
static const double latency4[LAYERS] = {0.21094404, 0.21092674, 0.21104113, 0.21086851, 0.13642465,
                                        0.19167506, 0.02532183, 0.19148203, 0.19142914, 0.11395316,
                                        0.20556011, 0.01917474, 0.20566918, 0.20566509, 0.13185102,
                                        0.22287786, 0.01790088, 0.22304611, 0.22286099};
static const double latency8[LAYERS] = {0.36189111, 0.36211718, 0.31141909, 0.30454471, 0.19184896,
                                        0.38948934, 0.0334169,  0.38904905, 0.3892859,  0.19134735,
                                        0.34307431, 0.02802354, 0.34313329, 0.34310756, 0.21117103,
                                        0.37376585, 0.02896843, 0.37397187, 0.37405185};
/* A shortcut has the width of the layer whose result it is added to. */
static const qn_width_bond shortcuts[] = {{6, 4, false}, {11, 9, false}, {16, 14, false}};

static double macs(size_t layer)
{
    const bool is_strided = layer == 4 || layer == 9 || layer == 14;
    const bool is_shortcut = layer == 6 || layer == 11 || layer == 16;
    return is_shortcut ? 6422528 : is_strided ? 57802752 : 115605504;
}

typedef enum cost_kind { SIZE, OPERATIONS, LATENCY } cost_kind;

static double cost_at(cost_kind measure, size_t layer, int bits)
{
    if (measure == SIZE)
        return bits * parameters[layer];
    if (measure == OPERATIONS)
        return macs(layer) / (bits == 8 ? 16 : 64);
    return bits == 8 ? latency8[layer] : latency4[layer];
}

static const struct {
    cost_kind measure;
    double ratio;
    const char *bits;
    double objective;
} published[] = {
    {SIZE, 0.25, "8888888888888844444", -1.189414},
    {SIZE, 0.5, "8888888888888884844", -1.233207},
    {SIZE, 0.75, "8888888888888488884", -1.274273},
    {OPERATIONS, 0.25, "8884848444444444444", -0.847289},
    {OPERATIONS, 0.5, "8884888848884444444", -1.092024},
    {OPERATIONS, 0.75, "8888888848888484884", -1.227748},
    {LATENCY, 0.25, "8884848444444444444", -0.847289},
    {LATENCY, 0.5, "8888848848884484844", -1.105039},
    {LATENCY, 0.75, "8888888848888484884", -1.227748},
};

static qn_context *context(void)
{
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    return ctx;
}

static void the_published_example_is_reproduced(void **state)
{
    qn_context *ctx = context();
    (void)state;
    for (size_t row = 0; row < QN_COUNT_OF(published); row++) {
        double loss[LAYERS * 2], cost[LAYERS * 2], least = 0, most = 0;
        char bits[LAYERS + 1] = "";
        size_t width[LAYERS];
        qn_width_result result;
        for (size_t l = 0; l < LAYERS; l++) {
            loss[2 * l] = 0;
            loss[2 * l + 1] = traces[l] * (error8[l] - error4[l]);
            least += cost[2 * l] = cost_at(published[row].measure, l, 4);
            most += cost[2 * l + 1] = cost_at(published[row].measure, l, 8);
        }
        const qn_width_program program = {LAYERS,
                                          2,
                                          loss,
                                          cost,
                                          shortcuts,
                                          QN_COUNT_OF(shortcuts),
                                          least + published[row].ratio * (most - least)};
        assert_int_equal(qn_width_program_solve(width, &result, ctx, &program), QN_OK);
        for (size_t l = 0; l < LAYERS; l++)
            bits[l] = width[l] ? '8' : '4';
        assert_string_equal(bits, published[row].bits);
        assert_true(fabs(result.loss - published[row].objective) < 1e-6);
        assert_true(result.is_optimal && result.cost <= program.budget);
    }
    qn_context_free(ctx);
}

/* ---- Trying all combinations ----------------------------------------------------------------- */

enum { FEW = 7, WIDTHS = 3, ROUNDS = 3000 };

static uint32_t random_to(uint32_t *state, uint32_t limit)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % limit;
}

static bool holds(const qn_width_program *p, const size_t *width)
{
    for (size_t i = 0; i < p->n_bonds; i++) {
        const size_t a = width[p->bonds[i].a], b = width[p->bonds[i].b];
        if (p->bonds[i].at_most ? a > b : a != b)
            return false;
    }
    return true;
}

static double loss_with(const qn_width_program *p, const size_t *width)
{
    double loss = 0, cost = 0;
    for (size_t l = 0; l < p->layers; l++) {
        loss += p->loss[l * p->widths + width[l]];
        cost += p->cost[l * p->widths + width[l]];
    }
    return cost <= p->budget && holds(p, width) ? loss : INFINITY;
}

static double least_loss(const qn_width_program *p)
{
    size_t width[FEW] = {0};
    double least = INFINITY;
    for (;;) {
        const double loss = loss_with(p, width);
        size_t l = 0;
        least = fmin(least, loss);
        while (l < p->layers && ++width[l] == p->widths)
            width[l++] = 0;
        if (l == p->layers)
            return least;
    }
}

/* Small integers, so that ties are common and sums exact; wider is neither always dearer nor always
 * better. */
static void fill(double *values, uint32_t *state, bool is_cost)
{
    for (size_t i = 0; i < (size_t)FEW * WIDTHS; i++) {
        values[i] = random_to(state, 12);
        if (is_cost && random_to(state, 12) == 0)
            values[i] = INFINITY;
    }
}

static void answers_are_the_best_of_all(void **state)
{
    qn_context *ctx = context();
    uint32_t seed = 26;
    int impossible = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        double loss[FEW * WIDTHS], cost[FEW * WIDTHS];
        qn_width_bond bonds[4];
        size_t width[FEW];
        qn_width_result result;
        fill(loss, &seed, false);
        fill(cost, &seed, true);
        for (size_t i = 0; i < 4; i++)
            bonds[i] = (qn_width_bond){random_to(&seed, FEW), random_to(&seed, FEW),
                                       random_to(&seed, 2) == 0};
        const qn_width_program program = {
            FEW, WIDTHS, loss, cost, bonds, random_to(&seed, 5), random_to(&seed, 70)};
        const double least = least_loss(&program);
        const qn_status status = qn_width_program_solve(width, &result, ctx, &program);
        assert_int_equal(status, isinf(least) ? QN_E_INVALID : QN_OK);
        impossible += status != QN_OK;
        if (status == QN_OK) {
            assert_true(result.is_optimal && result.loss == least);
            assert_true(loss_with(&program, width) == least);
        }
    }
    /* Both ends of the program are met. */
    assert_true(impossible > ROUNDS / 20 && impossible < ROUNDS / 2);
    qn_context_free(ctx);
}

/* ---- Large programs -------------------------------------------------------------------------- */

enum { MANY = 400, BITS = 4, AT_MOST = 6 };

/* As many layers as large networks have, each with errors that fall fourfold with a bit. */
static void large_programs_end_soon(void **state)
{
    static double loss[MANY * BITS], cost[MANY * BITS];
    static qn_width_bond bonds[MANY / 4];
    static size_t width[MANY];
    qn_context *ctx = context();
    uint32_t seed = 4;
    double all = 0;
    qn_width_result result;
    (void)state;
    for (size_t l = 0; l < MANY; l++) {
        const double size = 1000 + random_to(&seed, 100000);
        const double harm = 1e-6 * (1 + random_to(&seed, 100000));
        for (size_t w = 0; w < BITS; w++) {
            const double bits = (double)(2 + 2 * w);
            loss[l * BITS + w] = harm * exp2(-2 * bits);
            cost[l * BITS + w] = size * bits;
        }
        all += size * 8;
    }
    for (size_t i = 0; i < MANY / 4; i++)
        bonds[i] = (qn_width_bond){random_to(&seed, MANY), random_to(&seed, MANY), i < AT_MOST};
    const qn_width_program program = {MANY, BITS, loss, cost, bonds, MANY / 4, all * 0.6};
    assert_int_equal(qn_width_program_solve(width, &result, ctx, &program), QN_OK);
    assert_true(result.is_optimal && holds(&program, width));
    /* The budget is used but for less than the smallest step of the largest layer. */
    assert_true(result.cost <= program.budget && result.cost > program.budget * 0.99);
    qn_context_free(ctx);
}

/* Bonds that join too many layers to try all: they get one width, and the result says so. */
static void large_blocks_are_alike(void **state)
{
    enum { CHAIN = 30 };
    double loss[CHAIN * 2], cost[CHAIN * 2];
    qn_width_bond bonds[CHAIN - 1];
    size_t width[CHAIN];
    qn_context *ctx = context();
    qn_width_result result;
    (void)state;
    for (size_t l = 0; l < CHAIN; l++) {
        loss[2 * l] = cost[2 * l + 1] = 2;
        loss[2 * l + 1] = cost[2 * l] = 1;
        if (l)
            bonds[l - 1] = (qn_width_bond){l - 1, l, true};
    }
    const qn_width_program program = {CHAIN, 2, loss, cost, bonds, CHAIN - 1, CHAIN * 1.5};
    assert_int_equal(qn_width_program_solve(width, &result, ctx, &program), QN_OK);
    assert_true(holds(&program, width) && result.cost <= program.budget && !result.is_optimal);
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_example_is_reproduced),
        cmocka_unit_test(answers_are_the_best_of_all),
        cmocka_unit_test(large_programs_end_soon),
        cmocka_unit_test(large_blocks_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
