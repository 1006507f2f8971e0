/* The table of targets: engines and chips. */
#include <ctype.h>
#include <string.h>

#include "quant/quant.h"

#define COMMON_CAN                                                                                 \
    (QN_CAN_ADD | QN_CAN_MUL | QN_CAN_POOL | QN_CAN_CONCAT | QN_CAN_PRODUCT | QN_CAN_MOVE)

/* Chips of the manual's table differ only in whether they compute in 16 bits. */
#define CHIP(NAME, INT16)                                                                          \
    {                                                                                              \
        .name = (NAME), .brief = "a chip", .symmetric = true, .per_channel = true,                 \
        .per_channel_transposed = true, .bias_integer = true, .any_clip = true,                    \
        .can = QN_CAN_ALL | QN_CAN_POW, .opset = 13, .fixed_point = true, .widths = {              \
            [QN_WIDTH_8] = {.computed = true, .method = "kl"},                                     \
            [QN_WIDTH_16] = {.computed = (INT16), .method = "min_max"},                            \
        }                                                                                          \
    }

const qn_profile qn_profiles[] = {
    {.name = "quench",
     .brief = "quench's own engine",
     .per_channel = true,
     .per_channel_transposed = true,
     .drops_clips = true,
     .bias_integer = true,
     .qoperators = true,
     .any_clip = true,
     .rounds_after_function = true,
     .float_result = true,
     .planned = true,
     .dynamic = true,
     .can = QN_CAN_ALL,
     .opset = 13,
     .widths = {[QN_WIDTH_8] = {.computed = true}, [QN_WIDTH_16] = {.computed = true}}},
    {.name = "ort",
     .brief = "ONNX Runtime on a CPU",
     .saturates = true,
     .per_channel = true,
     .drops_clips = true,
     .bias_integer = true,
     .qoperators = true,
     .dynamic = true,
     .can = COMMON_CAN | QN_CAN_SIGMOID,
     .opset = 13,
     .widths = {[QN_WIDTH_8] = {.computed = true}}},
    {.name = "openvino",
     .brief = "OpenVINO on a CPU",
     .saturates = true,
     .pads_with_zero = true,
     .per_channel = true,
     .per_channel_transposed = true,
     .unify_concat = true,
     .any_clip = true,
     .float_result = true,
     .dynamic = true,
     .can = COMMON_CAN,
     .opset = 13,
     .widths = {[QN_WIDTH_8] = {.computed = true}}},
    {.name = "tensorrt",
     .brief = "TensorRT with explicit quantization",
     .symmetric = true,
     .per_channel = true,
     .unify_concat = true,
     .any_clip = true,
     .float_result = true,
     .can = QN_CAN_ADD | QN_CAN_POOL | QN_CAN_CONCAT | QN_CAN_PRODUCT | QN_CAN_MOVE,
     .opset = 13,
     .widths = {[QN_WIDTH_8] = {.computed = true}, [QN_WIDTH_16] = {.refused = true}}},
    {.name = "qdq-generic",
     .brief = "any engine that knows QuantizeLinear and DequantizeLinear",
     .pads_with_zero = true,
     .unify_concat = true,
     .any_clip = true,
     .float_result = true,
     .can = COMMON_CAN,
     .opset = 13,
     .widths = {[QN_WIDTH_8] = {.computed = true}}},
    CHIP("TX510x", false),
    CHIP("TX5336x_TX5256x", true),
    CHIP("TX5368x_TX5339x_TX5335x", true),
    CHIP("TX5215x_TX5239x200_TX5239x220_TX5239x300", true),
    CHIP("TX5112x_TX5239x201", true),
};
const size_t qn_profiles_count = QN_COUNT_OF(qn_profiles);

/* ---- Widths ---------------------------------------------------------------------------------- */

bool qn_profile_computes(const qn_profile *profile, int bits)
{
    const qn_width *width = qn_width_of_bits(bits);
    return width && profile->widths[width->index].computed;
}

int qn_profile_wider(const qn_profile *profile, int bits)
{
    for (int i = 0; i < QN_WIDTHS; i++) {
        if (qn_widths[i].bits > bits && profile->widths[i].computed)
            return qn_widths[i].bits;
    }
    return 0;
}

qn_dtype qn_profile_activation(const qn_profile *profile, int bits)
{
    return qn_width_type(qn_width_of_bits(bits), profile->symmetric);
}

qn_dtype qn_profile_weight(const qn_profile *profile, int bits)
{
    (void)profile; /* all targets want signed weights */
    return qn_width_type(qn_width_of_bits(bits), true);
}

/* ---- Chips by their full names --------------------------------------------------------------- */

static bool is_same(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (toupper((unsigned char)a[i]) != toupper((unsigned char)b[i]))
            return false;
    }
    return true;
}

/* What stands for x: a letter or digit and perhaps V, where a number of the model has to follow
 * ("TX5239AV201" is a TX5239x201), else whatever there is. */
static bool fits_rest(const char *rest, const char *number, size_t length)
{
    if (length == 0 || *rest == 0)
        return length == 0;
    rest++;
    rest += toupper((unsigned char)*rest) == 'V';
    return strlen(rest) >= length && is_same(rest, number, length);
}

/* Characters of `part`, "TX5239x201" or the like, that the name has; 0: it is another chip. */
static size_t fit(const char *name, const char *part, size_t length)
{
    const size_t known = strcspn(part, "x");
    for (const char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c))
            return 0;
    }
    if (strlen(name) < known || !is_same(name, part, known))
        return 0;
    return fits_rest(name + known, part + known + 1, length - known - 1) ? length : 0;
}

/* The longest fit of a chip's names, which "_" divides. */
static size_t fit_chip(const char *name, const char *names)
{
    size_t best = 0;
    if (strlen(name) == strlen(names) && is_same(name, names, strlen(names)))
        return strlen(names);
    for (const char *part = names; *part;) {
        const size_t length = strcspn(part, "_");
        best = QN_MAX(best, fit(name, part, length));
        part += length + (part[length] != 0);
    }
    return best;
}

const qn_profile *qn_profile_find_chip(const char *name)
{
    const qn_profile *found = NULL;
    size_t best = 0;
    for (size_t i = 0; i < qn_profiles_count; i++) {
        const size_t length = qn_profiles[i].fixed_point ? fit_chip(name, qn_profiles[i].name) : 0;
        if (length > best) {
            best = length;
            found = &qn_profiles[i];
        }
    }
    return found;
}

/* ---- All targets ----------------------------------------------------------------------------- */

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
    char names[512];
    *out = &qn_profiles[0];
    if (!name)
        return QN_OK;
    for (size_t i = 0; i < qn_profiles_count; i++) {
        *out = &qn_profiles[i];
        if (strcmp(qn_profiles[i].name, name) == 0)
            return QN_OK;
    }
    *out = qn_profile_find_chip(name);
    if (*out)
        return QN_OK;
    list_names(names, sizeof names);
    return qn_fail(ctx, QN_E_INVALID, "there is no target '%s': it is one of %s", name, names);
}
