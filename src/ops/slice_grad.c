/* The gradient of Slice: zeros, and the slice's gradient where it came from. */
#include "ops/grad_shape.h"
#include "ops/move.h"

static const qn_attr_spec specs[] = {QN_ATTR(qn_shape_attrs, shape, INTS)};
static const qn_port ports_in[] = {{"dY", 'T', QN_SET_FLOAT, 0},
                                   {"starts", 'I', QN_SET_INDEX, 0},
                                   {"ends", 'I', QN_SET_INDEX, 0},
                                   {"axes", 'I', QN_SET_INDEX, QN_OPTIONAL},
                                   {"steps", 'I', QN_SET_INDEX, QN_OPTIONAL}};
static const qn_port ports_out[] = {{"dX", 'T', QN_SET_FLOAT, 0}};

static qn_status infer(qn_infer *self)
{
    const qn_shape_attrs *a = self->attrs;
    return qn_infer_grad_shape(self, &a->shape);
}

/* Every element of the gradient lies inside the result. */
static bool reaches(const qn_tensor *dy, const qn_tensor *dx, int64_t start, const int64_t *strides)
{
    int64_t low = start, high = start;
    if (dy->rank != dx->rank)
        return false;
    for (int32_t d = 0; d < dy->rank; d++) {
        const int64_t span = (dy->dims[d] - 1) * strides[d];
        low += QN_MIN(span, 0);
        high += QN_MAX(span, 0);
    }
    return low >= 0 && high < qn_tensor_count(dx);
}

static qn_status eval(qn_eval *self)
{
    const qn_tensor *dy = self->in[0], *dx = self->out[0];
    const qn_tensor *const lists[4] = {self->in[1], self->in[2], qn_eval_in(self, 3),
                                       qn_eval_in(self, 4)};
    int64_t start, strides[QN_MAX_RANK];
    if (!qn_slice_walk(&start, strides, dx, lists))
        return qn_eval_fail(self, "starts, ends, axes and steps do not fit the shape");
    qn_fill(dx->data, qn_tensor_count(dx), NULL, qn_dtype_size(dx->dtype));
    if (qn_tensor_count(dy) == 0)
        return QN_OK;
    if (!reaches(dy, dx, start, strides))
        return qn_eval_fail(self, "the gradient is larger than the slice");
    qn_move_to(self->out[0], dy, start, strides);
    return QN_OK;
}

const qn_op qn_op_qn_SliceGrad = {.name = "SliceGrad",
                                  .domain = "quench",
                                  .since = 1,
                                  QN_PORTS(in, ports_in),
                                  QN_PORTS(out, ports_out),
                                  QN_ATTRS(specs, qn_shape_attrs),
                                  .quant = QN_QUANT_FLOAT,
                                  .infer = infer,
                                  .eval = eval,
                                  .brief = "the gradient of Slice"};
