/* Order among the elements of a tensor. */
#ifndef QN_ORDER_H
#define QN_ORDER_H

#include "ops/eval.h"

/* <0, 0, >0 as strcmp; NaN behind every number, strings by their bytes. */
int qn_order_compare(const qn_tensor *tensor, int64_t a, int64_t b);
/* Sorts indices by `compare`; equal ones keep their order. `spare` has room for half of them. */
typedef int qn_order_fn(const void *what, int64_t a, int64_t b);
void qn_order_merge(qn_order_fn *compare, const void *what, int64_t *index, int64_t *spare,
                    int64_t count);
/* The same with scratch memory of the kernel. */
QN_MUST_CHECK qn_status qn_order_sort(qn_eval *self, qn_order_fn *compare, const void *what,
                                      int64_t *index, int64_t count);

#endif
