/* libquench-mpi.so: processes that mpirun started, connected by MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "quench/ranks.h"

#if defined __GNUC__
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

static const char *release_name(void)
{
    static char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(name, &length);
    for (int i = 0; i < length; i++) {
        if (name[i] == ',' || name[i] == '\n')
            name[i] = '\0';
    }
    return name;
}

/* Only the thread that opened it calls MPI. Errors come back instead of ending the process. */
static int open_group(int *rank, int *count, char *why, size_t size)
{
    int provided = 0, running = 0;
    MPI_Initialized(&running);
    if (!running && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        snprintf(why, size, "MPI_Init_thread failed");
        return 1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
        MPI_Comm_size(MPI_COMM_WORLD, count) == MPI_SUCCESS)
        return 0;
    snprintf(why, size, "MPI_COMM_WORLD cannot be read");
    return 1;
}

static void *start_send(int to, int tag, const void *data, uint64_t size)
{
    MPI_Request *request = malloc(sizeof *request);
    if (request &&
        MPI_Isend(data, (int)size, MPI_BYTE, to, tag, MPI_COMM_WORLD, request) == MPI_SUCCESS)
        return request;
    free(request);
    return NULL;
}

static int is_sent(void *started)
{
    MPI_Request *request = started;
    int done = 0;
    if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
        return 0;
    free(request);
    return 1;
}

static void give_up(void *started)
{
    MPI_Request *request = started;
    MPI_Cancel(request);
    MPI_Request_free(request);
    free(request);
}

static int64_t size_of_next(int *from, int tag)
{
    MPI_Status status;
    int found = 0, size = 0;
    const int source = *from < 0 ? MPI_ANY_SOURCE : *from;
    if (MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, &status) != MPI_SUCCESS || !found ||
        MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS)
        return -1;
    *from = status.MPI_SOURCE;
    return size;
}

static int receive(int from, int tag, void *data, uint64_t size)
{
    return MPI_Recv(data, (int)size, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
           MPI_SUCCESS;
}

/* A process that ends without MPI_Finalize makes mpirun end the others. */
static void close_group(int orderly)
{
    if (orderly)
        MPI_Finalize();
}

EXPORTED extern const qn_ranks_plugin qn_ranks_main;
const qn_ranks_plugin qn_ranks_main = {.version = QN_RANKS_VERSION,
                                       .size = sizeof(qn_ranks_plugin),
                                       .release_name = release_name,
                                       .open = open_group,
                                       .send = start_send,
                                       .sent = is_sent,
                                       .give_up = give_up,
                                       .size_of_next = size_of_next,
                                       .receive = receive,
                                       .close = close_group};
