/* If and Loop: operators that run subgraphs. */
#include <string.h>

#include "ops/infer.h"
#include "ops/iterate.h"

static const qn_port variadic_out[] = {{"outputs", 0, QN_SET_ANY, QN_VARIADIC | QN_OPTIONAL}};

static const qn_type_rule result_types[] = {{13, QN_SET_SEQUENCE},
                                            {16, QN_SET_OPTIONAL | QN_SET(QN_BFLOAT16)}};

static bool is_true(const qn_tensor *tensor)
{
    return *(const uint8_t *)tensor->data != 0;
}

static qn_status check_bool(const qn_eval *self, const qn_tensor *tensor)
{
    if (tensor->dtype != QN_BOOL || qn_tensor_count(tensor) != 1)
        return qn_eval_fail(self, "the condition must be one bool");
    return QN_OK;
}

/* ---- If -------------------------------------------------------------------------------------- */

typedef struct if_attrs {
    qn_graph *then_branch, *else_branch;
} if_attrs;
static const qn_attr_spec if_specs[] = {QN_ATTR(if_attrs, then_branch, GRAPH, .required = true),
                                        QN_ATTR(if_attrs, else_branch, GRAPH, .required = true)};
static const qn_port if_in[] = {{"cond", 0, QN_SET_BOOL, 0}};

static qn_status if_infer(qn_infer *self)
{
    const if_attrs *a = self->attrs;
    const size_t n_out = (size_t)self->n_out;
    if (a->then_branch->n_outputs < n_out || a->else_branch->n_outputs < n_out)
        return qn_infer_fail(self, "a branch has fewer outputs than the node");
    if (a->then_branch->n_inputs || a->else_branch->n_inputs)
        return qn_infer_fail(self, "a branch has inputs, it can only capture");
    if (!self->graph)
        return QN_OK;
    QN_TRY(self->graph(self, a->then_branch, NULL));
    QN_TRY(self->graph(self, a->else_branch, NULL));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (qn_infer_wants(self, o))
            *self->out[o] = qn_type_either(&a->then_branch->outputs[o]->type,
                                           &a->else_branch->outputs[o]->type);
    }
    return QN_OK;
}

static qn_status if_eval(qn_eval *self)
{
    const if_attrs *a = self->attrs;
    void *block;
    QN_TRY(check_bool(self, self->in[0]));
    const qn_graph *branch = is_true(self->in[0]) ? a->then_branch : a->else_branch;
    QN_TRY(qn_eval_scratch(self, &block, (int64_t)branch->n_outputs + 1, sizeof(qn_tensor *)));
    const qn_tensor **results = block;
    QN_TRY(self->graph(self, branch, NULL, results));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (self->out[o])
            QN_TRY(qn_eval_output_copy(self, o, results[o]));
    }
    return QN_OK;
}

const qn_op qn_op_If = {.name = "If",
                        .domain = "",
                        .since = 1,
                        QN_PORTS(in, if_in),
                        QN_PORTS(out, variadic_out),
                        QN_ATTRS(if_specs, if_attrs),
                        QN_TYPE_RULES(result_types),
                        .flags = QN_OP_ALLOCATES,
                        .quant = QN_QUANT_FLOAT,
                        .infer = if_infer,
                        .eval = if_eval,
                        .brief = "one of two subgraphs"};

/* ---- Loop ------------------------------------------------------------------------------------ */

typedef struct loop_attrs {
    qn_graph *body;
} loop_attrs;
static const qn_attr_spec loop_specs[] = {QN_ATTR(loop_attrs, body, GRAPH, .required = true)};
static const qn_port loop_in[] = {{"M", 0, QN_SET(QN_INT64), QN_OPTIONAL},
                                  {"cond", 0, QN_SET_BOOL, QN_OPTIONAL},
                                  {"v_initial", 0, QN_SET_ANY, QN_VARIADIC | QN_OPTIONAL}};

