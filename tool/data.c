/* What is calibrated: groups of options that commands share. */
#include "cli.h"

static const cli_option subject_options[] = {
    {.name = "model",
     .shorts = "m",
     .type = CLI_TEXT,
     .value = "MODEL",
     .help = "the float model; the same as the argument"},
};
const cli_group cli_subject_group = CLI_GROUP("for the calibration", subject_options);
