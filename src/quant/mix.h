/* Widths and methods node by node: the mix file.
 *
 *   {"NODE": {"bitwidth": 8 | 16, "mode": METHOD}, ...}
 *
 * It has a member for every node that is quantized by itself: not for those that only move numbers,
 * that are part of the node before them (Relu behind a convolution, ...), or that stay float. Eight
 * rules hold; docs/quantization.md has them, and messages name them by their numbers. */
#ifndef QN_MIX_H
#define QN_MIX_H

#include "base/json.h"
#include "base/names.h"
#include "quant/quant.h"

typedef struct qn_mix_row {
    const char *node;
    int bits;
    const qn_method *method;
} qn_mix_row;

typedef struct qn_mix {
    qn_context *ctx;
    /* The document that the mix owns; NULL: somebody else owns it. */
    qn_json_document *document;
    /* The object with the members, and what contains it, for messages. */
    qn_json_place above, root;
    qn_arena arena;
    /* One row per member, in the order of the file. */
    qn_mix_row *rows;
    size_t count;
    qn_names by_node;
} qn_mix;

/* Reads the file and checks rules 2 to 4, which concern each member alone. */
QN_MUST_CHECK qn_status qn_mix_load(qn_mix **out, qn_context *ctx, const char *path);
/* The same for an object in a document that outlives the mix. */
QN_MUST_CHECK qn_status qn_mix_read(qn_mix **out, qn_context *ctx, const qn_json_place *object);
/* The same for a file's bytes, which must outlive the mix; `name` is for messages. */
QN_MUST_CHECK qn_status qn_mix_parse(qn_mix **out, qn_context *ctx, const void *data, size_t size,
                                     const char *name);
void qn_mix_free(qn_mix *mix);
/* The row for the node; NULL: the file has none. */
const qn_mix_row *qn_mix_find(const qn_mix *mix, const char *node);
bool qn_mix_has_method(const qn_mix *mix, const char *method);

/* ---- Nodes of a quantizer that knows which of them are integer ------------------------------- */

/* Whether the file must have a member for the node. */
bool qn_mix_is_node(const qn_quantizer *q, const qn_quant_node *n);
/* Gives every node its width and method from q->settings.mix. Fails where a node is missing (rule
 * 1) or rules 5 to 8 are broken. */
QN_MUST_CHECK qn_status qn_mix_apply(qn_quantizer *q);
/* Checks rules 5 to 8 for the widths that the nodes have. */
QN_MUST_CHECK qn_status qn_mix_check_widths(const qn_quantizer *q, const qn_mix *mix);
/* Rule 1: fails where a member names a node that neither the quantizer's graph nor the graph before
 * all passes has. Members for nodes without a width of their own are logged. */
QN_MUST_CHECK qn_status qn_mix_check_names(const qn_quantizer *q, const qn_mix *mix,
                                           const qn_graph *original);

/* ---- Rules 5 to 8 (mix_rules.c) -------------------------------------------------------------- */

/* A constraint between two nodes: the width of `a` equals that of `b`, or does not exceed it. */
typedef struct qn_mix_constraint {
    qn_quant_node *a, *b;
    int rule;
    bool at_most;
    /* The node that causes the constraint; NULL: the model's inputs do. */
    const qn_node *around;
} qn_mix_constraint;

typedef struct qn_mix_constraints {
    /* [count], allocated in the quantizer's context. */
    qn_mix_constraint *at;
    size_t count, capacity;
} qn_mix_constraints;

QN_MUST_CHECK qn_status qn_mix_constraints_find(qn_mix_constraints *out, const qn_quantizer *q);
void qn_mix_constraints_free(qn_mix_constraints *bonds, const qn_quantizer *q);
/* The first constraint that the current widths break; NULL: none. */
const qn_mix_constraint *qn_mix_constraints_broken(const qn_mix_constraints *bonds);
/* The reason for the rule, in words. */
const char *qn_mix_rule_text(int rule);

/* ---- Templates (mix_template.c) -------------------------------------------------------------- */

typedef struct qn_mix_template_options {
    int bits;
    /* The method of every node; NULL: `usual` for 8 bits and min_max for 16. */
    const qn_method *method;
    const qn_method *usual;
    /* A mix that overrides bits and method where it has a row; NULL: none. */
    const qn_mix *base;
    /* Nodes next to inputs and outputs get 16 bits and all others 8, whatever else says. */
    bool int16_ends;
    /* The least share of nodes that then have 8 bits. */
    double ratio;
} qn_mix_template_options;

/* Chooses widths and methods for the nodes of a quantizer that was made without a mix. */
QN_MUST_CHECK qn_status qn_mix_fill(qn_quantizer *q, const qn_mix_template_options *wish);
/* The text of the mix file for these widths and methods; freed with qn_text_free. */
QN_MUST_CHECK qn_status qn_mix_write(char **out, const qn_quantizer *q);
/* The same as a JSON object that becomes part of another file; NULL: memory is short. */
qn_json *qn_mix_json(const qn_quantizer *q);

#endif