/* Body: (iteration, condition, carried..) -> (condition, carried.., scanned..). */
static qn_status loop_check(qn_infer *self, int32_t *carried)
{
    const qn_graph *body = ((const loop_attrs *)self->attrs)->body;
    *carried = QN_MAX(self->n_in - 2, 0);
    if (body->n_inputs != (size_t)*carried + 2)
        return qn_infer_fail(self, "the body has %zu inputs, not %d", body->n_inputs, *carried + 2);
    if (body->n_outputs < (size_t)*carried + 1 || (size_t)self->n_out > body->n_outputs - 1)
        return qn_infer_fail(self, "the body has too few outputs");
    for (int32_t i = 0; i < *carried; i++) {
        if (!qn_infer_has(self, i + 2))
            return qn_infer_fail(self, "initial value %d is missing", i);
    }
    return QN_OK;
}

static qn_status loop_infer(qn_infer *self)
{
    qn_graph *body = ((const loop_attrs *)self->attrs)->body;
    int32_t carried;
    QN_TRY(loop_check(self, &carried));
    if (!self->graph)
        return QN_OK;
    qn_type *types = qn_arena_array(self->arena, body->n_inputs, sizeof *types);
    QN_TRY_ALLOC(self->ctx, types);
    types[0] = qn_type_tensor(QN_INT64, 0, NULL);
    types[1] = qn_type_tensor(QN_BOOL, 0, NULL);
    for (int32_t i = 0; i < carried; i++) {
        types[i + 2] = *self->in[i + 2];
        types[i + 2].elements = NULL;
    }
    QN_TRY(qn_infer_carried(self, body, types, 2, 1, (size_t)carried));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!qn_infer_wants(self, o))
            continue;
        if (o < carried)
            *self->out[o] = types[o + 2];
        else
            qn_infer_scanned(self, o, &body->outputs[o + 1]->type, 0, qn_dim_unknown());
    }
    return QN_OK;
}

static qn_status loop_iterate(qn_eval *self, qn_iteration *r)
{
    const qn_tensor *most = qn_eval_in(self, 0), *cond = qn_eval_in(self, 1);
    int64_t iteration = 0, limit = INT64_MAX;
    uint8_t go_on = 1;
    if (cond) {
        QN_TRY(check_bool(self, cond));
        go_on = is_true(cond);
    }
    if (most && qn_tensor_count(most) != 1)
        return qn_eval_fail(self, "M must be one number");
    if (most)
        limit = qn_tensor_i64(most, 0);
    const qn_tensor number = {.dtype = QN_INT64, .data = &iteration};
    const qn_tensor condition = {.dtype = QN_BOOL, .data = &go_on};
    r->inputs[0] = &number;
    r->inputs[1] = &condition;
    for (; iteration < limit && go_on; iteration++) {
        QN_TRY(qn_check_cancel(self->ctx));
        QN_TRY(qn_iterate(self, r, 2, 1));
        QN_TRY(check_bool(self, r->results[0]));
        go_on = is_true(r->results[0]);
    }
    return QN_OK;
}

static qn_status loop_eval(qn_eval *self)
{
    qn_iteration r = {.body = ((const loop_attrs *)self->attrs)->body,
                      .carried = QN_MAX(self->n_in - 2, 0)};
    QN_TRY(qn_iteration_room(self, &r));
    for (int32_t i = 0; i < r.carried; i++)
        r.inputs[i + 2] = self->in[i + 2];
    QN_TRY(loop_iterate(self, &r));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!self->out[o])
            continue;
        if (o < r.carried)
            QN_TRY(qn_eval_output_copy(self, o, r.inputs[o + 2]));
        else
            QN_TRY(
                qn_stack_join(self, o, &r.scanned[o + 1], 0, false, &r.body->outputs[o + 1]->type));
    }
    return QN_OK;
}

const qn_op qn_op_Loop = {.name = "Loop",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, loop_in),
                          QN_PORTS(out, variadic_out),
                          QN_ATTRS(loop_specs, loop_attrs),
                          QN_TYPE_RULES(result_types),
                          .flags = QN_OP_ALLOCATES,
                          .quant = QN_QUANT_FLOAT,
                          .infer = loop_infer,
                          .eval = loop_eval,
                          .brief = "a subgraph again and again"};
