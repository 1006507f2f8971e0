/* A node that multiplies and accumulates 8- or 16-bit integers with constant weights, with what is
 * fused behind it: the kernel that all claims of such nodes share. */
#ifndef QN_CPU_Q_LAYER_H
#define QN_CPU_Q_LAYER_H

#include "backend/cpu/int/conv/q_conv.h"

/* Which input of the operator is what; -1: it has none. */
typedef struct qn_q_ports {
    int32_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} qn_q_ports;

typedef struct qn_q_layer {
    qn_q_conv conv;
    qn_q_tail tail;
    const qn_node *node;
    qn_q_ports ports;
    /* All multipliers are multiplied by this (Gemm's alpha). */
    float factor;
    /* The weights are [k, filters]. */
    bool by_column;
    qn_layout layout;
    /* The input of the claim that is x. */
    int32_t x;
    /* These are set by kernels that read or put maps elsewhere (q_conv_transpose.c,
     * q_conv_transpose_depthwise.c), else 0: their weights, whose filters repeat those of the
     * node's group after `period`, and bytes from one sample of a map to the next. */
    const uint8_t *weights;
    int64_t period, x_stride, y_stride;
} qn_q_layer;

/* Starts a layer for the claim's node; *out NULL where it is not one of integers with constant
 * parameters. Then the shape of conv, layout and by_column have to be set. */
QN_MUST_CHECK qn_status qn_q_layer_create(qn_q_layer **out, const qn_claim *claim,
                                          const qn_q_ports *ports);
/* The same for a QLinearConv of two dimensions, complete. (q_conv_claim.c) */
QN_MUST_CHECK qn_status qn_q_conv_create(qn_q_layer **out, const qn_claim *claim);
/* The first half of qn_q_layer_claim: adds x and what can be fused to the claim; *fits: the sums
 * do. */
QN_MUST_CHECK qn_status qn_q_layer_open(bool *fits, qn_q_layer *layer, qn_claim *claim);
/* Packs weights and makes parameters; *scratch: bytes that qn_q_conv_run needs. */
QN_MUST_CHECK qn_status qn_q_layer_pack(size_t *scratch, qn_q_layer *layer, qn_claim *claim);
/* Takes the node and what can be fused, where the sums fit. kernels: for 8 bits, and where a side
 * has 16. */
QN_MUST_CHECK qn_status qn_q_layer_claim(bool *taken, qn_claim *claim, qn_q_layer *layer,
                                         const qn_kernel kernels[2]);

/* Functions of the kernel. */
qn_status qn_q_layer_prepare(qn_claim *claim);
qn_status qn_q_layer_run(const void *state, void *bound, const qn_step_io *io);

/* Claims a QLinearConvTranspose of every channel by itself for `base`, a layer of it; *taken false:
 * it is of another kind. (q_conv_transpose_depthwise.c) */
QN_MUST_CHECK qn_status qn_q_conv_transpose_depthwise(bool *taken, qn_claim *claim,
                                                      const qn_q_layer *base, const qn_geometry *g);

#define QN_Q_LAYER_KERNEL(NAME)                                                                    \
    {                                                                                              \
        .name = (NAME), .prepare = qn_q_layer_prepare, .run = qn_q_layer_run                       \
    }

#endif
