/* Elements of tensors compared and sorted. */
#include "ops/order.h"

#include <string.h>

static int compare_strings(const qn_string *a, const qn_string *b)
{
    const size_t common = QN_MIN(a->length, b->length);
    const int order = common ? memcmp(a->text, b->text, common) : 0;
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

int qn_order_compare(const qn_tensor *tensor, int64_t a, int64_t b)
{
    if (tensor->dtype == QN_STRING)
        return compare_strings((const qn_string *)tensor->data + a,
                               (const qn_string *)tensor->data + b);
    if (qn_dtype_is_float(tensor->dtype)) {
        const double x = qn_tensor_f64(tensor, a), y = qn_tensor_f64(tensor, b);
        if (x != x || y != y)
            return (x != x) - (y != y); /* NaN stands behind every number */
        return (x > y) - (x < y);
    }
    const int64_t x = qn_tensor_i64(tensor, a), y = qn_tensor_i64(tensor, b);
    if (tensor->dtype == QN_UINT64)
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

void qn_order_merge(qn_order_fn *compare, const void *what, int64_t *index, int64_t *spare,
                    int64_t count)
{
    if (count < 2)
        return;
    const int64_t half = count / 2;
    qn_order_merge(compare, what, index, spare, half);
    qn_order_merge(compare, what, index + half, spare, count - half);
    memcpy(spare, index, (size_t)half * sizeof *spare);
    int64_t a = 0, b = half, to = 0;
    while (a < half && b < count)
        index[to++] = compare(what, spare[a], index[b]) <= 0 ? spare[a++] : index[b++];
    while (a < half)
        index[to++] = spare[a++];
}

qn_status qn_order_sort(qn_eval *self, qn_order_fn *compare, const void *what, int64_t *index,
                        int64_t count)
{
    void *spare;
    QN_TRY(qn_eval_scratch(self, &spare, count, sizeof(int64_t)));
    qn_order_merge(compare, what, index, spare, count);
    return QN_OK;
}
