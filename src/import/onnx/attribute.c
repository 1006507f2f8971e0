/* Attributes of ONNX nodes into the operators' structs. */
#include <string.h>

#include "import/onnx/onnx.h"

/* ---- References ------------------------------------------------------------------------------ */

qn_status qn_onnx_resolve(qn_onnx_argument *out, qn_onnx_scope *scope,
                          const qn_proto_message *attribute)
{
    qn_onnx_import *import = scope->import;
    const char *reference;
    *out = (qn_onnx_argument){.attribute = attribute, .scope = scope};
    QN_TRY(qn_onnx_name(&out->name, import, qn_proto_string(attribute, QN_ONNX_ATTRIBUTE_NAME)));
    QN_TRY(qn_onnx_name(&reference, import,
                        qn_proto_string(attribute, QN_ONNX_ATTRIBUTE_REF_ATTR_NAME)));
    if (*reference == 0)
        return QN_OK;
    if (!scope->call)
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "attribute '%s' refers to '%s' of a function, but is in none", out->name,
                       reference);
    out->attribute = NULL;
    for (size_t i = 0; i < scope->call->n_arguments; i++) {
        const qn_onnx_argument *argument = &scope->call->arguments[i];
        if (strcmp(argument->name, reference) != 0)
            continue;
        out->attribute = argument->attribute;
        out->scope = argument->scope ? argument->scope : scope;
    }
    return QN_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static qn_status read_text(const char **out, qn_onnx_import *import, qn_string text)
{
    if (memchr(text.text, 0, text.length))
        return qn_fail(import->ctx, QN_E_FORMAT, "its text contains a zero byte");
    *out = qn_arena_text(import->arena, text.text, text.length);
    QN_TRY_ALLOC(import->ctx, *out);
    return QN_OK;
}

static qn_status read_word(int64_t *out, qn_onnx_import *import, const qn_attr_spec *spec,
                           qn_string text)
{
    for (int64_t i = 0; spec->words[i]; i++) {
        if (strlen(spec->words[i]) == text.length &&
            memcmp(spec->words[i], text.text, text.length) == 0) {
            *out = i;
            return QN_OK;
        }
    }
    return qn_fail(import->ctx, QN_E_UNSUPPORTED, "'%.*s' is not known",
                   (int)QN_MIN(text.length, 60), text.text);
}

static qn_status read_ints(qn_ints *out, qn_onnx_import *import, const qn_proto_message *attribute)
{
    const size_t count = qn_proto_count(attribute, QN_ONNX_ATTRIBUTE_INTS);
    int64_t *values = qn_arena_array(import->arena, count, sizeof *values);
    QN_TRY_ALLOC(import->ctx, values);
    qn_proto_numbers numbers = qn_proto_numbers_of(attribute, QN_ONNX_ATTRIBUTE_INTS);
    for (size_t i = 0; i < count; i++)
        (void)qn_proto_next_int(&values[i], &numbers);
    *out = (qn_ints){values, count};
    return QN_OK;
}

static qn_status read_floats(qn_floats *out, qn_onnx_import *import,
                             const qn_proto_message *attribute)
{
    const qn_string packed = qn_proto_packed(attribute, QN_ONNX_ATTRIBUTE_FLOATS);
    float *values = qn_arena_copy(import->arena, packed.text, packed.length);
    QN_TRY_ALLOC(import->ctx, values);
    *out = (qn_floats){values, packed.length / sizeof *values};
    return QN_OK;
}

static qn_status read_strings(qn_strings *out, qn_onnx_import *import,
                              const qn_proto_message *attribute)
{
    const size_t count = qn_proto_count(attribute, QN_ONNX_ATTRIBUTE_STRINGS);
    qn_string *strings = qn_arena_array(import->arena, count, sizeof *strings);
    QN_TRY_ALLOC(import->ctx, strings);
    for (size_t i = 0; i < count; i++)
        strings[i] = qn_proto_string_at(attribute, QN_ONNX_ATTRIBUTE_STRINGS, i);
    *out = (qn_strings){strings, count};
    return QN_OK;
}

static qn_status read_tensor(const qn_tensor **out, qn_onnx_import *import,
                             const qn_proto_message *attribute)
{
    const qn_proto_message *dense = qn_proto_get_message(attribute, QN_ONNX_ATTRIBUTE_T);
    const qn_proto_message *sparse =
        qn_proto_get_message(attribute, QN_ONNX_ATTRIBUTE_SPARSE_TENSOR);
    qn_tensor *tensor = qn_arena_alloc(import->arena, sizeof *tensor);
    QN_TRY_ALLOC(import->ctx, tensor);
    *out = tensor;
    return sparse ? qn_onnx_sparse(tensor, import, sparse) : qn_onnx_tensor(tensor, import, dense);
}

