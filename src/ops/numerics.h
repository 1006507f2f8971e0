/* How the integers of a model are computed, where it is not as docs/numerics.md has it for all:
 * facts that change results and that no node of a file can hold. A model imports a domain without
 * operators for each, whose version is the number; tools that strip metadata keep those imports,
 * and engines that do not know them load the file all the same. The metadata repeat it for people;
 * files of before 0.2 have it there alone. */
#ifndef QN_NUMERICS_H
#define QN_NUMERICS_H

#include "ir/qparams.h"

typedef enum qn_numerics {
    /* 1: sums are requantized in fixed point. */
    QN_NUMERICS_FIXED_POINT,
    /* n: tables of functions of 16 bits have 2^n steps and straight lines between; 0: all
     * numbers. */
    QN_NUMERICS_TABLE_BITS,
    /* 1: convolutions of 8-bit numbers round twice. */
    QN_NUMERICS_DOUBLE_ROUNDING,
    QN_NUMERICS_COUNT
} qn_numerics;

enum { QN_TABLE_BITS_MIN = 8, QN_TABLE_BITS_MAX = 12, QN_TABLE_BITS_CHIP = 10 };

/* 0: as everywhere. */
int64_t qn_model_numerics(const qn_model *model, qn_numerics what);
/* Says it in the imports and in the metadata. */
QN_MUST_CHECK qn_status qn_model_set_numerics(qn_model *model, qn_numerics what, int64_t value);
/* The file has just been read: what only one of the two says, both say from here on. */
QN_MUST_CHECK qn_status qn_model_restore_numerics(qn_model *model);
/* The domain of numerics number `what`, for writing. */
const char *qn_numerics_domain(qn_numerics what);
/* How the node's model requantizes. */
qn_requantization qn_node_requantization(const qn_node *node);

#endif
