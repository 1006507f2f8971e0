/* How a shared object connects processes that share one job: the contract of libquench-mpi.so.
 * Programs that call qn_context_join never need this page.
 *
 * The object exports a qn_ranks_plugin under the name `qn_ranks_main`. The library looks for
 * libquench-mpi.so where QUENCH_PLUGINS says (files and folders between colons), where that is not
 * set beside itself and in the folder `quench` beside itself. All functions are called by one
 * thread. */
#ifndef QUENCH_RANKS_H
#define QUENCH_RANKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QN_RANKS_VERSION 1u
#define QN_RANKS_SYMBOL "qn_ranks_main"
/* No message is larger. */
#define QN_RANKS_MESSAGE_MAX ((uint64_t)1 << 30)

typedef struct qn_ranks_plugin {
    /* QN_RANKS_VERSION */
    uint32_t version;
    /* The size of this struct. */
    uint32_t size;
    /* What connects the processes, for reports: "Open MPI 4.1" */
    const char *(*release_name)(void);
    /* Joins the group and gives the process's number in it and how many there are. Other than 0: it
     * could not; `why` [size] says what is wrong. */
    int (*open)(int *rank, int *count, char *why, size_t size);
    /* Starts to send; the bytes stay as they are until `sent` or `give_up`. NULL: it cannot. */
    void *(*send)(int to, int tag, const void *data, uint64_t size);
    /* Whether they are sent: then the request is gone. */
    int (*sent)(void *request);
    void (*give_up)(void *request);
    /* The size of the next message with the tag from rank *from, or, where that is -1, from any,
     * whose number it becomes; -1: none has come. */
    int64_t (*size_of_next)(int *from, int tag);
    /* Takes that message, of this size. Other than 0: it could not. */
    int (*receive)(int from, int tag, void *data, uint64_t size);
    /* Leaves the group. `orderly` 0: the others do not, or do not answer; do not wait for them. */
    void (*close)(int orderly);
} qn_ranks_plugin;

#ifdef __cplusplus
}
#endif

#endif
