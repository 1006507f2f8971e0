/* The form of NanoDet: for each grid the scores of its cells, [1,N,nc], and distances to the four
 * edges, [1,N,4*bins], each the mean of a distribution over `bins` whole numbers. */
#include <math.h>

#include "task/box_layouts.h"

enum { FIRST_STRIDE = 8, LAST_STRIDE = 128, MOST_BINS = 64 };

/* ---- Recognizing ----------------------------------------------------------------------------- */

static int64_t cells_along(int32_t size, int64_t stride)
{
    return (size + stride - 1) / stride;
}

/* Numbers of a cell; 0: the output is none of a grid's. */
static int64_t numbers_of(const qn_box_decoder *r, size_t output)
{
    const qn_tensor *t = &r->outputs[output].tensor;
    return t->rank == 3 && t->dims[0] == 1 ? t->dims[2] : 0;
}

static bool can_be_distances(const qn_box_decoder *r, int64_t numbers)
{
    return numbers % 4 == 0 && numbers >= 8 && numbers <= 4 * MOST_BINS &&
           (!r->bins || numbers == 4 * r->bins);
}

/* Two outputs of one grid: the second one has the distances where nothing else is told, as in
 * NanoDet's files. */
static bool set_pair(qn_detection_head *head, qn_box_decoder *r, size_t first, size_t second)
{
    const int64_t known = r->classes ? r->classes : r->options->classes;
    const int64_t a = numbers_of(r, first), b = numbers_of(r, second);
    const bool swapped = known ? a != known && b == known : !can_be_distances(r, b);
    head->output = swapped ? second : first;
    head->distances = swapped ? first : second;
    if (!can_be_distances(r, swapped ? a : b))
        return false;
    r->bins = (swapped ? a : b) / 4;
    return qn_box_decoder_classes(r, swapped ? b : a);
}

/* The two outputs with as many cells as the grid has. */
static bool find_pair(qn_detection_head *head, qn_box_decoder *r)
{
    size_t found[2] = {0, 0}, count = 0;
    for (size_t i = 0; i < r->n_outputs; i++) {
        if (!numbers_of(r, i) || r->outputs[i].tensor.dims[1] != head->height * head->width)
            continue;
        if (count == 2)
            return false;
        found[count++] = i;
    }
    return count == 2 && set_pair(head, r, found[0], found[1]);
}

/* Grids of the strides 8, 16, 32, ..., until all outputs have one. */
static bool find_grids(qn_box_decoder *r)
{
    r->n_heads = 0;
    r->bins = 0;
    for (int64_t stride = FIRST_STRIDE;
         stride <= LAST_STRIDE && 2 * r->n_heads < r->n_outputs && r->n_heads < QN_HEADS_MAX;
         stride *= 2) {
        qn_detection_head *head = &r->heads[r->n_heads++];
        *head = (qn_detection_head){.height = cells_along(r->height, stride),
                                    .width = cells_along(r->width, stride)};
        if (!find_pair(head, r))
            return false;
    }
    return r->n_heads > 1 && 2 * r->n_heads == r->n_outputs;
}

/* Files have the scores behind the sigmoid; a network that was cut before it has not. */
static qn_status find_raw(qn_box_decoder *r)
{
    r->raw_scores = false;
    for (size_t i = 0; i < r->n_heads; i++) {
        const int64_t count = r->heads[i].height * r->heads[i].width * r->classes;
        QN_TRY(qn_box_decoder_load(r, r->heads[i].output));
        for (int64_t k = 0; k < count; k++)
            r->raw_scores = r->raw_scores || r->values[k] < 0 || r->values[k] > 1;
    }
    return QN_OK;
}

static bool is_nanodet(qn_box_decoder *r, qn_status *status)
{
    if (!find_grids(r))
        return false;
    if (!r->layout)
        *status = find_raw(r);
    return true;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* sum i softmax(v)_i, i = 0 to bins - 1 */
static double mean_of(const double *v, int64_t bins)
{
    double most = v[0], sum = 0, mean = 0;
    for (int64_t i = 1; i < bins; i++)
        most = fmax(most, v[i]);
    for (int64_t i = 0; i < bins; i++) {
        const double part = exp(v[i] - most);
        sum += part;
        mean += (double)i * part;
    }
    return mean / sum;
}

/* Distances from the middle of the cell, in strides: left, top, right, bottom. */
static qn_box box_of(const qn_box_decoder *r, const qn_detection_head *head, int64_t cell,
                     const double *v)
{
    const double across = (double)r->width / (double)head->width,
                 down = (double)r->height / (double)head->height;
    const double x = ((double)(cell % head->width) + 0.5) * across,
                 y = ((double)(cell / head->width) + 0.5) * down;
    return (qn_box){.x0 = x - mean_of(v, r->bins) * across,
                    .y0 = y - mean_of(v + r->bins, r->bins) * down,
                    .x1 = x + mean_of(v + 2 * r->bins, r->bins) * across,
                    .y1 = y + mean_of(v + 3 * r->bins, r->bins) * down};
}

static qn_status add_cell(qn_boxes *out, qn_box_decoder *r, const qn_detection_head *head,
                          int64_t cell, const double *distances)
{
    const double *scores = r->values + cell * r->classes;
    for (int64_t c = 0; c < r->classes; c++) {
        const double score = r->raw_scores ? 1 / (1 + exp(-scores[c])) : scores[c];
        if (!(score > r->options->conf_thres))
            continue;
        qn_box box = box_of(r, head, cell, distances + cell * 4 * r->bins);
        box.score = score;
        box.kind = (int32_t)c;
        QN_TRY(qn_boxes_add(out, r->ctx, &box));
    }
    return QN_OK;
}

static qn_status decode(qn_boxes *out, qn_box_decoder *r)
{
    for (size_t i = 0; i < r->n_heads; i++) {
        const qn_detection_head *head = &r->heads[i];
        const int64_t cells = head->height * head->width;
        const int64_t n_scores = cells * r->classes, n_distances = cells * 4 * r->bins;
        QN_TRY_GROW(r->ctx, r->values, r->room, (size_t)(n_scores + n_distances) + 1);
        qn_task_load(r->values, &r->outputs[head->output], n_scores);
        qn_task_load(r->values + n_scores, &r->outputs[head->distances], n_distances);
        for (int64_t cell = 0; cell < cells; cell++)
            QN_TRY(add_cell(out, r, head, cell, r->values + n_scores));
    }
    return QN_OK;
}

const qn_box_layout qn_box_layout_nanodet = {
    .name = "nanodet",
    .shapes = "[1,N,nc] and [1,N,4*bins] for each of the strides 8, 16, 32",
    .recognize = is_nanodet,
    .decode = decode,
};
