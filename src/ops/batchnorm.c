/* BatchNormalization: each channel shifted and scaled by its statistics. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"

static const qn_attr_spec specs[] = {
    QN_FLOAT_ATTR(qn_batchnorm_attrs, epsilon, 1e-5f),
    QN_FLOAT_ATTR(qn_batchnorm_attrs, momentum, 0.9f),
    QN_INT_ATTR(qn_batchnorm_attrs, training_mode, 0, .since = 14),
    QN_INT_ATTR(qn_batchnorm_attrs, spatial, 1, .until = 9),
    QN_INT_ATTR(qn_batchnorm_attrs, is_test, 0, .until = 7),
    QN_ATTR(qn_batchnorm_attrs, consumed_inputs, INTS, .until = 6)};
static const qn_type_rule type_rules[] = {{14, QN_SET(QN_BFLOAT16)}};
static const qn_port ports_in[] = {{"X", 'T', QN_SET_FLOAT, 0},
                                   {"scale", 'S', QN_SET_FLOAT, 0},
                                   {"B", 'S', QN_SET_FLOAT, 0},
                                   {"input_mean", 'M', QN_SET_FLOAT, 0},
                                   {"input_var", 'M', QN_SET_FLOAT, 0}};
static const qn_port ports_out[] = {{"Y", 'T', QN_SET_FLOAT, 0},
                                    {"running_mean", 'M', QN_SET_FLOAT, QN_OPTIONAL},
                                    {"running_var", 'M', QN_SET_FLOAT, QN_OPTIONAL},
                                    /* of training, until opset 9 */
                                    {"saved_mean", 'M', QN_SET_FLOAT, QN_OPTIONAL},
                                    {"saved_var", 'M', QN_SET_FLOAT, QN_OPTIONAL}};

/* ---- Versions -------------------------------------------------------------------------------- */

static qn_status upgrade_6(qn_node **node)
{
    ((qn_batchnorm_attrs *)(*node)->attrs)->consumed_inputs = (qn_ints){NULL, 0};
    return QN_OK;
}

/* The older form must name the inputs that may be overwritten: none. */
static qn_status downgrade_6(qn_node **node)
{
    static const int64_t none[5] = {0};
    ((qn_batchnorm_attrs *)(*node)->attrs)->consumed_inputs = (qn_ints){none, 5};
    return QN_OK;
}

static qn_status upgrade_7(qn_node **node)
{
    ((qn_batchnorm_attrs *)(*node)->attrs)->is_test = 0;
    return QN_OK;
}

static qn_status downgrade_7(qn_node **node)
{
    ((qn_batchnorm_attrs *)(*node)->attrs)->is_test = 1;
    return QN_OK;
}

/* spatial = 0 had statistics for each element of an image: the same as channels of one flat
 * image. */
static qn_status upgrade_9(qn_node **node)
{
    qn_batchnorm_attrs *a = (*node)->attrs;
    static const int64_t flat[] = {-1};
    const bool by_element = !a->spatial;
    a->spatial = 1;
    if (!by_element || (*node)->in[0]->type.rank == 2)
        return QN_OK;
    for (int32_t i = 1; i < (*node)->n_explicit; i++) {
        qn_node *reshape;
        qn_value *shape;
        QN_TRY(qn_node_prepend(&reshape, *node, i, &qn_op_Reshape));
        QN_TRY(qn_value_ints(&shape, (*node)->graph, flat, 1));
        QN_TRY(qn_node_set_input(reshape, 1, shape));
    }
    return qn_node_flatten(*node, 1);
}

/* Before opset 14 further outputs meant training; those that nobody reads are let go. */
static qn_status upgrade_14(qn_node **node)
{
    qn_batchnorm_attrs *a = (*node)->attrs;
    if (qn_node_is_read(*node, 3) || qn_node_is_read(*node, 4))
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "this is the training form, whose outputs saved_mean and saved_var "
                            "left with opset 14; export the model for inference");
    a->training_mode = qn_node_is_read(*node, 1) || qn_node_is_read(*node, 2);
    for (int32_t o = 1; o < (*node)->n_out; o++) {
        if (!qn_node_is_read(*node, o))
            qn_node_set_output(*node, o, NULL);
    }
    (*node)->n_out = a->training_mode ? QN_MIN((*node)->n_out, 3) : QN_MIN((*node)->n_out, 1);
    return QN_OK;
}

static qn_status downgrade_14(qn_node **node)
{
    qn_batchnorm_attrs *a = (*node)->attrs;
    if (a->training_mode)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "training_mode came with opset 14");
    QN_TRY(qn_downgrade_one_type(*node, 3, 14));
    return qn_downgrade_one_type(*node, 4, 14);
}

