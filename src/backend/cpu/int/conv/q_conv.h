/* Convolutions and products of 8- and 16-bit integers on the tiles of q_mac.h: the shape, the
 * packed weights and the loops over them. A product of matrices is a convolution of one row of
 * pixels by a kernel of one element. */
#ifndef QN_CPU_Q_CONV_H
#define QN_CPU_Q_CONV_H

#include "backend/cpu/geometry.h"
#include "backend/cpu/int/mac/q_mac.h"

/* How the sums of a convolution are made. */
typedef enum qn_q_conv_algorithm {
    /* Tiles of neighbouring patches by blocks of filters (q_mac.h). */
    QN_Q_CONV_PATCHES,
    /* The same for patches that are pixels: they are counted off in rows of one tile each. */
    QN_Q_CONV_PIXELS,
    /* Such pixels by Winograd's inner product (q_mac.h). */
    QN_Q_CONV_INNER_PRODUCT,
    /* Every channel by itself (q_conv_depthwise.c). */
    QN_Q_CONV_DEPTHWISE,
    /* Winograd's convolution by tiles of 4x4 outputs (q_winograd.h). */
    QN_Q_CONV_WINOGRAD
} qn_q_conv_algorithm;

/* Rows and columns of a tile of QN_Q_CONV_WINOGRAD. */
enum { QN_Q_WINOGRAD_OUT = 4 };

/* Maps and the patches on them. Of a pair the first number is for the direction down, the second
 * across. */
typedef struct qn_q_conv_grid {
    int64_t samples, height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2];
    /* Padding above and left; what is below and right follows from the output's size. */
    int64_t pad[2];
} qn_q_conv_grid;

/* What is to be computed: known when the node is claimed, and not changed afterwards. The map is
 * [samples, height, width, channels]. */
typedef struct qn_q_conv_shape {
    qn_q_conv_grid grid;
    int64_t channels, groups;
    /* Channels and filters of one group. */
    int64_t group_channels, group_filters;
    qn_mac_kind kind;
} qn_q_conv_shape;

/* What the choice of an algorithm wants to know of the weights. */
typedef struct qn_q_conv_weight_info {
    /* They are packed once, by qn_q_conv_pack. */
    bool constant;
    /* Without their zero points they fit int8. */
    bool fit_int8;
    /* The largest sum of magnitudes of the weights of a filter; 0: not known. */
    int64_t largest;
} qn_q_conv_weight_info;

/* Where maps and results lie; set before a plan is made. */
typedef struct qn_q_conv_memory {
    /* Bytes from sample to sample of the map, the results and the residual. */
    int64_t x_stride, y_stride, r_stride;
    /* Bytes from pixel to pixel of results that are part of others; 0: they stand side by side. */
    int64_t y_pitch;
    /* The results, floats, go into blocks of as many channels as a vector has lanes. */
    bool blocked;
} qn_q_conv_memory;

/* How it is computed: made by qn_q_conv_make_plan. */
typedef struct qn_q_conv_plan {
    const qn_mac_kernels *kernels;
    qn_q_conv_algorithm algorithm;
    /* The patches that the loops run over: those of the shape, or pixels counted off in rows. */
    qn_q_conv_grid grid;
    /* Patches of the last row: fewer than in others where pixels are counted off. */
    int64_t last_width;
    /* Vectors of a block of filters, and blocks of a group. */
    int64_t vectors, blocks;
    /* Padding adds nothing to the sums: rows outside the map are left out. */
    bool skips_padding;
    /* Rows of the map are copied before tiles read them, with padding or as other numbers; how many
     * pixels such a row has. */
    bool copies;
    int64_t copy_width;
    /* Rows of outputs that are computed at once. */
    int64_t band;
    /* The shares of the work, at most one for each thread, and the pieces into which each of them
     * is cut. */
    int64_t filter_parts, row_parts;
    int64_t block_cuts, row_cuts;
} qn_q_conv_plan;

/* What qn_q_conv_pack makes of the weights. Arrays have qn_q_conv_params elements. */
typedef struct qn_q_conv_packed {
    const uint8_t *weights;
    /* What sums begin with: mac.start or depth.start points here. */
    int32_t *start;
    /* What no sum exceeds, its bias left out. */
    double *reach;
    /* By block and step, qn_mac_tile.runs. NULL: the most. */
    const uint8_t *step_runs;
} qn_q_conv_packed;

