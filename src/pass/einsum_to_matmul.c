/* Einsum of two tensors as a matrix product: "bhid,bhjd->bhij" is a product of [bh, i, d] and [bh,
 * d, j]. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ops/expand.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Letters of the dimensions of something. */
typedef struct letters {
    char at[2 * QN_MAX_RANK + 1];
} letters;

static bool has(const letters *list, char letter)
{
    return strchr(list->at, letter) != NULL;
}

static bool append(letters *list, char letter)
{
    const size_t count = strlen(list->at);
    if (count + 1 >= sizeof list->at)
        return false;
    list->at[count] = letter;
    return true;
}

typedef struct product {
    letters in[2], out;
    /* Letters of the result: those of both inputs, of the first and of the second. */
    letters batch, rows, columns;
    /* Letters that only the inputs have, which are summed over. */
    letters sums;
} product;

/* Two terms and a result, of letters that stand once in each. */
static bool read_equation(product *p, const char *at)
{
    letters *const terms[] = {&p->in[0], &p->in[1], &p->out};
    static const char *const ends[] = {",", "->", ""};
    for (int t = 0; at && t < 3; t++) {
        for (; isalpha((unsigned char)*at) || *at == ' '; at++) {
            if (*at != ' ' && (has(terms[t], *at) || !append(terms[t], *at)))
                return false;
        }
        if (strncmp(at, ends[t], strlen(ends[t])) != 0)
            return false;
        at += strlen(ends[t]);
    }
    return at && *at == 0;
}

/* Every letter has one of the four parts, or this is no product. */
static bool sort_letters(product *p)
{
    for (const char *l = p->out.at; *l; l++) {
        const bool first = has(&p->in[0], *l), second = has(&p->in[1], *l);
        if (!append(first && second ? &p->batch : first ? &p->rows : &p->columns, *l))
            return false;
    }
    for (int i = 0; i < 2; i++) {
        for (const char *l = p->in[i].at; *l; l++) {
            if (has(&p->out, *l) || has(&p->sums, *l))
                continue;
            if (!has(&p->in[1 - i], *l) || !append(&p->sums, *l))
                return false;
        }
    }
    return true;
}

static int64_t size_of(const product *p, const qn_node *node, char letter)
{
    const int32_t i = has(&p->in[0], letter) ? 0 : 1;
    return node->in[i]->type.dims[strchr(p->in[i].at, letter) - p->in[i].at].value;
}

/* Both inputs are floats of known sizes, the same ones where a letter is the same. */
static bool sizes_agree(const product *p, const qn_node *node)
{
    for (int32_t i = 0; i < 2; i++) {
        const qn_type *type = &node->in[i]->type;
        if (type->dtype != QN_FLOAT32 || !qn_type_is_static(type, NULL) ||
            (size_t)type->rank != strlen(p->in[i].at))
            return false;
        for (int32_t d = 0; d < type->rank; d++) {
            if (type->dims[d].value < 1 || type->dims[d].value != size_of(p, node, p->in[i].at[d]))
                return false;
        }
    }
    return true;
}

static int64_t size_of_all(const product *p, const qn_node *node, const letters *list)
{
    int64_t size = 1;
    for (const char *l = list->at; *l; l++)
        size *= size_of(p, node, *l);
    return size;
}

/* What the Transpose reads has the dimensions `from`, what it writes has them in the order of
 * `to`. */
static qn_status set_order(qn_node *transpose, const letters *from, const letters *to)
{
    int64_t perm[QN_MAX_RANK];
    const size_t rank = strlen(to->at);
    qn_transpose_attrs *a = transpose->attrs;
    for (size_t d = 0; d < rank; d++)
        perm[d] = strchr(from->at, to->at[d]) - from->at;
    return qn_ints_copy(&a->perm, transpose->graph, perm, rank);
}

static letters join(const letters *a, const letters *b, const letters *c)
{
    letters all;
    snprintf(all.at, sizeof all.at, "%s%s%s", a->at, b->at, c->at);
    return all;
}

static qn_status reshape(qn_value **x, qn_node *node, const int64_t *shape, size_t rank)
{
    qn_value *list;
    QN_TRY(qn_value_ints(&list, node->graph, shape, rank));
    return qn_emit(x, node, &qn_op_Reshape, *x, list);
}

/* Input i as [batch, first, second]. */
static qn_status operand(qn_value **out, qn_node *node, const product *p, int32_t i,
                         const letters *first, const letters *second)
{
    const letters order = join(&p->batch, first, second);
    const int64_t shape[3] = {size_of_all(p, node, &p->batch), size_of_all(p, node, first),
                              size_of_all(p, node, second)};
    QN_TRY(qn_emit(out, node, &qn_op_Transpose, node->in[i], NULL));
    QN_TRY(set_order((*out)->producer, &p->in[i], &order));
    QN_TRY(qn_node_infer((*out)->producer));
    return reshape(out, node, shape, 3);
}

/* Names the product after the Einsum, since the moves around it may go away. */
static qn_status name_product(qn_value *y, const qn_node *node)
{
    char *own = NULL, *result = NULL;
    QN_TRY(qn_rewrite_name(&own, node->graph, node->name, "_product"));
    QN_TRY(qn_rewrite_name(&result, node->graph, node->out[0]->name, "_product"));
    QN_TRY(qn_node_rename(y->producer, own));
    return qn_value_rename(y, result);
}

static qn_status replace_by_matmul(qn_node *node, const product *p)
{
    const letters order = join(&p->batch, &p->rows, &p->columns);
    int64_t shape[QN_MAX_RANK];
    qn_value *a = NULL, *b = NULL;
    qn_node *last;
    QN_TRY(operand(&a, node, p, 0, &p->rows, &p->sums));
    QN_TRY(operand(&b, node, p, 1, &p->sums, &p->columns));
    QN_TRY(qn_emit(&a, node, &qn_op_MatMul, a, b));
    QN_TRY(name_product(a, node));
    for (size_t d = 0; order.at[d]; d++)
        shape[d] = size_of(p, node, order.at[d]);
    QN_TRY(reshape(&a, node, shape, strlen(order.at)));
    QN_TRY(qn_rewrite_begin(&last, node, &qn_op_Transpose, &a, 1));
    QN_TRY(set_order(last, &order, &p->out));
    return qn_rewrite_finish(last, node);
}

static qn_status einsum_to_matmul(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        product p = {0};
        next = node->next;
        if (node->op != &qn_op_Einsum || node->n_in != 2 ||
            !read_equation(&p, ((const qn_einsum_attrs *)node->attrs)->equation) ||
            !sort_letters(&p) || !sizes_agree(&p, node))
            continue;
        QN_TRY(replace_by_matmul(node, &p));
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_einsum_to_matmul = {
    "einsum-to-matmul", "sums of products of two tensors become matrix products", einsum_to_matmul};
