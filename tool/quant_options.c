/* quench quant: the tables of the options that only the command has. */
#include "quant.h"

static const cli_option own_options[] = {
    {.name = "eval-data",
     .type = CLI_LIST,
     .offset = offsetof(quant_own_values, eval_data),
     .value = "[INPUT=]PATH",
     .help = "labelled samples for --max-drop; default: those of -d, if they have classes"},
    {.name = "eval-list",
     .type = CLI_TEXT,
     .offset = offsetof(quant_own_values, eval_list),
     .value = "FILE",
     .help = "names of the samples of --eval-data to use, one a line"},
    {.name = "list",
     .field = "qn_quantize_list",
     .type = CLI_FLAG,
     .offset = offsetof(quant_own_values, list),
     .help = "show what each node would become, and do nothing else"},
};
const cli_group quant_group = CLI_GROUP("of quant", own_options);

static const char *mode_word(size_t i)
{
    static const char *const words[] = {"quant", "infer", "convert", "compare", NULL};
    return words[i];
}

static const cli_option run_options[] = {
    {.name = "run-mode",
     .shorts = "r",
     .type = CLI_TEXT,
     .offset = offsetof(quant_own_values, mode),
     .value = "MODE",
     .standard = "quant",
     .word = mode_word,
     .help = "quantize; run the model as it is; only convert it; quantize and keep every layer's "
             "outputs"},
    {.name = "log-level",
     .shorts = "l",
     .type = CLI_INT,
     .offset = offsetof(quant_own_values, log_level),
     .value = "N",
     .standard = "3",
     .least = 0,
     .most = 3,
     .help = "tell everything (0), much (1), warnings (2), errors (3); results and notes always"},
};
const cli_group quant_run_group = CLI_GROUP("for the run", run_options);

static const cli_option mix_options[] = {
    {.name = "generate-template",
     .field = "qn_mix_template",
     .shorts = "gt",
     .type = CLI_FLAG,
     .offset = offsetof(quant_own_values, make_template),
     .help = "write <model>_mix.json, which has bits and method of every node, and stop"},
};
const cli_group quant_mix_group = CLI_GROUP("for mixed widths", mix_options);
