/* Sizes of convolutions and pools whose shapes are known, with 2 or 3 spatial dims: one dim counts
 * as height 1, which lies in memory the same way. */
#ifndef QN_CPU_GEOMETRY_H
#define QN_CPU_GEOMETRY_H

#include "run/backend.h"

enum { QN_SPATIAL = 3 };

typedef struct qn_geometry {
    /* Spatial: 2 or 3. */
    int32_t rank;
    /* The sizes of the input. */
    int64_t samples, channels;
    /* Filters: channels of the output. */
    int64_t filters, groups;
    int64_t in[QN_SPATIAL], out[QN_SPATIAL];
    int64_t kernel[QN_SPATIAL], stride[QN_SPATIAL], dilation[QN_SPATIAL];
    int64_t pad_begin[QN_SPATIAL], pad_end[QN_SPATIAL];
} qn_geometry;

/* The geometry of a float32 Conv or ConvTranspose; false where something is not known, empty or
 * unusual. Weights and bias must be constants. */
bool qn_geometry_conv(qn_geometry *out, const qn_builder *builder, const qn_node *node);
/* The same, with weights and a bias that may be computed. */
bool qn_geometry_conv_any(qn_geometry *out, const qn_builder *builder, const qn_node *node);
/* The geometry of a QLinearConv or QLinearConvTranspose with constant weights. */
bool qn_geometry_q_conv(qn_geometry *out, const qn_claim *claim);
/* The geometry of a MaxPool, AveragePool or global pool of any type, or a QLinearAveragePool. */
bool qn_geometry_pool(qn_geometry *out, const qn_claim *claim);

/* How threads share own convolutions: true by filters, false by places of all samples. A thread
 * finds what it wrote in its own cache, so a rule of shapes alone keeps parts the same from step to
 * step. */
bool qn_split_filters(const qn_geometry *g, int threads);

#endif
