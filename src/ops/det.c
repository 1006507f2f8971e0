/* Det: determinants of square matrices. */
#include <math.h>
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

static const qn_port det_in[] = {{"X", 'T', QN_SET_FLOAT, 0}};
static const qn_port det_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

static qn_status det_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    qn_dim same;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    if (in->rank < 2 || !qn_dim_merge(&same, in->dims[in->rank - 1], in->dims[in->rank - 2]))
        return qn_infer_fail(self, "the last two dimensions must be equal");
    qn_infer_set(self, 0, in->dtype, in->rank - 2, in->dims);
    return QN_OK;
}

/* Elimination with the largest pivot of each column; m [n, n] is used up. */
static qn_status determinant(double *out, qn_context *ctx, double *m, int64_t n)
{
    double det = 1;
    *out = 0;
    for (int64_t c = 0; c < n; c++) {
        QN_TRY(qn_check_cancel(ctx));
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            pivot = fabs(m[r * n + c]) > fabs(m[pivot * n + c]) ? r : pivot;
        if (m[pivot * n + c] == 0)
            return QN_OK;
        for (int64_t k = 0; pivot != c && k < n; k++) {
            const double swapped = m[c * n + k];
            m[c * n + k] = m[pivot * n + k];
            m[pivot * n + k] = swapped;
        }
        det *= pivot != c ? -m[c * n + c] : m[c * n + c];
        for (int64_t r = c + 1; r < n; r++) {
            const double factor = m[r * n + c] / m[c * n + c];
            for (int64_t k = c; k < n; k++)
                m[r * n + k] -= factor * m[c * n + k];
        }
    }
    *out = det;
    return QN_OK;
}

static qn_status det_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t n = in->dims[in->rank - 1], count = qn_tensor_count(out);
    double *all;
    QN_TRY(qn_eval_doubles(self, &all, in));
    for (int64_t i = 0; i < count; i++) {
        double det;
        QN_TRY(determinant(&det, self->ctx, all + i * n * n, n));
        qn_store_f64(out->data, out->dtype, i, &det, 1);
    }
    return QN_OK;
}

const qn_op qn_op_Det = {.name = "Det",
                         .domain = "",
                         .since = 11,
                         QN_PORTS(in, det_in),
                         QN_PORTS(out, det_out),
                         QN_TYPE_RULES(qn_bfloat16_22),
                         .quant = QN_QUANT_FLOAT,
                         .infer = det_infer,
                         .eval = det_eval,
                         .brief = "determinant"};
