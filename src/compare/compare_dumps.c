/* qn_compare_dumps: layers that were kept as files, ours with an index or anybody's by their
 * names. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "compare/dump.h"
#include "compare/dump_read.h"
#include "compare/layer_report.h"
#include "ops/quantize.h"

typedef struct dumps {
    qn_layer_report c;
    /* Left, right */
    qn_dump_side sides[2];
    /* The single layers of the same dump as the right one; no files: not known */
    qn_dump_side single;
    /* [left files]: the one beside it; NULL: none */
    const qn_dump_file **right, **exact;
} dumps;

/* ---- Two files ------------------------------------------------------------------------------- */

/* A foreign tool may have the integers themselves where the index tells what these stand for. */
static qn_status find_numbers(qn_tensor *out, qn_arena *arena, const qn_tensor *tensor,
                              const qn_dump_file *file)
{
    *out = *tensor;
    if (file->dtype == QN_UNDEFINED || qn_dtype_is_float(tensor->dtype))
        return QN_OK;
    const int64_t count = qn_tensor_count(tensor);
    double *numbers = qn_arena_array(arena, (size_t)count + 1, sizeof *numbers);
    if (!numbers)
        return QN_E_NOMEM;
    qn_load_f64(numbers, tensor->dtype, tensor->data, 0, count);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (numbers[i] - (double)file->zero) * (double)file->scale;
    out->dtype = QN_FLOAT64;
    out->data = numbers;
    return QN_OK;
}

/* Dimensions of size 1 do not count: tools differ in them. */
static bool same_shape(const qn_tensor *a, const qn_tensor *b)
{
    int32_t i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1)
            i++;
        while (k < b->rank && b->dims[k] == 1)
            k++;
        if (i == a->rank || k == b->rank)
            return i == a->rank && k == b->rank;
        if (a->dims[i++] != b->dims[k++])
            return false;
    }
}

static qn_status report_shapes(qn_layer_report *c, const qn_compare_row *row, const qn_tensor *left,
                               const qn_tensor *right)
{
    char words[2 * QN_MAX_RANK * 24 + 64];
    const qn_tensor *both[2] = {left, right};
    size_t at = 0;
    for (int k = 0; k < 2; k++) {
        at += (size_t)snprintf(words + at, sizeof words - at,
                               k ? " against [" : "the shapes differ: [");
        for (int32_t d = 0; d < both[k]->rank; d++)
            at += (size_t)snprintf(words + at, sizeof words - at, "%s%lld", d ? ", " : "",
                                   (long long)both[k]->dims[d]);
        at += (size_t)snprintf(words + at, sizeof words - at, "]");
    }
    return qn_layer_report_gap(c, row->name, words);
}

static bool is_numbers(const qn_tensor *tensor)
{
    return qn_dtype_is_float(tensor->dtype) || qn_dtype_is_integer(tensor->dtype) ||
           tensor->dtype == QN_BOOL;
}

static qn_status compare_tensors(qn_layer_report *c, qn_compare_row *row, const qn_tensor *left,
                                 const qn_tensor *right, bool single)
{
    if (!is_numbers(left) || !is_numbers(right))
        return qn_layer_report_gap(c, row->name, "it has no numbers");
    if (!same_shape(left, right))
        return report_shapes(c, row, left, right);
    return qn_layer_report_add(c, row, left, right, single);
}

