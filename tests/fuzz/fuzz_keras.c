/* Any text as the configuration of a Keras model: in an archive with the weights of a small model,
 * it becomes a graph, or a message says why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
enum { OFFSET = 8, MOST_WEIGHTS = 1 << 17, ENTRIES = 3, HEADERS = 1024 };

static uint8_t weights[MOST_WEIGHTS];
static size_t weights_size;

static void read_weights(void)
{
    if (weights_size)
        return;
    FILE *file = fopen(FUZZ_FOLDER "/keras.weights.h5", "rb");
    weights_size = file ? fread(weights, 1, sizeof weights, file) : 0;
    if (!file || fclose(file) != 0 || weights_size == 0)
        abort();
}

/* ---- An archive whose entries are stored as they are ----------------------------------------- */

typedef struct archive {
    uint8_t *data;
    size_t size;
} archive;

static void put(archive *a, const void *data, size_t size)
{
    if (size)
        memcpy(a->data + a->size, data, size);
    a->size += size;
}

static void put_number(archive *a, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        a->data[a->size++] = i < sizeof value ? (uint8_t)(value >> 8 * i) : 0;
}

static uint32_t checksum(qn_string bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes.length; i++) {
        crc ^= (uint8_t)bytes.text[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

/* What local headers and the directory say of an entry. */
static void put_entry(archive *a, qn_string contents, uint32_t crc, size_t name)
{
    put_number(a, 20, 2);
    put_number(a, 0, 8); /* flags, stored, time and date */
    put_number(a, crc, 4);
    put_number(a, contents.length, 4);
    put_number(a, contents.length, 4);
    put_number(a, name, 2);
    put_number(a, 0, 2);
}

static archive pack(const char *const *names, const qn_string *contents)
{
    archive a = {.size = OFFSET};
    size_t places[ENTRIES], total = HEADERS;
    uint32_t crc[ENTRIES];
    for (size_t i = 0; i < ENTRIES; i++)
        total += contents[i].length;
    a.data = calloc(1, total);
    if (!a.data)
        abort();
    for (size_t i = 0; i < ENTRIES; i++) {
        places[i] = a.size - OFFSET;
        crc[i] = checksum(contents[i]);
        put(&a, "PK\3\4", 4);
        put_entry(&a, contents[i], crc[i], strlen(names[i]));
        put(&a, names[i], strlen(names[i]));
        put(&a, contents[i].text, contents[i].length);
    }
    const size_t directory = a.size - OFFSET;
    for (size_t i = 0; i < ENTRIES; i++) {
        put(&a, "PK\1\2\24\0", 6);
        put_entry(&a, contents[i], crc[i], strlen(names[i]));
        put_number(&a, 0, 10);
        put_number(&a, places[i], 4);
        put(&a, names[i], strlen(names[i]));
    }
    const size_t length = a.size - OFFSET - directory;
    put(&a, "PK\5\6\0\0\0", 8);
    put_number(&a, ENTRIES, 2);
    put_number(&a, ENTRIES, 2);
    put_number(&a, length, 4);
    put_number(&a, directory, 4);
    put_number(&a, 0, 2);
    return a;
}

/* ---------------------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    static const char metadata[] = "{\"keras_version\": \"3.15.1\"}";
    static const char *const names[] = {"metadata.json", "config.json", "model.weights.h5"};
    qn_context *ctx;
    qn_model *model = NULL;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    read_weights();
    const qn_string contents[] = {{metadata, sizeof metadata - 1},
                                  {(const char *)data, size},
                                  {(const char *)weights, weights_size}};
    archive a = pack(names, contents);
    qn_model_source source = {.ctx = ctx,
                              .path = "x.keras",
                              .options = &options,
                              .map = {.data = a.data + OFFSET, .size = a.size - OFFSET}};
    if (qn_importer_keras.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(a.data);
    return 0;
}
