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
    const qn_q_conv_grid grid = {.samples = 1,
                                 .height = 1,
                                 .width = rows,
                                 .out_height = 1,
                                 .out_width = rows,
                                 .kernel = {1, 1},
                                 .stride = {1, 1},
                                 .dilation = {1, 1}};
    return (qn_q_conv){.shape = {.grid = grid,
                                 .channels = k,
                                 .groups = 1,
                                 .group_channels = k,
                                 .group_filters = columns}};
}

/* Rows of outputs that a band has at least, whatever the caches hold, where a thread has `rows`. */
static int64_t least_band(int64_t rows, int64_t unit)
{
    return QN_MIN(rows, unit);
}

/* The least that a thread copies, padding included, is not out of all proportion to the map. The
 * algorithm is not chosen yet: the highest band counts, and the row more that depthwise tiles
 * have. */
static bool copies_fit(const qn_q_conv *c)
{
    const double most = 0x1p30;
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t rows = qn_q_conv_seen(g, 0, least_band(g->out_height, QN_Q_UNIT_MOST)) + 1;
    const double copied = (double)rows * (double)qn_q_conv_seen(g, 1, g->out_width);
    const double map = (double)g->height * (double)g->width;
    return 2 * copied * (double)c->shape.channels <= most || copied <= 2 * map;
}

bool qn_q_conv_fits(const qn_q_conv *c)
{
    /* Products of a sum: 255 * 128 or 255 * 255 each; for others see q_mac.h. */
    const int64_t most = c->weight_info.fit_int8 || c->shape.kind != QN_MAC_INT8 ? 65536 : 32768;
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t sizes[] = {g->kernel[0], g->kernel[1],   g->stride[0],   g->stride[1],
                             g->pad[0],    g->dilation[0], g->dilation[1], g->pad[1]};
    for (size_t i = 0; i < QN_COUNT_OF(sizes); i++) {
        if (sizes[i] < 0 || sizes[i] > SIZE_MOST)
            return false;
    }
    return g->kernel[0] * g->kernel[1] <= most && c->shape.group_channels <= most &&
           qn_q_conv_length(c) <= most && g->height <= SIZE_MOST && g->width <= SIZE_MOST &&
           qn_q_conv_seen(g, 1, g->out_width) <= SIZE_MOST &&
           qn_q_conv_seen(g, 0, g->out_height) <= SIZE_MOST && copies_fit(c);
}

int64_t qn_q_conv_params(const qn_q_conv *c)
{
    if (c->plan.algorithm == QN_Q_CONV_DEPTHWISE)
        return c->depthwise.depth.period * c->plan.kernels->depth_block;
    return c->shape.groups * c->plan.blocks * qn_q_conv_block_filters(c);
}

int64_t qn_q_conv_param_filter(const qn_q_conv *c, int64_t param)
{
    const int64_t padded = c->plan.blocks * qn_q_conv_block_filters(c);
    if (c->plan.algorithm == QN_Q_CONV_DEPTHWISE)
        return qn_q_depthwise_channel(c, param);
    return param % padded < c->shape.group_filters
               ? param / padded * c->shape.group_filters + param % padded
               : -1;
}

/* ---- Shape ----------------------------------------------------------------------------------- */

/* No patch sees padding. */
static bool is_inside(const qn_q_conv_grid *g)
{
    return g->pad[0] == 0 && g->pad[1] == 0 && qn_q_conv_seen(g, 0, g->out_height) <= g->height &&
           qn_q_conv_seen(g, 1, g->out_width) <= g->width;
}

/* Samples follow each other without a gap in all maps. */
static bool is_side_by_side(const qn_q_conv *c)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t in = g->height * g->width * c->shape.channels * (c->source.is_int16 ? 2 : 1);
    const int64_t area = g->out_height * g->out_width;
    return g->samples == 1 ||
           (c->memory.x_stride == in && c->memory.y_stride == area * c->mac.y_step &&
            (c->memory.r_stride == 0 || c->memory.r_stride == area * c->mac.r_step));
}

