/* The door between planner and backends.
 *
 * The planner walks the graph in topological order and offers each node that is not yet taken to
 * the backends, the preferred one first. A backend takes a node, alone or together with later nodes
 * that it fuses, by filling a qn_claim: which nodes, which values go in and come out, in which
 * layouts, how much scratch, which kernel. Layouts of the inputs are known by then, since their
 * producers were planned earlier; where a claim wants another one the planner puts a conversion in
 * between (one per value and layout). The last backend, `ref`, takes everything in row-major form.
 *
 * A backend works in one memory space, that of the host or another one (a device with its own
 * memory). All that its kernels are given lies there: values, scratch. Callers see the host's;
 * where a value is produced in one space and read in another the planner puts a copy in between,
 * row-major on both sides, which the backend of the other space claims like any conversion.
 *
 * When all nodes are claimed it is known where every value lies (a part may have been placed in the
 * whole that a later Concat makes of it), and the kernels are prepared, in the order of the steps.
 *
 *   plan time      claim, then kernel.prepare  packs weights, compiles; read-only afterwards
 *   session time   kernel.bind              one caller's state: addresses are fixed from here on
 *   run time       kernel.run               no allocation, no lock, no parsing */
#ifndef QN_BACKEND_H
#define QN_BACKEND_H

#include "ops/op.h"
#include "run/layout.h"

typedef struct qn_backend qn_backend;
typedef struct qn_kernel qn_kernel;
typedef struct qn_builder qn_builder; /* the plan being made */

/* Memory in which the values of a session lie. NULL stands for that of the host. */
typedef struct qn_space {
    const char *name;
    /* 64-byte aligned; NULL when short. */
    void *(*alloc)(qn_context *ctx, size_t size);
    /* Block may be NULL */
    void (*free)(qn_context *ctx, void *block);
} qn_space;

enum { QN_CLAIM_SPARE = 64 }; /* nodes and values that a claim can have beyond those of its node */

/* One value of a claim. */
typedef struct qn_claim_value {
    /* NULL keeps its place: an input left out, an output not wanted */
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
     * samples, and nothing is left to copy. The backend has asked qn_build_can_place. */
    bool placed;
    /* Into the first sample */
    size_t offset;
    /* Set before prepare: bytes from one sample to the next. */
    size_t stride;
    /* Set by the planner: the backend's own, or the other one that a conversion copies from or
     * to. */
    const qn_space *space;
} qn_claim_value;

typedef struct qn_claim {
    qn_builder *builder;
    /* Offered */
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
    /* Bytes while it runs, 64-byte aligned; may be set as late as in prepare */
    size_t scratch;
    /* NULL: nothing is left to do at run time, views and placed inputs say it all. */
    const qn_kernel *kernel;
    /* What prepare works on; from qn_build_alloc. kernel->free gets it in any case. */
    void *state;
} qn_claim;

/* What a running kernel sees. Tensors have row-major dims whatever the layout of their data is. */
typedef struct qn_step_io {
    qn_context *ctx;
    qn_tensor *const *in, *const *out;
    void *scratch;
    int threads;
} qn_step_io;

struct qn_kernel {
    /* As `bench --profile` shows it */
    const char *name;
    /* Makes claim->state final: packs weights, creates primitives. May be NULL. After it the
     * contents of constants that are not inputs of the claim may be given back. */
    qn_status (*prepare)(qn_claim *claim);
    /* One session's own state; *bound NULL where none is needed. The data pointers of io are final
     * except those of graph inputs. May be NULL. */
    qn_status (*bind)(void **bound, const void *state, const qn_step_io *io);
    qn_status (*run)(const void *state, void *bound, const qn_step_io *io);
    void (*unbind)(qn_context *ctx, const void *state, void *bound);
    /* What state holds outside the plan's memory, prepared or not. */
    void (*free)(void *state);
};

