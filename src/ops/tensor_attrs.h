/* Attributes of operators that move elements, for those that look into nodes: passes and
 * backends. */
#ifndef QN_TENSOR_ATTRS_H
#define QN_TENSOR_ATTRS_H

#include "ops/op.h"

typedef struct qn_concat_attrs {
    int64_t axis;
} qn_concat_attrs;

typedef struct qn_split_attrs {
    int64_t axis, num_outputs;
    /* Before opset 13 */
    qn_ints split;
} qn_split_attrs;

typedef struct qn_transpose_attrs {
    /* Absent: reversed */
    qn_ints perm;
} qn_transpose_attrs;

typedef enum qn_depth_mode { QN_DEPTH_DCR, QN_DEPTH_CRD } qn_depth_mode;

/* DepthToSpace and, but for the mode, SpaceToDepth. */
typedef struct qn_depth_attrs {
    int64_t blocksize, mode;
} qn_depth_attrs;

typedef enum qn_pad_mode { QN_PAD_CONSTANT, QN_PAD_REFLECT, QN_PAD_EDGE, QN_PAD_WRAP } qn_pad_mode;

typedef struct qn_pad_attrs {
    int64_t mode;
    /* Before opsets 11 and 2 */
    qn_ints pads, paddings;
    /* Before opset 11 */
    float value;
} qn_pad_attrs;

#endif
