/* COCO's instances: images, categories, annotations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "task/box_labels.h"

typedef struct picture {
    int64_t id;
    const char *name;
    /* The range of its annotations. */
    size_t first, count;
} picture;

typedef struct category {
    int64_t id;
    const char *name;
} category;

/* A box and the picture it is in. */
typedef struct annotation {
    size_t picture;
    qn_box box;
} annotation;

struct qn_coco {
    qn_context *ctx;
    qn_arena arena;
    const char *path;
    /* [n_pictures], by id */
    picture *pictures;
    category *categories;
    /* [n_categories] */
    const char **names;
    /* Annotations, sorted by picture and then in the file's order. */
    annotation *annotations;
    size_t n_pictures, n_categories, n_annotations;
    /* Maps names to pictures, by full path and by the file's own name. */
    qn_names by_name;
};

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Both begin with their id. */
static int compare_ids(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int compare_annotations(const void *left, const void *right)
{
    const annotation *a = left, *b = right;
    if (a->picture != b->picture)
        return a->picture < b->picture ? -1 : 1;
    return (a->box.order > b->box.order) - (a->box.order < b->box.order);
}

static qn_status get_id(int64_t *out, const qn_json_place *object, const char *key)
{
    qn_json_place id;
    QN_TRY(qn_json_member(&id, object, key));
    return qn_json_get_int(out, &id, -(INT64_C(1) << 53), INT64_C(1) << 53);
}

static qn_status get_list(qn_json_place *list, size_t *count, const qn_json_place *root,
                          const char *key)
{
    QN_TRY(qn_json_member(list, root, key));
    return qn_json_length(count, list);
}

static qn_status read_pictures(qn_coco *c, const qn_json_place *root)
{
    qn_json_place list;
    QN_TRY(get_list(&list, &c->n_pictures, root, "images"));
    c->pictures = qn_arena_array(&c->arena, c->n_pictures + 1, sizeof *c->pictures);
    QN_TRY_ALLOC(c->ctx, c->pictures);
    for (size_t i = 0; i < c->n_pictures; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(get_id(&c->pictures[i].id, &item, "id"));
        QN_TRY(qn_json_member_copy(&c->pictures[i].name, &c->arena, &item, "file_name"));
    }
    if (c->n_pictures > 1)
        qsort(c->pictures, c->n_pictures, sizeof *c->pictures, compare_ids);
    for (size_t i = 1; i < c->n_pictures; i++) {
        if (c->pictures[i].id == c->pictures[i - 1].id)
            return qn_json_fail(&list, QN_E_FORMAT, "two of them have the id %lld",
                                (long long)c->pictures[i].id);
    }
    return QN_OK;
}

static qn_status read_categories(qn_coco *c, const qn_json_place *root)
{
    qn_json_place list;
    QN_TRY(get_list(&list, &c->n_categories, root, "categories"));
    c->categories = qn_arena_array(&c->arena, c->n_categories + 1, sizeof *c->categories);
    QN_TRY_ALLOC(c->ctx, c->categories);
    if (c->n_categories > QN_CLASSES_MAX)
        return qn_json_fail(&list, QN_E_FORMAT, "more than %d", QN_CLASSES_MAX);
    for (size_t i = 0; i < c->n_categories; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(get_id(&c->categories[i].id, &item, "id"));
        QN_TRY(qn_json_member_copy(&c->categories[i].name, &c->arena, &item, "name"));
    }
    if (c->n_categories > 1)
        qsort(c->categories, c->n_categories, sizeof *c->categories, compare_ids);
    c->names = qn_arena_array(&c->arena, c->n_categories + 1, sizeof *c->names);
    QN_TRY_ALLOC(c->ctx, c->names);
    for (size_t i = 0; i < c->n_categories; i++) {
        if (i && c->categories[i].id == c->categories[i - 1].id)
            return qn_json_fail(&list, QN_E_FORMAT, "two of them have the id %lld",
                                (long long)c->categories[i].id);
        c->names[i] = c->categories[i].name;
    }
    return QN_OK;
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

/* x, y, width, height */
static qn_status read_extent(qn_box *out, const qn_json_place *object)
{
    qn_json_place list;
    double v[4] = {0};
    size_t count = 0;
    QN_TRY(qn_json_member(&list, object, "bbox"));
    QN_TRY(qn_json_length(&count, &list));
    if (count != 4)
        return qn_json_fail(&list, QN_E_FORMAT, "has %zu numbers, not x, y, width, height", count);
    for (size_t i = 0; i < 4; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(qn_json_get_double(&v[i], &item));
        if (!(fabs(v[i]) < 1e9) || (i > 1 && v[i] < 0))
            return qn_json_fail(&item, QN_E_FORMAT, "no %s of a box", i > 1 ? "size" : "place");
    }
    out->x0 = v[0];
    out->y0 = v[1];
    out->x1 = v[0] + v[2];
    out->y1 = v[1] + v[3];
    return QN_OK;
}

/* 0 or 1; not there is 0. */
static qn_status read_crowd(bool *out, const qn_json_place *object)
{
    qn_json_place item;
    int64_t number = 0;
    *out = false;
    if (!qn_json_find(&item, object, "iscrowd"))
        return QN_OK;
    QN_TRY(qn_json_get_int(&number, &item, 0, 1));
    *out = number == 1;
    return QN_OK;
}

/* The item of a sorted list whose id the object names. */
static qn_status find_id(size_t *out, const qn_json_place *object, const char *key,
                         const void *items, size_t count, size_t size)
{
    int64_t id = 0;
    QN_TRY(get_id(&id, object, key));
    const char *found = count ? bsearch(&id, items, count, size, compare_ids) : NULL;
    if (!found)
        return qn_json_fail(object, QN_E_FORMAT, "%s %lld is not listed", key, (long long)id);
    *out = (size_t)(found - (const char *)items) / size;
    return QN_OK;
}

static qn_status read_annotation(annotation *out, const qn_coco *c, const qn_json_place *item)
{
    size_t kind = 0;
    QN_TRY(
        find_id(&out->picture, item, "image_id", c->pictures, c->n_pictures, sizeof *c->pictures));
    QN_TRY(
        find_id(&kind, item, "category_id", c->categories, c->n_categories, sizeof *c->categories));
    QN_TRY(read_extent(&out->box, item));
    out->box.kind = (int32_t)kind;
    return read_crowd(&out->box.crowd, item);
}

static qn_status read_annotations(qn_coco *c, const qn_json_place *root)
{
    qn_json_place list;
    QN_TRY(get_list(&list, &c->n_annotations, root, "annotations"));
    c->annotations = qn_arena_array(&c->arena, c->n_annotations + 1, sizeof *c->annotations);
    QN_TRY_ALLOC(c->ctx, c->annotations);
    for (size_t i = 0; i < c->n_annotations; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(read_annotation(&c->annotations[i], c, &item));
        c->annotations[i].box.order = i;
    }
    if (c->n_annotations > 1)
        qsort(c->annotations, c->n_annotations, sizeof *c->annotations, compare_annotations);
    for (size_t i = 0; i < c->n_annotations; i++) {
        picture *p = &c->pictures[c->annotations[i].picture];
        p->first = p->count ? p->first : i;
        p->count++;
    }
    return QN_OK;
}

/* ---- The file -------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static qn_status index_pictures(qn_coco *c)
{
    for (size_t i = 0; i < c->n_pictures; i++)
        QN_TRY(qn_names_set(&c->by_name, base_name(c->pictures[i].name), &c->pictures[i]));
    for (size_t i = 0; i < c->n_pictures; i++)
        QN_TRY(qn_names_set(&c->by_name, c->pictures[i].name, &c->pictures[i]));
    return QN_OK;
}

static qn_status read_all(qn_coco *c)
{
    qn_json_document *document;
    /* Outlines of objects are nine tenths of such files. */
    QN_TRY(qn_json_load_without(&document, c->ctx, c->path, "segmentation"));
    const qn_json_place root = qn_json_root(document);
    qn_status status = read_pictures(c, &root);
    if (status == QN_OK)
        status = read_categories(c, &root);
    if (status == QN_OK)
        status = read_annotations(c, &root);
    if (status == QN_OK)
        status = index_pictures(c);
    qn_json_document_free(document);
    return status;
}

qn_status qn_coco_open(qn_coco **out, qn_context *ctx, const char *path)
{
    qn_coco *c = qn_alloc_zero(ctx, 1, sizeof *c);
    *out = NULL;
    QN_TRY_ALLOC(ctx, c);
    c->ctx = ctx;
    qn_arena_init(&c->arena, &ctx->allocator);
    qn_names_init(&c->by_name, ctx);
    c->path = qn_arena_text(&c->arena, path, strlen(path));
    const qn_status status = c->path ? read_all(c) : qn_fail_nomem(ctx);
    if (status == QN_OK)
        *out = c;
    else
        qn_coco_free(c);
    return status;
}

void qn_coco_free(qn_coco *coco)
{
    if (!coco)
        return;
    qn_names_free(&coco->by_name);
    qn_arena_free(&coco->arena);
    qn_free(coco->ctx, coco);
}

qn_status qn_coco_boxes(qn_boxes *out, const qn_coco *coco, const char *name)
{
    const picture *p = qn_names_get(&coco->by_name, name);
    if (!p)
        p = qn_names_get(&coco->by_name, base_name(name));
    if (!p)
        return qn_fail(coco->ctx, QN_E_INVALID,
                       "%s does not list it among its images (`list` chooses samples)", coco->path);
    for (size_t i = 0; i < p->count; i++)
        QN_TRY(qn_boxes_add(out, coco->ctx, &coco->annotations[p->first + i].box));
    return QN_OK;
}

const char *const *qn_coco_names(size_t *count, const qn_coco *coco)
{
    *count = coco->n_categories;
    return coco->names;
}
