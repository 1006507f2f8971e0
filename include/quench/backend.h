/* How a backend looks to the planner, and how a shared object brings one: the contract of the
 * backends in the library and of plug-ins alike. Programs that only run models never need this
 * page.
 *
 * The planner walks the graph in topological order and offers each node that is not yet taken to
 * the backends, the preferred one first. A backend takes a node, alone or together with later nodes
 * that it fuses, by filling a qn_claim: which nodes, which values go in and come out, in which
 * layouts, how much scratch, which kernel. Layouts of the inputs are known by then, since their
 * producers were planned earlier; where a claim wants another one the planner puts a conversion in
 * between (one per value and layout). The last backend, `ref`, takes everything in row-major form.
 * When all nodes are claimed it is known where every value lies (a part may have been placed in the
 * whole that a later Concat makes of it), and the kernels are prepared, in the order of the steps.
 *
 *   plan time      claim, then kernel.prepare   packs weights, compiles; read-only afterwards
 *   session time   kernel.bind                  one caller's state: addresses are fixed then
 *   run time       kernel.run                   no allocation, no lock, no parsing
 *
 * A plug-in is a shared object that exports a qn_plugin under the name `qn_plugin_main`. The
 * library looks for plug-ins where QUENCH_PLUGINS says (files, and folders whose files
 * quench_backend_*.so are plug-ins; between colons); where that is not set, for such files beside
 * itself and in the folder `quench` beside itself. All that a plug-in needs of the library it
 * reaches through the table of functions that it is opened with, so that it links with nothing.
 * Structs here change with QN_BACKEND_VERSION: a plug-in of another version is refused. */
#ifndef QUENCH_BACKEND_H
#define QUENCH_BACKEND_H

#include <stdbool.h>

#include "../quench.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QN_BACKEND_VERSION 2u

typedef struct qn_backend qn_backend;
typedef struct qn_backend_api qn_backend_api;
typedef struct qn_builder qn_builder; /* the plan being made */
typedef struct qn_claim qn_claim;
typedef struct qn_kernel qn_kernel;
typedef struct qn_node qn_node;
typedef struct qn_value qn_value;
typedef struct qn_space qn_space;

/* ---- Layouts ----------------------------------------------------------------------------------
 * How the elements of a value lie in memory. Row-major is what files and users see; the others are
 * for values of the form [N, C, spatial...] between the steps of a plan. */

typedef enum qn_layout_kind {
    /* Row-major */
    QN_LAYOUT_ROWS,
    /* [N, C/b, spatial..., b]: oneDNN's nChw8c, nChw16c; C is padded up to a multiple of b, and the
     * padding always holds zeros */
    QN_LAYOUT_BLOCKED,
    /* [N, spatial..., C] */
    QN_LAYOUT_CHANNELS_LAST
} qn_layout_kind;

typedef struct qn_layout {
    uint8_t kind;
    /* b of QN_LAYOUT_BLOCKED, else 0 */
    uint8_t block;
} qn_layout;

/* ---- Memory spaces ----------------------------------------------------------------------------
 * A backend works in one memory space: the host's, for which NULL stands, or one of its own, as a
 * device's. All that its kernels are given lies there: values, constants, packed weights, scratch.
 * Where a value is produced in one space and read in another the planner puts a copy in between,
 * row-major on both sides.
 *
 * Each session has one stream per space, and work is put into it in the order of the plan. Kernels
 * and copies of a space that has streams may return before their work is done; the session waits
 * only before the host reads what was copied to it, and at the end of a run. Memory of a space is
 * reused in the order of its stream, so nothing else has to be waited for. Addresses are the same
 * in every run (but for inputs of a caller that lie in the space already), so that a backend may
 * capture what it puts into a stream and play it again. */

typedef struct qn_copy {
    void *to;
    const void *from;
    size_t bytes;
    /* NULL: the host's */
    const qn_space *to_space, *from_space;
    /* Of the space that is asked. NULL: the copy is done when the call returns. */
    void *stream;
} qn_copy;

