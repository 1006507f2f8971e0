/* Calibration: statistics of the values that a network computes on given data, and the ranges that
 * follow from them.
 *
 *   samples ─ sessions of one plan, in parallel ─► qn_stats ─ method ─► range of a value
 *
 * Statistics consist of minima, maxima, counts and integer sums only, so that adding samples
 * commutes: the same data gives the same bytes in any order, with any number of threads, in one
 * piece or merged from parts. Runs must not depend on these either: plans for calibration have one
 * thread and are made with qn_plan_config.direct. */
#ifndef QN_CALIB_H
#define QN_CALIB_H

#include "base/fingerprint.h"
#include "run/session.h"

/* ---- Sums that do not depend on the order ---------------------------------------------------- */

/* A 128-bit two's complement number in units of 2^-56. */
typedef struct qn_sum128 {
    uint64_t low;
    int64_t high;
} qn_sum128;

/* Adds x, which saturates at 2^55 in magnitude and is truncated to the unit. NaN counts as 0. */
void qn_sum128_add(qn_sum128 *sum, double x);
void qn_sum128_merge(qn_sum128 *sum, qn_sum128 other);
double qn_sum128_value(qn_sum128 sum);

/* ---- Histogram ------------------------------------------------------------------------------- */

enum { QN_HISTOGRAM_BINS = 4096, QN_HISTOGRAM_EXPONENT_MIN = -126 };

/* Counts of elements in bins of width 2^exponent for each sign: bin i of side 0 counts x > 0 with
 *   i <= x / 2^exponent < i + 1
 * and bin i of side 1 counts x < 0 by -x. Zeros are not counted. The exponent is the least, from
 * QN_HISTOGRAM_EXPONENT_MIN on, for which the largest |x| has a bin, so that the larger side uses
 * at least QN_HISTOGRAM_BINS / 2 bins. Coarser bins are pairs of finer ones, and the result depends
 * on the elements alone. */
typedef struct qn_histogram {
    /* The exponent; INT32_MIN: nothing was counted. */
    int32_t exponent;
    /* QN_HISTOGRAM_BINS counts each; NULL: no number has that sign. */
    uint64_t *side[2];
} qn_histogram;

typedef struct qn_range {
    float min, max;
} qn_range;

/* ---- Statistics of one value ----------------------------------------------------------------- */

typedef struct qn_stats_entry {
    /* The name of the value. */
    const char *name;
    /* The number of runs in which the value had at least one element. */
    uint64_t samples;
    uint64_t count, zeros;
    /* The extremes of all elements; +inf and -inf before the first. */
    float min, max;
    qn_sum128 sum;
    /* Sums of the extremes of each sample. */
    qn_sum128 sum_min, sum_max;
    qn_histogram histogram;
    /* Statistics per channel, along dimension `axis` of size `channels`: each channel has seen
     * count / channels elements. channels 0: there is no axis, or no sample yet; -1: the size
     * changes from sample to sample or exceeds QN_STATS_CHANNELS_MAX, and nothing is kept. */
    /* The dimension that counts channels; -1: none. */
    int32_t axis;
    int64_t channels;
    float *channel_min, *channel_max;
    /* Sums of the elements of a channel, and of their squares. */
    qn_sum128 *channel_sum, *channel_square;
} qn_stats_entry;
enum { QN_STATS_CHANNELS_MAX = 16384 };

double qn_entry_mean(const qn_stats_entry *entry);
/* Whether all elements were integers, as far as bins and exact sums can show. */
bool qn_entry_is_integral(const qn_stats_entry *entry);
double qn_entry_channel_mean(const qn_stats_entry *entry, int64_t channel);
/* The mean of the squares. */
double qn_entry_channel_power(const qn_stats_entry *entry, int64_t channel);

/* ---- Statistics of a model on data ----------------------------------------------------------- */

struct qn_stats {
    qn_context *ctx;
    /* The memory of names. */
    qn_arena arena;
    /* The qn_model_fingerprint of the model; zero: unknown. */
    qn_fingerprint model;
    /* The sum of the samples' fingerprints. */
    qn_fingerprint data;
    /* The number of samples. */
    uint64_t samples;
    /* The entries; sorted by name (qn_stats_sort) once collecting is done. */
    qn_stats_entry **entries;
    size_t n_entries, capacity;
    qn_names by_name;
};

