/* Parameters: tensors one behind the other in one file, in the order of their sorted names, or a
 * file for each, called as the variable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "import/paddle/paddle.h"

/* ---- Where they are -------------------------------------------------------------------------- */

static bool is_file(const char *path)
{
    FILE *file = qn_folder_is(path) ? NULL : fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

/* The path up to its last '/', that included. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* net.pdmodel has net.pdiparams beside it, __model__ has __params__ or a file per parameter. */
static qn_status find_beside(const char **out, const qn_paddle_program *p, const char *program)
{
    static const char *const usual[] = {"__params__", "params", "inference.pdiparams",
                                        "model.pdiparams"};
    const int folder = (int)folder_length(program);
    const char *dot = strrchr(program + folder, '.');
    const int stem = dot ? (int)(dot - program) : (int)strlen(program);
    *out = qn_arena_format(p->arena, "%.*s.pdiparams", stem, program);
    QN_TRY_ALLOC(p->ctx, *out);
    if (is_file(*out))
        return QN_OK;
    for (size_t i = 0; i < QN_COUNT_OF(usual); i++) {
        *out = qn_arena_format(p->arena, "%.*s%s", folder, program, usual[i]);
        QN_TRY_ALLOC(p->ctx, *out);
        if (is_file(*out))
            return QN_OK;
    }
    *out = qn_arena_format(p->arena, "%.*s%s", folder, program, folder ? "" : ".");
    QN_TRY_ALLOC(p->ctx, *out);
    return QN_OK;
}

qn_status qn_paddle_find_parameters(const char **out, qn_paddle_program *p,
                                    const qn_model_source *source, const char *program)
{
    *out = source->options->weights;
    return *out ? QN_OK : find_beside(out, p, program);
}

/* ---- One tensor ------------------------------------------------------------------------------ */

typedef struct tensor_reader {
    const qn_paddle_program *p;
    const uint8_t *data;
    size_t size, at;
} tensor_reader;

/* A little-endian number of `width` bytes. */
static bool take_number(uint64_t *out, tensor_reader *r, size_t width)
{
    if (width > r->size - r->at)
        return false;
    *out = 0;
    for (size_t i = 0; i < width; i++)
        *out |= (uint64_t)r->data[r->at + i] << (8 * i);
    r->at += width;
    return true;
}

static bool skip(tensor_reader *r, uint64_t bytes)
{
    if (bytes > r->size - r->at)
        return false;
    r->at += (size_t)bytes;
    return true;
}

/* A varint of the TensorDesc, which ends at `end`. */
static bool take_varint(uint64_t *out, tensor_reader *r, size_t end)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && r->at < end; shift += 7) {
        const uint8_t byte = r->data[r->at++];
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_dim(qn_type *type, tensor_reader *r, size_t end)
{
    uint64_t dim;
    if (type->rank == QN_MAX_RANK || !take_varint(&dim, r, end) || dim > INT64_MAX)
        return false;
    type->dims[type->rank++] = qn_dim_of((int64_t)dim);
    return true;
}

/* TensorDesc: field 1 the type, field 2 the dims, packed or not. */
static bool take_desc(qn_type *type, tensor_reader *r, size_t end)
{
    *type = (qn_type){.kind = QN_TYPE_TENSOR};
    while (r->at < end) {
        uint64_t tag, value, length;
        if (!take_varint(&tag, r, end))
            return false;
        if (tag == (1 << 3) && take_varint(&value, r, end)) {
            type->dtype = qn_paddle_dtype_of((int64_t)QN_MIN(value, UINT64_C(1000)));
        } else if (tag == (2 << 3)) {
            if (!take_dim(type, r, end))
                return false;
        } else if (tag == (2 << 3 | 2) && take_varint(&length, r, end) && length <= end - r->at) {
            for (const size_t last = r->at + (size_t)length; r->at < last;) {
                if (!take_dim(type, r, last))
                    return false;
            }
        } else {
            return false;
        }
    }
    return type->dtype != QN_UNDEFINED;
}

/* uint32 version, uint64 levels, each with its length and bytes, uint32 version, int32 length of
 * the TensorDesc, the TensorDesc, the elements. */
static bool take_tensor(qn_type *type, qn_string *bytes, tensor_reader *r)
{
    uint64_t version, levels, length;
    int64_t dims[QN_MAX_RANK];
    size_t wanted;
    if (!take_number(&version, r, 4) || version != 0 || !take_number(&levels, r, 8))
        return false;
    for (uint64_t i = 0; i < levels; i++) {
        if (!take_number(&length, r, 8) || !skip(r, length))
            return false;
    }
    if (!take_number(&version, r, 4) || version != 0 || !take_number(&length, r, 4))
        return false;
    if (length > r->size - r->at || !take_desc(type, r, r->at + (size_t)length))
        return false;
    if (!qn_type_is_static(type, dims) || !qn_tensor_bytes(&wanted, type->dtype, type->rank, dims))
        return false;
    *bytes = (qn_string){(const char *)r->data + r->at, wanted};
    return skip(r, wanted);
}

/* ---- The ones that the program has ----------------------------------------------------------- */

/* The layer that has the parameter. */
static const qn_paddle_op *user_of(const qn_paddle_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_ops; i++) {
        const qn_paddle_op *op = &p->ops[i];
        for (size_t s = 0; s < op->n_in; s++) {
            for (size_t k = 0; k < op->in[s].count; k++) {
                if (strcmp(op->in[s].vars[k], name) == 0)
                    return op;
            }
        }
    }
    return NULL;
}

