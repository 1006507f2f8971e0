/* Calibration: what values a network computes on given data, and which ranges follow from that.
 *
 *   samples ─ sessions of one plan, in parallel ─► qn_stats ─ method ─► range of a value
 *
 * Statistics are made of minima, maxima, counts and integer sums only, so that adding samples
 * commutes: the same data gives the same bytes in any order, by any number of threads, in one piece
 * or merged from parts. What a run computes must not depend on those either: plans for calibration
 * have one thread and are made with qn_plan_config.direct. */
#ifndef QN_CALIB_H
#define QN_CALIB_H

#include "base/fingerprint.h"
#include "run/session.h"

/* ---- Numbers that add up the same in any order ----------------------------------------------- */

/* 128-bit two's complement in units of 2^-56. */
typedef struct qn_sum128 {
    uint64_t low;
    int64_t high;
} qn_sum128;

/* Adds x, which saturates at 2^55 in magnitude and is cut to the unit. NaN counts as 0. */
void qn_sum128_add(qn_sum128 *sum, double x);
void qn_sum128_merge(qn_sum128 *sum, qn_sum128 other);
double qn_sum128_value(qn_sum128 sum);

/* ---- Histogram ------------------------------------------------------------------------------- */

enum { QN_HISTOGRAM_BINS = 4096, QN_HISTOGRAM_EXPONENT_MIN = -126 };

/* Bins of 2^exponent, aligned at its multiples, for each sign: bin i of side 0 counts x > 0 with i
 * <= x / 2^exponent < i + 1, that of side 1 counts x < 0 by -x. Zeros are not in it. The exponent
 * is the least (from QN_HISTOGRAM_EXPONENT_MIN on) with which the largest |x| has a bin, so the
 * larger side has at least QN_HISTOGRAM_BINS / 2 of them; wider bins are pairs of narrower ones,
 * and the result depends on the numbers alone. */
typedef struct qn_histogram {
    /* INT32_MIN: nothing was counted */
    int32_t exponent;
    /* QN_HISTOGRAM_BINS each; NULL: no number of that sign */
    uint64_t *side[2];
} qn_histogram;

typedef struct qn_range {
    float min, max;
} qn_range;

/* ---- What is known of one value -------------------------------------------------------------- */

typedef struct qn_stats_entry {
    /* Of the value */
    const char *name;
    /* Runs in which it had at least one element */
    uint64_t samples;
    uint64_t count, zeros;
    /* Of all elements; +inf, -inf before the first */
    float min, max;
    qn_sum128 sum;
    /* Of the samples' own extremes */
    qn_sum128 sum_min, sum_max;
    qn_histogram histogram;
    /* Along dimension `axis`, whose size is `channels`: each has seen count / channels elements.
     * channels 0: no axis, none seen yet; -1: the size changes from sample to sample, or is beyond
     * QN_STATS_CHANNELS_MAX, and nothing is kept. */
    /* -1: none */
    int32_t axis;
    int64_t channels;
    float *channel_min, *channel_max;
    /* Of the elements, and of their squares */
    qn_sum128 *channel_sum, *channel_square;
} qn_stats_entry;
enum { QN_STATS_CHANNELS_MAX = 16384 };

double qn_entry_mean(const qn_stats_entry *entry);
/* All numbers seen are integers, as far as bins and exact sums can tell. */
bool qn_entry_is_integral(const qn_stats_entry *entry);
double qn_entry_channel_mean(const qn_stats_entry *entry, int64_t channel);
/* Of the squares. */
double qn_entry_channel_power(const qn_stats_entry *entry, int64_t channel);

/* ---- Statistics of a model on data ----------------------------------------------------------- */

struct qn_stats {
    qn_context *ctx;
    /* Names */
    qn_arena arena;
    /* qn_model_fingerprint of the model; zero: not said */
    qn_fingerprint model;
    /* Sum of the samples' fingerprints */
    qn_fingerprint data;
    /* Seen */
    uint64_t samples;
    /* In the order of their names (qn_stats_sort) once done */
    qn_stats_entry **entries;
    size_t n_entries, capacity;
    qn_names by_name;
};