static qn_status read_type(const qn_type **out, qn_onnx_import *import,
                           const qn_proto_message *attribute)
{
    qn_type *type = qn_arena_alloc(import->arena, sizeof *type);
    QN_TRY_ALLOC(import->ctx, type);
    *out = type;
    return qn_onnx_type(type, import, qn_proto_get_message(attribute, QN_ONNX_ATTRIBUTE_TP));
}

/* A subgraph; `scope` is where it finds the values that it captures. */
static qn_status read_graph(qn_graph **out, qn_node *owner, qn_onnx_scope *scope,
                            const qn_proto_message *attribute)
{
    qn_onnx_import *import = scope->import;
    if (scope->graph != owner->graph)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "a graph handed through a function into a subgraph is not supported");
    QN_TRY(qn_onnx_enter(import));
    QN_TRY(qn_graph_create(out, import->model, "subgraph"));
    (*out)->owner = owner;
    qn_onnx_scope inner = *scope;
    inner.parent = scope;
    inner.graph = *out;
    inner.body = NULL;
    qn_names_init(&inner.values, import->ctx);
    qn_names_init(&inner.declared, import->ctx);
    const qn_proto_message *graph = qn_proto_get_message(attribute, QN_ONNX_ATTRIBUTE_G);
    qn_status status = qn_onnx_begin_opsets(&inner);
    if (status == QN_OK)
        status = qn_onnx_graph(&inner, graph);
    qn_names_free(&inner.values);
    qn_names_free(&inner.declared);
    import->depth--;
    return status;
}

/* ---- Attributes of a node -------------------------------------------------------------------- */

/* AttributeType and field of each kind. */
static const struct {
    int type;
    uint32_t field;
} forms[] = {
    [QN_ATTR_INT] = {QN_ONNX_TYPE_INT, QN_ONNX_ATTRIBUTE_I},
    [QN_ATTR_FLOAT] = {QN_ONNX_TYPE_FLOAT, QN_ONNX_ATTRIBUTE_F},
    [QN_ATTR_STRING] = {QN_ONNX_TYPE_STRING, QN_ONNX_ATTRIBUTE_S},
    [QN_ATTR_ENUM] = {QN_ONNX_TYPE_STRING, QN_ONNX_ATTRIBUTE_S},
    [QN_ATTR_INTS] = {QN_ONNX_TYPE_INTS, QN_ONNX_ATTRIBUTE_INTS},
    [QN_ATTR_FLOATS] = {QN_ONNX_TYPE_FLOATS, QN_ONNX_ATTRIBUTE_FLOATS},
    [QN_ATTR_STRINGS] = {QN_ONNX_TYPE_STRINGS, QN_ONNX_ATTRIBUTE_STRINGS},
    [QN_ATTR_TENSOR] = {QN_ONNX_TYPE_TENSOR, QN_ONNX_ATTRIBUTE_T},
    [QN_ATTR_GRAPH] = {QN_ONNX_TYPE_GRAPH, QN_ONNX_ATTRIBUTE_G},
    [QN_ATTR_TYPE] = {QN_ONNX_TYPE_TYPE_PROTO, QN_ONNX_ATTRIBUTE_TP},
};

/* An AttributeType in words. */
static const char *type_words(int64_t type)
{
    static const char *const words[] = {"nothing",
                                        "a float",
                                        "an int",
                                        "a string",
                                        "a tensor",
                                        "a graph",
                                        "a list of floats",
                                        "a list of ints",
                                        "a list of strings",
                                        "a list of tensors",
                                        "a list of graphs",
                                        "a sparse tensor",
                                        "a list of sparse tensors",
                                        "a type",
                                        "a list of types"};
    return type >= 0 && type < (int64_t)QN_COUNT_OF(words) ? words[type] : "of an unknown type";
}

/* The declared type fits, and what it announces is there. Lists and files without types (IR version
 * 1) may have nothing; single values may not. */
