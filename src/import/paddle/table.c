/* Which operators are read: ops.def as tables. */
#include <string.h>

#include "import/paddle/paddle.h"

static const qn_paddle_row rows[] = {
#define PADDLE_OP(name, legacy, pir, convert, in, out, onnx, brief)                                \
    {#name, legacy, pir, qn_paddle_##convert, in, out, onnx, brief},
#include "import/paddle/ops.def"
#undef PADDLE_OP
};

const qn_framework_op qn_paddle_operators[QN_PADDLE_OPERATORS] = {
#define PADDLE_OP(name, legacy, pir, convert, in, out, onnx, brief) {#name, brief},
#include "import/paddle/ops.def"
#undef PADDLE_OP
};

static bool has_word(const char *words, const char *type, size_t length)
{
    for (qn_string word = qn_paddle_word(&words); word.length; word = qn_paddle_word(&words)) {
        if (word.length == length && memcmp(word.text, type, length) == 0)
            return true;
    }
    return false;
}

static const qn_paddle_row *find(const char *type, size_t length, bool pir)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (has_word(pir ? rows[i].pir : rows[i].legacy, type, length))
            return &rows[i];
    }
    return NULL;
}

/* PIR's operators that work in place end with '_' and do the same as those without. */
const qn_paddle_row *qn_paddle_row_of(const char *type, bool pir)
{
    const size_t length = strlen(type);
    const qn_paddle_row *row = find(type, length, pir);
    if (!row && pir && length > 1 && type[length - 1] == '_')
        row = find(type, length - 1, pir);
    return row;
}
