/* SequenceMap: a subgraph for every element of a sequence. */
#include "ops/eval.h"
#include "ops/infer.h"

typedef struct map_attrs {
    qn_graph *body;
} map_attrs;
static const qn_attr_spec map_specs[] = {QN_ATTR(map_attrs, body, GRAPH, .required = true)};
static const qn_port map_in[] = {
    {"input_sequence", 0, QN_SET_SEQUENCE, 0},
    {"additional_inputs", 0, QN_SET_TENSOR | QN_SET_SEQUENCE, QN_VARIADIC | QN_OPTIONAL}};
static const qn_port map_out[] = {{"out_sequence", 0, QN_SET_SEQUENCE, QN_VARIADIC}};

static qn_status map_infer(qn_infer *self)
{
    qn_graph *body = ((const map_attrs *)self->attrs)->body;
    if (body->n_inputs != (size_t)self->n_in || body->n_outputs < (size_t)self->n_out)
        return qn_infer_fail(self, "the body's inputs or outputs do not fit the node's");
    if (!self->graph)
        return QN_OK;
    qn_type *types = qn_arena_array(self->arena, body->n_inputs, sizeof *types);
    QN_TRY_ALLOC(self->ctx, types);
    for (int32_t i = 0; i < self->n_in; i++) {
        const bool sequence = self->in[i] && self->in[i]->kind == QN_TYPE_SEQUENCE;
        const qn_type *type = sequence ? self->in[i]->element : self->in[i];
        types[i] = type ? *type : (qn_type){.rank = -1};
        types[i].elements = NULL;
    }
    QN_TRY(self->graph(self, body, types));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (!qn_infer_wants(self, o))
            continue;
        const qn_type *element =
            qn_arena_copy(self->arena, &body->outputs[o]->type, sizeof(qn_type));
        QN_TRY_ALLOC(self->ctx, element);
        *self->out[o] = (qn_type){.kind = QN_TYPE_SEQUENCE, .rank = -1, .element = element};
    }
    return QN_OK;
}

/* Inputs of the body for element i: elements of sequences, tensors as they are. */
static qn_status map_inputs(const qn_tensor **out, qn_eval *self, int64_t i)
{
    for (int32_t k = 0; k < self->n_in; k++) {
        out[k] = self->in[k];
        if (!self->in[k] || self->in[k]->dtype != QN_SEQUENCE)
            continue;
        const qn_sequence *sequence = self->in[k]->data;
        if (i >= sequence->count)
            return qn_eval_fail(self, "sequence %d is shorter than the first", k);
        out[k] = &sequence->items[i];
    }
    return QN_OK;
}

static qn_status map_eval(qn_eval *self)
{
    const qn_graph *body = ((const map_attrs *)self->attrs)->body;
    const int64_t count = ((const qn_sequence *)self->in[0]->data)->count;
    void *inputs, *results;
    QN_TRY(qn_eval_scratch(self, &inputs, self->n_in + 1, sizeof(qn_tensor *)));
    QN_TRY(qn_eval_scratch(self, &results, (int64_t)body->n_outputs + 1, sizeof(qn_tensor *)));
    for (int32_t o = 0; o < self->n_out; o++) {
        if (self->out[o])
            QN_TRY(qn_eval_output_sequence(self, o, count));
    }
    for (int64_t i = 0; i < count; i++) {
        const qn_tensor **outputs = results;
        QN_TRY(qn_check_cancel(self->ctx));
        QN_TRY(map_inputs(inputs, self, i));
        QN_TRY(self->graph(self, body, inputs, outputs));
        for (int32_t o = 0; o < self->n_out; o++) {
            if (self->out[o])
                QN_TRY(
                    qn_eval_copy(self, &((qn_sequence *)self->out[o]->data)->items[i], outputs[o]));
        }
    }
    return QN_OK;
}

const qn_op qn_op_SequenceMap = {.name = "SequenceMap",
                                 .domain = "",
                                 .since = 17,
                                 QN_PORTS(in, map_in),
                                 QN_PORTS(out, map_out),
                                 QN_ATTRS(map_specs, map_attrs),
                                 .flags = QN_OP_ALLOCATES,
                                 .quant = QN_QUANT_FLOAT,
                                 .infer = map_infer,
                                 .eval = map_eval,
                                 .brief = "a subgraph for every element of a sequence"};
