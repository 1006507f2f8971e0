/* Convolutions and pools as TensorFlow means them, which Keras means too: windows over the axes
 * between the first and the last, weights [spatial..., in, out]. Values have their channels first
 * here. */
#ifndef QN_TF_WINDOW_H
#define QN_TF_WINDOW_H

#include "import/layout.h"

enum { QN_TF_SPATIAL = 3 };

typedef struct qn_tf_window {
    int32_t spatial;
    int64_t kernel[QN_TF_SPATIAL], stride[QN_TF_SPATIAL], dilation[QN_TF_SPATIAL];
    /* All begins, then all ends: `spatial` of each. */
    int64_t pads[2 * QN_TF_SPATIAL];
    /* The sizes that SAME pads for are not known: who runs the model computes them. */
    bool automatic;
} qn_tf_window;

/* A window of 1s without padding. */
qn_tf_window qn_tf_window_of(int32_t spatial);
/* SAME for the sizes that x has. */
void qn_tf_window_same(qn_tf_window *w, const qn_value *x);

/* The sizes of the window from weights [spatial..., in, out]; fails where they are not known. */
QN_MUST_CHECK qn_status qn_tf_window_kernel(qn_tf_window *w, const qn_graph_builder *b,
                                            const qn_value *weights);
/* `bias` may be NULL. The groups follow from the channels of x and of the weights. */
QN_MUST_CHECK qn_status qn_tf_conv(qn_value **out, qn_graph_builder *b, const qn_tf_window *w,
                                   qn_value *x, qn_value *weights, qn_value *bias);
/* Weights [spatial..., channels, multiplier]. */
QN_MUST_CHECK qn_status qn_tf_depthwise(qn_value **out, qn_graph_builder *b, const qn_tf_window *w,
                                        qn_value *x, qn_value *weights, qn_value *bias);
/* Weights [spatial..., out, in]; `sizes` of the output, -1: as the strides make it. `same`: padded
 * so that a convolution of the result gives x its sizes, else the padding of `w`. */
typedef struct qn_tf_transposed {
    const int64_t *sizes;
    bool same;
} qn_tf_transposed;
QN_MUST_CHECK qn_status qn_tf_conv_transpose(qn_value **out, qn_graph_builder *b, qn_tf_window *w,
                                             const qn_tf_transposed *how, qn_value *x,
                                             qn_value *weights);
/* `op`: AveragePool, which leaves padding out of the mean, or MaxPool. */
QN_MUST_CHECK qn_status qn_tf_pool(qn_value **out, qn_graph_builder *b, const qn_op *op,
                                   const qn_tf_window *w, qn_value *x);
/* A picture with channels first, flattened to x [N, spatial... C] and multiplied with weights:
 * makes x the picture flattened as it is and puts the rows of the weights into its order. *done is
 * false, and nothing changed, where the shapes are others. */
QN_MUST_CHECK qn_status qn_tf_flat_product(bool *done, qn_value **x, qn_value **weights,
                                           qn_graph_builder *b, qn_value *picture);

#endif