/* Patches of one element lie in the map or see nothing of it. */
static bool is_pixel(const qn_q_conv_grid *g)
{
    return g->kernel[0] == 1 && g->kernel[1] == 1;
}

/* Every pixel of the map is a patch. */
static bool is_whole(const qn_q_conv_grid *g)
{
    return g->stride[0] == 1 && g->stride[1] == 1 && g->out_width == g->width &&
           g->out_height == g->height;
}

/* Winograd's inner product pays where what is subtracted serves many filters and sums are long
 * enough to be worth smaller tiles, and is right where nothing overflows. */
static bool takes_inner_product(const qn_q_conv *c, int64_t pixels)
{
    enum { FILTERS = 32, CHANNELS = 128, LENGTH = 16384 };
    const qn_q_conv_shape *s = &c->shape;
    return c->plan.kernels->inner_product && c->weight_info.constant && s->kind == QN_MAC_INT8 &&
           s->groups == 1 && s->channels >= CHANNELS && s->channels % 4 == 0 &&
           s->channels <= LENGTH && s->group_filters >= FILTERS &&
           pixels > c->plan.kernels->patches_by_4;
}

/* Where patches are pixels the rows mean nothing: pixels are counted off in rows as long as a tile,
 * all about as long. Those between them are left out by the copy that widens the others. */
static void choose_pixels(qn_q_conv *c)
{
    const qn_q_conv_grid *from = &c->shape.grid;
    const qn_mac_kernels *k = c->plan.kernels;
    qn_q_conv_grid *g = &c->plan.grid;
    int64_t pixels = g->out_height * g->out_width;
    if (!is_whole(from)) {
        c->tiles.across = from->out_width;
        c->tiles.apart[0] = from->stride[0] * from->width * c->shape.channels;
        c->tiles.apart[1] = from->stride[1] * c->shape.channels;
        g->stride[0] = g->stride[1] = 1;
    } else if (is_side_by_side(c)) {
        pixels *= from->samples;
        g->samples = 1;
    }
    const bool inner = takes_inner_product(c, pixels);
    const int64_t most = inner                       ? k->inner_product_patches
                         : pixels <= k->patches_by_4 ? k->patches_by_4
                                                     : k->patches;
    c->plan.algorithm = inner ? QN_Q_CONV_INNER_PRODUCT : QN_Q_CONV_PIXELS;
    g->width = g->out_width = qn_q_pieces(pixels, qn_q_pieces(pixels, most));
    g->height = g->out_height = qn_q_pieces(pixels, g->width);
    c->plan.last_width = pixels - (g->height - 1) * g->width;
}

static void choose_blocks(qn_q_conv *c)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const qn_mac_kernels *k = c->plan.kernels;
    const int64_t filters = c->shape.group_filters, lanes = k->lanes;
    const int64_t patches = g->out_height == 1 ? g->out_width : 2 * g->out_width;
    const bool four = patches <= k->patches_by_4 && filters > 2 * lanes;
    const int64_t vectors = filters <= lanes ? 1 : four ? 4 : 2;
    c->plan.vectors = QN_MIN(vectors, (int64_t)k->vectors);
    c->plan.blocks = qn_q_pieces(filters, qn_q_conv_block_filters(c));
}

/* ---- Segments -------------------------------------------------------------------------------- */

/* Patches left and right are to leave out what they see of the padding: this pays where rows are
 * short, and segments of single elements of the kernel are long enough. */
static bool leaves_out(const qn_q_conv *c)
{
    enum { CHANNELS = 64 };
    const qn_q_conv_shape *s = &c->shape;
    const qn_mac_kernels *k = c->plan.kernels;
    return s->kind == QN_MAC_INT8 && c->plan.skips_padding && s->grid.kernel[1] > 1 &&
           s->groups == 1 && c->plan.vectors == 2 && s->channels >= CHANNELS &&
           s->channels % k->dot == 0 && c->plan.grid.out_width <= 2 * k->patches;
}

