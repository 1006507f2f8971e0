/* A file of its own for what a reader opens by itself. */
#ifndef QN_FUZZ_FILE_H
#define QN_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUZZ_PATH = 64 };

static char fuzz_file_path[FUZZ_PATH];

static inline void fuzz_file_remove(void)
{
    remove(fuzz_file_path);
}

/* The path of the file, which has these bytes until the next call. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    if (!fuzz_file_path[0]) {
        snprintf(fuzz_file_path, sizeof fuzz_file_path, "/tmp/quench_fuzz.%ld", (long)getpid());
        atexit(fuzz_file_remove);
    }
    FILE *file = fopen(fuzz_file_path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
    return fuzz_file_path;
}

#endif
