/* DepthToSpace, SpaceToDepth and ReverseSequence. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"

static const qn_port any_in[] = {{"input", 'T', QN_SET_TENSOR, 0}};
static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

static const char *const depth_words[] = {"DCR", "CRD", NULL};

static const qn_attr_spec depth_specs[] = {
    QN_INT_ATTR(qn_depth_attrs, blocksize, 0, .required = true),
    QN_ENUM_ATTR(qn_depth_attrs, mode, QN_DEPTH_DCR, depth_words, .since = 11)};
static const qn_attr_spec space_specs[] = {
    QN_INT_ATTR(qn_depth_attrs, blocksize, 0, .required = true)};

/* [N,C,H,W] of both, each side scaled by the block: `grow` for DepthToSpace. */
static qn_status block_infer(qn_infer *self, bool grow)
{
    const qn_type *in = self->in[0];
    const int64_t b = ((const qn_depth_attrs *)self->attrs)->blocksize;
    qn_type out = *in;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (b < 1 || b > INT32_MAX)
        return qn_infer_fail(self, "blocksize %lld makes no sense", (long long)b);
    if (in->rank < 0)
        return QN_OK;
    if (in->rank != 4)
        return qn_infer_fail(self, "the input must have four dimensions");
    for (int32_t d = 1; d < 4; d++) {
        const int64_t factor = d == 1 ? b * b : b;
        const bool divide = (d == 1) == grow;
        const int64_t dim = in->dims[d].value;
        if (dim < 0)
            out.dims[d] = qn_dim_unknown();
        else if (divide && dim % factor != 0)
            return qn_infer_fail(self, "dimension %d is %lld, no multiple of %lld", d,
                                 (long long)dim, (long long)factor);
        else
            out.dims[d] =
                divide ? qn_dim_of(dim / factor) : qn_dim_mul(in->dims[d], qn_dim_of(factor));
    }
    qn_infer_set(self, 0, in->dtype, 4, out.dims);
    return QN_OK;
}

static qn_status depth_infer(qn_infer *self)
{
    return block_infer(self, true);
}

static qn_status space_infer(qn_infer *self)
{
    return block_infer(self, false);
}

/* Both are a transpose of six dimensions: `shape` is the output seen so, with the input's
 * strides. */
static void block_move(const qn_eval *self, const int64_t *shape, const int64_t *strides)
{
    qn_tensor out = *self->out[0];
    out.rank = 6;
    memcpy(out.dims, shape, 6 * sizeof *shape);
    qn_move_from(&out, self->in[0], 0, strides);
}

/* Output [N, C', H, b, W, b]; the input's channel is (bi * b + bj) * C' + c (DCR) or
 * (c * b + bi) * b + bj (CRD). */
static qn_status depth_eval(qn_eval *self)
{
    const qn_depth_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0];
    const int64_t b = a->blocksize, n = in->dims[0], c = in->dims[1] / (b * b);
    const int64_t h = in->dims[2], w = in->dims[3], area = h * w;
    const bool dcr = a->mode == QN_DEPTH_DCR;
    const int64_t shape[6] = {n, c, h, b, w, b};
    const int64_t strides[6] = {
        in->dims[1] * area,  (dcr ? 1 : b * b) * area, w, (dcr ? b * c : b) * area, 1,
        (dcr ? c : 1) * area};
    block_move(self, shape, strides);
    return QN_OK;
}

const qn_op qn_op_DepthToSpace = {.name = "DepthToSpace",
                                  .domain = "",
                                  .since = 1,
                                  QN_PORTS(in, any_in),
                                  QN_PORTS(out, any_out),
                                  QN_ATTRS(depth_specs, qn_depth_attrs),
                                  .flags = QN_OP_MOVES,
                                  .quant = QN_QUANT_PASS,
                                  .infer = depth_infer,
                                  .eval = depth_eval,
                                  .brief = "blocks of channels become areas"};

