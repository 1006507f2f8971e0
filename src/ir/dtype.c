/* The table of element types. */
#include "ir/dtype.h"

#include <string.h>

static const qn_minifloat float16 = {5, 10, 15, 65504.0, 0x7e00, 0x7c00, false};
static const qn_minifloat bfloat16 = {8, 7, 127, 0x1.fep127, 0x7fc0, 0x7f80, false};
static const qn_minifloat float8e4m3fn = {4, 3, 7, 448.0, 0x7f, 0, false};
static const qn_minifloat float8e4m3fnuz = {4, 3, 8, 240.0, 0x80, 0, true};
static const qn_minifloat float8e5m2 = {5, 2, 15, 57344.0, 0x7f, 0x7c, false};
static const qn_minifloat float8e5m2fnuz = {5, 2, 16, 57344.0, 0x80, 0, true};
static const qn_minifloat float4e2m1 = {2, 1, 1, 6.0, 0, 0, false};
static const qn_minifloat float6e2m3 = {2, 3, 1, 7.5, 0, 0, false};
static const qn_minifloat float6e3m2 = {3, 2, 3, 28.0, 0, 0, false};
static const qn_minifloat float8e8m0 = {8, 0, 127, 0x1p127, 0xff, 0, false};

static const qn_dtype_info dtypes[QN_DTYPE_COUNT] = {
    [QN_UNDEFINED] = {"?", "UNDEFINED", NULL, 0, 0, QN_KIND_NONE, NULL},
    [QN_FLOAT32] = {"float32", "FLOAT", "<f4", 4, 32, QN_KIND_FLOAT, NULL},
    [QN_UINT8] = {"uint8", "UINT8", "|u1", 1, 8, QN_KIND_UINT, NULL},
    [QN_INT8] = {"int8", "INT8", "|i1", 1, 8, QN_KIND_INT, NULL},
    [QN_UINT16] = {"uint16", "UINT16", "<u2", 2, 16, QN_KIND_UINT, NULL},
    [QN_INT16] = {"int16", "INT16", "<i2", 2, 16, QN_KIND_INT, NULL},
    [QN_INT32] = {"int32", "INT32", "<i4", 4, 32, QN_KIND_INT, NULL},
    [QN_INT64] = {"int64", "INT64", "<i8", 8, 64, QN_KIND_INT, NULL},
    [QN_STRING] = {"string", "STRING", NULL, sizeof(qn_string), 0, QN_KIND_STRING, NULL},
    [QN_BOOL] = {"bool", "BOOL", "|b1", 1, 8, QN_KIND_BOOL, NULL},
    [QN_FLOAT16] = {"float16", "FLOAT16", "<f2", 2, 16, QN_KIND_FLOAT, &float16},
    [QN_FLOAT64] = {"float64", "DOUBLE", "<f8", 8, 64, QN_KIND_FLOAT, NULL},
    [QN_UINT32] = {"uint32", "UINT32", "<u4", 4, 32, QN_KIND_UINT, NULL},
    [QN_UINT64] = {"uint64", "UINT64", "<u8", 8, 64, QN_KIND_UINT, NULL},
    [QN_COMPLEX64] = {"complex64", "COMPLEX64", "<c8", 8, 64, QN_KIND_COMPLEX, NULL},
    [QN_COMPLEX128] = {"complex128", "COMPLEX128", "<c16", 16, 128, QN_KIND_COMPLEX, NULL},
    [QN_BFLOAT16] = {"bfloat16", "BFLOAT16", NULL, 2, 16, QN_KIND_FLOAT, &bfloat16},
    [QN_FLOAT8E4M3FN] = {"float8e4m3fn", "FLOAT8E4M3FN", NULL, 1, 8, QN_KIND_FLOAT, &float8e4m3fn},
    [QN_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", "FLOAT8E4M3FNUZ", NULL, 1, 8, QN_KIND_FLOAT,
                           &float8e4m3fnuz},
    [QN_FLOAT8E5M2] = {"float8e5m2", "FLOAT8E5M2", NULL, 1, 8, QN_KIND_FLOAT, &float8e5m2},
    [QN_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", "FLOAT8E5M2FNUZ", NULL, 1, 8, QN_KIND_FLOAT,
                           &float8e5m2fnuz},
    [QN_UINT4] = {"uint4", "UINT4", NULL, 1, 4, QN_KIND_UINT, NULL},
    [QN_INT4] = {"int4", "INT4", NULL, 1, 4, QN_KIND_INT, NULL},
    [QN_FLOAT4E2M1] = {"float4e2m1", "FLOAT4E2M1", NULL, 1, 4, QN_KIND_FLOAT, &float4e2m1},
    [QN_FLOAT8E8M0] = {"float8e8m0", "FLOAT8E8M0", NULL, 1, 8, QN_KIND_FLOAT, &float8e8m0},
    [QN_UINT2] = {"uint2", "UINT2", NULL, 1, 2, QN_KIND_UINT, NULL},
    [QN_INT2] = {"int2", "INT2", NULL, 1, 2, QN_KIND_INT, NULL},
    [QN_FLOAT6E2M3] = {"float6e2m3", "FLOAT6E2M3", NULL, 1, 6, QN_KIND_FLOAT, &float6e2m3},
    [QN_FLOAT6E3M2] = {"float6e3m2", "FLOAT6E3M2", NULL, 1, 6, QN_KIND_FLOAT, &float6e3m2},
    [QN_SEQUENCE] = {"sequence", "SEQUENCE", NULL, 0, 0, QN_KIND_NONE, NULL},
    [QN_NONE] = {"none", "NONE", NULL, 0, 0, QN_KIND_NONE, NULL},
};

const qn_dtype_info *qn_dtype_get(qn_dtype dtype)
{
    return &dtypes[(unsigned)dtype < QN_DTYPE_COUNT ? dtype : QN_UNDEFINED];
}

const char *qn_dtype_name(qn_dtype dtype)
{
    return qn_dtype_get(dtype)->name;
}

size_t qn_dtype_size(qn_dtype dtype)
{
    return qn_dtype_get(dtype)->size;
}

qn_dtype qn_dtype_by_name(const char *name)
{
    for (int d = 1; d < QN_DTYPE_COUNT; d++) {
        if (strcmp(dtypes[d].name, name) == 0)
            return (qn_dtype)d;
    }
    return QN_UNDEFINED;
}

bool qn_dtype_is_integer(qn_dtype dtype)
{
    const qn_dtype_kind kind = qn_dtype_get(dtype)->kind;
    return kind == QN_KIND_INT || kind == QN_KIND_UINT || kind == QN_KIND_BOOL;
}