QN_MUST_CHECK qn_status qn_stats_create(qn_stats **out, qn_context *ctx);
/* NULL: it was not observed, or never had an element. `stats` NULL: nothing was. */
const qn_stats_entry *qn_stats_find(const qn_stats *stats, const char *name);
/* The entry of that name, new ones with the axis given. */
QN_MUST_CHECK qn_status qn_stats_entry_get(qn_stats_entry **out, qn_stats *stats, const char *name,
                                           int32_t axis);
/* Entries in the order of their names, as files and reports have them. */
void qn_stats_sort(qn_stats *stats);
/* Adds all of `part`, which must be of the same model. (qn_stats_merge of quench.h joins two
 * files.) */
QN_MUST_CHECK qn_status qn_stats_add(qn_stats *stats, const qn_stats *part);

/* What adding numbers needs: made once, used for any number of entries by one thread. */
typedef struct qn_accumulator qn_accumulator;
QN_MUST_CHECK qn_status qn_accumulator_create(qn_accumulator **out, qn_context *ctx);
void qn_accumulator_free(qn_accumulator *accumulator);
/* Adds one sample of a value in any float type. Empty tensors change nothing. NaN and infinities
 * fail with QN_E_INVALID and the message "tensor 'x' ...", and leave the entry unusable. */
QN_MUST_CHECK qn_status qn_entry_add(qn_stats_entry *entry, qn_accumulator *accumulator,
                                     const qn_observation *seen);
/* The same by several threads, which divide the channels among them: each has a accumulator, and an
 * entry whose histogram it counts into; all else is the first one's. The entries added up are what
 * qn_entry_add makes, bit for bit. */
typedef struct qn_accumulator_group {
    /* [count]; messages go to the first one's context */
    qn_accumulator **at;
    /* [count], of the same name and axis */
    qn_stats_entry **entries;
    int count;
} qn_accumulator_group;
QN_MUST_CHECK qn_status qn_entry_add_shared(const qn_accumulator_group *accumulators,
                                            const qn_observation *seen);
/* The extremes of the sample that was added last. */
qn_range qn_accumulator_extremes(const qn_accumulator *accumulator);

/* ---- Files --------------------------------------------------------------------------------------
 * See stats_file.c for the format. qn_stats_save and qn_stats_load are in quench.h. */

/* From bytes in memory; `name` is for messages. */
QN_MUST_CHECK qn_status qn_stats_read(qn_stats **out, qn_context *ctx, const void *data,
                                      size_t size, const char *name);
/* Fails, saying which of the two differs, where the statistics are not those of this model and
 * (unless NULL) data. */
QN_MUST_CHECK qn_status qn_stats_check(const qn_stats *stats, const qn_fingerprint *model,
                                       const qn_fingerprint *data);

/* ---- Methods: from statistics to a range ----------------------------------------------------- */

typedef struct qn_range_options {
    /* Of the integers: 2 to 16 */
    int bits;
    /* min = -max, 2^bits - 1 levels; else 2^bits levels over both ends */
    bool symmetric;
    /* Of `percentile`: share of the elements inside, 0.5 to 1 */
    double percentile;
} qn_range_options;
#define QN_RANGE_OPTIONS_INIT                                                                      \
    {                                                                                              \
        8, false, 0.99999                                                                          \
    }

typedef struct qn_method qn_method;
struct qn_method {
    const char *name;
    /* One line */
    const char *brief;
    /* Called with at least one element that is not 0. */
    qn_status (*range)(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                       const qn_range_options *options);
};

/* min_max, kl, kl_v2, mse, percentile, mean. */
extern const qn_method *const qn_methods[];
extern const size_t qn_methods_count;
/* Fails, naming those there are, where there is no such method. */
QN_MUST_CHECK qn_status qn_method_find(const qn_method **out, qn_context *ctx, const char *name);
/* The range by a method; options NULL: the defaults. It always contains 0, and is [0, 0] where
 * nothing but zeros was seen. The same statistics give the same bits. */
