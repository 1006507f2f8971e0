/* A SavedModel of TensorFlow: twice four bytes that say how long saved_model.pb and the index of
 * the variables are, both of them, and the rest is what the variables hold. It becomes a graph, or
 * a message says why not. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH = 128, FOOTER = 48, TRAILER = 5 };

static char folder[PATH / 2];
static const char *const files[] = {"saved_model.pb", "variables/variables.index",
                                    "variables/variables.data-00000-of-00001"};

/* ---- Files ----------------------------------------------------------------------------------- */

static void remove_files(void)
{
    char path[PATH];
    for (size_t i = 0; i < QN_COUNT_OF(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/variables", folder);
    rmdir(path);
    rmdir(folder);
}

static void make_folder(void)
{
    char path[PATH];
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "/tmp/fuzz_saved_model.%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/variables", folder);
    if (mkdir(folder, 0700) != 0 || mkdir(path, 0700) != 0)
        abort();
    atexit(remove_files);
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* ---- Checksums, which no mutation would keep true -------------------------------------------- */

static bool take(uint64_t *out, const uint8_t **at, const uint8_t *end)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static void mend(uint8_t *block, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i <= size; i++) {
        crc ^= block[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    crc = ~crc;
    crc = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
    for (int i = 0; i < 4; i++)
        block[size + 1 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

/* The block that is named at *at; false: it lies outside. */
static bool block_at(uint64_t *offset, uint64_t *length, const uint8_t **at, const uint8_t *end,
                     size_t size)
{
    return take(offset, at, end) && take(length, at, end) && *offset <= size && *length <= size &&
           *offset + *length + TRAILER <= size;
}

static void mend_index(uint8_t *index, size_t size)
{
    uint64_t offset, length, skipped, shared, own, value, block, bytes;
    if (size < FOOTER)
        return;
    const uint8_t *at = index + size - FOOTER, *end = index + size;
    if (!take(&skipped, &at, end) || !take(&skipped, &at, end) ||
        !block_at(&offset, &length, &at, end, size))
        return;
    at = index + offset;
    /* Numbers of restarts, and how many, stand behind the entries. */
    const uint64_t restarts = length < 4 ? 0 : at[length - 4];
    end = at + (length < 4 + 4 * restarts ? 0 : length - 4 - 4 * restarts);
    while (take(&shared, &at, end) && take(&own, &at, end) && take(&value, &at, end) &&
           own < (uint64_t)(end - at)) {
        at += own;
        if (!block_at(&block, &bytes, &at, end, size))
            break;
        mend(index + block, (size_t)bytes);
    }
    mend(index + offset, (size_t)length);
}

/* ---------------------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    uint32_t lengths[2];
    qn_context *ctx;
    qn_model *model = NULL;
    if (size < sizeof lengths || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    memcpy(lengths, data, sizeof lengths);
    data += sizeof lengths;
    size -= sizeof lengths;
    make_folder();
    for (size_t i = 0; i < 2; i++) {
        const size_t length = QN_MIN(lengths[i], size);
        uint8_t *copy = malloc(length + 1);
        if (!copy)
            abort();
        memcpy(copy, data, length);
        if (i == 1)
            mend_index(copy, length);
        write_file(files[i], copy, length);
        free(copy);
        data += length;
        size -= length;
    }
    write_file(files[2], data, size);
    qn_model_source source = {.ctx = ctx, .path = folder, .options = &options, .is_folder = true};
    if (qn_importer_tensorflow.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    return 0;
}
