/* The table of operators, made of operators.def. */
#include <stdlib.h>
#include <string.h>

#include "import/tensorflow/operators.h"

static const qn_tf_op operators[] = {
#define TF_OP(name, convert, as, outputs, brief) {#name, convert, as, outputs},
#include "import/tensorflow/operators.def"
#undef TF_OP
};

const qn_framework_op qn_tf_operators[QN_TF_OPERATORS] = {
#define TF_OP(name, convert, as, outputs, brief) {#name, brief},
#include "import/tensorflow/operators.def"
#undef TF_OP
};
static int compare(const void *name, const void *op)
{
    return strcmp(name, ((const qn_tf_op *)op)->name);
}

const qn_tf_op *qn_tf_op_find(const char *name)
{
    return bsearch(name, operators, QN_COUNT_OF(operators), sizeof *operators, compare);
}
