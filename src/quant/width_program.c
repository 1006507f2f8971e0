/* The program of widths as a multiple-choice knapsack: blocks of bound layers, the Lagrangian
 * bound, and dynamic programming over what the bound leaves open. */
#include "quant/width_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of doubles in different orders differ by less than this share. */
#define SLACK 1e-12

/* Joint choices of one block, and states of the dynamic program in all. */
enum { MOST_CHOICES = 1 << 16, MOST_STATES = 1 << 22 };

/* A joint choice of the layers of a block: `code` has the width of the block's layer i as the digit
 * of weight widths^i. */
typedef struct choice {
    double cost, loss;
    size_t code;
} choice;

/* Layers that bonds join, directly or through others. */
typedef struct block {
    /* [n_layers]; bonds of the program that concern them: [n_bonds] */
    size_t *layers, *bonds;
    size_t n_layers, n_bonds;
    /* [n_choices] that no other beats in cost and loss; cost rises and loss falls. */
    choice *choices;
    size_t n_choices;
    /* The choice with the least loss + price * cost, and the one taken so far. */
    size_t base, taken;
} block;

/* An edge of the lower convex hull of a block's choices. */
typedef struct hull_step {
    size_t block, from, to;
    /* What a unit of cost gains; it falls along the hull. */
    double slope;
} hull_step;

/* A choice for each of the first blocks, as differences from their bases. */
typedef struct state {
    double cost, loss;
    size_t parent, choice;
} state;

typedef struct knapsack {
    qn_context *ctx;
    const qn_width_program *program;
    qn_arena arena;
    block *blocks;
    size_t n_blocks;
    bool is_optimal;
    /* The budget, with room for the order of sums. */
    double budget;
    /* The multiplier of the budget: what a unit of cost must gain to be paid. */
    double price;
    /* The sums of all blocks' bases, and of the best choices so far. */
    double base_cost, base_loss, best_loss;
    /* Blocks with several choices that the bound leaves open: [n_open], and the least differences
     * of cost that those from i on can reach: [n_open + 1]. */
    size_t *open;
    size_t n_open;
    double *least_cost;
    /* All states, and where each open block's begin: [n_open + 2] */
    state *states;
    size_t n_states, capacity;
    size_t *level;
} knapsack;

/* ---- Blocks ---------------------------------------------------------------------------------- */

static size_t root_of(size_t *parent, size_t layer)
{
    while (parent[layer] != layer)
        layer = parent[layer] = parent[parent[layer]];
    return layer;
}

/* Counts of layers and bonds by block; block_of is [layers]. */
static void find_blocks(knapsack *k, size_t *parent, size_t *block_of)
{
    const qn_width_program *p = k->program;
    for (size_t l = 0; l < p->layers; l++)
        parent[l] = l;
    for (size_t i = 0; i < p->n_bonds; i++)
        parent[root_of(parent, p->bonds[i].a)] = root_of(parent, p->bonds[i].b);
    for (size_t l = 0; l < p->layers; l++)
        block_of[l] = SIZE_MAX;
    for (size_t l = 0; l < p->layers; l++) {
        const size_t root = root_of(parent, l);
        if (block_of[root] == SIZE_MAX)
            block_of[root] = k->n_blocks++;
        block_of[l] = block_of[root];
        k->blocks[block_of[l]].n_layers++;
    }
    for (size_t i = 0; i < p->n_bonds; i++)
        k->blocks[block_of[p->bonds[i].a]].n_bonds++;
}

