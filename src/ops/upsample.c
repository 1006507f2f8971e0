/* Upsample, the old name of Resize. */
#include <string.h>

#include "ops/infer.h"
#include "ops/resize.h"
#include "ops/versions.h"

#define NUMERIC (QN_SET_NUMBER | QN_SET_BOOL | QN_SET_STRING)

typedef struct upsample_attrs {
    int64_t mode;
    /* Opset 7 */
    qn_floats scales;
    /* Opset 1 */
    float height_scale, width_scale;
} upsample_attrs;
static const char *const upsample_words[] = {"nearest", "linear", "bilinear", NULL};
static const qn_attr_spec upsample_specs[] = {
    QN_ENUM_ATTR(upsample_attrs, mode, 0, upsample_words),
    QN_ATTR(upsample_attrs, scales, FLOATS, .until = 9),
    QN_FLOAT_ATTR(upsample_attrs, height_scale, 0, .until = 7),
    QN_FLOAT_ATTR(upsample_attrs, width_scale, 0, .until = 7)};
static const qn_port upsample_in[] = {{"X", 0, NUMERIC, 0},
                                      {"scales", 0, QN_SET(QN_FLOAT32), QN_OPTIONAL}};

static const qn_port upsample_out[] = {{"Y", 0, NUMERIC, 0}};

static qn_status upsample_scales(qn_value **out, qn_node *node, const float *scales, size_t count)
{
    const int64_t dims[1] = {(int64_t)count};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 1, dims);
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, node->graph->ctx, node->graph->arena, &type));
    if (count)
        memcpy(tensor->data, scales, count * sizeof *scales);
    return qn_value_constant(out, node->graph, "scales", tensor);
}

/* Opset 10 renamed it to Resize; scales were attributes before opset 9. */
static qn_status upsample_upgrade(qn_node **node)
{
    const upsample_attrs old = *(const upsample_attrs *)(*node)->attrs;
    const float sides[4] = {1, 1, old.height_scale, old.width_scale};
    qn_value *scales = (*node)->n_in > 1 ? (*node)->in[1] : NULL;
    if (!scales && old.scales.at)
        QN_TRY(upsample_scales(&scales, *node, old.scales.at, old.scales.count));
    else if (!scales && old.height_scale > 0 && old.width_scale > 0)
        QN_TRY(upsample_scales(&scales, *node, sides, 4));
    if (!scales)
        return qn_node_fail(*node, QN_E_FORMAT, "has no scales");
    qn_resize_attrs *a = qn_arena_alloc((*node)->graph->arena, sizeof *a);
    QN_TRY_ALLOC((*node)->graph->ctx, a);
    for (size_t i = 0; i < QN_COUNT_OF(qn_resize_specs); i++)
        qn_attr_set_default(a, &qn_resize_specs[i]);
    a->mode = old.mode ? QN_RESIZE_LINEAR : QN_RESIZE_NEAREST;
    a->coordinate_transformation_mode = QN_COORD_ASYMMETRIC;
    a->nearest_mode = QN_NEAREST_FLOOR;
    (*node)->op = &qn_op_Resize;
    (*node)->attrs = a;
    QN_TRY(qn_node_resize_inputs(*node, 3));
    QN_TRY(qn_node_set_input(*node, 1, NULL));
    return qn_node_set_input(*node, 2, scales);
}

static qn_status upsample_downgrade_9(qn_node **node)
{
    return qn_downgrade_floats(*node, &((upsample_attrs *)(*node)->attrs)->scales, 1);
}

static qn_status upsample_downgrade_7(qn_node **node)
{
    upsample_attrs *a = (*node)->attrs;
    const qn_floats scales = a->scales;
    if (scales.count != 4 || scales.at[0] != 1 || scales.at[1] != 1)
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "before opset 7 only height and width could get larger");
    *a = (upsample_attrs){.mode = a->mode ? 2 : 0, /* bilinear was the word */
                          .height_scale = scales.at[2],
                          .width_scale = scales.at[3]};
    return QN_OK;
}

static const qn_version_rule upsample_versions[] = {
    {7, NULL, upsample_downgrade_7}, {9, NULL, upsample_downgrade_9}, {10, upsample_upgrade, NULL}};

qn_status qn_upsample_of_resize(qn_value **out, qn_node *node)
{
    QN_TRY(qn_node_downgrade(&node, 10));
    const qn_node_spec spec = {
        .op = &qn_op_Upsample, .before = node, .in = {node->in[0], node->in[1]}, .n_in = 2};
    const qn_tensor *scales = node->in[1]->data;
    for (int64_t i = 0; scales && i < qn_tensor_count(scales); i++) {
        if (!(qn_tensor_f64(scales, i) >= 1))
            return qn_node_fail(node, QN_E_UNSUPPORTED,
                                "before opset 10 nothing could get smaller");
    }
    qn_node *fresh;
    QN_TRY(qn_node_build(&fresh, node->graph, &spec));
    ((upsample_attrs *)fresh->attrs)->mode = ((const qn_resize_attrs *)node->attrs)->mode;
    *out = fresh->out[0];
    return QN_OK;
}

static const qn_type_rule upsample_types[] = {
    {7, QN_SET_TENSOR & ~(QN_SET_FLOAT | QN_SET_INDEX | QN_SET_BOOL)}};

const qn_op qn_op_Upsample = {.name = "Upsample",
                              .domain = "",
                              .since = 1,
                              .until = 10,
                              QN_PORTS(in, upsample_in),
                              QN_PORTS(out, upsample_out),
                              QN_ATTRS(upsample_specs, upsample_attrs),
                              QN_VERSIONS(upsample_versions),
                              QN_TYPE_RULES(upsample_types),
                              .quant = QN_QUANT_PASS,
                              .infer = qn_infer_resize,
                              .eval = qn_eval_resize,
                              .brief = "old name of Resize"};
