/* Bernoulli, Dropout, Multinomial, RandomNormal, RandomUniform and the Like forms of these. A node
 * without a seed gets one from its name: runs repeat, nodes differ. */
#include <float.h>
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/random.h"
#include "ops/versions.h"

static const qn_port float_out[] = {{"output", '\0', QN_SET_FLOAT, 0}};

#define NO_SEED (-FLT_MAX)

static uint32_t name_seed(const qn_node *node)
{
    uint32_t hash = UINT32_C(2166136261);
    for (const char *c = node->name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * UINT32_C(16777619);
    return hash;
}

static void start(qn_random *random, const qn_eval *self, float seed)
{
    double wide = (double)seed;
    int64_t number;
    qn_load_i64(&number, QN_FLOAT64, &wide, 0, 1);
    qn_random_seed(random, seed == NO_SEED ? name_seed(self->node) : (uint32_t)number);
}

/* ---- RandomNormal, RandomUniform ------------------------------------------------------------- */

typedef struct random_attrs {
    int64_t dtype;
    float seed;
    /* Normal */
    float mean, scale;
    /* Uniform */
    float low, high;
    qn_ints shape;
} random_attrs;

#define NORMAL_SPECS                                                                               \
    QN_FLOAT_ATTR(random_attrs, mean, 0), QN_FLOAT_ATTR(random_attrs, scale, 1),                   \
        QN_FLOAT_ATTR(random_attrs, seed, NO_SEED)
#define UNIFORM_SPECS                                                                              \
    QN_FLOAT_ATTR(random_attrs, low, 0), QN_FLOAT_ATTR(random_attrs, high, 1),                     \
        QN_FLOAT_ATTR(random_attrs, seed, NO_SEED)
#define SHAPE_SPECS                                                                                \
    QN_INT_ATTR(random_attrs, dtype, QN_FLOAT32),                                                  \
        QN_ATTR(random_attrs, shape, INTS, .required = true)
static const qn_attr_spec RandomNormal_specs[] = {NORMAL_SPECS, SHAPE_SPECS};
static const qn_attr_spec RandomUniform_specs[] = {UNIFORM_SPECS, SHAPE_SPECS};
static const qn_attr_spec RandomNormalLike_specs[] = {NORMAL_SPECS,
                                                      QN_INT_ATTR(random_attrs, dtype, QN_ABSENT)};
static const qn_attr_spec RandomUniformLike_specs[] = {UNIFORM_SPECS,
                                                       QN_INT_ATTR(random_attrs, dtype, QN_ABSENT)};

static const qn_port like_in[] = {{"input", '\0', QN_SET_TENSOR, 0}};

/* The element type asked for: the attribute, else `standard`. */
static qn_status pick_dtype(qn_dtype *out, const qn_infer *self, int64_t asked, qn_dtype standard,
                            uint32_t allowed)
{
    const int64_t dtype = asked == QN_ABSENT ? (int64_t)standard : asked;
    *out = QN_UNDEFINED;
    if (dtype < 0 || dtype > 31 || (dtype != QN_UNDEFINED && !(QN_SET(dtype) & allowed)))
        return qn_infer_fail(self, "it cannot make elements of type %lld", (long long)dtype);
    *out = (qn_dtype)dtype;
    return QN_OK;
}

static qn_status random_infer(qn_infer *self)
{
    const random_attrs *a = self->attrs;
    qn_dim dims[QN_MAX_RANK];
    qn_dtype dtype;
    QN_TRY(pick_dtype(&dtype, self, a->dtype, QN_FLOAT32, QN_SET_FLOAT));
    if (a->shape.count > QN_MAX_RANK)
        return qn_infer_fail(self, "shape has %zu dimensions, at most %d are possible",
                             a->shape.count, QN_MAX_RANK);
    for (size_t i = 0; i < a->shape.count; i++) {
        if (a->shape.at[i] < 0)
            return qn_infer_fail(self, "dimension %zu of shape is negative", i);
        dims[i] = qn_dim_of(a->shape.at[i]);
    }
    qn_infer_set(self, 0, dtype, (int32_t)a->shape.count, dims);
    return QN_OK;
}

/* The output is as the input, with elements of the type that is asked for. */
static qn_status infer_like(qn_infer *self, uint32_t allowed)
{
    const random_attrs *a = self->attrs;
    qn_dtype dtype;
    QN_TRY(pick_dtype(&dtype, self, a->dtype, self->in[0]->dtype, allowed));
    qn_infer_copy_dims(self, 0, 0, dtype);
    return QN_OK;
}

static qn_status like_infer(qn_infer *self)
{
    return infer_like(self, QN_SET_FLOAT);
}

/* Element i of the output. */
typedef double draw_fn(qn_random *random, const qn_eval *self, int64_t i);

static qn_status draw_all(const qn_eval *self, draw_fn *draw)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    qn_random random;
    start(&random, self, ((const random_attrs *)self->attrs)->seed);
    for (int64_t i = 0; i < count; i++) {
        const double x = draw(&random, self, i);
        qn_store_f64(out->data, out->dtype, i, &x, 1);
    }
    return QN_OK;
}