static qn_status check_form(qn_onnx_import *import, qn_attr_kind kind,
                            const qn_proto_message *attribute)
{
    const int64_t type = qn_proto_int(attribute, QN_ONNX_ATTRIBUTE_TYPE, 0);
    const bool sparse = kind == QN_ATTR_TENSOR && type == QN_ONNX_TYPE_SPARSE_TENSOR;
    if (type != 0 && type != forms[kind].type && !sparse)
        return qn_fail(import->ctx, QN_E_FORMAT, "it is %s instead of %s", type_words(type),
                       type_words(forms[kind].type));
    const uint32_t field = sparse ? QN_ONNX_ATTRIBUTE_SPARSE_TENSOR : forms[kind].field;
    const bool message = kind == QN_ATTR_TENSOR || kind == QN_ATTR_GRAPH || kind == QN_ATTR_TYPE;
    if (message && !qn_proto_has(attribute, field))
        return qn_fail(import->ctx, QN_E_FORMAT, "it has no value");
    return QN_OK;
}

static qn_status read_attribute(qn_node *node, const qn_attr_spec *spec,
                                const qn_onnx_argument *argument)
{
    qn_onnx_import *import = argument->scope->import;
    const qn_proto_message *attribute = argument->attribute;
    void *field = qn_attr_field(node, spec);
    QN_TRY(check_form(import, spec->kind, attribute));
    const qn_string text = qn_proto_string(attribute, QN_ONNX_ATTRIBUTE_S);
    switch (spec->kind) {
    case QN_ATTR_INT: *(int64_t *)field = qn_proto_int(attribute, QN_ONNX_ATTRIBUTE_I, 0); break;
    case QN_ATTR_FLOAT:
        *(float *)field = (float)qn_proto_real(attribute, QN_ONNX_ATTRIBUTE_F, 0);
        break;
    case QN_ATTR_STRING: return read_text(field, import, text);
    case QN_ATTR_ENUM: return read_word(field, import, spec, text);
    case QN_ATTR_INTS: return read_ints(field, import, attribute);
    case QN_ATTR_FLOATS: return read_floats(field, import, attribute);
    case QN_ATTR_STRINGS: return read_strings(field, import, attribute);
    case QN_ATTR_TENSOR: return read_tensor(field, import, attribute);
    case QN_ATTR_GRAPH: return read_graph(field, node, argument->scope, attribute);
    case QN_ATTR_TYPE: return read_type(field, import, attribute);
    }
    return QN_OK;
}

/* Until opset 6 many operators had a hint for memory reuse that says nothing about results. */
static bool is_forgotten(const char *name, int64_t version)
{
    return version < 6 && strcmp(name, "consumed_inputs") == 0;
}

static qn_status add_attribute(qn_node *node, qn_onnx_scope *scope,
                               const qn_proto_message *attribute, int64_t version, uint64_t *seen)
{
    qn_onnx_import *import = scope->import;
    qn_onnx_argument argument;
    QN_TRY(qn_onnx_resolve(&argument, scope, attribute));
    const qn_attr_spec *spec = qn_op_attr(node->op, argument.name, version);
    if (!spec && is_forgotten(argument.name, version))
        return QN_OK;
    if (!spec || (spec->until && version >= spec->until))
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "opset %lld is not known to have an attribute '%s' here", (long long)version,
                       argument.name);
    if (!argument.attribute)
        return QN_OK;
    const uint64_t bit = UINT64_C(1) << (spec - node->op->attrs) % 64;
    if (*seen & bit)
        return qn_fail(import->ctx, QN_E_FORMAT, "attribute '%s' is there twice", argument.name);
    *seen |= bit;
    const qn_status status = read_attribute(node, spec, &argument);
    return status == QN_OK ? QN_OK
                           : qn_fail_within(import->ctx, status, "attribute '%s'", argument.name);
}

qn_status qn_onnx_attributes(qn_node *node, qn_onnx_scope *scope, const qn_proto_message *proto,
                             int64_t version)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < qn_proto_count(proto, QN_ONNX_NODE_ATTRIBUTE); i++)
        QN_TRY(add_attribute(node, scope, qn_proto_message_at(proto, QN_ONNX_NODE_ATTRIBUTE, i),
                             version, &seen));
    for (size_t i = 0; i < node->op->n_attrs; i++) {
        const qn_attr_spec *spec = &node->op->attrs[i];
        const bool current = version >= spec->required && (!spec->until || version < spec->until);
        if (spec->required && current && !(seen >> i % 64 & 1))
            return qn_fail(scope->import->ctx, QN_E_FORMAT, "attribute '%s' is missing",
                           spec->name);
    }
    return QN_OK;
}

