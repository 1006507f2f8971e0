/* quench quant: its values, shared by the tables, the rules over them, and the command. */
#ifndef QN_CLI_QUANT_H
#define QN_CLI_QUANT_H

#include "cli.h"

/* Who feeds the model, and what is done with it. */
typedef struct quant_run_values {
    const char *function, *script, *mode;
    int64_t ir_batch, log_level;
} quant_run_values;

/* What the model's inputs and outputs are. */
typedef struct quant_edge_values {
    cli_list mean, std, outputs;
} quant_edge_values;

typedef struct quant_values {
    cli_common common;
    cli_graph_values graph;
    /* The library's options, of which the command has those that the tables give a name */
    qn_quantize_options quantize;
    qn_quantize_file_options file;
    qn_strategies_options strategies;
    qn_mix_options mix;
    qn_goal goal;
    cli_list methods, iterations;
    qn_data_options data;
    cli_subject_values subject;
    int64_t batch;
    cli_list eval_data;
    const char *eval_list;
    cli_class_values classes;
    int list, make_template;
    quant_run_values run;
    quant_edge_values edge;
    const char *run_config;
} quant_values;

extern const cli_group quant_group, quant_run_group, quant_mix_group, quant_edge_group;
extern const cli_group quantize_group, quantize_file_group, quant_goal_group,
    quant_strategies_group, quant_template_group;

/* A cli_command's `check`: options that exclude each other are an error, those without effect a
 * note. */
bool quant_check(void *values, const cli_command *command);

/* A copy of the model, normalized and cut as the options say. */
QN_MUST_CHECK qn_status quant_edit(qn_model **out, cli_work *cli, qn_model *model,
                                   const quant_values *v);
/* The batch of the file; 0: as the float model has it. Chips run fixed ones only. */
int64_t quant_file_batch(const quant_values *v, const qn_model *model);
/* What changes the model besides its scales, as it would be typed: "--mean 1 --std 2 -ib 4"; to be
 * freed. NULL: out of memory. */
char *quant_given(const quant_values *v);
/* Does the work; for the commands that begin with it. */
int quant_run(cli_work *cli, const void *values);
/* Its groups of options. */
#define QUANT_PART(group_, member)                                                                 \
    {                                                                                              \
        .group = &(group_), .offset = offsetof(quant_values, member)                               \
    }
#define QUANT_PARTS                                                                                \
    {                                                                                              \
        {.group = &quant_group}, QUANT_PART(quantize_group, quantize),                             \
            QUANT_PART(quantize_file_group, file), QUANT_PART(quant_goal_group, goal),             \
            QUANT_PART(quant_run_group, run), QUANT_PART(quant_strategies_group, strategies),      \
            {.group = &quant_mix_group}, QUANT_PART(quant_template_group, mix),                    \
            QUANT_PART(quant_edge_group, edge), QUANT_PART(cli_origin_group, graph),               \
            QUANT_PART(cli_subject_group, subject),                                                \
            {.group = &cli_data_group,                                                             \
             .offset = offsetof(quant_values, data),                                               \
             .without = "labels"},                                                                 \
            QUANT_PART(cli_class_group, classes), QUANT_PART(cli_shape_group, graph),              \
            QUANT_PART(cli_config_group, run_config)                                               \
    }

extern const cli_command cli_cmd_quant;

#endif
