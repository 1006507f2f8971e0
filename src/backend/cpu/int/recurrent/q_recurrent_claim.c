/* QLSTM, QGRU, QRNN and DynamicQuantizeLSTM of constant weights. */
#include "backend/cpu/int/recurrent/q_recurrent_layer.h"
#include "base/cpu.h"
#include "ops/dynamic_lstm.h"

enum {
    /* Rows of the sequence whose products are done at once. */
    ROWS_AT_ONCE = 64,
    /* The longest row whose sum of products of 8 bits fits 32 bits. */
    LONGEST_ROW = 65536
};

/* The slots of the claim's inputs. */
static const int32_t given[2][4] = {
    {QN_QREC_X, QN_QREC_LENGTHS, QN_QREC_H, QN_QREC_C},
    {QN_DLSTM_X, QN_DLSTM_LENGTHS, QN_DLSTM_H, QN_DLSTM_C},
};

static const qn_q_recurrent_kernels *kernels_get(void)
{
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_VNNI)
        return &qn_q_recurrent_kernels_vnni;
    if (isa >= QN_ISA_AVX512)
        return &qn_q_recurrent_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_q_recurrent_kernels_avx2;
#endif
    return &qn_q_recurrent_kernels_base;
}

static qn_q_recurrent_form form_of(const qn_qrl *s, qn_dtype dtype)
{
    enum { HALF_BYTE = 128, HALF_WORD = 32768 };
    const bool as_int16 = s->has_double_sums || s->kernels->dot == 2;
    const int32_t offset = dtype == QN_UINT16              ? HALF_WORD
                           : dtype == QN_INT8 && !as_int16 ? -HALF_BYTE
                                                           : 0;
    return (qn_q_recurrent_form){dtype, offset, as_int16};
}

static size_t take(size_t *end, int64_t count, size_t size)
{
    const size_t first = *end;
    *end += ((size_t)count * size + 63) / 64 * 64;
    return first;
}

static void place_scratch(qn_qrl *s, qn_claim *claim)
{
    const qn_qrl_sizes *n = &s->n;
    const int64_t rows = n->chunk * n->batch, columns = n->gates * n->pitch;
    size_t end = 0;
    s->at.x = take(&end, rows * n->groups_x, QN_QRL_GROUP_BYTES);
    s->at.sums_x = take(&end, rows * columns, qn_qrl_sum_size(s));
    s->at.sums_h = take(&end, n->batch * columns, qn_qrl_sum_size(s));
    s->at.h = take(&end, n->batch * n->pitch, sizeof(int32_t));
    s->at.c = take(&end, n->batch * n->pitch, sizeof(int32_t));
    s->at.stored = take(&end, n->batch, qn_qrl_stored_size(s));
    s->at.reset = take(&end, n->batch, qn_qrl_stored_size(s));
    s->at.rows = take(&end, rows, sizeof(void *));
    s->at.zeros = take(&end, rows, sizeof(double));
    s->at.units = take(&end, n->batch, sizeof(double));
    if (s->is_dynamic) {
        s->at.bytes_x = take(&end, n->steps * n->batch * n->inputs, 1);
        s->at.bytes_h = take(&end, n->hidden, 1);
        s->at.real = take(&end, n->batch * n->pitch, sizeof(float));
    }
    claim->scratch = end;
}

/* All but sequence, lengths and states are constants. */
static bool is_wanted(const qn_node *node, const int32_t slots[4])
{
    for (int32_t i = 0; i < node->n_in; i++) {
        bool runs = false;
        for (int k = 0; k < 4; k++)
            runs = runs || slots[k] == i;
        if (!runs && node->in[i] && !node->in[i]->data)
            return false;
    }
    return true;
}

/* Left out, or of `count` elements when the plan is made. */
static bool fits(const qn_claim *claim, int32_t i, int64_t count)
{
    const qn_value *value = i < claim->node->n_in ? claim->node->in[i] : NULL;
    qn_tensor shape;
    return !value ||
           (qn_build_shape(&shape, claim->builder, value) && qn_tensor_count(&shape) == count);
}

/* A side has 16 bits, or weights without their zero points more than 8. */
static bool has_double_sums(const qn_qrl *s, const qn_tensor *const *in)
{
    if (!s->is_dynamic)
        return qn_dtype_size(in[QN_QREC_X_ZERO]->dtype) + qn_dtype_size(in[QN_QREC_W]->dtype) +
                   qn_dtype_size(in[QN_QREC_R]->dtype) + qn_dtype_size(in[QN_QREC_Y_ZERO]->dtype) >
               4;
    for (int part = 0; part < 2; part++) {
        const int64_t depth = part ? s->n.hidden : s->n.inputs, rows = s->n.gates * s->n.hidden;
        for (int64_t i = 0; i < s->n.directions * rows * depth; i++) {
            const int64_t w = qn_qrl_weight(s, part, i / depth / rows, i / depth % rows, i % depth);
            if (w < INT8_MIN || w > INT8_MAX)
                return true;
        }
    }
    return false;
}

