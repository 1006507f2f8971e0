/* Pictures: one file per sample, or all in one file (IDX, CIFAR). */
#include <string.h>

#include "data/dataset_source.h"

typedef struct pictures pictures;
typedef qn_status fetch_fn(qn_image *out, qn_context *ctx, const qn_dataset_source *source,
                           int64_t i);

struct pictures {
    fetch_fn *fetch;
    /* The input that the pictures feed. */
    size_t input;
    qn_preprocess preprocess;
    qn_pixel_table table;
    /* -1: of the picture at hand */
    qn_picture_shape shape;
    const qn_dataset_input *in;
    /* The context of the bytes. */
    qn_context *ctx;
    qn_file_bytes bytes;
    /* The first of several pictures in one file: each is [channels][height][width], `stride` bytes
     * after the one before. */
    const uint8_t *first;
    int64_t stride;
    int32_t channels, height, width;
};

/* ---- The model's input ----------------------------------------------------------------------- */

static bool is_channels(int64_t dim)
{
    return dim == 1 || dim == 3;
}

static qn_status choose_layout(bool *nhwc, qn_dataset_builder *o, const qn_value_info *info)
{
    const bool first = is_channels(info->dims[1]), last = is_channels(info->dims[3]);
    *nhwc = o->preprocess.layout == QN_AXES_NHWC || (last && !first);
    if (o->preprocess.layout == QN_AXES_AUTO && first && last)
        return qn_fail(o->ctx, QN_E_INVALID,
                       "input '%s' could be nchw or nhwc: say which in `preprocess`", info->name);
    if (o->preprocess.layout == QN_AXES_NCHW)
        *nhwc = false;
    return QN_OK;
}

/* [N,C,H,W], [N,H,W,C], [N,H,W] or [N,anything]. */
static qn_status input_shape(qn_picture_shape *out, qn_dataset_builder *o,
                             const qn_value_info *info)
{
    const int64_t *d = info->dims;
    *out = (qn_picture_shape){info->dtype, -1, -1, -1, false};
    if (info->dtype == QN_UNDEFINED || !qn_dtype_size(info->dtype) || info->dtype == QN_STRING)
        return qn_fail(o->ctx, QN_E_INVALID, "pictures for input '%s', which has no numbers",
                       info->name);
    if (info->rank == 4) {
        QN_TRY(choose_layout(&out->nhwc, o, info));
        out->channels = out->nhwc ? d[3] : d[1];
        out->height = out->nhwc ? d[1] : d[2];
        out->width = out->nhwc ? d[2] : d[3];
    } else if (info->rank == 3) {
        out->channels = 1;
        out->height = d[1];
        out->width = d[2];
    } else if (info->rank != 2) {
        return qn_fail(o->ctx, QN_E_INVALID,
                       "pictures for input '%s' of %d dimensions: 2, 3 or 4 can be filled",
                       info->name, info->rank);
    }
    return QN_OK;
}

/* The dims of one sample for an input of this rank. Flat inputs keep the channels that the pictures
 * have. */
static void picture_dims(qn_tensor *out, int32_t rank, const qn_picture_shape *s)
{
    *out = (qn_tensor){.dtype = s->dtype, .rank = rank - 1};
    const int64_t planes[3] = {s->channels, s->height, s->width};
    const int64_t pixels[3] = {s->height, s->width, s->channels};
    if (rank == 4)
        memcpy(out->dims, s->nhwc ? pixels : planes, sizeof planes);
    else if (rank == 3)
        memcpy(out->dims, pixels, 2 * sizeof *pixels);
    else
        out->dims[0] = s->channels * s->height * s->width;
}

