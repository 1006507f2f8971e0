/* The command line: one table per command feeds the parser, --help, the man page and the
 * completions. Results go to stdout, everything else to stderr. */
#ifndef QN_CLI_H
#define QN_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "quench.h"

/* Exit codes. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_UNSUPPORTED = 3, CLI_GOAL = 4 };

/* Room for the name of an option. */
enum { CLI_TYPED_SIZE = 64 };

/* ---- Options --------------------------------------------------------------------------------- */

typedef struct cli_list {
    const char *const *at;
    size_t count;
} cli_list;

/* The field that an option fills, and what it takes. Lists are a pointer and a number behind it, as
 * in cli_list and in the library's structs. */
typedef enum cli_type {
    /* Int: how often it was given; no value */
    CLI_FLAG,
    /* int64_t, and int */
    CLI_INT,
    CLI_INT32,
    /* Double */
    CLI_REAL,
    /* Const char *, NULL when not given */
    CLI_TEXT,
    /* Lists of texts, doubles, int64_t, and qn_input_shape: they may be given again and again */
    CLI_LIST,
    CLI_REALS,
    CLI_LONGS,
    CLI_SHAPES
} cli_type;

/* The i-th of the words that a value may be; NULL past the last. */
typedef const char *cli_word_fn(size_t i);
typedef int cli_known_fn(const char *text);

typedef struct cli_option {
    /* What the library calls it in messages: a field of its options, or a function; NULL: it does
     * not */
    const char *field;
    /* Without its dashes; NULL: the command has no such option */
    const char *name;
    /* Other names behind two dashes, separated by blanks; NULL: none */
    const char *also;
    /* Names behind one dash, separated by blanks; whole words. NULL: none */
    const char *shorts;
    /* Of the field */
    cli_type type;
    /* Of the field in the group's values */
    size_t offset;
    /* What help calls the value */
    const char *value;
    /* Value when not given, as it would be written; NULL: none */
    const char *standard;
    /* Of a number */
    double least, most;
    /* The values allowed, one by one, and more of them; NULL: any */
    cli_word_fn *word;
    const char *const *words;
    /* Whether a value is allowed that is no such word; NULL: none is */
    cli_known_fn *known;
    /* The row is one of the library's tables */
    bool library;
    /* Others are allowed too */
    int open;
    /* Of lists: one value or more behind one name, up to the next word that cannot be one. Given
     * again, the last time counts; of CLI_SHAPES every time does, and each is a shape. */
    int several;
    /* Without a full stop */
    const char *help;
    /* What files call it; no matter of the command */
    const char *result;
    /* Of an option at hand: the word that it was given with; NULL or "": its name is */
    const char *typed;
} cli_option;

/* Options that belong together: rows over one struct of values. */
typedef struct cli_group {
    /* Of the rows in help */
    const char *title;
    const cli_option *options;
    size_t count;
    /* What the struct is before anything is given; NULL: what the rows say. */
    const void *standard;
    size_t size;
    const qn_option_rule *rules;
    size_t n_rules;
} cli_group;
#define CLI_GROUP(heading, rows)                                                                   \
    {                                                                                              \
        .title = (heading), .options = (rows), .count = sizeof(rows) / sizeof *(rows)              \
    }

/* A group that a command has, and where the group's struct lies in the command's values. */
typedef struct cli_part {
    const cli_group *group;
    size_t offset;
    /* Fields whose options the command does not have, blanks between them; NULL: it has all */
    const char *without;
} cli_part;
/* Whether the command has the option of the part's group. */
bool cli_part_has(const cli_part *part, const cli_option *option);
/* The i-th word that a value may be; NULL past the last, and where any value may be. */
const char *cli_word_at(const cli_option *option, size_t i);
bool cli_has_words(const cli_option *option);

/* What stands before the command. */
typedef struct cli_program {
    /* Called by the name of the tool that many users come from */
    bool knight;
    const char *chip, *default_chip;
    /* All of the command line; ends with NULL */
    char **argv;
    /* Calls functions of scripts; `user` is the name of one. NULL: nobody does */
    qn_infer_fn *run;
} cli_program;

