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

/* The i-th of the words that a value may be; NULL past the last. */
typedef const char *cli_word_fn(size_t i);

typedef struct cli_option {
    const char *name;     /* without its dashes */
    const char *shorts;   /* names behind one dash, separated by blanks; whole words. NULL: none */
    cli_type type;        /* of the field */
    size_t offset;        /* of the field in the group's values */
    const char *value;    /* what help calls the value */
    const char *standard; /* value when not given, as it would be written; NULL: none */
    double least, most;   /* of a number */
    cli_word_fn *word;    /* the values allowed; NULL: any */
    const char *help;     /* without a full stop */
} cli_option;

/* Options that belong together: rows over one struct of values. */
typedef struct cli_group {
    const char *title; /* of the rows in help */
    const cli_option *options;
    size_t count;
} cli_group;
#define CLI_GROUP(heading, rows)                                                                   \
    {                                                                                              \
        .title = (heading), .options = (rows), .count = sizeof(rows) / sizeof *(rows)              \
    }

/* A group that a command has, and where the group's struct lies in the command's values. */
typedef struct cli_part {
    const cli_group *group;
    size_t offset;
} cli_part;

/* What every command has. The values of a command begin with it. */
typedef struct cli_common {
    int help, json, markdown, verbose, quiet;
    cli_list arguments; /* what is no option */
} cli_common;

typedef struct cli_work cli_work;
typedef struct cli_command {
    const char *name;
    const char *arguments; /* of the usage line */
    int least, most;       /* arguments */
    cli_word_fn *word;     /* that an argument may be; NULL: files */
    const char *brief;
    const char *notes; /* a paragraph for help and man page; may be NULL */
    cli_part parts[6]; /* its options; ends with a part without group. The common ones follow */
    size_t values_size;
    int (*run)(cli_work *cli, const void *values);
} cli_command;

/* All commands; ends with NULL. */
extern const cli_command *const cli_cmds[];
const cli_command *cli_command_find(const char *name);

/* The i-th group of a command, the common one last; NULL past it. */
const cli_part *cli_part_at(const cli_command *command, size_t i);

/* An option of a command, and where its field lies in the command's values. */
typedef struct cli_field {
    const cli_option *option;
    size_t offset;
} cli_field;
/* The i-th of all, group by group; false past the last. */
bool cli_field_at(cli_field *out, const cli_command *command, size_t i);

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
/* Shows the report on stdout, as text, JSON or Markdown, and frees it. Returns the exit code. */
int cli_show(cli_work *cli, qn_report *report);
void cli_error(const char *format, ...) QN_PRINTF(1, 2);

/* ---- Commands about a model: the groups of options that they share ------------------------------------ */

/* How its graph is made ready. */
typedef struct cli_graph_values {
    cli_list shapes, skip;
    int64_t batch;
} cli_graph_values;

/* What it runs on. */
typedef struct cli_engine_values {
    const char *backend;
    int64_t threads;
} cli_engine_values;

/* What it is fed with. */
typedef struct cli_feed_values {
    cli_list inputs;
    int64_t seed;
} cli_feed_values;

/* The samples it is run with. */
typedef struct cli_data_values {
    cli_list data;
    const char *list, *preprocess;
    int64_t first, samples, loaders;
} cli_data_values;

/* What labelled samples are, for those who measure accuracy. */
typedef struct cli_class_values {
    const char *labels;
    int64_t offset;
} cli_class_values;

/* The model that is calibrated, and how. */
typedef struct cli_subject_values {
    const char *model;
    cli_list inputs;
    int64_t threads, seed;
} cli_subject_values;

extern const cli_group cli_graph_group, cli_shape_group, cli_engine_group, cli_feed_group,
    cli_data_group, cli_class_group, cli_subject_group;

/* What a command does with its model; `values` are the command's. */
typedef qn_status cli_job(qn_report **out, cli_work *cli, qn_model *model,
                          const qn_graph_options *graph, const void *values);
/* Loads the model that the first argument names, does the job with the graph options made of `graph`,
 * and shows the report. Returns the exit code. */
int cli_model_run(cli_work *cli, cli_job *job, const cli_graph_values *graph, const void *values);
/* The same with a model that is named otherwise. */
int cli_model_file_run(cli_work *cli, const char *path, cli_job *job, const cli_graph_values *graph,
                       const void *values);
qn_plan_options cli_plan_options(const cli_engine_values *engine, const qn_graph_options *graph);
/* Where there are samples the batch is theirs and no matter of the graph: the last one may be smaller. */
qn_data_options cli_data_options(const cli_data_values *data, qn_graph_options *graph);

/* ---- Pages about the command itself ---------------------------------------------------------------------- */

void cli_help(const cli_command *command); /* NULL: of the whole */
void cli_man_page(void);
/* The shells that completions can be written for. */
cli_word_fn cli_shell_name;
void cli_completion(const char *shell); /* one of them */

#endif
