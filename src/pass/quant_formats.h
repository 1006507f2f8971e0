/* The forms in which a file can say that a network is quantized; docs/quantization.md tells what
 * each is for. */
#ifndef QN_QUANT_FORMATS_H
#define QN_QUANT_FORMATS_H

#include "pass/pass.h"

/* Of the metadata that say which form a file has. */
#define QN_QUANT_FORMAT_KEY "quench.form"

typedef struct qn_quant_format {
    /* "qdq" */
    const char *name;
    /* One line for help and docs */
    const char *brief;
    /* Brings a model with pairs of QuantizeLinear and DequantizeLinear into the form. */
    qn_status (*apply)(qn_model *model);
} qn_quant_format;

extern const qn_quant_format qn_quant_formats[];
extern const size_t qn_quant_formats_count;
/* Fails, naming those there are, where there is no such form. */
QN_MUST_CHECK qn_status qn_quant_format_find(const qn_quant_format **out, qn_context *ctx,
                                             const char *name);

/* Whether the graph or a body inside it has operators of quantization: one that has none has no
 * form. */
bool qn_graph_is_quantized(const qn_graph *graph);

/* Float operators instead of every Q and D: (fake.c) */
QN_MUST_CHECK qn_status qn_fake_quantize(qn_model *model);

#endif
