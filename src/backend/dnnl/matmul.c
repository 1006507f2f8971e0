/* MatMul and Gemm: A B + bias, the second operand packed where it is constant. */
#include <string.h>

#include "backend/dnnl/dnnl.h"
#include "backend/dnnl/step.h"
#include "ops/matmul.h"
#include "ops/nn_attrs.h"

static const qn_kernel matmul_kernel = QN_DNNL_KERNEL("dnnl matmul");

/* Sizes of Y = alpha A B + bias; dims [batch..., rows, columns] of each. */
typedef struct product {
    int32_t rank;
    int64_t a[QN_PRIM_RANK], b[QN_PRIM_RANK], y[QN_PRIM_RANK];
    /* Columns run slower than rows in memory */
    bool a_swapped, b_swapped;
    float alpha, beta;
    /* One number per column */
    const qn_tensor *bias;
    /* It is no constant, but input 2 of a Gemm: there is its shape only */
    bool bias_changes;
} product;

static void tensor_of(qn_prim_tensor *out, int32_t rank, const int64_t *dims, bool swapped)
{
    *out = (qn_prim_tensor){.rank = rank, .format = QN_PRIM_STEPS};
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims);
    qn_dims_strides(out->steps, rank, dims);
    if (swapped) {
        out->steps[rank - 1] = dims[rank - 2];
        out->steps[rank - 2] = 1;
    }
}

static void spec_of(qn_dnnl_step *s, const product *p)
{
    qn_prim_spec *spec = &s->spec;
    spec->kind = QN_PRIM_MATMUL;
    tensor_of(&spec->src, p->rank, p->a, p->a_swapped);
    tensor_of(&spec->dst, p->rank, p->y, false);
    tensor_of(&s->plain, p->rank, p->b, p->b_swapped);
    /* oneDNN is at its peak with rows as they are, so weights are copied, or turned, and not
     * packed. */
    tensor_of(&spec->weights, p->rank, p->b, p->b_swapped && !s->weights);
    if (p->bias) {
        int64_t dims[QN_PRIM_RANK];
        for (int32_t d = 0; d < p->rank; d++)
            dims[d] = d == p->rank - 1 ? p->y[d] : 1;
        tensor_of(&spec->bias, p->rank, dims, false);
    }
}

/* ---- MatMul ---------------------------------------------------------------------------------- */

/* The batch as oneDNN wants it: one list of dims with 1 where an operand repeats. */
static bool batch_of(product *p, const qn_tensor *a, const qn_tensor *b, const qn_matmul *g)
{
    const int32_t a_batch = QN_MAX(a->rank - 2, 0), b_batch = QN_MAX(b->rank - 2, 0);
    if (g->batch_rank > QN_PRIM_RANK - 2)
        return false;
    p->rank = g->batch_rank + 2;
    for (int32_t d = 0; d < g->batch_rank; d++) {
        const int32_t i = d - (g->batch_rank - a_batch), j = d - (g->batch_rank - b_batch);
        p->a[d] = i >= 0 ? a->dims[i] : 1;
        p->b[d] = j >= 0 ? b->dims[j] : 1;
        p->y[d] = g->batch[d];
    }
    return true;
}

/* Stacked rows of A times one B are one large product. */
static void flatten(product *p)
{
    int64_t stacked = 1;
    for (int32_t d = 0; d < p->rank - 2; d++) {
        if (p->b[d] != 1)
            return;
        stacked *= p->a[d];
    }
    p->a[0] = p->y[0] = stacked * p->a[p->rank - 2];
    p->a[1] = p->a[p->rank - 1];
    p->b[0] = p->b[p->rank - 2];
    p->b[1] = p->b[p->rank - 1];
    p->y[1] = p->y[p->rank - 1];
    p->rank = 2;
}

static bool matmul_product(product *p, const qn_tensor *a, const qn_tensor *b)
{
    qn_matmul g;
    qn_matmul_geometry(&g, a, b);
    *p = (product){.alpha = 1};
    if (!batch_of(p, a, b, &g))
        return false;
    p->a[p->rank - 2] = p->y[p->rank - 2] = g.m;
    p->a[p->rank - 1] = p->b[p->rank - 2] = g.k;
    p->b[p->rank - 1] = p->y[p->rank - 1] = g.n;
    flatten(p);
    return true;
}

