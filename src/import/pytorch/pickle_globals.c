/* The names that a pickle may ask for, and what each of them means here. */
#include <stdio.h>
#include <string.h>

#include "import/pytorch/pickle_machine.h"

typedef qn_status global_fn(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments);

static const qn_torch_value nothing = {.kind = QN_TORCH_NONE};

static const qn_torch_value *argument(const qn_torch_list *arguments, size_t i)
{
    return i < arguments->count ? &arguments->at[i] : &nothing;
}

static qn_status read_dims(int64_t *out, int32_t *rank, const qn_pickle *p,
                           const qn_torch_value *value)
{
    *rank = 0;
    if (!qn_torch_is_items(value) || value->list->count > QN_MAX_RANK)
        return qn_pickle_fail(p, QN_E_FORMAT, "a tensor without a shape");
    *rank = (int32_t)value->list->count;
    for (size_t i = 0; i < value->list->count; i++) {
        if (value->list->at[i].kind != QN_TORCH_INT)
            return qn_pickle_fail(p, QN_E_FORMAT, "a tensor without a shape");
        out[i] = value->list->at[i].number;
    }
    return QN_OK;
}

/* (storage, offset, size, stride, ...) */
static qn_status make_tensor(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments)
{
    const qn_torch_value *storage = argument(arguments, 0), *offset = argument(arguments, 1);
    int32_t n_strides;
    if (storage->kind != QN_TORCH_STORAGE || offset->kind != QN_TORCH_INT)
        return qn_pickle_fail(p, QN_E_FORMAT, "a tensor without a storage");
    qn_torch_tensor *tensor = qn_arena_alloc(p->arena, sizeof *tensor);
    QN_TRY_ALLOC(p->ctx, tensor);
    tensor->storage = storage->storage;
    tensor->dtype = storage->storage->dtype;
    tensor->offset = offset->number;
    QN_TRY(read_dims(tensor->dims, &tensor->rank, p, argument(arguments, 2)));
    QN_TRY(read_dims(tensor->strides, &n_strides, p, argument(arguments, 3)));
    if (n_strides != tensor->rank)
        return qn_pickle_fail(p, QN_E_FORMAT, "a tensor whose strides are not as many as its axes");
    *out = (qn_torch_value){.kind = QN_TORCH_TENSOR, .tensor = tensor};
    return QN_OK;
}

static qn_status make_dict(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments)
{
    (void)arguments;
    return qn_torch_new_list(out, p->ctx, p->arena, QN_TORCH_DICT);
}

/* A parameter is its tensor, a torch.Size its tuple, a list of integers its list. */
static qn_status make_first(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments)
{
    (void)p;
    *out = *argument(arguments, 0);
    return QN_OK;
}

static qn_status make_nothing(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments)
{
    (void)p;
    (void)arguments;
    *out = QN_TORCH_NOTHING;
    return QN_OK;
}

static qn_status make_typed(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments);

static const struct {
    const char *name;
    global_fn *make;
} functions[] = {
    {"collections.OrderedDict", make_dict},
    {"torch._utils._rebuild_tensor_v2", make_tensor},
    {"torch._utils._rebuild_tensor", make_tensor},
    {"torch._utils._rebuild_parameter", make_first},
    {"torch._utils._rebuild_parameter_with_state", make_first},
    {"torch._tensor._rebuild_from_type_v2", make_typed},
    {"torch.Size", make_first},
    {"torch.device", make_nothing},
    {"torch.jit._pickle.build_intlist", make_first},
    {"torch.jit._pickle.build_doublelist", make_first},
    {"torch.jit._pickle.build_boollist", make_first},
    {"torch.jit._pickle.build_tensorlist", make_first},
    {"torch.jit._pickle.restore_type_tag", make_first},
    {"torch.nn.parameter.Parameter", make_first},
    {"torch.Tensor", make_first},
};

static const struct {
    const char *name;
    qn_dtype dtype;
} storages[] = {
    {"torch.FloatStorage", QN_FLOAT32},
    {"torch.DoubleStorage", QN_FLOAT64},
    {"torch.HalfStorage", QN_FLOAT16},
    {"torch.BFloat16Storage", QN_BFLOAT16},
    {"torch.LongStorage", QN_INT64},
    {"torch.IntStorage", QN_INT32},
    {"torch.ShortStorage", QN_INT16},
    {"torch.CharStorage", QN_INT8},
    {"torch.ByteStorage", QN_UINT8},
    {"torch.BoolStorage", QN_BOOL},
    {"torch.storage.UntypedStorage", QN_UINT8},
};

static const struct {
    const char *name;
    qn_dtype dtype;
} words[] = {
    {"torch.float32", QN_FLOAT32},   {"torch.float64", QN_FLOAT64}, {"torch.float16", QN_FLOAT16},
    {"torch.bfloat16", QN_BFLOAT16}, {"torch.int64", QN_INT64},     {"torch.int32", QN_INT32},
    {"torch.int16", QN_INT16},       {"torch.int8", QN_INT8},       {"torch.uint8", QN_UINT8},
    {"torch.bool", QN_BOOL},
};

static global_fn *function_of(const char *name)
{
    for (size_t i = 0; i < QN_COUNT_OF(functions); i++) {
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].make;
    }
    return NULL;
}

static qn_dtype storage_of(const char *name)
{
    for (size_t i = 0; i < QN_COUNT_OF(storages); i++) {
        if (strcmp(storages[i].name, name) == 0)
            return storages[i].dtype;
    }
    return QN_UNDEFINED;
}

static bool is_class(const char *name)
{
    return strncmp(name, "__torch__.", 10) == 0;
}

