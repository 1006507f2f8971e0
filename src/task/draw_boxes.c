/* Draws boxes with labels on pictures. */
#include "task/draw_boxes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "image/draw.h"
#include "image/encode.h"

/* ---- Colours --------------------------------------------------------------------------------- */

/* Hues a golden angle apart: neighbouring classes differ much, and no two of the first hundreds are
 * equal. */
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

/* ---- One box --------------------------------------------------------------------------------- */

enum { LABEL_SIZE = 100 };

static void label_text(char out[LABEL_SIZE], const qn_box *box, const qn_box_style *style)
{
    const int hundredths = (int)lrint(QN_MIN(QN_MAX(box->score, 0), 1) * 100);
    if ((size_t)box->kind < style->n_names)
        snprintf(out, LABEL_SIZE, "%.60s %d.%02d", style->names[box->kind], hundredths / 100,
                 hundredths % 100);
    else
        snprintf(out, LABEL_SIZE, "%d %d.%02d", box->kind, hundredths / 100, hundredths % 100);
}

static qn_area area_of(const qn_box *box)
{
    return (qn_area){(int32_t)floor(box->x0), (int32_t)floor(box->y0), (int32_t)ceil(box->x1),
                     (int32_t)ceil(box->y1)};
}

/* Sizes grow with the picture. */
static int32_t scale_for(const qn_image *image)
{
    return QN_MAX((QN_MIN(image->width, image->height) + 240) / 320, 1);
}

/* ---- Where the texts stand ------------------------------------------------------------------- */

static bool overlaps(const qn_area *a, const qn_area *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static bool is_free(const qn_area *plate, const qn_area *placed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (overlaps(plate, &placed[i]))
            return false;
    }
    return true;
}

/* Inside the picture where it fits at all. */
static qn_area plate_at(const qn_image *image, int32_t x, int32_t y, const int32_t size[2])
{
    const int32_t left = QN_MAX(QN_MIN(x, image->width - size[0]), 0);
    const int32_t top = QN_MAX(QN_MIN(y, image->height - size[1]), 0);
    return (qn_area){left, top, left + size[0], top + size[1]};
}

/* Above the box, inside at its top, at its bottom, below: the first place that no better box's text
 * has. */
static qn_area find_plate(const qn_image *image, const qn_area *box, const int32_t size[2],
                          const qn_area *placed, size_t count)
{
    const int32_t rows[] = {box->y0 - size[1], box->y0, box->y1 - size[1], box->y1};
    const int32_t columns[] = {box->x0, box->x1 - size[0]};
    for (size_t c = 0; c < QN_COUNT_OF(columns); c++) {
        for (size_t r = 0; r < QN_COUNT_OF(rows); r++) {
            const qn_area plate = plate_at(image, columns[c], rows[r], size);
            if (is_free(&plate, placed, count))
                return plate;
        }
    }
    return plate_at(image, columns[0], rows[0], size);
}

/* The best box chooses first. */
static void place_texts(qn_area *plates, const qn_image *image, const qn_boxes *boxes, size_t count,
                        const qn_box_style *style)
{
    const int32_t scale = scale_for(image);
    for (size_t i = 0; i < count; i++) {
        const qn_area area = area_of(&boxes->at[i]);
        char text[LABEL_SIZE];
        label_text(text, &boxes->at[i], style);
        const int32_t size[2] = {(qn_draw_letters(text) * QN_LETTER_WIDTH + 1) * scale,
                                 (QN_LETTER_HEIGHT + 2) * scale};
        plates[i] = find_plate(image, &area, size, plates, i);
    }
}

/* ---- Drawing --------------------------------------------------------------------------------- */

static void draw_frame(qn_image *image, const qn_box *box)
{
    const qn_area area = area_of(box);
    qn_draw_frame(image, &area, scale_for(image) + 1, colour_of(box->kind));
}

static void draw_label(qn_image *image, const qn_box *box, const qn_area *plate,
                       const qn_box_style *style)
{
    const int32_t scale = scale_for(image);
    const qn_rgb colour = colour_of(box->kind);
    char text[LABEL_SIZE];
    label_text(text, box, style);
    qn_draw_fill(image, plate, colour);
    qn_draw_text(image, plate->x0 + scale, plate->y0 + scale, text, scale, text_on(colour));
}

/* Boxes stand with the best first. Texts come over all frames. */
qn_status qn_boxes_draw(qn_image *image, qn_context *ctx, const qn_boxes *boxes,
                        const qn_box_style *style)
{
    size_t count = 0;
    while (count < boxes->count && boxes->at[count].score >= style->least)
        count++;
    QN_TRY(qn_image_to_colour(image, ctx));
    qn_area *plates = qn_alloc_zero(ctx, count + 1, sizeof *plates);
    QN_TRY_ALLOC(ctx, plates);
    place_texts(plates, image, boxes, count, style);
    for (size_t i = count; i-- > 0;)
        draw_frame(image, &boxes->at[i]);
    for (size_t i = count; i-- > 0;)
        draw_label(image, &boxes->at[i], &plates[i], style);
    qn_free(ctx, plates);
    return QN_OK;
}

/* ---- Files ----------------------------------------------------------------------------------- */

qn_status qn_renamed_path(const char **out, qn_context *ctx, qn_arena *arena, const char *folder,
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

qn_status qn_boxes_draw_to_file(qn_context *ctx, const char *folder, const qn_dataset *data,
                                int64_t i, const qn_boxes *boxes, const qn_box_style *style)
{
    char name[256];
    qn_arena arena;
    qn_image image = {.pixels = NULL};
    const char *path = NULL;
    qn_arena_init(&arena, &ctx->allocator);
    qn_dataset_name(name, sizeof name, data, i);
    qn_status status = qn_renamed_path(&path, ctx, &arena, folder, name, ending_for(name));
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
