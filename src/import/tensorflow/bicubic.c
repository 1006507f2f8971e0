/* ResizeBicubic as products with matrices of weights. TensorFlow takes the weights at offsets
 * rounded to 1/1024, which ONNX's Resize does not say. */
#include <math.h>

#include "import/tensorflow/tensorflow.h"

enum { TAPS = 4, STEPS = 1024, MOST_WEIGHTS = 1 << 22 };

typedef struct axis {
    int64_t in, out;
    bool aligned, half;
} axis;

/* The cubic at distance x from a pixel, which is below 1 or between 1 and 2; a is -0.5 as Keys has
 * it, or -0.75. */
static double near(double x, double a)
{
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static double far(double x, double a)
{
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static double place_of(const axis *s, int64_t i)
{
    if (s->aligned && s->out > 1)
        return (double)i * (double)(s->in - 1) / (double)(s->out - 1);
    const double scale = (double)s->in / (double)s->out;
    return s->half ? ((double)i + .5) * scale - .5 : (double)i * scale;
}

/* Row i: the weights of the four pixels around its place. With half pixels those outside do not
 * count and the others make up for them, else the edges stand for them. */
static void fill_row(float *row, const axis *s, int64_t i)
{
    const double a = s->half ? -.5 : -.75, place = place_of(s, i), whole = floor(place);
    const double d = (double)lrint((place - whole) * STEPS) / STEPS;
    const double weights[TAPS] = {far(1 + d, a), near(d, a), near(1 - d, a), far(2 - d, a)};
    double sum = 0;
    for (int k = 0; k < TAPS; k++) {
        const int64_t pixel = (int64_t)whole - 1 + k;
        const bool outside = pixel < 0 || pixel >= s->in;
        const int64_t at = QN_MIN(QN_MAX(pixel, 0), s->in - 1);
        if (outside && s->half)
            continue;
        row[at] += (float)weights[k];
        sum += weights[k];
    }
    for (int64_t at = 0; s->half && fabs(sum) > 1e-6 && at < s->in; at++)
        row[at] = (float)((double)row[at] / sum);
}

static qn_status matrix(qn_value **out, qn_tf_import *import, const axis *s)
{
    const int64_t dims[2] = {s->out, s->in};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 2, dims);
    qn_graph_builder *b = &import->builder;
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, b->ctx, &b->model->arena, &type));
    for (int64_t i = 0; i < s->out; i++)
        fill_row((float *)tensor->data + i * s->in, s, i);
    return qn_value_constant(out, b->graph, NULL, tensor);
}

static qn_status axis_of(axis *out, const qn_tf_node *node, const qn_value *x, int32_t i,
                         int64_t size)
{
    *out = (axis){.in = x->type.rank == 4 ? x->type.dims[2 + i].value : -1,
                  .out = size,
                  .aligned = qn_tf_attr_bool(node, "align_corners", false),
                  .half = qn_tf_attr_bool(node, "half_pixel_centers", false)};
    if (out->in < 1 || size < 1 || size > MOST_WEIGHTS || out->in > MOST_WEIGHTS / size)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "sizes that are not known, or too large");
    return QN_OK;
}

qn_status qn_tf_resize_bicubic(qn_tf_node *node)
{
    int64_t size[2];
    size_t count;
    axis rows, columns;
    qn_value *x, *up, *across;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_ints(size, &count, node, 1, 2));
    if (count != 2)
        return qn_tf_fail(node, QN_E_FORMAT, "its size has %zu numbers", count);
    QN_TRY(qn_tf_in_order(&x, node, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_tf_cast(&x, import, QN_FLOAT32));
    QN_TRY(axis_of(&rows, node, x, 0, size[0]));
    QN_TRY(axis_of(&columns, node, x, 1, size[1]));
    QN_TRY(matrix(&up, import, &rows));
    QN_TRY(matrix(&across, import, &columns));
    QN_TRY(qn_tf_permute(&across, import, (const int64_t[]){1, 0}, 2));
    QN_TRY(qn_graph_build(&x, b, &qn_op_MatMul, QN_INPUTS(up, x), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_MatMul, QN_INPUTS(x, across), QN_PLAIN));
    return qn_tf_out(node, 0, x, QN_ORDER_CHANNELS_FIRST);
}
