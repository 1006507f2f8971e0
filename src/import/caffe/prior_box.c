/* PriorBox of SSD: boxes that depend on shapes only, so they are constants. */
#include <math.h>
#include <string.h>

#include "import/caffe/caffe.h"

/* Widths and heights of the boxes around each place. */
typedef struct priors {
    float *widths, *heights;
    int64_t count;
    double step_w, step_h, offset;
    int64_t image_w, image_h, layer_w, layer_h;
    float variance[4];
} priors;

enum { MOST_RATIOS = 64, MOST_NUMBERS = 1 << 22 };

/* 1 first, then those given, each once, with their reciprocals where they are flipped. */
static qn_status read_ratios(double *ratios, size_t *count, qn_caffe_net *net,
                             const qn_proto_message *param)
{
    const bool flips = qn_proto_int(param, QN_CAFFE_PRIOR_FLIP, 1) != 0;
    qn_proto_numbers list = qn_proto_numbers_of(param, QN_CAFFE_PRIOR_ASPECT_RATIO);
    double ratio;
    ratios[0] = 1;
    *count = 1;
    while (qn_proto_next_real(&ratio, &list)) {
        bool is_new = true;
        for (size_t i = 0; i < *count; i++)
            is_new = is_new && fabs(ratio - ratios[i]) >= 1e-6;
        if (!(ratio > 0) || *count + 2 > MOST_RATIOS)
            return QN_CAFFE_FAIL(net, "aspect_ratio %g, of %zu", ratio, *count);
        if (is_new)
            ratios[(*count)++] = ratio;
        if (is_new && flips)
            ratios[(*count)++] = 1 / ratio;
    }
    return QN_OK;
}

/* For each size: a square of it, one between it and the larger size, and the other ratios. */
static qn_status read_sizes(priors *p, qn_caffe_net *net, const qn_proto_message *param)
{
    double ratios[MOST_RATIOS], low, high;
    size_t n_ratios;
    QN_TRY(read_ratios(ratios, &n_ratios, net, param));
    const size_t n = qn_proto_count(param, QN_CAFFE_PRIOR_MIN_SIZE);
    const size_t n_high = qn_proto_count(param, QN_CAFFE_PRIOR_MAX_SIZE);
    qn_proto_numbers lows = qn_proto_numbers_of(param, QN_CAFFE_PRIOR_MIN_SIZE);
    qn_proto_numbers highs = qn_proto_numbers_of(param, QN_CAFFE_PRIOR_MAX_SIZE);
    if (n == 0 || (n_high && n_high != n))
        return QN_CAFFE_FAIL(net, "%zu min_size and %zu max_size", n, n_high);
    p->widths = qn_arena_array(&net->builder.model->arena, n * (n_ratios + 1), 2 * sizeof(float));
    QN_TRY_ALLOC(net->ctx, p->widths);
    p->heights = p->widths + n * (n_ratios + 1);
    while (qn_proto_next_real(&low, &lows)) {
        const bool has_high = qn_proto_next_real(&high, &highs);
        for (size_t r = 0; r < n_ratios; r++) {
            p->widths[p->count] = (float)(low * sqrt(ratios[r]));
            p->heights[p->count++] = (float)(low / sqrt(ratios[r]));
            if (r > 0 || !has_high)
                continue;
            p->widths[p->count] = p->heights[p->count] = (float)sqrt(low * high);
            p->count++;
        }
    }
    return QN_OK;
}

