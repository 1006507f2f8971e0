/* Nodes in the order in which they need each other, converted one after the other. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* A walk down the inputs, without recursion: files choose how deep it goes. */
typedef struct step {
    qn_tf_node *node;
    size_t next;
} step;

typedef struct walk {
    qn_tf_import *import;
    const qn_tf_loop *within;
    uint32_t number;
    /* Only what is needed in the end, once it is known what is dead. */
    bool alive;
    step *steps;
    size_t n_steps, steps_capacity;
    qn_tf_node **order;
    size_t n_order, order_capacity;
} walk;

/* What the model or a turn of the loop begins with is there already. */
static bool is_given(const walk *w, const qn_tf_node *node)
{
    if (!node->scope->function && qn_names_get(&w->import->starts, node->name))
        return true;
    const bool entry = strcmp(node->type, "Enter") == 0 || strcmp(node->type, "RefEnter") == 0;
    const bool merge = strcmp(node->type, "Merge") == 0 || strcmp(node->type, "RefMerge") == 0;
    return w->within && node->loop == w->within && (entry || merge);
}

static bool is_exit(const qn_tf_node *node)
{
    return node->loop && (strcmp(node->type, "Exit") == 0 || strcmp(node->type, "RefExit") == 0);
}

/* What comes out of a loop needs all that goes into it. */
static qn_tf_node *need(const qn_tf_node *node, size_t i, bool *more)
{
    const size_t count = is_exit(node) ? node->loop->n_enters : node->n_in;
    *more = i < count;
    if (!*more)
        return NULL;
    return is_exit(node) ? node->loop->enters[i] : node->from[i];
}

static qn_status push(walk *w, qn_tf_node *node)
{
    qn_context *ctx = w->import->ctx;
    if (!node || node->seen == w->number || is_given(w, node))
        return QN_OK;
    node->seen = w->number;
    QN_TRY_GROW(ctx, w->steps, w->steps_capacity, w->n_steps + 1);
    w->steps[w->n_steps++] = (step){node, 0};
    return QN_OK;
}

/* What only a branch asks for that is never taken (dropout, while nobody trains) is not needed. */
static bool is_needed(const walk *w, const qn_tf_node *reader, size_t i)
{
    return !w->alive || is_exit(reader) || !qn_tf_is(reader->import, reader->in[i], QN_TF_DEAD);
}

static qn_status settle_order(walk *w, qn_tf_node *target)
{
    qn_context *ctx = w->import->ctx;
    QN_TRY(push(w, target));
    while (w->n_steps) {
        bool more;
        step *top = &w->steps[w->n_steps - 1];
        const size_t i = top->next++;
        qn_tf_node *next = need(top->node, i, &more);
        if (more) {
            if (is_needed(w, top->node, i))
                QN_TRY(push(w, next));
            continue;
        }
        QN_TRY_GROW(ctx, w->order, w->order_capacity, w->n_order + 1);
        w->order[w->n_order++] = top->node;
        w->n_steps--;
    }
    return QN_OK;
}

/* ---- Converting ------------------------------------------------------------------------------ */

static bool is_merge(const qn_tf_node *node)
{
    return strcmp(node->type, "Merge") == 0 || strcmp(node->type, "RefMerge") == 0;
}

/* What its inputs say of a node before it is looked at; false: nothing. Merging is what dead
 * branches end with, and leaving a loop is no matter of one turn's values. */
static bool is_settled(qn_tf_kind *kind, const qn_tf_node *node)
{
    bool dead = false, unread = false;
    for (size_t i = 0; i < node->n_in && !is_exit(node); i++) {
        dead |= qn_tf_is(node->import, node->in[i], QN_TF_DEAD);
        unread |= qn_tf_is(node->import, node->in[i], QN_TF_UNREAD);
    }
    *kind = dead && !is_merge(node) ? QN_TF_DEAD : QN_TF_UNREAD;
    return unread || *kind == QN_TF_DEAD;
}

/* More outputs than these nobody reads behind a node that is not converted. */
enum { MOST_OUTPUTS = 64 };

