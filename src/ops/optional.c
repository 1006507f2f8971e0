/* Optional values. A present one is its contents; an absent one has the type QN_NONE. */
#include "ops/eval.h"
#include "ops/infer.h"

#define ANY_VALUE (QN_SET_TENSOR | QN_SET_SEQUENCE)

static const qn_port bool_out[] = {{"output", 0, QN_SET_BOOL, 0}};

typedef struct optional_attrs {
    const qn_type *type;
} optional_attrs;
static const qn_attr_spec optional_specs[] = {QN_ATTR(optional_attrs, type, TYPE)};
static const qn_port optional_in[] = {{"input", 0, ANY_VALUE, QN_OPTIONAL}};
static const qn_port optional_out[] = {{"output", 0, QN_SET_OPTIONAL, 0}};
static const qn_port maybe_in[] = {{"input", 0, QN_SET_ANY, QN_OPTIONAL}};
static const qn_port given_in[] = {{"input", 0, QN_SET_ANY, 0}};
static const qn_port value_out[] = {{"output", 0, ANY_VALUE, 0}};

#define NEW_TYPES (QN_SET(QN_BFLOAT16) | QN_SET_FLOAT8 | QN_SET_SMALL_INT)
static const qn_type_rule optional_types[] = {{28, NEW_TYPES}};
static const qn_type_rule element_types[] = {{18, ANY_VALUE}, {28, NEW_TYPES}};

static qn_status optional_infer(qn_infer *self)
{
    const optional_attrs *a = self->attrs;
    const qn_type *element = qn_infer_has(self, 0) ? self->in[0] : a->type;
    if (!element)
        return qn_infer_fail(self, "needs an input or the attribute 'type'");
    if (!qn_infer_wants(self, 0))
        return QN_OK;
    const qn_type *copy = qn_arena_copy(self->arena, element, sizeof *element);
    QN_TRY_ALLOC(self->ctx, copy);
    *self->out[0] = (qn_type){.kind = QN_TYPE_OPTIONAL, .rank = -1, .element = copy};
    return QN_OK;
}

static qn_status optional_eval(qn_eval *self)
{
    const qn_tensor none = {.dtype = QN_NONE}, *in = qn_eval_in(self, 0);
    return qn_eval_output_copy(self, 0, in ? in : &none);
}

const qn_op qn_op_Optional = {.name = "Optional",
                              .domain = "",
                              .since = 15,
                              QN_PORTS(in, optional_in),
                              QN_PORTS(out, optional_out),
                              QN_ATTRS(optional_specs, optional_attrs),
                              QN_TYPE_RULES(optional_types),
                              .flags = QN_OP_ALLOCATES,
                              .quant = QN_QUANT_SHAPE,
                              .infer = optional_infer,
                              .eval = optional_eval,
                              .brief = "a value that may be absent"};

static qn_status get_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    if (in->kind != QN_TYPE_OPTIONAL)
        qn_infer_copy(self, 0, 0);
    else if (in->element && qn_infer_wants(self, 0))
        *self->out[0] = *in->element;
    return QN_OK;
}

static qn_status get_eval(qn_eval *self)
{
    if (self->in[0]->dtype == QN_NONE)
        return qn_eval_fail(self, "the optional value is absent");
    return qn_eval_output_copy(self, 0, self->in[0]);
}

const qn_op qn_op_OptionalGetElement = {.name = "OptionalGetElement",
                                        .domain = "",
                                        .since = 15,
                                        QN_PORTS(in, given_in),
                                        QN_PORTS(out, value_out),
                                        QN_TYPE_RULES(element_types),
                                        .flags = QN_OP_ALLOCATES,
                                        .quant = QN_QUANT_SHAPE,
                                        .infer = get_infer,
                                        .eval = get_eval,
                                        .brief = "the contents of an optional value"};

static qn_status has_infer(qn_infer *self)
{
    qn_infer_set(self, 0, QN_BOOL, 0, NULL);
    return QN_OK;
}

static qn_status has_eval(qn_eval *self)
{
    const qn_tensor *in = qn_eval_in(self, 0);
    *(uint8_t *)self->out[0]->data = in && in->dtype != QN_NONE;
    return QN_OK;
}

static qn_status has_downgrade(qn_node **node)
{
    if ((*node)->n_in < 1 || !(*node)->in[0])
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "before opset 18 it needs an input");
    return QN_OK;
}

static const qn_version_rule has_versions[] = {{18, NULL, has_downgrade}};

const qn_op qn_op_OptionalHasElement = {.name = "OptionalHasElement",
                                        .domain = "",
                                        .since = 15,
                                        QN_PORTS(in, maybe_in),
                                        QN_PORTS(out, bool_out),
                                        QN_VERSIONS(has_versions),
                                        QN_TYPE_RULES(element_types),
                                        .quant = QN_QUANT_SHAPE,
                                        .infer = has_infer,
                                        .eval = has_eval,
                                        .brief = "whether an optional value is there"};