static double draw_normal(qn_random *random, const qn_eval *self, int64_t i)
{
    const random_attrs *a = self->attrs;
    (void)i;
    return (double)a->mean + (double)a->scale * qn_random_normal(random);
}

static double draw_uniform(qn_random *random, const qn_eval *self, int64_t i)
{
    const random_attrs *a = self->attrs;
    const double low = (double)a->low, width = (double)a->high - low;
    (void)i;
    return low + width * qn_random_uniform(random);
}

static qn_status normal_eval(qn_eval *self)
{
    return draw_all(self, draw_normal);
}

static qn_status uniform_eval(qn_eval *self)
{
    return draw_all(self, draw_uniform);
}

#define RANDOM(Name, IN, INFER, EVAL, BRIEF)                                                       \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                IN,                                                                \
                                QN_PORTS(out, float_out),                                          \
                                QN_ATTRS(Name##_specs, random_attrs),                              \
                                QN_TYPE_RULES(qn_bfloat16_22),                                     \
                                .flags = QN_OP_RANDOM,                                             \
                                .quant = QN_QUANT_FLOAT,                                           \
                                .infer = INFER,                                                    \
                                .eval = EVAL,                                                      \
                                .brief = BRIEF};

RANDOM(RandomNormal, .n_in = 0, random_infer, normal_eval, "normally distributed numbers")
RANDOM(RandomUniform, .n_in = 0, random_infer, uniform_eval, "evenly distributed numbers")
#define LIKE QN_PORTS(in, like_in)
RANDOM(RandomNormalLike, LIKE, like_infer, normal_eval, "normal numbers in the shape of the input")
RANDOM(RandomUniformLike, LIKE, like_infer, uniform_eval, "even numbers in the shape of the input")

/* ---- Bernoulli ------------------------------------------------------------------------------- */

#define BERNOULLI_SET (QN_SET_NUMBER | QN_SET_BOOL)
static const qn_attr_spec bernoulli_specs[] = {QN_INT_ATTR(random_attrs, dtype, QN_ABSENT),
                                               QN_FLOAT_ATTR(random_attrs, seed, NO_SEED)};
static const qn_port float_in[] = {{"input", '\0', QN_SET_FLOAT, 0}};
static const qn_port bernoulli_out[] = {{"output", '\0', BERNOULLI_SET, 0}};

static qn_status bernoulli_infer(qn_infer *self)
{
    return infer_like(self, BERNOULLI_SET);
}

static double draw_bernoulli(qn_random *random, const qn_eval *self, int64_t i)
{
    return qn_random_uniform(random) < qn_tensor_f64(self->in[0], i);
}

static qn_status bernoulli_eval(qn_eval *self)
{
    return draw_all(self, draw_bernoulli);
}

