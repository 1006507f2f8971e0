/* HDF5 files through libhdf5, which all contexts of a process share: one thread at a time. */
#include "base/hdf5.h"

#include <pthread.h>
#include <string.h>

#include <hdf5.h>

struct qn_hdf5 {
    qn_context *ctx;
    const qn_map *map;
    hid_t file;
};

/* Debian's libhdf5 is built for one thread. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&one_at_a_time);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* it would print */
}

static qn_status unlock(qn_status status)
{
    H5Eclear2(H5E_DEFAULT);
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static hid_t open_file(const char *path)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = -1;
    if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (access >= 0)
        H5Pclose(access);
    return file;
}

/* libhdf5 would copy what it is given: these make it take the map itself, which it only reads. */
static void *image_malloc(size_t size, H5FD_file_image_op_t operation, void *map)
{
    (void)operation;
    return size == ((const qn_map *)map)->size ? (void *)(uintptr_t)((const qn_map *)map)->data
                                               : NULL;
}

static void *image_copy(void *to, const void *from, size_t size, H5FD_file_image_op_t operation,
                        void *map)
{
    (void)from;
    (void)size;
    (void)operation;
    (void)map;
    return to;
}

static void *image_realloc(void *data, size_t size, H5FD_file_image_op_t operation, void *map)
{
    (void)data;
    (void)size;
    (void)operation;
    (void)map;
    return NULL;
}

static herr_t image_free(void *data, H5FD_file_image_op_t operation, void *map)
{
    (void)data;
    (void)operation;
    (void)map;
    return 0;
}

static void *map_copy(void *map)
{
    return map;
}

static herr_t map_free(void *map)
{
    (void)map;
    return 0;
}

static hid_t open_image(const qn_map *map)
{
    H5FD_file_image_callbacks_t calls = {
        image_malloc, image_copy, image_realloc,         image_free,
        map_copy,     map_free,   (void *)(uintptr_t)map};
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t file = -1;
    if (access >= 0 && H5Pset_fapl_core(access, 1 << 16, false) >= 0 &&
        H5Pset_file_image_callbacks(access, &calls) >= 0 &&
        H5Pset_file_image(access, (void *)(uintptr_t)map->data, map->size) >= 0)
        file = H5Fopen("memory", H5F_ACC_RDONLY, access);
    if (access >= 0)
        H5Pclose(access);
    return file;
}

static qn_status open_locked(qn_hdf5 *file, const char *path)
{
    file->file = path ? open_file(path) : open_image(file->map);
    return file->file < 0 ? qn_fail(file->ctx, QN_E_FORMAT, "no HDF5 file, or a damaged one")
                          : QN_OK;
}

/* `path` NULL: the file lies in the map. */
static qn_status open_any(qn_hdf5 **out, qn_context *ctx, const char *path, const qn_map *map)
{
    qn_hdf5 *file = qn_alloc(ctx, sizeof *file);
    *out = NULL;
    QN_TRY_ALLOC(ctx, file);
    *file = (qn_hdf5){.ctx = ctx, .map = map, .file = -1};
    lock();
    const qn_status status = unlock(open_locked(file, path));
    if (status == QN_OK)
        *out = file;
    else
        qn_hdf5_close(file);
    return status;
}

qn_status qn_hdf5_open(qn_hdf5 **out, qn_context *ctx, const char *path, const qn_map *map)
{
    return open_any(out, ctx, path, map);
}

qn_status qn_hdf5_open_memory(qn_hdf5 **out, qn_context *ctx, const qn_map *map)
{
    return open_any(out, ctx, NULL, map);
}

