/* Dropout: the input itself, unless training_mode says otherwise. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/random.h"
#include "ops/versions.h"

typedef struct dropout_attrs {
    int64_t seed;
    /* Before opset 12 */
    float ratio;
    /* Before opset 7 */
    int64_t is_test;
} dropout_attrs;
static const qn_attr_spec dropout_specs[] = {
    QN_INT_ATTR(dropout_attrs, seed, QN_ABSENT, .since = 12),
    QN_FLOAT_ATTR(dropout_attrs, ratio, 0.5f, .until = 12),
    QN_INT_ATTR(dropout_attrs, is_test, 0, .until = 7)};

static const qn_type_rule dropout_types[] = {{22, QN_SET_FLOAT8}};
#define DROPOUT_SET (QN_SET_FLOAT | QN_SET_FLOAT8)
static const qn_port dropout_in[] = {{"data", 'T', DROPOUT_SET, 0},
                                     {"ratio", 'U', DROPOUT_SET, QN_OPTIONAL},
                                     {"training_mode", '\0', QN_SET_BOOL, QN_OPTIONAL}};
static const qn_port dropout_out[] = {{"output", 'T', DROPOUT_SET, 0},
                                      {"mask", '\0', QN_SET_BOOL, QN_OPTIONAL}};

/* ---- Versions -------------------------------------------------------------------------------- */

/* Whatever is_test says: nobody who runs a file wants elements dropped. */
static qn_status upgrade_7(qn_node **node)
{
    ((dropout_attrs *)(*node)->attrs)->is_test = 0;
    return QN_OK;
}

static qn_status downgrade_7(qn_node **node)
{
    ((dropout_attrs *)(*node)->attrs)->is_test = 1;
    return QN_OK;
}

/* True where there is none after that. */
static bool drop_unread_mask(qn_node *node)
{
    if (qn_node_is_read(node, 1))
        return false;
    if (node->n_out > 1)
        qn_node_set_output(node, 1, NULL);
    node->n_out = 1;
    return true;
}

/* The mask had the type of the data. */
static qn_status upgrade_10(qn_node **node)
{
    qn_node *cast;
    if (drop_unread_mask(*node))
        return QN_OK;
    const qn_dtype dtype = (*node)->in[0]->type.dtype;
    QN_TRY(qn_node_append(&cast, *node, 1, &qn_op_Cast));
    ((qn_cast_attrs *)cast->attrs)->to = dtype == QN_UNDEFINED ? QN_FLOAT32 : dtype;
    return QN_OK;
}

static qn_status upgrade_12(qn_node **node)
{
    dropout_attrs *a = (*node)->attrs;
    if (a->ratio != 0.5f)
        QN_TRY(qn_upgrade_number(*node, (double)a->ratio, 1));
    a->ratio = 0.5f;
    return QN_OK;
}

static qn_status downgrade_12(qn_node **node)
{
    dropout_attrs *a = (*node)->attrs;
    double ratio = 0.5, training = 0;
    if (!drop_unread_mask(*node))
        return qn_node_fail(
            *node, QN_E_UNSUPPORTED,
            "before opset 12 nothing says what the mask is where nothing is dropped");
    QN_TRY(qn_downgrade_number(&training, *node, 2));
    if (training != 0)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "training_mode came with opset 12");
    QN_TRY(qn_downgrade_number(&ratio, *node, 1));
    *a = (dropout_attrs){.seed = QN_ABSENT, .ratio = (float)ratio};
    return qn_node_resize_inputs(*node, 1);
}

static const qn_version_rule dropout_versions[] = {
    {7, upgrade_7, downgrade_7}, {10, upgrade_10, NULL}, {12, upgrade_12, downgrade_12}};

/* ---- Inference and kernel -------------------------------------------------------------------- */

static qn_status dropout_infer(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    qn_infer_copy_dims(self, 1, 0, QN_BOOL);
    return QN_OK;
}

/* Keeps each element with probability 1 - ratio and scales those kept by 1 / (1 - ratio). */
static void drop(const qn_eval *self, double ratio)
{
    const dropout_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = qn_eval_out(self, 0), *mask = qn_eval_out(self, 1);
    const int64_t count = qn_tensor_count(in);
    const double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
    qn_random random;
    qn_random_seed(&random, a->seed == QN_ABSENT ? 0 : (uint32_t)a->seed);
    for (int64_t i = 0; i < count; i++) {
        const bool kept = qn_random_uniform(&random) >= ratio;
        const double y = kept ? qn_tensor_f64(in, i) * scale : 0;
        if (out)
            qn_store_f64(out->data, out->dtype, i, &y, 1);
        if (mask)
            ((uint8_t *)mask->data)[i] = kept;
    }
}

static void pass(const qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = qn_eval_out(self, 0), *mask = qn_eval_out(self, 1);
    const int64_t count = qn_tensor_count(in);
    if (out && count)
        memcpy(out->data, in->data, (size_t)count * qn_dtype_size(in->dtype));
    for (int64_t i = 0; mask && i < count; i++)
        ((uint8_t *)mask->data)[i] = 1;
}

static qn_status dropout_eval(qn_eval *self)
{
    const qn_tensor *ratio = qn_eval_in(self, 1), *training = qn_eval_in(self, 2);
    if ((ratio && qn_tensor_count(ratio) != 1) || (training && qn_tensor_count(training) != 1))
        return qn_eval_fail(self, "ratio and training_mode must be single elements");
    const double p = ratio ? qn_tensor_f64(ratio, 0) : 0.5;
    if (training && qn_tensor_i64(training, 0) && p > 0)
        drop(self, p);
    else
        pass(self);
    return QN_OK;
}

const qn_op qn_op_Dropout = {.name = "Dropout",
                             .domain = "",
                             .since = 1,
                             QN_PORTS(in, dropout_in),
                             QN_PORTS(out, dropout_out),
                             QN_ATTRS(dropout_specs, dropout_attrs),
                             QN_VERSIONS(dropout_versions),
                             QN_TYPE_RULES(dropout_types),
                             .flags = QN_OP_RANDOM,
                             .quant = QN_QUANT_PASS,
                             .infer = dropout_infer,
                             .eval = dropout_eval,
                             .brief = "the input; in training, random elements become 0"};