/* What people save that has more than tensors, by how its names begin. */
static qn_status refuse(qn_pickle *p, const char *whole)
{
    static const struct {
        const char *begin, *hint;
    } hints[] = {
        {"torch._utils._rebuild_qtensor", "its weights were quantized by PyTorch: give the float "
                                          "model, which quench quantizes"},
        {"torch.nn.modules.", "a module needs its classes: save its weights (state_dict) for a "
                              "script, or the model with torch.export.save or torch.jit.save"},
    };
    for (size_t i = 0; i < QN_COUNT_OF(hints); i++) {
        if (strncmp(whole, hints[i].begin, strlen(hints[i].begin)) == 0)
            return qn_pickle_fail(p, QN_E_UNSUPPORTED, "it asks for '%s': %s", whole,
                                  hints[i].hint);
    }
    return qn_pickle_fail(p, QN_E_UNSUPPORTED,
                          "it asks for '%s'; only tensors are read from pickles, code is never run",
                          whole);
}

qn_status qn_pickle_global(qn_pickle *p, const char *module, const char *name)
{
    const char *whole = qn_arena_format(p->arena, "%s.%s", module, name);
    QN_TRY_ALLOC(p->ctx, whole);
    qn_torch_value value = {.kind = QN_TORCH_GLOBAL, .text = whole};
    for (size_t i = 0; i < QN_COUNT_OF(words); i++) {
        if (strcmp(words[i].name, whole) != 0)
            continue;
        value = qn_torch_int(qn_torch_dtype_number(words[i].dtype));
        return qn_pickle_push(p, &value);
    }
    if (!function_of(whole) && storage_of(whole) == QN_UNDEFINED && !is_class(whole))
        return refuse(p, whole);
    return qn_pickle_push(p, &value);
}

static qn_status new_object(qn_torch_value *out, qn_pickle *p, const char *type)
{
    *out = (qn_torch_value){.kind = QN_TORCH_OBJECT,
                            .object = qn_arena_alloc(p->arena, sizeof *out->object)};
    QN_TRY_ALLOC(p->ctx, out->object);
    out->object->type = type;
    return QN_OK;
}

static qn_status apply(qn_torch_value *out, qn_pickle *p, const qn_torch_value *callee,
                       const qn_torch_value *arguments)
{
    if (callee->kind != QN_TORCH_GLOBAL || !qn_torch_is_items(arguments))
        return qn_pickle_fail(p, QN_E_FORMAT, "calls %s", qn_torch_kind_name(callee->kind));
    global_fn *make = function_of(callee->text);
    if (make)
        return make(out, p, arguments->list);
    if (is_class(callee->text))
        return new_object(out, p, callee->text);
    return qn_pickle_fail(p, QN_E_UNSUPPORTED, "it calls '%s'", callee->text);
}

/* (function, type, arguments, state): what a subclass of tensors is rebuilt by. */
static qn_status make_typed(qn_torch_value *out, qn_pickle *p, const qn_torch_list *arguments)
{
    const qn_torch_value *callee = argument(arguments, 0);
    if (callee->kind == QN_TORCH_GLOBAL && function_of(callee->text) == make_typed)
        return qn_pickle_fail(p, QN_E_FORMAT, "a type of a type");
    return apply(out, p, callee, argument(arguments, 2));
}

qn_status qn_pickle_reduce(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value callee, arguments, made;
    (void)op;
    QN_TRY(qn_pickle_pop(&arguments, p));
    QN_TRY(qn_pickle_pop(&callee, p));
    QN_TRY(apply(&made, p, &callee, &arguments));
    return qn_pickle_push(p, &made);
}

qn_status qn_pickle_new_object(qn_pickle *p, const qn_pickle_opcode *op)
{
    return qn_pickle_reduce(p, op);
}

/* Fields of an object. What a dictionary is given so (a state dict's `_metadata`) means nothing
 * here. */
qn_status qn_pickle_build(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value state, object;
    (void)op;
    QN_TRY(qn_pickle_pop(&state, p));
    QN_TRY(qn_pickle_pop(&object, p));
    if (object.kind == QN_TORCH_OBJECT && state.kind == QN_TORCH_DICT)
        object.object->fields = *state.list;
    return qn_pickle_push(p, &object);
}

/* A storage that several tensors share is one. */
static qn_status find_storage(qn_torch_storage **out, const qn_pickle *p, const char *name,
                              qn_dtype dtype)
{
    const char *key = qn_arena_format(p->arena, "%s%s", p->folder, name);
    QN_TRY_ALLOC(p->ctx, key);
    *out = qn_names_get(p->storages, key);
    if (*out)
        return QN_OK;
    *out = qn_arena_alloc(p->arena, sizeof **out);
    QN_TRY_ALLOC(p->ctx, *out);
    **out = (qn_torch_storage){.key = key, .dtype = dtype};
    return qn_names_set(p->storages, key, *out);
}

/* ('storage', type, key, device, elements) */
qn_status qn_pickle_persistent(qn_pickle *p, const qn_pickle_opcode *op)
{
    qn_torch_value id, value = {.kind = QN_TORCH_STORAGE};
    (void)op;
    QN_TRY(qn_pickle_pop(&id, p));
    const qn_torch_value *type = qn_torch_is_items(&id) ? argument(id.list, 1) : &id;
    const qn_torch_value *key = type == &id ? &nothing : argument(id.list, 2);
    if (key->kind != QN_TORCH_TEXT || type->kind != QN_TORCH_GLOBAL ||
        storage_of(type->text) == QN_UNDEFINED)
        return qn_pickle_fail(p, QN_E_UNSUPPORTED, "a storage of no known type");
    QN_TRY(find_storage(&value.storage, p, key->text, storage_of(type->text)));
    return qn_pickle_push(p, &value);
}
