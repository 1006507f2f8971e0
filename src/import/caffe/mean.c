/* Mean images of Caffe (.binaryproto): the mean of each channel, as preprocessing wants it. */
#include <stdio.h>
#include <string.h>

#include "import/caffe/caffe.h"
#include "import/detect.h"

/* BlobProto: four legacy dims and numbers. */
bool qn_caffe_is_mean(qn_string file)
{
    static const qn_wire_rule rules[] = {{1, QN_WIRE_VARINT, false}, {2, QN_WIRE_VARINT, true},
                                         {3, QN_WIRE_VARINT, true},  {4, QN_WIRE_VARINT, true},
                                         {5, QN_WIRE_BYTES, true},   {6, QN_WIRE_BYTES, false}};
    return qn_detect_message(file, rules, QN_COUNT_OF(rules));
}

/* The mean of numbers [first, first + count) of the blob. */
static double mean_of(const qn_caffe_blob *blob, int64_t first, int64_t count)
{
    const size_t size = qn_dtype_get(blob->dtype)->size;
    double sum = 0;
    for (int64_t i = first; i < first + count; i++) {
        uint64_t aligned = 0;
        double x = 0;
        memcpy(&aligned, blob->bytes.text + (size_t)i * size, size);
        qn_load_f64(&x, blob->dtype, &aligned, 0, 1);
        sum += x;
    }
    return sum / (double)count;
}

/* [..., C, H, W], of which the last C are taken, or a row of C numbers */
static qn_status write_means(char *out, size_t capacity, qn_context *ctx, const qn_caffe_blob *blob)
{
    enum { MOST = 16 };
    const int32_t axis = blob->rank >= 3 ? blob->rank - 3 : 0;
    const int64_t channels = blob->rank ? blob->dims[axis] : 1;
    int64_t area = 1;
    size_t length = 0;
    for (int32_t i = axis + 1; i < blob->rank; i++)
        area *= blob->dims[i];
    if (channels < 1 || channels > MOST || area < 1)
        return qn_fail(ctx, QN_E_FORMAT, "the mean image has %lld channels of %lld numbers",
                       (long long)channels, (long long)area);
    for (int64_t c = 0; c < channels; c++)
        length += (size_t)snprintf(out + length, capacity - length, "%s%.5g", c ? "/" : "",
                                   mean_of(blob, c * area, area));
    return QN_OK;
}

qn_status qn_caffe_read_mean(char out[QN_CAFFE_MEAN_TEXT], qn_context *ctx, const void *data,
                             size_t size)
{
    qn_proto_tree tree;
    qn_caffe_blob blob = {0};
    qn_status status;
    qn_proto_tree_init(&tree, ctx, &qn_caffe_blob_schema);
    QN_TRY_OR_DONE(qn_proto_parse_wire(&tree, data, size));
    QN_TRY_OR_DONE(qn_caffe_read_blob(&blob, ctx, &tree.root, "the mean image"));
    status = write_means(out, QN_CAFFE_MEAN_TEXT, ctx, &blob);
done:
    qn_proto_tree_free(&tree);
    return status;
}

/* The file as the network names it, else of that name beside the network. */
static qn_status open_mean(qn_map *out, qn_context *ctx, const char *network, qn_string name)
{
    char path[1024];
    const char *slash = strrchr(network, '/');
    const int folder = slash ? (int)(slash - network) + 1 : 0;
    size_t from = name.length;
    while (from > 0 && name.text[from - 1] != '/')
        from--;
    if (snprintf(path, sizeof path, "%.*s%.*s", folder, network, (int)(name.length - from),
                 name.text + from) >= (int)sizeof path)
        return QN_E_INVALID;
    return qn_map_open(out, ctx, path);
}

void qn_caffe_find_mean(char out[QN_CAFFE_MEAN_TEXT], qn_context *ctx, const char *network,
                        qn_string name)
{
    qn_map map = {.data = NULL};
    *out = 0;
    if (name.length && name.length < 512 && open_mean(&map, ctx, network, name) == QN_OK &&
        map.size && qn_caffe_read_mean(out, ctx, map.data, map.size) != QN_OK)
        *out = 0;
    qn_map_close(&map);
}
