/* Domains and metadata that say how a model's integers are computed. */
#include "ops/numerics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"

static const struct {
    const char *domain, *key;
    /* What the metadata say for 1; NULL: the number. */
    const char *word;
    int64_t least, most;
} rows[QN_NUMERICS_COUNT] = {
    [QN_NUMERICS_FIXED_POINT] = {"quench.fixed_point", "quench.requantize", "fixed", 1, 1},
    [QN_NUMERICS_TABLE_BITS] = {"quench.table_bits", "quench.table_bits", NULL, QN_TABLE_BITS_MIN,
                                QN_TABLE_BITS_MAX},
    [QN_NUMERICS_DOUBLE_ROUNDING] = {"quench.double_rounding", "quench.double_rounding", NULL, 1,
                                     1},
};

const char *qn_numerics_domain(qn_numerics what)
{
    return rows[what].domain;
}

int64_t qn_model_numerics(const qn_model *model, qn_numerics what)
{
    const int64_t value = qn_model_opset(model, rows[what].domain);
    return value >= rows[what].least && value <= rows[what].most ? value : 0;
}

qn_status qn_model_set_numerics(qn_model *model, qn_numerics what, int64_t value)
{
    char number[32];
    const char *text = number;
    QN_TRY(qn_model_set_opset(model, rows[what].domain, value));
    if (!value && !qn_model_metadata(model, rows[what].key))
        return QN_OK;
    snprintf(number, sizeof number, "%lld", (long long)value);
    if (rows[what].word)
        text = value ? rows[what].word : "float";
    return qn_model_set_metadata(model, rows[what].key, text);
}

/* What the metadata say; 0: nothing that counts. */
static int64_t metadata_value(const qn_model *model, qn_numerics what)
{
    const char *text = qn_model_metadata(model, rows[what].key);
    char *end = NULL;
    if (!text || !*text)
        return 0;
    if (rows[what].word)
        return strcmp(text, rows[what].word) == 0;
    const int64_t value = strtoll(text, &end, 10);
    return !*end && value >= rows[what].least && value <= rows[what].most ? value : 0;
}

qn_status qn_model_restore_numerics(qn_model *model)
{
    for (int what = 0; what < QN_NUMERICS_COUNT; what++) {
        const int64_t imported = qn_model_numerics(model, (qn_numerics)what);
        const int64_t value = imported ? imported : metadata_value(model, (qn_numerics)what);
        if (value)
            QN_TRY(qn_model_set_numerics(model, (qn_numerics)what, value));
    }
    return QN_OK;
}

static bool is_byte_convolution(const qn_node *node)
{
    return (node->op == &qn_op_QLinearConv || node->op == &qn_op_qn_QLinearConvTranspose) &&
           qn_dtype_size(node->in[0]->type.dtype) == 1 &&
           qn_dtype_size(node->in[3]->type.dtype) == 1 &&
           qn_dtype_size(node->out[0]->type.dtype) == 1;
}

qn_requantization qn_node_requantization(const qn_node *node)
{
    const qn_model *model = node->graph->model;
    if (qn_model_numerics(model, QN_NUMERICS_FIXED_POINT))
        return QN_REQUANTIZE_FIXED_POINT;
    return is_byte_convolution(node) && qn_model_numerics(model, QN_NUMERICS_DOUBLE_ROUNDING)
               ? QN_REQUANTIZE_TWICE
               : QN_REQUANTIZE_FLOAT;
}
