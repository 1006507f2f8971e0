/* How a convolution of integers is done (q_conv.h): kernels, blocks, bands, shares of threads. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_winograd.h"

enum {
    SIZE_MOST = 1 << 24,
    BAND_BYTES = 192 * 1024,
    COPY_BYTES = 512 * 1024,
    ALONE_BELOW = 1000 * 1000,
    HEAVY = 512 * 1024
};

qn_q_conv qn_q_conv_of_rows(int64_t rows, int64_t k, int64_t columns)
{
    return (qn_q_conv){.samples = 1,
                       .channels = k,
                       .height = 1,
                       .width = rows,
                       .out_height = 1,
                       .out_width = rows,
                       .kernel = {1, 1},
                       .stride = {1, 1},
                       .dilation = {1, 1},
                       .groups = 1,
                       .group_channels = k,
                       .group_filters = columns};
}

/* Rows of outputs that a band has at least, whatever the caches hold, where a thread has `rows`. */
static int64_t least_band(int64_t rows, int64_t unit)
{
    return QN_MIN(rows, unit);
}

/* The least that a thread copies, padding included, is not out of all proportion to the map. The form is not chosen
 * yet: the highest band counts, and the row more that depthwise tiles have. */
static bool copies_fit(const qn_q_conv *c)
{
    const double most = 0x1p30;
    const int64_t rows = qn_q_conv_seen(c, 0, least_band(c->out_height, QN_Q_UNIT_MOST)) + 1;
    const double copied = (double)rows * (double)qn_q_conv_seen(c, 1, c->out_width);
    const double map = (double)c->height * (double)c->width;
    return 2 * copied * (double)c->channels <= most || copied <= 2 * map;
}

bool qn_q_conv_fits(const qn_q_conv *c)
{
    /* Products of a sum: 255 * 128 or 255 * 255 each; for others see q_mac.h. */
    const int64_t most = c->narrow || c->kind != QN_MAC_BYTES ? 65536 : 32768;
    const int64_t sizes[] = {c->kernel[0], c->kernel[1],   c->stride[0],   c->stride[1],
                             c->pad[0],    c->dilation[0], c->dilation[1], c->pad[1]};
    for (size_t i = 0; i < QN_COUNT_OF(sizes); i++) {
        if (sizes[i] < 0 || sizes[i] > SIZE_MOST)
            return false;
    }
    return c->kernel[0] * c->kernel[1] <= most && c->group_channels <= most &&
           qn_q_conv_length(c) <= most && c->height <= SIZE_MOST && c->width <= SIZE_MOST &&
           qn_q_conv_seen(c, 1, c->out_width) <= SIZE_MOST &&
           qn_q_conv_seen(c, 0, c->out_height) <= SIZE_MOST && copies_fit(c);
}

int64_t qn_q_conv_params(const qn_q_conv *c)
{
    if (c->form == QN_Q_DEPTHWISE)
        return c->depth.period * c->kernels->depth_block;
    return c->groups * c->blocks * c->vectors * c->kernels->lanes;
}

int64_t qn_q_conv_filter(const qn_q_conv *c, int64_t param)
{
    const int64_t padded = c->blocks * c->vectors * c->kernels->lanes;
    if (c->form == QN_Q_DEPTHWISE)
        return qn_q_depth_channel(c, param);
    return param % padded < c->group_filters ? param / padded * c->group_filters + param % padded
                                             : -1;
}

/* ---- Shape ------------------------------------------------------------------------------------------------ */

static bool is_inside(const qn_q_conv *c)
{
    return c->pad[0] == 0 && c->pad[1] == 0 && qn_q_conv_seen(c, 0, c->out_height) <= c->height &&
           qn_q_conv_seen(c, 1, c->out_width) <= c->width;
}

static bool is_side_by_side(const qn_q_conv *c)
{
    const int64_t in = c->height * c->width * c->channels * (c->source.wide ? 2 : 1);
    const int64_t area = c->out_height * c->out_width;
    return c->samples == 1 || (c->x_stride == in && c->y_stride == area * c->mac.y_step &&
                               (c->r_stride == 0 || c->r_stride == area * c->mac.r_step));
}

