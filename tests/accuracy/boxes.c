/* boxes LABELS [most]: mean average precision of boxes from stdin, lines "picture NAME WIDTH
 * HEIGHT" and, behind the picture they are in, "CLASS SCORE X Y WIDTH HEIGHT". Prints mAP50,
 * mAP50-95 and the classes with labels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/average_precision.h"
#include "task/box_labels.h"

typedef struct work {
    qn_context *ctx;
    qn_box_labels *labels;
    qn_average_precision precision;
    qn_boxes found, truth;
    /* The name and the place of the picture at hand */
    char name[256];
    qn_picture_place place;
} work;

static qn_status finish_picture(work *w)
{
    if (!w->name[0])
        return QN_OK;
    QN_TRY(qn_box_labels_boxes(&w->truth, w->labels, w->name, &w->place));
    QN_TRY(qn_average_precision_add(&w->precision, &w->found, &w->truth));
    w->found.count = 0;
    return QN_OK;
}

static qn_status take_line(work *w, const char *line)
{
    qn_box box = {.score = 0};
    double width, height;
    if (strncmp(line, "picture ", 8) == 0) {
        QN_TRY(finish_picture(w));
        return sscanf(line, "picture %255s %d %d", w->name, &w->place.width, &w->place.height) == 3
                   ? QN_OK
                   : qn_fail(w->ctx, QN_E_FORMAT, "bad line '%s'", line);
    }
    if (sscanf(line, "%d %lf %lf %lf %lf %lf", &box.kind, &box.score, &box.x0, &box.y0, &width,
               &height) != 6)
        return qn_fail(w->ctx, QN_E_FORMAT, "bad line '%s'", line);
    box.x1 = box.x0 + width;
    box.y1 = box.y0 + height;
    return qn_boxes_add(&w->found, w->ctx, &box);
}

static qn_status measure(work *w, const char *labels)
{
    qn_mean_average_precision mean;
    char line[1024];
    QN_TRY(qn_box_labels_open(&w->labels, w->ctx, labels));
    while (fgets(line, sizeof line, stdin))
        QN_TRY(take_line(w, line));
    QN_TRY(finish_picture(w));
    QN_TRY(qn_average_precision_finish(&mean, &w->precision));
    printf("%.12f %.12f %lld\n", mean.map50, mean.map50_95, (long long)mean.classes);
    return QN_OK;
}

int main(int argc, char **argv)
{
    work w = {.labels = NULL};
    if (argc < 2 || qn_context_create(&w.ctx, NULL) != QN_OK)
        return 2;
    w.precision.ctx = w.ctx;
    w.precision.most = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 0;
    const qn_status status = measure(&w, argv[1]);
    if (status != QN_OK)
        fprintf(stderr, "%s\n", qn_context_error(w.ctx));
    qn_average_precision_free(&w.precision);
    qn_boxes_free(&w.found, w.ctx);
    qn_boxes_free(&w.truth, w.ctx);
    qn_box_labels_free(w.labels);
    qn_context_free(w.ctx);
    return status == QN_OK ? 0 : 1;
}
