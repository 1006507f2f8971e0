/* YOLO's label files. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/number.h"
#include "base/text.h"
#include "data/listing.h"
#include "task/box_labels.h"
#include "task/draw_boxes.h"

/* What a label may stand over the edge by: files have rounded numbers. */
static const double SLACK = 0.01;

typedef struct line {
    qn_context *ctx;
    const char *path;
    int64_t number;
    const char *text;
    size_t length, at;
} line;

static qn_status bad_line(const line *l, const char *why)
{
    return qn_fail(l->ctx, QN_E_FORMAT,
                   "%s:%lld: '%.*s' is not 'CLASS CX CY W H' in shares of the picture: %s", l->path,
                   (long long)l->number, (int)QN_MIN(l->length, 60), l->text, why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* The next word as a number; *word false where the line has no more. */
static qn_status next_number(double *out, bool *word, line *l)
{
    while (l->at < l->length && is_blank(l->text[l->at]))
        l->at++;
    const size_t start = l->at;
    while (l->at < l->length && !is_blank(l->text[l->at]))
        l->at++;
    *word = l->at > start;
    if (*word && (!qn_number_parse(out, l->text + start, l->at - start) || !isfinite(*out)))
        return bad_line(l, "not a number");
    return QN_OK;
}

/* The extent of x, y, x, y, ... as centre and size; the first six numbers are read already. */
static qn_status read_polygon(double share[4], const double first[6], line *l)
{
    double low[2] = {1, 1}, high[2] = {0, 0}, value = 0;
    size_t count = 0;
    for (bool word = true; word;) {
        if (count < 6)
            value = first[count];
        else
            QN_TRY(next_number(&value, &word, l));
        if (!word)
            break;
        if (value < -SLACK || value > 1 + SLACK)
            return bad_line(l, "a number is not from 0 to 1");
        low[count % 2] = QN_MIN(low[count % 2], value);
        high[count % 2] = QN_MAX(high[count % 2], value);
        count++;
    }
    if (count % 2)
        return bad_line(l, "a polygon has two numbers per point");
    for (int i = 0; i < 2; i++) {
        share[i] = (low[i] + high[i]) / 2;
        share[2 + i] = high[i] - low[i];
    }
    return QN_OK;
}

/* Centre and size from the numbers behind the class. */
static qn_status read_shares(double share[4], line *l)
{
    double numbers[6] = {0};
    size_t count = 0;
    bool word = true;
    while (count < 6) {
        QN_TRY(next_number(&numbers[count], &word, l));
        if (!word)
            break;
        count++;
    }
    if (count == 6)
        return read_polygon(share, numbers, l);
    if (count < 4)
        return bad_line(l, "numbers are missing");
    for (int i = 0; i < 4; i++) {
        share[i] = numbers[i];
        if (share[i] < (i < 2 ? -SLACK : 0) || share[i] > 1 + SLACK)
            return bad_line(l, "a number is not from 0 to 1");
    }
    return QN_OK;
}

static qn_status read_line(qn_boxes *out, line *l, const qn_picture_place *place)
{
    double kind = 0, share[4] = {0};
    bool word;
    QN_TRY(next_number(&kind, &word, l));
    if (kind < 0 || kind >= QN_CLASSES_MAX || kind != floor(kind))
        return bad_line(l, "the class is no number from 0 on");
    QN_TRY(read_shares(share, l));
    const double w = place->width, h = place->height;
    const qn_box box = {.x0 = (share[0] - share[2] / 2) * w,
                        .y0 = (share[1] - share[3] / 2) * h,
                        .x1 = (share[0] + share[2] / 2) * w,
                        .y1 = (share[1] + share[3] / 2) * h,
                        .kind = (int32_t)kind};
    return qn_boxes_add(out, l->ctx, &box);
}

qn_status qn_yolo_read(qn_boxes *out, qn_context *ctx, const char *path,
                       const qn_picture_place *place)
{
    qn_lines lines = {.at = 0};
    line l = {.ctx = ctx, .path = path};
    QN_TRY(qn_map_open(&lines.map, ctx, path));
    qn_status status = QN_OK;
    while (status == QN_OK && qn_lines_next(&l.text, &l.length, &lines)) {
        l.number = lines.number;
        l.at = 0;
        if (l.text[0] != '#')
            status = read_line(out, &l, place);
    }
    qn_map_close(&lines.map);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Six decimals, with a point in every locale. */
static void write_share(qn_text *text, double share)
{
    const long long millionths = llround(QN_MIN(QN_MAX(share, 0), 1) * 1e6);
    char word[40];
    const int length =
        snprintf(word, sizeof word, " %lld.%06lld", millionths / 1000000, millionths % 1000000);
    qn_text_add(text, word, (size_t)length);
}

static void write_box(qn_text *text, const qn_box *box, const qn_picture_place *place)
{
    const double w = place->width, h = place->height;
    char kind[16];
    qn_text_add(text, kind, (size_t)snprintf(kind, sizeof kind, "%d", box->kind));
    write_share(text, (box->x0 + box->x1) / 2 / w);
    write_share(text, (box->y0 + box->y1) / 2 / h);
    write_share(text, (box->x1 - box->x0) / w);
    write_share(text, (box->y1 - box->y0) / h);
    write_share(text, box->score);
    qn_text_add(text, "\n", 1);
}

qn_status qn_yolo_write(qn_context *ctx, const char *path, const qn_boxes *boxes,
                        const qn_picture_place *place)
{
    qn_text text;
    char *all = NULL;
    qn_text_init(&text, ctx);
    for (size_t i = 0; i < boxes->count; i++)
        write_box(&text, &boxes->at[i], place);
    const size_t length = text.length;
    QN_TRY(qn_text_take(&all, &text));
    const qn_status status = qn_output_save(ctx, path, all, length);
    qn_text_free(ctx, all);
    return status;
}

static bool has_texts(const char *folder)
{
    DIR *dir = opendir(folder);
    bool found = false;
    if (!dir)
        return false;
    for (const struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        found = dot && strcmp(dot, ".txt") == 0;
    }
    closedir(dir);
    return found;
}

static qn_status write_note(qn_context *ctx, const char *path)
{
    static const char note[] = "The label files beside this one were generated: they are what a "
                               "model found, not what people marked.\n";
    return qn_output_save(ctx, path, note, sizeof note - 1);
}

qn_status qn_yolo_start(qn_context *ctx, const char *folder)
{
    qn_arena arena;
    const char *path = NULL;
    QN_TRY(qn_folder_create(ctx, folder, NULL));
    qn_arena_init(&arena, &ctx->allocator);
    qn_status status = qn_renamed_path(&path, ctx, &arena, folder, QN_GENERATED_NOTE, NULL);
    if (status == QN_OK && access(path, F_OK) != 0)
        status = has_texts(folder)
                     ? qn_fail(ctx, QN_E_INVALID,
                               "%s has .txt files that were not generated: choose another folder",
                               folder)
                     : write_note(ctx, path);
    qn_arena_free(&arena);
    return status;
}