static bool same_dims(const qn_type *a, const qn_type *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i].value < 0 || a->dims[i].value == b->dims[i].value;
    return same;
}

static qn_status fit(qn_paddle_parameter *parameter, const qn_paddle_program *p,
                     const qn_type *type, qn_string bytes)
{
    char want[128], have[128];
    if (same_dims(&parameter->type, type)) {
        parameter->type = *type;
        parameter->bytes = bytes;
        return QN_OK;
    }
    const qn_paddle_op *op = user_of(p, parameter->name);
    const char *layer = op && op->n_out && op->out[0].count ? op->out[0].vars[0] : "";
    qn_type_format(want, sizeof want, &parameter->type);
    qn_type_format(have, sizeof have, type);
    return qn_fail(p->ctx, QN_E_FORMAT,
                   "the parameter '%s' of layer '%s' (%s) is %s, the file of parameters has %s "
                   "there: are they of another model?",
                   parameter->name, layer, op ? op->type : "none", want, have);
}

static int by_name(const void *left, const void *right)
{
    const qn_paddle_parameter *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static qn_status fail_tensor(const tensor_reader *r, const qn_paddle_parameter *parameter)
{
    return qn_fail(r->p->ctx, QN_E_FORMAT,
                   "the parameter '%s' has no tensor at byte %zu of %zu of the file of parameters",
                   parameter->name, r->at, r->size);
}

qn_status qn_paddle_read_parameters(qn_paddle_program *p, const void *data, size_t size)
{
    tensor_reader r = {p, data, size, 0};
    qn_type type;
    qn_string bytes;
    if (p->n_parameters)
        qsort(p->parameters, p->n_parameters, sizeof *p->parameters, by_name);
    for (size_t i = 0; i < p->n_parameters; i++) {
        const size_t from = r.at;
        if (!take_tensor(&type, &bytes, &r)) {
            r.at = from;
            return fail_tensor(&r, &p->parameters[i]);
        }
        QN_TRY(fit(&p->parameters[i], p, &type, bytes));
    }
    if (r.at != size)
        return qn_fail(p->ctx, QN_E_FORMAT,
                       "the file of parameters goes on for %zu bytes behind the %zu that the model "
                       "has: are they of another model?",
                       size - r.at, p->n_parameters);
    return QN_OK;
}

static qn_status load_one(qn_paddle_parameter *parameter, qn_paddle_program *p, qn_model *model,
                          const char *folder)
{
    const size_t length = strlen(folder);
    const char *between = length && folder[length - 1] != '/' ? "/" : "";
    const char *path = qn_arena_format(p->arena, "%s%s%s", folder, between, parameter->name);
    qn_map map;
    qn_type type;
    qn_string bytes;
    QN_TRY_ALLOC(p->ctx, path);
    QN_TRY(qn_map_open(&map, p->ctx, path));
    const qn_status status = qn_import_keep_map(model, &map);
    if (status != QN_OK) {
        qn_map_close(&map);
        return status;
    }
    const qn_map *kept = &model->maps[model->n_maps - 1];
    tensor_reader r = {p, kept->data, kept->size, 0};
    if (!take_tensor(&type, &bytes, &r)) {
        r.at = 0;
        return fail_tensor(&r, parameter);
    }
    return fit(parameter, p, &type, bytes);
}

qn_status qn_paddle_load_parameters(qn_paddle_program *p, qn_model *model, const char *path)
{
    qn_map map;
    if (p->n_parameters == 0)
        return QN_OK;
    if (qn_folder_is(path)) {
        for (size_t i = 0; i < p->n_parameters; i++)
            QN_TRY(load_one(&p->parameters[i], p, model, path));
        return QN_OK;
    }
    QN_TRY(qn_map_open(&map, p->ctx, path));
    const qn_status status = qn_import_keep_map(model, &map);
    if (status != QN_OK) {
        qn_map_close(&map);
        return status;
    }
    const qn_map *kept = &model->maps[model->n_maps - 1];
    const qn_status read = qn_paddle_read_parameters(p, kept->data, kept->size);
    return read == QN_OK ? QN_OK : qn_fail_within(p->ctx, read, "%s", path);
}
