/* Completions from the tables. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

typedef void option_fn(const cli_command *command, const cli_option *option);

static void each_option(const cli_command *command, option_fn *call)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++)
        call(command, field.option);
}

static void print_words(cli_word_fn *word)
{
    for (size_t i = 0; word(i); i++)
        printf("%s%s", i ? " " : "", word(i));
}

/* ---- bash ------------------------------------------------------------------------------------------------- */

static void bash_word(const cli_command *command, const cli_option *option)
{
    (void)command;
    printf(" --%s", option->name);
}

static void bash(void)
{
    printf("# bash completion for quench\n_quench()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} options=\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; cli_cmds[i]; i++)
        printf("%s%s", i ? " " : "", cli_cmds[i]->name);
    printf("\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; cli_cmds[i]; i++) {
        printf("        %s) options=\"", cli_cmds[i]->name);
        each_option(cli_cmds[i], bash_word);
        printf("\" ;;\n");
    }
    printf("    esac\n    case $word in\n"
           "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
           "        *) COMPREPLY=($(compgen -f -- \"${word##*=}\")) ;;\n"
           "    esac\n}\ncomplete -o filenames -F _quench quench\n");
}

/* ---- zsh -------------------------------------------------------------------------------------------------- */

/* Inside single quotes and _arguments: quotes, brackets and colons need care. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_option(const cli_command *command, const cli_option *option)
{
    (void)command;
    printf(" \\\n                '%s--%s%s[", option->type == CLI_LIST ? "*" : "", option->name,
           option->value ? "=" : "");
    zsh_text(option->help);
    putchar(']');
    if (option->value) {
        putchar(':');
        zsh_text(option->value);
        if (option->word) {
            printf(":(");
            print_words(option->word);
            putchar(')');
        } else {
            printf(":%s", option->type == CLI_INT || option->type == CLI_REAL ? "" : "_files");
        }
    }
    putchar('\'');
}

static void zsh(void)
{
    printf("#compdef quench\n_quench() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; cli_cmds[i]; i++) {
        printf("        '%s:", cli_cmds[i]->name);
        zsh_text(cli_cmds[i]->brief);
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n"
           "        return\n    fi\n    local command=$words[2]\n    shift words\n"
           "    (( CURRENT-- ))\n    case $command in\n");
    for (size_t i = 0; cli_cmds[i]; i++) {
        printf("        %s)\n            _arguments", cli_cmds[i]->name);
        each_option(cli_cmds[i], zsh_option);
        printf(" \\\n                '*:file:_files'\n            ;;\n");
    }
    printf("    esac\n}\n_quench \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------------------- */

static void fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_option(const cli_command *command, const cli_option *option)
{
    printf("complete -c quench -n '__fish_seen_subcommand_from %s' -l %s%s -d ", command->name,
           option->name, option->value ? " -r" : "");
    fish_text(option->help);
    if (option->word) {
        printf(" -f -a '");
        print_words(option->word);
        putchar('\'');
    }
    putchar('\n');
}

static void fish(void)
{
    for (size_t i = 0; cli_cmds[i]; i++) {
        printf("complete -c quench -n __fish_use_subcommand -f -a %s -d ", cli_cmds[i]->name);
        fish_text(cli_cmds[i]->brief);
        putchar('\n');
        each_option(cli_cmds[i], fish_option);
    }
}

/* ---- The shells ------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*write)(void);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

const char *cli_shell_name(size_t i)
{
    return i < sizeof shells / sizeof *shells ? shells[i].name : NULL;
}

void cli_completion(const char *shell)
{
    for (size_t i = 0; cli_shell_name(i); i++) {
        if (strcmp(shells[i].name, shell) == 0)
            shells[i].write();
    }
}
