#include <string.h>

#include "quant/quant.h"

#define COMMON_CAN                                                                                 \
    (QN_CAN_ADD | QN_CAN_MUL | QN_CAN_POOL | QN_CAN_CONCAT | QN_CAN_PRODUCT | QN_CAN_MOVE)

const qn_profile qn_profiles[] = {
    {.name = "quench",
     .brief = "quench's own engine",
     .activation = {QN_UINT8, QN_UINT16},
     .weight = {QN_INT8, QN_INT16},
     .per_channel = true,
     .per_channel_transposed = true,
     .drop_limits = true,
     .bias_integer = true,
     .wide = true,
     .operators = true,
     .any_limit = true,
     .rounds_behind = true,
     .float_result = true,
     .can = QN_CAN_ALL,
     .opset = {13, 21}},
    {.name = "ort",
     .brief = "ONNX Runtime on a CPU",
     .activation = {QN_UINT8, QN_UINT16},
     .weight = {QN_INT8, QN_INT16},
     .per_channel = true,
     .drop_limits = true,
     .bias_integer = true,
     .operators = true,
     .can = COMMON_CAN | QN_CAN_SIGMOID,
     .opset = {13, 21}},
    {.name = "openvino",
     .brief = "OpenVINO on a CPU",
     .activation = {QN_UINT8, QN_UINT16},
     .weight = {QN_INT8, QN_INT16},
     .per_channel = true,
     .per_channel_transposed = true,
     .unify_concat = true,
     .any_limit = true,
     .float_result = true,
     .can = COMMON_CAN,
     .opset = {13, 21}},
    {.name = "tensorrt",
     .brief = "TensorRT with explicit quantization",
     .activation = {QN_INT8, QN_INT16},
     .weight = {QN_INT8, QN_INT16},
     .symmetric = true,
     .per_channel = true,
     .unify_concat = true,
     .any_limit = true,
     .float_result = true,
     .can = QN_CAN_ADD | QN_CAN_POOL | QN_CAN_CONCAT | QN_CAN_PRODUCT | QN_CAN_MOVE,
     .opset = {13, 21}},
    {.name = "qdq-generic",
     .brief = "any engine that knows QuantizeLinear and DequantizeLinear",
     .activation = {QN_UINT8, QN_UINT16},
     .weight = {QN_INT8, QN_INT16},
     .unify_concat = true,
     .any_limit = true,
     .float_result = true,
     .can = COMMON_CAN,
     .opset = {13, 21}},
};
const size_t qn_profiles_count = QN_COUNT_OF(qn_profiles);

static void list_names(char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < qn_profiles_count; i++) {
        const size_t length = strlen(qn_profiles[i].name) + 2;
        if (at + length >= size)
            return;
        if (i) {
            memcpy(out + at, ", ", 2);
            at += 2;
        }
        memcpy(out + at, qn_profiles[i].name, length - 1);
        at += length - 2;
    }
}

qn_status qn_profile_find(const qn_profile **out, qn_context *ctx, const char *name)
{
    char names[256];
    *out = &qn_profiles[0];
    if (!name)
        return QN_OK;
    for (size_t i = 0; i < qn_profiles_count; i++) {
        *out = &qn_profiles[i];
        if (strcmp(qn_profiles[i].name, name) == 0)
            return QN_OK;
    }
    list_names(names, sizeof names);
    return qn_fail(ctx, QN_E_INVALID, "there is no target '%s': it is one of %s", name, names);
}
