/* Dims of gradients, from an attribute. */
#include "ops/grad_shape.h"

#include <string.h>

qn_tensor qn_grad_tensor(qn_dtype dtype, const qn_ints *shape)
{
    qn_tensor t = {.dtype = dtype, .rank = (int32_t)shape->count};
    memcpy(t.dims, shape->at, shape->count * sizeof *t.dims);
    return t;
}

qn_status qn_infer_grad_shape(qn_infer *self, const qn_ints *shape)
{
    qn_dim dims[QN_MAX_RANK];
    int64_t count;
    if (!shape->at || shape->count > QN_MAX_RANK ||
        !qn_dims_count(&count, (int32_t)shape->count, shape->at))
        return qn_infer_fail(self, "attribute 'shape' must be the dimensions of the result");
    for (size_t d = 0; d < shape->count; d++)
        dims[d] = qn_dim_of(shape->at[d]);
    qn_infer_set(self, 0, self->in[0]->dtype, (int32_t)shape->count, dims);
    return QN_OK;
}
