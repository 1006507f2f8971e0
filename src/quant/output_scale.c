/* Scales of integer outputs in the model's metadata. */
#include "quant/output_scale.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "ops/eval.h"
#include "ops/numerics.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"

/* The name of the output follows. */
static const char prefix[] = "quench.output_scale.";

qn_status qn_output_set_scale(qn_model *model, const char *output, float scale)
{
    const char *key = qn_arena_format(&model->arena, "%s%s", prefix, output);
    char number[QN_NUMBER_SIZE];
    QN_TRY_ALLOC(model->ctx, key);
    return qn_model_set_metadata(model, key, qn_number_format_float(number, scale));
}

/* Tools may strip metadata: where the output is the integers of a Q as a D of scale 1 gives them,
 * the scale is that of the Q. 1: it is not so, or another engine's file. */
static double scale_in_graph(const qn_model *model, const char *output)
{
    const qn_value *value = qn_graph_value(model->graph, output);
    const qn_node *d = value ? value->producer : NULL, *q = d ? d->in[0]->producer : NULL;
    if (!qn_model_numerics(model, QN_NUMERICS_FIXED_POINT) || !qn_is_dequantize(d) ||
        !qn_is_quantize(q) || !qn_match_is(d->in[1], 1) || !q->in[1]->data ||
        qn_tensor_count(q->in[1]->data) != 1)
        return 1;
    const double scale = qn_tensor_f64(q->in[1]->data, 0);
    return isfinite(scale) && scale > 0 ? scale : 1;
}

double qn_output_scale(const qn_model *model, const char *output)
{
    const size_t length = sizeof prefix - 1;
    for (size_t i = 0; i < model->metadata.count; i++) {
        const qn_metadata_entry *pair = &model->metadata.at[i];
        if (strncmp(pair->key, prefix, length) != 0 || strcmp(pair->key + length, output) != 0)
            continue;
        double scale = 0;
        if (qn_number_parse(&scale, pair->value, strlen(pair->value)) && isfinite(scale) &&
            scale > 0)
            return scale;
    }
    return scale_in_graph(model, output);
}

const char *qn_output_scale_format(char out[QN_OUTPUT_SCALE_TEXT], const qn_model *model,
                                   const char *output)
{
    _Static_assert((int)QN_OUTPUT_SCALE_TEXT >= (int)QN_NUMBER_SIZE, "numbers fit");
    return qn_number_format_float(out, (float)qn_output_scale(model, output));
}