static qn_status check_flat(qn_dataset_builder *o, const qn_value_info *info,
                            const qn_tensor *sample)
{
    if (info->rank != 2 || info->dims[1] < 0 || info->dims[1] == sample->dims[0])
        return QN_OK;
    return qn_fail(o->ctx, QN_E_INVALID, "a picture has %lld numbers, input '%s' %lld",
                   (long long)sample->dims[0], info->name, (long long)info->dims[1]);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static qn_status fetch_file(qn_image *out, qn_context *ctx, const qn_dataset_source *source,
                            int64_t i)
{
    const pictures *p = source->own;
    qn_map map;
    QN_TRY(qn_map_open(&map, ctx, source->files->paths[i]));
    const qn_status status =
        qn_image_decode(out, ctx, map.data, map.size, p->preprocess.decoder, p->preprocess.rotate);
    qn_map_close(&map);
    return status == QN_OK ? QN_OK : qn_fail_within(ctx, status, "%s", source->files->paths[i]);
}

static qn_status fetch_record(qn_image *out, qn_context *ctx, const qn_dataset_source *source,
                              int64_t i)
{
    const pictures *p = source->own;
    QN_TRY(qn_image_create(out, ctx, p->width, p->height, p->channels));
    const size_t plane = (size_t)p->width * (size_t)p->height, n = (size_t)p->channels;
    const uint8_t *from = p->first + i * p->stride;
    for (size_t c = 0; c < n; c++) {
        for (size_t x = 0; x < plane; x++)
            out->pixels[x * n + c] = from[c * plane + x];
    }
    return QN_OK;
}

static qn_status within(qn_context *ctx, qn_status status, const qn_dataset_source *source,
                        int64_t i)
{
    if (status == QN_OK)
        return QN_OK;
    return source->files ? qn_fail_within(ctx, status, "%s", source->files->paths[i])
                         : qn_fail_within(ctx, status, "%s[%lld]", source->path, (long long)i);
}

/* Fetches a picture and applies all steps on pixels. */
static qn_status make_pixels(qn_image *out, qn_picture_place *place, qn_context *ctx,
                             const qn_dataset_source *source, int64_t i)
{
    const pictures *p = source->own;
    QN_TRY(p->fetch(out, ctx, source, i));
    const qn_status status = qn_preprocess_pixels(out, place, ctx, &p->preprocess);
    if (status != QN_OK)
        qn_image_free(out, ctx);
    return within(ctx, status, source, i);
}

/* Its place among others is as large as it was when the data were opened. */
static qn_status check_size(qn_context *ctx, const pictures *p, const qn_picture_shape *shape,
                            int64_t i)
{
    qn_tensor sample;
    picture_dims(&sample, p->in->sample.rank + 1, shape);
    const size_t size = (size_t)sample.rank * sizeof *sample.dims;
    return memcmp(sample.dims, p->in->dims[i], size) == 0
               ? QN_OK
               : qn_fail(ctx, QN_E_INVALID, "the picture has changed since it was looked at");
}

static qn_status read_sample(void *const *to, qn_picture_place *place,
                             const qn_dataset_source *source, qn_context *ctx, int64_t i)
{
    const pictures *p = source->own;
    qn_picture_shape shape = p->shape;
    qn_image image;
    QN_TRY(make_pixels(&image, place, ctx, source, i));
    qn_status status = qn_preprocess_bind(&shape, ctx, &p->preprocess, &image);
    if (status == QN_OK && p->in->dims)
        status = check_size(ctx, p, &shape, i);
    if (status == QN_OK)
        status = qn_preprocess_store(to[p->input], ctx, &p->preprocess, &p->table, &shape, &image);
    place->input_width = (int32_t)shape.width;
    place->input_height = (int32_t)shape.height;
    qn_image_free(&image, ctx);
    return within(ctx, status, source, i);
}

static qn_status read_picture(qn_image *out, const qn_dataset_source *source, qn_context *ctx,
                              int64_t i)
{
    const pictures *p = source->own;
    return p->fetch(out, ctx, source, i);
}

static void close_pictures(qn_dataset_source *source)
{
    pictures *p = source->own;
    qn_file_bytes_close(&p->bytes, p->ctx);
}

static const qn_dataset_source_kind pictures_kind = {read_sample, read_picture, close_pictures};

/* ---- Opening --------------------------------------------------------------------------------- */

static qn_status start(pictures **out, qn_dataset_source *source, qn_dataset_builder *o,
                       fetch_fn *fetch)
{
    pictures *p = qn_arena_alloc(o->arena, sizeof *p);
    QN_TRY_ALLOC(o->ctx, p);
    p->fetch = fetch;
    p->ctx = o->ctx;
    p->preprocess = o->preprocess;
    qn_pixel_table_make(&p->table, &p->preprocess);
    o->pictures = true;
    source->own = p;
    source->kind = &pictures_kind;
    *out = p;
    return QN_OK;
}

/* What is open in the shape becomes as the first picture has it. */
static qn_status bind_to_first(qn_picture_shape *shape, const qn_dataset_source *source,
                               qn_dataset_builder *o)
{
    const pictures *p = source->own;
    qn_image image;
    QN_TRY(make_pixels(&image, NULL, o->ctx, source, 0));
    if (o->spec->inputs[p->input].rank == 2)
        shape->channels = image.channels;
    const qn_status status = qn_preprocess_bind(shape, o->ctx, &p->preprocess, &image);
    qn_image_free(&image, o->ctx);
    return within(o->ctx, status, source, 0);
}

/* The size that picture i will have, by the head of its file. */
static qn_status measure(qn_image *out, const qn_dataset_source *source, qn_dataset_builder *o,
                         int64_t i)
{
    const pictures *p = source->own;
    qn_map map;
    QN_TRY(qn_map_open(&map, o->ctx, source->files->paths[i]));
    const qn_status status =
        qn_image_measure(out, o->ctx, map.data, map.size, p->preprocess.rotate);
    qn_map_close(&map);
    if (status == QN_OK)
        qn_preprocess_measure(out, &p->preprocess);
    return status;
}

/* Each picture may have a size of its own. */
static bool may_differ(const qn_dataset_source *source, const qn_value_info *info)
{
    const pictures *p = source->own;
    return source->files && info->rank > 2 && (p->shape.height < 0 || p->shape.width < 0) &&
           !qn_preprocess_fixes_size(&p->preprocess);
}

/* The sizes of all are noted; those open in the shape stay so where they differ. */
static qn_status look_at_all(const qn_dataset_source *source, qn_dataset_builder *o)
{
    const pictures *p = source->own;
    qn_tensor sample;
    qn_image size;
    QN_TRY(qn_dataset_builder_begin_shapes(o, p->input, source->count));
    for (int64_t i = 0; i < source->count; i++) {
        qn_picture_shape shape = p->shape;
        qn_status status = measure(&size, source, o, i);
        if (status == QN_OK)
            status = qn_preprocess_bind(&shape, o->ctx, &p->preprocess, &size);
        QN_TRY(within(o->ctx, status, source, i));
        picture_dims(&sample, o->spec->inputs[p->input].rank, &shape);
        QN_TRY(qn_dataset_builder_note_shape(o, p->input, i, &sample));
    }
    qn_dataset_builder_end_shapes(o, p->input, source->count);
    return QN_OK;
}

/* The first picture gives open dimensions their sizes, or each its own. */
static qn_status finish(qn_dataset_source *source, qn_dataset_builder *o, size_t named)
{
    pictures *p = source->own;
    qn_tensor sample;
    QN_TRY(qn_dataset_builder_input(&p->input, o, named, source->path));
    const qn_value_info *info = &o->spec->inputs[p->input];
    p->in = &o->in[p->input];
    QN_TRY(input_shape(&p->shape, o, info));
    qn_picture_shape first = p->shape;
    QN_TRY(bind_to_first(&first, source, o));
    picture_dims(&sample, info->rank, &first);
    QN_TRY(check_flat(o, info, &sample));
    QN_TRY(qn_dataset_builder_feed(o, p->input, &sample, false));
    if (may_differ(source, info))
        QN_TRY(look_at_all(source, o));
    if (!p->in->dims)
        p->shape = first;
    return QN_OK;
}

static bool is_picture(qn_context *ctx, const char *path)
{
    qn_map map;
    if (qn_map_open(&map, ctx, path) != QN_OK)
        return false;
    const bool is = qn_image_is_picture(map.data, map.size);
    qn_map_close(&map);
    return is;
}

/* Leaves out files that are no pictures, unless samples of other sources belong to them. */
static qn_status leave_out_others(qn_dataset_source *source, qn_dataset_builder *o)
{
    qn_listing *kept = qn_arena_copy(o->arena, source->files, sizeof *kept);
    const size_t count = (size_t)source->files->count;
    QN_TRY_ALLOC(o->ctx, kept);
    kept->paths = qn_arena_array(o->arena, count + 1, sizeof *kept->paths);
    kept->names = qn_arena_array(o->arena, count + 1, sizeof *kept->names);
    int64_t *labels = qn_arena_array(o->arena, count + 1, sizeof *labels);
    if (!kept->paths || !kept->names || !labels)
        return qn_fail_nomem(o->ctx);
    kept->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_picture(o->ctx, source->files->paths[i])) {
            qn_log(o->ctx, QN_LOG_NOTE, "%s is no picture and left out (`strict` ends here)",
                   source->files->paths[i]);
            continue;
        }
        kept->paths[kept->count] = source->files->paths[i];
        kept->names[kept->count] = source->files->names[i];
        labels[kept->count++] = source->labels ? source->labels[i] : -1;
    }
    if (!kept->count)
        return qn_fail(o->ctx, QN_E_INVALID, "%s: none of its %zu files is a picture", source->path,
                       count);
    kept->labels = source->labels = source->labels ? labels : NULL;
    source->files = kept;
    return QN_OK;
}

