/* Pictures to files. */
#ifndef QN_ENCODE_H
#define QN_ENCODE_H

#include "base/map.h"
#include "image/image.h"

/* By the ending of the name: .jpg and .jpeg (quality 92), else PNG. */
QN_MUST_CHECK qn_status qn_image_save(qn_context *ctx, const char *path, const qn_image *image);

QN_MUST_CHECK qn_status qn_png_write(qn_output_file *file, qn_context *ctx, const qn_image *image);
QN_MUST_CHECK qn_status qn_jpeg_write(qn_output_file *file, qn_context *ctx, const qn_image *image);

#endif