/* Weights of 8 bits have 16 where all of them are near: they need not be widened then. */
static void choose_product(qn_qrl *s)
{
    const qn_qrl_sizes *n = &s->n;
    const int64_t weights = n->gates * n->pitch * (n->groups_x + n->groups_h) * qn_qrl_dot(s);
    const bool is_near = (int64_t)sizeof(int16_t) * weights <= s->kernels->short_below;
    s->product = s->has_double_sums ? QN_QRL_WIDE : is_near ? QN_QRL_SHORT : QN_QRL_NARROW;
    s->weight_bytes = is_near ? (int)sizeof(int16_t) : s->kernels->weight_bytes;
}

static void open_state(qn_qrl *s, const qn_node *node, const qn_tensor *x)
{
    const qn_recurrent_attrs *a = node->attrs;
    const qn_tensor *in[QN_QREC_INPUTS];
    const bool dynamic = node->op == &qn_op_ms_DynamicQuantizeLSTM;
    qn_qrl_constants(in, node);
    *s = (qn_qrl){.kernels = kernels_get(),
                  .elements = qn_q_kernels_get(),
                  .node = node,
                  .n = {.steps = x->dims[a->layout ? 1 : 0],
                        .batch = x->dims[a->layout ? 0 : 1],
                        .inputs = x->dims[2],
                        .hidden = in[QN_QREC_R]->dims[dynamic ? 1 : 2],
                        .gates = qn_qcell_gates(node->op),
                        .directions = qn_recurrent_directions(a)},
                  .backward = a->direction == QN_DIRECTION_REVERSE,
                  .by_batch = a->layout != 0,
                  .is_dynamic = dynamic};
    s->has_double_sums = has_double_sums(s, in);
    qn_qrl_sizes *n = &s->n;
    n->vectors = (n->hidden + s->kernels->lanes - 1) / s->kernels->lanes;
    n->pitch = n->vectors * s->kernels->lanes;
    n->groups_x = (n->inputs + qn_qrl_dot(s) - 1) / qn_qrl_dot(s);
    n->groups_h = (n->hidden + qn_qrl_dot(s) - 1) / qn_qrl_dot(s);
    choose_product(s);
    n->chunk = QN_MIN(n->steps, QN_MAX(ROWS_AT_ONCE / QN_MAX(n->batch, 1), 1));
    s->x = form_of(s, dynamic ? QN_UINT8 : x->dtype);
    s->h = form_of(s, dynamic ? QN_UINT8 : in[QN_QREC_Y_ZERO]->dtype);
    if (!dynamic)
        s->x_zero = (double)(qn_tensor_i64(in[QN_QREC_X_ZERO], 0) - s->x.offset);
}

static const qn_kernel kernels[2] = {
    {.name = "int recurrent", .prepare = qn_qrl_prepare, .run = qn_qrl_run},
    {.name = "dynamic int8 lstm", .prepare = qn_qrl_prepare, .run = qn_qrl_run},
};

static void add_ends(qn_claim *claim, const int32_t slots[4])
{
    const qn_node *node = claim->node;
    for (size_t i = 0; i < 4; i++)
        qn_claim_in(claim, slots[i] < node->n_in ? node->in[slots[i]] : NULL, QN_ROWS);
    for (int32_t o = 0; o < QN_QRL_OUTPUTS; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
}

qn_status qn_claim_q_recurrent(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const bool dynamic = node->op == &qn_op_ms_DynamicQuantizeLSTM;
    const int32_t *slots = given[dynamic];
    const qn_tensor *in[QN_QREC_INPUTS];
    qn_tensor x;
    qn_qrl_constants(in, node);
    if (!is_wanted(node, slots) || node->in[slots[QN_QRL_X]]->data ||
        !qn_build_shape(&x, claim->builder, node->in[slots[QN_QRL_X]]) ||
        qn_tensor_count(&x) == 0 || qn_tensor_count(in[QN_QREC_R]) == 0)
        return QN_OK;
    qn_qrl *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    open_state(s, node, &x);
    const int64_t states = s->n.directions * s->n.batch * s->n.hidden;
    if (s->n.inputs > LONGEST_ROW || s->n.hidden > LONGEST_ROW ||
        !fits(claim, slots[QN_QRL_LENGTHS], s->n.batch) || !fits(claim, slots[QN_QRL_H], states) ||
        !fits(claim, slots[QN_QRL_C], states))
        return QN_OK;
    add_ends(claim, slots);
    place_scratch(s, claim);
    claim->state = s;
    claim->kernel = &kernels[dynamic];
    *taken = true;
    return QN_OK;
}
