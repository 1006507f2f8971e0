/* Products with flattened pictures. */
#include "import/tensorflow/window.h"

static qn_status reshape(qn_value **value, qn_graph_builder *b, const int64_t *dims, size_t count)
{
    qn_value *shape;
    QN_TRY(qn_graph_build_ints(&shape, b, dims, count));
    return qn_graph_build(value, b, &qn_op_Reshape, QN_INPUTS(*value, shape), QN_PLAIN);
}

/* The dims of the picture behind its batch, and how many numbers they make; false: not known. */
static bool count_rows(int64_t *rows, int64_t *dims, const qn_type *picture)
{
    *rows = 1;
    for (int32_t i = 1; i < picture->rank; i++) {
        dims[i] = picture->dims[i].value;
        if (dims[i] < 1 || dims[i] > INT32_MAX || !qn_mul_int64(rows, *rows, dims[i]))
            return false;
    }
    return picture->rank >= 3;
}

/* Rows [spatial..., C] become [C, spatial...]. */
static qn_status turn_rows(qn_value **weights, qn_graph_builder *b, const int64_t *dims,
                           int32_t rank)
{
    int64_t perm[QN_MAX_RANK], wide[QN_MAX_RANK];
    const int64_t flat[2] = {(*weights)->type.dims[0].value, (*weights)->type.dims[1].value};
    for (int32_t i = 2; i < rank; i++)
        wide[i - 2] = dims[i];
    wide[rank - 2] = dims[1];
    wide[rank - 1] = flat[1];
    perm[0] = rank - 2;
    for (int32_t i = 1; i < rank - 1; i++)
        perm[i] = i - 1;
    perm[rank - 1] = rank - 1;
    QN_TRY(reshape(weights, b, wide, (size_t)rank));
    QN_TRY(qn_graph_build(weights, b, &qn_op_Transpose, QN_INPUTS(*weights),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank))));
    return reshape(weights, b, flat, 2);
}

qn_status qn_tf_flat_product(bool *done, qn_value **x, qn_value **weights, qn_graph_builder *b,
                             qn_value *picture)
{
    int64_t dims[QN_MAX_RANK], rows;
    const qn_type *type = &(*weights)->type, *flat = &(*x)->type;
    *done = false;
    if (!count_rows(&rows, dims, &picture->type) || type->rank != 2 ||
        type->dims[0].value != rows || type->dims[1].value < 0 || flat->rank != 2 ||
        flat->dims[1].value != rows)
        return QN_OK;
    QN_TRY(turn_rows(weights, b, dims, picture->type.rank));
    *x = picture;
    *done = true;
    return reshape(x, b, (const int64_t[]){-1, rows}, 2);
}
