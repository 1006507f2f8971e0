/* Loops, whose turns are converted one after the other: those of frames (Enter, Merge, Switch,
 * NextIteration, Exit) and those of functions (While); and branches (If). How often a loop turns
 * has to follow from constants. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* Turns of all loops, and nodes that they may make of a file. */
enum { MOST_TURNS = 8192, MOST_NODES = 400000 };

static bool is_type(const qn_tf_node *node, const char *type, const char *other)
{
    return node && (strcmp(node->type, type) == 0 || strcmp(node->type, other) == 0);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static qn_status loop_of(qn_tf_loop **out, qn_names *frames, qn_tf_node *enter)
{
    qn_tf_import *import = enter->import;
    const qn_string text = qn_proto_string(qn_tf_attr(enter, "frame_name"), QN_TF_VALUE_S);
    const char *name = qn_arena_text(&import->arena, text.text ? text.text : "", text.length);
    QN_TRY_ALLOC(import->ctx, name);
    *out = qn_names_get(frames, name);
    if (*out)
        return QN_OK;
    *out = qn_arena_alloc(&import->arena, sizeof **out);
    QN_TRY_ALLOC(import->ctx, *out);
    (*out)->frame = name;
    return qn_names_set(frames, name, *out);
}

/* A list in the arena that grows by doubling. */
static qn_status append(qn_tf_node ***list, size_t *count, size_t *capacity, qn_tf_node *node)
{
    qn_tf_import *import = node->import;
    if (*count == *capacity) {
        const size_t wider = QN_MAX(2 * *capacity, (size_t)8);
        qn_tf_node **grown =
            qn_arena_widen(&import->arena, *list, *count, wider, sizeof(qn_tf_node *));
        QN_TRY_ALLOC(import->ctx, grown);
        *list = grown;
        *capacity = wider;
    }
    (*list)[(*count)++] = node;
    return QN_OK;
}

static bool is_loop_merge(const qn_tf_node *node)
{
    return is_type(node, "Merge", "RefMerge") && node->n_in == 2 &&
           is_type(node->from[1], "NextIteration", "RefNextIteration") &&
           is_type(node->from[0], "Enter", "RefEnter");
}

static qn_status find_enters(qn_tf_scope *scope, qn_names *frames)
{
    for (size_t i = 0; i < scope->n_nodes; i++) {
        qn_tf_node *node = &scope->nodes[i];
        if (!is_type(node, "Enter", "RefEnter"))
            continue;
        QN_TRY(loop_of(&node->loop, frames, node));
        qn_tf_loop *l = node->loop;
        QN_TRY(append(&l->enters, &l->n_enters, &l->enters_capacity, node));
    }
    return QN_OK;
}

static qn_status find_merges(qn_tf_scope *scope)
{
    for (size_t i = 0; i < scope->n_nodes; i++) {
        qn_tf_node *node = &scope->nodes[i];
        if (!is_loop_merge(node))
            continue;
        qn_tf_loop *l = node->loop = node->from[0]->loop;
        QN_TRY(append(&l->merges, &l->n_merges, &l->merges_capacity, node));
    }
    return QN_OK;
}

qn_status qn_tf_loops_find(qn_tf_scope *scope)
{
    qn_names frames;
    qn_names_init(&frames, scope->import->ctx);
    qn_status status;
    QN_TRY_OR_DONE(find_enters(scope, &frames));
    QN_TRY_OR_DONE(find_merges(scope));
    for (size_t i = 0; i < scope->n_nodes; i++) {
        qn_tf_node *node = &scope->nodes[i];
        const qn_tf_node *choice = node->n_in ? node->from[0] : NULL;
        if (is_type(node, "Switch", "RefSwitch") && node->n_in == 2 && is_loop_merge(choice))
            choice->loop->condition = node->from[1];
        if (is_type(node, "Exit", "RefExit") && is_type(choice, "Switch", "RefSwitch") &&
            choice->n_in && is_loop_merge(choice->from[0])) {
            qn_tf_loop *l = node->loop = choice->from[0]->loop;
            QN_TRY_OR_DONE(append(&l->exits, &l->n_exits, &l->exits_capacity, node));
        }
    }
    status = QN_OK;
done:
    qn_names_free(&frames);
    return status;
}

/* ---- Turning --------------------------------------------------------------------------------- */

static qn_status check_turns(const qn_tf_node *node)
{
    qn_tf_import *import = node->import;
    if (import->turns++ < MOST_TURNS && import->builder.graph->n_nodes < MOST_NODES)
        return QN_OK;
    return qn_tf_fail(node, QN_E_UNSUPPORTED, "loops that turn more than %d times", MOST_TURNS);
}

/* Whether a value is true; fails where that is not known. */
static qn_status is_true(bool *out, const qn_tf_node *node, const char *name)
{
    qn_value *value;
    qn_tf_import *import = node->import;
    if (!qn_names_get(&import->layouts.named, name))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "its condition '%s' cannot be read", name);
    QN_TRY(qn_layout_find(&value, &import->layouts, name, QN_ORDER_OWN));
    if (!value->data || qn_tensor_count(value->data) != 1 || value->data->dtype != QN_BOOL)
        return qn_tf_fail(node, QN_E_UNSUPPORTED,
                          "how often it turns depends on '%s', which is computed from inputs",
                          name);
    *out = *(const uint8_t *)value->data->data != 0;
    return QN_OK;
}