QN_MUST_CHECK qn_status qn_stats_create(qn_stats **out, qn_context *ctx);
/* The entry of a value; NULL: it was not observed or never had an element, or `stats` is NULL. */
const qn_stats_entry *qn_stats_find(const qn_stats *stats, const char *name);
/* Finds or creates the entry of that name; a new one gets the axis. */
QN_MUST_CHECK qn_status qn_stats_entry_get(qn_stats_entry **out, qn_stats *stats, const char *name,
                                           int32_t axis);
/* Sorts the entries by name, as files and reports have them. */
void qn_stats_sort(qn_stats *stats);
/* Adds the statistics of `part`, which must be of the same model. (qn_stats_merge of quench.h joins
 * two files.) */
QN_MUST_CHECK qn_status qn_stats_add(qn_stats *stats, const qn_stats *part);

/* The scratch memory for adding samples; one thread uses it for any number of entries. */
typedef struct qn_accumulator qn_accumulator;
QN_MUST_CHECK qn_status qn_accumulator_create(qn_accumulator **out, qn_context *ctx);
void qn_accumulator_free(qn_accumulator *accumulator);
/* Adds one sample of a value of any float type. An empty tensor changes nothing. NaN and infinities
 * fail with QN_E_INVALID and the message "tensor 'x' ...", and leave the entry unusable. */
QN_MUST_CHECK qn_status qn_entry_add(qn_stats_entry *entry, qn_accumulator *accumulator,
                                     const qn_observation *seen);
/* Several threads that add one sample together. They divide the channels among them; each has an
 * accumulator and an entry whose histogram it counts into, and everything else goes to the first
 * entry. The sum of the entries is what qn_entry_add makes, bit for bit. */
typedef struct qn_accumulator_group {
    /* [count]; messages go to the first one's context. */
    qn_accumulator **at;
    /* [count], all of the same name and axis. */
    qn_stats_entry **entries;
    int count;
} qn_accumulator_group;
QN_MUST_CHECK qn_status qn_entry_add_shared(const qn_accumulator_group *accumulators,
                                            const qn_observation *seen);
/* The extremes of the sample that was added last. */
qn_range qn_accumulator_extremes(const qn_accumulator *accumulator);

/* ---- Files --------------------------------------------------------------------------------------
 * See stats_file.c for the format. qn_stats_save and qn_stats_load are in quench.h. */

/* Reads statistics from bytes in memory; `name` is for messages. */
QN_MUST_CHECK qn_status qn_stats_read(qn_stats **out, qn_context *ctx, const void *data,
                                      size_t size, const char *name);
/* Fails where the statistics are not those of this model and (unless NULL) this data; the message
 * says which of the two differs. */
QN_MUST_CHECK qn_status qn_stats_check(const qn_stats *stats, const qn_fingerprint *model,
                                       const qn_fingerprint *data);

/* ---- Methods: from statistics to a range ----------------------------------------------------- */

typedef struct qn_range_options {
    /* The width of the integers, 2 to 16. */
    int bits;
    /* Symmetric: min = -max with 2^bits - 1 levels; else 2^bits levels from min to max. */
    bool symmetric;
    /* For method `percentile`: the share of elements inside the range, 0.5 to 1. */
    double percentile;
} qn_range_options;
#define QN_RANGE_OPTIONS_INIT                                                                      \
    {                                                                                              \
        8, false, 0.99999                                                                          \
    }

typedef struct qn_method qn_method;
struct qn_method {
    const char *name;
    /* One line for help and docs. */
    const char *brief;
    /* Chooses the range. It is called only where at least one element is not 0. */
    qn_status (*range)(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                       const qn_range_options *options);
};

/* The methods: min_max, kl, kl_v2, mse, percentile, mean. */
extern const qn_method *const qn_methods[];
extern const size_t qn_methods_count;
/* Finds a method by name. Fails, listing the names, where there is no such method. */
QN_MUST_CHECK qn_status qn_method_find(const qn_method **out, qn_context *ctx, const char *name);
/* Chooses the range by a method; options NULL: the defaults. The range always contains 0, and is
 * [0, 0] where only zeros were seen. The same statistics give the same bits. */
QN_MUST_CHECK qn_status qn_stats_range(qn_range *out, qn_context *ctx, const qn_stats_entry *entry,
                                       const qn_method *method, const qn_range_options *options);

/* ---- Collecting ------------------------------------------------------------------------------ */

