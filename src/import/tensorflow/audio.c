/* From sound to features: spectra as a convolution with waves, and mel cepstra as two products. */
#include <math.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* No small file may ask for much memory: 17 MB of waves at most. */
enum { MOST_WINDOW = 1 << 11, MOST_BINS = 1 << 12, MOST_BANDS = 1 << 9 };

static const double pi = 3.14159265358979323846;

/* An array of the model that becomes a constant. */
static qn_status make_table(float **numbers, qn_value **value, qn_tf_node *node, int32_t rank,
                            const int64_t *dims)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_graph_builder *b = &node->import->builder;
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, b->ctx, &b->model->arena, &type));
    *numbers = tensor->data;
    return qn_value_constant(value, b->graph, NULL, tensor);
}

/* Files cannot be read in the middle of a graph; as an input it never comes here. */
qn_status qn_tf_decode_wav(qn_tf_node *node)
{
    return qn_tf_fail(node, QN_E_UNSUPPORTED,
                      "it reads a file: begin behind it (first_nodes, `first_nodes`)");
}

/* ---- Spectra --------------------------------------------------------------------------------- */

/* Kernels of a periodic Hann window times cosines, then sines, of a transform as long as the next
 * power of two: [2 bins, 1, window]. */
static qn_status waves(qn_value **out, qn_tf_node *node, int64_t window, int64_t length)
{
    const int64_t bins = length / 2 + 1, dims[] = {2 * bins, 1, window};
    float *numbers;
    QN_TRY(make_table(&numbers, out, node, 3, dims));
    for (int64_t k = 0; k < bins; k++) {
        for (int64_t t = 0; t < window; t++) {
            const double hann = .5 - .5 * cos(2 * pi * (double)t / (double)window);
            const double angle = 2 * pi * (double)(k * t % length) / (double)length;
            numbers[k * window + t] = (float)(hann * cos(angle));
            numbers[(bins + k) * window + t] = (float)(hann * sin(angle));
        }
    }
    return QN_OK;
}

/* [samples, channels] to [channels, frames, bins]: squares of both waves, added. */
qn_status qn_tf_audio_spectrogram(qn_tf_node *node)
{
    static const int64_t turned[] = {1, 0}, middle[] = {1}, last_two[] = {0, 2, 1};
    const int64_t window = qn_tf_attr_int(node, "window_size", 0);
    const int64_t stride = qn_tf_attr_int(node, "stride", 0);
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    qn_value *x, *kernels, *parts[2];
    int64_t length = 1;
    if (window < 2 || window > MOST_WINDOW || stride < 1 || stride > INT32_MAX)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "windows of %lld samples, each %lld",
                          (long long)window, (long long)stride);
    while (length < window)
        length *= 2;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(waves(&kernels, node, window, length));
    QN_TRY(qn_tf_permute(&x, import, turned, 2));
    QN_TRY(qn_tf_unsqueeze(&x, import, middle, 1));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Conv, QN_INPUTS(x, kernels),
                          QN_WITH(QN_A_INTS("strides", stride))));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Mul, QN_INPUTS(x, x), QN_PLAIN));
    QN_TRY(qn_graph_build_several(parts, 2, b, &qn_op_Split, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT("axis", 1), QN_A_INT("num_outputs", 2))));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Add, QN_INPUTS(parts[0], parts[1]), QN_PLAIN));
    if (!qn_tf_attr_bool(node, "magnitude_squared", false))
        QN_TRY(qn_graph_build(&x, b, &qn_op_Sqrt, QN_INPUTS(x), QN_PLAIN));
    QN_TRY(qn_tf_permute(&x, import, last_two, 3));
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}

/* ---- Cepstra --------------------------------------------------------------------------------- */

typedef struct mel {
    int64_t bins, bands, coefficients;
    double rate, low, high;
} mel;

static double mel_of(double frequency)
{
    return 1127 * log1p(frequency / 700);
}

/* Triangles whose centers lie in equal steps of mel: each bin belongs to the falling side of one
 * and to the rising side of the next, [bins, bands]. The first bin is left out. */
static void fill_bands(float *numbers, const mel *m)
{
    const double hertz = m->rate / 2 / (double)(m->bins - 1);
    const double first = mel_of(m->low), step = (mel_of(m->high) - first) / (double)(m->bands + 1);
    const double begin = floor(1.5 + m->low / hertz), end = floor(m->high / hertz);
    for (int64_t i = 0; i < m->bins; i++) {
        const double place = (mel_of((double)i * hertz) - first) / step;
        if ((double)i < begin || (double)i > end || place < 0)
            continue;
        /* Bands are numbered from 1 here: a bin at a center belongs to that band alone. */
        const int64_t below = (int64_t)ceil(place) - 1;
        const double rising = place - (double)below;
        if (below >= 1 && below <= m->bands)
            numbers[i * m->bands + below - 1] += (float)(1 - rising);
        if (below >= 0 && below < m->bands)
            numbers[i * m->bands + below] += (float)rising;
    }
}

/* A cosine transform, [bands, coefficients]. */
static void fill_cosines(float *numbers, const mel *m)
{
    const double norm = sqrt(2 / (double)m->bands);
    for (int64_t j = 0; j < m->bands; j++) {
        for (int64_t i = 0; i < m->coefficients; i++)
            numbers[j * m->coefficients + i] =
                (float)(norm * cos((double)i * pi / (double)m->bands * ((double)j + .5)));
    }
}

static qn_status mel_from(mel *m, qn_tf_node *node, const qn_value *spectrum)
{
    QN_TRY(qn_tf_real(&m->rate, node, 1));
    m->bins = spectrum->type.rank == 3 ? spectrum->type.dims[2].value : -1;
    m->bands = qn_tf_attr_int(node, "filterbank_channel_count", 40);
    m->coefficients = qn_tf_attr_int(node, "dct_coefficient_count", 13);
    m->low = qn_tf_attr_real(node, "lower_frequency_limit", 20);
    m->high = qn_tf_attr_real(node, "upper_frequency_limit", 4000);
    if (m->bins < 2 || m->bins > MOST_BINS || m->bands < 1 || m->bands > MOST_BANDS ||
        m->coefficients < 1 || m->coefficients > m->bands || !(m->rate >= 1 && m->rate < 1e9) ||
        !(m->low >= 0 && m->high > m->low && m->high < 1e9))
        return qn_tf_fail(
            node, QN_E_UNSUPPORTED, "%lld coefficients of %lld bands from %g to %g of %lld bins",
            (long long)m->coefficients, (long long)m->bands, m->low, m->high, (long long)m->bins);
    return QN_OK;
}

/* The logarithm of the bands of the root of a spectrum of squares, transformed. */
qn_status qn_tf_mfcc(qn_tf_node *node)
{
    mel m;
    float *numbers;
    qn_value *x, *bands, *cosines, *least;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(mel_from(&m, node, x));
    QN_TRY(make_table(&numbers, &bands, node, 2, (const int64_t[]){m.bins, m.bands}));
    fill_bands(numbers, &m);
    QN_TRY(make_table(&numbers, &cosines, node, 2, (const int64_t[]){m.bands, m.coefficients}));
    fill_cosines(numbers, &m);
    QN_TRY(qn_graph_build(&x, b, &qn_op_Sqrt, QN_INPUTS(x), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_MatMul, QN_INPUTS(x, bands), QN_PLAIN));
    QN_TRY(qn_graph_build_real(&least, b, 1e-12f));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Max, QN_INPUTS(x, least), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Log, QN_INPUTS(x), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_MatMul, QN_INPUTS(x, cosines), QN_PLAIN));
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}