static qn_status mark_outputs(qn_tf_node *node, qn_tf_kind kind)
{
    const qn_tf_thing thing = {.kind = kind};
    QN_TRY(qn_tf_set_thing(node->import, node->name, &thing));
    for (size_t port = 1; port < MOST_OUTPUTS; port++) {
        const char *name = qn_tf_output_name(node, port);
        QN_TRY_ALLOC(node->import->ctx, name);
        QN_TRY(qn_tf_alias(node->import, name, node->name));
    }
    return QN_OK;
}

static qn_status attempt(qn_tf_node *node)
{
    if (!node->op)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "the operator is not known");
    for (size_t i = 0; i < node->n_in && !is_exit(node); i++) {
        if (!qn_names_get(&node->import->layouts.named, node->in[i]) &&
            !qn_tf_get_thing(node->import, node->in[i]))
            return qn_tf_fail(node, QN_E_FORMAT, "nothing computes '%s'", node->in[i]);
    }
    return qn_tf_has_random(node) ? qn_tf_with_random(node) : node->op->convert(node);
}

static qn_status convert(qn_tf_node *node)
{
    qn_tf_import *import = node->import;
    qn_tf_kind kind;
    if (strcmp(node->type, "Const") == 0 && qn_names_get(&import->layouts.named, node->name))
        return QN_OK;
    if (is_settled(&kind, node))
        return mark_outputs(node, kind);
    QN_TRY(qn_check_cancel(import->ctx));
    qn_graph_builder_layer(&import->builder, node->name, node->type);
    const qn_status status = attempt(node);
    if (status == QN_E_UNSUPPORTED) {
        const char *why = qn_context_error(import->ctx);
        node->failure = qn_arena_text(&import->arena, why, strlen(why));
        QN_TRY_ALLOC(import->ctx, node->failure);
        return mark_outputs(node, QN_TF_UNREAD);
    }
    return status == QN_OK ? QN_OK : qn_graph_builder_settle(&import->builder, status, NULL, 0);
}

/* ---- Failures that matter -------------------------------------------------------------------- */

static qn_status report(qn_tf_node *node)
{
    qn_graph_builder *b = &node->import->builder;
    const char *why = node->failure;
    if (!why)
        return QN_OK;
    node->failure = NULL;
    qn_graph_builder_layer(b, node->name, node->type);
    return qn_graph_builder_settle(b, qn_fail(b->ctx, QN_E_UNSUPPORTED, "%s", why), NULL, 0);
}

static qn_status order_of(walk *w, qn_tf_scope *scope, const char *const *wanted, size_t count)
{
    const size_t prefix = strlen(scope->prefix);
    w->number = ++scope->walks;
    w->n_order = 0;
    for (size_t i = 0; i < count; i++)
        QN_TRY(settle_order(w, qn_tf_scope_node(scope, wanted[i] + prefix)));
    return QN_OK;
}

qn_status qn_tf_needed(qn_tf_node ***out, size_t *n_out, qn_tf_scope *scope,
                       const char *const *wanted, size_t count)
{
    walk w = {.import = scope->import};
    const qn_status status = order_of(&w, scope, wanted, count);
    *out = status == QN_OK ? w.order : NULL;
    *n_out = w.n_order;
    if (status != QN_OK)
        qn_free(w.import->ctx, w.order);
    qn_free(w.import->ctx, w.steps);
    return status;
}

qn_status qn_tf_run(qn_tf_scope *scope, const char *const *wanted, size_t count, qn_tf_loop *within)
{
    qn_status status;
    bool failed = false;
    walk w = {.import = scope->import, .within = within};
    QN_TRY_OR_DONE(order_of(&w, scope, wanted, count));
    for (size_t i = 0; i < w.n_order; i++) {
        QN_TRY_OR_DONE(convert(w.order[i]));
        failed |= w.order[i]->failure != NULL;
    }
    w.alive = true;
    if (failed)
        QN_TRY_OR_DONE(order_of(&w, scope, wanted, count));
    for (size_t i = 0; failed && i < w.n_order; i++)
        QN_TRY_OR_DONE(report(w.order[i]));
done:
    qn_free(w.import->ctx, w.steps);
    qn_free(w.import->ctx, w.order);
    return status;
}
