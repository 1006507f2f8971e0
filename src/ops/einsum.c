/* Einsum: sums of products over named dimensions. */
#include <ctype.h>
#include <string.h>

#include "ops/elementwise.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"

static const qn_attr_spec einsum_specs[] = {
    QN_STRING_ATTR(qn_einsum_attrs, equation, NULL, .required = true)};

static const qn_port einsum_in[] = {{"Inputs", 'T', QN_SET_NUMBER, QN_VARIADIC}};
static const qn_port einsum_out[] = {{"Output", 'T', QN_SET_NUMBER, 0}};

/* ---- The equation -------------------------------------------------------------------------------
 * A label is a letter, or one dimension of the ellipsis: these are numbered from the last, since
 * they broadcast aligned at the end. */

enum { ELLIPSIS = 128, LABELS = ELLIPSIS + QN_MAX_RANK };
typedef struct term {
    int32_t rank;
    uint8_t label[QN_MAX_RANK];
} term;

/* Reads one term of the equation up to ',', "->" or the end; an ellipsis stands for `spread`
 * dims. */
static const char *read_term(term *out, const char *at, int32_t spread)
{
    out->rank = 0;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ')
            continue;
        int32_t count = isalpha((unsigned char)*at) ? 1 : 0;
        if (strncmp(at, "...", 3) == 0)
            count = spread;
        else if (!count)
            return NULL;
        if (out->rank + count > QN_MAX_RANK)
            return NULL;
        const bool dots = *at == '.';
        for (int32_t d = 0; d < count; d++)
            out->label[out->rank++] = (uint8_t)(dots ? ELLIPSIS + count - 1 - d : *at);
        at += dots ? 2 : 0;
    }
    return at;
}

/* Letters and ellipses of the term that `at` begins; -1 when malformed. */
static int32_t letters_of(const char *at, bool *dots)
{
    int32_t letters = 0;
    *dots = false;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (isalpha((unsigned char)*at)) {
            letters++;
        } else if (*at == '.') {
            if (*dots || strncmp(at, "...", 3) != 0)
                return -1;
            *dots = true;
            at += 2;
        } else if (*at != ' ') {
            return -1;
        }
    }
    return letters;
}

/* What is known of each label, and where it stands first. */
typedef struct table {
    bool seen[LABELS];
    int uses[LABELS];
    qn_dim size[LABELS];
    /* Dims of the widest ellipsis */
    int32_t spread;
} table;

static qn_status read_input(const qn_infer *self, table *t, const char **at, int32_t i)
{
    bool dots;
    const int32_t letters = letters_of(*at, &dots), rank = self->in[i]->rank;
    term in;
    if (letters < 0 || (dots ? rank < letters : rank != letters))
        return qn_infer_fail(self, "term %d of the equation does not describe %d dimensions", i,
                             rank);
    *at = read_term(&in, *at, rank - letters);
    if (!*at || in.rank != rank)
        return qn_infer_fail(self, "term %d of the equation is malformed", i);
    t->spread = QN_MAX(t->spread, dots ? rank - letters : 0);
    for (int32_t d = 0; d < rank; d++) {
        const uint8_t label = in.label[d];
        const qn_dim dim = self->in[i]->dims[d];
        if (!t->seen[label])
            t->size[label] = dim;
        else if (!qn_dim_broadcast(&t->size[label], t->size[label], dim))
            return qn_infer_fail(self, "dimension %d of input %d is %lld, elsewhere it is %lld", d,
                                 i, (long long)dim.value, (long long)t->size[label].value);
        t->seen[label] = true;
        t->uses[label]++;
    }
    return QN_OK;
}

/* *at: behind the last of the inputs' terms. */
static qn_status read_inputs(const qn_infer *self, table *t, const char **at)
{
    *at = ((const qn_einsum_attrs *)self->attrs)->equation;
    if (!*at)
        return qn_infer_fail(self, "there is no equation");
    for (int32_t i = 0; i < self->n_in; i++) {
        if (i && *(*at)++ != ',')
            return qn_infer_fail(self, "the equation has fewer terms than the node has inputs");
        QN_TRY(read_input(self, t, at, i));
    }
    return QN_OK;
}

