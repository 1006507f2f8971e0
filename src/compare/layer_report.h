/* Two versions of a network, layer by layer: what was measured, which layers stand out, and how all
 * that is shown. */
#ifndef QN_LAYER_REPORT_H
#define QN_LAYER_REPORT_H

#include "ir/graph.h"
#include "report/errors.h"
#include "report/report.h"

enum { QN_COMPARE_BINS = 64 };

/* A layer: `left` is the one that is right. */
typedef struct qn_compare_row {
    int64_t index;
    /* Node and op "": not known */
    const char *name, *node, *op;
    /* Tensors, nodes and operators of the float model that are fused in this layer */
    const char *const *names, *const *ops;
    size_t n_names, n_ops;
    /* The type of the integers; QN_UNDEFINED: none */
    qn_dtype dtype;
    float scale;
    int64_t zero;
    /* What qn_compared_tensor says */
    bool through;
    /* Channels have factors beside the scale */
    bool smoothed;
    /* Data NULL */
    qn_tensor shape;
    /* Come together, and its own; single.count 0: not known */
    qn_errors all, single;
    /* Sum of squares of what lies beyond the integers' ends */
    double cut;
    /* The row is shown */
    bool chosen;
    /* Its histogram too */
    bool drawn;
    /* The histograms of left and right, over the range of both */
    int64_t bins[2][QN_COMPARE_BINS];
    /* What would help; NULL: nothing needs to be done */
    const char *advice;
} qn_compare_row;

/* A layer that only one side has, or that is another thing there. */
typedef struct qn_compare_gap {
    const char *name, *why;
} qn_compare_gap;

/* What layers are sorted by. */
typedef struct qn_compare_measure {
    const char *name;
    /* The larger the worse; NULL: the network's order */
    double (*of)(const qn_compare_row *row);
} qn_compare_measure;

typedef struct qn_layer_report qn_layer_report;
struct qn_layer_report {
    qn_context *ctx;
    const qn_compare_options *options;
    qn_arena arena;
    /* What they are, in words */
    const char *left, *right;
    int64_t samples;
    qn_compare_row *rows;
    size_t count;
    /* [count]: the chosen ones as sorted */
    qn_compare_row **order;
    size_t n_order;
    /* The chosen ones, the worst first, by the same measure if one was asked for */
    qn_compare_row **worst;
    size_t n_worst;
    const qn_compare_measure *measure;
    qn_compare_gap *gaps;
    size_t n_gaps, gaps_capacity;
    /* The second time: histograms */
    bool drawing;
    /* Shows all layers of all samples to qn_layer_report_add. */
    qn_status (*run)(qn_layer_report *c);
    void *user;
};

/* Numbers of a layer on both sides. `single`: right is the layer with exact inputs. */
QN_MUST_CHECK qn_status qn_layer_report_add(qn_layer_report *c, qn_compare_row *row,
                                            const qn_tensor *left, const qn_tensor *right,
                                            bool single);
/* Which rows the options mean: `run` calls it, the first time, as soon as names and operators of
 * the rows are known. Until then all are chosen. */
QN_MUST_CHECK qn_status qn_layer_report_choose(qn_layer_report *c);
/* A layer that cannot be compared. */
QN_MUST_CHECK qn_status qn_layer_report_gap(qn_layer_report *c, const char *name, const char *why);
/* The caller has set rows and run. Measures, chooses, sorts, reports and writes the files. */
QN_MUST_CHECK qn_status qn_layer_report_run(qn_report **out, qn_layer_report *c);

/* layer_report_judge.c: what stands out. Fills order, worst and the rows' advice. */
QN_MUST_CHECK qn_status qn_layer_report_judge(qn_layer_report *c);
/* The error that a layer is judged by. */
double qn_compare_row_error(const qn_compare_row *row);
/* The bins of its histograms, each of as many whole steps of the integers, where there are steps:
 * equal numbers of them do not look like teeth then. */
typedef struct qn_bin_range {
    double low, width;
    int count;
} qn_bin_range;
qn_bin_range qn_compare_row_bins(const qn_compare_row *row);
/* What puts a layer among the worst: the measure that was asked for, else that error. */
double qn_compare_row_worth(const qn_layer_report *c, const qn_compare_row *row);
/* What would help a layer of integers, with so much of its own error due to what lies beyond their
 * ends. */
const char *qn_compare_row_advice(const qn_compare_row *row);

/* layer_report_tables.c: reports and CSV. `full`: all there is, whatever the options say. */
QN_MUST_CHECK qn_status qn_layer_report_describe(qn_report *report, const qn_layer_report *c,
                                                 bool full);
QN_MUST_CHECK qn_status qn_layer_report_csv(char **out, const qn_layer_report *c);

/* layer_report_charts.c: writes the pictures into the folder. */
QN_MUST_CHECK qn_status qn_layer_report_draw(qn_layer_report *c, const char *folder);

#endif
