/* Layers found, measured, and given their bits. */
#include "quantize/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/weighted_node.h"

/* ---- Layers ---------------------------------------------------------------------------------- */

static bool starts_layer(const qn_quant_node *n)
{
    return n->integer && n->quant_class == QN_CLASS_MAC;
}

/* The layer of the last node before this one that has one; -1: none. */
static int64_t layer_before(const qn_quant_node *n, const int64_t *layer_of)
{
    int64_t last = -1;
    for (int32_t i = 0; i < n->node->n_in; i++) {
        const qn_node *producer = n->node->in[i] ? n->node->in[i]->producer : NULL;
        if (producer)
            last = QN_MAX(last, layer_of[producer->number]);
    }
    return last;
}

/* Places of the nodes' layers; those before the first one belong to it. */
static size_t number_layers(int64_t *layer_of, qn_quantizer *q)
{
    size_t count = 0;
    for (size_t i = 0; i < q->n_nodes; i++)
        layer_of[i] =
            starts_layer(&q->nodes[i]) ? (int64_t)count++ : layer_before(&q->nodes[i], layer_of);
    return count;
}

static qn_status add_value(qn_layer *l, qn_arena *arena, qn_context *ctx, const qn_node *node)
{
    if (!node->n_out || !node->out[0])
        return QN_OK;
    char *name = qn_arena_text(arena, node->out[0]->name, strlen(node->out[0]->name));
    QN_TRY_ALLOC(ctx, name);
    l->values[l->n_values++] = name;
    return QN_OK;
}

/* Numbers of a value in one sample; 0 where the statistics do not have it. */
static double written_of(const qn_stats *stats, const qn_value *value)
{
    const qn_stats_entry *entry = value ? qn_stats_find(stats, value->name) : NULL;
    return entry && entry->samples ? (double)entry->count / (double)entry->samples : 0;
}

/* Products that each number of the result is the sum of. */
static double products_of(const qn_quant_node *n)
{
    qn_weighted_node mac;
    if (!qn_weighted_node_of(&mac, n->node))
        return 1;
    return (double)mac.count / (double)QN_MAX(mac.filters, 1);
}

static qn_status fill_layer(qn_layer *l, const qn_search *s, const int64_t *layer_of,
                            int64_t number)
{
    const qn_quantizer *q = s->ruled.quantizer;
    const qn_stats *stats = s->input->stats;
    qn_context *ctx = s->input->ctx;
    double written = 0, products = 1;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        if (!q->nodes[i].integer || QN_MAX(layer_of[i], 0) != number)
            continue;
        QN_TRY(add_value(l, s->arena, ctx, node));
        written = fmax(written, written_of(stats, node->n_out ? node->out[0] : NULL));
        if (!starts_layer(&q->nodes[i]))
            continue;
        written =
            fmax(written, written_of(stats, node->in[0])); /* the last results are not observed */
        products = products_of(&q->nodes[i]);
        l->node = qn_arena_text(s->arena, node->name, strlen(node->name));
        QN_TRY_ALLOC(ctx, l->node);
    }
    l->work = written * (1 + products);
    return QN_OK;
}

static qn_status find_edges(qn_layers *l, const int64_t *layer_of)
{
    const qn_quantizer *q = l->search->ruled.quantizer;
    size_t most = 1;
    for (size_t i = 0; i < q->n_nodes; i++)
        most += (size_t)q->nodes[i].node->n_in;
    l->edges = qn_arena_array(l->search->arena, most, sizeof *l->edges);
    QN_TRY_ALLOC(l->search->input->ctx, l->edges);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        for (int32_t k = 0; k < node->n_in; k++) {
            const qn_node *producer = node->in[k] ? node->in[k]->producer : NULL;
            const int64_t from = producer ? QN_MAX(layer_of[producer->number], 0) : 0;
            const int64_t to = QN_MAX(layer_of[i], 0);
            if (producer && from != to)
                l->edges[l->n_edges++] = (qn_layer_edge){from, to};
        }
    }
    return QN_OK;
}

qn_status qn_layers_find(qn_layers *out, const qn_search *s)
{
    qn_quantizer *q = s->ruled.quantizer;
    qn_arena *arena = s->arena;
    qn_context *ctx = s->input->ctx;
    int64_t *layer_of = qn_arena_array(arena, q->n_nodes + 1, sizeof *layer_of);
    QN_TRY_ALLOC(ctx, layer_of);
    *out = (qn_layers){.search = s, .asked = s->asked, .count = number_layers(layer_of, q)};
    out->at = qn_arena_array(arena, out->count + 1, sizeof *out->at);
    QN_TRY_ALLOC(ctx, out->at);
    const char **values = qn_arena_array(arena, q->n_nodes + 1, sizeof *values);
    QN_TRY_ALLOC(ctx, values);
    for (size_t i = 0; i < out->count; i++) {
        out->at[i].values = values;
        QN_TRY(fill_layer(&out->at[i], s, layer_of, (int64_t)i));
        values += out->at[i].n_values;
        out->at[i].place = i;
    }
    return find_edges(out, layer_of);
}

