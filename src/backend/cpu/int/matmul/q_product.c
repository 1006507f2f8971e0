/* Products of bytes whose zero point is known only while running, by constant weights. */
#include "backend/cpu/int/matmul/q_product.h"

#include "ops/quantize.h"

void qn_q_product_open(qn_q_product *p, int64_t rows, int64_t k, int64_t columns, bool is_signed)
{
    *p = (qn_q_product){.columns = columns};
    p->conv = qn_q_conv_of_rows(rows, k, columns);
    p->conv.source.is_signed = is_signed;
    p->conv.mac.epilogue = (qn_q_epilogue){.floats = true, .path = QN_Q_EPILOGUE_BY_TILE};
}

bool qn_q_product_fits(qn_q_product *p, const qn_q_weights *w)
{
    p->conv.weight_info.fit_int8 = qn_q_weights_fit(w, p->columns, p->conv.shape.channels, 8);
    return qn_q_conv_fits(&p->conv);
}

qn_status qn_q_product_list(float **out, const qn_q_product *p, qn_builder *builder,
                            const qn_tensor *list, int64_t first)
{
    const int64_t count = qn_q_conv_params(&p->conv);
    float *to = qn_build_alloc(builder, (size_t)count * sizeof *to);
    QN_TRY_ALLOC(qn_build_context(builder), to);
    for (int64_t i = 0; i < p->columns && list; i++)
        to[i] = (float)qn_q_element(list, first + i);
    *out = to;
    return QN_OK;
}

static qn_status sum_weights(qn_q_product *p, qn_builder *builder, const qn_q_weights *w)
{
    int32_t *sums = qn_build_alloc(builder, (size_t)qn_q_conv_params(&p->conv) * sizeof *sums);
    QN_TRY_ALLOC(qn_build_context(builder), sums);
    for (int64_t k = 0; k < p->conv.shape.channels; k++) {
        for (int64_t i = 0; i < p->columns; i++)
            sums[i] += qn_q_weight(w, i, k * p->columns + i);
    }
    p->sums = sums;
    return QN_OK;
}

static size_t in_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

qn_status qn_q_product_pack(qn_q_product *p, qn_builder *builder, const qn_q_weights *w)
{
    float *zeros = NULL;
    QN_TRY(qn_q_conv_make_plan(&p->conv, builder, qn_build_threads(builder)));
    QN_TRY(qn_q_conv_pack(&p->conv, builder, w));
    QN_TRY(sum_weights(p, builder, w));
    QN_TRY(qn_q_product_list(&zeros, p, builder, NULL, 0));
    p->conv.mac.epilogue.bias = zeros;
    p->start = in_lines((size_t)qn_q_conv_params(&p->conv) * sizeof(int32_t));
    p->own = in_lines(qn_q_conv_scratch(&p->conv));
    return QN_OK;
}

size_t qn_q_product_scratch(const qn_q_product *p)
{
    return p->start + p->own;
}

void qn_q_product_run(const qn_q_product *p, const qn_q_conv_data *data, int32_t zero,
                      const float *scale, int threads)
{
    qn_q_conv c = p->conv;
    int32_t *start = (int32_t *)(void *)data->scratch;
    qn_q_conv_data rest = *data;
    c.source.zero = zero;
    const int32_t padding = qn_q_conv_padding(&c);
    const int64_t count = qn_q_conv_params(&c);
    for (int64_t i = 0; i < count; i++)
        start[i] = -padding * p->sums[i];
    c.mac.start = start;
    c.mac.epilogue.scale = scale;
    rest.scratch += p->start;
    qn_q_conv_run(&c, &rest, threads);
}