struct qn_space {
    const char *name;
    /* Which of several devices of one kind, from 0. */
    int device;
    /* The backend's own. */
    void *user;
    /* 64-byte aligned; NULL when short. */
    void *(*alloc)(const qn_space *self, qn_context *ctx, size_t size);
    /* `block` may be NULL. */
    void (*free)(const qn_space *self, qn_context *ctx, void *block);
    /* Copies between this space and another. From the host: `from` may be written again when the
     * call returns. To the host: whoever reads waits for the stream. */
    qn_status (*copy)(const qn_space *self, qn_context *ctx, const qn_copy *copy);
    /* Whether `copy` can also take `from` out of this other space; else values go by way of the
     * host. May be NULL. */
    bool (*reaches)(const qn_space *self, const qn_space *from);
    /* Streams, of which a session opens one: all four, or none of them where work is done when
     * calls return. */
    qn_status (*stream_open)(const qn_space *self, qn_context *ctx, void **stream);
    void (*stream_close)(const qn_space *self, qn_context *ctx, void *stream);
    /* Returns when all work in the stream is done, with the failure of what failed there. */
    qn_status (*wait)(const qn_space *self, qn_context *ctx, void *stream);
    /* What is put into `stream` from now on begins after what is in `other` by now: an event
     * recorded there and waited for here. `other` is of a space that this one reaches, or is
     * reached by. May be NULL where `reaches` is. */
    qn_status (*follow)(const qn_space *self, qn_context *ctx, void *stream, void *other);
    /* The address lies in this space: callers may then give it as an input. NULL: they may not. */
    bool (*owns)(const qn_space *self, const void *data);
};

/* ---- Claims ---------------------------------------------------------------------------------- */

enum { QN_CLAIM_SPARE = 64 }; /* nodes and values that a claim can have beyond those of its node */

/* One value of a claim. */
typedef struct qn_claim_value {
    /* NULL keeps its place: an input left out, an output not wanted. */
    qn_value *value;
    qn_layout layout;
    /* The kernel takes the samples (index of dim 0) at any distance from each other. Else they
     * stand side by side. */
    bool strided;
    /* Output only: no memory of its own but the bytes of input `view_of` from `offset` on. -1: no
     * view. The layouts must make this true: for samples side by side (Reshape), or with `strided`
     * for every sample on its own (Split along channels). */
    int32_t view_of;
    /* Input of a Concat only: it is produced directly at `offset` of out[0], in each of its
     * samples, and nothing is left to copy. The backend has asked can_place. */
    bool placed;
    /* Into the first sample. */
    size_t offset;
    /* Set before prepare: bytes from one sample to the next. */
    size_t stride;
    /* Set by the planner. */
    const qn_space *space;
} qn_claim_value;

struct qn_claim {
    qn_builder *builder;
    /* The backend that is asked. */
    const qn_backend *backend;
    /* The node that is offered. */
    qn_node *node;

    /* The nodes of the group, `node` first, in topological order (qn_claim_add). Values between
     * them are read by nobody else: qn_build_fusible tells. */
    qn_node **nodes;
    int32_t n_nodes;
    /* Values read at run time (constants that prepare packs need not be listed) and written. */
    qn_claim_value *in, *out;
    int32_t n_in, n_out;
    /* out[0] may take the memory of in[in_place]; -1: no. With `must_share` the kernel relies on it
     * (it adds to what is there), and the backend has asked qn_build_dies first. */
    int32_t in_place;
    bool must_share;
    /* Bytes while it runs, 64-byte aligned; may be set as late as in prepare. */
    size_t scratch;
    /* NULL: nothing is left to do at run time, views and placed inputs say it all. */
    const qn_kernel *kernel;
    /* What prepare works on; from qn_build_alloc. kernel->free gets it in any case. */
    void *state;
};

/* What a running kernel sees. Tensors have row-major dims whatever the layout of their data is. */
typedef struct qn_step_io {
    qn_context *ctx;
    qn_tensor *const *in, *const *out;
    void *scratch;
    int threads;
    /* The session's stream in the space of the backend; NULL where it has none. */
    void *stream;
} qn_step_io;