struct qn_backend {
    const char *name;
    /* *taken says whether the node was claimed. */
    qn_status (*claim)(bool *taken, qn_claim *claim);
    /* NULL: the host's */
    const qn_space *space;
    /* Claims the copy of in[0] to out[0] between their layouts; leaves the kernel NULL where it has
     * none. Either side may be strided. NULL: the plain copy of layout.h. A backend of another
     * space must have it, for row-major values to and from the host and for the layouts that it
     * asks for. */
    qn_status (*convert)(qn_claim *claim);
    /* Frees what *qn_build_shared has been set to, where that is not the plan's own memory. May be
     * NULL. */
    void (*release)(void *shared);
    /* Float multiply-accumulates a second, in 1e9, that its processor can do at most on so many
     * threads: a measure for kernels. NULL: not known. */
    double (*peak)(int threads);
};

/* The backends of this build, preferred first; ends with NULL. */
extern const qn_backend *const qn_backends[];

/* ---- What a backend may ask while it claims -------------------------------------------------- */

qn_context *qn_build_context(const qn_builder *builder);
int qn_build_threads(const qn_builder *builder);
/* Zeroed memory that lives as long as the plan; NULL when short. */
void *qn_build_alloc(qn_builder *builder, size_t size);
/* The backend's own object of this plan, NULL at first; see qn_backend.release. */
void **qn_build_shared(qn_builder *builder);
/* 64-byte aligned memory for packed weights, freed with the plan; NULL when short. */
void *qn_build_alloc_weights(qn_builder *builder, size_t size);
/* Bytes [offset, offset + size) of a constant that the claim alone reads are packed by now: pages
 * of the file may leave memory. All of it does so by itself after prepare. */
void qn_build_release_part(qn_builder *builder, const qn_value *value, size_t offset, size_t size);
/* Bytes of all constants of the model. */
size_t qn_build_model_bytes(const qn_builder *builder);
/* Sums must not depend on batch or threads: an algorithm that reorders them is not wanted. */
bool qn_build_direct(const qn_builder *builder);
/* Somebody outside wants to see the value: a graph output, or one to be observed. No group may keep
 * it inside. */
bool qn_build_shown(const qn_builder *builder, const qn_value *value);
/* The layout in which a value has been planned in the space of the backend that asks. Constants,
 * graph inputs and what comes from another space are row-major. */
qn_layout qn_build_layout(const qn_builder *builder, const qn_value *value);
/* Dims and type of a value, all known; false where they depend on contents. */
bool qn_build_shape(qn_tensor *out, const qn_builder *builder, const qn_value *value);
/* The value is computed by now: a constant, an input, or the output of an earlier step. */
bool qn_build_ready(const qn_builder *builder, const qn_value *value);
/* The node belongs to an earlier step. */
bool qn_build_taken(const qn_builder *builder, const qn_node *node);
/* No step after this claim reads the value and nobody outside does, so its memory may be
 * written. */
bool qn_build_dies(const qn_claim *claim, const qn_value *value);
/* The node that alone reads `value`, when it is not yet taken: what a group may grow by. Else
 * NULL. */
qn_node *qn_build_fusible(const qn_builder *builder, const qn_value *value);
/* Input i of the claim is free to be put at its offset of out[0]: computed by a step, in the layout
 * that the claim names, fitting there with all that shares its memory, and where there are several
 * samples no step needs them side by side. The offsets of all inputs must be set. */
bool qn_build_can_place(const qn_claim *claim, int32_t i);

/* Adds a node, an input or an output to the claim. */
void qn_claim_add(qn_claim *claim, qn_node *node);
qn_claim_value *qn_claim_in(qn_claim *claim, qn_value *value, qn_layout layout);
qn_claim_value *qn_claim_out(qn_claim *claim, qn_value *value, qn_layout layout);
/* All inputs (captured ones too) and outputs of the node, row-major. */
void qn_claim_plain(qn_claim *claim);

#endif
