/* A folder of files that a test makes itself. cmocka.h comes first. */
#ifndef QN_FILES_TEST_H
#define QN_FILES_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

/* Returns 0 where that worked, as setup functions of cmocka do. */
static inline int folder_make(const char *topic)
{
    snprintf(folder, sizeof folder, "/tmp/quench-%s-XXXXXX", topic);
    return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static inline const char *in_folder(const char *name)
{
    static char path[4][256];
    static int turn;
    char *out = path[turn++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static inline void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static inline void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

#endif
