/* Windows that slide over the spatial dimensions: the geometry of convolutions and pools. */
#ifndef QN_WINDOW_H
#define QN_WINDOW_H

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"

enum { QN_MAX_SPATIAL = QN_MAX_RANK - 2 };

/* Attributes with every default filled in. Dims of tensors [N, C, spatial...]. */
typedef struct qn_window {
    /* Spatial */
    int32_t rank;
    int64_t kernel[QN_MAX_SPATIAL], stride[QN_MAX_SPATIAL], dilation[QN_MAX_SPATIAL];
    int64_t pad_begin[QN_MAX_SPATIAL], pad_end[QN_MAX_SPATIAL];
    qn_dim in[QN_MAX_SPATIAL], out[QN_MAX_SPATIAL];
    /* What is wrong, when a function below returns false */
    char problem[128];
} qn_window;

/* The window of a convolution or pool over input dims in[rank]. `kernel` NULL: kernel_shape has it.
 * Unknown input dims give unknown output dims and pads of 0 where they depend on them. */
bool qn_window_resolve(qn_window *out, const qn_window_attrs *attrs, int32_t rank, const qn_dim *in,
                       const int64_t *kernel);
/* The same for ConvTranspose, whose output is the larger side. */
bool qn_window_resolve_transposed(qn_window *out, const qn_window_attrs *attrs, int32_t rank,
                                  const qn_dim *in, const int64_t *kernel);

/* Product of the kernel's, the input's and the output's dims (known ones). */
int64_t qn_window_kernel_size(const qn_window *w);
int64_t qn_window_in_size(const qn_window *w);
int64_t qn_window_out_size(const qn_window *w);

/* The most elements of the input that one window can touch; no more than either has. */
int64_t qn_window_most_taps(const qn_window *w);
/* Where the window for output position `at` (a flat index) touches the input: flat index of the
 * position and of the kernel element, for each one inside. Arrays have room for the most taps.
 * Returns how many. */
int64_t qn_window_taps(const qn_window *w, int64_t at, int64_t *positions, int64_t *elements);

/* Elements of that window that lie in the input or its pads, not behind them. */
int64_t qn_window_padded_taps(const qn_window *w, int64_t at);

/* LpPool and GlobalLpPool: opset 2 made p an integer. */
QN_MUST_CHECK qn_status qn_lp_upgrade(qn_node **node);
QN_MUST_CHECK qn_status qn_lp_downgrade(qn_node **node);
extern const qn_version_rule qn_lp_versions[1];
#define QN_LP_ATTRS                                                                                \
    {.name = "p",                                                                                  \
     .kind = QN_ATTR_FLOAT,                                                                        \
     .offset = offsetof(qn_window_attrs, p_float),                                                 \
     .float_default = 2,                                                                           \
     .until = 2},                                                                                  \
        QN_INT_ATTR(qn_window_attrs, p, 2)

/* Rows of attribute tables. */
extern const char *const qn_auto_pad_words[];
#define QN_KERNEL_SHAPE_ATTR(...) QN_ATTR(qn_window_attrs, kernel_shape, INTS, __VA_ARGS__)
#define QN_WINDOW_ATTRS                                                                            \
    QN_ATTR(qn_window_attrs, strides, INTS), QN_ATTR(qn_window_attrs, pads, INTS),                 \
        QN_ENUM_ATTR(qn_window_attrs, auto_pad, QN_AUTO_PAD_NOTSET, qn_auto_pad_words)
/* The attributes of every convolution. */
#define QN_CONV_ATTRS                                                                              \
    QN_KERNEL_SHAPE_ATTR(), QN_WINDOW_ATTRS, QN_ATTR(qn_window_attrs, dilations, INTS),            \
        QN_INT_ATTR(qn_window_attrs, group, 1)

#endif
