/* Which values of a float graph calibration looks at, and along which axis. */
#include "quant/observe.h"

#include "ops/kinds.h"
#include "quant/quant.h"

static bool is_one_of(const qn_op *op, const qn_op *const *list)
{
    while (*list && *list != op)
        list++;
    return *list != NULL;
}

/* A quantized network does these by the limits of the integers before them. */
static const qn_op *const limits[] = {&qn_op_Relu, &qn_op_Clip, NULL};
static const qn_op *const channels_first[] = {&qn_op_Conv,
                                              &qn_op_ConvTranspose,
                                              &qn_op_MaxPool,
                                              &qn_op_AveragePool,
                                              &qn_op_GlobalAveragePool,
                                              &qn_op_GlobalMaxPool,
                                              &qn_op_BatchNormalization,
                                              &qn_op_InstanceNormalization,
                                              NULL};

static bool is_cut_off(const qn_value *value)
{
    const qn_node *user = qn_value_only_user(value), *node = value->producer;
    return user && is_one_of(user->op, limits) && !qn_op_is_recurrent(node->op) &&
           (node->op->quant == QN_QUANT_MAC || node->op->quant == QN_QUANT_ELEMENT);
}

/* A product that gets its bias at once is not rounded in between. */
static bool is_unfinished(const qn_value *value)
{
    const qn_node *user = qn_value_only_user(value);
    return user && value->producer->op == &qn_op_MatMul && qn_rule_is_bias(user);
}

bool qn_observe_default(const void *user, const qn_value *value)
{
    (void)user;
    if (value->data || value->is_capture || value->type.kind != QN_TYPE_TENSOR ||
        !qn_dtype_is_float(value->type.dtype))
        return false;
    if (value->is_input)
        return value->n_users > 0;
    return value->producer && !is_cut_off(value) && !is_unfinished(value);
}

bool qn_observe_none(const void *user, const qn_value *value)
{
    (void)user;
    (void)value;
    return false;
}

/* The axis of channels as the value's neighbours see it. */
int32_t qn_channel_axis(const void *user, const qn_value *value)
{
    const int32_t rank = value->type.rank;
    (void)user;
    if (rank != 3)
        return rank < 2 ? -1 : 1;
    if (value->producer && is_one_of(value->producer->op, channels_first))
        return 1;
    for (size_t i = 0; i < value->n_users; i++) {
        if (is_one_of(value->users[i]->op, channels_first))
            return 1;
    }
    return 2;
}
