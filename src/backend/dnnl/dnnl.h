/* The backend on oneDNN: convolutions, matrix products, pools, normalization. */
#ifndef QN_DNNL_H
#define QN_DNNL_H

#include "run/backend.h"

extern const qn_backend qn_backend_dnnl;

/* One function per row of the table in dnnl.c. */
typedef qn_status qn_dnnl_claim_fn(bool *taken, qn_claim *claim);
qn_dnnl_claim_fn qn_dnnl_claim_conv, qn_dnnl_claim_conv_transpose;           /* conv.c */
qn_dnnl_claim_fn qn_dnnl_claim_conv_by_input, qn_dnnl_claim_conv_by_weights; /* conv_grad.c */
qn_dnnl_claim_fn qn_dnnl_claim_matmul, qn_dnnl_claim_gemm;                   /* matmul.c */
qn_dnnl_claim_fn qn_dnnl_claim_max_pool, qn_dnnl_claim_average_pool, qn_dnnl_claim_lrn; /* pool.c */

#endif