/* ---- Settings -------------------------------------------------------------------------------- */

typedef struct patterns {
    const char **at;
    size_t count;
} patterns;

/* Room for the patterns that were asked for and one for every value of a layer. */
static qn_status begin_patterns(patterns *p, const qn_layers *l, const char *const *asked,
                                size_t n_asked)
{
    size_t values = 0;
    for (size_t i = 0; i < l->count; i++)
        values += l->at[i].n_values;
    p->at = qn_arena_array(l->search->arena, n_asked + values + 1, sizeof *p->at);
    QN_TRY_ALLOC(l->search->input->ctx, p->at);
    for (p->count = 0; p->count < n_asked; p->count++)
        p->at[p->count] = asked[p->count];
    return QN_OK;
}

static void add_values(patterns *p, const qn_layer *l)
{
    for (size_t v = 0; v < l->n_values; v++)
        p->at[p->count++] = l->values[v];
}

static qn_status add_widths(patterns *p, const qn_search *s, const qn_layer *l)
{
    for (size_t v = 0; v < l->n_values; v++) {
        char *text = qn_arena_format(s->arena, "%s=%d", l->values[v], l->bits);
        QN_TRY_ALLOC(s->input->ctx, text);
        p->at[p->count++] = text;
    }
    return QN_OK;
}

qn_status qn_layers_settings(qn_quantize_settings *out, const qn_layers *l)
{
    const qn_quant_settings *asked = &l->asked.rules;
    patterns floats = {.count = 0}, widths = {.count = 0}, min_max = {.count = 0};
    QN_TRY(begin_patterns(&floats, l, asked->keep_float, asked->n_float));
    QN_TRY(begin_patterns(&widths, l, asked->widths, asked->n_widths));
    QN_TRY(begin_patterns(&min_max, l, asked->min_max, asked->n_min_max));
    for (size_t i = 0; i < l->count; i++) {
        if (l->at[i].min_max)
            add_values(&min_max, &l->at[i]);
        if (l->at[i].bits == QN_LAYER_FLOAT)
            add_values(&floats, &l->at[i]);
        else if (l->at[i].bits)
            QN_TRY(add_widths(&widths, l->search, &l->at[i]));
    }
    *out = l->asked;
    out->rules.keep_float = floats.at;
    out->rules.n_float = floats.count;
    out->rules.n_sensitive = asked->n_sensitive + floats.count - asked->n_float;
    out->rules.widths = widths.at;
    out->rules.n_widths = widths.count;
    out->rules.n_searched_widths = asked->n_searched_widths + widths.count - asked->n_widths;
    out->rules.min_max = min_max.at;
    out->rules.n_min_max = min_max.count;
    return QN_OK;
}

qn_status qn_layers_make(qn_quantized_model *out, const qn_layers *l)
{
    qn_quantize_settings settings;
    *out = (qn_quantized_model){.ctx = NULL};
    QN_TRY(qn_layers_settings(&settings, l));
    return qn_quantize_make(out, l->search->input, &settings);
}

/* ---- Sensitivity ----------------------------------------------------------------------------- */

static qn_status measure_layer(qn_layer *layer, const qn_layers *l, qn_output_check *check)
{
    qn_quantized_model alone;
    layer->bits = 0;
    qn_status status = qn_layers_make(&alone, l);
    if (status == QN_OK)
        status = qn_output_check_noise(&layer->sensitivity, check, &alone);
    qn_log(check->ctx, QN_LOG_DEBUG, "%s alone in integers: noise %.6f", layer->node,
           layer->sensitivity);
    qn_quantized_model_free(&alone);
    layer->bits = QN_LAYER_FLOAT;
    return status;
}

qn_status qn_layers_measure(qn_layers *l, qn_output_check *check)
{
    for (size_t i = 0; i < l->count; i++)
        l->at[i].bits = QN_LAYER_FLOAT;
    for (size_t i = 0; i < l->count; i++) {
        QN_TRY(measure_layer(&l->at[i], l, check));
        qn_progress(check->ctx, "layers", (int64_t)i + 1, (int64_t)l->count);
    }
    for (size_t i = 0; i < l->count; i++)
        l->at[i].bits = 0;
    return QN_OK;
}

static int by_sensitivity(const void *a, const void *b)
{
    const qn_layer *x = a, *y = b;
    const int order = (x->sensitivity < y->sensitivity) - (x->sensitivity > y->sensitivity);
    return order ? order : strcmp(x->node, y->node);
}

void qn_layers_sort(qn_layers *l)
{
    qsort(l->at, l->count, sizeof *l->at, by_sensitivity);
}
