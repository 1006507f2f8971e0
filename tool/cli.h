/* The command line: one table per command feeds the parser, --help, the man page and the completions.
 * Results go to stdout, everything else to stderr. */
#ifndef QN_CLI_H
#define QN_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quench.h"

/* Exit codes. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_UNSUPPORTED = 3, CLI_GOAL = 4 };

/* ---- Options ------------------------------------------------------------------------------------------ */

typedef struct cli_list {
    const char **at;
    size_t count;
} cli_list;

/* The field that an option fills, and what it takes. */
typedef enum cli_type {
    CLI_FLAG, /* int: how often it was given; no value */
    CLI_INT,  /* int64_t */
    CLI_REAL, /* double */
    CLI_TEXT, /* const char *, NULL when not given */
    CLI_LIST  /* cli_list: may be given again and again */
} cli_type;

typedef struct cli_option {
    const char *name;     /* without its dashes */
    const char *shorts;   /* names behind one dash, separated by blanks; whole words. NULL: none */
    cli_type type;        /* of the field */
    size_t offset;        /* of the field in the command's values */
    const char *value;    /* what help calls the value */
    const char *standard; /* value when not given, as it would be written; NULL: none */
    double least, most;   /* of a number */
    const char *words;    /* the values allowed, separated by blanks; NULL: any */
    const char *help;     /* without a full stop */
} cli_option;

/* What every command has. The values of a command begin with it. */
typedef struct cli_common {
    int help, json, verbose, quiet;
    cli_list arguments; /* what is no option */
} cli_common;

extern const cli_option cli_common_options[];
extern const size_t cli_common_count;

typedef struct cli_work cli_work;
typedef struct cli_command {
    const char *name;
    const char *arguments; /* of the usage line */
    int least, most;       /* arguments */
    const char *brief;
    const char *notes; /* a paragraph for help and man page; may be NULL */
    const cli_option *options;
    size_t n_options;
    size_t values_size;
    int (*run)(cli_work *cli, const void *values);
} cli_command;

/* All commands; ends with NULL. */
extern const cli_command *const cli_cmds[];
const cli_command *cli_command_find(const char *name);

/* Fills `values` (zeroed, of the command's size) from the arguments behind the command's name. False,
 * with a message on stderr, where they do not fit the table. cli_values_free in any case. */
bool cli_parse(void *values, const cli_command *command, int argc, char **argv);
void cli_values_free(void *values, const cli_command *command);
/* The best guess at what was meant, or NULL. */
const char *cli_nearest_command(const char *word);

/* ---- A command at work ---------------------------------------------------------------------------------- */

struct cli_work {
    qn_context *ctx;
    const cli_common *common;
    bool terminal; /* stderr is one, and progress is wanted */
    bool showing;  /* a progress line stands there */
    double shown_ms, began_ms;
    const char *doing;
};

/* Runs the command with a context, signals and progress set up; returns the exit code. */
int cli_run(const cli_command *command, int argc, char **argv);
/* Says why the last call failed; returns the exit code for `status`. */
int cli_fail(cli_work *cli, qn_status status);
/* Shows the report on stdout, as text or JSON, and frees it. Returns the exit code. */
int cli_show(cli_work *cli, qn_report *report);
void cli_error(const char *format, ...) QN_PRINTF(1, 2);

/* The rows that commands which prepare a graph share, and the options made of them. */
typedef struct cli_graph_values {
    cli_list shapes, skip;
    int64_t batch;
} cli_graph_values;
#define CLI_GRAPH_OPTIONS(holder, field)                                                           \
    {.name = "input-shape",                                                                        \
     .type = CLI_LIST,                                                                             \
     .offset = offsetof(holder, field.shapes),                                                     \
     .value = "NAME:DIMS",                                                                         \
     .help = "bind the dimensions of an input, as in x:1,3,48,320"},                               \
    {                                                                                              \
        .name = "no-pass", .type = CLI_LIST, .offset = offsetof(holder, field.skip),               \
        .value = "PASS", .help = "leave a pass out ('quench help passes' lists them)"              \
    }

typedef struct cli_graph {
    qn_input_shape *shapes;
    char *names;
    qn_graph_options options;
} cli_graph;
/* False, with a message, where a value is wrong. cli_graph_free in any case. */
bool cli_graph_make(cli_graph *out, const cli_graph_values *values);
void cli_graph_free(cli_graph *graph);

/* ---- Pages about the command itself ---------------------------------------------------------------------- */

void cli_help(const cli_command *command); /* NULL: of the whole */
void cli_man_page(void);
/* False when the shell is not known. */
bool cli_completion(const char *shell);

#endif
