/* BatchNormalization. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/move.h"
#include "ops/nn_attrs.h"

static const qn_attr_spec batchnorm_specs[] = {
    QN_FLOAT_ATTR(qn_batchnorm_attrs, epsilon, 1e-5f),
    QN_FLOAT_ATTR(qn_batchnorm_attrs, momentum, 0.9f),
    QN_INT_ATTR(qn_batchnorm_attrs, training_mode, 0, .since = 14),
    QN_INT_ATTR(qn_batchnorm_attrs, spatial, 1, .until = 9),
    QN_INT_ATTR(qn_batchnorm_attrs, is_test, 0, .until = 7),
    QN_ATTR(qn_batchnorm_attrs, consumed_inputs, INTS, .until = 6)};

static const qn_port batchnorm_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                       {"scale", 'S', QN_SET_FLOAT, 0},
                                       {"B", 'S', QN_SET_FLOAT, 0},
                                       {"input_mean", 'U', QN_SET_FLOAT, 0},
                                       {"input_var", 'U', QN_SET_FLOAT, 0}};
static const qn_port batchnorm_out[] = {{"Y", 'T', QN_SET_FLOAT, 0},
                                        {"running_mean", 'U', QN_SET_FLOAT, QN_OPTIONAL},
                                        {"running_var", 'U', QN_SET_FLOAT, QN_OPTIONAL}};

/* Opset 6 and 7 dropped attributes that say nothing about inference. */
static qn_status batchnorm_drop_old(qn_node **node)
{
    qn_batchnorm_attrs *a = (*node)->attrs;
    a->consumed_inputs = (qn_ints){NULL, 0};
    a->is_test = 0;
    return QN_OK;
}

/* Before opset 9, spatial = 0 had statistics for every element of a sample. */
static qn_status batchnorm_spatial(qn_node **node)
{
    if (!((const qn_batchnorm_attrs *)(*node)->attrs)->spatial)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "spatial = 0 is not supported");
    return QN_OK;
}

static const qn_version_rule batchnorm_versions[] = {{7, batchnorm_drop_old, NULL},
                                                     {9, batchnorm_spatial, NULL}};

static qn_status batchnorm_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    qn_dim channels = in->rank >= 2 ? in->dims[1] : in->rank == 1 ? qn_dim_of(1) : qn_dim_unknown();
    if (in->rank == 0)
        return qn_infer_fail(self, "the input needs a dimension");
    for (int32_t i = 1; i < 5; i++) {
        const qn_type *parameter = self->in[i];
        if (parameter->rank >= 0 && parameter->rank != 1)
            return qn_infer_fail(self, "input %d must have one dimension", i);
        if (parameter->rank == 1 && !qn_dim_merge(&channels, channels, parameter->dims[0]))
            return qn_infer_fail(self, "input %d has %lld elements for %lld channels", i,
                                 (long long)parameter->dims[0].value, (long long)channels.value);
    }
    qn_infer_copy(self, 0, 0);
    qn_infer_set(self, 1, self->in[3]->dtype, 1, &channels);
    qn_infer_set(self, 2, self->in[3]->dtype, 1, &channels);
    return QN_OK;
}

/* X seen as [batch, channels, area]. */
typedef struct extent {
    int64_t batch, channels, area;
} extent;

static extent extent_of(const qn_tensor *x)
{
    return (extent){x->dims[0], x->rank > 1 ? x->dims[1] : 1, qn_dims_product(x->dims, 2, x->rank)};
}

/* Mean and variance of a channel over batch and area, from the data. */
static void channel_statistics(double *mean, double *variance, const qn_tensor *x, extent e,
                               int64_t c)
{
    const double count = (double)(e.batch * e.area);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < e.batch * e.area; i++)
        sum += qn_tensor_f64(x, (i / e.area * e.channels + c) * e.area + i % e.area);
    *mean = sum / count;
    for (int64_t i = 0; i < e.batch * e.area; i++) {
        const double d =
            qn_tensor_f64(x, (i / e.area * e.channels + c) * e.area + i % e.area) - *mean;
        squares += d * d;
    }
    *variance = squares / count;
}

static void running(const qn_tensor *out, const qn_tensor *in, int64_t c, double now,
                    double momentum)
{
    const double value = qn_tensor_f64(in, c) * momentum + now * (1 - momentum);
    if (out)
        qn_store_f64(out->data, out->dtype, c, &value, 1);
}

static qn_status batchnorm_eval(qn_eval *self)
{
    const qn_batchnorm_attrs *a = self->attrs;
    const qn_tensor *x = self->in[0], *y = self->out[0];
    const extent e = extent_of(x);
    for (int64_t c = 0; c < e.channels; c++) {
        double mean = qn_tensor_f64(self->in[3], c), variance = qn_tensor_f64(self->in[4], c);
        if (a->training_mode)
            channel_statistics(&mean, &variance, x, e, c);
        running(qn_eval_out(self, 1), self->in[3], c, mean, (double)a->momentum);
        running(qn_eval_out(self, 2), self->in[4], c, variance, (double)a->momentum);
        const double scale = qn_tensor_f64(self->in[1], c) / sqrt(variance + (double)a->epsilon);
        const double shift = qn_tensor_f64(self->in[2], c) - mean * scale;
        for (int64_t i = 0; y && i < e.batch * e.area; i++) {
            const int64_t at = (i / e.area * e.channels + c) * e.area + i % e.area;
            const double value = qn_tensor_f64(x, at) * scale + shift;
            qn_store_f64(y->data, y->dtype, at, &value, 1);
        }
    }
    return QN_OK;
}

const qn_op qn_op_BatchNormalization = {.name = "BatchNormalization",
                                        .domain = "",
                                        .since = 1,
                                        QN_PORTS(in, batchnorm_in),
                                        QN_PORTS(out, batchnorm_out),
                                        QN_ATTRS(batchnorm_specs, qn_batchnorm_attrs),
                                        QN_VERSIONS(batchnorm_versions),
                                        .quant = QN_QUANT_FLOAT,
                                        .infer = batchnorm_infer,
                                        .eval = batchnorm_eval,
                                        .brief = "(x - mean) / sqrt(var + epsilon) * scale + B"};
