/* "input-configs" read from JSON. */
#include "executor/input_configs.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"

typedef struct reader {
    qn_context *ctx;
    qn_arena *arena;
} reader;

typedef struct key_row key_row;
typedef qn_status key_fn(void *field, const reader *r, const key_row *row,
                         const qn_json_place *place);
struct key_row {
    const char *name;
    key_fn *read;
    size_t offset;
    /* The limits of numbers */
    double least, most;
    /* Bits: numbers that a list may have; 0: any */
    size_t counts;
    /* The words that a text may be; NULL: any */
    const char *const *word;
};

/* ---- Values ---------------------------------------------------------------------------------- */

static qn_status fail_word(const key_row *row, const qn_json_place *place, const char *text)
{
    char words[128] = "";
    for (size_t i = 0; row->word[i]; i++)
        qn_word_list(words, sizeof words, "%s", row->word[i]);
    return qn_json_fail(place, QN_E_FORMAT, "is '%s', not one of %s", text, words);
}

static qn_status read_text(void *field, const reader *r, const key_row *row,
                           const qn_json_place *place)
{
    const char *text = NULL, **out = field;
    QN_TRY(qn_json_get_text(&text, place));
    for (size_t i = 0; row->word && row->word[i]; i++) {
        if (strcmp(row->word[i], text) == 0) {
            *out = row->word[i];
            return QN_OK;
        }
    }
    if (row->word)
        return fail_word(row, place, text);
    *out = qn_arena_text(r->arena, text, strlen(text));
    QN_TRY_ALLOC(r->ctx, *out);
    return QN_OK;
}

static qn_status read_bool(void *field, const reader *r, const key_row *row,
                           const qn_json_place *place)
{
    (void)r;
    (void)row;
    return qn_json_get_bool(field, place);
}

static qn_status read_int(void *field, const reader *r, const key_row *row,
                          const qn_json_place *place)
{
    (void)r;
    return qn_json_get_int(field, place, (int64_t)row->least, (int64_t)row->most);
}

static qn_status get_real(double *out, const key_row *row, const qn_json_place *place)
{
    QN_TRY(qn_json_get_double(out, place));
    if (*out < row->least || *out > row->most)
        return qn_json_fail(place, QN_E_FORMAT, "is %g, not from %g to %g", *out, row->least,
                            row->most);
    return QN_OK;
}

static qn_status read_real(void *field, const reader *r, const key_row *row,
                           const qn_json_place *place)
{
    (void)r;
    return get_real(field, row, place);
}

/* Lists of any depth, one number behind the other: anchors are a list for each grid, or all in
 * one. */
static qn_status count_numbers(size_t *count, const qn_json_place *place)
{
    size_t length = 0;
    if (!qn_json_is_list(place)) {
        ++*count;
        return QN_OK;
    }
    QN_TRY(qn_json_length(&length, place));
    for (size_t i = 0; i < length; i++) {
        const qn_json_place element = qn_json_element(place, i);
        QN_TRY(count_numbers(count, &element));
    }
    return QN_OK;
}

static qn_status add_numbers(double *out, size_t *count, const key_row *row,
                             const qn_json_place *place)
{
    size_t length = 0;
    if (!qn_json_is_list(place))
        return get_real(&out[(*count)++], row, place);
    QN_TRY(qn_json_length(&length, place));
    for (size_t i = 0; i < length; i++) {
        const qn_json_place element = qn_json_element(place, i);
        QN_TRY(add_numbers(out, count, row, &element));
    }
    return QN_OK;
}

/* An empty list is as good as none. */
static qn_status read_numbers(void *field, const reader *r, const key_row *row,
                              const qn_json_place *place)
{
    qn_config_numbers *out = field;
    size_t count = 0, added = 0;
    QN_TRY(count_numbers(&count, place));
    double *numbers = qn_arena_array(r->arena, count + 1, sizeof *numbers);
    QN_TRY_ALLOC(r->ctx, numbers);
    QN_TRY(add_numbers(numbers, &added, row, place));
    if (count && row->counts && (count > 8 || !(row->counts >> count & 1)))
        return qn_json_fail(place, QN_E_FORMAT, "has %zu numbers: %s", count,
                            row->counts == 6 ? "one, or height and width, are expected"
                                             : "one, or one for each channel, is expected");
    *out = (qn_config_numbers){numbers, count};
    return QN_OK;
}

