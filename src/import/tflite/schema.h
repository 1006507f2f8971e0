/* Numbers of fields and words of TensorFlow Lite's schema, version 3. The options of operators
 * stand beside those who read them. */
#ifndef QN_TFL_SCHEMA_H
#define QN_TFL_SCHEMA_H

enum { QN_TFL_MODEL_CODES = 1, QN_TFL_MODEL_SUBGRAPHS = 2, QN_TFL_MODEL_BUFFERS = 4 };
enum { QN_TFL_CODE_OLD = 0, QN_TFL_CODE_CUSTOM = 1, QN_TFL_CODE_BUILTIN = 3 };
enum {
    QN_TFL_GRAPH_TENSORS = 0,
    QN_TFL_GRAPH_INPUTS = 1,
    QN_TFL_GRAPH_OUTPUTS = 2,
    QN_TFL_GRAPH_OPERATORS = 3
};
enum {
    QN_TFL_TENSOR_SHAPE = 0,
    QN_TFL_TENSOR_TYPE = 1,
    QN_TFL_TENSOR_BUFFER = 2,
    QN_TFL_TENSOR_NAME = 3,
    QN_TFL_TENSOR_QUANTIZATION = 4,
    QN_TFL_TENSOR_VARIABLE = 5,
    QN_TFL_TENSOR_SPARSITY = 6,
    QN_TFL_TENSOR_SIGNATURE = 7
};
enum {
    QN_TFL_QUANT_SCALE = 2,
    QN_TFL_QUANT_ZERO = 3,
    QN_TFL_QUANT_DETAILS = 4,
    QN_TFL_QUANT_AXIS = 6
};
enum { QN_TFL_BUFFER_DATA = 0, QN_TFL_BUFFER_OFFSET = 1, QN_TFL_BUFFER_SIZE = 2 };
enum {
    QN_TFL_OPERATOR_CODE = 0,
    QN_TFL_OPERATOR_INPUTS = 1,
    QN_TFL_OPERATOR_OUTPUTS = 2,
    QN_TFL_OPERATOR_OPTIONS = 4,
    QN_TFL_OPERATOR_CUSTOM = 5,
    QN_TFL_OPERATOR_INTERMEDIATES = 8,
    QN_TFL_OPERATOR_OPTIONS_2 = 12
};

/* What a number of an operator stands for that is none of the table. */
enum { QN_TFL_CUSTOM = 32, QN_TFL_LAST_OLD_CODE = 127 };

typedef enum tfl_activation {
    QN_TFL_NO_ACTIVATION,
    QN_TFL_RELU,
    QN_TFL_RELU_N1_TO_1,
    QN_TFL_RELU6,
    QN_TFL_TANH,
    QN_TFL_SIGN_BIT
} tfl_activation;
enum { QN_TFL_SAME = 0, QN_TFL_VALID = 1 };

#endif