/* The side at which the outermost patch sees padding in column `right` of the kernel. */
static int edge_of(const qn_q_conv_grid *g, int64_t right)
{
    const int64_t first = right * g->dilation[1] - g->pad[1];
    if (first < 0)
        return QN_MAC_LEFT;
    return first + (g->out_width - 1) * g->stride[1] >= g->width ? QN_MAC_RIGHT : 0;
}

/* A row of a patch is one run of numbers. */
static bool has_whole_rows(const qn_q_conv *c)
{
    return c->shape.groups == 1 && c->shape.grid.dilation[1] == 1;
}

static qn_status make_segments(qn_q_conv *c, qn_builder *builder)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const bool edges = leaves_out(c), whole = has_whole_rows(c) && !edges;
    const int64_t dot = c->plan.kernels->dot;
    const int64_t pixel =
        c->shape.channels * (c->plan.copies && c->plan.kernels->reads_int16 ? 2 : 1);
    const int64_t row = (c->plan.copies ? c->plan.copy_width : g->width) * pixel;
    const int64_t across = whole ? 1 : g->kernel[1], count = g->kernel[0] * across;
    const int64_t run = whole ? g->kernel[1] * c->shape.channels : c->shape.group_channels;
    qn_mac_segment *at = qn_build_alloc(builder, (size_t)count * sizeof *at);
    QN_TRY_ALLOC(qn_build_context(builder), at);
    c->tiles.segments = at;
    c->tiles.n_segments = count;
    c->tiles.steps = count * qn_q_pieces(run, dot);
    for (int64_t i = 0; i < count; i++) {
        const int64_t down = i / across * g->dilation[0], right = i % across * g->dilation[1];
        at[i].offset = down * row + right * pixel;
        at[i].steps = qn_q_pieces(run, dot);
        at[i].edge = edges ? edge_of(g, i % across) : 0;
    }
    c->mac.x_step = g->stride[1] * pixel;
    return QN_OK;
}

static bool must_copy(const qn_q_conv *c)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t run =
        has_whole_rows(c) ? g->kernel[1] * c->shape.channels : c->shape.group_channels;
    return c->plan.kernels->reads_int16 || c->source.is_signed || run % c->plan.kernels->dot != 0 ||
           !(is_inside(g) || (is_pixel(g) && c->plan.skips_padding));
}

/* ---- Shares ---------------------------------------------------------------------------------- */

/* What splitting the filters costs beside the work, in hundredths of it: the map is read by all,
 * and two threads write to one line of the cache where their filters share it. */
static int64_t split_cost(const qn_q_conv *c, int64_t parts, bool heavy)
{
    enum { LINE = 64, READING = 10, SHARING = 15 };
    const int64_t filters = qn_q_conv_filters(c) / parts;
    return parts == 1 ? 100 : 100 + (heavy ? 0 : READING) + (filters % LINE ? SHARING : 0);
}

/* Blocks of filters that can go to different threads. */
static int64_t all_blocks(const qn_q_conv *c)
{
    const bool depthwise = c->plan.algorithm == QN_Q_CONV_DEPTHWISE;
    return depthwise ? 1 : c->shape.groups * c->plan.blocks;
}

