/* Factors of channels: channel c of a value is divided by factor[c] in the weights of the node that computes it, and
 * multiplied again in the weights of those that read it. In between stand only operators for which a positive factor
 * may be drawn out of a channel. The float results stay what they are; what changes is how well integers tell them. */
#ifndef QN_BALANCE_H
#define QN_BALANCE_H

#include "quant/mac.h"

/* A value that carries the factors, or a product that takes them in: factor c belongs to the channels
 * [first + c * repeat, first + (c + 1) * repeat) of the axis. */
typedef struct qn_carrier {
    qn_value *value;
    qn_node *reader; /* that multiplies with its weights; NULL: the value only passes */
    int32_t axis;
    int64_t first, repeat;
} qn_carrier;

enum { QN_CARRIERS_MOST = 64 };

/* Where the factors of a value act. */
typedef struct qn_spread {
    qn_value *value;
    int64_t channels;
    qn_node *norm; /* LayerNormalization that computes the value; NULL: `mac` does */
    qn_mac mac;
    qn_carrier values[QN_CARRIERS_MOST]; /* the value itself first */
    qn_carrier readers[QN_CARRIERS_MOST];
    size_t n_values, n_readers;
    bool limited; /* by a Clip on the way: what it cuts off must not become smaller */
} qn_spread;

/* False where the value's channels cannot have factors. */
bool qn_spread_of(qn_spread *out, qn_value *value);

/* Changes the weights, and the factors that q->values tell. Fails where the graph cannot take them. The balance is
 * not kept in q->derived. */
QN_MUST_CHECK qn_status qn_balance_apply(qn_quantizer *q, const qn_derived_balance *balance);

#endif