struct qn_kernel {
    /* As `bench --profile` shows it. */
    const char *name;
    /* Makes claim->state final: packs weights, creates primitives. May be NULL. After it the
     * contents of constants that are not inputs of the claim may be given back. */
    qn_status (*prepare)(qn_claim *claim);
    /* One session's own state; *bound NULL where none is needed. The data pointers of io are final
     * except those of graph inputs. May be NULL. */
    qn_status (*bind)(void **bound, const void *state, const qn_step_io *io);
    qn_status (*run)(const void *state, void *bound, const qn_step_io *io);
    /* The stream is done by then. */
    void (*unbind)(qn_context *ctx, const void *state, void *bound);
    /* What state holds outside the plan's memory, prepared or not. */
    void (*free)(void *state);
    /* What it takes beside other kernels, so that the quantizer can tell where integers would be
     * slower than floats: nanoseconds of a multiply-accumulate and of a byte read or written, on
     * one core of a CPU as most have it. 0: as run/cost.c has it for the type of its numbers. */
    float mac_ns, byte_ns;
};

struct qn_backend {
    const char *name;
    /* *taken says whether the node was claimed. */
    qn_status (*claim)(bool *taken, qn_claim *claim);
    /* NULL: the host's. */
    const qn_space *space;
    /* Claims the copy of in[0] to out[0] between their layouts; leaves the kernel NULL where it
     * has none. Either side may be strided. NULL: on the host the plain copy of layout.h; in
     * another space there are then no layouts but row-major, with samples side by side. */
    qn_status (*convert)(qn_claim *claim);
    /* Frees what *qn_build_shared has been set to, where that is not the plan's own memory. May be
     * NULL. */
    void (*release)(void *shared);
    /* Float multiply-accumulates a second, in 1e9, that its processor can do at most on so many
     * threads: a measure for kernels. NULL: not known. */
    double (*peak)(int threads);
    /* Of a plug-in: it is offered nodes before the backends in the library also where nobody
     * names it. Else it must be named. */
    bool automatic;
    /* The backend's own. */
    void *user;
    /* Set by the library: the file and the version of the plug-in that brought it; NULL: it is
     * in the library. */
    const char *file, *release_name;
};

/* ---- What the library gives to a plug-in ----------------------------------------------------- */

/* Questions about the plan being made, and what a claim is filled with: src/run/backend.h has the
 * contracts, under the names qn_build_* and qn_claim_*. */
typedef struct qn_plan_api {
    qn_context *(*context)(const qn_builder *builder);
    int (*threads)(const qn_builder *builder);
    /* Zeroed host memory that lives as long as the plan. */
    void *(*alloc)(qn_builder *builder, size_t size);
    /* Memory for packed weights in the backend's space, freed with the plan. */
    void *(*weights)(qn_builder *builder, size_t size);
    /* Such memory with this content of the host's. */
    qn_status (*upload)(void **out, qn_builder *builder, const void *data, size_t size);
    void **(*shared)(qn_builder *builder);
    bool (*direct)(const qn_builder *builder);
    bool (*shown)(const qn_builder *builder, const qn_value *value);
    qn_layout (*layout)(const qn_builder *builder, const qn_value *value);
    bool (*shape)(qn_tensor *out, const qn_builder *builder, const qn_value *value);
    bool (*ready)(const qn_builder *builder, const qn_value *value);
    bool (*taken)(const qn_builder *builder, const qn_node *node);
    qn_node *(*fusible)(const qn_builder *builder, const qn_value *value);
    bool (*dies)(const qn_claim *claim, const qn_value *value);
    bool (*can_place)(const qn_claim *claim, int32_t i);
    void (*claim_add)(qn_claim *claim, qn_node *node);
    qn_claim_value *(*claim_in)(qn_claim *claim, qn_value *value, qn_layout layout);
    qn_claim_value *(*claim_out)(qn_claim *claim, qn_value *value, qn_layout layout);
    void (*claim_plain)(qn_claim *claim);
} qn_plan_api;

