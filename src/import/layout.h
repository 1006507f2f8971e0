/* Helpers for frameworks whose pictures have their channels last, [N, spatial..., C], where ONNX's
 * operators want [N, C, spatial...]; and for their ways of padding and of rounding sizes.
 *
 * A named value is held in one of two orders of axes, or in both once both were asked for: a
 * Transpose is made when a layer needs the other one, not before, so that a chain of convolutions
 * has none. Values of rank 2 and below are the same in both. */
#ifndef QN_LAYOUT_H
#define QN_LAYOUT_H

#include "import/builder.h"

typedef enum qn_axis_order {
    /* The order that the framework has */
    QN_ORDER_OWN,
    /* [N, C, spatial...] */
    QN_ORDER_CHANNELS_FIRST
} qn_axis_order;

typedef struct qn_layouts {
    qn_graph_builder *builder;
    /* Name in the framework -> both forms. */
    qn_names named;
} qn_layouts;

void qn_layouts_init(qn_layouts *layouts, qn_graph_builder *builder);
void qn_layouts_free(qn_layouts *layouts);

/* The framework's name means this value from now on, whose axes stand in that order. */
QN_MUST_CHECK qn_status qn_layout_define(qn_layouts *layouts, const char *name, qn_value *value,
                                         qn_axis_order order);
/* The value of that name with its axes in that order. Fails with QN_E_UNSUPPORTED where its rank is
 * not known. */
QN_MUST_CHECK qn_status qn_layout_find(qn_value **out, qn_layouts *layouts, const char *name,
                                       qn_axis_order order);
/* The form that is there, for layers to which the order of axes means nothing; the order they give
 * on. */
QN_MUST_CHECK qn_status qn_layout_any(qn_value **out, qn_axis_order *order, qn_layouts *layouts,
                                      const char *name);
/* Values for a layer that broadcasts them, all in one order: channels first where one of the
 * largest rank is held so. Those of a smaller rank get leading axes of 1 first. */
QN_MUST_CHECK qn_status qn_layout_agree(qn_value **out, qn_axis_order *order, qn_layouts *layouts,
                                        const char *const *names, size_t count);

/* ---- Axes ------------------------------------------------------------------------------------ */

/* Where an axis of the framework (negative: counted from the end) stands in that order. */
int64_t qn_layout_axis(qn_axis_order order, int32_t rank, int64_t axis);
/* The `perm` of a Transpose from the framework's order to channels first, or back. */
void qn_layout_perm(int64_t *perm, int32_t rank, qn_axis_order to);
/* The `perm` that does the Transpose `first` and then the Transpose `second`; out is neither of
 * them. */
void qn_perm_compose(int64_t *out, int32_t rank, const int64_t *first, const int64_t *second);
/* Paddings of each axis, begin and end, as the framework lists them, to ONNX's list: all begins,
 * then all ends. */
void qn_layout_pads(int64_t *pads, int32_t rank, qn_axis_order order, const int64_t (*pairs)[2]);

/* ---- Windows --------------------------------------------------------------------------------- */

/* A window that slides along one axis. */
typedef struct qn_slide {
    int64_t size, kernel, stride, dilation;
} qn_slide;

/* TensorFlow's SAME: as many outputs as strides begin inside, ceil(size / stride); of an odd
 * padding the end gets more. This depends on the size where the stride is not 1: it must be
 * known. */
void qn_same_padding(int64_t *begin, int64_t *end, const qn_slide *slide);
/* Caffe's pooling rounds the number of outputs up, and leaves out a window that would begin behind
 * the input and its padding: the padding at the end with which rounding down gives as many. It can
 * be negative: input that no window reaches. */
int64_t qn_ceil_padding(const qn_slide *slide, int64_t begin, int64_t end);

#endif