static qn_status turn(bool *more, qn_tf_node *exit, qn_tf_loop *loop, const char **next)
{
    qn_tf_import *import = exit->import;
    const char *condition = loop->condition->name;
    QN_TRY(qn_tf_run(exit->scope, &condition, 1, loop));
    qn_graph_builder_layer(&import->builder, exit->name, exit->type);
    QN_TRY(is_true(more, exit, condition));
    if (!*more)
        return QN_OK;
    QN_TRY(check_turns(exit));
    QN_TRY(qn_tf_run(exit->scope, next, loop->n_merges, loop));
    for (size_t i = 0; i < loop->n_merges; i++)
        QN_TRY(qn_tf_alias(import, loop->merges[i]->name, next[i]));
    return QN_OK;
}

static qn_status run_loop(qn_tf_node *exit, qn_tf_loop *loop)
{
    qn_tf_import *import = exit->import;
    bool more = true;
    const char **next = qn_arena_array(&import->arena, loop->n_merges + 1, sizeof *next);
    QN_TRY_ALLOC(import->ctx, next);
    if (!loop->condition)
        return qn_tf_fail(exit, QN_E_FORMAT, "its loop has no condition");
    for (size_t i = 0; i < loop->n_merges; i++) {
        next[i] = loop->merges[i]->in[1];
        QN_TRY(qn_tf_alias(import, loop->merges[i]->name, loop->merges[i]->in[0]));
    }
    while (more)
        QN_TRY(turn(&more, exit, loop, next));
    return QN_OK;
}

/* The first exit that a walk meets runs the loop. */
qn_status qn_tf_exit(qn_tf_node *node)
{
    qn_tf_loop *loop = node->loop;
    qn_tf_import *import = node->import;
    if (!loop)
        return qn_tf_fail(node, QN_E_FORMAT, "it leaves no loop");
    if (loop->walk != node->seen) {
        const uint32_t walk = node->seen;
        QN_TRY(qn_tf_enter(import));
        const qn_status status = run_loop(node, loop);
        import->depth--;
        QN_TRY(status);
        loop->walk = walk;
    }
    return qn_tf_alias(import, node->name, node->from[0]->in[0]);
}

/* ---- Functions ------------------------------------------------------------------------------- */

static const char *inner_name(const qn_tf_node *node, const char *part)
{
    return qn_arena_format(&node->import->arena, "%s/%s/", node->name, part);
}

static qn_status call(const char ***results, size_t *count, qn_tf_node *node, const char *attr,
                      const qn_tf_arguments *arguments)
{
    const char *function = qn_tf_attr_function(node, attr);
    const char *prefix = inner_name(node, attr);
    QN_TRY_ALLOC(node->import->ctx, prefix);
    if (!function)
        return qn_tf_fail(node, QN_E_FORMAT, "it names no function for %s", attr);
    return qn_tf_call(results, count, node, function, prefix, arguments);
}

