/* QLinearResize: sums of taps in float32, from the last axis to the first; docs/numerics.md. */
#include "ops/qlinear.h"
#include "ops/resize.h"

#define SCALE QN_SET(QN_FLOAT32)

static const qn_port ports_in[] = {{"X", 'X', QN_SET_QUANTIZED, 0},
                                   {"X_scale", '\0', SCALE, 0},
                                   {"X_zero_point", 'X', QN_SET_QUANTIZED, 0},
                                   {"Y_scale", '\0', SCALE, 0},
                                   {"Y_zero_point", 'Y', QN_SET_QUANTIZED, 0},
                                   {"roi", '\0', QN_SET_FLOAT, QN_OPTIONAL},
                                   {"scales", '\0', SCALE, QN_OPTIONAL},
                                   {"sizes", '\0', QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port ports_out[] = {{"Y", 'Y', QN_SET_QUANTIZED, 0}};

/* Inputs as Resize has them: X, roi, scales, sizes. */
enum { PLAIN = 4 };

static qn_status infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, 3, 4, -1};
    const qn_type *types[PLAIN] = {self->in[0]};
    const qn_tensor *data[PLAIN] = {self->data[0]};
    qn_infer plain = *self;
    QN_TRY(qn_infer_singles(self, singles));
    for (int32_t i = 1; i < PLAIN && i + 4 < self->n_in; i++) {
        types[i] = self->in[i + 4];
        data[i] = self->data[i + 4];
    }
    plain.in = types;
    plain.data = data;
    plain.n_in = PLAIN;
    QN_TRY(qn_infer_resize(&plain));
    if (qn_infer_wants(self, 0))
        self->out[0]->dtype = self->in[4]->dtype;
    return QN_OK;
}

/* Sum over the taps of dims d.. of the element whose earlier coordinates lead to `from`. */
static float weighted(const qn_resize_run *r, const int64_t *x, int32_t d, int64_t from,
                      int64_t zero)
{
    if (d == r->in->rank)
        return (float)(qn_tensor_i64(r->in, from) - zero);
    const int64_t taps = r->axes[d].taps;
    const int64_t *index = r->index[d] + x[d] * taps;
    const double *weight = r->weight[d] + x[d] * taps;
    float sum = 0;
    for (int64_t k = 0; k < taps; k++) {
        const float part =
            weighted(r, x, d + 1, from + index[k] * r->strides[d], zero) * (float)weight[k];
        sum = k ? sum + part : part;
    }
    return sum;
}

/* The caller's object stands for more than the inputs: it is lent, with Resize's inputs, and not
 * copied. */
static qn_status make_run(qn_resize_run *out, qn_eval *self)
{
    const qn_tensor *inputs[PLAIN] = {self->in[0]};
    const qn_tensor *const *given = self->in;
    const int32_t n_given = self->n_in;
    for (int32_t i = 1; i < PLAIN; i++)
        inputs[i] = qn_eval_in(self, i + 4);
    self->in = inputs;
    self->n_in = PLAIN;
    const qn_status status = qn_resize_run_make(out, self);
    self->in = given;
    self->n_in = n_given;
    return status;
}

static qn_status eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    const qn_limits range = qn_limits_of(out->dtype);
    qn_resize_run r;
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 3, 4));
    QN_TRY(make_run(&r, self));
    const float multiplier = x.scale / y.scale;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[QN_MAX_RANK];
        const int64_t q = qn_resize_at(at, &r, i) ? qn_requantize(weighted(&r, at, 0, 0, x.zero),
                                                                  multiplier, y.zero, range)
                                                  : qn_quantize((float)r.outside, &y, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_QLinearResize = {.name = "QLinearResize",
                                      .domain = "quench",
                                      .since = 1,
                                      QN_PORTS(in, ports_in),
                                      QN_PORTS(out, ports_out),
                                      QN_ATTRS(qn_resize_specs, qn_resize_attrs),
                                      .quant = QN_QUANT_ALREADY,
                                      .infer = infer,
                                      .eval = eval,
                                      .brief = "Resize of a quantized tensor"};
