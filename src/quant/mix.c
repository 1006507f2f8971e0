/* Mix files: widths and methods of single nodes, read and applied. */
#include "quant/mix.h"

#include <string.h>

#include "base/nearest.h"
#include "quant/pattern.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static qn_status get_field(qn_json_place *out, const qn_json_place *node, const char *key)
{
    if (qn_json_find(out, node, key))
        return QN_OK;
    return qn_json_fail(node, QN_E_INVALID,
                        "has no '%s': bitwidth and mode are both needed (rule 2)", key);
}

static qn_status get_bits(int *out, const qn_json_place *node)
{
    qn_json_place item;
    int64_t bits = 0;
    QN_TRY(get_field(&item, node, "bitwidth"));
    QN_TRY(qn_json_get_int(&bits, &item, INT64_MIN, INT64_MAX));
    if (bits == (int)bits && qn_width_is_computed((int)bits)) {
        *out = (int)bits;
        return QN_OK;
    }
    char list[64];
    qn_width_list(list, sizeof list);
    return qn_json_fail(&item, QN_E_INVALID, "is %lld: a node has %s bits (rule 3)",
                        (long long)bits, list);
}

static qn_status get_method(const qn_method **out, qn_context *ctx, const qn_json_place *node)
{
    static const char *const modes[] = {"min_max", "kl", "kl_v2", "percentile", "mse"};
    qn_json_place item;
    const char *name = NULL;
    QN_TRY(get_field(&item, node, "mode"));
    QN_TRY(qn_json_get_text(&name, &item));
    for (size_t i = 0; i < QN_COUNT_OF(modes); i++) {
        if (strcmp(modes[i], name) == 0)
            return qn_method_find(out, ctx, name);
    }
    return qn_json_fail(&item, QN_E_INVALID,
                        "is '%s': it must be min_max, kl, kl_v2, percentile or mse (rule 4)", name);
}

static qn_status get_row(qn_mix_row *out, qn_mix *m, const qn_json_place *node)
{
    static const char *const keys[] = {"bitwidth", "mode", NULL};
    if (!qn_json_is_object(node))
        return qn_json_fail(node, QN_E_INVALID,
                            "must be {\"bitwidth\": 8 or 16, \"mode\": METHOD} (rule 2)");
    out->node = node->key;
    QN_TRY(get_bits(&out->bits, node));
    QN_TRY(get_method(&out->method, m->ctx, node));
    QN_TRY(qn_json_only(node, keys));
    return qn_names_set(&m->by_node, out->node, out);
}

static qn_status get_rows(qn_mix *m)
{
    qn_json_place member;
    size_t count = 0;
    QN_TRY(qn_json_members(&count, &m->root));
    m->rows = qn_arena_array(&m->arena, count + 1, sizeof *m->rows);
    QN_TRY_ALLOC(m->ctx, m->rows);
    for (void *i = NULL; qn_json_next(&member, &m->root, &i);) {
        QN_TRY(get_row(&m->rows[m->count], m, &member));
        m->count++;
    }
    return QN_OK;
}

/* Creates a mix for a document of its own, or for an object in somebody else's. */
static qn_status create(qn_mix **out, qn_context *ctx, qn_json_document *document,
                        const qn_json_place *object)
{
    qn_mix *m = qn_alloc_zero(ctx, 1, sizeof *m);
    *out = NULL;
    if (!m) {
        qn_json_document_free(document);
        return qn_fail_nomem(ctx);
    }
    m->ctx = ctx;
    m->document = document;
    m->root = document ? qn_json_root(document) : *object;
    if (m->root.parent) {
        m->above = *m->root.parent;
        m->root.parent = &m->above;
    }
    qn_arena_init(&m->arena, &ctx->allocator);
    qn_names_init(&m->by_node, ctx);
    const qn_status status = get_rows(m);
    if (status == QN_OK)
        *out = m;
    else
        qn_mix_free(m);
    return status;
}

qn_status qn_mix_load(qn_mix **out, qn_context *ctx, const char *path)
{
    qn_json_document *document;
    *out = NULL;
    QN_TRY(qn_json_load(&document, ctx, path));
    return create(out, ctx, document, NULL);
}

qn_status qn_mix_parse(qn_mix **out, qn_context *ctx, const void *data, size_t size,
                       const char *name)
{
    qn_json_document *document;
    *out = NULL;
    QN_TRY(qn_json_read(&document, ctx, data, size, name));
    return create(out, ctx, document, NULL);
}

qn_status qn_mix_read(qn_mix **out, qn_context *ctx, const qn_json_place *object)
{
    return create(out, ctx, NULL, object);
}

void qn_mix_free(qn_mix *mix)
{
    if (!mix)
        return;
    qn_names_free(&mix->by_node);
    qn_arena_free(&mix->arena);
    qn_json_document_free(mix->document);
    qn_free(mix->ctx, mix);
}

const qn_mix_row *qn_mix_find(const qn_mix *mix, const char *node)
{
    return qn_names_get(&mix->by_node, node);
}