/* The parts of which the largest is smallest. */
static void choose_parts(qn_q_conv *c, int64_t threads)
{
    const qn_q_conv_grid *g = &c->plan.grid;
    const int64_t rows = g->samples * g->out_height;
    const int64_t weights = qn_q_conv_filters(c) * qn_q_conv_length(c);
    const int64_t map = g->samples * g->height * g->width * c->shape.channels;
    const bool heavy = weights > HEAVY && weights > map;
    const int64_t alone = c->plan.algorithm == QN_Q_CONV_DEPTHWISE ? ALONE_BELOW / 16 : ALONE_BELOW;
    int64_t best = INT64_MAX;
    c->plan.filter_parts = c->plan.row_parts = 1;
    if ((double)weights * (double)(rows * g->out_width) < (double)alone)
        return;
    for (int64_t i = 1; i <= threads; i++) {
        const int64_t f = heavy ? threads + 1 - i : i, r = threads / f;
        const int64_t high = qn_q_conv_rows(c, qn_q_pieces(rows, r));
        const int64_t share = qn_q_pieces(all_blocks(c), f) * high * split_cost(c, f, heavy);
        if (threads % f != 0 || share >= best)
            continue;
        best = share;
        c->plan.filter_parts = f;
        c->plan.row_parts = r;
    }
}

/* Shares are cut into pieces, so that threads can help each other: of some microseconds each, what
 * it takes to fetch a piece being nothing beside it. Weights that do not fit the second cache are
 * to be read once. */
static void choose_cuts(qn_q_conv *c)
{
    enum { PIECE = 3000 * 1000, MOST_PIECES = 8 };
    qn_q_conv_plan *p = &c->plan;
    const int64_t rows = p->grid.samples * p->grid.out_height / p->row_parts;
    const int64_t blocks =
        p->algorithm == QN_Q_CONV_DEPTHWISE ? 1 : all_blocks(c) / p->filter_parts;
    const double work = (double)(qn_q_conv_filters(c) * qn_q_conv_length(c)) *
                        (double)(rows * p->grid.out_width) / (double)p->filter_parts;
    const int64_t wanted = (int64_t)QN_MIN(work / PIECE, MOST_PIECES);
    const bool heavy = p->filter_parts > 1;
    p->block_cuts = p->row_cuts = 1;
    if (p->filter_parts * p->row_parts == 1 || wanted < 2)
        return;
    if (heavy)
        p->block_cuts = QN_MAX(QN_MIN(blocks, wanted), 1);
    p->row_cuts = QN_MAX(QN_MIN(rows / qn_q_conv_unit(c), wanted / p->block_cuts), 1);
    if (!heavy)
        p->block_cuts = QN_MAX(QN_MIN(blocks, wanted / p->row_cuts), 1);
}

/* A band has as many rows as the second cache holds with room for weights; more where they would be
 * copied again for every piece of the filters. */
static void choose_band(qn_q_conv *c)
{
    qn_q_conv_plan *p = &c->plan;
    const qn_q_conv_grid *g = &p->grid;
    const int64_t pixel = c->shape.channels * (p->copies && p->kernels->reads_int16 ? 2 : 1);
    const int64_t in = qn_q_conv_seen(g, 1, g->out_width) * pixel * g->stride[0];
    const int64_t row = in + g->out_width * c->mac.y_step;
    const int64_t share = qn_q_pieces(g->samples * g->out_height, p->row_parts);
    const int64_t unit = qn_q_conv_unit(c);
    const int64_t rows = QN_MIN(qn_q_pieces(share, p->row_cuts) + unit - 1, share);
    const bool again = p->copies && p->block_cuts > 1;
    const int64_t fit = (again ? COPY_BYTES : BAND_BYTES) / row;
    const int64_t band = fit >= rows ? rows : QN_MAX(fit / unit * unit, least_band(rows, unit));
    p->band = QN_MIN(band, g->out_height);
}

/* ---- Algorithm ------------------------------------------------------------------------------- */

/* Runs of outputs, or tiles of their own. Sums of 16-bit products have no place to go before the
 * last tap. */