QN_MUST_CHECK qn_status qn_stats_range(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                                       const qn_method *method, const qn_range_options *options);

/* ---- Collecting ------------------------------------------------------------------------------ */

/* Where samples come from. Called by several threads at once, each with a slot of its own. */
typedef struct qn_sample_source {
    void *user;
    /* Samples in all */
    int64_t count;
    /* Threads that can be served at once; 0: any number */
    int slots;
    /* The inputs of sample `index`, in the order of the model's; they stay valid until the same
     * slot reads the next one. Messages go to `ctx`. */
    qn_status (*read)(void *user, qn_context *ctx, int slot, int64_t index,
                      const qn_tensor **inputs);
    /* What people call the sample: a file, or "sample 7". */
    void (*name)(void *user, int64_t index, char *out, size_t size);
} qn_sample_source;

/* A sample that alone stretches the ranges of many values. */
typedef struct qn_outlier {
    int64_t sample;
    /* Whose range it makes at least a quarter larger than all others together do */
    int64_t values;
} qn_outlier;
enum { QN_OUTLIERS_MAX = 8, QN_CONVERGENCE_POINTS = 4 };

/* The first `samples` and all of them: how far ranges differ, by the worse of percentile and mean,
 * relative to what they are in the end. */
typedef struct qn_convergence_point {
    int64_t samples;
    /* Of all values */
    double median, worst;
} qn_convergence_point;

/* What was seen on the way. It goes by the numbers of the samples, and stands in no file. */
typedef struct qn_convergence {
    int64_t samples, values;
    /* At 1/8, 1/4, 1/2 and 3/4 of the samples, those that are different */
    qn_convergence_point points[QN_CONVERGENCE_POINTS];
    size_t n_points;
    /* The first stage from which on the median is below 1 %; 0: not yet */
    int64_t converged;
    /* The worst first */
    qn_outlier outliers[QN_OUTLIERS_MAX];
    size_t n_outliers;
} qn_convergence;

/* The dimension of a value that counts channels; -1: none. */
typedef int32_t qn_axis_fn(const void *user, const qn_value *value);

struct qn_text;
struct qn_byte_reader;
typedef struct qn_collect_options {
    /* 0: the context's */
    int threads;
    /* Statistics of the first after[i] samples too, ascending */
    const int64_t *after;
    size_t n_after;
    /* What the statistics say they are of */
    qn_fingerprint model;
    /* File that a killed run continues from; NULL: none */
    const char *checkpoint;
    /* 0: every 10 */
    double checkpoint_seconds;
    /* NULL: 1, or the last of three dimensions; none of one */
    qn_axis_fn *axis;
    const void *axis_user;
    /* Sees the outputs of every sample, on the thread that ran it; or NULL. Messages go to
     * `ctx`. */
    qn_status (*on_sample)(void *user, qn_context *ctx, int64_t sample, const qn_session *session);
    void *on_sample_user;
    /* What `took` made of the samples up to now, in the checkpoint beside the statistics, while no
     * sample runs; both or neither. `in` NULL: the file was no good, and what was read is to be
     * forgotten. */
    void (*save_state)(void *user, struct qn_text *out);
    qn_status (*load_state)(void *user, qn_context *ctx, struct qn_byte_reader *in);
} qn_collect_options;

/* Runs all samples through sessions of `plan` and collects what its observed values are. out[i] has
 * the statistics after the first options->after[i] samples; the last, out[n_after], those of all;
 * the caller frees them. `convergence` may be NULL. When cancelled a checkpoint is left; when done
 * the caller removes it (after having saved what came out). */
QN_MUST_CHECK qn_status qn_collect(qn_stats **out, qn_convergence *convergence, qn_plan *plan,
                                   qn_context *ctx, const qn_sample_source *source,
                                   const qn_collect_options *options);

#endif
