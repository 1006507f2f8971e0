/* Clip: every element within [min, max]. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/versions.h"

/* Before opset 11. */
typedef struct clip_attrs {
    float min, max;
} clip_attrs;
static const qn_attr_spec clip_specs[] = {QN_FLOAT_ATTR(clip_attrs, min, -INFINITY, .until = 11),
                                          QN_FLOAT_ATTR(clip_attrs, max, INFINITY, .until = 11)};

static const qn_type_rule clip_types[] = {{12, QN_SET_INT}};
static const qn_port clip_in[] = {{"input", 'T', QN_SET_NUMBER, 0},
                                  {"min", 'T', QN_SET_NUMBER, QN_OPTIONAL},
                                  {"max", 'T', QN_SET_NUMBER, QN_OPTIONAL}};
static const qn_port clip_out[] = {{"output", 'T', QN_SET_NUMBER, 0}};

static qn_status clip_upgrade(qn_node **node)
{
    clip_attrs *a = (*node)->attrs;
    if (a->min != -INFINITY)
        QN_TRY(qn_upgrade_number(*node, (double)a->min, 1));
    if (a->max != INFINITY)
        QN_TRY(qn_upgrade_number(*node, (double)a->max, 2));
    *a = (clip_attrs){-INFINITY, INFINITY};
    return QN_OK;
}

static qn_status clip_downgrade(qn_node **node)
{
    clip_attrs *a = (*node)->attrs;
    double low = (double)-INFINITY, high = (double)INFINITY;
    QN_TRY(qn_downgrade_number(&high, *node, 2));
    QN_TRY(qn_downgrade_number(&low, *node, 1));
    *a = (clip_attrs){(float)low, (float)high};
    return qn_node_resize_inputs(*node, 1);
}

static const qn_version_rule clip_versions[] = {{11, clip_upgrade, clip_downgrade}};

static qn_status clip_infer(qn_infer *self)
{
    for (int32_t i = 1; i < self->n_in; i++) {
        for (int32_t d = 0; d < qn_infer_rank(self, i); d++) {
            const int64_t dim = self->in[i]->dims[d].value;
            if (dim >= 0 && dim != 1)
                return qn_infer_fail(self, "input %d must be a single number", i);
        }
    }
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

typedef struct limits {
    double low, high;
    int64_t int_low, int_high;
    bool has_low, has_high, is_unsigned;
} limits;

static double clip_f64(double x, const void *params)
{
    const limits *l = params;
    if (l->has_low && x < l->low)
        x = l->low;
    return l->has_high && x > l->high ? l->high : x;
}

static bool less(int64_t a, int64_t b, bool is_unsigned)
{
    return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t clip_i64(int64_t x, const void *params)
{
    const limits *l = params;
    if (l->has_low && less(x, l->int_low, l->is_unsigned))
        x = l->int_low;
    return l->has_high && less(l->int_high, x, l->is_unsigned) ? l->int_high : x;
}

static qn_status clip_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *low = qn_eval_in(self, 1), *high = qn_eval_in(self, 2);
    limits l = {.has_low = low != NULL,
                .has_high = high != NULL,
                .is_unsigned = qn_dtype_get(in->dtype)->kind == QN_KIND_UINT};
    if ((low && qn_tensor_count(low) != 1) || (high && qn_tensor_count(high) != 1))
        return qn_eval_fail(self, "min and max must be single numbers");
    if (low) {
        l.low = qn_tensor_f64(low, 0);
        l.int_low = qn_tensor_i64(low, 0);
    }
    if (high) {
        l.high = qn_tensor_f64(high, 0);
        l.int_high = qn_tensor_i64(high, 0);
    }
    qn_tensor_map(self->out[0], in, clip_f64, clip_i64, &l);
    return QN_OK;
}

const qn_op qn_op_Clip = {.name = "Clip",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, clip_in),
                          QN_PORTS(out, clip_out),
                          QN_ATTRS(clip_specs, clip_attrs),
                          QN_VERSIONS(clip_versions),
                          QN_TYPE_RULES(clip_types),
                          .flags = QN_OP_ELEMENTWISE,
                          .quant = QN_QUANT_TABLE,
                          .infer = clip_infer,
                          .eval = clip_eval,
                          .brief = "min(max(x, low), high)"};