static bool is_depthwise(const qn_q_conv *c, const qn_mac_kernels *k)
{
    enum { WIDE_TAPS = 256 };
    const qn_q_epilogue *f = &c->mac.epilogue;
    const qn_q_conv_shape *s = &c->shape;
    const bool fits = s->kind == QN_MAC_INT8 ? !f->is_int16 : qn_q_conv_length(c) <= WIDE_TAPS;
    const bool runs = k->depth && !f->has_sum && !f->floats && fits;
    return s->groups > 1 && s->group_channels == 1 && s->group_filters == 1 && !c->memory.y_pitch &&
           (k->depth_tiles || runs);
}

/* Runs end in bytes alone. What ends in floats or adds another map has the tiles of CPUs without
 * VNNI. */
static const qn_mac_kernels *choose_kernels(const qn_q_conv *c)
{
    const qn_mac_kernels *best = qn_mac_kernels_get(c->shape.kind, c->weight_info.fit_int8);
    const qn_mac_kernels *tiles = qn_mac_kernels_get(c->shape.kind, false);
    return !is_depthwise(c, best) && is_depthwise(c, tiles) ? tiles : best;
}

static qn_status choose_algorithm(qn_q_conv *c, qn_builder *builder)
{
    const qn_q_conv_grid *g = &c->shape.grid;
    const int64_t added = (QN_Q_WINOGRAD_XI - 9) * c->shape.channels * c->shape.group_filters * 2;
    bool winograd = false;
    c->plan.algorithm = QN_Q_CONV_PATCHES;
    c->tiles = (qn_q_conv_tiles){0};
    if (is_depthwise(c, c->plan.kernels))
        c->plan.algorithm = QN_Q_CONV_DEPTHWISE;
    else if (is_pixel(g) && is_inside(g) && (is_whole(g) || c->plan.kernels->reads_int16))
        choose_pixels(c);
    else if (qn_q_winograd_wanted(c))
        QN_TRY(qn_cpu_allows_winograd(&winograd, builder, added, 1));
    if (winograd)
        c->plan.algorithm = QN_Q_CONV_WINOGRAD;
    return QN_OK;
}

/* From pixel to pixel, and from one vector of filters to the next. */
static void set_steps(qn_q_conv *c)
{
    const qn_q_epilogue *f = &c->mac.epilogue;
    const qn_q_conv_grid *g = &c->shape.grid;
    c->mac.r_step = qn_q_conv_filters(c) * qn_q_epilogue_r_bytes(f);
    c->mac.y_step =
        c->memory.y_pitch ? c->memory.y_pitch : qn_q_conv_filters(c) * qn_q_epilogue_y_bytes(f);
    c->mac.y_vector = c->plan.kernels->lanes * qn_q_epilogue_y_bytes(f);
    if (c->memory.blocked) {
        c->mac.y_step = c->mac.y_vector;
        c->mac.y_vector *= g->out_height * g->out_width;
    }
}

qn_status qn_q_conv_make_plan(qn_q_conv *c, qn_builder *builder, int64_t threads)
{
    c->plan = (qn_q_conv_plan){
        .kernels = choose_kernels(c), .grid = c->shape.grid, .last_width = c->shape.grid.out_width};
    set_steps(c);
    c->plan.skips_padding = qn_q_conv_padding(c) == 0;
    QN_TRY(choose_algorithm(c, builder));
    const qn_q_conv_algorithm algorithm = c->plan.algorithm;
    const bool depthwise = algorithm == QN_Q_CONV_DEPTHWISE;
    const bool winograd = algorithm == QN_Q_CONV_WINOGRAD;
    if (!depthwise)
        choose_blocks(c);
    c->plan.copies = depthwise || must_copy(c);
    c->plan.copy_width = qn_q_conv_seen(&c->plan.grid, 1, c->plan.grid.out_width);
    if (depthwise)
        QN_TRY(qn_q_depthwise_plan(c, builder));
    if (winograd)
        qn_q_winograd_plan(c);
    choose_parts(c, threads);
    choose_cuts(c);
    choose_band(c);
    return depthwise || winograd ? QN_OK : make_segments(c, builder);
}
