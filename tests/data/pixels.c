/* pixels: reads lines "picture<tab>preprocessing<tab>out.npy" from stdin and writes each picture's
 * numbers [height][width][channels]. For every line it prints "ok" or "error: " and the message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "data/preprocess.h"

static qn_status store(qn_context *ctx, const qn_preprocess *p, const qn_image *image,
                       const char *path)
{
    qn_picture_shape shape = {QN_FLOAT32, image->channels, -1, -1, true};
    qn_pixel_table table;
    QN_TRY(qn_preprocess_bind(&shape, ctx, p, image));
    qn_pixel_table_make(&table, p);
    qn_tensor out = {QN_FLOAT32, 3, {shape.height, shape.width, shape.channels}, NULL};
    out.data = malloc((size_t)qn_tensor_count(&out) * sizeof(float));
    if (!out.data)
        abort();
    qn_status status = qn_preprocess_store(out.data, ctx, p, &table, &shape, image);
    if (status == QN_OK)
        status = qn_tensor_save(ctx, &out, path);
    free(out.data);
    return status;
}

static qn_status convert(qn_context *ctx, const char *from, const char *text, const char *to)
{
    qn_preprocess p;
    qn_map map;
    qn_image image = {.pixels = NULL};
    QN_TRY(qn_preprocess_parse(&p, ctx, text));
    QN_TRY(qn_map_open(&map, ctx, from));
    qn_status status = qn_image_decode(&image, ctx, map.data, map.size, p.decoder, p.rotate);
    qn_map_close(&map);
    if (status == QN_OK)
        status = qn_preprocess_pixels(&image, NULL, ctx, &p);
    if (status == QN_OK)
        status = store(ctx, &p, &image, to);
    qn_image_free(&image, ctx);
    return status;
}

int main(void)
{
    char line[4096];
    qn_context *ctx;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *text = strchr(line, '\t'), *to = text ? strchr(text + 1, '\t') : NULL;
        if (!to)
            return 1;
        *text++ = 0;
        *to++ = 0;
        if (convert(ctx, line, text, to) == QN_OK)
            printf("ok\n");
        else
            printf("error: %s\n", qn_context_error(ctx));
        fflush(stdout);
    }
    qn_context_free(ctx);
    return 0;
}
