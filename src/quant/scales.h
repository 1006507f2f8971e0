/* The scale file: everything that was derived from data, as JSON. Read back it gives the same
 * quantized model, byte for byte, without the data; people may change it by hand.
 * docs/quantization.md describes it.
 *
 *   {"format": "quench-scales", "version": 1,
 *    "model": fingerprint, "data": fingerprint, "target", "given", "bits", "method",
 *    "percentile", "refinements": [], "float": [], "widths": [], "inputs": [],
 *    "unified", "reduced_range", "bits_asked", "table_bits", "mix": {},
 *    "tensors": {NAME: {"method", "type", "bits", "scale", "zero_point", "range",
 *                       "narrow": {"scale", "zero_point"}} or {"same_as": NAME}},
 *    "balances": [{"tensor", "factor": []}],
 *    "layers": {NAME of the result: {"node", "operator", "weight", "type", "bits", "axis", "scale",
 *                                    "zero_point", "range", "bias_correction": []}}} */
#ifndef QN_SCALES_H
#define QN_SCALES_H

#include "base/fingerprint.h"
#include "base/json.h"
#include "quant/mix.h"
#include "quant/params.h"

#define QN_SCALES_FORMAT "quench-scales"
enum { QN_SCALES_VERSION = 1 };

typedef struct qn_scales {
    qn_context *ctx;
    qn_json_document *document;
    qn_arena arena;
    qn_fingerprint model, data;
    /* The widths and methods of single nodes; NULL: none. */
    qn_mix *mix;
    /* The method and refinements that the scales were made with. */
    qn_param_options params;
    qn_quant_settings settings;
} qn_scales;

/* Reads what rules and metadata need: settings, method, refinements. */
QN_MUST_CHECK qn_status qn_scales_load(qn_scales **out, qn_context *ctx, const char *path);
/* The same from bytes that outlive the scales; `name` is for messages. */
QN_MUST_CHECK qn_status qn_scales_read(qn_scales **out, qn_context *ctx, const void *data,
                                       size_t size, const char *name);
void qn_scales_free(qn_scales *scales);
/* Fails where the scales are not those of this float graph, and notes where they were made with
 * something else than what is given (settings.given). */
QN_MUST_CHECK qn_status qn_scales_check(const qn_scales *scales, qn_fingerprint model,
                                        const char *given);
/* Fills q->encodings from the file instead of from statistics. The quantizer was made with
 * scales->settings. */
QN_MUST_CHECK qn_status qn_scales_apply(qn_quantizer *q, const qn_scales *scales);

/* The text of a scale file for q->encodings; freed with qn_text_free. */
QN_MUST_CHECK qn_status qn_scales_write(char **out, const qn_quantizer *q, qn_fingerprint model,
                                        qn_fingerprint data, const qn_param_options *params);

#endif
