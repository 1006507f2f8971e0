/* Attributes of nodes. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

static bool is_word(qn_string text, const char *word)
{
    const size_t length = strlen(word);
    return text.length == length && (length == 0 || memcmp(text.text, word, length) == 0);
}

const qn_proto_message *qn_tf_attr(const qn_tf_node *node, const char *name)
{
    const size_t count = qn_proto_count(node->proto, QN_TF_NODE_ATTR);
    for (size_t i = 0; i < count; i++) {
        const qn_proto_message *entry = qn_proto_message_at(node->proto, QN_TF_NODE_ATTR, i);
        if (is_word(qn_proto_string(entry, QN_TF_ATTR_KEY), name))
            return qn_proto_get_message(entry, QN_TF_ATTR_VALUE);
    }
    return NULL;
}

int64_t qn_tf_attr_int(const qn_tf_node *node, const char *name, int64_t fallback)
{
    return qn_proto_int(qn_tf_attr(node, name), QN_TF_VALUE_I, fallback);
}

double qn_tf_attr_real(const qn_tf_node *node, const char *name, double fallback)
{
    return qn_proto_real(qn_tf_attr(node, name), QN_TF_VALUE_F, fallback);
}

bool qn_tf_attr_bool(const qn_tf_node *node, const char *name, bool fallback)
{
    return qn_proto_int(qn_tf_attr(node, name), QN_TF_VALUE_B, fallback) != 0;
}

qn_dtype qn_tf_attr_dtype(const qn_tf_node *node, const char *name, qn_dtype fallback)
{
    const qn_proto_message *attr = qn_tf_attr(node, name);
    return qn_proto_has(attr, QN_TF_VALUE_TYPE)
               ? qn_tf_dtype(qn_proto_int(attr, QN_TF_VALUE_TYPE, 0))
               : fallback;
}

bool qn_tf_attr_is(const qn_tf_node *node, const char *name, const char *word)
{
    return is_word(qn_proto_string(qn_tf_attr(node, name), QN_TF_VALUE_S), word);
}

bool qn_tf_attr_ints(int64_t *out, size_t *count, const qn_tf_node *node, const char *name,
                     size_t capacity)
{
    const qn_proto_message *list = qn_proto_get_message(qn_tf_attr(node, name), QN_TF_VALUE_LIST);
    *count = qn_proto_count(list, QN_TF_LIST_I);
    if (*count == 0 || *count > capacity)
        return false;
    qn_proto_numbers numbers = qn_proto_numbers_of(list, QN_TF_LIST_I);
    for (size_t i = 0; i < *count; i++)
        (void)qn_proto_next_int(&out[i], &numbers);
    return true;
}

const char *qn_tf_attr_function(const qn_tf_node *node, const char *name)
{
    const qn_proto_message *func = qn_proto_get_message(qn_tf_attr(node, name), QN_TF_VALUE_FUNC);
    const qn_string text = qn_proto_string(func, QN_TF_FUNC_NAME);
    return func ? qn_arena_text(&node->import->arena, text.text ? text.text : "", text.length)
                : NULL;
}
