/* Finds the command of a command line, with the program's own options, and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

#define CLI_COMMAND(id) extern const cli_command cli_cmd_##id;
#include "commands.def"
#undef CLI_COMMAND

const cli_command *const cli_cmds[] = {
#define CLI_COMMAND(id) &cli_cmd_##id,
#include "commands.def"
#undef CLI_COMMAND
    NULL,
};

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_cmds[i]; i++) {
        if (strcmp(cli_cmds[i]->name, name) == 0)
            return cli_cmds[i];
    }
    return NULL;
}

/* ---- What stands before the command ---------------------------------------------------------- */

typedef struct program_option {
    const char *name, *brief;
    /* Of the text in cli_program */
    size_t offset;
} program_option;

static const program_option program_options[] = {
    {"--chip", "-ch", offsetof(cli_program, chip)},
    {"--default-chip", NULL, offsetof(cli_program, default_chip)},
};

static const program_option *find_program_option(const char *word)
{
    for (size_t i = 0; i < sizeof program_options / sizeof *program_options; i++) {
        const program_option *o = &program_options[i];
        const size_t length = strlen(o->name);
        if (strcmp(word, o->name) == 0 || (o->brief && strcmp(word, o->brief) == 0) ||
            (strncmp(word, o->name, length) == 0 && word[length] == '='))
            return o;
    }
    return NULL;
}

bool cli_is_program_option(const char *word)
{
    return find_program_option(word) != NULL;
}

/* Takes the options before the command; *at gets the command's place. */
static bool take_program(cli_program *program, int *at, int argc, char **argv)
{
    const program_option *o;
    for (*at = 1; *at < argc && (o = find_program_option(argv[*at])) != NULL; ++*at) {
        const char *text = strchr(argv[*at], '=');
        if (text)
            text++;
        else if (*at + 1 < argc)
            text = argv[++*at];
        if (!text || !*text) {
            cli_error("%s needs a value (CHIP)", o->name);
            return false;
        }
        memcpy((char *)program + o->offset, &text, sizeof text);
    }
    return true;
}

static bool check_program(const cli_program *program)
{
    for (size_t i = 0; i < sizeof program_options / sizeof *program_options; i++) {
        const char *chip;
        memcpy(&chip, (const char *)program + program_options[i].offset, sizeof chip);
        if (chip && !cli_check_chip(chip, program_options[i].name))
            return false;
    }
    return true;
}

static bool is_knight(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return path && strcmp(slash ? slash + 1 : path, "Knight") == 0;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* "--help" and "--version" where a command is expected. */
static const char *command_name(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    return strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0 ? "version" : word;
}

static int unknown_command(const char *name)
{
    const char *best = cli_nearest_command(name);
    if (best)
        cli_error("unknown command '%s'; did you mean '%s'?", name, best);
    else
        cli_error("unknown command '%s' ('quench help' lists them)", name);
    return CLI_USAGE;
}

int quench_command(int argc, char **argv, qn_infer_fn *run)
{
    cli_program program = {.knight = is_knight(argv[0]), .argv = argv, .run = run};
    int at;
    if (!take_program(&program, &at, argc, argv))
        return CLI_USAGE;
    if (at >= argc) {
        cli_error("no command; 'quench help' lists them");
        return CLI_USAGE;
    }
    const char *name = command_name(argv[at]);
    const cli_command *command = cli_command_find(name);
    if (program.knight && cli_is_vendors(name))
        return cli_leave_to_vendor();
    if (program.knight && strcmp(name, cli_cmd_build.name) == 0)
        command = &cli_cmd_build;
    if (!command)
        return unknown_command(name);
    if (!check_program(&program))
        return CLI_USAGE;
    return cli_run(&program, command, argc - at - 1, argv + at + 1);
}
