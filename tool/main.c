/* The program `quench`. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

/* A training runs for minutes or hours, often beside other work, and each of its steps has hundreds
 * of parallel parts: threads that wait for each other spin for a moment and then park. The pool of
 * threads reads how long from its environment, before main, so the program starts once more. */
static void train_parked(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "train") != 0 || getenv("GOMP_SPINCOUNT") ||
        getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", "2000", 1) != 0)
        return;
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    train_parked(argc, argv);
#if defined(__GLIBC__)
    /* Large blocks go back to the system when they are freed. Without this the limit grows with the
     * first of them, and the plans that a command makes one after the other add up. */
    enum { LARGE = 1 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
    return quench_command(argc, argv, NULL);
}
