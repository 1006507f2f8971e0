/* Identity: hands on whatever it is given, sequences and optional values included. */
#include "ops/eval.h"
#include "ops/infer.h"

static const qn_type_rule type_rules[] = {{14, QN_SET_SEQUENCE}, {16, QN_SET_OPTIONAL}};
static const qn_port identity_in[] = {{"input", 'V', QN_SET_ANY, 0}};
static const qn_port identity_out[] = {{"output", 'V', QN_SET_ANY, 0}};

static qn_status identity_infer(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    if (qn_infer_wants(self, 0))
        self->out[0]->elements = self->in[0]->elements;
    return QN_OK;
}

static qn_status identity_eval(qn_eval *self)
{
    return self->out[0] ? qn_eval_output_copy(self, 0, self->in[0]) : QN_OK;
}

const qn_op qn_op_Identity = {.name = "Identity",
                              .domain = "",
                              .since = 1,
                              QN_PORTS(in, identity_in),
                              QN_PORTS(out, identity_out),
                              QN_TYPE_RULES(type_rules),
                              .flags = QN_OP_ALLOCATES | QN_OP_MOVES,
                              .quant = QN_QUANT_PASS,
                              .infer = identity_infer,
                              .eval = identity_eval,
                              .brief = "the input itself"};
