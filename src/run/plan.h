/* The plan: what to run in which order in which memory, for one set of input shapes. Immutable once
 * built; sessions only read it. */
#ifndef QN_PLAN_H
#define QN_PLAN_H

#include "run/backend.h"

typedef enum qn_place {
    /* Shape.data of the slot */
    QN_PLACE_CONSTANT,
    /* The caller's memory, another one each run */
    QN_PLACE_INPUT,
    /* Memory of the session's that lasts from run to run */
    QN_PLACE_PARAMETER,
    /* `address` in the session's arena */
    QN_PLACE_ARENA,
    /* Shape depends on contents: allocated while running */
    QN_PLACE_DYNAMIC
} qn_place;

enum { QN_HOST = 0 }; /* the first of a plan's spaces */

/* One value in one layout in one memory space. */
typedef struct qn_slot {
    const qn_value *value;
    /* The number among the plan's spaces */
    int32_t space;
    /* Dims where they are known; rank -1 of a dynamic value */
    qn_tensor shape;
    qn_layout layout;
    qn_place place;
    /* The bytes with samples side by side */
    size_t bytes;
    /* Bytes from one sample (index of dim 0) to the next */
    size_t stride;
    /* Some step needs the samples side by side */
    bool together;
    /* Slot whose memory it lies in; itself unless a view */
    int32_t root;
    /* Inside the root */
    size_t offset;
    /* Step that writes it, -1: there from the start */
    int32_t first;
    /* Last step that reads it or a view of it */
    int32_t last;
    /* The address of a root in the arena of its space */
    size_t address;
} qn_slot;

typedef struct qn_step {
    const qn_backend *backend;
    /* The space of the backend, among the plan's */
    int32_t space;
    const qn_kernel *kernel;
    void *state;
    /* The group; none for a layout conversion */
    qn_node **nodes;
    int32_t n_nodes;
    /* Slots; -1: left out */
    int32_t *in, *out;
    int32_t n_in, n_out;
    size_t scratch;
    /* Copies in[0] to out[0], another space (copies.c). */
    bool is_copy;
    /* Streams must be done before it. */
    bool waits;
    /* While the plan is made */
    qn_claim *claim;
} qn_step;

/* A value that sessions show to whoever watches, as soon as it is there. */
typedef struct qn_observed {
    int32_t slot;
    /* The step after which it is complete; -1: from the start */
    int32_t step;
} qn_observed;

typedef struct qn_slots {
    qn_slot *at;
    size_t count, capacity;
} qn_slots;

/* What a session needs in one memory space. */
typedef struct qn_plan_space {
    /* NULL: the host's. */
    const qn_space *space;
    /* The first that works there; of the host NULL. */
    const qn_backend *backend;
    size_t arena_bytes, scratch_bytes;
} qn_plan_space;

/* Packed weights, or a constant of a space. */
typedef struct qn_plan_block {
    void *at;
    const qn_space *space;
} qn_plan_block;

/* Plans the same model in the same way for inputs of other shapes. */
typedef qn_status qn_sibling_fn(qn_plan **out, qn_context *ctx, const qn_plan *plan,
                                const qn_tensor *inputs);

struct qn_plan {
    /* The context of its maker; only for freeing */
    qn_context *ctx;
    atomic_int references;
    qn_arena arena;
    /* The plan's own, passes done */
    qn_model *model;
    int threads;
    /* Ends with NULL */
    const qn_backend **backends;
    /* One per backend, see qn_build_shared */
    void **shared;
    /* The spaces of the backends, the host's first */
    qn_plan_space *spaces;
    size_t n_spaces;
    qn_slots slots;
    qn_step *steps;
    size_t n_steps, steps_capacity;
    /* Slots, in the graph's order */
    int32_t *inputs, *outputs;
    /* The values in the order of steps */
    qn_observed *observed;
    size_t n_observed;
    size_t weight_bytes;
    qn_plan_block *weights;
    size_t n_weights, weights_capacity;
    /* Set by whoever chose passes and backends; NULL: no other shapes */
    qn_sibling_fn *sibling;
    /* What `sibling` goes by */
    const void *recipe;
    /* Why it has no steps: every run needs a sibling; NULL: a plan like any */
    const char *deferred;
};

/* Says which values of a graph are to be observed. */
typedef bool qn_observe_fn(const void *user, const qn_value *value);

typedef struct qn_plan_config {
    int threads;
    /* Preferred first, ends with NULL */
    const qn_backend *const *backends;
    /* Sums are taken in one order, whatever the batch and the number of threads: no Winograd. */
    bool direct;
    /* Kernels are chosen but not prepared: the plan tells what would run, and cannot run. */
    bool only_claims;
    /* NULL: nothing */
    qn_observe_fn *observe;
    const void *observe_user;
} qn_plan_config;

/* Plans the model's main graph, whose types must be inferred. The model belongs to the plan from
 * here on, also on failure. */
QN_MUST_CHECK qn_status qn_plan_build(qn_plan **out, qn_model *model, const qn_plan_config *config);
/* A plan that leaves the planning to its siblings, because the shapes of the inputs must be
 * known. `why` is the message for those who cannot wait. The model as of qn_plan_build. */
QN_MUST_CHECK qn_status qn_plan_defer(qn_plan **out, qn_model *model, const qn_plan_config *config,
                                      const char *why);
qn_plan *qn_plan_retain(qn_plan *plan);
/* What the step takes, in milliseconds on one core, as its kernel's rates and its shapes say: the
 * same on every machine. (cost.c) */
double qn_step_cost(const qn_plan *plan, const qn_step *step);
/* Bytes that one session takes in all spaces. */
size_t qn_plan_arena_bytes(const qn_plan *plan);
size_t qn_plan_scratch_bytes(const qn_plan *plan);

/* Memory of a space, NULL for the host's: 64-byte aligned, NULL when short. (copies.c) */
void *qn_space_alloc(const qn_space *space, qn_context *ctx, size_t size);
void qn_space_free(const qn_space *space, qn_context *ctx, void *block);
/* The failure of a backend that a plug-in brought names its file. Passes others on. */
QN_MUST_CHECK qn_status qn_backend_fault(qn_context *ctx, const qn_backend *backend,
                                         qn_status status);

/* Gives every root in the arena its address so that slots alive at the same time do not overlap;
 * sets arena_bytes of every space. (memory.c) */
QN_MUST_CHECK qn_status qn_plan_memory(qn_plan *plan);

#endif
