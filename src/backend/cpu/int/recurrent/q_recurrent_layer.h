/* A recurrent layer of integers whose weights are constants: what claiming, packing and running
 * share. */
#ifndef QN_CPU_Q_RECURRENT_LAYER_H
#define QN_CPU_Q_RECURRENT_LAYER_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/int/recurrent/q_recurrent.h"

/* The claim's inputs and outputs. */
enum { QN_QRL_X, QN_QRL_LENGTHS, QN_QRL_H, QN_QRL_C };
enum { QN_QRL_Y, QN_QRL_Y_H, QN_QRL_Y_C, QN_QRL_OUTPUTS };
enum { QN_QRL_GROUP_BYTES = 4 };

/* W or R of one direction, packed, and the sums of its columns. */
typedef struct qn_qrl_packed {
    uint8_t *weights;
    double *sums;
} qn_qrl_packed;

typedef struct qn_qrl_direction {
    /* Its lists are padded. */
    qn_qcell cell;
    qn_qrl_packed x, h;
} qn_qrl_direction;

/* Bytes from the beginning of the scratch memory. The last three are a DynamicQuantizeLSTM's: X and
 * an item's state quantized, the states as floats. */
typedef struct qn_qrl_scratch {
    size_t x, sums_x, sums_h, h, c, stored, reset, rows, zeros, units;
    size_t bytes_x, bytes_h, real;
} qn_qrl_scratch;

typedef struct qn_qrl_sizes {
    int64_t steps, batch, inputs, hidden, gates, directions;
    /* What pads a gate to whole vectors; vectors of a gate; groups of a row of W and R. */
    int64_t pitch, vectors, groups_x, groups_h;
    /* Steps whose products with the sequence are done at once. */
    int64_t chunk;
} qn_qrl_sizes;

typedef struct qn_qrl {
    const qn_q_recurrent_kernels *kernels;
    const qn_q_kernels *elements;
    const qn_node *node;
    qn_qrl_sizes n;
    /* The last one: a DynamicQuantizeLSTM. */
    bool backward, by_batch, has_double_sums, is_dynamic;
    /* Which of the products, and the bytes of a weight where no side has 16 bits. */
    qn_qrl_product product;
    int weight_bytes;
    /* How X and the state are stored, and the zero point of X so. */
    qn_q_recurrent_form x, h;
    double x_zero;
    qn_qrl_direction dir[2];
    qn_qrl_scratch at;
} qn_qrl;

/* The constants of the node as qn_qcell_make wants them. */
void qn_qrl_constants(const qn_tensor *in[QN_QREC_INPUTS], const qn_node *node);
/* The input's constant; NULL: it has none. */
static inline const qn_tensor *qn_qrl_constant(const qn_node *node, int32_t i)
{
    return i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
}

/* Number j of row k of a gate of W (part 0) or R in direction d, without its zero point. */
int64_t qn_qrl_weight(const qn_qrl *s, int part, int64_t d, int64_t row, int64_t j);
/* Numbers of a group. */
static inline int64_t qn_qrl_dot(const qn_qrl *s)
{
    return s->has_double_sums ? 2 : s->kernels->dot;
}
/* Bytes of a vector of packed weights of so many groups. */
static inline int64_t qn_qrl_vector(const qn_qrl *s, int64_t groups)
{
    const int64_t bytes = s->has_double_sums ? 2 * (int64_t)sizeof(int16_t) : s->weight_bytes;
    return groups * s->kernels->lanes * qn_qrl_dot(s) * bytes;
}
static inline size_t qn_qrl_sum_size(const qn_qrl *s)
{
    return s->has_double_sums ? sizeof(double) : sizeof(int32_t);
}
/* Bytes of an item's stored state. */
static inline size_t qn_qrl_stored_size(const qn_qrl *s)
{
    return (size_t)s->n.pitch * (s->h.as_int16 ? sizeof(int16_t) : 1);
}

QN_MUST_CHECK qn_status qn_qrl_prepare(qn_claim *claim);
QN_MUST_CHECK qn_status qn_qrl_run(const void *state, void *bound, const qn_step_io *io);

#endif