/* The whole command. It is also what a program that has an interpreter for scripts loads as a
 * library and calls; returns the exit code. */
QN_API int quench_command(int argc, char **argv, qn_infer_fn *run);

/* What every command has. The values of a command begin with it. */
typedef struct cli_common {
    int help, json, markdown, verbose, quiet;
    /* That an option of the command asks for; NULL: by the above */
    const qn_log_level *log_level;
    /* What is no option */
    cli_list arguments;
    /* With several numbers, right behind which the last argument stands; NULL: none */
    const cli_option *before;
    /* [i]: the word that option i of cli_field_at was given with, "-b" or "--bit-width=8"; "": in
     * a file; NULL: not at all */
    const char **given;
    const cli_program *program;
    /* The file that more options came from; NULL: none */
    struct cli_config *config;
    /* The command is for a target that is no chip */
    bool chipless;
} cli_common;

typedef struct cli_work cli_work;
typedef struct cli_command cli_command;
struct cli_command {
    const char *name;
    /* Of the usage line */
    const char *arguments;
    /* Arguments */
    int least, most;
    /* That an argument may be; NULL: files */
    cli_word_fn *word;
    const char *brief;
    /* A paragraph for help and man page; may be NULL */
    const char *notes;
    /* Its options; ends with a part without group. The common ones follow */
    cli_part parts[24];
    /* What it makes are files: --quiet leaves its report out */
    bool makes_files;
    size_t values_size;
    /* Whether the options go together, with messages where they do not; NULL: always. */
    bool (*check)(void *values, const cli_command *command);
    int (*run)(cli_work *cli, const void *values);
    /* Of run configurations, for a command with cli_config_group */
    const char *section;
    /* Processes that mpirun starts share its work; those but the first say nothing. */
    bool is_shared;
};

/* All commands; ends with NULL. */
extern const cli_command *const cli_cmds[];
/* Under the name Knight there are more: one that quantizes, and those of the chip vendor's
 * tools. */
extern const cli_command cli_cmd_build;
bool cli_is_vendors(const char *name);
int cli_leave_to_vendor(void); /* says so; returns the exit code */
const cli_command *cli_command_find(const char *name);
/* Whether the word is an option that stands before the command. */
bool cli_is_program_option(const char *word);

/* The i-th group of a command, the common one last; NULL past it. */
const cli_part *cli_part_at(const cli_command *command, size_t i);

/* An option of a command, and where its field lies in the command's values. */
typedef struct cli_field {
    const cli_option *option;
    size_t offset;
} cli_field;
/* The i-th of all, group by group; false past the last. */
bool cli_field_at(cli_field *out, const cli_command *command, size_t i);

/* Fills `values` (zeroed, of the command's size) from the arguments behind the command's name.
 * False, with a message on stderr, where they do not fit the table. cli_values_free in any case. */
bool cli_parse(void *values, const cli_command *command, int argc, char **argv);
/* For one argument too many: whether the last was meant for an option with several numbers, which
 * it then tells of. */
bool cli_refuse_stray(const cli_common *common, const cli_command *command);
void cli_values_free(void *values, const cli_command *command);
/* words.c: the option of the command that the library's messages call so; NULL: it has none. */
const cli_option *cli_option_of(const cli_command *command, const char *field, size_t length);
/* The rules of the command's tables: false, with a message, where options exclude each other; those
 * that have no effect are noted. */
bool cli_check_rules(const void *values, const cli_command *command);
/* A message of the library in the command's words: "`bits`" is "--bit-width", and so is "bits: " in
 * front where an option is what is wrong; an option of another command is named with that. Options
 * are called as they were typed among `values`, by their long names where these are NULL. To be
 * freed; NULL: out of memory. */
char *cli_in_words(const cli_command *command, const void *values, const char *message,
                   bool of_option);
