/* ImageDecoder: a picture's file as bytes to its pixels [height][width][channels], as Pillow
 * decodes it. */
#include <string.h>

#include "image/image.h"
#include "ops/eval.h"
#include "ops/infer.h"

typedef struct image_attrs {
    const char *pixel_format;
} image_attrs;
static const qn_attr_spec image_specs[] = {QN_STRING_ATTR(image_attrs, pixel_format, "RGB")};
static const qn_port stream_in[] = {{"encoded_stream", 0, QN_SET(QN_UINT8), 0}};
static const qn_port image_out[] = {{"image", 0, QN_SET(QN_UINT8), 0}};

static const struct pixel_format {
    const char *name;
    int32_t channels;
    bool blue_first;
} pixel_formats[] = {{"RGB", 3, false}, {"BGR", 3, true}, {"Grayscale", 1, false}};

static const struct pixel_format *find_format(const char *name)
{
    for (size_t i = 0; i < QN_COUNT_OF(pixel_formats); i++) {
        if (strcmp(pixel_formats[i].name, name) == 0)
            return &pixel_formats[i];
    }
    return NULL;
}

static qn_status image_infer(qn_infer *self)
{
    const char *name = ((const image_attrs *)self->attrs)->pixel_format;
    const struct pixel_format *format = find_format(name);
    if (!format)
        return qn_infer_fail(self, "pixel_format '%s' is none of RGB, BGR, Grayscale", name);
    const qn_dim dims[3] = {qn_dim_unknown(), qn_dim_unknown(), qn_dim_of(format->channels)};
    qn_infer_set(self, 0, QN_UINT8, 3, dims);
    return QN_OK;
}

static void mirror_colours(qn_image *image)
{
    const size_t count = (size_t)image->width * (size_t)image->height;
    for (uint8_t *rgb = image->pixels; rgb < image->pixels + 3 * count; rgb += 3) {
        const uint8_t red = rgb[0];
        rgb[0] = rgb[2];
        rgb[2] = red;
    }
}

static qn_status convert(qn_image *image, qn_context *ctx, const struct pixel_format *format)
{
    if (format->channels == 1)
        return qn_image_to_grey(image, ctx, QN_DECODE_PILLOW);
    QN_TRY(qn_image_to_colour(image, ctx));
    if (format->blue_first)
        mirror_colours(image);
    return QN_OK;
}

static qn_status give(qn_eval *self, const qn_image *image)
{
    const int64_t dims[3] = {image->height, image->width, image->channels};
    QN_TRY(qn_eval_output(self, 0, QN_UINT8, 3, dims));
    memcpy(self->out[0]->data, image->pixels, (size_t)(dims[0] * dims[1] * dims[2]));
    return QN_OK;
}

static qn_status image_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    qn_image image;
    qn_status status = qn_image_decode(&image, self->ctx, in->data, (size_t)qn_tensor_count(in),
                                       QN_DECODE_PILLOW, false);
    if (status != QN_OK)
        return qn_fail_within(self->ctx, status, "node '%s' (ImageDecoder)", self->node->name);
    status =
        convert(&image, self->ctx, find_format(((const image_attrs *)self->attrs)->pixel_format));
    if (status == QN_OK)
        status = give(self, &image);
    qn_image_free(&image, self->ctx);
    return status;
}

const qn_op qn_op_ImageDecoder = {
    .name = "ImageDecoder",
    .domain = "",
    .since = 20,
    QN_PORTS(in, stream_in),
    QN_PORTS(out, image_out),
    QN_ATTRS(image_specs, image_attrs),
    .flags = QN_OP_ALLOCATES,
    .quant = QN_QUANT_SHAPE,
    .infer = image_infer,
    .eval = image_eval,
    .brief = "a picture's file (JPEG, PNG, BMP, PNM, WebP, TIFF) to pixels"};