/* State of QN_Q_CONV_PATCHES, _PIXELS and _INNER_PRODUCT. */
typedef struct qn_q_conv_tiles {
    /* The segments of a whole patch, as many for each of its rows, and the steps of all of them. */
    const qn_mac_segment *segments;
    int64_t n_segments, steps;
    /* Pixels that do not stand side by side in the map: how many a row has, and elements from row
     * to row and from pixel to pixel; else 0. */
    int64_t across, apart[2];
} qn_q_conv_tiles;

/* State of QN_Q_CONV_DEPTHWISE. */
typedef struct qn_q_conv_depthwise {
    /* Runs of outputs: whole rows where patches stand side by side, else pixels. */
    qn_depthwise_run depth;
    /* Runs of a row, and bytes of the map from one to the next. */
    int64_t runs, x_run;
    /* Where the kernels have tiles of pixels: by the first row of a patch. */
    qn_depthwise_parity parities[2];
} qn_q_conv_depthwise;

/* State of QN_Q_CONV_WINOGRAD. */
typedef struct qn_q_conv_winograd {
    /* Tiles that are transformed at once. */
    int64_t batch;
} qn_q_conv_winograd;

typedef struct qn_q_conv {
    qn_q_conv_shape shape;
    /* How the elements of the map are stored. Where the zero point is known only while running,
     * each run has a copy of its own (q_product.c). */
    qn_mac_source source;
    qn_q_conv_weight_info weight_info;
    qn_q_conv_memory memory;
    qn_q_conv_plan plan;
    qn_q_conv_packed packed;
    /* What the kernels read beside a tile. */
    qn_mac mac;
    /* By plan.algorithm. */
    union {
        qn_q_conv_tiles tiles;
        qn_q_conv_depthwise depthwise;
        qn_q_conv_winograd winograd;
    };
} qn_q_conv;

/* Weight `k` of filter `f` (of all groups), without its zero point: k counts
 * [channel][down][across]. */
typedef struct qn_q_weights {
    const uint8_t *data;
    /* Wide: 16 bits. */
    bool is_signed, is_int16;
    /* Data is [k, filters] instead of [filters, k]. */
    bool by_column;
    /* By filter. */
    const int32_t *zeros;
} qn_q_weights;

/* Pieces of `size` that cover `count`. */
static inline int64_t qn_q_pieces(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}
/* Pixels of the map from the first to the last one that `out` patches see, along dim d. */
static inline int64_t qn_q_conv_seen(const qn_q_conv_grid *g, int d, int64_t out)
{
    return (out - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] + 1;
}
/* Rows of outputs that go together: in pairs where they are narrow, or as high as tiles of
 * q_winograd.h, the most. */
enum { QN_Q_UNIT = 2, QN_Q_UNIT_MOST = QN_Q_WINOGRAD_OUT };
static inline int64_t qn_q_conv_unit(const qn_q_conv *c)
{
    return c->plan.algorithm == QN_Q_CONV_WINOGRAD ? QN_Q_WINOGRAD_OUT : QN_Q_UNIT;
}
/* Rows that are computed for so many. */
static inline int64_t qn_q_conv_rows(const qn_q_conv *c, int64_t rows)
{
    if (c->plan.algorithm != QN_Q_CONV_WINOGRAD)
        return rows;
    return qn_q_pieces(rows, QN_Q_WINOGRAD_OUT) * QN_Q_WINOGRAD_OUT;
}

/* From the results of the first filter to those of another, with which a block begins. */
static inline int64_t qn_q_conv_filter_bytes(const qn_q_conv *c, int64_t filter)
{
    return c->memory.blocked ? filter / c->plan.kernels->lanes * c->mac.y_vector
                             : filter * qn_q_epilogue_y_bytes(&c->mac.epilogue);
}

/* Filters of all groups. */
static inline int64_t qn_q_conv_filters(const qn_q_conv *c)
{
    return c->shape.groups * c->shape.group_filters;
}
/* Filters of a block, up to whole vectors. */
static inline int64_t qn_q_conv_block_filters(const qn_q_conv *c)
{
    return c->plan.vectors * c->plan.kernels->lanes;
}
/* Products of a sum. */
static inline int64_t qn_q_conv_length(const qn_q_conv *c)
{
    return c->shape.grid.kernel[0] * c->shape.grid.kernel[1] * c->shape.group_channels;
}

