/* What libpng calls while a picture is read or written: for png.c and encode.c only. */
#ifndef QN_PNG_HOOKS_H
#define QN_PNG_HOOKS_H

#include <stdio.h>

#include <png.h>

#include "base/base.h"

/* The error pointer of a png_struct: what libpng said before it jumped. */
typedef struct qn_png_message {
    char text[128];
} qn_png_message;

static inline void qn_png_failed(png_structp png, png_const_charp text)
{
    qn_png_message *message = png_get_error_ptr(png);
    snprintf(message->text, sizeof message->text, "%s", text);
    png_longjmp(png, 1);
}

static inline void qn_png_warned(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* The memory pointer is the context. */
static inline void *qn_png_allocate(png_structp png, png_alloc_size_t size)
{
    return qn_alloc(png_get_mem_ptr(png), size);
}

static inline void qn_png_release(png_structp png, void *block)
{
    qn_free(png_get_mem_ptr(png), block);
}

#endif