/* Without "->": the ellipsis, then every letter that stands once, in order. */
static void implicit_output(term *out, const table *t)
{
    out->rank = 0;
    for (int32_t d = t->spread - 1; d >= 0; d--)
        out->label[out->rank++] = (uint8_t)(ELLIPSIS + d);
    for (int c = 0; c < ELLIPSIS && out->rank < QN_MAX_RANK; c++) {
        if (t->uses[c] == 1)
            out->label[out->rank++] = (uint8_t)c;
    }
}

static qn_status read_output(const qn_infer *self, term *out, const table *t, const char *at)
{
    bool used[LABELS] = {false};
    if (!*at) {
        implicit_output(out, t);
        return QN_OK;
    }
    bool dots;
    at = strncmp(at, "->", 2) == 0 && letters_of(at + 2, &dots) >= 0
             ? read_term(out, at + 2, t->spread)
             : NULL;
    if (!at || *at)
        return qn_infer_fail(self, "the result of the equation is malformed");
    for (int32_t d = 0; d < out->rank; d++) {
        const uint8_t label = out->label[d];
        if (used[label] || !t->seen[label])
            return qn_infer_fail(self, "dimension %d of the result stands %s", d,
                                 used[label] ? "there twice" : "in no input");
        used[label] = true;
    }
    return QN_OK;
}

static qn_status einsum_infer(qn_infer *self)
{
    const char *at;
    table t = {.spread = 0};
    term out = {.rank = 0};
    qn_dim dims[QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, self->in[0]->dtype);
    for (int32_t i = 0; i < self->n_in; i++) {
        if (!qn_infer_has(self, i))
            return qn_infer_fail(self, "input %d is missing", i);
        if (self->in[i]->rank < 0)
            return QN_OK;
    }
    QN_TRY(read_inputs(self, &t, &at));
    QN_TRY(read_output(self, &out, &t, at));
    for (int32_t d = 0; d < out.rank; d++)
        dims[d] = t.size[out.label[d]];
    qn_infer_set(self, 0, self->in[0]->dtype, out.rank, dims);
    return QN_OK;
}

/* One for every factor behind the first, at every place of the space that all labels span. */
static int64_t einsum_macs(const qn_infer *self)
{
    const char *at;
    table t = {.spread = 0};
    int64_t macs = self->n_in - 1;
    for (int32_t i = 0; i < self->n_in; i++) {
        if (!qn_infer_has(self, i) || self->in[i]->rank < 0)
            return 0;
    }
    if (read_inputs(self, &t, &at) != QN_OK)
        return 0;
    for (int32_t l = 0; l < LABELS; l++) {
        if (t.seen[l] && !qn_mul_int64(&macs, macs, t.size[l].value))
            return 0;
    }
    return macs;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

/* All labels, those of the output first; an input's stride is 0 along labels that it has not, or
 * has as 1. */
typedef struct space {
    int32_t rank, out_rank;
    int64_t size[LABELS];
    /* [inputs, LABELS] */
    int64_t *strides;
} space;

static int32_t find_label(uint8_t *labels, space *s, uint8_t label)
{
    for (int32_t i = 0; i < s->rank; i++) {
        if (labels[i] == label)
            return i;
    }
    labels[s->rank] = label;
    s->size[s->rank] = 1;
    return s->rank++;
}

static void add_input(space *s, uint8_t *labels, const term *in, const qn_tensor *x, int64_t *row)
{
    int64_t strides[QN_MAX_RANK];
    qn_dims_strides(strides, x->rank, x->dims);
    for (int32_t d = 0; d < x->rank; d++) {
        const int32_t at = find_label(labels, s, in->label[d]);
        if (x->dims[d] != 1)
            s->size[at] = x->dims[d];
        row[at] += x->dims[d] == 1 ? 0 : strides[d];
    }
}

/* The equation once more, now that inference has accepted it. */
static qn_status space_make(space *s, qn_eval *self)
{
    const char *at = ((const qn_einsum_attrs *)self->attrs)->equation, *terms = at;
    uint8_t labels[LABELS];
    table t = {.spread = 0};
    term in, out = {.rank = 0};
    bool dots;
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, self->n_in, LABELS * sizeof(int64_t)));
    memset(block, 0, (size_t)self->n_in * LABELS * sizeof(int64_t));
    s->strides = block;
    for (int32_t i = 0; i < self->n_in; i++) {
        at += i ? 1 : 0;
        const int32_t spread = self->in[i]->rank - letters_of(at, &dots);
        at = read_term(&in, at, spread);
        t.spread = QN_MAX(t.spread, spread);
        for (int32_t d = 0; d < in.rank; d++)
            t.uses[in.label[d]]++;
    }
    if (*at)
        read_term(&out, at + 2, t.spread);
    else
        implicit_output(&out, &t);
    for (int32_t d = 0; d < out.rank; d++)
        find_label(labels, s, out.label[d]);
    s->out_rank = s->rank;
    for (int32_t i = 0; i < self->n_in; i++) {
        terms += i ? 1 : 0;
        const int32_t spread = self->in[i]->rank - letters_of(terms, &dots);
        terms = read_term(&in, terms, spread);
        add_input(s, labels, &in, self->in[i], s->strides + (ptrdiff_t)i * LABELS);
    }
    return QN_OK;
}