static qn_status fill_blocks(knapsack *k, const size_t *block_of)
{
    const qn_width_program *p = k->program;
    for (size_t i = 0; i < k->n_blocks; i++) {
        block *b = &k->blocks[i];
        b->layers = qn_arena_array(&k->arena, b->n_layers, sizeof *b->layers);
        b->bonds = qn_arena_array(&k->arena, b->n_bonds, sizeof *b->bonds);
        QN_TRY_ALLOC(k->ctx, b->layers);
        QN_TRY_ALLOC(k->ctx, b->bonds);
        b->n_layers = b->n_bonds = 0;
    }
    for (size_t l = 0; l < p->layers; l++) {
        block *b = &k->blocks[block_of[l]];
        b->layers[b->n_layers++] = l;
    }
    for (size_t i = 0; i < p->n_bonds; i++) {
        block *b = &k->blocks[block_of[p->bonds[i].a]];
        b->bonds[b->n_bonds++] = i;
    }
    return QN_OK;
}

static qn_status make_blocks(knapsack *k)
{
    const size_t layers = k->program->layers;
    size_t *parent = qn_arena_array(&k->arena, layers, sizeof *parent);
    size_t *block_of = qn_arena_array(&k->arena, layers, sizeof *block_of);
    k->blocks = qn_arena_array(&k->arena, layers, sizeof *k->blocks);
    QN_TRY_ALLOC(k->ctx, parent);
    QN_TRY_ALLOC(k->ctx, block_of);
    QN_TRY_ALLOC(k->ctx, k->blocks);
    memset(k->blocks, 0, layers * sizeof *k->blocks);
    find_blocks(k, parent, block_of);
    return fill_blocks(k, block_of);
}

/* ---- Choices --------------------------------------------------------------------------------- */

static bool bonds_hold(const knapsack *k, const block *b, const size_t *width)
{
    for (size_t i = 0; i < b->n_bonds; i++) {
        const qn_width_bond *bond = &k->program->bonds[b->bonds[i]];
        if (bond->at_most ? width[bond->a] > width[bond->b] : width[bond->a] != width[bond->b])
            return false;
    }
    return true;
}

static choice choice_of(const knapsack *k, const block *b, const size_t *width)
{
    const qn_width_program *p = k->program;
    choice c = {0, 0, 0};
    for (size_t i = b->n_layers; i-- > 0;) {
        const size_t at = b->layers[i] * p->widths + width[b->layers[i]];
        c.cost += p->cost[at];
        c.loss += p->loss[at];
        c.code = c.code * p->widths + width[b->layers[i]];
    }
    return c;
}

/* The next combination of widths of the block's layers; false: that was the last. */
static bool next_combination(const block *b, size_t *width, size_t widths)
{
    for (size_t i = 0; i < b->n_layers; i++) {
        if (++width[b->layers[i]] < widths)
            return true;
        width[b->layers[i]] = 0;
    }
    return false;
}

/* All layers of the block alike, which every bond allows. */
static void list_uniform(const knapsack *k, block *b, size_t *width)
{
    for (size_t w = 0; w < k->program->widths; w++) {
        for (size_t i = 0; i < b->n_layers; i++)
            width[b->layers[i]] = w;
        b->choices[b->n_choices] = choice_of(k, b, width);
        b->choices[b->n_choices].code = w;
        b->n_choices += isfinite(b->choices[b->n_choices].cost);
    }
}

static void list_combinations(const knapsack *k, block *b, size_t *width)
{
    for (size_t i = 0; i < b->n_layers; i++)
        width[b->layers[i]] = 0;
    do {
        const choice c = choice_of(k, b, width);
        if (isfinite(c.cost) && bonds_hold(k, b, width))
            b->choices[b->n_choices++] = c;
    } while (next_combination(b, width, k->program->widths));
}