/* Whether the option was given, on the command line or in a file. */
bool cli_given(const void *values, const cli_command *command, const char *name);
/* The option as it was typed, with its dashes; by its long name where it was not. */
const char *cli_typed(char out[CLI_TYPED_SIZE], const void *values, const cli_command *command,
                      const char *name);
/* One more option as a file has it: values of a list as words of their own, of a flag "true" or
 * "false". What the command line gave stays. `where` is for messages. */
bool cli_set(void *values, const cli_command *command, const char *name, const cli_list *texts,
             const char *where);
/* The best guess at what was meant, or NULL. */
const char *cli_nearest_command(const char *word);
/* Where an argument too many, a file of data, belongs; "" where it is none. */
const char *cli_data_hint(const cli_command *command, const char *word);
const char *cli_nearest_option(const cli_command *command, const char *word);
const char *cli_nearest_word(cli_word_fn *word_at, const char *word);
const char *cli_nearest_value(const cli_option *option, const char *word);

bool cli_takes_many(const cli_command *command, const char *name);
/* False, with a message, where memory is short. */
bool cli_list_push(cli_list *list, const char *text);
void cli_list_free(cli_list *list);

/* ---- Run configurations ---------------------------------------------------------------------- */

/* A const char *: the file. */
extern const cli_group cli_config_group;
/* Options of the file that the command line did not give. False, with a message, where they do not
 * fit. */
bool cli_config_apply(void *values, const cli_command *command, const char *path);
void cli_config_free(struct cli_config *config);
/* Gives the function the file's "input-configs", if there are any. */
void cli_config_inputs(qn_function *function, const cli_common *common);
/* Key of the i-th object of "input-configs". False where the file has none such. */
bool cli_config_input(qn_config_entry *out, const cli_common *common, size_t i, const char *key);
/* Whether a message is about a place in the file. */
bool cli_config_blamed(const cli_common *common, const char *message);
/* The chip that the work is for: from the command line, the file, --default-chip, the name that the
 * program was called by. NULL: none. */
const char *cli_chip(const cli_common *common);
/* Only from the command line or the file's "chip". */
const char *cli_named_chip(const cli_common *common);
/* Whether there is such a chip; where not, a message that begins with `where` and lists those that
 * there are. */
bool cli_check_chip(const char *name, const char *where);
/* Whether an option without its dashes belongs to a section that is the vendor's, as
 * "compile.save-dir" does. */
bool cli_is_vendors_option(const char *name);

/* ---- A command at work ----------------------------------------------------------------------- */

struct cli_work {
    qn_context *ctx;
    const cli_command *command;
    const cli_common *common;
    /* Stderr is one, and progress is wanted */
    bool terminal;
    /* A progress line stands there */
    bool showing;
    double shown_ms, began_ms;
    const char *doing;
    /* Results go to stderr, since stdout is a file that the command writes */
    bool aside;
    /* What fails next does so because of what an option says */
    bool misused;
    /* This process among those that share the command's work */
    int rank;
};

/* Runs the command with a context, signals and progress set up; returns the exit code. */
int cli_run(const cli_program *program, const cli_command *command, int argc, char **argv);
/* Says why the last call failed; returns the exit code for `status`. */
int cli_fail(cli_work *cli, qn_status status);
/* Shows the report on stdout, as text, JSON or Markdown, and frees it. Returns the exit code. */
int cli_show(cli_work *cli, qn_report *report);
/* Whether all that was printed could be written, as an exit code; a message where it could not. */
int cli_written(FILE *to);
void cli_error(const char *format, ...) QN_PRINTF(1, 2);
/* What a user should know though nothing is wrong. */
void cli_note(const char *format, ...) QN_PRINTF(1, 2);

/* ---- Commands about a model: the groups of options that they share --------------------------- */

