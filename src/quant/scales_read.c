/* Reads the head of a scale file: fingerprints, settings, method, refinements. */
#include <string.h>

#include "ops/numerics.h"
#include "pass/qdq_to_integer.h"
#include "quant/refinement.h"
#include "quant/scales.h"

static qn_status get_print(qn_fingerprint *out, const qn_json_place *object, const char *key)
{
    qn_json_place item;
    const char *text = NULL;
    QN_TRY(qn_json_member(&item, object, key));
    QN_TRY(qn_json_get_text(&text, &item));
    if (!qn_fingerprint_parse(out, text))
        return qn_json_fail(&item, QN_E_FORMAT, "is no fingerprint: 32 hexadecimal digits");
    return QN_OK;
}

static qn_status get_patterns(const char *const **out, size_t *count, qn_scales *s,
                              const qn_json_place *object, const char *key)
{
    qn_json_place list;
    QN_TRY(qn_json_member(&list, object, key));
    QN_TRY(qn_json_length(count, &list));
    const char **at = qn_arena_array(&s->arena, *count + 1, sizeof *at);
    QN_TRY_ALLOC(s->ctx, at);
    for (size_t i = 0; i < *count; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(qn_json_get_text(&at[i], &item));
    }
    *out = at;
    return QN_OK;
}

static qn_status check_version(const qn_json_place *root)
{
    qn_json_place item;
    const char *format = NULL;
    int64_t version = 0;
    QN_TRY(qn_json_member_text(&format, root, "format"));
    if (strcmp(format, QN_SCALES_FORMAT) != 0)
        return qn_json_fail(root, QN_E_FORMAT, "this is no scale file of quench");
    QN_TRY(qn_json_member(&item, root, "version"));
    QN_TRY(qn_json_get_int(&version, &item, 1, INT32_MAX));
    if (version != QN_SCALES_VERSION)
        return qn_json_fail(&item, QN_E_FORMAT, "is %lld: this quench reads version %d",
                            (long long)version, QN_SCALES_VERSION);
    return QN_OK;
}

static qn_status get_settings(qn_scales *s, const qn_json_place *root)
{
    qn_quant_settings *o = &s->settings;
    qn_json_place item;
    const char *target = NULL;
    int64_t bits = 0, tables = 0;
    QN_TRY(qn_json_member_text(&target, root, "target"));
    QN_TRY(qn_profile_find(&o->profile, s->ctx, target));
    QN_TRY(qn_json_member(&item, root, "bits"));
    QN_TRY(qn_json_get_int(&bits, &item, 8, 16));
    if (!qn_width_is_computed((int)bits)) {
        char list[64];
        qn_width_list(list, sizeof list);
        return qn_json_fail(&item, QN_E_FORMAT, "is %d: it must be %s", (int)bits, list);
    }
    o->bits = (int)bits;
    QN_TRY(get_patterns(&o->keep_float, &o->n_float, s, root, "float"));
    QN_TRY(get_patterns(&o->widths, &o->n_widths, s, root, "widths"));
    if (qn_json_find(&item, root, "unified"))
        QN_TRY(qn_json_get_bool(&o->unify, &item));
    if (qn_json_find(&item, root, "reduced_range"))
        QN_TRY(qn_json_get_bool(&o->reduce_range, &item));
    if (qn_json_find(&item, root, "bits_asked"))
        QN_TRY(qn_json_get_bool(&o->bits_asked, &item));
    if (qn_json_find(&item, root, "table_bits"))
        QN_TRY(qn_json_get_int(&tables, &item, QN_TABLE_BITS_MIN, QN_TABLE_BITS_MAX));
    o->table_bits = (int)tables;
    if (qn_json_find(&item, root, "inputs"))
        QN_TRY(get_patterns(&o->input_types, &o->n_input_types, s, root, "inputs"));
    if (qn_json_find(&item, root, "mix"))
        QN_TRY(qn_mix_read(&s->mix, s->ctx, &item));
    o->mix = s->mix;
    return QN_OK;
}

static qn_status get_refinements(qn_param_options *out, const qn_json_place *root)
{
    qn_json_place list;
    size_t count = 0;
    const char *name = NULL;
    if (!qn_json_find(&list, root, "refinements"))
        return QN_OK;
    QN_TRY(qn_json_length(&count, &list));
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(qn_json_get_text(&name, &item));
        const size_t row = qn_refinement_find(name);
        if (row == QN_REFINEMENT_ROWS)
            return qn_json_fail(&item, QN_E_FORMAT, "there is no refinement '%s'", name);
        *qn_refinement_flag(out, row) = true;
    }
    return QN_OK;
}