/* Output [N, bi, bj, C, H', W']. */
static qn_status space_eval(qn_eval *self)
{
    const int64_t b = ((const qn_depth_attrs *)self->attrs)->blocksize;
    const qn_tensor *in = self->in[0];
    const int64_t c = in->dims[1], h = in->dims[2], w = in->dims[3];
    const int64_t shape[6] = {in->dims[0], b, b, c, h / b, w / b};
    const int64_t strides[6] = {c * h * w, w, 1, h * w, b * w, b};
    block_move(self, shape, strides);
    return QN_OK;
}

const qn_op qn_op_SpaceToDepth = {.name = "SpaceToDepth",
                                  .domain = "",
                                  .since = 1,
                                  QN_PORTS(in, any_in),
                                  QN_PORTS(out, any_out),
                                  QN_ATTRS(space_specs, qn_depth_attrs),
                                  .flags = QN_OP_MOVES,
                                  .quant = QN_QUANT_PASS,
                                  .infer = space_infer,
                                  .eval = space_eval,
                                  .brief = "areas become blocks of channels"};

/* ---- ReverseSequence ------------------------------------------------------------------------- */

typedef struct reverse_attrs {
    int64_t batch_axis, time_axis;
} reverse_attrs;
static const qn_attr_spec reverse_specs[] = {QN_INT_ATTR(reverse_attrs, batch_axis, 1),
                                             QN_INT_ATTR(reverse_attrs, time_axis, 0)};
static const qn_port reverse_in[] = {{"input", 'T', QN_SET_TENSOR, 0},
                                     {"sequence_lens", 0, QN_SET(QN_INT64), 0}};

static qn_status reverse_infer(qn_infer *self)
{
    const reverse_attrs *a = self->attrs;
    const qn_type *in = self->in[0], *lengths = self->in[1];
    qn_dim same;
    qn_infer_copy(self, 0, 0);
    if (in->rank >= 0 && in->rank < 2)
        return qn_infer_fail(self, "the input must have two dimensions or more");
    if (a->batch_axis == a->time_axis || a->batch_axis < 0 || a->batch_axis > 1 ||
        a->time_axis < 0 || a->time_axis > 1)
        return qn_infer_fail(self, "batch_axis and time_axis must be 0 and 1, or 1 and 0");
    if (lengths->rank >= 0 && lengths->rank != 1)
        return qn_infer_fail(self, "sequence_lens must have one dimension");
    if (in->rank >= 2 && lengths->rank == 1 &&
        !qn_dim_merge(&same, in->dims[a->batch_axis], lengths->dims[0]))
        return qn_infer_fail(self, "sequence_lens must have one length per batch entry");
    return QN_OK;
}

static qn_status reverse_eval(qn_eval *self)
{
    const reverse_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0];
    const int64_t batches = in->dims[a->batch_axis], times = in->dims[a->time_axis];
    const size_t row = (size_t)qn_dims_product(in->dims, 2, in->rank) * qn_dtype_size(in->dtype);
    for (int64_t n = 0; n < batches; n++) {
        const int64_t length = qn_tensor_i64(self->in[1], n);
        if (length < 0 || length > times)
            return qn_eval_fail(self, "length %lld is outside 0..%lld", (long long)length,
                                (long long)times);
        for (int64_t t = 0; t < times && row; t++) {
            const int64_t from = t < length ? length - 1 - t : t;
            const bool time_first = a->time_axis == 0;
            const int64_t to_row = time_first ? t * batches + n : n * times + t;
            const int64_t from_row = time_first ? from * batches + n : n * times + from;
            memcpy((char *)self->out[0]->data + (size_t)to_row * row,
                   (const char *)in->data + (size_t)from_row * row, row);
        }
    }
    return QN_OK;
}

const qn_op qn_op_ReverseSequence = {.name = "ReverseSequence",
                                     .domain = "",
                                     .since = 10,
                                     QN_PORTS(in, reverse_in),
                                     QN_PORTS(out, any_out),
                                     QN_ATTRS(reverse_specs, reverse_attrs),
                                     QN_TYPE_RULES(qn_bfloat16_28),
                                     .flags = QN_OP_MOVES,
                                     .quant = QN_QUANT_PASS,
                                     .infer = reverse_infer,
                                     .eval = reverse_eval,
                                     .brief = "the first elements of each sequence backwards"};
