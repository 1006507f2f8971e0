/* Fingerprints of bytes, equal on every machine. */
#include "base/fingerprint.h"

#include <stdio.h>
#include <string.h>

static const uint64_t PRIME_A = UINT64_C(0x9e3779b97f4a7c15),
                      PRIME_B = UINT64_C(0xd6e8feb86659fd93);

/* Eight bytes as a little-endian number, wherever they lie. */
static uint64_t word_at(const uint8_t *at, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

static uint64_t full_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    const union {
        uint16_t number;
        uint8_t first;
    } order = {1};
    return order.first ? word : word_at(at, sizeof word);
}

/* Every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * PRIME_B;
    x = (x ^ x >> 29) * PRIME_A;
    return x ^ x >> 32;
}

static void take_word(qn_fingerprint *print, uint64_t word)
{
    print->word[0] = mix(print->word[0] + word * PRIME_A + 1);
    print->word[1] = mix(print->word[1] ^ (word + PRIME_B));
}

/* Four lanes at once: their multiplications do not wait for each other. */
enum { LANES = 4, STRIPE = 8 * LANES };

static size_t take_stripes(qn_fingerprint *print, const uint8_t *at, size_t size)
{
    uint64_t lane[LANES] = {print->word[0], print->word[1], ~print->word[0], ~print->word[1]};
    size_t done = 0;
    for (; size - done >= STRIPE; done += STRIPE) {
        for (size_t l = 0; l < LANES; l++) {
            const uint64_t x = lane[l] ^ full_word(at + done + 8 * l);
            lane[l] = (x << 23 | x >> 41) * PRIME_A + l + 1;
        }
    }
    for (size_t l = 0; l < LANES; l++)
        take_word(print, lane[l]);
    return done;
}

void qn_fingerprint_bytes(qn_fingerprint *print, const void *data, size_t size)
{
    const uint8_t *at = data;
    size_t done = 0;
    take_word(print, size);
    if (size >= STRIPE)
        done = take_stripes(print, at, size);
    for (; size - done >= 8; done += 8)
        take_word(print, full_word(at + done));
    if (done < size)
        take_word(print, word_at(at + done, size - done));
}

void qn_fingerprint_int(qn_fingerprint *print, int64_t value)
{
    take_word(print, (uint64_t)value);
}

void qn_fingerprint_text(qn_fingerprint *print, const char *text)
{
    if (text)
        qn_fingerprint_bytes(print, text, strlen(text));
    else
        take_word(print, UINT64_MAX);
}

void qn_fingerprint_add(qn_fingerprint *sum, qn_fingerprint other)
{
    sum->word[0] += other.word[0];
    sum->word[1] += other.word[1] + (sum->word[0] < other.word[0]);
}

const char *qn_fingerprint_format(char out[QN_FINGERPRINT_TEXT], qn_fingerprint print)
{
    snprintf(out, QN_FINGERPRINT_TEXT, "%016llx%016llx", (unsigned long long)print.word[1],
             (unsigned long long)print.word[0]);
    return out;
}

bool qn_fingerprint_parse(qn_fingerprint *out, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    qn_fingerprint print = {{0, 0}};
    for (size_t i = 0; i < QN_FINGERPRINT_TEXT - 1; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        uint64_t *word = &print.word[i < 16];
        *word = *word << 4 | (uint64_t)(digit - digits);
    }
    if (text[QN_FINGERPRINT_TEXT - 1])
        return false;
    *out = print;
    return true;
}