static qn_status read_texts(void *field, const reader *r, const key_row *row,
                            const qn_json_place *place)
{
    qn_config_texts *out = field;
    size_t count = 0;
    QN_TRY(qn_json_length(&count, place));
    const char **texts = qn_arena_array(r->arena, count + 1, sizeof *texts);
    QN_TRY_ALLOC(r->ctx, texts);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place element = qn_json_element(place, i);
        QN_TRY(read_text(&texts[i], r, row, &element));
    }
    *out = (qn_config_texts){texts, count};
    return QN_OK;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static const char *const colours[] = {"BGR", "RGB", "GRAY", NULL};
static const char *const formats[] = {"Image", "Numpy", "Bin", NULL};
static const char *const dtypes[] = {"float32", "uint8", NULL};
static const char *const places[] = {"centre", "top-left", NULL};

enum { ONE_OR_TWO = 6, ONE_OR_THREE = 10 };
#define AT(field) .offset = offsetof(qn_input_config, field)

static const key_row rows[] = {
    {.name = "data_dir", .read = read_text, AT(data_dir)},
    {.name = "label_dir", .read = read_text, AT(outputs.label_dir)},
    {.name = "is_yolo", .read = read_bool, AT(is_yolo)},
    {.name = "color_space", .read = read_text, AT(pictures.color_space), .word = colours},
    {.name = "augment", .read = read_bool, AT(pictures.augment)},
    {.name = "mean",
     .read = read_numbers,
     AT(pictures.mean),
     .least = -1e6,
     .most = 1e6,
     .counts = ONE_OR_THREE},
    {.name = "std",
     .read = read_numbers,
     AT(pictures.std),
     .least = -1e6,
     .most = 1e6,
     .counts = ONE_OR_THREE},
    {.name = "calculate_acc", .read = read_bool, AT(outputs.calculate_acc)},
    {.name = "draw_box", .read = read_bool, AT(outputs.draw_box)},
    {.name = "max_det", .read = read_int, AT(outputs.max_det), .least = 1, .most = 30000},
    {.name = "anchors", .read = read_numbers, AT(outputs.anchors), .least = 0, .most = 1e6},
    {.name = "nc", .read = read_int, AT(outputs.nc), .least = 1, .most = 65536},
    {.name = "conf_thres", .read = read_real, AT(outputs.conf_thres), .least = 0, .most = 0.999999},
    {.name = "iou_thres", .read = read_real, AT(outputs.iou_thres), .least = 0, .most = 1},
    {.name = "names", .read = read_texts, AT(outputs.names)},
    {.name = "input_name", .read = read_text, AT(input_name)},
    {.name = "quant_data_format", .read = read_text, AT(data_format), .word = formats},
    {.name = "quantize_input_dtype", .read = read_text, AT(pictures.input_dtype), .word = dtypes},
    {.name = "padding_constant_value",
     .read = read_numbers,
     AT(pictures.fill),
     .least = 0,
     .most = 255,
     .counts = ONE_OR_THREE},
    {.name = "data_list", .read = read_text, AT(data_list)},
    {.name = "resize",
     .read = read_numbers,
     AT(pictures.resize),
     .least = 1,
     .most = 65536,
     .counts = ONE_OR_TWO},
    {.name = "crop",
     .read = read_numbers,
     AT(pictures.crop),
     .least = 1,
     .most = 65536,
     .counts = ONE_OR_TWO},
    {.name = "letterbox", .read = read_text, AT(pictures.letterbox), .word = places},
    {.name = "preprocess", .read = read_text, AT(pictures.preprocess)},
    {.name = "class_offset",
     .read = read_int,
     AT(outputs.class_offset),
     .least = -65536,
     .most = 65536},
    {.name = "output_name", .read = read_text, AT(outputs.output_name)},
    {.name = "output_kind", .read = read_text, AT(outputs.output_kind)},
    {.name = "draw_conf", .read = read_real, AT(outputs.draw_conf), .least = 0, .most = 1},
};