static qn_status downgrade_15(qn_node **node)
{
    QN_TRY(qn_downgrade_one_type(*node, 1, 15));
    return qn_downgrade_one_type(*node, 2, 15);
}

static const qn_version_rule versions[] = {{6, upgrade_6, downgrade_6},
                                           {7, upgrade_7, downgrade_7},
                                           {9, upgrade_9, NULL},
                                           {14, upgrade_14, downgrade_14},
                                           {15, NULL, downgrade_15}};

/* ---- Inference ------------------------------------------------------------------------------- */

static qn_status infer(qn_infer *self)
{
    const qn_batchnorm_attrs *a = self->attrs;
    const qn_type *x = self->in[0];
    qn_infer_copy(self, 0, 0);
    qn_dim channels = x->rank < 0 ? qn_dim_unknown() : x->rank >= 2 ? x->dims[1] : qn_dim_of(1);
    if (x->rank == 0)
        return qn_infer_fail(self, "a scalar has no channels");
    for (int32_t i = 1; i < 5; i++) {
        const qn_type *p = self->in[i];
        if (p->rank >= 0 && (p->rank != 1 || !qn_dim_merge(&channels, channels, p->dims[0])))
            return qn_infer_fail(self, "input %d must be a list of one number per channel", i);
    }
    if ((qn_infer_wants(self, 1) || qn_infer_wants(self, 2)) && !a->training_mode)
        return qn_infer_fail(self, "running statistics exist in training_mode only");
    if (qn_infer_wants(self, 3) || qn_infer_wants(self, 4))
        return qn_infer_fail(self, "saved_mean and saved_var left with opset 14");
    qn_infer_set(self, 1, self->in[3]->dtype, 1, &channels);
    qn_infer_set(self, 2, self->in[4]->dtype, 1, &channels);
    return QN_OK;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

/* X [batch, channels, area]. */
typedef struct shape {
    int64_t batch, channels, area;
} shape;

static shape shape_of(const qn_tensor *x)
{
    shape s = {x->dims[0], x->rank > 1 ? x->dims[1] : 1, 1};
    for (int32_t d = 2; d < x->rank; d++)
        s.area *= x->dims[d];
    return s;
}

/* Mean and variance (divided by the count) of one channel. */
static void measure(double *mean, double *variance, const double *x, const shape *s, int64_t c)
{
    const double count = (double)(s->batch * s->area);
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t i = 0; i < s->area; i++)
            sum += x[(n * s->channels + c) * s->area + i];
    }
    *mean = sum / count;
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t i = 0; i < s->area; i++) {
            const double d = x[(n * s->channels + c) * s->area + i] - *mean;
            squares += d * d;
        }
    }
    *variance = squares / count;
}

static void update(const qn_eval *self, int32_t o, int64_t c, double current)
{
    const double momentum = (double)((const qn_batchnorm_attrs *)self->attrs)->momentum;
    const qn_tensor *out = qn_eval_out(self, o);
    if (!out)
        return;
    const double running = qn_tensor_f64(self->in[2 + o], c) * momentum + current * (1 - momentum);
    qn_store_f64(out->data, out->dtype, c, &running, 1);
}

static qn_status eval(qn_eval *self)
{
    const qn_batchnorm_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = qn_eval_out(self, 0);
    const shape s = shape_of(in);
    double *x;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t c = 0; c < s.channels; c++) {
        double mean = qn_tensor_f64(self->in[3], c), variance = qn_tensor_f64(self->in[4], c);
        if (a->training_mode) {
            measure(&mean, &variance, x, &s, c);
            update(self, 1, c, mean);
            update(self, 2, c, variance);
        }
        const double factor = qn_tensor_f64(self->in[1], c) / sqrt(variance + (double)a->epsilon);
        const double shift = qn_tensor_f64(self->in[2], c);
        for (int64_t n = 0; out && n < s.batch; n++) {
            double *plane = x + (n * s.channels + c) * s.area;
            for (int64_t i = 0; i < s.area; i++)
                plane[i] = (plane[i] - mean) * factor + shift;
        }
    }
    if (out)
        qn_store_f64(out->data, out->dtype, 0, x, qn_tensor_count(out));
    return QN_OK;
}

const qn_op qn_op_BatchNormalization = {
    .name = "BatchNormalization",
    .domain = "",
    .since = 1,
    QN_PORTS(in, ports_in),
    QN_PORTS(out, ports_out),
    QN_ATTRS(specs, qn_batchnorm_attrs),
    QN_VERSIONS(versions),
    QN_TYPE_RULES(type_rules),
    .quant = QN_QUANT_ELEMENT,
    .infer = infer,
    .eval = eval,
    .brief = "(x - mean) / sqrt(var + epsilon) * scale + B, by channel"};
