/* What an output is put together from, and the noise of each group. */
#include "compare/output_groups.h"

#include <math.h>

#include "ops/eval.h"
#include "ops/tensor_attrs.h"
#include "quant/quant.h"

enum { FAR = 64 }; /* nodes that are looked through */
static const double share_of_group = 0.4;

/* ---- Along an axis back to a Concat ---------------------------------------------------------- */

typedef struct place {
    const qn_value *value;
    int32_t axis;
} place;

static int64_t length_of(const qn_value *value, int32_t axis)
{
    return axis >= 0 && axis < value->type.rank ? value->type.dims[axis].value : -1;
}

static bool has_shape_of(const qn_value *a, const qn_value *b)
{
    if (!a || a->data || a->type.rank < 0 || a->type.rank != b->type.rank)
        return false;
    for (int32_t i = 0; i < a->type.rank; i++) {
        if (!qn_dim_same(a->type.dims[i], b->type.dims[i]))
            return false;
    }
    return true;
}

/* The axis is the same one in what a Reshape reads: as many elements before it, and as long. */
static bool keeps_axis(const qn_value *from, const qn_value *to, int32_t axis)
{
    if (!from || from->type.rank <= axis || length_of(from, axis) != length_of(to, axis))
        return false;
    for (int32_t i = 0; i < axis; i++) {
        if (!qn_dim_same(from->type.dims[i], to->type.dims[i]))
            return false;
    }
    return true;
}

static int32_t concat_axis(const qn_node *node)
{
    const int64_t axis = ((const qn_concat_attrs *)node->attrs)->axis;
    return (int32_t)(axis < 0 ? axis + node->out[0]->type.rank : axis);
}

/* Where the axis comes from; false: it begins here. */
static bool step_back(place *at)
{
    const qn_node *node = at->value->producer;
    unsigned can = 0;
    int32_t n_data = 0;
    if (!node || qn_rule_quant_class(&can, &n_data, node) == QN_CLASS_MAC)
        return false;
    if (node->op == &qn_op_Transpose) {
        const qn_ints *perm = &((const qn_transpose_attrs *)node->attrs)->perm;
        at->axis = (size_t)at->axis < perm->count ? (int32_t)perm->at[at->axis]
                                                  : at->value->type.rank - 1 - at->axis;
        at->value = node->in[0];
        return true;
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        const bool same = node->op == &qn_op_Reshape || node->op == &qn_op_Concat
                              ? i == 0 && keeps_axis(node->in[0], at->value, at->axis)
                              : has_shape_of(node->in[i], at->value);
        if (!same)
            continue;
        at->value = node->in[i];
        return true;
    }
    return false;
}

static bool is_concat_along(const place *at)
{
    const qn_node *node = at->value->producer;
    return node && node->op == &qn_op_Concat && concat_axis(node) == at->axis;
}

static bool divide(qn_output_groups *out, const qn_value *output, int32_t axis)
{
    place at = {output, axis};
    for (int i = 0; i < FAR && !is_concat_along(&at); i++) {
        if (!step_back(&at))
            return false;
    }
    if (!is_concat_along(&at) || at.value->producer->n_in > QN_MOST_GROUPS)
        return false;
    int64_t end = 0;
    *out = (qn_output_groups){.axis = axis};
    for (int32_t i = 0; i < at.value->producer->n_in; i++) {
        const int64_t length = length_of(at.value->producer->in[i], at.axis);
        if (length < 0)
            return false;
        out->ends[out->count++] = end += length;
    }
    return out->count > 1 && end == length_of(output, axis);
}

void qn_output_groups_find(qn_output_groups *out, const qn_value *output)
{
    *out = (qn_output_groups){.count = 0};
    for (int32_t axis = 0; axis < output->type.rank; axis++) {
        qn_output_groups found;
        if (divide(&found, output, axis) &&
            (!out->count || found.ends[found.count - 1] < out->ends[out->count - 1]))
            *out = found;
    }
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static void add(qn_group_sums *sums, size_t at, double real, double error)
{
    sums->signal[at] += real * real;
    sums->noise[at] += error * error;
}

/* Elements that lie together in one group: the axis at one index, and all behind it. */
static int64_t run_length(const qn_output_groups *groups, const qn_tensor *t)
{
    int64_t length = 1;
    for (int32_t i = groups->axis + 1; i < t->rank; i++)
        length *= t->dims[i];
    return length;
}

void qn_group_sums_add(qn_group_sums *sums, const qn_output_groups *groups, const qn_tensor *real,
                       const qn_tensor *quantized, double scale)
{
    const int64_t count = qn_tensor_count(quantized), run = run_length(groups, quantized);
    const int64_t whole = groups->count ? groups->ends[groups->count - 1] : 1;
    const bool fits = groups->count && groups->axis < quantized->rank && run > 0 &&
                      quantized->dims[groups->axis] == whole;
    size_t group = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = qn_tensor_f64(real, i), error = qn_tensor_f64(quantized, i) * scale - x;
        add(sums, 0, x, error);
        if (!fits)
            continue;
        const int64_t index = i / run % whole;
        for (group = index ? group : 0; index >= groups->ends[group];)
            group++;
        add(sums, group + 1, x, error);
    }
}

static double ratio(const qn_group_sums *sums, size_t at)
{
    return sums->signal[at] > 0 ? sqrt(sums->noise[at] / sums->signal[at]) : 0;
}

double qn_group_sums_whole(const qn_group_sums *sums)
{
    return ratio(sums, 0);
}

double qn_group_sums_worst(const qn_group_sums *sums)
{
    double worst = ratio(sums, 0);
    for (size_t i = 1; i <= QN_MOST_GROUPS; i++)
        worst = fmax(worst, share_of_group * ratio(sums, i));
    return worst;
}
