/* qn_config: options of commands in a JSON file, as texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

typedef struct entry {
    const char *section;
    /* An object or a list of them */
    bool block;
    qn_config_entry told;
} entry;

struct qn_config {
    qn_context *ctx;
    qn_arena arena;
    const char **sections;
    size_t n_sections;
    entry *entries;
    size_t n_entries;
};

/* ---- Values as texts ------------------------------------------------------------------------- */

/* As few digits as read back to the same number. */
static const char *format_real(qn_arena *arena, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    return qn_arena_format(arena, "%s", text);
}

static qn_status format_value(const char **out, qn_config *config, const qn_json_place *place)
{
    if (qn_json_is_text(place)) {
        const char *text = NULL;
        QN_TRY(qn_json_get_text(&text, place));
        *out = qn_arena_format(&config->arena, "%s", text);
    } else if (qn_json_is_bool(place)) {
        bool value = false;
        QN_TRY(qn_json_get_bool(&value, place));
        *out = value ? "true" : "false";
    } else if (qn_json_is_int(place)) {
        int64_t value = 0;
        QN_TRY(qn_json_get_int(&value, place, INT64_MIN, INT64_MAX));
        *out = qn_arena_format(&config->arena, "%lld", (long long)value);
    } else {
        double value = 0;
        QN_TRY(qn_json_get_double(&value, place));
        *out = format_real(&config->arena, value);
    }
    QN_TRY_ALLOC(config->ctx, *out);
    return QN_OK;
}

/* Values of a list of any depth, or of one that is none. */
static size_t count_values(const qn_json_place *place)
{
    size_t count = 0, values = 0;
    if (!qn_json_is_list(place))
        return 1;
    if (qn_json_length(&count, place) != QN_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const qn_json_place element = qn_json_element(place, i);
        values += count_values(&element) + (i && qn_json_is_list(&element));
    }
    return values;
}

