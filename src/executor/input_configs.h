/* "input-configs" of a run configuration: where the samples of an input are, how they are made
 * ready, and what is made of the outputs. One object per input; what concerns the outputs stands in
 * the first. */
#ifndef QN_INPUT_CONFIGS_H
#define QN_INPUT_CONFIGS_H

#include "data/preprocess.h"

typedef struct qn_config_numbers {
    const double *at;
    /* 0: not given */
    size_t count;
} qn_config_numbers;

typedef struct qn_config_texts {
    const char *const *at;
    size_t count;
} qn_config_texts;

/* How pictures become an input. */
typedef struct qn_config_pictures {
    const char *color_space;
    /* A letterbox enlarges small pictures */
    bool augment;
    qn_config_numbers mean, std;
    /* The fill of a letterbox */
    qn_config_numbers fill;
    /* Side, or height and width */
    qn_config_numbers resize, crop;
    /* "centre" or "top-left" */
    const char *letterbox;
    /* Instead of all of this; NULL: not given */
    const char *preprocess;
    /* "uint8": raw pixels */
    const char *input_dtype;
} qn_config_pictures;

/* What outputs are, and what they are measured with. */
typedef struct qn_config_outputs {
    const char *label_dir;
    bool calculate_acc, draw_box;
    /* NULL: all, and by their shapes */
    const char *output_name, *output_kind;
    int64_t class_offset, max_det, nc;
    double conf_thres, iou_thres, draw_conf;
    qn_config_numbers anchors;
    qn_config_texts names;
} qn_config_outputs;

typedef struct qn_input_config {
    const char *data_dir;
    /* NULL: the input at this place */
    const char *input_name;
    /* "Image", "Numpy", "Bin"; NULL: as the files tell */
    const char *data_format;
    /* Names of the samples to use; NULL: all */
    const char *data_list;
    /* Letterbox, and detection instead of classification */
    bool is_yolo;
    qn_config_pictures pictures;
    qn_config_outputs outputs;
} qn_input_config;

typedef struct qn_input_configs {
    const qn_input_config *at;
    size_t count;
} qn_input_configs;

/* From JSON; `file` is for messages. Everything lies in `arena`. */
QN_MUST_CHECK qn_status qn_input_configs_read(qn_input_configs *out, qn_context *ctx,
                                              qn_arena *arena, const char *json, const char *file);
/* The one of data alone. */
QN_MUST_CHECK qn_status qn_input_configs_of(qn_input_configs *out, qn_context *ctx, qn_arena *arena,
                                            const char *data_dir);
/* The steps for an input of this size. `raw`: pixels as they are, whatever mean and std are. */
QN_MUST_CHECK qn_status qn_input_config_steps(qn_preprocess *out, qn_context *ctx,
                                              const qn_input_config *config,
                                              const qn_picture_shape *input, bool raw);

#endif
