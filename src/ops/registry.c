/* The table of all operators, and the search in it. */
#include <string.h>

#include "ops/op.h"

const qn_op *const qn_ops[] = {
#define QN_OP(id) &qn_op_##id,
#include "ops/ops.def"
#undef QN_OP
};
const size_t qn_ops_count = QN_COUNT_OF(qn_ops);

static int compare(const char *domain, const char *name, const qn_op *op)
{
    const int order = strcmp(domain, op->domain);
    return order ? order : strcmp(name, op->name);
}

const qn_op *qn_op_find(const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    size_t low = 0, high = qn_ops_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(domain, name, qn_ops[middle]);
        if (order == 0)
            return qn_ops[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