void qn_hdf5_close(qn_hdf5 *file)
{
    if (!file)
        return;
    lock();
    if (file->file >= 0)
        H5Fclose(file->file);
    (void)unlock(QN_OK);
    qn_free(file->ctx, file);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Whether all parts of the path are real members: other links may lead anywhere. */
static bool is_inside(const qn_hdf5 *file, const char *path)
{
    char part[1024];
    H5L_info_t info;
    const size_t length = strlen(path);
    for (size_t i = 1; i <= length && length < sizeof part; i++) {
        if ((path[i] != '/' && path[i] != 0) || path[i - 1] == '/')
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (H5Lget_info(file->file, part, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
            return false;
    }
    return length < sizeof part;
}

static hid_t open_object(const qn_hdf5 *file, const char *path)
{
    return is_inside(file, path) ? H5Oopen(file->file, path, H5P_DEFAULT) : -1;
}

static qn_hdf5_kind kind_of(const qn_hdf5 *file, const char *path)
{
    const hid_t object = open_object(file, path);
    if (object < 0)
        return QN_HDF5_NOTHING;
    const H5I_type_t type = H5Iget_type(object);
    H5Oclose(object);
    return type == H5I_GROUP     ? QN_HDF5_GROUP
           : type == H5I_DATASET ? QN_HDF5_ARRAY
                                 : QN_HDF5_NOTHING;
}

qn_hdf5_kind qn_hdf5_kind_of(const qn_hdf5 *file, const char *path)
{
    lock();
    const qn_hdf5_kind kind = kind_of(file, path);
    (void)unlock(QN_OK);
    return kind;
}

static qn_status fail_object(const qn_hdf5 *file, const char *path, const char *what)
{
    return qn_fail(file->ctx, QN_E_FORMAT, "'%s' %s", path, what);
}

static qn_status read_names(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena, hid_t group)
{
    H5G_info_t info;
    if (H5Gget_info(group, &info) < 0 || info.nlinks > file->map->size)
        return qn_fail(file->ctx, QN_E_FORMAT, "a group is damaged");
    out->at = qn_arena_array(arena, (size_t)info.nlinks, sizeof *out->at);
    QN_TRY_ALLOC(file->ctx, out->at);
    for (hsize_t i = 0; i < info.nlinks; i++) {
        const ssize_t length =
            H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, NULL, 0, H5P_DEFAULT);
        if (length < 0 || (size_t)length > file->map->size)
            return qn_fail(file->ctx, QN_E_FORMAT, "a name in a group is damaged");
        char *name = qn_arena_alloc(arena, (size_t)length + 1);
        QN_TRY_ALLOC(file->ctx, name);
        if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, (size_t)length + 1,
                               H5P_DEFAULT) < 0)
            return qn_fail(file->ctx, QN_E_FORMAT, "a name in a group is damaged");
        out->at[out->count++] = name;
    }
    return QN_OK;
}

static qn_status members(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena, const char *path)
{
    const hid_t group = H5Gopen2(file->file, path, H5P_DEFAULT);
    if (group < 0)
        return fail_object(file, path, "is no group");
    const qn_status status = read_names(out, file, arena, group);
    H5Gclose(group);
    return status;
}

qn_status qn_hdf5_members(qn_hdf5_texts *out, qn_hdf5 *file, qn_arena *arena, const char *group)
{
    *out = (qn_hdf5_texts){NULL, 0};
    lock();
    return unlock(kind_of(file, group) == QN_HDF5_GROUP
                      ? members(out, file, arena, group)
                      : fail_object(file, group, "is no group of this file"));
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

static qn_dtype integer_dtype(size_t size, bool has_sign)
{
    switch (size) {
    case 1: return has_sign ? QN_INT8 : QN_UINT8;
    case 2: return has_sign ? QN_INT16 : QN_UINT16;
    case 4: return has_sign ? QN_INT32 : QN_UINT32;
    case 8: return has_sign ? QN_INT64 : QN_UINT64;
    default: return QN_UNDEFINED;
    }
}

static qn_dtype dtype_of(hid_t type)
{
    const size_t size = H5Tget_size(type);
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: return integer_dtype(size, H5Tget_sign(type) == H5T_SGN_2);
    case H5T_FLOAT:
        return size == 2   ? QN_FLOAT16
               : size == 4 ? QN_FLOAT32
               : size == 8 ? QN_FLOAT64
                           : QN_UNDEFINED;
    case H5T_ENUM: return size == 1 ? QN_BOOL : QN_UNDEFINED; /* h5py's form of booleans */
    default: return QN_UNDEFINED;
    }
}