static qn_status add_values(const char **values, size_t *count, qn_config *config,
                            const qn_json_place *place)
{
    size_t length = 0;
    if (!qn_json_is_list(place))
        return format_value(&values[(*count)++], config, place);
    QN_TRY(qn_json_length(&length, place));
    for (size_t i = 0; i < length; i++) {
        const qn_json_place element = qn_json_element(place, i);
        if (i && qn_json_is_list(&element))
            values[(*count)++] = NULL;
        QN_TRY(add_values(values, count, config, &element));
    }
    return QN_OK;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static bool holds_objects(const qn_json_place *place)
{
    size_t count = 0;
    if (!qn_json_is_list(place) || qn_json_length(&count, place) != QN_OK || !count)
        return false;
    const qn_json_place first = qn_json_element(place, 0);
    return qn_json_is_object(&first);
}

static qn_status add_entry(qn_config *config, const char *section, const qn_json_place *place,
                           bool block)
{
    char where[1024];
    entry *e = &config->entries[config->n_entries];
    const size_t count = block ? 1 : count_values(place);
    const char **values = qn_arena_array(&config->arena, count + 1, sizeof *values);
    QN_TRY_ALLOC(config->ctx, values);
    e->section = section;
    e->block = block;
    e->told.key = qn_arena_format(&config->arena, "%s", place->key);
    QN_TRY_ALLOC(config->ctx, e->told.key);
    e->told.where =
        qn_arena_format(&config->arena, "%s", qn_json_where(where, sizeof where, place));
    QN_TRY_ALLOC(config->ctx, e->told.where);
    if (block) {
        values[e->told.count++] = qn_json_excerpt(&config->arena, place);
        QN_TRY_ALLOC(config->ctx, values[0]);
    } else {
        QN_TRY(add_values(values, &e->told.count, config, place));
    }
    e->told.values = values;
    config->n_entries++;
    return QN_OK;
}

/* Keys of the objects of inputs that are options of the whole, too: entries of a section
 * "input-configs[0]" of their own, which is not listed. */
static const char *const lifted[] = {"data_dir", "quantize_input_dtype", "mean", "std"};

static size_t count_objects(const qn_json_place *block)
{
    size_t count = 0;
    if (qn_json_is_object(block))
        return 1;
    return holds_objects(block) && qn_json_length(&count, block) == QN_OK ? count : 0;
}

static qn_status lift_entries(qn_config *config, const qn_json_place *block)
{
    const size_t count = strcmp(block->key, "input-configs") == 0 ? count_objects(block) : 0;
    for (size_t i = 0; i < count; i++) {
        const qn_json_place object = qn_json_is_object(block) ? *block : qn_json_element(block, i);
        const char *name = qn_arena_format(&config->arena, "%s[%zu]", block->key, i);
        QN_TRY_ALLOC(config->ctx, name);
        for (size_t k = 0; qn_json_is_object(&object) && k < QN_COUNT_OF(lifted); k++) {
            qn_json_place member;
            if (qn_json_find(&member, &object, lifted[k]) && !qn_json_is_object(&member))
                QN_TRY(add_entry(config, name, &member, false));
        }
    }
    return QN_OK;
}

static qn_status add_section(qn_config *config, const qn_json_place *object)
{
    const char *name = "";
    qn_json_place member;
    void *at = NULL;
    if (object->key) {
        name = qn_arena_format(&config->arena, "%s", object->key);
        QN_TRY_ALLOC(config->ctx, name);
        config->sections[config->n_sections++] = name;
    }
    while (qn_json_next(&member, object, &at)) {
        const bool is_section = qn_json_is_object(&member) && !object->parent;
        const bool block = qn_json_is_object(&member) || holds_objects(&member);
        if (!is_section)
            QN_TRY(add_entry(config, name, &member, block));
        if (!is_section && block)
            QN_TRY(lift_entries(config, &member));
    }
    return QN_OK;
}

static qn_status make_room(qn_config *config, const qn_json_place *root)
{
    size_t sections = 0, entries = 0, own = 0;
    qn_json_place member;
    void *at = NULL;
    QN_TRY(qn_json_members(&entries, root));
    while (qn_json_next(&member, root, &at)) {
        qn_json_place inputs;
        entries += QN_COUNT_OF(lifted) * count_objects(&member);
        if (!qn_json_is_object(&member))
            continue;
        QN_TRY(qn_json_members(&own, &member));
        sections++;
        entries += own;
        if (qn_json_find(&inputs, &member, "input-configs"))
            entries += QN_COUNT_OF(lifted) * count_objects(&inputs);
    }
    config->sections = qn_arena_array(&config->arena, sections + 1, sizeof *config->sections);
    config->entries = qn_arena_array(&config->arena, entries + 1, sizeof *config->entries);
    return config->sections && config->entries ? QN_OK : qn_fail_nomem(config->ctx);
}

static qn_status read_document(qn_config *config, const qn_json_document *document)
{
    const qn_json_place root = qn_json_root(document);
    qn_json_place member;
    void *at = NULL;
    QN_TRY(make_room(config, &root));
    QN_TRY(add_section(config, &root));
    while (qn_json_next(&member, &root, &at)) {
        if (qn_json_is_object(&member))
            QN_TRY(add_section(config, &member));
    }
    return QN_OK;
}

/* ---- The door -------------------------------------------------------------------------------- */

qn_status qn_config_load(qn_config **out, qn_context *ctx, const char *path)
{
    qn_json_document *document = NULL;
    *out = NULL;
    qn_config *config = qn_alloc_zero(ctx, 1, sizeof *config);
    QN_TRY_ALLOC(ctx, config);
    config->ctx = ctx;
    qn_arena_init(&config->arena, &ctx->allocator);
    qn_status status = qn_json_load(&document, ctx, path);
    if (status == QN_OK)
        status = read_document(config, document);
    qn_json_document_free(document);
    if (status == QN_OK)
        *out = config;
    else
        qn_config_free(config);
    return status;
}

void qn_config_free(qn_config *config)
{
    if (!config)
        return;
    qn_arena_free(&config->arena);
    qn_free(config->ctx, config);
}

const char *qn_config_section(const qn_config *config, size_t i)
{
    return i < config->n_sections ? config->sections[i] : NULL;
}

static int find_entry(qn_config_entry *out, const qn_config *config, const char *section,
                      bool block, size_t i)
{
    for (size_t e = 0; e < config->n_entries; e++) {
        const entry *one = &config->entries[e];
        if (one->block == block && strcmp(one->section, section) == 0 && i-- == 0) {
            *out = one->told;
            return 1;
        }
    }
    return 0;
}

int qn_config_entry_at(qn_config_entry *out, const qn_config *config, const char *section, size_t i)
{
    return find_entry(out, config, section, false, i);
}

int qn_config_block_at(qn_config_entry *out, const qn_config *config, const char *section, size_t i)
{
    return find_entry(out, config, section, true, i);
}
