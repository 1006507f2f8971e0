/* Convolutions and products of 8- and 16-bit integers on the tiles of q_mac.h: the shape, the packed weights and the
 * walk over them. A product of matrices is a convolution of one row of pixels by a kernel of one element. */
#ifndef QN_CPU_Q_CONV_H
#define QN_CPU_Q_CONV_H

#include "backend/cpu/geometry.h"
#include "backend/cpu/int/mac/q_mac.h"

/* How sums are made, and which kernels make them. */
typedef enum qn_q_form {
    QN_Q_WINDOWS,   /* tiles of neighbouring windows */
    QN_Q_POINTS,    /* windows are pixels, which are counted off in rows of a tile each */
    QN_Q_HALVED,    /* the same, by Winograd's inner product (q_mac.h) */
    QN_Q_DEPTHWISE, /* each channel by itself (q_conv_depthwise.c) */
    QN_Q_WINOGRAD   /* tiles of 4x4 outputs (q_winograd.h) */
} qn_q_form;

enum { QN_Q_WINO_OUT = 4 }; /* rows and columns of such a tile */

typedef struct qn_q_conv {
    /* Known when it is claimed: a map [samples, height, width, channels], and the window. */
    int64_t samples, channels, height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* down, across; pad: above, left */
    int64_t groups;
    int64_t group_channels, group_filters; /* of one group */
    qn_mac_source source;
    qn_mac_kind kind;
    bool constant;   /* weights are packed once, by qn_q_conv_pack */
    bool narrow;     /* weights without zero point fit int8 */
    int64_t largest; /* sum of magnitudes of the weights of a filter; 0: not known */
    bool blocked;    /* results, floats, in blocks of as many channels as a vector has lanes */
    int64_t threads; /* 0: those of the plan */
    int64_t
        y_pitch; /* bytes from pixel to pixel of results that are part of others; 0: side by side */

    /* From qn_q_conv_plan: how it is done. */
    const qn_mac_kernels *kernels;
    qn_q_form form;
    int64_t vectors, blocks; /* vectors of a block of filters, blocks of a group */
    int64_t steps;           /* of all segments */
    /* Points that are not side by side: how many a row has, and elements from row to row and from point to
     * point of the map; else 0. */
    int64_t across, apart[2];
    int64_t last_width; /* windows of the last row: less where pixels are just counted off */
    bool copies;        /* rows are copied first: padded, or in another form */
    int64_t copy_width; /* pixels of such a row */
    int64_t band;       /* rows of outputs at once */
    int64_t filter_parts, row_parts;      /* shares of the work, one for each thread at most */
    int64_t block_cuts, row_cuts;         /* into which each share is cut once more */
    int64_t x_stride, y_stride, r_stride; /* bytes from sample to sample */
    const qn_mac_segment *segments;       /* of the whole window, as many for each of its rows */
    int64_t n_segments;
    bool
        skips; /* padding adds nothing to the sums as they are: rows outside the map are left out */
    qn_mac mac;
    const uint8_t *weights;
    int32_t *start;           /* what mac.start or depth.start points to */
    double *reach;            /* by the same index: what no sum exceeds, without its bias */
    const uint8_t *step_runs; /* [block][step]: qn_mac_tile.runs */

    int64_t wino_batch; /* tiles of QN_Q_WINOGRAD that are transformed at once */

    /* QN_Q_DEPTHWISE has tiles of its own (phases), or goes by runs of outputs: whole rows where windows are
     * side by side, else pixels. */
    qn_depth depth;
    int64_t runs, x_run; /* of a row; bytes from one to the next */
    qn_depth_phase
        phases[2]; /* where the kernels have tiles for it, by the first row of a window */
} qn_q_conv;

/* Weight `k` of filter `f` (of all groups), without its zero point: k counts [channel][down][across]. */
typedef struct qn_q_weights {
    const uint8_t *data;
    bool is_signed, wide; /* wide: 16 bits */
    bool by_column;       /* data is [k, filters] instead of [filters, k] */
    const int32_t *zeros; /* by filter */
} qn_q_weights;

