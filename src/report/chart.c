/* Charts as lists of rectangles and texts, written as SVG and PNG. */
#include "report/chart.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "image/encode.h"

void qn_chart_init(qn_chart *chart, qn_context *ctx, int32_t width, int32_t height)
{
    *chart = (qn_chart){.ctx = ctx, .width = width, .height = height};
    qn_arena_init(&chart->arena, &ctx->allocator);
}

void qn_chart_free(qn_chart *chart)
{
    qn_free(chart->ctx, chart->items);
    qn_arena_free(&chart->arena);
}

void qn_chart_box(qn_chart *chart, const qn_chart_item *box)
{
    qn_chart_item *items =
        qn_grow(chart->ctx, chart->items, &chart->capacity, chart->count + 1, sizeof *chart->items);
    chart->failed = chart->failed || !items;
    if (!items)
        return;
    chart->items = items;
    items[chart->count++] = *box;
}

void qn_chart_text(qn_chart *chart, double x, double y, qn_anchor anchor, qn_rgb colour,
                   const char *format, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    const qn_chart_item mark = {.x = x,
                                .y = y,
                                .colour = colour,
                                .anchor = anchor,
                                .text = qn_arena_text(&chart->arena, words, strlen(words))};
    chart->failed = chart->failed || !mark.text;
    if (mark.text)
        qn_chart_box(chart, &mark);
}

/* ---- SVG ------------------------------------------------------------------------------------- */

static void add(qn_text *out, const char *format, ...) QN_PRINTF(2, 3);
static void add(qn_text *out, const char *format, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    qn_text_add(out, words, QN_MIN((size_t)QN_MAX(length, 0), sizeof words - 1));
}

/* Names come from files: neither tags nor what no XML may hold gets through. */
static void add_escaped(qn_text *out, const char *text)
{
    while (*text) {
        const char *letter;
        const size_t length = qn_text_letter(&letter, &text);
        switch (*letter) {
        case '&': qn_text_add(out, "&amp;", 5); break;
        case '<': qn_text_add(out, "&lt;", 4); break;
        case '>': qn_text_add(out, "&gt;", 4); break;
        default: qn_text_add(out, letter, length);
        }
    }
}

static void add_mark(qn_text *out, const qn_chart_item *m)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    if (!m->text) {
        add(out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%02x%02x%02x\"/>\n",
            m->x, m->y, m->width, m->height, m->colour.r, m->colour.g, m->colour.b);
        return;
    }
    add(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\" fill=\"#%02x%02x%02x\">", m->x,
        m->y + QN_LETTER_HEIGHT - 1, anchors[m->anchor], m->colour.r, m->colour.g, m->colour.b);
    add_escaped(out, m->text);
    add(out, "</text>\n");
}

static qn_status save_svg(const qn_chart *chart, const char *path)
{
    qn_text text;
    char *svg = NULL;
    qn_text_init(&text, chart->ctx);
    add(&text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
        "%d\" "
        "font-family=\"monospace\" font-size=\"10\">\n<rect width=\"100%%\" height=\"100%%\" "
        "fill=\"#ffffff\"/>\n",
        chart->width, chart->height, chart->width, chart->height);
    for (size_t i = 0; i < chart->count; i++)
        add_mark(&text, &chart->items[i]);
    add(&text, "</svg>\n");
    QN_TRY(qn_text_take(&svg, &text));
    const qn_status status = qn_output_save(chart->ctx, path, svg, strlen(svg));
    qn_text_free(chart->ctx, svg);
    return status;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

enum { SCALE = 2 };

static int32_t pixel(double x)
{
    return (int32_t)lround(x * SCALE);
}

static void paint(qn_image *image, const qn_chart_item *m)
{
    if (!m->text) {
        const qn_area area = {pixel(m->x), pixel(m->y),
                              QN_MAX(pixel(m->x + m->width), pixel(m->x) + 1),
                              QN_MAX(pixel(m->y + m->height), pixel(m->y) + 1)};
        qn_draw_fill(image, &area, m->colour);
        return;
    }
    const int32_t width = qn_draw_letters(m->text) * QN_LETTER_WIDTH * SCALE;
    const int32_t left = pixel(m->x) - (int32_t)m->anchor * width / 2;
    qn_draw_text(image, left, pixel(m->y), m->text, SCALE, m->colour);
}

static qn_status save_png(const qn_chart *chart, const char *path)
{
    qn_image image;
    QN_TRY(qn_image_create(&image, chart->ctx, (int64_t)chart->width * SCALE,
                           (int64_t)chart->height * SCALE, 3));
    const qn_area all = {0, 0, image.width, image.height};
    qn_draw_fill(&image, &all, (qn_rgb){255, 255, 255});
    for (size_t i = 0; i < chart->count; i++)
        paint(&image, &chart->items[i]);
    const qn_status status = qn_image_save(chart->ctx, path, &image);
    qn_image_free(&image, chart->ctx);
    return status;
}

qn_status qn_chart_save(const qn_chart *chart, const char *path)
{
    qn_arena arena;
    qn_arena_init(&arena, &chart->ctx->allocator);
    const char *svg = qn_arena_format(&arena, "%s.svg", path);
    const char *png = qn_arena_format(&arena, "%s.png", path);
    qn_status status =
        svg && png && !chart->failed ? save_svg(chart, svg) : qn_fail_nomem(chart->ctx);
    if (status == QN_OK)
        status = save_png(chart, png);
    qn_arena_free(&arena);
    return status;
}
