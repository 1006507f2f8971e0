/* Random numbers: only dropouts that are switched off have them, whose result does not depend on
 * them. What is known is where they lie. */
#include <math.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

qn_status qn_tf_random_uniform(qn_tf_node *node)
{
    const qn_tf_thing thing = {.kind = QN_TF_RANDOM, .low = 0, .high = 1};
    return qn_tf_set_thing(node->import, node->name, &thing);
}

bool qn_tf_has_random(const qn_tf_node *node)
{
    for (size_t i = 0; i < node->n_in; i++) {
        if (qn_tf_is(node->import, node->in[i], QN_TF_RANDOM))
            return true;
    }
    return false;
}

static bool is_type(const qn_tf_node *node, const char *type)
{
    return strcmp(node->type, type) == 0;
}

static qn_status fail_random(const qn_tf_node *node)
{
    return qn_tf_fail(node, QN_E_UNSUPPORTED,
                      "what it computes depends on random numbers: a dropout that is switched on?");
}

/* The number beside the random ones. */
static qn_status number_of(double *out, const qn_tf_node *node, size_t i)
{
    const qn_tensor *tensor;
    if (qn_tf_is(node->import, node->in[i], QN_TF_RANDOM))
        return fail_random(node);
    QN_TRY(qn_tf_known(&tensor, node, i));
    if (!tensor || qn_tensor_count(tensor) != 1 || !qn_dtype_is_float(tensor->dtype))
        return fail_random(node);
    qn_load_f64(out, tensor->dtype, tensor->data, 0, 1);
    return QN_OK;
}

static qn_status put_number(qn_tf_node *node, double number, qn_dtype dtype)
{
    qn_value *value;
    QN_TRY(qn_tf_number(&value, node->import, number, dtype));
    return qn_tf_out(node, 0, value, QN_ORDER_OWN);
}

/* floor(random + keep) is 1 where keep is 1. */
static qn_status of_floor(qn_tf_node *node, const qn_tf_thing *random)
{
    if (floor(random->low) != ceil(random->high) - 1)
        return fail_random(node);
    return put_number(node, floor(random->low), QN_FLOAT32);
}

/* random >= rate is true where the rate is 0. */
static qn_status of_comparison(qn_tf_node *node, const qn_tf_thing *random)
{
    double limit;
    QN_TRY(number_of(&limit, node, 1));
    if (random->low < limit && random->high > limit)
        return fail_random(node);
    return put_number(node, random->low >= limit, QN_BOOL);
}

/* A factor or a summand moves where the numbers lie. */
static qn_status of_pair(qn_tf_node *node, const qn_tf_thing *random, size_t place)
{
    double number;
    qn_tf_thing moved = *random;
    QN_TRY(number_of(&number, node, 1 - place));
    if (is_type(node, "Mul") && number > 0) {
        moved.low *= number;
        moved.high *= number;
    } else if (is_type(node, "Add") || is_type(node, "AddV2")) {
        moved.low += number;
        moved.high += number;
    } else {
        return fail_random(node);
    }
    return qn_tf_set_thing(node->import, node->name, &moved);
}

qn_status qn_tf_with_random(qn_tf_node *node)
{
    const size_t place = qn_tf_is(node->import, node->in[0], QN_TF_RANDOM) ? 0 : 1;
    const qn_tf_thing *random = NULL;
    if (place < node->n_in)
        random = qn_tf_get_thing(node->import, node->in[place]);
    if (is_type(node, "Identity"))
        return qn_tf_pass(node);
    if (!random || random->kind != QN_TF_RANDOM)
        return fail_random(node);
    if (is_type(node, "Floor"))
        return of_floor(node, random);
    if (node->n_in != 2)
        return fail_random(node);
    return is_type(node, "GreaterEqual") && place == 0 ? of_comparison(node, random)
                                                       : of_pair(node, random, place);
}
