/* Values of a float graph that runs of its quantized copies can start from: whatever comes before
 * the first integer of such a copy is what the float graph computes, and need not be computed
 * again. */
#ifndef QN_PREFIX_CACHE_H
#define QN_PREFIX_CACHE_H

#include "model/prepare.h"

typedef struct qn_prefix_cache {
    /* The names of the values, in the graph's order */
    const char **names;
    size_t count;
} qn_prefix_cache;

/* Chooses values, as evenly spread as `bytes` allow, of the float model with the inputs that the
 * options say. The names are of `arena`; *out is a copy of the model with the values as outputs
 * behind its own ones. No values and no model where the shapes are not known. */
QN_MUST_CHECK qn_status qn_prefix_cache_choose(qn_prefix_cache *prefixes, qn_model **out,
                                               qn_arena *arena, qn_model *real,
                                               const qn_graph_options *options, size_t bytes);
/* A copy of the quantized model that has those values as inputs, behind its own ones, which are
 * what the float model makes them: used[i] is the place among the prefixes of the i-th one. `used`
 * has room for all. `tensors` tell their types. */
QN_MUST_CHECK qn_status qn_prefix_cache_cut(qn_model **out, size_t *used, size_t *n_used,
                                            const qn_prefix_cache *prefixes,
                                            qn_model *const models[2], const qn_tensor *tensors);

#endif