/* tables.c: the library's options, a group for each of its tables. */
extern const cli_group cli_origin_group, cli_graph_group, cli_engine_group, cli_data_group,
    cli_detect_group, cli_calibrate_group, cli_edit_group, cli_quantize_group,
    cli_quantize_file_group, cli_strategies_group, cli_function_group, cli_accuracy_budget_group,
    cli_mix_group, cli_infer_group, cli_bench_group, cli_verify_group, cli_eval_group,
    cli_lint_group, cli_inspect_group, cli_convert_group, cli_save_group, cli_compare_group,
    cli_train_group;
/* The inputs and the seed of qn_calibrate_options, with short names. */
extern const cli_group cli_feed_group;
/* What a person types instead of lists of detection's options. */
extern const cli_group cli_detect_text_group;

/* Texts that become lists of detection's options. */
typedef struct cli_detect_texts {
    const char *anchors, *names;
} cli_detect_texts;

/* The options with these lists, and what they point to. */
typedef struct cli_detection {
    qn_detect_options options;
    double *numbers;
    const char **names;
    char *text;
} cli_detection;
/* False, with a message on stderr, where a text is none. cli_detection_close in any case. */
bool cli_detection_open(cli_detection *out, const qn_detect_options *options,
                        const cli_detect_texts *texts);
void cli_detection_close(cli_detection *detection);

/* The model that is calibrated, where it is no argument: a const char *. */
extern const cli_group cli_subject_group;

/* What a command does with its model; `values` are the command's. */
typedef qn_status cli_job(qn_report **out, cli_work *cli, qn_model *model, const void *values);
/* Loads the model that the first argument names, does the job, and shows the report. Returns the
 * exit code. */
int cli_model_run(cli_work *cli, cli_job *job, const qn_model_load_options *origin,
                  const void *values);
/* The same with a model that is named otherwise. */
int cli_model_file_run(cli_work *cli, const char *path, cli_job *job,
                       const qn_model_load_options *origin, const void *values);
/* Where there are samples the batch is theirs and no matter of the graph: the last one may be
 * smaller. */
void cli_move_batch(qn_data_options *data, qn_graph_options *graph);

/* ---- Infer functions of files ---------------------------------------------------------------- */

/* A function of a shared object or of a script. */
typedef struct cli_script {
    qn_function function;
    /* What was opened; NULL: nothing */
    void *object;
    /* Of it */
    qn_infer_fn *own;
    /* Memory of function.user */
    char *name;
} cli_script;
/* Whether the name is that of a script or a shared object; else a message says what is expected. */
bool cli_script_fits(const char *path);
/* A model of PyTorch that a script registers under the name *path: it becomes the file that the
 * interpreter made of it. False, with a message, where it cannot; the first time the interpreter
 * takes over and does not come back. */
bool cli_script_model(const char **path, const cli_program *program, const char *script,
                      const char *weights);
/* An exit code, not 0 with a message where the file or the function is not there; the files
 * infer_common.py and infer_auto.py need not be, for functions that are built in. A script without
 * an interpreter at hand starts one, which runs the command line from its beginning: then this does
 * not return, unless there is no interpreter. cli_script_close in any case. */
int cli_script_open(cli_script *out, const cli_program *program, const char *path,
                    const char *function);
void cli_script_close(cli_script *script);
/* The interpreter: $QUENCH_PYTHON, or python3. */
const char *cli_python(void);
/* Puts the package of quench first in PYTHONPATH; false where it is not there. */
bool cli_python_path(void);

/* ---- Runtimes of frameworks ------------------------------------------------------------------ */

/* A qn_runtime_fn that has Python run the model; `user` are the qn_model_load_options. */
qn_status cli_runtime_run(void *user, qn_context *ctx, char version[QN_RUNTIME_VERSION],
                          const qn_runtime_run *run);

/* ---- Pages about the command itself ---------------------------------------------------------- */

/* All return the exit code. */
int cli_help(const cli_command *command); /* NULL: of the whole */
int cli_man_page(void);
/* The shells that completions can be written for. */
cli_word_fn cli_shell_name;
int cli_completion(const char *shell); /* one of them */

#endif