/* Reads method and refinements, which only say how the scales were made and go into the
 * metadata. */
static qn_status get_params(qn_param_options *out, qn_context *ctx, const qn_json_place *root)
{
    qn_json_place item;
    const char *method = NULL;
    *out = (qn_param_options){.range = QN_RANGE_OPTIONS_INIT};
    QN_TRY(qn_json_member_text(&method, root, "method"));
    QN_TRY(qn_method_find(&out->method, ctx, method));
    if (qn_json_find(&item, root, "percentile"))
        QN_TRY(qn_json_get_double(&out->range.percentile, &item));
    return get_refinements(out, root);
}

static qn_status read_head(qn_scales *s)
{
    static const char *const keys[] = {
        "format",        "version",    "model",       "data",    "target",   "bits",
        "method",        "percentile", "refinements", "float",   "widths",   "inputs",
        "unified",       "table_bits", "mix",         "tensors", "balances", "layers",
        "reduced_range", "bits_asked", "given",       NULL};
    const qn_json_place root = qn_json_root(s->document);
    QN_TRY(check_version(&root));
    QN_TRY(qn_json_only(&root, keys));
    QN_TRY(get_print(&s->model, &root, "model"));
    QN_TRY(get_print(&s->data, &root, "data"));
    QN_TRY(get_params(&s->params, s->ctx, &root));
    return get_settings(s, &root);
}

static qn_status finish(qn_scales **out, qn_context *ctx, qn_json_document *document)
{
    qn_scales *s = qn_alloc_zero(ctx, 1, sizeof *s);
    if (!s) {
        qn_json_document_free(document);
        return qn_fail_nomem(ctx);
    }
    s->ctx = ctx;
    s->document = document;
    qn_arena_init(&s->arena, &ctx->allocator);
    const qn_status status = read_head(s);
    if (status == QN_OK)
        *out = s;
    else
        qn_scales_free(s);
    return status;
}

qn_status qn_scales_load(qn_scales **out, qn_context *ctx, const char *path)
{
    qn_json_document *document;
    *out = NULL;
    QN_TRY(qn_json_load(&document, ctx, path));
    return finish(out, ctx, document);
}

qn_status qn_scales_read(qn_scales **out, qn_context *ctx, const void *data, size_t size,
                         const char *name)
{
    qn_json_document *document;
    *out = NULL;
    QN_TRY(qn_json_read(&document, ctx, data, size, name));
    return finish(out, ctx, document);
}

void qn_scales_free(qn_scales *scales)
{
    if (!scales)
        return;
    qn_mix_free(scales->mix);
    qn_json_document_free(scales->document);
    qn_arena_free(&scales->arena);
    qn_free(scales->ctx, scales);
}

/* What the scales were made with, where it is not what is given now: "" with nothing. NULL: it is,
 * or an older file does not tell. */
static qn_status find_difference(const char **out, const qn_json_place *root, const char *given)
{
    qn_json_place item;
    const char *before = NULL;
    *out = NULL;
    if (!qn_json_find(&item, root, "given"))
        return QN_OK;
    QN_TRY(qn_json_get_text(&before, &item));
    if (strcmp(before, given ? given : "") != 0)
        *out = before;
    return QN_OK;
}

qn_status qn_scales_check(const qn_scales *scales, qn_fingerprint model, const char *given)
{
    const qn_json_place root = qn_json_root(scales->document);
    qn_json_place item;
    const char *before;
    const bool same = qn_fingerprint_same(scales->model, model);
    QN_TRY(find_difference(&before, &root, given));
    if (same && before && *before)
        qn_log(scales->ctx, QN_LOG_NOTE,
               "the scales were made with %s: without the same the model is another one", before);
    else if (same && before)
        qn_log(scales->ctx, QN_LOG_NOTE,
               "the scales were made without %s, with which the model is another one", given);
    if (same)
        return QN_OK;
    QN_TRY(qn_json_member(&item, &root, "model"));
    if (before && *before)
        return qn_json_fail(&item, QN_E_INVALID,
                            "the scales are of another model: they were made with %s, which is to "
                            "be given again",
                            before);
    return qn_json_fail(&item, QN_E_INVALID,
                        "the scales are of another model: quantize this one with its data%s%s",
                        before ? "; they were made without " : "", before ? given : "");
}
