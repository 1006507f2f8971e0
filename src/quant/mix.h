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
    /* NULL: somebody else's */
    qn_json_document *document;
    /* Where the members stand */
    qn_json_place above, root;
    qn_arena arena;
    /* In the order of the text */
    qn_mix_row *rows;
    size_t count;
    qn_names by_node;
} qn_mix;

/* Rules 2 to 4: what every member says. */
QN_MUST_CHECK qn_status qn_mix_load(qn_mix **out, qn_context *ctx, const char *path);
/* The same of an object in a document that outlives it. */
QN_MUST_CHECK qn_status qn_mix_read(qn_mix **out, qn_context *ctx, const qn_json_place *object);
/* The file's bytes outlive it; `name` is for messages. */
QN_MUST_CHECK qn_status qn_mix_parse(qn_mix **out, qn_context *ctx, const void *data, size_t size,
                                     const char *name);
void qn_mix_free(qn_mix *mix);
/* NULL: there is none. */
const qn_mix_row *qn_mix_find(const qn_mix *mix, const char *node);
bool qn_mix_has_method(const qn_mix *mix, const char *method);

/* ---- Nodes (of a quantizer whose rules are applied as far as to know which are integer) ------ */

/* The file has a member for it. */
bool qn_mix_is_node(const qn_quantizer *q, const qn_quant_node *n);
/* Gives every node its width and method, as q->settings.mix says. Fails where a node is missing
 * (rule 1), or rules 5 to 8 are broken. */
QN_MUST_CHECK qn_status qn_mix_apply(qn_quantizer *q);
/* Rules 5 to 8 for the widths as they are, which the file says. */
QN_MUST_CHECK qn_status qn_mix_check_widths(const qn_quantizer *q, const qn_mix *mix);
/* Rule 1: a member whose name no node has, of the quantizer's graph or of the one before all
 * passes, is an error. Members of nodes that have no width of their own are told in the log. */
QN_MUST_CHECK qn_status qn_mix_check_names(const qn_quantizer *q, const qn_mix *mix,
                                           const qn_graph *original);

/* ---- Rules 5 to 8 (mix_rules.c) -------------------------------------------------------------- */

/* The width of `a` must be that of `b`, or must not exceed it. */
typedef struct qn_mix_constraint {
    qn_quant_node *a, *b;
    int rule;
    bool at_most;
    /* That makes it so; NULL: the model's inputs do */
    const qn_node *around;
} qn_mix_constraint;

typedef struct qn_mix_constraints {
    /* In the quantizer's context */
    qn_mix_constraint *at;
    size_t count, capacity;
} qn_mix_constraints;

QN_MUST_CHECK qn_status qn_mix_constraints_find(qn_mix_constraints *out, const qn_quantizer *q);
void qn_mix_constraints_free(qn_mix_constraints *bonds, const qn_quantizer *q);
/* The first that is broken by the widths as they are; NULL: none. */
const qn_mix_constraint *qn_mix_constraints_broken(const qn_mix_constraints *bonds);
/* Why there is such a bond, in words. */
const char *qn_mix_rule_text(int rule);

/* ---- Templates (mix_template.c) -------------------------------------------------------------- */

typedef struct qn_mix_template_options {
    int bits;
    /* NULL: `usual` for 8 bits, min_max for 16 */
    const qn_method *method;
    const qn_method *usual;
    /* What it says comes before bits and method; NULL: nothing */
    const qn_mix *base;
    /* 16 bits next to inputs and outputs, 8 between, whatever else says */
    bool int16_ends;
    /* Of the nodes that have 8 bits then, at least */
    double ratio;
} qn_mix_template_options;

/* Gives the nodes of a quantizer that was made without a mix their widths and methods. */
QN_MUST_CHECK qn_status qn_mix_fill(qn_quantizer *q, const qn_mix_template_options *wish);
/* The file that says them; freed with qn_text_free. */
QN_MUST_CHECK qn_status qn_mix_write(char **out, const qn_quantizer *q);
/* The same as an object, for a file that has more; NULL: memory is short. */
qn_json *qn_mix_json(const qn_quantizer *q);

#endif
