/* quench quant: the tables of its options, those of the library and the command's own. */
#include "quant.h"

/* ---- Tables of the library ------------------------------------------------------------------- */

#define CLI_OWNER qn_quantize_options
static const qn_quantize_options quantize_standard = QN_QUANTIZE_OPTIONS_INIT;
static const qn_option_rule quantize_rules[] = {QN_QUANTIZE_RULES(CLI_RULE)};
static const cli_option quantize_rows[] = {QN_QUANTIZE_OPTIONS(CLI_ROW)};
const cli_group quantize_group =
    CLI_RULED_GROUP("of quant", quantize_rows, quantize_standard, quantize_rules);
#undef CLI_OWNER

#define CLI_OWNER qn_quantize_file_options
static const qn_quantize_file_options file_standard = QN_QUANTIZE_FILE_OPTIONS_INIT;
static const qn_option_rule file_rules[] = {QN_QUANTIZE_FILE_RULES(CLI_RULE)};
static const cli_option file_rows[] = {QN_QUANTIZE_FILE_OPTIONS(CLI_ROW)};
const cli_group quantize_file_group =
    CLI_RULED_GROUP("of quant", file_rows, file_standard, file_rules);
#undef CLI_OWNER

#define CLI_OWNER qn_goal
static const qn_goal goal_standard = QN_GOAL_INIT;
static const cli_option goal_rows[] = {QN_GOAL(CLI_ROW)};
const cli_group quant_goal_group = CLI_LIBRARY_GROUP("of quant", goal_rows, goal_standard);
#undef CLI_OWNER

#define CLI_OWNER qn_strategies_options
static const qn_strategies_options strategies_standard = QN_STRATEGIES_OPTIONS_INIT;
static const qn_option_rule strategies_rules[] = {QN_STRATEGIES_RULES(CLI_RULE)};
static const cli_option strategies_rows[] = {QN_STRATEGIES_OPTIONS(CLI_ROW)};
const cli_group quant_strategies_group =
    CLI_RULED_GROUP("for the run", strategies_rows, strategies_standard, strategies_rules);
#undef CLI_OWNER

#define CLI_OWNER qn_mix_options
static const qn_mix_options mix_standard = QN_MIX_OPTIONS_INIT;
static const cli_option mix_rows[] = {QN_MIX_OPTIONS(CLI_ROW)};
const cli_group quant_template_group =
    CLI_LIBRARY_GROUP("for mixed widths", mix_rows, mix_standard);
#undef CLI_OWNER

/* ---- How to quantize ------------------------------------------------------------------------- */

/* The methods, and all of them. */
static const char *method_word(size_t i)
{
    const char *name = qn_method_name(i);
    return name || !i || !qn_method_name(i - 1) ? name : "all";
}

static const cli_option own_options[] = {
    {.name = "quant-mode",
     .field = "methods",
     .shorts = "qm",
     .type = CLI_WORDS,
     .offset = offsetof(quant_values, methods),
     .value = "METHOD...",
     .word = method_word,
     .help = "how ranges are chosen; several, or all of them (all): each is tried, the best one "
             "counts; default: mse"},
    {.name = "iteration",
     .field = "iterations",
     .shorts = "i",
     .type = CLI_WORDS,
     .offset = offsetof(quant_values, iterations),
     .value = "N...",
     .number = CLI_WHOLE,
     .least = 1,
     .most = 1e9,
     .help = "batches of samples to calibrate with; several: each is tried; default: all, for a "
             "chip 1"},
    {.name = "batch-size",
     .shorts = "bs",
     .type = CLI_INT,
     .offset = offsetof(quant_values, batch),
     .value = "N",
     .standard = "1",
     .least = 1,
     .most = 65536,
     .help = "samples of a batch"},
    {.name = "eval-data",
     .type = CLI_LIST,
     .offset = offsetof(quant_values, eval_data),
     .value = "[INPUT=]PATH",
     .help = "labelled samples for --max-drop; default: those of -d, if they have classes"},
    {.name = "eval-list",
     .type = CLI_TEXT,
     .offset = offsetof(quant_values, eval_list),
     .value = "FILE",
     .help = "names of the samples of --eval-data to use, one a line"},
    {.name = "list",
     .field = "qn_quantize_list",
     .type = CLI_FLAG,
     .offset = offsetof(quant_values, list),
     .help = "show what each node would become, and do nothing else"},
};
const cli_group quant_group = CLI_GROUP("of quant", own_options);

/* ---- Who feeds it, and what is done ---------------------------------------------------------- */

static const char *mode_word(size_t i)
{
    static const char *const words[] = {"quant", "infer", "convert", "compare", NULL};
    return words[i];
}

static const cli_option run_options[] = {
    {.name = "infer-func",
     .shorts = "if",
     .type = CLI_TEXT,
     .offset = offsetof(quant_run_values, function),
     .value = "NAME",
     .help = "the function that feeds the model and judges it; default: the data, or infer_auto "
             "(random numbers) without any"},
    {.name = "user-defined-script",
     .shorts = "uds",
     .type = CLI_TEXT,
     .offset = offsetof(quant_run_values, script),
     .value = "FILE",
     .help = "Python script or shared object that has the function"},
    {.name = "run-mode",
     .shorts = "r",
     .type = CLI_TEXT,
     .offset = offsetof(quant_run_values, mode),
     .value = "MODE",
     .standard = "quant",
     .word = mode_word,
     .help = "quantize; run the model as it is; only convert it; quantize and keep every layer's "
             "outputs"},
    {.name = "ir-batch",
     .shorts = "ib",
     .type = CLI_INT,
     .offset = offsetof(quant_run_values, ir_batch),
     .value = "N",
     .least = 1,
     .most = 65536,
     .help =
         "batch of the quantized model, where the float one leaves it open; without it a chip's "
         "model has 1, and others stay open"},
    {.name = "log-level",
     .shorts = "l",
     .type = CLI_INT,
     .offset = offsetof(quant_run_values, log_level),
     .value = "N",
     .standard = "3",
     .least = 0,
     .most = 3,
     .help = "tell everything (0), much (1), warnings (2), errors (3); results and notes always"},
};
const cli_group quant_run_group = CLI_GROUP("for the run", run_options);

/* ---- Widths node by node --------------------------------------------------------------------- */

static const cli_option mix_options[] = {
    {.name = "generate-template",
     .field = "qn_mix_template",
     .shorts = "gt",
     .type = CLI_FLAG,
     .offset = offsetof(quant_values, make_template),
     .help = "write <model>_mix.json, which has bits and method of every node, and stop"},
};
const cli_group quant_mix_group = CLI_GROUP("for mixed widths", mix_options);

/* ---- Inputs, outputs, tables ----------------------------------------------------------------- */

static const cli_option edge_options[] = {
    {.name = "mean",
     .type = CLI_WORDS,
     .offset = offsetof(quant_edge_values, mean),
     .value = "X...",
     .number = CLI_DECIMAL,
     .help = "subtracted from the first input, inside the model; one, or one for each channel"},
    {.name = "std",
     .type = CLI_WORDS,
     .offset = offsetof(quant_edge_values, std),
     .value = "X...",
     .number = CLI_DECIMAL,
     .help = "then divides it"},
    {.name = "output-name",
     .shorts = "on",
     .type = CLI_WORDS,
     .offset = offsetof(quant_edge_values, outputs),
     .value = "NAME...",
     .help = "cut the network behind these tensors or nodes"},
};
const cli_group quant_edge_group = CLI_GROUP("for inputs, outputs and tables", edge_options);
