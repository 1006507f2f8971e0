/* What the library's own backends ask the planner. How a backend looks, to the planner and to
 * plug-ins, is include/quench/backend.h: read that first. */
#ifndef QN_BACKEND_H
#define QN_BACKEND_H

#include "ops/op.h"
#include "run/layout.h"

/* The backends of this build, preferred first; ends with NULL. */
extern const qn_backend *const qn_backends[];

/* ---- What a backend may ask while it claims -------------------------------------------------- */

qn_context *qn_build_context(const qn_builder *builder);
int qn_build_threads(const qn_builder *builder);
/* Zeroed memory that lives as long as the plan; NULL when short. */
void *qn_build_alloc(qn_builder *builder, size_t size);
/* The backend's own object of this plan, NULL at first; see qn_backend.release. */
void **qn_build_shared(qn_builder *builder);
/* 64-byte aligned memory for packed weights in the space of the backend that asks, freed with
 * the plan; NULL when short. */
void *qn_build_alloc_weights(qn_builder *builder, size_t size);
/* Such memory with a copy of what lies on the host. */
QN_MUST_CHECK qn_status qn_build_upload(void **out, qn_builder *builder, const void *data,
                                        size_t size);
/* Bytes [offset, offset + size) of a constant that the claim alone reads are packed by now:
 * pages of the file may leave memory. All of it does so by itself after prepare. */
void qn_build_release_part(qn_builder *builder, const qn_value *value, size_t offset, size_t size);
/* Bytes of all constants of the model. */
size_t qn_build_model_bytes(const qn_builder *builder);
/* Sums must not depend on batch or threads: an algorithm that reorders them is not wanted. */
bool qn_build_direct(const qn_builder *builder);
/* Somebody outside wants to see the value: a graph output, or one to be observed. No group may
 * keep it inside. */
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
/* Input i of the claim is free to be put at its offset of out[0]: computed by a step, in the
 * layout that the claim names, fitting there with all that shares its memory, and where there
 * are several samples no step needs them side by side. The offsets of all inputs must be set. */
bool qn_build_can_place(const qn_claim *claim, int32_t i);

/* Adds a node, an input or an output to the claim. */
void qn_claim_add(qn_claim *claim, qn_node *node);
qn_claim_value *qn_claim_in(qn_claim *claim, qn_value *value, qn_layout layout);
qn_claim_value *qn_claim_out(qn_claim *claim, qn_value *value, qn_layout layout);
/* All inputs (captured ones too) and outputs of the node, row-major. */
void qn_claim_plain(qn_claim *claim);

#endif
