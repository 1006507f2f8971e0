/* An archive of PyTorch: entries, each of a byte that chooses its name, two bytes that say how long
 * it is, and its contents. They are packed as a zip archive whose checksums are right, so that
 * inputs reach what is behind: programs in JSON, lists of weights, pickles, code. It becomes a
 * graph, or a message says why not. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fuzz/buffer.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
enum { OFFSET = 8 };

static const char *const names[] = {"models/model.json",
                                    "archive_format",
                                    "data/weights/model_weights_config.json",
                                    "data/constants/model_constants_config.json",
                                    "data/weights/weight_0",
                                    "data/weights/weight_1",
                                    "data/weights/weight_2",
                                    "data/weights/weight_3",
                                    "data/weights/model.pt",
                                    "data/constants/model.pt",
                                    "serialized_exported_program.json",
                                    "serialized_state_dict.json",
                                    "serialized_constants.json",
                                    "data.pkl",
                                    "data/0",
                                    "data/1",
                                    "data/2",
                                    "data/3",
                                    "data/4",
                                    "constants.pkl",
                                    "constants/0",
                                    "constants/1",
                                    "code/__torch__.py",
                                    "code/__torch__/m.py",
                                    "code/__torch__/torch/nn/functional.py",
                                    "code/__torch__/torch/nn/modules/linear.py",
                                    "code/__torch__/torch/nn/modules/activation.py",
                                    "code/__torch__/torch/nn/modules/container.py",
                                    "traced_inputs.pkl",
                                    "traced_inputs/0",
                                    "traced_inputs/1",
                                    "extra/quench.json"};

static void put(buffer *to, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const uint8_t byte = i < 8 ? (uint8_t)(number >> 8 * i) : 0;
        (void)!buffer_write(to, &byte, 1);
    }
}

/* What the two headers of an entry have in common: version, flags, method, time, date, checksum,
 * sizes, length of the name, and nothing extra. */
static void put_header(buffer *to, uint32_t crc, size_t size, size_t name)
{
    put(to, 20, 2);
    put(to, 0, 8);
    put(to, crc, 4);
    put(to, size, 4);
    put(to, size, 4);
    put(to, name, 2);
    put(to, 0, 2);
}

static void put_entry(buffer *archive, buffer *directory, const char *name, const uint8_t *data,
                      size_t size)
{
    const uint32_t crc = (uint32_t)crc32(0, data, (uInt)size);
    const size_t at = archive->size - OFFSET, length = strlen(name) + 2;
    put(archive, 0x04034b50, 4);
    put_header(archive, crc, size, length);
    (void)!buffer_write(archive, "x/", 2);
    (void)!buffer_write(archive, name, length - 2);
    (void)!buffer_write(archive, data, size);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    put_header(directory, crc, size, length);
    put(directory, 0, 10);
    put(directory, at, 4);
    (void)!buffer_write(directory, "x/", 2);
    (void)!buffer_write(directory, name, length - 2);
}

static buffer archive_of(const uint8_t *data, size_t size)
{
    buffer archive = {NULL, 0}, directory = {NULL, 0};
    size_t count = 0;
    put(&archive, 0, OFFSET);
    put(&directory, 0, 0);
    while (size >= 3) {
        const char *name = names[data[0] % QN_COUNT_OF(names)];
        const size_t asked = (size_t)data[1] | (size_t)data[2] << 8;
        const size_t length = QN_MIN(asked, size - 3);
        put_entry(&archive, &directory, name, data + 3, length);
        data += 3 + length;
        size -= 3 + length;
        count++;
    }
    const size_t at = archive.size - OFFSET;
    if (directory.size)
        (void)!buffer_write(&archive, directory.data, directory.size);
    put(&archive, 0x06054b50, 4);
    put(&archive, 0, 4);
    put(&archive, count, 2);
    put(&archive, count, 2);
    put(&archive, directory.size, 4);
    put(&archive, at, 4);
    put(&archive, 0, 2);
    free(directory.data);
    return archive;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model = NULL;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    const buffer archive = archive_of(data, size);
    qn_model_source source = {
        .ctx = ctx,
        .path = "x",
        .options = &options,
        .map = {.data = archive.data + OFFSET, .size = archive.size - OFFSET}};
    if (qn_importer_pytorch.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(archive.data);
    return 0;
}
