/* The formats of quantized files (QDQ, QOperator, fake quantization); docs/quantization.md says
 * what each is for. */
#ifndef QN_QUANT_FORMATS_H
#define QN_QUANT_FORMATS_H

#include "pass/pass.h"

/* The metadata key of a file's format. */
#define QN_QUANT_FORMAT_KEY "quench.form"

typedef struct qn_quant_format {
    /* "qdq" */
    const char *name;
    /* One line for help and docs */
    const char *brief;
    /* Brings a model with QuantizeLinear and DequantizeLinear nodes into the format. */
    qn_status (*apply)(qn_model *model);
} qn_quant_format;

extern const qn_quant_format qn_quant_formats[];
extern const size_t qn_quant_formats_count;
/* Finds a format by name. Fails, listing the names, where there is none. */
QN_MUST_CHECK qn_status qn_quant_format_find(const qn_quant_format **out, qn_context *ctx,
                                             const char *name);

/* Whether the graph or a subgraph has quantization operators; a graph without has no format. */
bool qn_graph_is_quantized(const qn_graph *graph);

/* fake_quantize.c: replaces every Q and D by float operators. */
QN_MUST_CHECK qn_status qn_fake_quantize(qn_model *model);

#endif
