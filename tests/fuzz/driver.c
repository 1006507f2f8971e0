/* Stands in for libFuzzer where it is absent: runs every file of the folders (or files) named on
 * the command line through the target once, so that the corpora are ordinary tests. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t inputs_run;

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0)
        fail("cannot open", path);
    size_t size = (size_t)info.st_size;
    /* Exactly as long as the input: the address sanitizer sees the first byte read too far. */
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size)
        fail("cannot read", path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs_run++;
}

static void run_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        fail("cannot open", path);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) >= (int)sizeof name)
            fail("name too long", path);
        run_file(name);
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) != 0)
            fail("no such corpus", argv[i]);
        if (S_ISDIR(info.st_mode))
            run_folder(argv[i]);
        else
            run_file(argv[i]);
    }
    printf("%zu inputs\n", inputs_run);
    if (inputs_run == 0)
        fail("no inputs: a corpus without files tests nothing", argc > 1 ? argv[1] : "driver");
    return 0;
}