/* One step through labels [first, rank): index[] and the offset of each input. False at the end. */
static bool next(const space *s, int32_t first, int64_t *index, int64_t *offsets, int32_t n_in)
{
    for (int32_t l = s->rank - 1; l >= first; l--) {
        const bool carry = ++index[l] == s->size[l];
        const int64_t step = carry ? -(s->size[l] - 1) : 1;
        for (int32_t i = 0; i < n_in; i++)
            offsets[i] += step * s->strides[(ptrdiff_t)i * LABELS + l];
        if (!carry)
            return true;
        index[l] = 0;
    }
    return false;
}

/* The sum of the products over all labels that are not the output's. */
static double sum_f64(const qn_eval *self, const space *s, int64_t *index, int64_t *offsets)
{
    double sum = 0;
    do {
        double product = 1;
        for (int32_t i = 0; i < self->n_in; i++)
            product *= qn_tensor_f64(self->in[i], offsets[i]);
        sum += product;
    } while (next(s, s->out_rank, index, offsets, self->n_in));
    return sum;
}

static int64_t sum_i64(const qn_eval *self, const space *s, int64_t *index, int64_t *offsets)
{
    uint64_t sum = 0;
    do {
        uint64_t product = 1;
        for (int32_t i = 0; i < self->n_in; i++)
            product *= (uint64_t)qn_tensor_i64(self->in[i], offsets[i]);
        sum += product;
    } while (next(s, s->out_rank, index, offsets, self->n_in));
    return (int64_t)sum;
}

static bool is_empty(const qn_eval *self)
{
    for (int32_t i = 0; i < self->n_in; i++) {
        if (qn_tensor_count(self->in[i]) == 0)
            return true;
    }
    return false;
}

static qn_status einsum_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    const bool is_float = qn_dtype_is_float(out->dtype);
    if (is_empty(self)) {
        memset(out->data, 0, (size_t)count * qn_dtype_size(out->dtype));
        return QN_OK;
    }
    space s = {.rank = 0};
    int64_t index[LABELS] = {0};
    void *offsets;
    QN_TRY(space_make(&s, self));
    QN_TRY(qn_eval_scratch(self, &offsets, self->n_in, sizeof(int64_t)));
    for (int64_t at = 0; at < count; at++) {
        QN_TRY(qn_check_cancel(self->ctx));
        for (int32_t i = 0; i < self->n_in; i++)
            ((int64_t *)offsets)[i] =
                qn_offset_of(at, s.out_rank, s.size, s.strides + (ptrdiff_t)i * LABELS);
        if (is_float) {
            const double y = sum_f64(self, &s, index, offsets);
            qn_store_f64(out->data, out->dtype, at, &y, 1);
        } else {
            const int64_t y = sum_i64(self, &s, index, offsets);
            qn_store_i64(out->data, out->dtype, at, &y, 1);
        }
    }
    return QN_OK;
}

const qn_op qn_op_Einsum = {.name = "Einsum",
                            .domain = "",
                            .since = 12,
                            QN_PORTS(in, einsum_in),
                            QN_PORTS(out, einsum_out),
                            QN_ATTRS(einsum_specs, qn_einsum_attrs),
                            QN_TYPE_RULES(qn_bfloat16_28),
                            .quant = QN_QUANT_FLOAT,
                            .infer = einsum_infer,
                            .macs = einsum_macs,
                            .eval = einsum_eval,
                            .brief = "sums of products over named dimensions"};