/* A [rows, k] B [k, columns] as one: rows are pixels, k channels. */
qn_q_conv qn_q_conv_of_rows(int64_t rows, int64_t k, int64_t columns);
/* Its sums fit int32 and its sizes are of this world. */
bool qn_q_conv_fits(const qn_q_conv *c);
/* Chooses kernels, algorithm and order for so many threads. All that stands before `plan` in
 * qn_q_conv must be set, and mac.epilogue but for its numbers. */
QN_MUST_CHECK qn_status qn_q_conv_make_plan(qn_q_conv *c, qn_builder *builder, int64_t threads);
/* The part of it that depthwise convolutions need. (q_conv_depthwise.c) */
QN_MUST_CHECK qn_status qn_q_depthwise_plan(qn_q_conv *c, qn_builder *builder);
QN_MUST_CHECK qn_status qn_q_depthwise_pack(qn_q_conv *c, qn_builder *builder,
                                            const qn_q_weights *w);
/* The channel whose parameters stand at that place. */
int64_t qn_q_depthwise_channel(const qn_q_conv *c, int64_t param);

/* Weight `at` of all, without the zero point of its filter. */
int32_t qn_q_weight(const qn_q_weights *w, int64_t filter, int64_t at);
/* All weights without zero points fit a signed type of so many bits. */
bool qn_q_weights_fit(const qn_q_weights *w, int64_t filters, int64_t length, int bits);
/* The largest sum of magnitudes of a filter's weights, which are not by_column. */
int64_t qn_q_weights_largest(const qn_q_weights *w, int64_t filters, int64_t length);
/* All of them are above -2^15 and below 2^15. */
bool qn_q_weights_balanced(const qn_q_weights *w, int64_t filters, int64_t length);
/* What the zero point of a map adds to a sum, for each unit of the sum of its weights: the map as
 * tiles read it is x - zero + this. The number that padding has there. */
static inline int32_t qn_q_conv_padding(const qn_q_conv *c)
{
    const qn_mac_source *s = &c->source;
    if (c->shape.kind != QN_MAC_INT8 && s->is_int16)
        return s->zero - (s->is_signed ? 0 : 0x8000);
    return c->plan.kernels->reads_int16 ? 0 : s->zero + (s->is_signed ? 128 : 0);
}
/* Packs weights and sets mac.start. */
QN_MUST_CHECK qn_status qn_q_conv_pack(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w);
/* Finds the runs of packed weights. (q_conv_step_runs.c) */
QN_MUST_CHECK qn_status qn_q_conv_find_runs(qn_q_conv *c, qn_builder *builder);
/* Sets mac.near, where begin and the weights allow it. */
QN_MUST_CHECK qn_status qn_q_conv_find_near(qn_q_conv *c, qn_builder *builder);
/* Filters rounded up to whole blocks, all groups: how long start, bias and scale are. */
int64_t qn_q_conv_params(const qn_q_conv *c);
/* Vectors of a block: the last of a group may need one only. */
static inline int64_t qn_q_conv_vectors(const qn_q_conv *c, int64_t block)
{
    const qn_q_conv_plan *p = &c->plan;
    const int64_t rest = c->shape.group_filters - block % p->blocks * qn_q_conv_block_filters(c);
    return rest <= p->kernels->lanes && p->algorithm != QN_Q_CONV_INNER_PRODUCT ? 1 : p->vectors;
}
/* Which filter the number at that place is for; -1: none. */
int64_t qn_q_conv_param_filter(const qn_q_conv *c, int64_t param);
size_t qn_q_conv_scratch(const qn_q_conv *c);

typedef struct qn_q_conv_data {
    /* r NULL: no residual */
    const uint8_t *x, *r;
    uint8_t *y, *scratch;
} qn_q_conv_data;
void qn_q_conv_run(const qn_q_conv *c, const qn_q_conv_data *data, int threads);
/* The shares of it, at most one for each thread of the plan, to be run in any order but not twice
 * at a time. */
int64_t qn_q_conv_parts(const qn_q_conv *c);
void qn_q_conv_run_part(const qn_q_conv *c, const qn_q_conv_data *data, int64_t part);

#endif
