/* Nodes that hand on their input as it is. One row per operator: when does it change nothing? */
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool always(const qn_node *node)
{
    (void)node;
    return true;
}

static bool same_dims(const qn_node *node)
{
    const qn_type *in = &node->in[0]->type, *out = &node->out[0]->type;
    if (in->rank < 0 || in->rank != out->rank || in->dtype != out->dtype)
        return false;
    for (int32_t d = 0; d < in->rank; d++) {
        if (!qn_dim_same(in->dims[d], out->dims[d]))
            return false;
    }
    return true;
}

static bool same_dtype(const qn_node *node)
{
    return node->in[0]->type.dtype != QN_UNDEFINED &&
           node->in[0]->type.dtype == node->out[0]->type.dtype;
}

static bool single_input(const qn_node *node)
{
    return node->n_in == 1;
}

static bool keeps_order(const qn_node *node)
{
    const qn_transpose_attrs *a = node->attrs;
    const int32_t rank = node->in[0]->type.rank;
    if (!a->perm.at)
        return rank == 0 || rank == 1;
    for (size_t i = 0; i < a->perm.count; i++) {
        if (a->perm.at[i] != (int64_t)i)
            return false;
    }
    return true;
}

static bool pads_nothing(const qn_node *node)
{
    return qn_match_is(node->in[1], 0);
}

/* Slices can keep the dims and reverse an axis. */
static bool slices_nothing(const qn_node *node)
{
    const qn_value *steps = node->n_in > 4 ? node->in[4] : NULL;
    return same_dims(node) && (!steps || qn_match_is(steps, 1));
}

/* Neutral on the second side, with the shape and type of the first. */
static bool adds_nothing(const qn_node *node)
{
    return qn_match_is(node->in[1], 0) && same_dims(node) &&
           qn_dtype_is_float(node->in[0]->type.dtype);
}

static bool scales_nothing(const qn_node *node)
{
    return qn_match_is(node->in[1], 1) && same_dims(node);
}

/* Dropout in inference, when nobody wants its mask. */
static bool drops_nothing(const qn_node *node)
{
    const qn_value *training = node->n_in > 2 ? node->in[2] : NULL;
    const qn_value *mask = node->n_out > 1 ? node->out[1] : NULL;
    return (!mask || (mask->n_users == 0 && !mask->is_output)) &&
           (!training || qn_match_is(training, 0));
}

static const struct {
    const qn_op *op;
    bool (*changes_nothing)(const qn_node *node);
} rows[] = {
    {&qn_op_Identity, always},     {&qn_op_Dropout, drops_nothing}, {&qn_op_Cast, same_dtype},
    {&qn_op_CastLike, same_dtype}, {&qn_op_Reshape, same_dims},     {&qn_op_Flatten, same_dims},
    {&qn_op_Squeeze, same_dims},   {&qn_op_Expand, same_dims},      {&qn_op_Tile, same_dims},
    {&qn_op_Concat, single_input}, {&qn_op_Sum, single_input},      {&qn_op_Max, single_input},
    {&qn_op_Min, single_input},    {&qn_op_Mean, single_input},     {&qn_op_Transpose, keeps_order},
    {&qn_op_Pad, pads_nothing},    {&qn_op_Slice, slices_nothing},  {&qn_op_Add, adds_nothing},
    {&qn_op_Sub, adds_nothing},    {&qn_op_Mul, scales_nothing},    {&qn_op_Div, scales_nothing},
};

static bool is_identity(const qn_node *node)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (rows[i].op == node->op && node->n_in > 0 && node->in[0] && node->out[0])
            return rows[i].changes_nothing(node);
    }
    return false;
}

static qn_status remove_identities(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        bool done;
        next = node->next;
        if (!is_identity(node))
            continue;
        QN_TRY(qn_rewrite_bypass(&done, node, node->in[0]));
        self->changes += done;
    }
    return QN_OK;
}

const qn_pass qn_pass_remove_identities = {"remove-identities", "drops nodes that change nothing",
                                           remove_identities};