/* ---- Constant nodes -------------------------------------------------------------------------- */

static qn_status constant_of(qn_tensor *out, qn_onnx_import *import, qn_dtype dtype, int32_t rank,
                             size_t count)
{
    const int64_t dims[1] = {(int64_t)count};
    const qn_type type = qn_type_tensor(dtype, rank, dims);
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, import->ctx, import->arena, &type));
    *out = *tensor;
    return QN_OK;
}

static qn_status constant_numbers(qn_tensor *out, qn_onnx_import *import, const char *name,
                                  const qn_proto_message *attribute)
{
    if (strcmp(name, "value_int") == 0) {
        QN_TRY(constant_of(out, import, QN_INT64, 0, 1));
        *(int64_t *)out->data = qn_proto_int(attribute, QN_ONNX_ATTRIBUTE_I, 0);
        return QN_OK;
    }
    if (strcmp(name, "value_float") == 0) {
        QN_TRY(constant_of(out, import, QN_FLOAT32, 0, 1));
        *(float *)out->data = (float)qn_proto_real(attribute, QN_ONNX_ATTRIBUTE_F, 0);
        return QN_OK;
    }
    if (strcmp(name, "value_ints") == 0) {
        qn_ints ints = {NULL, 0};
        QN_TRY(read_ints(&ints, import, attribute));
        QN_TRY(constant_of(out, import, QN_INT64, 1, ints.count));
        memcpy(out->data, ints.at, ints.count * sizeof *ints.at);
        return QN_OK;
    }
    qn_floats floats = {NULL, 0};
    QN_TRY(read_floats(&floats, import, attribute));
    QN_TRY(constant_of(out, import, QN_FLOAT32, 1, floats.count));
    memcpy(out->data, floats.at, floats.count * sizeof *floats.at);
    return QN_OK;
}

static qn_status constant_strings(qn_tensor *out, qn_onnx_import *import, bool many,
                                  const qn_proto_message *attribute)
{
    const qn_string one = qn_proto_string(attribute, QN_ONNX_ATTRIBUTE_S);
    qn_strings strings = {&one, 1};
    if (many)
        QN_TRY(read_strings(&strings, import, attribute));
    QN_TRY(constant_of(out, import, QN_STRING, many, strings.count));
    if (strings.count)
        memcpy(out->data, strings.at, strings.count * sizeof *strings.at);
    return QN_OK;
}

qn_status qn_onnx_constant(qn_tensor *out, qn_onnx_scope *scope, const qn_proto_message *node)
{
    static const struct {
        const char *name;
        qn_attr_kind kind;
    } words[] = {{"value", QN_ATTR_TENSOR},        {"sparse_value", QN_ATTR_TENSOR},
                 {"value_int", QN_ATTR_INT},       {"value_ints", QN_ATTR_INTS},
                 {"value_float", QN_ATTR_FLOAT},   {"value_floats", QN_ATTR_FLOATS},
                 {"value_string", QN_ATTR_STRING}, {"value_strings", QN_ATTR_STRINGS}};
    qn_onnx_import *import = scope->import;
    qn_onnx_argument argument = {.attribute = NULL};
    if (qn_proto_count(node, QN_ONNX_NODE_ATTRIBUTE) == 1)
        QN_TRY(qn_onnx_resolve(&argument, scope,
                               qn_proto_message_at(node, QN_ONNX_NODE_ATTRIBUTE, 0)));
    if (!argument.attribute)
        return qn_fail(import->ctx, QN_E_FORMAT, "a constant has exactly one value");
    size_t i = 0;
    while (i < QN_COUNT_OF(words) && strcmp(words[i].name, argument.name) != 0)
        i++;
    if (i == QN_COUNT_OF(words))
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "attribute '%s' is not known", argument.name);
    QN_TRY(check_form(import, words[i].kind, argument.attribute));
    if (words[i].kind == QN_ATTR_TENSOR) {
        const qn_tensor *tensor = NULL;
        QN_TRY(read_tensor(&tensor, import, argument.attribute));
        *out = *tensor;
        return QN_OK;
    }
    if (words[i].kind == QN_ATTR_STRING || words[i].kind == QN_ATTR_STRINGS)
        return constant_strings(out, import, words[i].kind == QN_ATTR_STRINGS, argument.attribute);
    return constant_numbers(out, import, argument.name, argument.attribute);
}
