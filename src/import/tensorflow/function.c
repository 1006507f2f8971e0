/* Functions, converted where they are called. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* What a result of the function is called in its body. */
static qn_string ret_of(const qn_proto_message *function, qn_string result)
{
    for (size_t i = 0; i < qn_proto_count(function, QN_TF_FUNCTION_RET); i++) {
        const qn_proto_message *pair = qn_proto_message_at(function, QN_TF_FUNCTION_RET, i);
        const qn_string key = qn_proto_string(pair, QN_TF_PAIR_KEY);
        if (key.length == result.length && memcmp(key.text, result.text, key.length) == 0)
            return qn_proto_string(pair, QN_TF_PAIR_VALUE);
    }
    return (qn_string){NULL, 0};
}

static qn_string arg_name(const qn_proto_message *signature, uint32_t field, size_t i)
{
    return qn_proto_string(qn_proto_message_at(signature, field, i), QN_TF_ARG_NAME);
}

static qn_status bind(const qn_tf_scope *scope, const qn_tf_node *node,
                      const qn_tf_arguments *arguments)
{
    qn_tf_import *import = scope->import;
    const qn_proto_message *signature =
        qn_proto_get_message(scope->function, QN_TF_FUNCTION_SIGNATURE);
    const size_t count = qn_proto_count(signature, QN_TF_SIGNATURE_INPUT);
    if (count != arguments->count)
        return qn_tf_fail(node, QN_E_FORMAT, "its function has %zu arguments, it gives %zu", count,
                          arguments->count);
    for (size_t i = 0; i < count; i++) {
        const qn_string own = arg_name(signature, QN_TF_SIGNATURE_INPUT, i);
        const char *name = qn_arena_format(&import->arena, "%s%.*s", scope->prefix, (int)own.length,
                                           own.text ? own.text : "");
        QN_TRY_ALLOC(import->ctx, name);
        QN_TRY(qn_tf_alias(import, name, arguments->at[i]));
    }
    return QN_OK;
}

static qn_status run(const char ***results, size_t *n_results, qn_tf_scope *scope)
{
    qn_tf_import *import = scope->import;
    const qn_proto_message *signature =
        qn_proto_get_message(scope->function, QN_TF_FUNCTION_SIGNATURE);
    *n_results = qn_proto_count(signature, QN_TF_SIGNATURE_OUTPUT);
    *results = qn_arena_array(&import->arena, *n_results + 1, sizeof **results);
    QN_TRY_ALLOC(import->ctx, *results);
    for (size_t i = 0; i < *n_results; i++) {
        const qn_string name = arg_name(signature, QN_TF_SIGNATURE_OUTPUT, i);
        QN_TRY(qn_tf_scope_value(&(*results)[i], scope, ret_of(scope->function, name)));
    }
    return qn_tf_run(scope, *results, *n_results, NULL);
}

qn_status qn_tf_call(const char ***results, size_t *n_results, qn_tf_node *node,
                     const char *function, const char *prefix, const qn_tf_arguments *arguments)
{
    qn_tf_import *import = node->import;
    qn_tf_scope *scope = NULL;
    qn_status status;
    const qn_proto_message *body = qn_names_get(&import->functions, function);
    if (!body)
        return qn_tf_fail(node, QN_E_FORMAT, "there is no function '%s'", function);
    QN_TRY(qn_tf_enter(import));
    QN_TRY_OR_DONE(qn_tf_scope_open(&scope, import, body, QN_TF_FUNCTION_NODE, prefix));
    scope->function = body;
    QN_TRY_OR_DONE(bind(scope, node, arguments));
    status = run(results, n_results, scope);
    qn_graph_builder_layer(&import->builder, node->name, node->type);
done:
    qn_tf_scope_close(scope);
    import->depth--;
    return status;
}
