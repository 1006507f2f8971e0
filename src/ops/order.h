/* Order among the elements of a tensor. */
#ifndef QN_ORDER_H
#define QN_ORDER_H

#include "ops/eval.h"

/* <0, 0, >0 as strcmp; NaN behind every number, strings by their bytes. */
int qn_order_compare(const qn_tensor *tensor, int64_t a, int64_t b);
/* Sorts element indices by it; equal elements keep their order. */
QN_MUST_CHECK qn_status qn_order_sort(qn_eval *self, const qn_tensor *tensor, int64_t *index,
                                      int64_t count, bool descending);

#endif
