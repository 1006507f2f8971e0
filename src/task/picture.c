#include "task/picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "image/draw.h"
#include "image/encode.h"

/* ---- Colours -------------------------------------------------------------------------------------------------- */

/* Hues a golden angle apart: neighbouring classes differ much, and no two of the first hundreds are equal. */
static qn_rgb colour_of(int32_t kind)
{
    const double golden = 0.6180339887498949;
    const double hue = fmod((double)kind * golden, 1.0) * 6;
    const double low = 0.15, high = kind % 2 ? 0.85 : 1.0, part = hue - floor(hue);
    const double up = low + (high - low) * part, down = low + (high - low) * (1 - part);
    const double table[6][3] = {{high, up, low},   {down, high, low}, {low, high, up},
                                {low, down, high}, {up, low, high},   {high, low, down}};
    const double *rgb = table[(int)hue % 6];
    return (qn_rgb){(uint8_t)(rgb[0] * 255), (uint8_t)(rgb[1] * 255), (uint8_t)(rgb[2] * 255)};
}

/* Black on what is bright, white on what is dark. */
static qn_rgb text_on(qn_rgb c)
{
    const int bright = (299 * c.r + 587 * c.g + 114 * c.b) / 1000;
    return bright > 130 ? (qn_rgb){0, 0, 0} : (qn_rgb){255, 255, 255};
}

/* ---- One box -------------------------------------------------------------------------------------------------- */

static void label_text(char *out, size_t size, const qn_box *box, const qn_box_style *style)
{
    const int hundredths = (int)lrint(QN_MIN(QN_MAX(box->score, 0), 1) * 100);
    if ((size_t)box->kind < style->n_names)
        snprintf(out, size, "%.60s %d.%02d", style->names[box->kind], hundredths / 100,
                 hundredths % 100);
    else
        snprintf(out, size, "%d %d.%02d", box->kind, hundredths / 100, hundredths % 100);
}

/* Above the box, or inside where there is no room; never over the right edge. */
static void draw_label(qn_image *image, const qn_area *area, const char *text, int32_t scale,
                       qn_rgb colour)
{
    const int32_t margin = scale, width = qn_draw_letters(text) * QN_LETTER_WIDTH * scale + margin;
    const int32_t height = QN_LETTER_HEIGHT * scale + 2 * margin;
    const int32_t x = QN_MAX(QN_MIN(area->x0, image->width - width), 0);
    const int32_t above = area->y0 - height;
    const int32_t y = above >= 0 ? above : QN_MIN(area->y0, QN_MAX(image->height - height, 0));
    const qn_area plate = {x, y, x + width, y + height};
    qn_draw_fill(image, &plate, colour);
    qn_draw_text(image, x + margin, y + margin, text, scale, text_on(colour));
}

/* Sizes grow with the picture. */
static int32_t scale_for(const qn_image *image)
{
    return QN_MAX((QN_MIN(image->width, image->height) + 240) / 320, 1);
}

/* The frame, or the text at it. */
static void draw_box(qn_image *image, const qn_box *box, const qn_box_style *style, bool text)
{
    const int32_t scale = scale_for(image);
    const qn_rgb colour = colour_of(box->kind);
    const qn_area area = {(int32_t)floor(box->x0), (int32_t)floor(box->y0), (int32_t)ceil(box->x1),
                          (int32_t)ceil(box->y1)};
    char label[100];
    label_text(label, sizeof label, box, style);
    if (text)
        draw_label(image, &area, label, scale, colour);
    else
        qn_draw_frame(image, &area, scale + 1, colour);
}

/* Boxes stand with the best first. Texts come over all frames. */
qn_status qn_boxes_draw(qn_image *image, qn_context *ctx, const qn_boxes *boxes,
                        const qn_box_style *style)
{
    QN_TRY(qn_image_to_colour(image, ctx));
    for (int text = 0; text < 2; text++) {
        for (size_t i = boxes->count; i-- > 0;) {
            if (boxes->at[i].score >= style->least)
                draw_box(image, &boxes->at[i], style, text);
        }
    }
    return QN_OK;
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

qn_status qn_beside_path(const char **out, qn_context *ctx, qn_arena *arena, const char *folder,
                         const char *name, const char *ending)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    const size_t length = ending && dot ? (size_t)(dot - name) : strlen(name);
    char *path =
        qn_arena_format(arena, "%s/%.*s%s", folder, (int)length, name, ending ? ending : "");
    QN_TRY_ALLOC(ctx, path);
    for (char *c = path + strlen(folder) + 1; *c; c++)
        *c = *c == '/' ? '_' : *c;
    *out = path;
    return QN_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, two;
    return a && stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

static const char *ending_for(const char *name)
{
    const char *dot = strrchr(name, '.');
    const bool kept = dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                              strcasecmp(dot, ".png") == 0);
    return kept ? NULL : ".png";
}

static qn_status draw_and_save(qn_context *ctx, const char *path, qn_image *image,
                               const qn_boxes *boxes, const qn_box_style *style)
{
    QN_TRY(qn_boxes_draw(image, ctx, boxes, style));
    return qn_image_save(ctx, path, image);
}

qn_status qn_boxes_draw_file(qn_context *ctx, const char *folder, const qn_dataset *data, int64_t i,
                             const qn_boxes *boxes, const qn_box_style *style)
{
    char name[256];
    qn_arena arena;
    qn_image image = {.pixels = NULL};
    const char *path = NULL;
    qn_arena_init(&arena, &ctx->allocator);
    qn_dataset_name(name, sizeof name, data, i);
    qn_status status = qn_beside_path(&path, ctx, &arena, folder, name, ending_for(name));
    if (status == QN_OK && is_same_file(qn_dataset_path(data, i), path))
        status = qn_fail(ctx, QN_E_INVALID, "%s: drawing would overwrite the picture itself", path);
    if (status == QN_OK)
        status = qn_dataset_picture(&image, data, ctx, i);
    if (status == QN_OK)
        status = draw_and_save(ctx, path, &image, boxes, style);
    qn_image_free(&image, ctx);
    qn_arena_free(&arena);
    return status;
}