static qn_status define(qn_tf_node *node, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = qn_tf_output_name(node, i);
        QN_TRY_ALLOC(node->import->ctx, name);
        QN_TRY(qn_tf_alias(node->import, name, names[i]));
    }
    return QN_OK;
}

qn_status qn_tf_while(qn_tf_node *node)
{
    qn_tf_arguments state = {node->in, node->n_in};
    qn_tf_import *import = node->import;
    bool more;
    for (;;) {
        const char **results;
        size_t count;
        QN_TRY(call(&results, &count, node, "cond", &state));
        if (count != 1)
            return qn_tf_fail(node, QN_E_FORMAT, "its condition has %zu results", count);
        QN_TRY(is_true(&more, node, results[0]));
        if (!more)
            return define(node, state.at, state.count);
        QN_TRY(check_turns(node));
        QN_TRY(call(&results, &count, node, "body", &state));
        if (count != node->n_in)
            return qn_tf_fail(node, QN_E_FORMAT, "its body has %zu results for %zu values", count,
                              node->n_in);
        /* The next turn gives the same names other meanings. */
        const char **kept = qn_arena_array(&import->arena, count + 1, sizeof *kept);
        QN_TRY_ALLOC(import->ctx, kept);
        for (size_t i = 0; i < count; i++) {
            kept[i] = qn_tf_fresh(import);
            QN_TRY_ALLOC(import->ctx, kept[i]);
            QN_TRY(qn_tf_alias(import, kept[i], results[i]));
        }
        state.at = kept;
    }
}

qn_status qn_tf_partitioned_call(qn_tf_node *node)
{
    const char **results;
    size_t count;
    const qn_tf_arguments arguments = {node->in, node->n_in};
    const char *function = qn_tf_attr_function(node, "f");
    const char *prefix = qn_arena_format(&node->import->arena, "%s/", node->name);
    QN_TRY_ALLOC(node->import->ctx, prefix);
    if (!function)
        return qn_tf_fail(node, QN_E_FORMAT, "it names no function");
    QN_TRY(qn_tf_call(&results, &count, node, function, prefix, &arguments));
    return define(node, results, count);
}

/* A condition that is not known: both branches are computed, and it chooses of each result. */
static qn_status both(qn_tf_node *node, const qn_tf_arguments *arguments)
{
    const char **yes, **no;
    size_t n_yes, n_no;
    qn_value *which, *a, *c, *y;
    qn_layouts *layouts = &node->import->layouts;
    QN_TRY(call(&yes, &n_yes, node, "then_branch", arguments));
    QN_TRY(call(&no, &n_no, node, "else_branch", arguments));
    QN_TRY(qn_tf_in(&which, node, 0));
    if (n_yes != n_no)
        return qn_tf_fail(node, QN_E_FORMAT, "%zu results in one branch, %zu in the other", n_yes,
                          n_no);
    for (size_t i = 0; i < n_yes; i++) {
        QN_TRY(qn_layout_find(&a, layouts, yes[i], QN_ORDER_OWN));
        QN_TRY(qn_layout_find(&c, layouts, no[i], QN_ORDER_OWN));
        if (a->type.rank != c->type.rank)
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "branches with results of other shapes");
        QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Where, QN_INPUTS(which, a, c),
                              QN_PLAIN));
        QN_TRY(qn_tf_out(node, i, y, QN_ORDER_OWN));
    }
    return QN_OK;
}

qn_status qn_tf_if(qn_tf_node *node)
{
    const qn_tensor *which;
    const char **results;
    size_t count;
    if (node->n_in == 0)
        return qn_tf_fail(node, QN_E_FORMAT, "it has no condition");
    const qn_tf_arguments arguments = {node->in + 1, node->n_in - 1};
    QN_TRY(qn_tf_known(&which, node, 0));
    if (!which || which->dtype != QN_BOOL || qn_tensor_count(which) != 1)
        return both(node, &arguments);
    const bool yes = *(const uint8_t *)which->data != 0;
    QN_TRY(call(&results, &count, node, yes ? "then_branch" : "else_branch", &arguments));
    return define(node, results, count);
}