static int by_cost(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

static void drop_beaten(block *b)
{
    size_t kept = 0;
    qsort(b->choices, b->n_choices, sizeof *b->choices, by_cost);
    for (size_t c = 0; c < b->n_choices; c++) {
        if (!kept || b->choices[c].loss < b->choices[kept - 1].loss)
            b->choices[kept++] = b->choices[c];
    }
    b->n_choices = kept;
}

/* As many combinations as the block's layers have, or MOST_CHOICES + 1 if there are more. */
static size_t combinations_of(const block *b, size_t widths)
{
    size_t count = 1;
    for (size_t i = 0; i < b->n_layers && count <= MOST_CHOICES; i++)
        count *= widths;
    return QN_MIN(count, (size_t)MOST_CHOICES + 1);
}

static bool is_uniform(const block *b, size_t widths)
{
    return combinations_of(b, widths) > MOST_CHOICES;
}

/* Layers that must all be alike have no more choices than there are widths. */
static bool is_all_equal(const knapsack *k, const block *b)
{
    for (size_t i = 0; i < b->n_bonds; i++) {
        if (k->program->bonds[b->bonds[i]].at_most)
            return false;
    }
    return true;
}

static qn_status list_choices(knapsack *k)
{
    const size_t widths = k->program->widths;
    size_t *width = qn_arena_array(&k->arena, k->program->layers, sizeof *width);
    QN_TRY_ALLOC(k->ctx, width);
    for (size_t i = 0; i < k->n_blocks; i++) {
        block *b = &k->blocks[i];
        const bool uniform = is_uniform(b, widths);
        b->choices = qn_arena_array(&k->arena, uniform ? widths : combinations_of(b, widths),
                                    sizeof *b->choices);
        QN_TRY_ALLOC(k->ctx, b->choices);
        if (uniform)
            list_uniform(k, b, width);
        else
            list_combinations(k, b, width);
        k->is_optimal &= !uniform || is_all_equal(k, b);
        drop_beaten(b);
    }
    return QN_OK;
}

/* ---- The Lagrangian bound -------------------------------------------------------------------- */

static double difference(const block *b, size_t from, size_t to)
{
    return b->choices[to].cost - b->choices[from].cost;
}

/* The steepest way down from a corner of the hull; false: it is the last corner. */
static bool next_corner(const knapsack *k, hull_step *step)
{
    const block *b = &k->blocks[step->block];
    step->slope = 0;
    for (size_t c = step->from + 1; c < b->n_choices; c++) {
        const double gain = b->choices[step->from].loss - b->choices[c].loss;
        const double slope = gain / difference(b, step->from, c);
        if (slope >= step->slope) {
            step->slope = slope;
            step->to = c;
        }
    }
    return step->slope > 0;
}

static int by_slope(const void *a, const void *b)
{
    const hull_step *x = a, *y = b;
    if (x->slope != y->slope)
        return x->slope > y->slope ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static qn_status list_steps(hull_step **steps, size_t *count, knapsack *k)
{
    size_t most = 0;
    for (size_t i = 0; i < k->n_blocks; i++)
        most += k->blocks[i].n_choices;
    *steps = qn_arena_array(&k->arena, most, sizeof **steps);
    QN_TRY_ALLOC(k->ctx, *steps);
    for (size_t i = 0; i < k->n_blocks; i++) {
        hull_step step = {.block = i};
        for (; next_corner(k, &step); step.from = step.to)
            (*steps)[(*count)++] = step;
    }
    qsort(*steps, *count, sizeof **steps, by_slope);
    return QN_OK;
}

/* Starts at the cheapest choices and takes the steps that fit, the steepest first. The first that
 * does not fit gives the price; later ones that fit make the first answer better. */
static qn_status choose_price(knapsack *k)
{
    hull_step *steps = NULL;
    size_t count = 0;
    double cost = 0;
    QN_TRY(list_steps(&steps, &count, k));
    k->best_loss = 0;
    for (size_t i = 0; i < k->n_blocks; i++) {
        cost += k->blocks[i].choices[0].cost;
        k->best_loss += k->blocks[i].choices[0].loss;
    }
    if (cost > k->budget)
        k->best_loss = INFINITY;
    for (size_t i = 0; i < count; i++) {
        block *b = &k->blocks[steps[i].block];
        const double more = difference(b, steps[i].from, steps[i].to);
        const bool fits = cost + more <= k->budget;
        if (!fits && k->price == 0)
            k->price = steps[i].slope;
        if (!fits || b->taken != steps[i].from)
            continue;
        cost += more;
        k->best_loss -= steps[i].slope * more;
        b->taken = steps[i].to;
    }
    return QN_OK;
}

static double priced(const knapsack *k, const block *b, size_t c)
{
    return b->choices[c].loss + k->price * b->choices[c].cost;
}

static void choose_bases(knapsack *k)
{
    for (size_t i = 0; i < k->n_blocks; i++) {
        block *b = &k->blocks[i];
        for (size_t c = 1; c < b->n_choices; c++) {
            if (priced(k, b, c) < priced(k, b, b->base))
                b->base = c;
        }
        k->base_cost += b->choices[b->base].cost;
        k->base_loss += b->choices[b->base].loss;
    }
}

/* The least loss of all answers that differ from the bases so far by `cost` and `loss`, whatever
 * the blocks to come choose. */
static double bound(const knapsack *k, double cost, double loss)
{
    return k->base_loss + loss + k->price * (k->base_cost + cost - k->budget);
}

static bool is_worth(const knapsack *k, double cost, double loss)
{
    return bound(k, cost, loss) < k->best_loss - SLACK * fabs(k->best_loss);
}

static double cost_from_base(const block *b, size_t c)
{
    return difference(b, b->base, c);
}

static double loss_from_base(const block *b, size_t c)
{
    return b->choices[c].loss - b->choices[b->base].loss;
}

static bool is_open(const knapsack *k, const block *b)
{
    for (size_t c = 0; c < b->n_choices; c++) {
        if (c != b->base && is_worth(k, cost_from_base(b, c), loss_from_base(b, c)))
            return true;
    }
    return false;
}

static qn_status find_open(knapsack *k)
{
    k->open = qn_arena_array(&k->arena, k->n_blocks, sizeof *k->open);
    k->least_cost = qn_arena_array(&k->arena, k->n_blocks + 1, sizeof *k->least_cost);
    k->level = qn_arena_array(&k->arena, k->n_blocks + 2, sizeof *k->level);
    QN_TRY_ALLOC(k->ctx, k->open);
    QN_TRY_ALLOC(k->ctx, k->least_cost);
    QN_TRY_ALLOC(k->ctx, k->level);
    for (size_t i = 0; i < k->n_blocks; i++) {
        if (is_open(k, &k->blocks[i]))
            k->open[k->n_open++] = i;
    }
    k->least_cost[k->n_open] = 0;
    for (size_t i = k->n_open; i-- > 0;)
        k->least_cost[i] = k->least_cost[i + 1] + cost_from_base(&k->blocks[k->open[i]], 0);
    return QN_OK;
}

/* ---- Dynamic programming --------------------------------------------------------------------- */

static int by_state_cost(const void *a, const void *b)
{
    const state *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->choice > y->choice) - (x->choice < y->choice);
}

/* Every state of the blocks before, with every choice of open block i. */
static qn_status extend_states(knapsack *k, size_t i)
{
    const block *b = &k->blocks[k->open[i]];
    for (size_t s = k->level[i]; s < k->level[i + 1] && k->n_states <= MOST_STATES; s++) {
        QN_TRY_GROW(k->ctx, k->states, k->capacity, k->n_states + b->n_choices);
        for (size_t c = 0; c < b->n_choices; c++) {
            const double cost = k->states[s].cost + cost_from_base(b, c);
            const double loss = k->states[s].loss + loss_from_base(b, c);
            if (k->base_cost + cost + k->least_cost[i + 1] <= k->budget && is_worth(k, cost, loss))
                k->states[k->n_states++] = (state){cost, loss, s, c};
        }
    }
    return QN_OK;
}

/* Keeps those states from `first` on that no other beats in cost and loss. */
static void drop_beaten_states(knapsack *k, size_t first)
{
    size_t kept = first;
    if (k->n_states > first)
        qsort(k->states + first, k->n_states - first, sizeof *k->states, by_state_cost);
    for (size_t s = first; s < k->n_states; s++) {
        if (kept == first || k->states[s].loss < k->states[kept - 1].loss)
            k->states[kept++] = k->states[s];
    }
    k->n_states = kept;
}

/* The choices that lead to state s, which is behind open block i; the bases behind it. */
static void take_state(knapsack *k, size_t s, size_t i)
{
    for (size_t n = 0; n < k->n_blocks; n++)
        k->blocks[n].taken = k->blocks[n].base;
    for (; i-- > 0; s = k->states[s].parent)
        k->blocks[k->open[i]].taken = k->states[s].choice;
}

/* A state that fits with the bases of all blocks to come is an answer. */
static void keep_best(knapsack *k, size_t i)
{
    for (size_t s = k->level[i]; s < k->n_states; s++) {
        const double loss = k->base_loss + k->states[s].loss;
        if (k->base_cost + k->states[s].cost > k->budget || loss >= k->best_loss)
            continue;
        k->best_loss = loss;
        take_state(k, s, i);
    }
}

static qn_status run_states(knapsack *k)
{
    QN_TRY_GROW(k->ctx, k->states, k->capacity, 1);
    k->states[k->n_states++] = (state){0, 0, 0, 0};
    k->level[0] = 0;
    keep_best(k, 0);
    for (size_t i = 0; i < k->n_open; i++) {
        k->level[i + 1] = k->n_states;
        QN_TRY(extend_states(k, i));
        drop_beaten_states(k, k->level[i + 1]);
        keep_best(k, i + 1);
        if (k->n_states > MOST_STATES) {
            k->is_optimal = false;
            break;
        }
    }
    return QN_OK;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static qn_status solve(knapsack *k)
{
    QN_TRY(make_blocks(k));
    QN_TRY(list_choices(k));
    for (size_t i = 0; i < k->n_blocks; i++) {
        if (!k->blocks[i].n_choices)
            return qn_fail(k->ctx, QN_E_INVALID,
                           "widths of the layers: the rules between layers leave none for some: "
                           "allow more widths");
    }
    QN_TRY(choose_price(k));
    if (isinf(k->best_loss))
        return qn_fail(k->ctx, QN_E_INVALID,
                       "widths of the layers: the narrowest cost more than the budget of %g",
                       k->program->budget);
    choose_bases(k);
    QN_TRY(find_open(k));
    return run_states(k);
}

static void answer(size_t *width, qn_width_result *result, const knapsack *k)
{
    const qn_width_program *p = k->program;
    *result = (qn_width_result){.is_optimal = k->is_optimal};
    for (size_t i = 0; i < k->n_blocks; i++) {
        const block *b = &k->blocks[i];
        size_t code = b->choices[b->taken].code;
        for (size_t n = 0; n < b->n_layers; n++) {
            const size_t l = b->layers[n];
            width[l] = code % p->widths;
            code = is_uniform(b, p->widths) ? code : code / p->widths;
            result->loss += p->loss[l * p->widths + width[l]];
            result->cost += p->cost[l * p->widths + width[l]];
        }
    }
}

qn_status qn_width_program_solve(size_t *width, qn_width_result *result, qn_context *ctx,
                                 const qn_width_program *program)
{
    knapsack k = {.ctx = ctx, .program = program, .is_optimal = true};
    *result = (qn_width_result){.is_optimal = true};
    if (!program->layers)
        return QN_OK;
    k.budget = program->budget + SLACK * fabs(program->budget);
    qn_arena_init(&k.arena, &ctx->allocator);
    qn_status status = solve(&k);
    if (status == QN_OK)
        answer(width, result, &k);
    qn_free(ctx, k.states);
    qn_arena_free(&k.arena);
    return status;
}