/* Windows of one element lie in the map or see nothing of it. */
static bool is_point(const qn_q_conv *c)
{
    return c->kernel[0] == 1 && c->kernel[1] == 1;
}

/* Every element of the map is a window. */
static bool is_whole(const qn_q_conv *c)
{
    return c->stride[0] == 1 && c->stride[1] == 1 && c->out_width == c->width &&
           c->out_height == c->height;
}

/* Winograd's inner product: where what is subtracted serves many filters, sums are long enough to be worth smaller
 * tiles, and nothing overflows. */
static bool is_halved(const qn_q_conv *c, int64_t pixels)
{
    enum { FILTERS = 32, CHANNELS = 128, LENGTH = 16384 };
    return c->kernels->halved && c->constant && c->kind == QN_MAC_BYTES && c->groups == 1 &&
           c->channels >= CHANNELS && c->channels % 4 == 0 && c->channels <= LENGTH &&
           c->group_filters >= FILTERS && pixels > c->kernels->few;
}

/* Where windows are pixels the rows mean nothing: pixels are counted off in rows as long as a tile, all
 * about as long. Those between them are left out by the copy that widens the others. */
static void count_off(qn_q_conv *c)
{
    int64_t pixels = c->out_height * c->out_width;
    if (!is_whole(c)) {
        c->across = c->out_width;
        c->apart[0] = c->stride[0] * c->width * c->channels;
        c->apart[1] = c->stride[1] * c->channels;
        c->stride[0] = c->stride[1] = 1;
    } else if (is_side_by_side(c)) {
        pixels *= c->samples;
        c->samples = 1;
    }
    c->form = is_halved(c, pixels) ? QN_Q_HALVED : QN_Q_POINTS;
    const int64_t most = c->form == QN_Q_HALVED      ? (int64_t)c->kernels->halved_windows
                         : pixels <= c->kernels->few ? (int64_t)c->kernels->few
                                                     : (int64_t)c->kernels->windows;
    c->width = qn_q_pieces(pixels, qn_q_pieces(pixels, most));
    c->height = qn_q_pieces(pixels, c->width);
    c->last_width = pixels - (c->height - 1) * c->width;
    c->out_height = c->height;
    c->out_width = c->width;
}

static void choose_blocks(qn_q_conv *c)
{
    const int64_t lanes = c->kernels->lanes;
    const int64_t windows = c->out_height == 1 ? c->out_width : 2 * c->out_width;
    c->vectors = c->group_filters <= lanes                                    ? 1
                 : windows <= c->kernels->few && c->group_filters > 2 * lanes ? 4
                                                                              : 2;
    c->vectors = QN_MIN(c->vectors, (int64_t)c->kernels->vectors);
    c->blocks = qn_q_pieces(c->group_filters, c->vectors * lanes);
}

/* ---- Segments ----------------------------------------------------------------------------------------------- */

/* Windows left and right are to leave out what they see of the padding: pays where rows are short, and segments
 * of single elements of the kernel are long enough. */
static bool leaves_out(const qn_q_conv *c)
{
    enum { CHANNELS = 64 };
    return c->kind == QN_MAC_BYTES && c->skips && c->kernel[1] > 1 && c->groups == 1 &&
           c->vectors == 2 && c->channels >= CHANNELS && c->channels % c->kernels->dot == 0 &&
           c->out_width <= 2 * c->kernels->windows;
}

/* The side at which the outermost window sees padding in column `right` of the kernel. */
static int edge_of(const qn_q_conv *c, int64_t right)
{
    const int64_t first = right * c->dilation[1] - c->pad[1];
    if (first < 0)
        return QN_MAC_LEFT;
    return first + (c->out_width - 1) * c->stride[1] >= c->width ? QN_MAC_RIGHT : 0;
}