const qn_op qn_op_Bernoulli = {.name = "Bernoulli",
                               .domain = "",
                               .since = 15,
                               QN_PORTS(in, float_in),
                               QN_PORTS(out, bernoulli_out),
                               QN_ATTRS(bernoulli_specs, random_attrs),
                               QN_TYPE_RULES(qn_bfloat16_22),
                               .flags = QN_OP_RANDOM,
                               .quant = QN_QUANT_FLOAT,
                               .infer = bernoulli_infer,
                               .eval = bernoulli_eval,
                               .brief = "1 with the probability that the element gives, else 0"};

/* ---- Multinomial ----------------------------------------------------------------------------- */

typedef struct multinomial_attrs {
    int64_t dtype, sample_size;
    float seed;
} multinomial_attrs;
static const qn_attr_spec multinomial_specs[] = {QN_INT_ATTR(multinomial_attrs, dtype, QN_INT32),
                                                 QN_INT_ATTR(multinomial_attrs, sample_size, 1),
                                                 QN_FLOAT_ATTR(multinomial_attrs, seed, NO_SEED)};
static const qn_port index_out[] = {{"output", '\0', QN_SET_INDEX, 0}};

static qn_status multinomial_infer(qn_infer *self)
{
    const multinomial_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    qn_dtype dtype;
    QN_TRY(pick_dtype(&dtype, self, a->dtype, QN_INT32, QN_SET_INDEX));
    if (in->rank >= 0 && in->rank != 2)
        return qn_infer_fail(self, "the input has %d dimensions instead of 2", in->rank);
    if (a->sample_size < 1)
        return qn_infer_fail(self, "sample_size must be at least 1");
    if (in->rank == 2 && in->dims[1].value == 0)
        return qn_infer_fail(self, "there is no class to draw");
    const qn_dim dims[2] = {in->rank == 2 ? in->dims[0] : qn_dim_unknown(),
                            qn_dim_of(a->sample_size)};
    qn_infer_set(self, 0, dtype, 2, dims);
    return QN_OK;
}

/* The class where the running sum of e^x first exceeds u times the whole sum. */
static int64_t draw(const double *logits, int64_t classes, double u)
{
    double max = logits[0], sum = 0, at = 0;
    for (int64_t c = 1; c < classes; c++)
        max = fmax(max, logits[c]);
    for (int64_t c = 0; c < classes; c++)
        sum += exp(logits[c] - max);
    for (int64_t c = 0; c < classes; c++) {
        at += exp(logits[c] - max);
        if (at > u * sum)
            return c;
    }
    return classes - 1;
}

static qn_status multinomial_eval(qn_eval *self)
{
    const multinomial_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0], *out = self->out[0];
    double *logits; /* [batch, class] */
    qn_random random;
    QN_TRY(qn_eval_doubles(self, &logits, in));
    start(&random, self, a->seed);
    for (int64_t b = 0; b < in->dims[0]; b++) {
        for (int64_t s = 0; s < a->sample_size; s++) {
            const double u = qn_random_uniform(&random);
            const int64_t drawn = draw(logits + b * in->dims[1], in->dims[1], u);
            qn_store_i64(out->data, out->dtype, b * a->sample_size + s, &drawn, 1);
        }
    }
    return QN_OK;
}

const qn_op qn_op_Multinomial = {.name = "Multinomial",
                                 .domain = "",
                                 .since = 7,
                                 QN_PORTS(in, float_in),
                                 QN_PORTS(out, index_out),
                                 QN_ATTRS(multinomial_specs, multinomial_attrs),
                                 QN_TYPE_RULES(qn_bfloat16_22),
                                 .flags = QN_OP_RANDOM,
                                 .quant = QN_QUANT_SHAPE,
                                 .infer = multinomial_infer,
                                 .eval = multinomial_eval,
                                 .brief = "classes drawn by their unnormalized log-probabilities"};
