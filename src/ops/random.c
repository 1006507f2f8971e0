/* Random numbers: the generator of numpy, whose seeds ONNX's tests use. */
#include "ops/random.h"

#include <math.h>

/* Matsumoto and Nishimura's MT19937: N words of state, a twist that mixes words M apart. */
enum { N = 624, M = 397 };

void qn_random_seed(qn_random *random, uint32_t seed)
{
    random->state[0] = seed;
    for (uint32_t i = 1; i < N; i++) {
        const uint32_t last = random->state[i - 1];
        random->state[i] = UINT32_C(1812433253) * (last ^ (last >> 30)) + i;
    }
    random->at = N;
    random->has_normal = false;
}

static void twist(qn_random *random)
{
    uint32_t *state = random->state;
    for (int i = 0; i < N; i++) {
        const uint32_t y =
            (state[i] & UINT32_C(0x80000000)) | (state[(i + 1) % N] & UINT32_C(0x7fffffff));
        state[i] = state[(i + M) % N] ^ (y >> 1) ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    random->at = 0;
}

static uint32_t next_word(qn_random *random)
{
    if (random->at == N)
        twist(random);
    uint32_t y = random->state[random->at++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

double qn_random_uniform(qn_random *random)
{
    const uint32_t high = next_word(random) >> 5, low = next_word(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* Marsaglia's polar method: a point in the unit disc gives two numbers. */
double qn_random_normal(qn_random *random)
{
    double x, y, square;
    if (random->has_normal) {
        random->has_normal = false;
        return random->normal;
    }
    do {
        x = 2 * qn_random_uniform(random) - 1;
        y = 2 * qn_random_uniform(random) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = sqrt(-2 * log(square) / square);
    random->normal = factor * x;
    random->has_normal = true;
    return factor * y;
}
