/* Squeeze and Unsqueeze: dimensions of 1 leave and come. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

typedef struct axes_attrs {
    /* Before opset 13 */
    qn_ints axes;
} axes_attrs;

static const qn_attr_spec axes_specs[] = {QN_ATTR(axes_attrs, axes, INTS, .until = 13)};

static const qn_port squeeze_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                     {"axes", 0, QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port unsqueeze_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                       {"axes", 0, QN_SET(QN_INT64), 0}};
static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

/* Opset 13: the axes became an input. */
static qn_status axes_upgrade(qn_node **node)
{
    axes_attrs *a = (*node)->attrs;
    return a->axes.at ? qn_upgrade_ints(*node, &a->axes, 1) : QN_OK;
}

static qn_status axes_downgrade(qn_node **node)
{
    if ((*node)->n_in < 2 || !(*node)->in[1])
        return qn_node_resize_inputs(*node, 1);
    return qn_downgrade_ints(*node, &((axes_attrs *)(*node)->attrs)->axes, 1);
}

static const qn_version_rule axes_versions[] = {{13, axes_upgrade, axes_downgrade}};

/* Marks the axes given by input 1 among `rank`; each may stand there once. */
static qn_status mark_axes(qn_infer *self, bool *marked, const int64_t *axes, size_t count,
                           int32_t rank)
{
    memset(marked, 0, QN_MAX_RANK * sizeof *marked);
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        QN_TRY(qn_infer_axis(self, &axis, rank, "axis"));
        if (marked[axis])
            return qn_infer_fail(self, "axis %lld stands there twice", (long long)axis);
        marked[axis] = true;
    }
    return QN_OK;
}

/* Contents known of a small integer tensor stay known. */
static qn_status keep_elements(qn_infer *self)
{
    qn_dim elements[QN_MAX_RANK];
    size_t count;
    if (!qn_infer_wants(self, 0) || self->out[0]->rank < 0 || self->out[0]->rank > 1 ||
        !qn_dtype_is_integer(self->in[0]->dtype) ||
        !qn_infer_elements(self, 0, elements, QN_MAX_RANK, &count))
        return QN_OK;
    return qn_infer_set_elements(self, 0, elements, count);
}

static qn_status squeeze_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    bool gone[QN_MAX_RANK] = {false};
    qn_dim dims[QN_MAX_RANK];
    int32_t rank = 0;
    qn_infer_set_dtype(self, 0, in->dtype);
    const bool given = qn_infer_has(self, 1);
    if (in->rank < 0 || (given && !qn_infer_ints(self, 1, axes, QN_MAX_RANK, &count)))
        return QN_OK;
    if (given)
        QN_TRY(mark_axes(self, gone, axes, count, in->rank));
    for (int32_t d = 0; d < in->rank; d++) {
        if (!given && in->dims[d].value < 0)
            return QN_OK; /* it may turn out to be 1 */
        if (given && gone[d] && in->dims[d].value >= 0 && in->dims[d].value != 1)
            return qn_infer_fail(self, "dimension %d is %lld, not 1", d,
                                 (long long)in->dims[d].value);
        if (given ? !gone[d] : in->dims[d].value != 1)
            dims[rank++] = in->dims[d];
    }
    qn_infer_set(self, 0, in->dtype, rank, dims);
    return keep_elements(self);
}

const qn_op qn_op_Squeeze = {.name = "Squeeze",
                             .domain = "",
                             .since = 1,
                             QN_PORTS(in, squeeze_in),
                             QN_PORTS(out, any_out),
                             QN_ATTRS(axes_specs, axes_attrs),
                             QN_VERSIONS(axes_versions),
                             QN_TYPE_RULES(qn_float8_21),
                             .flags = QN_OP_MOVES,
                             .quant = QN_QUANT_PASS,
                             .infer = squeeze_infer,
                             .eval = qn_eval_move_all,
                             .brief = "drops dimensions of 1"};

static qn_status unsqueeze_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axes[QN_MAX_RANK];
    size_t count;
    bool fresh[QN_MAX_RANK];
    qn_dim dims[QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0 || !qn_infer_ints(self, 1, axes, QN_MAX_RANK, &count))
        return QN_OK;
    const int32_t rank = in->rank + (int32_t)count;
    if (rank > QN_MAX_RANK)
        return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
    QN_TRY(mark_axes(self, fresh, axes, count, rank));
    for (int32_t d = 0, from = 0; d < rank; d++)
        dims[d] = fresh[d] ? qn_dim_of(1) : in->dims[from++];
    qn_infer_set(self, 0, in->dtype, rank, dims);
    return keep_elements(self);
}

const qn_op qn_op_Unsqueeze = {.name = "Unsqueeze",
                               .domain = "",
                               .since = 1,
                               QN_PORTS(in, unsqueeze_in),
                               QN_PORTS(out, any_out),
                               QN_ATTRS(axes_specs, axes_attrs),
                               QN_VERSIONS(axes_versions),
                               QN_TYPE_RULES(qn_float8_21),
                               .flags = QN_OP_MOVES,
                               .quant = QN_QUANT_PASS,
                               .infer = unsqueeze_infer,
                               .eval = qn_eval_move_all,
                               .brief = "inserts dimensions of 1"};