/* A source of samples. Several threads call it at once, each with a slot of its own. */
typedef struct qn_sample_source {
    void *user;
    /* The number of samples. */
    int64_t count;
    /* The number of threads that can read at once; 0: any number. */
    int slots;
    /* Gives the inputs of sample `index`, in the order of the model's; they stay valid until the
     * same slot reads the next one. Messages go to `ctx`. */
    qn_status (*read)(void *user, qn_context *ctx, int slot, int64_t index,
                      const qn_tensor **inputs);
    /* Writes a name of the sample for messages: a file, or "sample 7". */
    void (*name)(void *user, int64_t index, char *out, size_t size);
} qn_sample_source;

/* A sample that alone enlarges the ranges of many values. */
typedef struct qn_outlier {
    int64_t sample;
    /* The number of values whose range it makes at least a quarter larger than all other samples
     * together do. */
    int64_t values;
} qn_outlier;
enum { QN_OUTLIERS_MAX = 8, QN_CONVERGENCE_POINTS = 4 };

/* How far the ranges after the first `samples` samples differ from the final ones, relative to
 * these; the worse of the methods percentile and mean counts. */
typedef struct qn_convergence_point {
    int64_t samples;
    /* The median and the largest difference over all values. */
    double median, worst;
} qn_convergence_point;

/* How ranges converged while samples came in, and which samples are outliers. It depends on the
 * order of the samples and is not part of statistics files. */
typedef struct qn_convergence {
    int64_t samples, values;
    /* Differences at 1/8, 1/4, 1/2 and 3/4 of the samples, as far as these are different
     * numbers. */
    qn_convergence_point points[QN_CONVERGENCE_POINTS];
    size_t n_points;
    /* The samples of the first point from which on the median stays below 1 %; 0: there is none. */
    int64_t converged;
    /* The outliers, the worst first. */
    qn_outlier outliers[QN_OUTLIERS_MAX];
    size_t n_outliers;
} qn_convergence;

/* Gives the dimension of a value that counts channels; -1: none. */
typedef int32_t qn_axis_fn(const void *user, const qn_value *value);

struct qn_text;
struct qn_byte_reader;
struct qn_ranks;
typedef struct qn_collect_options {
    /* The number of threads; 0: the context's. */
    int threads;
    /* Ascending counts: statistics of the first after[i] samples are wanted too. */
    const int64_t *after;
    size_t n_after;
    /* The fingerprint of the model, which the statistics record. */
    qn_fingerprint model;
    /* The file that a killed run continues from; NULL: none. */
    const char *checkpoint;
    /* Seconds between checkpoints; 0: 10. */
    double checkpoint_seconds;
    /* The axis of channels; NULL: 1, or the last of three dimensions, and none of one. */
    qn_axis_fn *axis;
    const void *axis_user;
    /* What ends the message about a value that has NaN or infinite elements: a remedy, or NULL.
     * NULL: no message has one. Called on any thread. */
    const char *(*remedy)(const qn_value *value);
    /* Sees the outputs of every sample, on the thread that ran it; may be NULL. Messages go to
     * `ctx`. */
    qn_status (*on_sample)(void *user, qn_context *ctx, int64_t sample, const qn_session *session);
    void *on_sample_user;
    /* Save and load what on_sample made of the samples so far, as part of the checkpoint, while no
     * sample runs; both or neither. `in` NULL: the checkpoint was unusable, and what was loaded
     * must be forgotten. */
    void (*save_state)(void *user, struct qn_text *out);
    qn_status (*load_state)(void *user, qn_context *ctx, struct qn_byte_reader *in);
    /* The processes that share the samples, each with this call; NULL: this one runs all. `after`,
     * on_sample and states are for one process only. */
    struct qn_ranks *ranks;
} qn_collect_options;

/* Runs all samples through sessions of `plan` and collects statistics of its observed values. All
 * ranks get the same statistics; of convergence only rank 0 knows. out[i] has the statistics after
 * the first options->after[i] samples, and out[n_after] those of all; the caller frees them.
 * `convergence` may be NULL. When cancelled the checkpoint stays; when done the caller removes it,
 * after it has saved the results. */
QN_MUST_CHECK qn_status qn_collect(qn_stats **out, qn_convergence *convergence, qn_plan *plan,
                                   qn_context *ctx, const qn_sample_source *source,
                                   const qn_collect_options *options);

#endif
