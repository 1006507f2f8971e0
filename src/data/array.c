/* Tensors from files and to files, by the ending of the name. */
#include "data/array.h"
#include "base/options.h"

#include <string.h>

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), own = strlen(ending);
    return length >= own && strcmp(path + length - own, ending) == 0;
}

/* A first dimension of -1 becomes as many as the file has. */
static qn_status raw_shape(qn_tensor *out, const qn_array *array, const qn_tensor *like)
{
    size_t bytes = 0;
    *out = *like;
    const bool open = like->rank > 0 && like->dims[0] == -1;
    if (open)
        out->dims[0] = 1;
    if (like->dtype == QN_STRING || !qn_dtype_size(like->dtype) || like->rank < 0 ||
        !qn_tensor_bytes(&bytes, out->dtype, out->rank, out->dims))
        return qn_fail(array->ctx, QN_E_INVALID, "a raw file needs a known type and shape");
    if (open && bytes && array->map.size % bytes == 0)
        out->dims[0] = (int64_t)(array->map.size / bytes);
    else if (bytes != array->map.size)
        return qn_fail(array->ctx, QN_E_INVALID, "the file has %zu bytes, %s %zu", array->map.size,
                       open ? "a sample" : "the tensor", bytes);
    return QN_OK;
}

static qn_status read_raw(qn_array *array, const qn_tensor *like)
{
    const qn_tensor none = {.rank = -1};
    QN_TRY(raw_shape(&array->tensor, array, like ? like : &none));
    for (size_t i = 0; array->tensor.dtype == QN_BOOL && i < array->map.size; i++) {
        if (array->map.data[i] > 1)
            return qn_fail(array->ctx, QN_E_FORMAT, "a bool is neither 0 nor 1");
    }
    array->tensor.data = (void *)(uintptr_t)array->map.data;
    return QN_OK;
}

/* The name of the array in "file.npz:array", or NULL. */
static const char *entry_of(const char *path)
{
    const char *end = strstr(path, ".npz:");
    return end && end[5] ? end + 5 : NULL;
}

static qn_status read_npz(qn_array *array, const char *entry)
{
    const uint8_t *data;
    size_t size;
    QN_TRY(qn_npz_find(&data, &size, array, entry));
    return qn_npy_read(array, data, size);
}

/* What quench writes of a type that numpy lacks is read as that type again. */
static qn_status narrow(qn_array *array, qn_dtype wanted)
{
    const qn_dtype has = array->tensor.dtype;
    const int64_t count = qn_tensor_count(&array->tensor);
    if (has == wanted || wanted == QN_UNDEFINED || qn_npy_stored_type(wanted) != has)
        return QN_OK;
    const bool whole = !qn_dtype_is_float(wanted);
    char *block = qn_alloc_aligned(&array->ctx->allocator, (size_t)count * qn_dtype_size(wanted));
    if (!block)
        return qn_fail_bytes(array->ctx, (size_t)count, "the array");
    for (int64_t i = 0; i < count; i++) {
        double number, kept;
        qn_load_f64(&number, has, array->tensor.data, i, 1);
        qn_store_f64(block, wanted, i, &number, 1);
        qn_load_f64(&kept, wanted, block, i, 1);
        if (whole && kept != number) {
            qn_free_aligned(&array->ctx->allocator, block);
            return qn_fail(array->ctx, QN_E_INVALID, "%g is no %s", number, qn_dtype_name(wanted));
        }
    }
    qn_free_aligned(&array->ctx->allocator, array->block);
    array->block = block;
    array->tensor.data = block;
    array->tensor.dtype = wanted;
    return QN_OK;
}

static qn_status read_file(qn_array *array, const char *path, const qn_tensor_load_options *options)
{
    QN_TRY(qn_map_open(&array->map, array->ctx, path));
    qn_status status;
    if (ends_with(path, ".npy"))
        status = qn_npy_read(array, array->map.data, array->map.size);
    else if (ends_with(path, ".npz"))
        status = read_npz(array, options->entry);
    else
        status = read_raw(array, options->like);
    if (status == QN_OK && options->like)
        status = narrow(array, options->like->dtype);
    return status == QN_OK ? QN_OK : qn_fail_within(array->ctx, status, "%s", path);
}

/* Reads a file, with the name of an array that may follow its path. */
static qn_status read_path(qn_array *array, const char *path, const qn_tensor_load_options *options)
{
    const char *entry = entry_of(path);
    if (!entry)
        return read_file(array, path, options);
    const qn_tensor_load_options named = {QN_OPTIONS_VERSION, .entry = entry,
                                          .like = options->like};
    const size_t length = (size_t)(entry - path) - 1;
    char *file = qn_alloc_zero(array->ctx, length + 1, 1);
    QN_TRY_ALLOC(array->ctx, file);
    memcpy(file, path, length);
    const qn_status status = read_file(array, file, &named);
    qn_free(array->ctx, file);
    return status;
}

qn_status qn_tensor_load(qn_tensor **out, qn_context *ctx, const char *path,
                         const qn_tensor_load_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_tensor_load_options, taken, ctx, options);
    QN_TRY(qn_path_check(ctx, path));
    qn_array *array = qn_alloc_zero(ctx, 1, sizeof *array);
    QN_TRY_ALLOC(ctx, array);
    array->ctx = ctx;
    const qn_status status = read_path(array, path, &taken);
    if (status == QN_OK)
        *out = &array->tensor;
    else
        qn_tensor_free(&array->tensor);
    return status;
}

void qn_tensor_free(qn_tensor *tensor)
{
    qn_array *array = (qn_array *)tensor;
    if (!array)
        return;
    qn_map_close(&array->map);
    qn_free_aligned(&array->ctx->allocator, array->block);
    qn_free(array->ctx, array);
}

qn_status qn_tensor_save(qn_context *ctx, const qn_tensor *tensor, const char *path)
{
    qn_npy_writer writer;
    QN_TRY(qn_npy_open(&writer, ctx, path, tensor));
    const qn_status status = qn_npy_write(&writer, tensor->data, qn_tensor_count(tensor));
    if (status == QN_OK)
        return qn_npy_commit(&writer);
    qn_npy_discard(&writer);
    return status;
}