static qn_status make_segments(qn_q_conv *c, qn_builder *builder)
{
    const bool edges = leaves_out(c);
    const int64_t bytes = c->copies && c->kernels->is_wide ? 2 : 1;
    const int64_t row = (c->copies ? c->copy_width : c->width) * c->channels * bytes;
    const bool whole = c->groups == 1 && c->dilation[1] == 1 && !edges;
    const int64_t across = whole ? 1 : c->kernel[1];
    const int64_t run = whole ? c->kernel[1] * c->channels : c->group_channels;
    qn_mac_segment *at = qn_build_alloc(builder, (size_t)(c->kernel[0] * across) * sizeof *at);
    QN_TRY_ALLOC(qn_build_context(builder), at);
    c->segments = at;
    c->n_segments = c->kernel[0] * across;
    for (int64_t i = 0; i < c->n_segments; i++) {
        const int64_t down = i / across * c->dilation[0], right = i % across * c->dilation[1];
        at[i].offset = down * row + right * c->channels * bytes;
        at[i].steps = qn_q_pieces(run, c->kernels->dot);
        at[i].edge = edges ? edge_of(c, i % across) : 0;
    }
    c->steps = c->n_segments * qn_q_pieces(run, c->kernels->dot);
    c->mac.x_step = c->stride[1] * c->channels * bytes;
    return QN_OK;
}

static bool must_copy(const qn_q_conv *c)
{
    const int64_t run =
        c->groups == 1 && c->dilation[1] == 1 ? c->kernel[1] * c->channels : c->group_channels;
    return c->kernels->is_wide || c->source.is_signed || run % c->kernels->dot != 0 ||
           !(is_inside(c) || (is_point(c) && c->skips));
}

/* ---- Shares -------------------------------------------------------------------------------------------------- */

/* What splitting the filters costs beside the work, in hundredths of it: the map is read by all, and two
 * threads write to one line of the cache where their filters share it. */
static int64_t split_cost(const qn_q_conv *c, int64_t parts, bool heavy)
{
    enum { LINE = 64, READING = 10, SHARING = 15 };
    const int64_t filters = c->groups * c->group_filters / parts;
    return parts == 1 ? 100 : 100 + (heavy ? 0 : READING) + (filters % LINE ? SHARING : 0);
}

/* The parts of which the largest is smallest. */
static void choose_parts(qn_q_conv *c, int64_t threads)
{
    const int64_t rows = c->samples * c->out_height, filters = c->groups * c->group_filters;
    const int64_t weights = filters * qn_q_conv_length(c);
    const bool depthwise = c->form == QN_Q_DEPTHWISE;
    const int64_t blocks = depthwise ? 1 : c->groups * c->blocks;
    const bool heavy = weights > HEAVY && weights > c->samples * c->height * c->width * c->channels;
    int64_t best = INT64_MAX;
    c->filter_parts = c->row_parts = 1;
    if ((double)weights * (double)(rows * c->out_width) <
        (depthwise ? ALONE_BELOW / 16 : ALONE_BELOW))
        return;
    for (int64_t i = 1; i <= threads; i++) {
        const int64_t f = heavy ? threads + 1 - i : i, r = threads / f;
        const int64_t high = qn_q_conv_rows(c, qn_q_pieces(rows, r));
        const int64_t share = qn_q_pieces(blocks, f) * high * split_cost(c, f, heavy);
        if (threads % f != 0 || share >= best)
            continue;
        best = share;
        c->filter_parts = f;
        c->row_parts = r;
    }
}

/* Shares are cut into pieces, so that threads can help each other: of some microseconds each, what it takes to
 * fetch a piece being nothing beside it. Weights that do not fit the second cache are to be read once. */
static void choose_cuts(qn_q_conv *c)
{
    enum { PIECE = 3000 * 1000, MOST_PIECES = 8 };
    const int64_t rows = c->samples * c->out_height / c->row_parts;
    const int64_t blocks = c->form == QN_Q_DEPTHWISE ? 1 : c->groups * c->blocks / c->filter_parts;
    const double work = (double)(c->groups * c->group_filters * qn_q_conv_length(c)) *
                        (double)(rows * c->out_width) / (double)c->filter_parts;
    const int64_t wanted = (int64_t)QN_MIN(work / PIECE, MOST_PIECES);
    const bool heavy = c->filter_parts > 1;
    c->block_cuts = c->row_cuts = 1;
    if (c->filter_parts * c->row_parts == 1 || wanted < 2)
        return;
    if (heavy)
        c->block_cuts = QN_MAX(QN_MIN(blocks, wanted), 1);
    c->row_cuts = QN_MAX(QN_MIN(rows / qn_q_conv_unit(c), wanted / c->block_cuts), 1);
    if (!heavy)
        c->block_cuts = QN_MAX(QN_MIN(blocks, wanted / c->row_cuts), 1);
}

