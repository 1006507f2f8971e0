/* The table of the instruction set that the including file is compiled for. */
#include "backend/cpu/float/arg_kernels.h"
#include "backend/cpu/float/attention_kernels.h"
#include "backend/cpu/float/elementwise/cast_kernels.h"
#include "backend/cpu/float/elementwise/chain_kernels.h"
#include "backend/cpu/float/elementwise/rows_kernels.h"
#if defined(__AVX2__)
#include "backend/cpu/float/conv/depthwise_kernels.h"
#endif
#include "backend/cpu/float/peak_kernels.h"
#include "backend/cpu/float/reduction_kernels.h"
#if defined(__AVX2__)
#include "backend/cpu/float/conv/pointwise_kernels.h"
#endif
#include "backend/cpu/copy/transpose_kernels.h"
#include "backend/cpu/float/recurrent_kernels.h"
#include "backend/cpu/float/softmax_norm_kernels.h"
#if defined(__AVX2__)
#include "backend/cpu/float/conv/winograd_kernels.h"
#endif

const qn_kernels VEC_NAME(qn_kernels) = {
    .width = VEC_WIDTH,
    .map = maps,
    .transpose = transpose,
#if defined(__AVX2__) /* below it oneDNN's are better */
    .wino = &wino_kernels,
    .pointwise = &pointwise_kernels,
    .depthwise = depthwise_kernels,
#endif
    .cast = casts,
    .negate = bool_not,
    .is_nan = f32_is_nan,
    .rows = row_kernels,
    .is_inf = infinities,
    .softmax_rows = softmax_rows,
    .attend = attend,
    .product = product,
    .gates = gates,
    .softmax_lanes = softmax_lanes,
    .norm_rows = norm_rows,
    .reduction = reductions,
    .center_row = center_row,
    .center_lanes = center_lanes,
    .arg = args,
    .peak = peak,
};
