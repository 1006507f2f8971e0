/* The first byte chooses what the rest is: a file of samples (of a kind that is named, or to be
 * found out), a list of files, or the classes of a data set. What can be opened can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const forms[] = {"", "idx:", "cifar10:", "cifar100:", "list:", "array:"};
enum { FORMS = sizeof forms / sizeof *forms, MOST_READ = 8 };

static const uint8_t four_idx[] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 1,
                                   0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8};

/* Files of this process, written anew for every input. */
static const char *file_path(int which)
{
    static char paths[2][64];
    snprintf(paths[which], sizeof paths[which], "/tmp/quench-fuzz-%ld-%d", (long)getpid(), which);
    return paths[which];
}

static void write_file(int which, const uint8_t *data, size_t size)
{
    FILE *file = fopen(file_path(which), "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static void read_some(const qn_dataset *data, qn_context *ctx)
{
    const qn_dataset_input *in = qn_dataset_inputs(data);
    const int64_t count = qn_dataset_count(data);
    char name[256];
    uint8_t *sample = malloc(in->bytes ? in->bytes : 1);
    if (!sample)
        abort();
    for (int64_t i = 0; i < count && i < MOST_READ; i++) {
        void *const to[] = {sample};
        if (qn_dataset_label(data, i) < -1 || !qn_dataset_name(name, sizeof name, data, i)[0])
            abort();
        if (qn_dataset_read(to, NULL, data, ctx, i) != QN_OK && !qn_context_error(ctx)[0])
            abort();
    }
    free(sample);
}

static void open_set(qn_context *ctx, const char *path, const char *labels)
{
    static const qn_value_info inputs[] = {{"x", QN_FLOAT32, 4, {-1, -1, -1, -1}, {NULL}}};
    const qn_dataset_spec spec = {
        .inputs = inputs, .n_inputs = 1, .data = &path, .n_data = 1, .labels = labels};
    qn_dataset *data;
    if (qn_dataset_open(&data, ctx, &spec) == QN_OK) {
        read_some(data, ctx);
        qn_dataset_free(data);
    } else if (qn_context_error(ctx)[0] == 0) {
        abort(); /* a failure without a message */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    char path[80];
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    const int form = data[0] % (FORMS + 1);
    write_file(0, data + 1, size - 1);
    if (form < FORMS) {
        snprintf(path, sizeof path, "%s%s", forms[form], file_path(0));
        open_set(ctx, path, NULL);
    } else {
        write_file(1, four_idx, sizeof four_idx);
        open_set(ctx, file_path(1), file_path(0));
    }
    remove(file_path(0));
    remove(file_path(1));
    qn_context_free(ctx);
    return 0;
}