bool qn_mix_has_method(const qn_mix *mix, const char *method)
{
    bool found = false;
    for (size_t i = 0; mix && i < mix->count && !found; i++)
        found = strcmp(mix->rows[i].method->name, method) == 0;
    return found;
}

/* ---- Applying -------------------------------------------------------------------------------- */

bool qn_mix_is_node(const qn_quantizer *q, const qn_quant_node *n)
{
    return n->integer && n->quant_class != QN_CLASS_PASS_THROUGH && !qn_rule_before(q, n);
}

static qn_status apply_row(qn_quant_node *n, const qn_mix *mix)
{
    const qn_mix_row *row = qn_mix_find(mix, n->node->name);
    if (!row)
        return qn_json_fail(
            &mix->root, QN_E_INVALID,
            "has nothing of node '%s' (%s), which is quantized: `qn_mix_template` makes a "
            "template that has them all (rule 1)",
            n->node->name, n->node->op->name);
    n->bits = n->weight_bits = row->bits;
    n->method = row->method;
    return QN_OK;
}

/* What moves numbers, or is part of another node, goes along with it. */
static void follow(const qn_quantizer *q, qn_quant_node *n)
{
    const qn_quant_node *before = qn_rule_before(q, n);
    const qn_node *producer = n->node->in[0] ? n->node->in[0]->producer : NULL;
    if (!before && producer && q->nodes[producer->number].integer)
        before = &q->nodes[producer->number];
    n->bits = n->weight_bits = before ? before->bits : QN_WIDTH_STANDARD;
    n->method = before ? before->method : NULL;
}

qn_status qn_mix_check_widths(const qn_quantizer *q, const qn_mix *mix)
{
    qn_mix_constraints bonds = {.at = NULL};
    qn_json_place item = mix->root;
    qn_status status = qn_mix_constraints_find(&bonds, q);
    const qn_mix_constraint *broken = status == QN_OK ? qn_mix_constraints_broken(&bonds) : NULL;
    if (broken) {
        const char *around = broken->around ? broken->around->name : NULL;
        (void)qn_json_find(&item, &mix->root, broken->a->node->name);
        status = qn_json_fail(
            &item, QN_E_INVALID, "has %d bits and node '%s' %d: %s%s%s%s (rule %d)",
            broken->a->bits, broken->b->node->name, broken->b->bits, qn_mix_rule_text(broken->rule),
            around ? " '" : "", around ? around : "", around ? "'" : "", broken->rule);
    }
    qn_mix_constraints_free(&bonds, q);
    return status;
}

qn_status qn_mix_apply(qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        qn_quant_node *n = &q->nodes[i];
        if (!n->integer)
            continue;
        if (qn_mix_is_node(q, n))
            QN_TRY(apply_row(n, q->settings.mix));
        else
            follow(q, n);
    }
    return qn_mix_check_widths(q, q->settings.mix);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static qn_status fail_unknown(const qn_quantizer *q, const qn_json_place *member)
{
    qn_near near = {.wanted = member->key, .distance = SIZE_MAX};
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (qn_mix_is_node(q, &q->nodes[i]))
            qn_near_try(&near, q->nodes[i].node->name);
    }
    return qn_json_fail(member, QN_E_INVALID, "the model has no such node%s%s%s (rule 1)",
                        near.best ? "; did you mean '" : "", near.best ? near.best : "",
                        near.best ? "'?" : "");
}

/* Logs the members without effect in one line, with the first few names. */
static void log_idle(const qn_quantizer *q, const qn_mix *mix, const char *const *names,
                     size_t count)
{
    enum { SHOWN = 3 };
    char list[256] = "", where[512];
    for (size_t i = 0; i < QN_MIN(count, SHOWN); i++)
        qn_word_list(list, sizeof list, "'%s'", names[i]);
    qn_log(
        q->ctx, QN_LOG_NOTE,
        "%s: %zu entr%s no effect: %s%s (part of another node, or moves numbers, or stays float)",
        qn_json_where(where, sizeof where, &mix->root), count, count > 1 ? "ies have" : "y has",
        list, count > SHOWN ? ", ..." : "");
}

qn_status qn_mix_check_names(const qn_quantizer *q, const qn_mix *mix, const qn_graph *original)
{
    const char **idle = qn_alloc_zero(q->ctx, mix->count + 1, sizeof *idle);
    size_t n_idle = 0;
    qn_status status = QN_OK;
    QN_TRY_ALLOC(q->ctx, idle);
    for (size_t i = 0; i < mix->count && status == QN_OK; i++) {
        const char *name = mix->rows[i].node;
        const qn_node *node = qn_graph_node(q->graph, name);
        qn_json_place member;
        if (node && qn_mix_is_node(q, qn_quant_node_of(q, node)))
            continue;
        if (node || qn_graph_node(original, name))
            idle[n_idle++] = name;
        else if (qn_json_find(&member, &mix->root, name))
            status = fail_unknown(q, &member);
    }
    if (status == QN_OK && n_idle)
        log_idle(q, mix, idle, n_idle);
    qn_free(q->ctx, idle);
    return status;
}
