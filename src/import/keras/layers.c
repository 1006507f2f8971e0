/* The table of layers, made of layers.def. */
#include <stdlib.h>
#include <string.h>

#include "import/keras/keras.h"

static const qn_keras_op rows[] = {
#define KERAS_LAYER(name, convert, as, mask, brief) {#name, convert, as, QN_KERAS_MASK_##mask},
#include "import/keras/layers.def"
#undef KERAS_LAYER
};

const qn_framework_op qn_keras_layers[QN_KERAS_LAYERS] = {
#define KERAS_LAYER(name, convert, as, mask, brief) {#name, brief},
#include "import/keras/layers.def"
#undef KERAS_LAYER
};

static int compare(const void *name, const void *row)
{
    return strcmp(name, ((const qn_keras_op *)row)->name);
}

const qn_keras_op *qn_keras_op_find(const char *name)
{
    return bsearch(name, rows, QN_COUNT_OF(rows), sizeof *rows, compare);
}