static qn_status fail_unknown(const qn_json_place *member)
{
    const char *names[QN_COUNT_OF(rows) + 1] = {NULL};
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++)
        names[i] = rows[i].name;
    const char *best = qn_word_nearest(names, member->key);
    return qn_json_fail(member, QN_E_FORMAT, "there is no such key%s%s%s",
                        best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

static qn_status read_member(qn_input_config *config, const reader *r, const qn_json_place *member)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (strcmp(rows[i].name, member->key) == 0)
            return rows[i].read((char *)config + rows[i].offset, r, &rows[i], member);
    }
    return fail_unknown(member);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_input_config standard(void)
{
    const qn_detect_options detect = QN_DETECT_OPTIONS_INIT;
    return (qn_input_config){.pictures = {.color_space = "BGR", .letterbox = "centre"},
                             .outputs = {.max_det = detect.max_det,
                                         .conf_thres = detect.conf_thres,
                                         .iou_thres = detect.iou_thres,
                                         .draw_conf = detect.draw_conf}};
}

/* What keys say together. */
static qn_status check_config(const qn_input_config *config, const qn_json_place *object)
{
    qn_json_place member;
    for (size_t i = 0; i < config->pictures.std.count; i++) {
        if (config->pictures.std.at[i] == 0 && qn_json_find(&member, object, "std"))
            return qn_json_fail(&member, QN_E_FORMAT, "has a 0, which nothing is divided by");
    }
    if (config->outputs.nc && config->outputs.names.count &&
        (int64_t)config->outputs.names.count != config->outputs.nc &&
        qn_json_find(&member, object, "names"))
        return qn_json_fail(&member, QN_E_FORMAT, "has %zu names, but nc is %lld classes",
                            config->outputs.names.count, (long long)config->outputs.nc);
    if (!config->data_dir || !*config->data_dir)
        return qn_json_fail(object, QN_E_FORMAT,
                            "has no data_dir: the folder with the samples of the input");
    return QN_OK;
}

static qn_status read_config(qn_input_config *config, const reader *r, const qn_json_place *object)
{
    size_t count = 0;
    qn_json_place member;
    void *at = NULL;
    *config = standard();
    QN_TRY(qn_json_members(&count, object));
    while (qn_json_next(&member, object, &at))
        QN_TRY(read_member(config, r, &member));
    return check_config(config, object);
}

/* A list, or the only object of one. */
static qn_status read_all(qn_input_configs *out, const reader *r, const qn_json_place *root)
{
    const bool single = qn_json_is_object(root);
    size_t count = 1;
    if (!single)
        QN_TRY(qn_json_length(&count, root));
    if (!count)
        return qn_json_fail(root, QN_E_FORMAT, "is empty: one object per input is expected");
    qn_input_config *configs = qn_arena_array(r->arena, count, sizeof *configs);
    QN_TRY_ALLOC(r->ctx, configs);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place element = single ? *root : qn_json_element(root, i);
        QN_TRY(read_config(&configs[i], r, &element));
    }
    *out = (qn_input_configs){configs, count};
    return QN_OK;
}

qn_status qn_input_configs_read(qn_input_configs *out, qn_context *ctx, qn_arena *arena,
                                const char *json, const char *file)
{
    qn_json_document *document = NULL;
    const reader r = {ctx, arena};
    QN_TRY(qn_json_read(&document, ctx, json, strlen(json), file ? file : "input-configs"));
    const qn_json_place root = qn_json_root(document);
    const qn_status status = read_all(out, &r, &root);
    qn_json_document_free(document);
    return status;
}

