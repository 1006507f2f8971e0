/* Matrices of bytes and of 16-bit numbers transposed: rows become columns. */
#ifndef QN_CPU_Q_TRANSPOSE_KERNELS_H
#define QN_CPU_Q_TRANSPOSE_KERNELS_H

#include "backend/cpu/simd/vec_quantized.h"

enum { TRANSPOSE_TILE = 16 };

#if defined(__SSE2__)
/* 16 by 16 bytes: four rounds in which row i meets row i + 8, each doubling the bytes in place. */
Q_INLINE void transpose_rounds(__m128i *a)
{
    __m128i b[TRANSPOSE_TILE];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 8; i++) {
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        }
        memcpy(a, b, sizeof b);
    }
}

static void transpose_tile(uint8_t *y, const uint8_t *x, int64_t y_step, int64_t x_step)
{
    __m128i a[TRANSPOSE_TILE];
    for (int i = 0; i < TRANSPOSE_TILE; i++)
        a[i] = _mm_loadu_si128((const __m128i *)(const void *)(x + i * x_step));
    transpose_rounds(a);
    for (int i = 0; i < TRANSPOSE_TILE; i++)
        _mm_storeu_si128((__m128i *)(void *)(y + i * y_step), a[i]);
}

/* Fewer rows than a tile has, columns side by side: they are stored as if they had 16 bytes each,
 * from the first one on, up to the last that have room for it. Returns how many columns are
 * done. */
static int64_t transpose_few(uint8_t *y, const uint8_t *x, int64_t x_step, int64_t rows,
                             int64_t columns)
{
    const int64_t whole = (columns * rows - TRANSPOSE_TILE) / rows + 1;
    int64_t c = 0;
    for (; c + TRANSPOSE_TILE <= columns && c + TRANSPOSE_TILE <= whole; c += TRANSPOSE_TILE) {
        __m128i a[TRANSPOSE_TILE];
        for (int i = 0; i < TRANSPOSE_TILE; i++)
            a[i] = i < rows ? _mm_loadu_si128((const __m128i *)(const void *)(x + i * x_step + c))
                            : _mm_setzero_si128();
        transpose_rounds(a);
        for (int i = 0; i < TRANSPOSE_TILE; i++)
            _mm_storeu_si128((__m128i *)(void *)(y + (c + i) * rows), a[i]);
    }
    return c;
}
#else
static void transpose_tile(uint8_t *y, const uint8_t *x, int64_t y_step, int64_t x_step)
{
    for (int r = 0; r < TRANSPOSE_TILE; r++) {
        for (int c = 0; c < TRANSPOSE_TILE; c++)
            y[c * y_step + r] = x[r * x_step + c];
    }
}

static int64_t transpose_few(uint8_t *y, const uint8_t *x, int64_t x_step, int64_t rows,
                             int64_t columns)
{
    (void)y, (void)x, (void)x_step, (void)rows, (void)columns;
    return 0;
}
#endif

/* Few channels of an image, side by side. */
static void transpose_three(uint8_t *y, const uint8_t *x, int64_t x_step, int64_t columns)
{
    const uint8_t *a = x, *b = x + x_step, *c = x + 2 * x_step;
    for (int64_t i = 0; i < columns; i++) {
        y[3 * i] = a[i];
        y[3 * i + 1] = b[i];
        y[3 * i + 2] = c[i];
    }
}

static void transpose_uint8(uint8_t *y, const uint8_t *x, int64_t y_step, int64_t x_step,
                            int64_t rows, int64_t columns)
{
    if (rows == 3 && y_step == 3) {
        transpose_three(y, x, x_step, columns);
        return;
    }
    const int64_t done = rows < TRANSPOSE_TILE && y_step == rows && columns > TRANSPOSE_TILE
                             ? transpose_few(y, x, x_step, rows, columns)
                             : 0;
    for (int64_t r = 0; r < rows; r += TRANSPOSE_TILE) {
        const int64_t height = rows - r < TRANSPOSE_TILE ? rows - r : TRANSPOSE_TILE;
        for (int64_t c = done; c < columns; c += TRANSPOSE_TILE) {
            const int64_t width = columns - c < TRANSPOSE_TILE ? columns - c : TRANSPOSE_TILE;
            const uint8_t *from = x + r * x_step + c;
            uint8_t *to = y + c * y_step + r;
            if (height == TRANSPOSE_TILE && width == TRANSPOSE_TILE) {
                transpose_tile(to, from, y_step, x_step);
                continue;
            }
            for (int64_t j = 0; j < width; j++) {
                for (int64_t i = 0; i < height; i++)
                    to[j * y_step + i] = from[i * x_step + j];
            }
        }
    }
}

static void transpose_uint16(uint16_t *y, const uint16_t *x, int64_t y_step, int64_t x_step,
                             int64_t rows, int64_t columns)
{
    for (int64_t c = 0; c < columns; c += TRANSPOSE_TILE) {
        const int64_t last = columns - c < TRANSPOSE_TILE ? columns : c + TRANSPOSE_TILE;
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t k = c; k < last; k++)
                y[k * y_step + r] = x[r * x_step + k];
        }
    }
}

#endif
