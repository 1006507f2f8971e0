/* TfIdfVectorizer: how often known n-grams occur. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

enum { MODE_TF, MODE_IDF, MODE_TFIDF };
static const char *const mode_words[] = {"TF", "IDF", "TFIDF", NULL};

typedef struct tfidf_attrs {
    int64_t max_gram_length, max_skip_count, min_gram_length, mode;
    qn_ints ngram_counts, ngram_indexes, pool_int64s;
    qn_strings pool_strings;
    qn_floats weights;
} tfidf_attrs;
static const qn_attr_spec tfidf_specs[] = {
    QN_INT_ATTR(tfidf_attrs, max_gram_length, 1, .required = true),
    QN_INT_ATTR(tfidf_attrs, max_skip_count, 0, .required = true),
    QN_INT_ATTR(tfidf_attrs, min_gram_length, 1, .required = true),
    QN_ENUM_ATTR(tfidf_attrs, mode, MODE_TF, mode_words, .required = true),
    QN_ATTR(tfidf_attrs, ngram_counts, INTS, .required = true),
    QN_ATTR(tfidf_attrs, ngram_indexes, INTS, .required = true),
    QN_ATTR(tfidf_attrs, pool_int64s, INTS),
    QN_ATTR(tfidf_attrs, pool_strings, STRINGS),
    QN_ATTR(tfidf_attrs, weights, FLOATS)};
static const qn_port tfidf_in[] = {{"X", 0, QN_SET_INDEX | QN_SET_STRING, 0}};
static const qn_port tfidf_out[] = {{"Y", 0, QN_SET(QN_FLOAT32), 0}};

static size_t pool_size(const tfidf_attrs *a)
{
    return a->pool_strings.at ? a->pool_strings.count : a->pool_int64s.count;
}

/* The part [first, end) of the pool that holds the grams of length n; false when the counts lie. */
static bool pool_range(const tfidf_attrs *a, int64_t n, int64_t *first, int64_t *end)
{
    const int64_t size = (int64_t)pool_size(a), lengths = (int64_t)a->ngram_counts.count;
    *first = *end = size;
    if (n < 1 || n > lengths)
        return n >= 1;
    *first = a->ngram_counts.at[n - 1];
    *end = n < lengths ? a->ngram_counts.at[n] : size;
    return *first >= 0 && *first <= *end && *end <= size && (*end - *first) % n == 0;
}

static qn_status tfidf_infer(qn_infer *self)
{
    const tfidf_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    int64_t columns = 0, grams = 0, first, end;
    if (a->min_gram_length < 1 || a->max_gram_length < a->min_gram_length || a->max_skip_count < 0)
        return qn_infer_fail(self, "gram lengths or skip count make no sense");
    for (int64_t n = 1; n <= (int64_t)a->ngram_counts.count; n++) {
        if (!pool_range(a, n, &first, &end))
            return qn_infer_fail(self, "ngram_counts do not fit the pool");
        grams += (end - first) / n;
    }
    if (grams != (int64_t)a->ngram_indexes.count ||
        (a->weights.at && a->weights.count != a->ngram_indexes.count))
        return qn_infer_fail(self, "ngram_indexes or weights do not fit the pool");
    for (size_t i = 0; i < a->ngram_indexes.count; i++) {
        if (a->ngram_indexes.at[i] < 0 || a->ngram_indexes.at[i] > INT32_MAX)
            return qn_infer_fail(self, "index %lld makes no sense",
                                 (long long)a->ngram_indexes.at[i]);
        columns = QN_MAX(columns, a->ngram_indexes.at[i] + 1);
    }
    if (in->rank > 2)
        return qn_infer_fail(self, "the input has more than two dimensions");
    const qn_dim dims[2] = {in->rank == 2 ? in->dims[0] : qn_dim_unknown(), qn_dim_of(columns)};
    qn_infer_set_dtype(self, 0, QN_FLOAT32);
    if (in->rank >= 0)
        qn_infer_set(self, 0, QN_FLOAT32, in->rank == 2 ? 2 : 1, in->rank == 2 ? dims : dims + 1);
    return QN_OK;
}

static bool item_equal(const tfidf_attrs *a, int64_t pool, const qn_tensor *in, int64_t i)
{
    if (in->dtype == QN_STRING) {
        const qn_string *x = &a->pool_strings.at[pool], *y = (const qn_string *)in->data + i;
        return x->length == y->length && memcmp(x->text, y->text, x->length) == 0;
    }
    return a->pool_int64s.at[pool] == qn_tensor_i64(in, i);
}

/* Counts the grams of length n whose items stand `step` apart in items [start, start + length). */
static void count_grams(float *counts, const qn_eval *self, int64_t start, int64_t length,
                        const int64_t *gram)
{
    const tfidf_attrs *a = self->attrs;
    const int64_t n = gram[0], step = gram[1], known_before = gram[2];
    int64_t first, end;
    pool_range(a, n, &first, &end);
    for (int64_t at = 0; at + (n - 1) * step < length; at++) {
        for (int64_t g = first; g < end; g += n) {
            int64_t k = 0;
            while (k < n && item_equal(a, g + k, self->in[0], start + at + k * step))
                k++;
            if (k == n)
                counts[a->ngram_indexes.at[known_before + (g - first) / n]]++;
        }
    }
}

static void weigh(float *counts, const tfidf_attrs *a)
{
    for (size_t i = 0; i < a->ngram_indexes.count; i++) {
        float *y = &counts[a->ngram_indexes.at[i]];
        const float weight = a->weights.at ? a->weights.at[i] : 1;
        if (a->mode == MODE_IDF)
            *y = *y > 0 ? weight : 0;
        else if (a->mode == MODE_TFIDF)
            *y *= weight;
    }
}

static qn_status tfidf_eval(qn_eval *self)
{
    const tfidf_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const bool strings = in->dtype == QN_STRING;
    const int64_t rows = in->rank == 2 ? in->dims[0] : 1;
    const int64_t length = in->rank == 0 ? 1 : in->dims[in->rank - 1];
    const int64_t columns = out->dims[out->rank - 1];
    if (strings ? !a->pool_strings.at : !a->pool_int64s.at || a->pool_strings.at)
        return qn_eval_fail(self, "the pool is of another type than the input");
    memset(out->data, 0, (size_t)(rows * columns) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        float *counts = (float *)out->data + r * columns;
        int64_t before = 0, first, end;
        for (int64_t n = 1; n <= QN_MIN(a->max_gram_length, (int64_t)a->ngram_counts.count); n++) {
            const int64_t skips = n == 1 ? 0 : QN_MIN(a->max_skip_count, length);
            for (int64_t skip = 0; n >= a->min_gram_length && skip <= skips; skip++) {
                const int64_t gram[3] = {n, skip + 1, before};
                count_grams(counts, self, r * length, length, gram);
            }
            pool_range(a, n, &first, &end);
            before += (end - first) / n;
        }
        weigh(counts, a);
    }
    return QN_OK;
}

const qn_op qn_op_TfIdfVectorizer = {.name = "TfIdfVectorizer",
                                     .domain = "",
                                     .since = 9,
                                     QN_PORTS(in, tfidf_in),
                                     QN_PORTS(out, tfidf_out),
                                     QN_ATTRS(tfidf_specs, tfidf_attrs),
                                     .quant = QN_QUANT_FLOAT,
                                     .infer = tfidf_infer,
                                     .eval = tfidf_eval,
                                     .brief = "counts of known n-grams"};
