/* The functions of the library that plug-ins are given. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/plugins.h"
#include "base/text.h"
#include "ops/eval.h"
#include "ops/infer.h"

/* ---- Context --------------------------------------------------------------------------------- */

static qn_status node_fail(qn_context *ctx, const qn_node *node, qn_status status,
                           const char *format, ...) QN_PRINTF(4, 5);
static qn_status node_fail(qn_context *ctx, const qn_node *node, qn_status status,
                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const qn_status failed = qn_node_vfail(ctx, node, status, format, args);
    va_end(args);
    return failed;
}

static void *host_alloc(qn_context *ctx, size_t size)
{
    return qn_alloc_aligned(&ctx->allocator, size);
}

static void host_free(qn_context *ctx, void *block)
{
    qn_free_aligned(&ctx->allocator, block);
}

static size_t tensor_bytes(const qn_tensor *tensor)
{
    size_t bytes = 0;
    (void)qn_tensor_bytes(&bytes, tensor->dtype, tensor->rank, tensor->dims);
    return bytes;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static const char *node_name(const qn_node *node)
{
    return node->name;
}

static const char *node_op(const qn_node *node)
{
    return node->op->name;
}

static const char *node_domain(const qn_node *node)
{
    return node->op->domain;
}

static int32_t node_inputs(const qn_node *node)
{
    return node->n_in;
}

static int32_t node_outputs(const qn_node *node)
{
    return node->n_out;
}

static qn_value *node_input(const qn_node *node, int32_t i)
{
    return i >= 0 && i < node->n_in ? node->in[i] : NULL;
}

static qn_value *node_output(const qn_node *node, int32_t i)
{
    return i >= 0 && i < node->n_out ? node->out[i] : NULL;
}

static bool take_list(const void **out, size_t *count, const void *at, size_t n)
{
    *out = at;
    *count = n;
    return at != NULL;
}

static bool node_attr(const void **out, size_t *count, const qn_node *node, const char *name)
{
    const qn_attr_spec *spec = qn_op_attr(node->op, name, QN_LATEST_OPSET);
    const void *field = spec ? qn_attr_field(node, spec) : NULL;
    *out = field;
    *count = 1;
    if (!field)
        return false;
    switch (spec->kind) {
    case QN_ATTR_STRING: return take_list(out, count, *(const char *const *)field, 1);
    case QN_ATTR_INTS:
        return take_list(out, count, ((const qn_ints *)field)->at, ((const qn_ints *)field)->count);
    case QN_ATTR_FLOATS:
        return take_list(out, count, ((const qn_floats *)field)->at,
                         ((const qn_floats *)field)->count);
    case QN_ATTR_TENSOR: return take_list(out, count, *(const qn_tensor *const *)field, 1);
    default:
        return spec->kind == QN_ATTR_INT || spec->kind == QN_ATTR_ENUM ||
               spec->kind == QN_ATTR_FLOAT;
    }
}

static bool are_numbers(qn_value *const *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (values[i] &&
            (values[i]->type.kind != QN_TYPE_TENSOR || qn_dtype_size(values[i]->type.dtype) == 0 ||
             values[i]->type.dtype == QN_STRING))
            return false;
    }
    return true;
}

static qn_status node_is_static(bool *out, const qn_node *node)
{
    *out = !(node->op->flags & (QN_OP_ALLOCATES | QN_OP_RANDOM)) && !qn_node_subgraph(node, 0) &&
           node->n_in == node->n_explicit && are_numbers(node->in, node->n_in) &&
           are_numbers(node->out, node->n_out);
    return *out ? qn_node_is_certain(out, node) : QN_OK;
}

static qn_status copy_result(qn_context *ctx, const qn_node *node, const qn_tensor *to,
                             const qn_tensor *from)
{
    size_t bytes;
    if (to->dtype != from->dtype || to->rank != from->rank ||
        (to->rank > 0 && memcmp(to->dims, from->dims, (size_t)to->rank * sizeof *to->dims) != 0) ||
        !qn_tensor_bytes(&bytes, to->dtype, to->rank, to->dims))
        return node_fail(ctx, node, QN_E_INVALID, "an output has another shape than was planned");
    if (bytes)
        memcpy(to->data, from->data, bytes);
    return QN_OK;
}

static qn_status node_eval(qn_context *ctx, const qn_node *node, const qn_tensor *const *in,
                           qn_tensor *const *out)
{
    qn_arena arena;
    qn_arena_init(&arena, &ctx->allocator);
    qn_tensor **results = qn_arena_array(&arena, (size_t)node->n_out + 1, sizeof(qn_tensor *));
    qn_status status = results ? qn_node_eval(results, ctx, &arena, node, in) : qn_fail_nomem(ctx);
    for (int32_t o = 0; status == QN_OK && o < node->n_out; o++) {
        if (out[o] && results[o])
            status = copy_result(ctx, node, out[o], results[o]);
    }
    qn_arena_free(&arena);
    return status;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static const char *value_name(const qn_value *value)
{
    return value->name;
}

static const qn_tensor *value_data(const qn_value *value)
{
    return value->data;
}

static size_t value_users(const qn_value *value)
{
    return value->n_users;
}

static qn_node *value_user(const qn_value *value, size_t i)
{
    return i < value->n_users ? value->users[i] : NULL;
}

static qn_node *value_producer(const qn_value *value)
{
    return value->producer;
}

/* ---- The table ------------------------------------------------------------------------------- */

const qn_backend_api qn_backend_api_table = {
    .version = QN_BACKEND_VERSION,
    .size = sizeof qn_backend_api_table,
    .fail = qn_fail,
    .fail_node = node_fail,
    .log = qn_log,
    .check_cancel = qn_check_cancel,
    .alloc = host_alloc,
    .free = host_free,
    .tensor_bytes = tensor_bytes,
    .plan =
        {
            .context = qn_build_context,
            .threads = qn_build_threads,
            .alloc = qn_build_alloc,
            .weights = qn_build_alloc_weights,
            .upload = qn_build_upload,
            .shared = qn_build_shared,
            .direct = qn_build_direct,
            .shown = qn_build_shown,
            .layout = qn_build_layout,
            .shape = qn_build_shape,
            .ready = qn_build_ready,
            .taken = qn_build_taken,
            .fusible = qn_build_fusible,
            .dies = qn_build_dies,
            .can_place = qn_build_can_place,
            .claim_add = qn_claim_add,
            .claim_in = qn_claim_in,
            .claim_out = qn_claim_out,
            .claim_plain = qn_claim_plain,
        },
    .graph =
        {
            .node_name = node_name,
            .node_op = node_op,
            .node_domain = node_domain,
            .node_inputs = node_inputs,
            .node_outputs = node_outputs,
            .node_input = node_input,
            .node_output = node_output,
            .node_attr = node_attr,
            .node_is_static = node_is_static,
            .node_eval = node_eval,
            .value_name = value_name,
            .value_data = value_data,
            .value_users = value_users,
            .value_user = value_user,
            .value_producer = value_producer,
        },
};
