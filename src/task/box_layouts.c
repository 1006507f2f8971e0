/* Recognizes the layout of a detector's outputs and decodes boxes. */
#include "task/box_layouts.h"

#include <stdio.h>
#include <string.h>

/* First those whose shapes say more. */
static const qn_box_layout *const layouts[] = {
    &qn_box_layout_nanodet,      &qn_box_layout_yolov8, &qn_box_layout_yolox,
    &qn_box_layout_boxes,        &qn_box_layout_rows,   &qn_box_layout_yolov5_heads,
    &qn_box_layout_yolov3_heads,
};

const char *qn_box_layout_name(size_t i)
{
    return i < QN_COUNT_OF(layouts) ? layouts[i]->name : NULL;
}

qn_status qn_box_decoder_load(qn_box_decoder *r, size_t output)
{
    const qn_task_output *from = &r->outputs[output];
    const int64_t count = qn_tensor_count(&from->tensor);
    QN_TRY_GROW(r->ctx, r->values, r->room, (size_t)count + 1);
    qn_task_load(r->values, from, count);
    return QN_OK;
}

bool qn_box_decoder_classes(qn_box_decoder *r, int64_t count)
{
    if (count < 1 || count > INT32_MAX || (r->classes && r->classes != count))
        return false;
    if (r->options->classes && r->options->classes != count)
        return false;
    r->classes = count;
    return true;
}

qn_box qn_box_around(const double centre[2], const double size[2])
{
    return (qn_box){.x0 = centre[0] - size[0] / 2,
                    .y0 = centre[1] - size[1] / 2,
                    .x1 = centre[0] + size[0] / 2,
                    .y1 = centre[1] + size[1] / 2};
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static void add_text(char *out, size_t size, const char *before, const char *text)
{
    const size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", before, text);
}

static qn_status not_recognized(const qn_box_decoder *r)
{
    char shapes[300] = "", known[500] = "", classes[64] = "";
    for (size_t i = 0; i < r->n_outputs; i++) {
        const qn_type type = qn_type_of(&r->outputs[i].tensor);
        char text[120];
        qn_type_format(text, sizeof text, &type);
        add_text(shapes, sizeof shapes, i ? ", " : "", text);
    }
    for (size_t i = 0; i < QN_COUNT_OF(layouts); i++) {
        add_text(known, sizeof known, i ? "; " : "", layouts[i]->name);
        add_text(known, sizeof known, " ", layouts[i]->shapes);
    }
    if (r->options->classes)
        snprintf(classes, sizeof classes, " with nc %lld", (long long)r->options->classes);
    return qn_fail(r->ctx, QN_E_UNSUPPORTED,
                   "outputs %s are no detections%s%s%s for an input of %d x %d; known are %s",
                   shapes, r->options->form ? " of the layout " : "",
                   r->options->form ? r->options->form : "", classes, r->height, r->width, known);
}

static bool is_wanted(const qn_box_layout *layout, const qn_box_decoder *r)
{
    if (r->layout)
        return r->layout == layout;
    return r->options->form ? strcmp(r->options->form, layout->name) == 0 : !layout->by_name;
}

/* Tries all layouts; a number of classes from a layout that does not fit is dropped again. */
static qn_status choose(qn_box_decoder *r)
{
    const int64_t classes = r->classes;
    qn_status status = QN_OK;
    for (size_t i = 0; i < QN_COUNT_OF(layouts); i++) {
        r->classes = classes;
        if (!is_wanted(layouts[i], r) || !layouts[i]->recognize(r, &status))
            continue;
        QN_TRY(status);
        r->layout = layouts[i];
        return QN_OK;
    }
    QN_TRY(status);
    return not_recognized(r);
}

qn_status qn_box_decoder_decode(qn_boxes *out, qn_box_decoder *r)
{
    out->count = 0;
    if (r->width < 1 || r->height < 1)
        return qn_fail(r->ctx, QN_E_UNSUPPORTED,
                       "detection needs pictures, or an input of 4 dimensions");
    QN_TRY(choose(r));
    return r->layout->decode(out, r);
}

void qn_box_decoder_free(qn_box_decoder *r)
{
    qn_free(r->ctx, r->values);
    r->values = NULL;
}
