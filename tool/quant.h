/* quench quant: its values, shared by the tables, the rules over them, and the command. */
#ifndef QN_CLI_QUANT_H
#define QN_CLI_QUANT_H

#include "cli.h"

/* Who feeds the model, and what is done with it. */
typedef struct quant_run_values {
    const char *function, *script, *mode, *cache;
    int64_t ir_batch, log_level;
    int dump;
} quant_run_values;

/* Nodes of different widths. */
typedef struct quant_mix_values {
    const char *config, *strategy;
    double ratio;
    int make_template;
} quant_mix_values;

/* What the model's inputs and outputs are, and the network between them. */
typedef struct quant_edge_values {
    cli_list mean, std, input_types, outputs;
    int real_outputs, one_scale;
    int64_t table_bits;
    double norm_limit;
} quant_edge_values;

typedef struct quant_values {
    cli_common common;
    cli_graph_values graph;
    cli_list methods, iterations;
    const char *target, *save_dir, *stats, *scales, *form;
    cli_data_values data;
    cli_subject_values subject;
    cli_list keep_float, widths;
    double percent;
    int64_t batch, bits, opset;
    double max_drop;
    int64_t fix_worst;
    bool reduce_range;
    cli_list eval_data;
    const char *eval_list;
    cli_class_values classes;
    int list, dynamic, save_scales, fastest, prove;
    int no_bias_correction, no_weight_clipping, no_look_through, no_equalization, no_balancing;
    quant_run_values run;
    quant_mix_values mix;
    quant_edge_values edge;
    const char *run_config;
} quant_values;

extern const cli_group quant_group, quant_run_group, quant_mix_group, quant_edge_group;

/* A cli_command's `check`: options that exclude each other are an error, those without effect a
 * note. */
bool quant_check(void *values, const cli_command *command);

/* A copy of the model, normalized and cut as the options say. */
QN_MUST_CHECK qn_status quant_edit(qn_model **out, cli_work *cli, qn_model *model,
                                   const quant_values *v);
/* The batch of the file; 0: as the float model has it. Chips run fixed ones only. */
int64_t quant_file_batch(const quant_values *v, const qn_model *model);
/* Does the work; for the commands that begin with it. */
int quant_run(cli_work *cli, const void *values);
/* Its groups of options. */
#define QUANT_PARTS                                                                                \
    {                                                                                              \
        {&quant_group, 0}, {&quant_run_group, offsetof(quant_values, run)},                        \
            {&quant_mix_group, offsetof(quant_values, mix)},                                       \
            {&quant_edge_group, offsetof(quant_values, edge)},                                     \
            {&cli_origin_group, offsetof(quant_values, graph)},                                    \
            {&cli_subject_group, offsetof(quant_values, subject)},                                 \
            {&cli_data_group, offsetof(quant_values, data)},                                       \
            {&cli_class_group, offsetof(quant_values, classes)},                                   \
            {&cli_shape_group, offsetof(quant_values, graph)},                                     \
        {                                                                                          \
            &cli_config_group, offsetof(quant_values, run_config)                                  \
        }                                                                                          \
    }

extern const cli_command cli_cmd_quant;

#endif
