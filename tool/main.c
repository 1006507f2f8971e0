/* The program `quench`. */
#include "cli.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

int main(int argc, char **argv)
{
#if defined(__GLIBC__)
    /* Large blocks go back to the system when they are freed. Without this the limit grows with the
     * first of them, and the plans that a command makes one after the other add up. */
    enum { LARGE = 1 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
    return quench_command(argc, argv, NULL);
}