qn_status qn_dataset_source_open_pictures(qn_dataset_source *source, qn_dataset_builder *o,
                                          size_t named)
{
    pictures *p = NULL;
    if (!o->spec->strict && o->spec->n_data == 1 && source->files->count > 1)
        QN_TRY(leave_out_others(source, o));
    QN_TRY(start(&p, source, o, fetch_file));
    source->count = source->files->count;
    return finish(source, o, named);
}

/* IDX: 0, 0, type, rank, dims as big-endian numbers of 4 bytes, elements. */
bool qn_idx_is(const uint8_t *file, size_t size)
{
    return size >= 8 && file[0] == 0 && file[1] == 0 && file[2] == 8 && file[3] >= 1 &&
           file[3] <= 4 && size >= 4 + 4 * (size_t)file[3];
}

qn_status qn_idx_parse(qn_idx *out, qn_context *ctx, const uint8_t *file, size_t size)
{
    if (!qn_idx_is(file, size))
        return qn_fail(ctx, QN_E_FORMAT, "not an IDX file of bytes");
    *out = (qn_idx){.rank = file[3], .data = file + 4 + 4 * (size_t)file[3]};
    int64_t count = 1;
    for (int32_t d = 0; d < out->rank; d++) {
        const uint8_t *at = file + 4 + 4 * (size_t)d;
        out->dims[d] = (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
        if (!qn_mul_int64(&count, count, out->dims[d]))
            return qn_fail(ctx, QN_E_FORMAT, "the dimensions of the IDX file overflow");
    }
    const size_t there = size - (size_t)(out->data - file);
    if ((uint64_t)count != there)
        return qn_fail(ctx, QN_E_FORMAT, "the IDX file should have %lld bytes of elements, not %zu",
                       (long long)count, there);
    return QN_OK;
}

static qn_status use_idx(qn_dataset_source *source, qn_dataset_builder *o, pictures *p)
{
    qn_idx idx;
    QN_TRY(qn_idx_parse(&idx, o->ctx, p->bytes.data, p->bytes.size));
    if (idx.rank != 3)
        return qn_fail(o->ctx, QN_E_UNSUPPORTED,
                       "an IDX file of %d dimensions; pictures have 3: count, height, width",
                       idx.rank);
    if (idx.dims[0] == 0)
        return qn_fail(o->ctx, QN_E_INVALID, "the data holds no samples");
    if (idx.dims[1] < 1 || idx.dims[2] < 1 || idx.dims[1] > QN_IMAGE_MOST_PIXELS / idx.dims[2])
        return qn_fail(o->ctx, QN_E_FORMAT, "pictures of %lld x %lld", (long long)idx.dims[1],
                       (long long)idx.dims[2]);
    source->count = idx.dims[0];
    p->first = idx.data;
    p->channels = 1;
    p->height = (int32_t)idx.dims[1];
    p->width = (int32_t)idx.dims[2];
    p->stride = idx.dims[1] * idx.dims[2];
    return QN_OK;
}

qn_status qn_dataset_source_open_idx(qn_dataset_source *source, qn_dataset_builder *o, size_t named)
{
    pictures *p = NULL;
    QN_TRY(start(&p, source, o, fetch_record));
    QN_TRY(qn_file_bytes_open(&p->bytes, o->ctx, source->path));
    const qn_status status = use_idx(source, o, p);
    if (status != QN_OK)
        return qn_fail_within(o->ctx, status, "%s", source->path);
    return finish(source, o, named);
}

/* CIFAR: records of a class (or, CIFAR-100, a coarse one and a fine one), then 32 x 32 red, green,
 * blue. */
static qn_status open_cifar(qn_dataset_source *source, qn_dataset_builder *o, size_t named,
                            int64_t classes)
{
    enum { SIDE = 32 };
    pictures *p = NULL;
    QN_TRY(start(&p, source, o, fetch_record));
    QN_TRY(qn_file_bytes_open(&p->bytes, o->ctx, source->path));
    p->channels = 3;
    p->height = p->width = SIDE;
    p->stride = 3 * SIDE * SIDE + classes;
    if (p->bytes.size == 0 || p->bytes.size % (size_t)p->stride)
        return qn_fail(o->ctx, QN_E_FORMAT,
                       "%s: %zu bytes are no whole number of CIFAR records of %lld", source->path,
                       p->bytes.size, (long long)p->stride);
    p->first = p->bytes.data + classes;
    source->count = (int64_t)p->bytes.size / p->stride;
    int64_t *labels = qn_arena_array(o->arena, (size_t)source->count, sizeof *labels);
    QN_TRY_ALLOC(o->ctx, labels);
    for (int64_t i = 0; i < source->count; i++)
        labels[i] = p->bytes.data[i * p->stride + classes - 1];
    source->labels = labels;
    return finish(source, o, named);
}

qn_status qn_dataset_source_open_cifar10(qn_dataset_source *source, qn_dataset_builder *o,
                                         size_t named)
{
    return open_cifar(source, o, named, 1);
}

qn_status qn_dataset_source_open_cifar100(qn_dataset_source *source, qn_dataset_builder *o,
                                          size_t named)
{
    return open_cifar(source, o, named, 2);
}