qn_status qn_input_configs_of(qn_input_configs *out, qn_context *ctx, qn_arena *arena,
                              const char *data_dir)
{
    qn_input_config *config = qn_arena_array(arena, 1, sizeof *config);
    QN_TRY_ALLOC(ctx, config);
    *config = standard();
    config->data_dir = data_dir;
    *out = (qn_input_configs){config, 1};
    return QN_OK;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* One number stands for all channels. */
static void set_numbers(float out[3], const qn_config_numbers *numbers)
{
    for (size_t c = 0; c < 3; c++)
        out[c] = (float)numbers->at[numbers->count == 1 ? 0 : c];
}

/* No mean and std: x / 255; a lone one is as good as none. */
static qn_status set_scale(qn_preprocess *p, qn_context *ctx, const qn_config_pictures *c,
                           int64_t channels)
{
    const bool both = c->mean.count && c->std.count;
    p->unit = !both;
    if (!both)
        return QN_OK;
    if (channels > 1 && both && (c->mean.count == 1 || c->std.count == 1))
        return qn_fail(ctx, QN_E_OPTION,
                       "mean and std have one number, but the input has %lld channels: give one "
                       "for each",
                       (long long)channels);
    if (channels == 1 && (c->mean.count > 1 || c->std.count > 1))
        return qn_fail(ctx, QN_E_INVALID,
                       "mean and std have three numbers, but the input has one channel");
    set_numbers(p->mean, &c->mean);
    set_numbers(p->std, &c->std);
    return QN_OK;
}

/* [side] or [height, width] */
static void set_size(int32_t *height, int32_t *width, const qn_config_numbers *size)
{
    *height = (int32_t)size->at[0];
    *width = (int32_t)size->at[size->count - 1];
}

static qn_status set_letterbox(qn_preprocess *p, qn_context *ctx, const qn_config_pictures *c,
                               const qn_picture_shape *input)
{
    float fill[3] = {114, 114, 114};
    if (input->height < 1 || input->width < 1)
        return qn_fail(ctx, QN_E_INVALID,
                       "the model leaves the size of its pictures open: is_yolo needs one "
                       "(`load.shapes` or a model with it)");
    p->fit = strcmp(c->letterbox, "top-left") == 0 ? QN_FIT_TOP_LEFT : QN_FIT_CENTRE;
    p->height = (int32_t)input->height;
    p->width = (int32_t)input->width;
    p->shrink = !c->augment;
    if (c->fill.count)
        set_numbers(fill, &c->fill);
    for (size_t i = 0; i < 3; i++)
        p->fill[i] = (uint8_t)fill[i];
    return QN_OK;
}

/* The short side, then the middle of it; without either the whole picture takes the input's
 * size. */
static void set_fit(qn_preprocess *p, const qn_config_pictures *c, const qn_picture_shape *input)
{
    if (c->crop.count)
        set_size(&p->crop_height, &p->crop_width, &c->crop);
    if (c->resize.count) {
        p->fit = c->resize.count == 1 ? QN_FIT_SHORT_SIDE : QN_FIT_SIZE;
        set_size(&p->height, &p->width, &c->resize);
    } else if (!c->crop.count && input->height > 0 && input->width > 0) {
        p->fit = QN_FIT_SIZE;
        p->height = (int32_t)input->height;
        p->width = (int32_t)input->width;
    }
}

qn_status qn_input_config_steps(qn_preprocess *out, qn_context *ctx, const qn_input_config *config,
                                const qn_picture_shape *input, bool raw)
{
    const qn_config_pictures *pictures = &config->pictures;
    if (pictures->preprocess)
        return qn_preprocess_parse(out, ctx, pictures->preprocess);
    qn_preprocess_init(out);
    out->colour = strcmp(pictures->color_space, "RGB") == 0    ? QN_COLOUR_RGB
                  : strcmp(pictures->color_space, "GRAY") == 0 ? QN_COLOUR_GREY
                                                               : QN_COLOUR_BGR;
    if (!raw)
        QN_TRY(set_scale(out, ctx, pictures, input->channels));
    if (config->is_yolo && !pictures->resize.count && !pictures->crop.count)
        return set_letterbox(out, ctx, pictures, input);
    set_fit(out, pictures, input);
    return QN_OK;
}