/* Pieces of `size` that cover `count`. */
static inline int64_t qn_q_pieces(int64_t count, int64_t size)
{
    return (count + size - 1) / size;
}
/* Pixels of the map from the first to the last one that `out` windows see, along dim d. */
static inline int64_t qn_q_conv_seen(const qn_q_conv *c, int d, int64_t out)
{
    return (out - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1;
}
/* Rows of outputs that go together: in pairs where they are narrow, or as high as tiles of q_winograd.h, the most. */
enum { QN_Q_UNIT = 2, QN_Q_UNIT_MOST = QN_Q_WINO_OUT };
static inline int64_t qn_q_conv_unit(const qn_q_conv *c)
{
    return c->form == QN_Q_WINOGRAD ? QN_Q_WINO_OUT : QN_Q_UNIT;
}
/* Rows that are computed for so many. */
static inline int64_t qn_q_conv_rows(const qn_q_conv *c, int64_t rows)
{
    return c->form == QN_Q_WINOGRAD ? qn_q_pieces(rows, QN_Q_WINO_OUT) * QN_Q_WINO_OUT : rows;
}

/* From the results of the first filter to those of another, with which a block begins. */
static inline int64_t qn_q_conv_filter_bytes(const qn_q_conv *c, int64_t filter)
{
    return c->blocked ? filter / c->kernels->lanes * c->mac.y_vector
                      : filter * qn_q_finish_size(&c->mac.finish);
}

/* Products of a sum. */
static inline int64_t qn_q_conv_length(const qn_q_conv *c)
{
    return c->kernel[0] * c->kernel[1] * c->group_channels;
}

/* A [rows, k] B [k, columns] as one: rows are pixels, k channels. */
qn_q_conv qn_q_conv_of_rows(int64_t rows, int64_t k, int64_t columns);
/* Its sums fit int32 and its sizes are of this world. */
bool qn_q_conv_fits(const qn_q_conv *c);
/* Chooses kernels and order. What is known when it is claimed, the distances of samples and finish.floats
 * must be set. */
QN_MUST_CHECK qn_status qn_q_conv_plan(qn_q_conv *c, qn_builder *builder);
/* The part of it that depthwise convolutions need. (q_conv_depthwise.c) */
QN_MUST_CHECK qn_status qn_q_depth_plan(qn_q_conv *c, qn_builder *builder);
QN_MUST_CHECK qn_status qn_q_depth_pack(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w);
/* The channel whose parameters stand at that place. */
int64_t qn_q_depth_channel(const qn_q_conv *c, int64_t param);

/* Weight `at` of all, without the zero point of its filter. */
int32_t qn_q_weight(const qn_q_weights *w, int64_t filter, int64_t at);
/* All weights without zero points fit a signed type of so many bits. */
bool qn_q_weights_fit(const qn_q_weights *w, int64_t filters, int64_t length, int bits);
/* The largest sum of magnitudes of a filter's weights, which are not by_column. */
int64_t qn_q_weights_largest(const qn_q_weights *w, int64_t filters, int64_t length);
/* All of them are above -2^15 and below 2^15. */
bool qn_q_weights_balanced(const qn_q_weights *w, int64_t filters, int64_t length);
/* What the zero point of a map adds to a sum, for each unit of the sum of its weights: the map as tiles read
 * it is x - zero + this. The number that padding has there. */
static inline int32_t qn_q_conv_padding(const qn_q_conv *c)
{
    const qn_mac_source *s = &c->source;
    if (c->kind != QN_MAC_BYTES && s->wide)
        return s->zero - (s->is_signed ? 0 : 0x8000);
    return c->kernels->is_wide ? 0 : s->zero + (s->is_signed ? 128 : 0);
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
    const int64_t width = c->vectors * c->kernels->lanes;
    const int64_t rest = c->group_filters - block % c->blocks * width;
    return rest <= c->kernels->lanes && c->form != QN_Q_HALVED ? 1 : c->vectors;
}
/* Which filter the number at that place is for; -1: none. */
int64_t qn_q_conv_filter(const qn_q_conv *c, int64_t param);
size_t qn_q_conv_scratch(const qn_q_conv *c);

typedef struct qn_q_conv_data {
    const uint8_t *x, *r; /* r NULL: no residual */
    uint8_t *y, *scratch;
} qn_q_conv_data;
void qn_q_conv_run(const qn_q_conv *c, const qn_q_conv_data *data, int threads);
/* The shares of it, at most one for each thread of the plan, to be run in any order but not twice at a time. */
int64_t qn_q_conv_parts(const qn_q_conv *c);
void qn_q_conv_run_part(const qn_q_conv *c, const qn_q_conv_data *data, int64_t part);

#endif
