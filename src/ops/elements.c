/* Contents of small integer tensors during inference: shapes that the graph computes. */
#include "ops/elementwise.h"

/* Results that the element type cannot hold are not known: the kernel will wrap them. */
static qn_dim element_of(int64_t value, qn_dtype dtype)
{
    const bool fits = dtype != QN_INT32 || (value >= INT32_MIN && value <= INT32_MAX);
    return (qn_dim){fits ? value : QN_UNKNOWN_ELEMENT, NULL};
}

/* Output 0 is one that can have elements. */
static bool can_have(const qn_infer *self, size_t *count)
{
    const qn_type *out = qn_infer_wants(self, 0) ? self->out[0] : NULL;
    if (!out || out->rank < 0 || out->rank > 1)
        return false;
    if (out->dtype != QN_INT64 && out->dtype != QN_INT32 && out->dtype != QN_BOOL)
        return false;
    const int64_t n = out->rank == 0 ? 1 : out->dims[0].value;
    *count = (size_t)n;
    return n >= 0 && n <= QN_MAX_RANK;
}

qn_status qn_infer_unary_elements(qn_infer *self, qn_unary_i64 *g)
{
    qn_dim elements[QN_MAX_RANK];
    size_t count, n;
    if (!can_have(self, &count) || !qn_dtype_is_integer(self->in[0]->dtype) ||
        !qn_infer_elements(self, 0, elements, QN_MAX_RANK, &n) || n != count)
        return QN_OK;
    for (size_t i = 0; i < count; i++) {
        const int64_t value = elements[i].value;
        elements[i] = qn_element_known(elements[i])
                          ? element_of(g(value, self->attrs), self->out[0]->dtype)
                          : (qn_dim){QN_UNKNOWN_ELEMENT, NULL};
    }
    return qn_infer_set_elements(self, 0, elements, count);
}

static qn_dim combine_one(const qn_infer *self, const qn_binary_rule *rule, qn_dim a, qn_dim b)
{
    if (qn_element_known(a) && qn_element_known(b))
        return element_of(rule->g(a.value, b.value, false, self->attrs), self->out[0]->dtype);
    if (rule->has_neutral && b.value == rule->neutral)
        return a;
    if (rule->has_neutral && rule->commutes && a.value == rule->neutral)
        return b;
    return (qn_dim){QN_UNKNOWN_ELEMENT, NULL};
}

qn_status qn_infer_binary_elements(qn_infer *self, const qn_binary_rule *rule)
{
    qn_dim a[QN_MAX_RANK], b[QN_MAX_RANK], out[QN_MAX_RANK];
    size_t count, n_a, n_b;
    if (!can_have(self, &count) || !qn_dtype_is_integer(self->in[0]->dtype) ||
        !qn_infer_elements(self, 0, a, QN_MAX_RANK, &n_a) ||
        !qn_infer_elements(self, 1, b, QN_MAX_RANK, &n_b) || (n_a != count && n_a != 1) ||
        (n_b != count && n_b != 1))
        return QN_OK;
    for (size_t i = 0; i < count; i++)
        out[i] = combine_one(self, rule, a[n_a == 1 ? 0 : i], b[n_b == 1 ? 0 : i]);
    return qn_infer_set_elements(self, 0, out, count);
}