typedef struct qn_graph_api {
    /* Nodes, in the form of the latest opset; `domain` is "" for ONNX's own, "quench" for
     * operators that only graphs inside have. */
    const char *(*node_name)(const qn_node *node);
    const char *(*node_op)(const qn_node *node);
    const char *(*node_domain)(const qn_node *node);
    int32_t (*node_inputs)(const qn_node *node);
    int32_t (*node_outputs)(const qn_node *node);
    /* NULL: left out. */
    qn_value *(*node_input)(const qn_node *node, int32_t i);
    qn_value *(*node_output)(const qn_node *node, int32_t i);
    /* Attributes by name: *out is a pointer to int64_t, float, a text, or the first of *count
     * numbers, as the operator declares it; false where the operator has no such attribute or a
     * list is absent. */
    bool (*node_attr)(const void **out, size_t *count, const qn_node *node, const char *name);
    /* The shapes of all outputs follow from those of the inputs, all elements are numbers, and
     * there are no subgraphs: what a device can compute. */
    qn_status (*node_is_static)(bool *out, const qn_node *node);
    /* Computes the node on the host with its reference kernel, from and into tensors there: for
     * what is rare, and for tests. Allocates. */
    qn_status (*node_eval)(qn_context *ctx, const qn_node *node, const qn_tensor *const *in,
                           qn_tensor *const *out);

    /* Values. */
    const char *(*value_name)(const qn_value *value);
    /* Contents of a constant, on the host; else NULL. */
    const qn_tensor *(*value_data)(const qn_value *value);
    size_t (*value_users)(const qn_value *value);
    qn_node *(*value_user)(const qn_value *value, size_t i);
    qn_node *(*value_producer)(const qn_value *value);
} qn_graph_api;

/* Functions of the library. */
struct qn_backend_api {
    uint32_t version;
    size_t size;

    /* Context. A function that fails says why with `fail`, in one line that names the node or
     * value. */
    qn_status (*fail)(qn_context *ctx, qn_status status, const char *format, ...);
    qn_status (*fail_node)(qn_context *ctx, const qn_node *node, qn_status status,
                           const char *format, ...);
    void (*log)(qn_context *ctx, qn_log_level level, const char *format, ...);
    /* QN_E_CANCELLED once the caller wants no more: for loops that can take long. */
    qn_status (*check_cancel)(qn_context *ctx);
    /* Host memory, 64-byte aligned, not zeroed; NULL when short. */
    void *(*alloc)(qn_context *ctx, size_t size);
    void (*free)(qn_context *ctx, void *block);
    /* Of a tensor whose shape was planned, with samples side by side. */
    size_t (*tensor_bytes)(const qn_tensor *tensor);

    qn_plan_api plan;
    qn_graph_api graph;
};

/* ---- The plug-in ----------------------------------------------------------------------------- */

/* What a plug-in has opened for one context. */
typedef struct qn_plugin_set {
    /* The backends, preferred first, one for each device; they stay until close. The library
     * takes copies of the structs themselves. */
    const qn_backend *backends;
    size_t count;
    void *user;
} qn_plugin_set;

typedef struct qn_plugin {
    /* QN_BACKEND_VERSION as the plug-in was compiled with. */
    uint32_t version;
    /* Bytes of this struct. */
    size_t size;
    const char *name;
    /* The plug-in's own version, for reports. */
    const char *release_name;
    /* Once for each context that makes plans, from any thread. No backends (count 0) where there
     * is no device that it could use. On failure close is not called. */
    qn_status (*open)(qn_plugin_set *out, qn_context *ctx, const qn_backend_api *api);
    /* When the context ends, all plans and sessions of which have ended. May be NULL. */
    void (*close)(qn_plugin_set *set, qn_context *ctx);
} qn_plugin;

/* The symbol that the library looks for. */
extern QN_API const qn_plugin qn_plugin_main;
#define QN_PLUGIN_SYMBOL "qn_plugin_main"

#ifdef __cplusplus
}
#endif

#endif