/* ---- Bias ------------------------------------------------------------------------------------ */

/* One float for each of `columns`, the same for all rows. */
static bool is_bias(const qn_tensor *c, int64_t columns)
{
    return c && c->dtype == QN_FLOAT32 && c->rank > 0 && qn_tensor_count(c) == columns &&
           c->dims[c->rank - 1] == columns;
}

/* The Add behind a MatMul that makes it a linear layer. */
static qn_node *bias_node(const qn_tensor **bias, const qn_claim *claim, int64_t columns)
{
    qn_node *add = qn_build_fusible(claim->builder, claim->node->out[0]);
    if (!add || add->op != &qn_op_Add)
        return NULL;
    *bias = add->in[add->in[0] == claim->node->out[0] ? 1 : 0]->data;
    return is_bias(*bias, columns) && (*bias)->rank <= claim->node->out[0]->type.rank ? add : NULL;
}

/* beta C / alpha: alpha comes last. */
static qn_status copy_bias(qn_dnnl_step *s, const qn_claim *claim, const product *p)
{
    if (!p->bias || p->bias_changes)
        return QN_OK;
    const size_t count = (size_t)p->y[p->rank - 1];
    s->bias = qn_build_alloc(claim->builder, count * sizeof *s->bias);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s->bias);
    memcpy(s->bias, p->bias->data, count * sizeof *s->bias);
    for (size_t i = 0; i < count && p->beta != p->alpha; i++)
        s->bias[i] = s->bias[i] * p->beta / p->alpha;
    return QN_OK;
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static bool operands(qn_tensor *a, qn_tensor *b, const qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor y;
    return node->in[0] && node->in[1] && node->out[0] &&
           qn_build_shape(a, claim->builder, node->in[0]) &&
           qn_build_shape(b, claim->builder, node->in[1]) &&
           qn_build_shape(&y, claim->builder, node->out[0]) && a->dtype == QN_FLOAT32 &&
           !node->in[0]->data && qn_tensor_count(a) > 0 && qn_tensor_count(b) > 0;
}

static qn_status claim_product(bool *taken, qn_claim *claim, const product *p, qn_node *add)
{
    qn_dnnl_step *s;
    QN_TRY(qn_dnnl_step_create(&s, claim));
    s->weights = claim->node->in[1]->data;
    spec_of(s, p);
    QN_TRY(qn_dnnl_step_find(s, claim));
    if (!s->prim)
        return QN_OK;
    s->alpha = p->alpha;
    s->extra = add;
    qn_status status = copy_bias(s, claim, p);
    if (status == QN_OK)
        status = qn_dnnl_step_finish(s, claim, &matmul_kernel);
    if (status != QN_OK)
        qn_dnnl_step_free(s);
    *taken = status == QN_OK;
    return status;
}

qn_status qn_dnnl_claim_matmul(bool *taken, qn_claim *claim)
{
    qn_tensor a, b;
    product p;
    if (!operands(&a, &b, claim) || !matmul_product(&p, &a, &b))
        return QN_OK;
    qn_node *add = bias_node(&p.bias, claim, p.y[p.rank - 1]);
    if (!add)
        p.bias = NULL;
    p.beta = 1;
    return claim_product(taken, claim, &p, add);
}

qn_status qn_dnnl_claim_gemm(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_gemm_attrs *g = node->attrs;
    qn_tensor a, b, c = {.rank = 0};
    if (!operands(&a, &b, claim) || a.rank != 2 || b.rank != 2 || g->alpha == 0)
        return QN_OK;
    product p = {.rank = 2, .alpha = g->alpha, .beta = g->beta};
    p.a_swapped = g->transA != 0;
    p.b_swapped = g->transB != 0;
    p.a[0] = p.y[0] = a.dims[p.a_swapped];
    p.a[1] = p.b[0] = a.dims[!p.a_swapped];
    p.b[1] = p.y[1] = b.dims[!p.b_swapped];
    if (node->n_in > 2 && node->in[2]) {
        p.bias_changes = !node->in[2]->data;
        p.bias = p.bias_changes ? &c : node->in[2]->data;
        if ((p.bias_changes &&
             (!qn_build_shape(&c, claim->builder, node->in[2]) || p.alpha != p.beta)) ||
            !is_bias(p.bias, p.y[1]))
            return QN_OK;
    }
    return claim_product(taken, claim, &p, NULL);
}
