/* quench quant: its values, shared by the tables, the rules over them, and the command. */
#ifndef QN_CLI_QUANT_H
#define QN_CLI_QUANT_H

#include "cli.h"

/* Of nodes that nobody asks another width for. */
enum { STANDARD_BITS = 8 };

/* What only the command has: how it is run, and on what accuracy is measured. */
typedef struct quant_own_values {
    const char *model, *mode, *eval_list, *run_config;
    int64_t log_level;
    cli_list eval_data;
    int list, make_template;
} quant_own_values;

/* Options of the library, of which the command has those that the tables give a name: parts that
 * lie in strategies.file.quantize are the ones that count. */
typedef struct quant_values {
    cli_common common;
    qn_model_load_options origin;
    qn_strategies_options strategies;
    qn_mix_options mix;
    qn_accuracy_budget budget;
    qn_edit_options edit;
    quant_own_values own;
} quant_values;

static inline const qn_quantize_options *quant_options_of(const quant_values *v)
{
    return &v->strategies.file.quantize;
}

extern const cli_group quant_group, quant_run_group, quant_mix_group;

/* A cli_command's `check`: options that exclude each other are an error, those without effect a
 * note. */
bool quant_check(void *values, const cli_command *command);

/* A copy of the model, normalized and cut as the options say. */
QN_MUST_CHECK qn_status quant_edit(qn_model **out, cli_work *cli, qn_model *model,
                                   const quant_values *v);
/* The batch of the file; 0: as the float model has it. Chips run fixed ones only. */
int64_t quant_file_batch(const quant_values *v, const qn_model *model);
/* What changes the model besides its scales, as it would be typed, each word behind a blank; to be
 * freed. NULL: out of memory. */
char *quant_given(const quant_values *v);
/* Does the work; for the commands that begin with it. */
int quant_run(cli_work *cli, const void *values);
/* Its groups of options. */
#define QUANT_PART(group_, member)                                                                 \
    {                                                                                              \
        .group = &(group_), .offset = offsetof(quant_values, member)                               \
    }
#define QUANT_SAMPLES strategies.file.quantize.calibrate
#define QUANT_PARTS                                                                                \
    {                                                                                              \
        QUANT_PART(quant_group, own), QUANT_PART(cli_quantize_group, strategies.file.quantize),    \
            QUANT_PART(cli_quantize_file_group, strategies.file),                                  \
            QUANT_PART(cli_accuracy_budget_group, budget), QUANT_PART(quant_run_group, own),       \
            QUANT_PART(cli_strategies_group, strategies),                                          \
            QUANT_PART(cli_function_group, strategies.function), QUANT_PART(quant_mix_group, own), \
            QUANT_PART(cli_mix_group, mix), QUANT_PART(cli_edit_group, edit),                      \
            QUANT_PART(cli_origin_group, origin), QUANT_PART(cli_subject_group, own.model),        \
            QUANT_PART(cli_calibrate_group, QUANT_SAMPLES),                                        \
            QUANT_PART(cli_data_group, QUANT_SAMPLES.data),                                        \
            {.group = &cli_graph_group,                                                            \
             .offset = offsetof(quant_values, QUANT_SAMPLES.graph),                                \
             .without = "batch"},                                                                  \
            QUANT_PART(cli_config_group, own.run_config)                                           \
    }

extern const cli_command cli_cmd_quant;

#endif
