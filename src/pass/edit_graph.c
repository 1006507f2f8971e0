/* Edits at a network's ends: normalized inputs, other outputs. */
#include "pass/edit_graph.h"

#include <math.h>
#include <string.h>

#include "ops/infer.h"
#include "ops/nn_attrs.h"

/* ---- Normalized input ------------------------------------------------------------------------ */

static qn_status check_count(const qn_graph *graph, const char *what, size_t count,
                             int64_t channels)
{
    if (count == 1 || (int64_t)count == channels)
        return QN_OK;
    return qn_fail(graph->ctx, QN_E_INVALID,
                   "%zu numbers for the %s of input '%s', which has %lld channels: give 1 or %lld",
                   count, what, graph->inputs[0]->name, (long long)channels, (long long)channels);
}

static qn_status check_input(int64_t *channels, const qn_graph *graph)
{
    const qn_value *input = graph->n_inputs ? graph->inputs[0] : NULL;
    if (!input)
        return qn_fail(graph->ctx, QN_E_INVALID, "the model has no input to normalize");
    const qn_type *type = &input->type;
    if (type->kind != QN_TYPE_TENSOR || type->dtype != QN_FLOAT32 || type->rank < 2 ||
        type->dims[1].value < 1)
        return qn_fail(graph->ctx, QN_E_INVALID,
                       "input '%s' cannot be normalized: it is no float tensor whose second "
                       "dimension counts channels",
                       input->name);
    *channels = type->dims[1].value;
    return QN_OK;
}

static double number_at(qn_channel_numbers numbers, int64_t channel)
{
    return numbers.at[numbers.count == 1 ? 0 : (size_t)channel];
}

static qn_status make_row(qn_value **out, float **row, qn_graph *graph, const char *name,
                          int64_t channels)
{
    qn_tensor *tensor;
    const qn_type type = qn_type_tensor(QN_FLOAT32, 1, &channels);
    QN_TRY(qn_model_tensor(&tensor, graph->model, &type));
    *row = tensor->data;
    return qn_value_constant(out, graph, name, tensor);
}

/* scale 1, shift 0, mean and variance of the channels. */
static qn_status fill_rows(qn_value *rows[4], qn_graph *graph, qn_channel_numbers mean,
                           qn_channel_numbers std, int64_t channels)
{
    static const char *const names[4] = {"input_scale", "input_shift", "input_mean",
                                         "input_variance"};
    float *at[4];
    for (int i = 0; i < 4; i++)
        QN_TRY(make_row(&rows[i], &at[i], graph, names[i], channels));
    for (int64_t c = 0; c < channels; c++) {
        const double divisor = number_at(std, c);
        at[0][c] = 1;
        at[1][c] = 0;
        at[2][c] = (float)number_at(mean, c);
        at[3][c] = (float)(divisor * divisor);
        if (!(divisor > 0) || !isfinite(at[3][c]) || !(at[3][c] > 0) || !isfinite(at[2][c]))
            return qn_fail(graph->ctx, QN_E_INVALID,
                           "channel %lld: (x - %g) / %g cannot be computed: the divisor must be a "
                           "positive number",
                           (long long)c, number_at(mean, c), divisor);
    }
    return QN_OK;
}

static qn_status read_instead(qn_value *old, qn_value *fresh, const qn_node *writer)
{
    for (qn_node *node = writer->graph->first; node; node = node->next) {
        for (int32_t i = 0; node != writer && i < node->n_in; i++) {
            if (node->in[i] == old)
                QN_TRY(qn_node_set_input(node, i, fresh));
        }
    }
    return QN_OK;
}

qn_status qn_graph_normalize_input(qn_graph *graph, qn_channel_numbers mean, qn_channel_numbers std)
{
    int64_t channels = 0;
    qn_value *rows[4];
    qn_node *node;
    QN_TRY(check_input(&channels, graph));
    QN_TRY(check_count(graph, "mean", mean.count, channels));
    QN_TRY(check_count(graph, "std", std.count, channels));
    QN_TRY(fill_rows(rows, graph, mean, std, channels));
    qn_value *input = graph->inputs[0];
    const qn_node_spec spec = {.op = &qn_op_BatchNormalization,
                               .name = "input_normalization",
                               .before = graph->first,
                               .in = {input, rows[0], rows[1], rows[2], rows[3]},
                               .n_in = 5};
    QN_TRY(qn_node_build(&node, graph, &spec));
    ((qn_batchnorm_attrs *)node->attrs)->epsilon = 0;
    QN_TRY(qn_node_infer(node));
    return read_instead(input, node->out[0], node);
}

/* ---- Other outputs --------------------------------------------------------------------------- */

static qn_value *find_output(const qn_graph *graph, const char *name)
{
    qn_value *value = qn_graph_value(graph, name);
    const qn_node *node = value ? NULL : qn_graph_node(graph, name);
    return node && node->n_out ? node->out[0] : value;
}

qn_status qn_graph_select_outputs(qn_graph *graph, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const qn_value *value = find_output(graph, names[i]);
        if (!value)
            return qn_fail(graph->ctx, QN_E_INVALID,
                           "there is no tensor or node '%s' to cut the network behind (`nodes` "
                           "lists them)",
                           names[i]);
        if (!value->producer)
            return qn_fail(graph->ctx, QN_E_INVALID,
                           "the network cannot be cut at '%s': no node writes it", names[i]);
    }
    qn_graph_clear_outputs(graph);
    for (size_t i = 0; i < count; i++) {
        qn_value *value = find_output(graph, names[i]);
        if (value->is_output)
            return qn_fail(graph->ctx, QN_E_INVALID, "'%s' is asked for twice", names[i]);
        QN_TRY(qn_graph_add_output(graph, value));
    }
    return QN_OK;
}
