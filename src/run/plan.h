/* The plan: what to run in which order in which memory, for one set of input shapes. Immutable once
 * built; sessions only read it. */
#ifndef QN_PLAN_H
#define QN_PLAN_H

#include "run/backend.h"

typedef enum qn_place {
    QN_PLACE_CONSTANT, /* shape.data of the slot */
    QN_PLACE_INPUT,    /* the caller's memory, another one each run */
    QN_PLACE_ARENA,    /* `address` in the session's arena */
    QN_PLACE_DYNAMIC   /* shape depends on contents: allocated while running */
} qn_place;

enum { QN_HOST = 0 }; /* the first of a plan's spaces */

/* One value in one layout in one memory space. */
typedef struct qn_slot {
    const qn_value *value;
    int32_t space;   /* of the plan's */
    qn_tensor shape; /* dims where they are known; rank -1 of a dynamic value */
    qn_layout layout;
    qn_place place;
    size_t bytes;   /* with samples side by side */
    size_t stride;  /* bytes from one sample (index of dim 0) to the next */
    bool together;  /* some step needs the samples side by side */
    int32_t root;   /* slot whose memory it lies in; itself unless a view */
    size_t offset;  /* inside the root */
    int32_t first;  /* step that writes it, -1: there from the start */
    int32_t last;   /* last step that reads it or a view of it */
    size_t address; /* in the arena of its space, of a root */
} qn_slot;

typedef struct qn_step {
    const qn_backend *backend;
    int32_t space; /* of the backend, among the plan's */
    const qn_kernel *kernel;
    void *state;
    qn_node **nodes; /* the group; none for a layout conversion */
    int32_t n_nodes;
    int32_t *in, *out; /* slots; -1: left out */
    int32_t n_in, n_out;
    size_t scratch;
    qn_claim *claim; /* while the plan is made */
} qn_step;

/* A value that sessions show to whoever watches, as soon as it is there. */
typedef struct qn_observed {
    int32_t slot;
    int32_t step; /* after which it is complete; -1: from the start */
} qn_observed;

typedef struct qn_slots {
    qn_slot *at;
    size_t count, capacity;
} qn_slots;

/* What a session needs in one memory space. */
typedef struct qn_plan_space {
    const qn_space *space; /* NULL: the host's */
    size_t arena_bytes, scratch_bytes;
} qn_plan_space;

/* Plans the same model in the same way for inputs of other shapes. */
typedef qn_status qn_sibling_fn(qn_plan **out, qn_context *ctx, const qn_plan *plan,
                                const qn_tensor *inputs);

struct qn_plan {
    qn_context *ctx; /* of its maker; only for freeing */
    atomic_int references;
    qn_arena arena;
    qn_model *model; /* the plan's own, passes done */
    int threads;
    const qn_backend **backends; /* ends with NULL */
    void **shared;               /* one per backend, see qn_build_shared */
    qn_plan_space *spaces;       /* of the backends, the host's first */
    size_t n_spaces;
    qn_slots slots;
    qn_step *steps;
    size_t n_steps, steps_capacity;
    int32_t *inputs, *outputs; /* slots, in the graph's order */
    qn_observed *observed;     /* in the order of steps */
    size_t n_observed;
    size_t weight_bytes;
    void **weights; /* packed, see qn_build_alloc_weights */
    size_t n_weights, weights_capacity;
    qn_sibling_fn *sibling; /* set by whoever chose passes and backends; NULL: no other shapes */
    const void *recipe;     /* what `sibling` goes by */
    const char
        *deferred; /* why it has no steps: every run needs a sibling; NULL: a plan like any */
};

/* Says which values of a graph are to be observed. */
typedef bool qn_observe_fn(const void *user, const qn_value *value);

typedef struct qn_plan_config {
    int threads;
    const qn_backend *const *backends; /* preferred first, ends with NULL */
    /* Sums are taken in one order, whatever the batch and the number of threads: no Winograd. */
    bool direct;
    qn_observe_fn *observe; /* NULL: nothing */
    const void *observe_user;
} qn_plan_config;

/* Plans the model's main graph, whose types must be inferred. The model belongs to the plan from here
 * on, also on failure. */
QN_MUST_CHECK qn_status qn_plan_build(qn_plan **out, qn_model *model, const qn_plan_config *config);
/* A plan that leaves the planning to its siblings, because the shapes of the inputs must be known. `why`
 * is the message for those who cannot wait. The model as of qn_plan_build. */
QN_MUST_CHECK qn_status qn_plan_defer(qn_plan **out, qn_model *model, const qn_plan_config *config,
                                      const char *why);
qn_plan *qn_plan_retain(qn_plan *plan);
/* Bytes that one session takes in all spaces. */
size_t qn_plan_arena_bytes(const qn_plan *plan);
size_t qn_plan_scratch_bytes(const qn_plan *plan);

/* Gives every root in the arena its address so that slots alive at the same time do not overlap;
 * sets arena_bytes of every space. (memory.c) */
QN_MUST_CHECK qn_status qn_plan_memory(qn_plan *plan);

#endif
