/* Reads the head of a scale file: fingerprints, settings, method, refinements. */
#include <string.h>

#include "base/options_record.h"
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

static qn_status check_bits(const qn_json_place *root, int bits)
{
    qn_json_place item;
    char list[64];
    QN_TRY(qn_json_member(&item, root, "bits"));
    qn_width_list(list, sizeof list);
    return qn_width_is_computed(bits)
               ? QN_OK
               : qn_json_fail(&item, QN_E_FORMAT, "is %d: it must be %s", bits, list);
}

/* The settings, and the method, are what options with these values ask for. */
static qn_status get_settings(qn_scales *s, const qn_json_place *root)
{
    qn_quantize_options o = QN_QUANTIZE_OPTIONS_INIT;
    qn_json_place item;
    QN_TRY(qn_json_member(&item, root, "target"));
    QN_TRY(qn_json_member(&item, root, "method"));
    QN_TRY(qn_options_read(&o, &s->arena, &qn_quantize_options_table, root));
    QN_TRY(check_bits(root, o.bits));
    QN_TRY(qn_quant_settings_of(&s->settings, s->ctx, &o));
    s->settings.bits_asked = false;
    if (qn_json_find(&item, root, "bits_asked"))
        QN_TRY(qn_json_get_bool(&s->settings.bits_asked, &item));
    if (qn_json_find(&item, root, "mix"))
        QN_TRY(qn_mix_read(&s->mix, s->ctx, &item));
    s->settings.mix = s->mix;
    s->params = (qn_param_options){.range = QN_RANGE_OPTIONS_INIT};
    s->params.range.percentile = o.percentile;
    return qn_method_find(&s->params.method, s->ctx, o.method);
}

/* Refinements only say how the scales were made, and go into the metadata. */
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

/* No other members than those of this file and of options. */
static qn_status check_keys(const qn_json_place *root)
{
    static const char *const own[] = {"format",      "version",    "model", "data",
                                      "refinements", "bits_asked", "mix",   "tensors",
                                      "balances",    "layers",     "given"};
    const char *keys[32] = {NULL};
    const qn_option *row;
    size_t count = 0;
    for (; count < QN_COUNT_OF(own); count++)
        keys[count] = own[count];
    for (size_t i = 0; (row = qn_options_recorded(&qn_quantize_options_table, i)) != NULL &&
                       count + 1 < QN_COUNT_OF(keys);
         i++)
        keys[count++] = row->result;
    return qn_json_only(root, keys);
}

static qn_status read_head(qn_scales *s)
{
    const qn_json_place root = qn_json_root(s->document);
    QN_TRY(check_version(&root));
    QN_TRY(check_keys(&root));
    QN_TRY(get_print(&s->model, &root, "model"));
    QN_TRY(get_print(&s->data, &root, "data"));
    QN_TRY(get_settings(s, &root));
    return get_refinements(&s->params, &root);
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
