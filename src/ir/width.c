/* The table of widths. */
#include "ir/width.h"

#include <stdio.h>
#include <string.h>

const qn_width qn_widths[QN_WIDTHS] = {
#define QN_WIDTH(BITS, SIGNED, UNSIGNED, OPSET, SUMS, REDUCED, HEADROOM, DEPTH, KERNELS)           \
    [QN_WIDTH_##BITS] = {.index = QN_WIDTH_##BITS,                                                 \
                         .bits = (BITS),                                                           \
                         .signed_type = (SIGNED),                                                  \
                         .unsigned_type = (UNSIGNED),                                              \
                         .opset = (OPSET),                                                         \
                         .sums = (SUMS),                                                           \
                         .reduced = (REDUCED),                                                     \
                         .headroom = (HEADROOM),                                                   \
                         .mask_depth = (DEPTH),                                                    \
                         .kernels = (KERNELS)},
#include "ir/widths.def"
#undef QN_WIDTH
};

const qn_width *qn_width_of_bits(int bits)
{
    for (int i = 0; i < QN_WIDTHS; i++) {
        if (qn_widths[i].bits == bits)
            return &qn_widths[i];
    }
    return NULL;
}

const qn_width *qn_width_of(qn_dtype dtype)
{
    return qn_width_of_bits(qn_dtype_get(dtype)->bits);
}

bool qn_width_is_computed(int bits)
{
    const qn_width *width = qn_width_of_bits(bits);
    return width && width->kernels != QN_UNDEFINED;
}

int qn_width_beyond(int bits)
{
    for (int i = 0; i < QN_WIDTHS; i++) {
        if (qn_widths[i].bits > bits && qn_widths[i].kernels != QN_UNDEFINED)
            return qn_widths[i].bits;
    }
    return 0;
}

void qn_width_list(char *out, size_t size)
{
    int count = 0, written = 0;
    size_t at = 0;
    for (int i = 0; i < QN_WIDTHS; i++)
        count += qn_widths[i].kernels != QN_UNDEFINED;
    out[0] = 0;
    for (int i = 0; i < QN_WIDTHS && at < size; i++) {
        if (qn_widths[i].kernels == QN_UNDEFINED)
            continue;
        const char *before = !written ? "" : written == count - 1 ? " or " : ", ";
        at += (size_t)snprintf(out + at, size - at, "%s%d", before, qn_widths[i].bits);
        written++;
    }
}
