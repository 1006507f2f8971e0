/* What the reference computes, value by value, and how another plan of the same model compares with
 * it. */
#ifndef QN_REFERENCE_VALUES_H
#define QN_REFERENCE_VALUES_H

#include "run/session.h"

typedef struct qn_reference_value {
    /* The names of the value and of what computes it */
    const char *name, *node;
    /* Row-major; data NULL: not computed yet */
    qn_tensor tensor;
    /* Bytes at tensor.data */
    size_t room;
    /* Its node computes in float, in an order that is not fixed */
    bool is_float;
    /* It differs, or one does that it is made from */
    bool behind;
    bool compared;
} qn_reference_value;

typedef struct qn_reference_values {
    qn_context *ctx;
    qn_arena arena;
    qn_names by_name;
    qn_reference_value *values;
    size_t count;
    /* A value laid out in rows. */
    void *rows;
    size_t rows_size;
    /* Largest difference of float values, relative to the largest of the tensor */
    double float_error;
    /* Times that a value differed */
    int64_t differing;
    struct { /* the first of them */
        const qn_reference_value *value;
        /* It was computed */
        const char *how;
        int64_t element;
        double got, reference;
    } first;
} qn_reference_values;

/* For all values that nodes of the graph compute. qn_reference_values_free in any case. */
QN_MUST_CHECK qn_status qn_reference_values_init(qn_reference_values *reference, qn_context *ctx,
                                                 const qn_graph *graph);
void qn_reference_values_free(qn_reference_values *reference);
/* Keeps a value of the reference. */
QN_MUST_CHECK qn_status qn_reference_values_keep(qn_reference_values *reference,
                                                 const qn_observation *seen);
/* Compares a value of another plan, `how` it was computed being part of the message. A loose one
 * may differ a little, and becomes the reference's then: what is computed of it is compared on
 * equal terms. */
QN_MUST_CHECK qn_status qn_reference_values_compare(qn_reference_values *reference,
                                                    const qn_observation *seen, const char *how,
                                                    bool loose);
/* Float results that are no copies and do not come from integers alone. */
bool qn_reference_is_loose(const qn_node *node);
/* What is known of the value; NULL: nothing. */
const qn_reference_value *qn_reference_value_of(const qn_reference_values *reference,
                                                const qn_value *value);

#endif
