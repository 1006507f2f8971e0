/* The table of operators as `quench ops` lists it. */
#ifndef QN_TF_OPERATORS_H
#define QN_TF_OPERATORS_H

#include "import/tensorflow/tensorflow.h"

enum {
    QN_TF_OPERATORS = 0
#define TF_OP(name, convert, as, outputs, brief) +1
#include "import/tensorflow/operators.def"
#undef TF_OP
};
extern const qn_framework_op qn_tf_operators[QN_TF_OPERATORS];

#endif
