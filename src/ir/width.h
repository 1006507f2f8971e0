/* Widths of quantized numbers: a table, widths.def. What depends on the number of bits is a column
 * of it. */
#ifndef QN_WIDTH_H
#define QN_WIDTH_H

#include "ir/dtype.h"

/* Places in the table, for tables that have a column per width. */
typedef enum qn_width_index {
#define QN_WIDTH(BITS, ...) QN_WIDTH_##BITS,
#include "ir/widths.def"
#undef QN_WIDTH
    QN_WIDTHS
} qn_width_index;

/* The columns are explained in widths.def. */
typedef struct qn_width {
    qn_width_index index;
    int bits;
    qn_dtype signed_type, unsigned_type;
    int opset;
    qn_dtype sums;
    int64_t reduced;
    float headroom;
    float mask_depth;
    qn_dtype kernels;
} qn_width;

extern const qn_width qn_widths[QN_WIDTHS];

/* The bits of what nobody asks another width for. */
enum { QN_WIDTH_STANDARD = 8 };

/* NULL: there is no such width. */
const qn_width *qn_width_of_bits(int bits);
/* The width that all numbers of the type have; NULL for types of more than 16 bits. */
const qn_width *qn_width_of(qn_dtype dtype);
/* The engine has kernels for it. */
bool qn_width_is_computed(int bits);
/* The next greater one of these; 0: there is none. */
int qn_width_beyond(int bits);
/* "8 or 16": those that the engine has kernels for; always terminated. */
void qn_width_list(char *out, size_t size);

/* The type that stores numbers of the width. */
static inline qn_dtype qn_width_type(const qn_width *width, bool is_signed)
{
    return is_signed ? width->signed_type : width->unsigned_type;
}
/* Least and greatest integer; symmetric limits are -greatest and greatest. */
static inline int64_t qn_width_greatest(const qn_width *width, bool is_signed)
{
    return (INT64_C(1) << (width->bits - is_signed)) - 1;
}
static inline int64_t qn_width_least(const qn_width *width, bool is_signed)
{
    return is_signed ? -qn_width_greatest(width, true) - 1 : 0;
}
/* Numbers that there are: the size of a function's table. */
static inline int64_t qn_width_count(const qn_width *width)
{
    return INT64_C(1) << width->bits;
}
/* Finer than what calibration resolves: nothing of a range is cut off, and other data may go
 * beyond it. */
static inline bool qn_width_is_fine(const qn_width *width)
{
    return width->headroom > 1;
}

#endif