static qn_status read_places(priors *p, qn_caffe_net *net, const qn_caffe_layer *layer,
                             const qn_proto_message *param)
{
    qn_value *features, *image;
    QN_TRY(qn_caffe_in(&features, net, layer, 0));
    QN_TRY(qn_caffe_in(&image, net, layer, layer->bottoms.count > 1 ? 1 : 0));
    QN_TRY(qn_caffe_check(net, "the rank of its bottoms",
                          QN_MIN(features->type.rank, image->type.rank), 4, QN_MAX_RANK));
    const int64_t both = qn_proto_int(param, QN_CAFFE_PRIOR_IMG_SIZE, 0);
    p->layer_h = qn_caffe_dim(features, 2);
    p->layer_w = qn_caffe_dim(features, 3);
    p->image_h = qn_proto_int(param, QN_CAFFE_PRIOR_IMG_H, both ? both : qn_caffe_dim(image, 2));
    p->image_w = qn_proto_int(param, QN_CAFFE_PRIOR_IMG_W, both ? both : qn_caffe_dim(image, 3));
    QN_TRY(qn_caffe_check(net, "the height of its bottom", p->layer_h, 1, MOST_NUMBERS));
    QN_TRY(qn_caffe_check(net, "the width of its bottom", p->layer_w, 1, MOST_NUMBERS));
    QN_TRY(qn_caffe_check(net, "the height of the picture", p->image_h, 1, QN_CAFFE_MOST));
    QN_TRY(qn_caffe_check(net, "the width of the picture", p->image_w, 1, QN_CAFFE_MOST));
    const double step = qn_proto_real(param, QN_CAFFE_PRIOR_STEP, 0);
    p->step_h = qn_proto_real(param, QN_CAFFE_PRIOR_STEP_H, step);
    p->step_w = qn_proto_real(param, QN_CAFFE_PRIOR_STEP_W, step);
    p->step_h = p->step_h == 0 ? (double)p->image_h / (double)p->layer_h : p->step_h;
    p->step_w = p->step_w == 0 ? (double)p->image_w / (double)p->layer_w : p->step_w;
    p->offset = qn_proto_real(param, QN_CAFFE_PRIOR_OFFSET, 0.5);
    return qn_caffe_check(net, "the number of boxes", p->layer_h * p->layer_w, 1,
                          MOST_NUMBERS / p->count);
}

static qn_status read_variance(priors *p, qn_caffe_net *net, const qn_proto_message *param)
{
    qn_proto_numbers list = qn_proto_numbers_of(param, QN_CAFFE_PRIOR_VARIANCE);
    const size_t given = qn_proto_count(param, QN_CAFFE_PRIOR_VARIANCE);
    double variance = 0.1;
    if (given > 4 || given == 2 || given == 3)
        return QN_CAFFE_FAIL(net, "%zu variances; 1 or 4 are possible", given);
    for (size_t i = 0; i < 4; i++) {
        (void)qn_proto_next_real(&variance, &list);
        p->variance[i] = (float)variance;
    }
    return QN_OK;
}

static void fill(float *out, const priors *p, bool clips)
{
    float *at = out;
    for (int64_t i = 0; i < p->layer_h * p->layer_w * p->count; i++, at += 4) {
        const int64_t place = i / p->count, k = i % p->count;
        const double y = ((double)(place / p->layer_w) + p->offset) * p->step_h;
        const double x = ((double)(place % p->layer_w) + p->offset) * p->step_w;
        const double half_w = (double)p->widths[k] / 2, half_h = (double)p->heights[k] / 2;
        const double box[] = {(x - half_w) / (double)p->image_w, (y - half_h) / (double)p->image_h,
                              (x + half_w) / (double)p->image_w, (y + half_h) / (double)p->image_h};
        for (size_t c = 0; c < 4; c++)
            at[c] = (float)(clips ? fmin(fmax(box[c], 0), 1) : box[c]);
    }
    for (int64_t i = 0; i < p->layer_h * p->layer_w * p->count; i++, at += 4)
        memcpy(at, p->variance, sizeof p->variance);
}

/* [1, 2, 4 * boxes]: the corners of all boxes, and their variances. */
qn_status qn_caffe_prior_box(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_PRIOR_BOX);
    priors p = {.count = 0};
    qn_tensor *tensor;
    qn_value *y;
    QN_TRY(read_sizes(&p, net, param));
    QN_TRY(read_places(&p, net, layer, param));
    QN_TRY(read_variance(&p, net, param));
    const int64_t dims[] = {1, 2, 4 * p.layer_h * p.layer_w * p.count};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 3, dims);
    QN_TRY(qn_model_tensor(&tensor, net->builder.model, &type));
    fill(tensor->data, &p, qn_proto_int(param, QN_CAFFE_PRIOR_CLIP, 0) != 0);
    QN_TRY(qn_value_constant(&y, net->builder.graph, layer->name, tensor));
    return qn_caffe_out(net, layer, 0, y);
}