static qn_status compare_files(dumps *d, qn_compare_row *row, const qn_dump_file *left,
                               const qn_dump_file *right, bool single)
{
    qn_context *ctx = d->c.ctx;
    qn_tensor *loaded[2] = {NULL, NULL}, numbers[2];
    const qn_dump_file *files[2] = {left, right};
    qn_arena arena;
    qn_arena_init(&arena, &ctx->allocator);
    qn_status status = QN_OK;
    for (int k = 0; k < 2 && status == QN_OK; k++) {
        status = qn_tensor_load(&loaded[k], ctx, files[k]->path, NULL);
        if (status == QN_OK && find_numbers(&numbers[k], &arena, loaded[k], left) != QN_OK)
            status = qn_fail_nomem(ctx);
    }
    if (status == QN_OK)
        status = compare_tensors(&d->c, row, &numbers[0], &numbers[1], single);
    qn_tensor_free(loaded[0]);
    qn_tensor_free(loaded[1]);
    qn_arena_free(&arena);
    return status;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* All layers are wanted. */
static bool is_whole(const qn_compare_options *o)
{
    return !o->n_names && !o->n_operators && !o->first && o->last < 0;
}

static qn_status report_missing(dumps *d)
{
    char words[512];
    for (size_t i = 0; i < d->sides[0].count; i++) {
        if (d->right[i] || !d->c.rows[i].chosen)
            continue;
        snprintf(words, sizeof words, "%s does not have it", d->sides[1].folder);
        QN_TRY(qn_layer_report_gap(&d->c, d->sides[0].files[i].name, words));
    }
    for (size_t k = 0; k < d->sides[1].count && is_whole(d->c.options); k++) {
        bool found = false;
        for (size_t i = 0; i < d->sides[0].count && !found; i++)
            found = d->right[i] == &d->sides[1].files[k];
        snprintf(words, sizeof words, "%s does not have it", d->sides[0].folder);
        if (!found)
            QN_TRY(qn_layer_report_gap(&d->c, d->sides[1].files[k].name, words));
    }
    return QN_OK;
}

static qn_status run(qn_layer_report *c)
{
    dumps *d = c->user;
    if (!c->drawing) {
        QN_TRY(qn_layer_report_choose(c));
        QN_TRY(report_missing(d));
    }
    for (size_t i = 0; i < d->sides[0].count; i++) {
        const qn_dump_file *left = &d->sides[0].files[i];
        if (!d->right[i] || !c->rows[i].chosen || (c->drawing && !c->rows[i].drawn))
            continue;
        QN_TRY(qn_check_cancel(c->ctx));
        QN_TRY(compare_files(d, &c->rows[i], left, d->right[i], false));
        if (d->exact[i] && !c->drawing)
            QN_TRY(compare_files(d, &c->rows[i], left, d->exact[i], true));
        qn_progress(c->ctx, "layers", (int64_t)i + 1, (int64_t)d->sides[0].count);
    }
    return QN_OK;
}

static qn_status make_rows(dumps *d)
{
    qn_layer_report *c = &d->c;
    const size_t count = d->sides[0].count;
    c->rows = qn_arena_array(&c->arena, count + 1, sizeof *c->rows);
    d->right = qn_arena_array(&c->arena, count + 1, sizeof(qn_dump_file *));
    d->exact = qn_arena_array(&c->arena, count + 1, sizeof(qn_dump_file *));
    if (!c->rows || !d->right || !d->exact)
        return qn_fail_nomem(c->ctx);
    for (; c->count < count; c->count++) {
        const qn_dump_file *f = &d->sides[0].files[c->count];
        c->rows[c->count] = (qn_compare_row){.index = f->index,
                                             .name = f->name,
                                             .node = f->node,
                                             .op = f->op,
                                             .names = f->names,
                                             .ops = f->ops,
                                             .n_names = f->n_names,
                                             .n_ops = f->n_ops,
                                             .dtype = f->dtype,
                                             .scale = f->scale,
                                             .zero = f->zero,
                                             .through = f->through,
                                             .smoothed = f->smoothed};
        d->right[c->count] = qn_dump_match(&d->sides[1], f);
        d->exact[c->count] = qn_dump_match(&d->single, f);
    }
    return QN_OK;
}

/* ---- Which folders --------------------------------------------------------------------------- */

static qn_status open_side(dumps *d, qn_dump_side *out, const char *folder, qn_compared_side side,
                           bool optional)
{
    return qn_dump_open(out, d->c.ctx, &d->c.arena,
                        &(qn_dump_choice){.folder = folder, .side = side, .optional = optional});
}

static qn_status open_folders(dumps *d)
{
    const qn_compare_options *o = d->c.options;
    const size_t count = (o->quant_dir != NULL) + o->n_sim_dirs;
    d->c.samples = 1;
    if (count > 2 || count == 0 || (count == 1 && !o->quant_dir))
        return qn_fail(
            d->c.ctx, QN_E_OPTION,
            "a dump is compared with itself (`quant_dir`), or with another one: that and "
            "`sim_dirs`, or two of these");
    if (count == 1) {
        QN_TRY(open_side(d, &d->sides[0], o->quant_dir, QN_SIDE_FLOAT, false));
        QN_TRY(open_side(d, &d->sides[1], o->quant_dir, QN_SIDE_QUANTIZED, false));
        return open_side(d, &d->single, o->quant_dir, QN_SIDE_SINGLE, true);
    }
    const char *left = o->quant_dir ? o->quant_dir : o->sim_dirs[0];
    QN_TRY(open_side(d, &d->sides[0], left, QN_SIDE_QUANTIZED, false));
    return open_side(d, &d->sides[1], o->sim_dirs[o->n_sim_dirs - 1], QN_SIDE_QUANTIZED, false);
}

qn_status qn_compare_dumps(qn_report **out, qn_context *ctx, const qn_compare_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_compare_options, taken, ctx, options);
    dumps d = {.c = {.ctx = ctx, .options = &taken, .run = run}};
    d.c.user = &d;
    qn_arena_init(&d.c.arena, &ctx->allocator);
    qn_status status = open_folders(&d);
    d.c.left = d.sides[0].folder;
    d.c.right = d.sides[1].folder;
    if (status == QN_OK)
        status = make_rows(&d);
    if (status == QN_OK)
        status = qn_layer_report_run(out, &d.c);
    qn_arena_free(&d.c.arena);
    return status;
}
