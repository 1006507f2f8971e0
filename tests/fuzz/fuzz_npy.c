/* The first byte chooses: a .npy file, or a .npz archive of which one array is wanted. What can be
 * read has elements that can be read. */
#include <stdlib.h>
#include <string.h>

#include "data/array.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte once, so that a sanitizer sees a wrong length. */
static void touch(const qn_tensor *tensor)
{
    const uint8_t *bytes = tensor->data;
    const size_t size = (size_t)qn_tensor_count(tensor) * qn_dtype_size(tensor->dtype);
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = (uint8_t)(sum + bytes[i]);
}

static qn_status read_array(qn_array *array, uint8_t kind, const uint8_t *data, size_t size)
{
    const uint8_t *entry;
    size_t entry_size;
    if (!(kind & 1))
        return qn_npy_read(array, data, size);
    bool has;
    array->map = (qn_map){.data = data, .size = size};
    QN_TRY(qn_npz_has(&has, array->ctx, &array->map, "x"));
    QN_TRY(qn_npz_find(&entry, &entry_size, array, kind & 2 ? "x" : NULL));
    return qn_npy_read(array, entry, entry_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_array array = {.block = NULL};
    if (size == 0 || qn_context_create(&array.ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: arrays may lie at any address, but never past the end. */
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data + 1, size - 1);
    const qn_status status = read_array(&array, data[0], copy, size - 1);
    if (status == QN_OK)
        touch(&array.tensor);
    else if (qn_context_error(array.ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_free_aligned(&array.ctx->allocator, array.block);
    qn_context_free(array.ctx);
    free(copy);
    return 0;
}