/* As many rows as the second cache holds with room for weights; more where they would be copied again for every piece
 * of the filters. */
static void choose_band(qn_q_conv *c)
{
    const int64_t bytes = c->copies && c->kernels->is_wide ? 2 : 1;
    const int64_t in = qn_q_conv_seen(c, 1, c->out_width) * c->channels * bytes * c->stride[0];
    const int64_t row = in + c->out_width * c->mac.y_step;
    const int64_t share = qn_q_pieces(c->samples * c->out_height, c->row_parts);
    const int64_t unit = qn_q_conv_unit(c);
    const int64_t rows = QN_MIN(qn_q_pieces(share, c->row_cuts) + unit - 1, share);
    const bool again = c->copies && c->block_cuts > 1;
    const int64_t fit = (again ? COPY_BYTES : BAND_BYTES) / row;
    c->band = fit >= rows ? rows : QN_MAX(fit / unit * unit, least_band(rows, unit));
    c->band = QN_MIN(c->band, c->out_height);
}

/* Runs of outputs, or tiles of their own. Sums of 16-bit products have no place to go before the last tap. */
static bool is_depthwise(const qn_q_conv *c)
{
    enum { WIDE_TAPS = 256 };
    const qn_q_finish *f = &c->mac.finish;
    const bool fits = c->kind == QN_MAC_BYTES ? !f->wide : qn_q_conv_length(c) <= WIDE_TAPS;
    const bool runs = c->kernels->depth && !f->has_sum && !f->floats && fits;
    return c->groups > 1 && c->group_channels == 1 && c->group_filters == 1 && !c->y_pitch &&
           (c->kernels->depth_tiles || runs);
}

static qn_status choose_form(qn_q_conv *c, qn_builder *builder)
{
    const int64_t added = (QN_Q_WINO_XI - 9) * c->channels * c->group_filters * 2;
    bool winograd = false;
    c->form = QN_Q_WINDOWS;
    if (is_depthwise(c))
        c->form = QN_Q_DEPTHWISE;
    else if (is_point(c) && is_inside(c) && (is_whole(c) || c->kernels->is_wide))
        count_off(c);
    else if (qn_q_wino_wanted(c))
        QN_TRY(qn_cpu_allows_winograd(&winograd, builder, added, 1));
    if (winograd)
        c->form = QN_Q_WINOGRAD;
    return QN_OK;
}

qn_status qn_q_conv_plan(qn_q_conv *c, qn_builder *builder)
{
    c->kernels = qn_mac_kernels_get(c->kind, c->narrow);
    c->last_width = c->out_width;
    c->mac.r_step = c->groups * c->group_filters * qn_q_finish_r_size(&c->mac.finish);
    c->mac.y_step = c->groups * c->group_filters * qn_q_finish_size(&c->mac.finish);
    if (c->y_pitch)
        c->mac.y_step = c->y_pitch;
    c->mac.y_vector = c->kernels->lanes * qn_q_finish_size(&c->mac.finish);
    if (c->blocked) {
        c->mac.y_step = c->mac.y_vector;
        c->mac.y_vector *= c->out_height * c->out_width;
    }
    c->skips = qn_q_conv_padding(c) == 0;
    QN_TRY(choose_form(c, builder));
    const bool depthwise = c->form == QN_Q_DEPTHWISE, winograd = c->form == QN_Q_WINOGRAD;
    if (!depthwise)
        choose_blocks(c);
    c->copies = depthwise || must_copy(c);
    c->copy_width = qn_q_conv_seen(c, 1, c->out_width);
    if (depthwise)
        QN_TRY(qn_q_depth_plan(c, builder));
    if (winograd)
        qn_q_wino_plan(c);
    choose_parts(c, c->threads ? c->threads : qn_build_threads(builder));
    choose_cuts(c);
    choose_band(c);
    return depthwise || winograd ? QN_OK : make_segments(c, builder);
}