/* Elements may be compressed; no stored byte can mean more than this many. */
enum { MOST_PER_BYTE = 1100 };

static qn_status take_shape(qn_hdf5_array *out, const qn_hdf5 *file, hid_t space, size_t element)
{
    hsize_t dims[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0 || rank > QN_MAX_RANK || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return qn_fail(file->ctx, QN_E_FORMAT, "more than %d dimensions", QN_MAX_RANK);
    out->rank = rank;
    out->size = element;
    for (int i = 0; i < rank; i++) {
        if (dims[i] > INT64_MAX || !qn_mul_size(&out->size, out->size, (size_t)dims[i]) ||
            out->size / MOST_PER_BYTE > file->map->size)
            return qn_fail(file->ctx, QN_E_FORMAT, "more elements than the file has bytes for");
        out->dims[i] = (int64_t)dims[i];
    }
    return QN_OK;
}

/* Where the file has the numbers as they are wanted; NULL: nowhere. */
static const void *place_of(const qn_hdf5 *file, hid_t set, hid_t layout, size_t size)
{
    const haddr_t offset = H5Dget_offset(set);
    if (H5Pget_layout(layout) != H5D_CONTIGUOUS || offset == HADDR_UNDEF ||
        offset > file->map->size || size > file->map->size - offset)
        return NULL;
    return file->map->data + offset;
}

static bool is_elsewhere(hid_t layout)
{
    return H5Pget_external_count(layout) > 0 || H5Pget_layout(layout) == H5D_VIRTUAL;
}

static qn_status read_numbers(qn_hdf5_array *out, const qn_hdf5 *file, qn_arena *arena, hid_t set,
                              hid_t type)
{
    const hid_t native = H5Tget_native_type(type, H5T_DIR_ASCEND);
    const hid_t layout = H5Dget_create_plist(set);
    qn_status status = QN_OK;
    if (native < 0 || layout < 0 || is_elsewhere(layout))
        status = qn_fail(file->ctx, QN_E_FORMAT, "the numbers lie in another file");
    else if (H5Tequal(native, type) > 0)
        out->data = place_of(file, set, layout, out->size);
    if (status == QN_OK && !out->data) {
        void *numbers = qn_arena_alloc(arena, out->size);
        if (!numbers)
            status = qn_fail_bytes(file->ctx, out->size, "an array of an HDF5 file");
        /* A 16-bit float has no native type of its own: it is read as it is. */
        else if (H5Dread(set, out->dtype == QN_FLOAT16 ? type : native, H5S_ALL, H5S_ALL,
                         H5P_DEFAULT, numbers) < 0)
            status = qn_fail(file->ctx, QN_E_FORMAT, "the numbers are damaged");
        out->data = numbers;
    }
    if (layout >= 0)
        H5Pclose(layout);
    if (native >= 0)
        H5Tclose(native);
    return status;
}

static qn_status read_set(qn_hdf5_array *out, const qn_hdf5 *file, qn_arena *arena, hid_t set)
{
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    qn_status status = QN_OK;
    out->dtype = type < 0 ? QN_UNDEFINED : dtype_of(type);
    if (space < 0 || out->dtype == QN_UNDEFINED)
        status = qn_fail(file->ctx, QN_E_FORMAT, "these are no numbers");
    if (status == QN_OK)
        status = take_shape(out, file, space, H5Tget_size(type));
    if (status == QN_OK)
        status = read_numbers(out, file, arena, set, type);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return status == QN_OK ? QN_OK : status;
}

static qn_status read_array(qn_hdf5_array *out, const qn_hdf5 *file, qn_arena *arena,
                            const char *path)
{
    const hid_t set = H5Dopen2(file->file, path, H5P_DEFAULT);
    if (set < 0)
        return fail_object(file, path, "is no array");
    const qn_status status = read_set(out, file, arena, set);
    H5Dclose(set);
    return status == QN_OK ? QN_OK : qn_fail_within(file->ctx, status, "'%s'", path);
}

qn_status qn_hdf5_read(qn_hdf5_array *out, qn_hdf5 *file, qn_arena *arena, const char *path)
{
    *out = (qn_hdf5_array){.data = NULL};
    lock();
    return unlock(kind_of(file, path) == QN_HDF5_ARRAY
                      ? read_array(out, file, arena, path)
                      : fail_object(file, path, "is no array of this file"));
}

/* ---- Attributes ------------------------------------------------------------------------------ */

/* Texts of one length each, filled up with zeros or blanks. */
static qn_status read_fixed(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena,
                            hid_t attribute, hid_t type)
{
    const size_t length = H5Tget_size(type);
    size_t total;
    if (length == 0 || !qn_mul_size(&total, length, out->count) || total > file->map->size)
        return qn_fail(file->ctx, QN_E_FORMAT, "its texts are longer than the file");
    char *bytes = qn_arena_alloc(arena, total);
    QN_TRY_ALLOC(file->ctx, bytes);
    if (H5Aread(attribute, type, bytes) < 0)
        return qn_fail(file->ctx, QN_E_FORMAT, "its texts are damaged");
    for (size_t i = 0; i < out->count; i++) {
        const char *text = bytes + i * length;
        out->at[i] = qn_arena_text(arena, text, strnlen(text, length));
        QN_TRY_ALLOC(file->ctx, out->at[i]);
    }
    return QN_OK;
}

static qn_status read_variable(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena,
                               hid_t attribute, hid_t type)
{
    const hid_t space = H5Aget_space(attribute);
    char **texts = qn_arena_array(arena, out->count, sizeof *texts);
    qn_status status = QN_OK;
    if (!texts || space < 0)
        status = qn_fail_nomem(file->ctx);
    else if (H5Aread(attribute, type, texts) < 0)
        status = qn_fail(file->ctx, QN_E_FORMAT, "its texts are damaged");
    for (size_t i = 0; i < out->count && status == QN_OK; i++) {
        out->at[i] =
            qn_arena_text(arena, texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0);
        if (!out->at[i])
            status = qn_fail_nomem(file->ctx);
    }
    if (texts && space >= 0)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

static qn_status read_texts(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena,
                            hid_t attribute, hid_t type)
{
    const hid_t space = H5Aget_space(attribute);
    const hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (space >= 0)
        H5Sclose(space);
    if (count == 0)
        return QN_OK; /* an empty list has whatever type its writer chose */
    if (H5Tget_class(type) != H5T_STRING)
        return qn_fail(file->ctx, QN_E_FORMAT, "it is no text");
    if (count < 0 || (size_t)count > file->map->size)
        return qn_fail(file->ctx, QN_E_FORMAT, "it has more texts than the file has bytes");
    out->count = (size_t)count;
    out->at = qn_arena_array(arena, out->count, sizeof *out->at);
    QN_TRY_ALLOC(file->ctx, out->at);
    return H5Tis_variable_str(type) > 0 ? read_variable(out, file, arena, attribute, type)
                                        : read_fixed(out, file, arena, attribute, type);
}

static qn_status read_attribute(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena,
                                hid_t object, const char *name)
{
    if (H5Aexists(object, name) <= 0)
        return QN_OK;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    const qn_status status = type < 0 ? qn_fail(file->ctx, QN_E_FORMAT, "it is damaged")
                                      : read_texts(out, file, arena, attribute, type);
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return status == QN_OK ? QN_OK : qn_fail_within(file->ctx, status, "attribute '%s'", name);
}

static qn_status attribute_of(qn_hdf5_texts *out, const qn_hdf5 *file, qn_arena *arena,
                              const char *path, const char *name)
{
    const hid_t object = open_object(file, path);
    if (object < 0)
        return fail_object(file, path, "is not in this file");
    const qn_status status = read_attribute(out, file, arena, object, name);
    H5Oclose(object);
    return status == QN_OK ? QN_OK : qn_fail_within(file->ctx, status, "'%s'", path);
}

qn_status qn_hdf5_attribute(qn_hdf5_texts *out, qn_hdf5 *file, qn_arena *arena, const char *object,
                            const char *name)
{
    *out = (qn_hdf5_texts){NULL, 0};
    lock();
    return unlock(attribute_of(out, file, arena, object, name));
}
