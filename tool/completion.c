/* Completions from the tables. */
#include <stdio.h>
#include <string.h>

#include "values.h"

typedef void option_fn(const cli_command *command, const cli_option *option);

static void each_option(const cli_command *command, option_fn *call)
{
    cli_field field;
    for (size_t i = 0; cli_field_at(&field, command, i); i++)
        call(command, field.option);
}

typedef void short_fn(const cli_option *option, int length, const char *name);

static void each_short(const cli_option *option, short_fn *call)
{
    for (const char *s = option->shorts; s && *s;) {
        const size_t own = strcspn(s, " ");
        call(option, (int)own, s);
        s += own + strspn(s + own, " ");
    }
}

/* Names of tensors, numbers and the like are no files: nothing is offered for them. */
static bool takes_path(const cli_option *option)
{
    static const char *const words[] = {"FILE", "FOLDER", "PATH", "MODEL"};
    for (size_t i = 0; option->value && i < sizeof words / sizeof *words; i++) {
        if (strstr(option->value, words[i]))
            return true;
    }
    return false;
}

static void print_values(const cli_option *option)
{
    for (size_t i = 0; cli_word_at(option, i); i++)
        printf("%s%s", i ? " " : "", cli_word_at(option, i));
}

static void print_words(cli_word_fn *word)
{
    for (size_t i = 0; word(i); i++)
        printf("%s%s", i ? " " : "", word(i));
}

static const char *command_name(size_t i)
{
    return cli_cmds[i] ? cli_cmds[i]->name : NULL;
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_name(const cli_command *command, const cli_option *option)
{
    (void)command;
    printf(" --%s", option->name);
}

static void bash_short(const cli_option *option, int length, const char *name)
{
    (void)option;
    printf(" | -%.*s", length, name);
}

static void bash_value(const cli_command *command, const cli_option *option)
{
    (void)command;
    if (!option->value)
        return;
    printf("                --%s", option->name);
    each_short(option, bash_short);
    printf(") files=%s words=\"", takes_path(option) ? "yes" : "");
    print_values(option);
    printf("\" ;;\n");
}

static void bash_command(const cli_command *command)
{
    printf("        %s)\n            options=\"", command->name);
    each_option(command, bash_name);
    printf("\" words=\"");
    if (command->word)
        print_words(command->word);
    printf("\" files=%s\n            case $before in\n",
           command->most > 0 && !command->word ? "yes" : "");
    each_option(command, bash_value);
    printf("            esac ;;\n");
}

/* bash takes '=' for a word of its own. */
static void bash(void)
{
    printf("# bash completion for quench\n_quench()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local options= words= files=\n"
           "    [ \"$word\" != = ] || word=\n"
           "    [ \"$before\" != = ] || before=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    print_words(command_name);
    printf("\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; cli_cmds[i]; i++)
        bash_command(cli_cmds[i]);
    printf("    esac\n    COMPREPLY=()\n    case $word in\n"
           "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
           "        *)\n"
           "            [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "            [ -z \"$files\" ] || COMPREPLY=($(compgen -f -- \"${word##*=}\")) ;;\n"
           "    esac\n}\ncomplete -o filenames -F _quench quench\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

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

static void zsh_words(cli_word_fn *word)
{
    printf(":(");
    print_words(word);
    putchar(')');
}

static void zsh_values(const cli_option *option)
{
    printf(":(");
    print_values(option);
    putchar(')');
}

static void zsh_rest(const cli_option *option)
{
    putchar('[');
    zsh_text(option->help);
    putchar(']');
    if (option->value) {
        putchar(':');
        zsh_text(option->value);
        if (cli_has_words(option))
            zsh_values(option);
        else
            printf(":%s", takes_path(option) ? "_files" : "");
    }
    putchar('\'');
}

static void zsh_short(const cli_option *option, int length, const char *name)
{
    printf(" \\\n                '%s-%.*s", cli_value_is_repeated(option) ? "*" : "", length, name);
    zsh_rest(option);
}

static void zsh_option(const cli_command *command, const cli_option *option)
{
    (void)command;
    each_short(option, zsh_short);
    printf(" \\\n                '%s--%s%s", cli_value_is_repeated(option) ? "*" : "", option->name,
           option->value ? "=" : "");
    zsh_rest(option);
}

static void zsh_command(const cli_command *command)
{
    printf("        %s)\n            _arguments", command->name);
    each_option(command, zsh_option);
    if (command->word) {
        printf(" \\\n                '*:topic");
        zsh_words(command->word);
        putchar('\'');
    } else if (command->most > 0) {
        printf(" \\\n                '*:file:_files'");
    }
    printf("\n            ;;\n");
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
    for (size_t i = 0; cli_cmds[i]; i++)
        zsh_command(cli_cmds[i]);
    printf("    esac\n}\n_quench \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

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

static void fish_words(cli_word_fn *word)
{
    printf(" -a '");
    print_words(word);
    putchar('\'');
}

/* -o: several letters behind one dash */
static void fish_short(const cli_option *option, int length, const char *name)
{
    (void)option;
    printf(" -%c %.*s", length == 1 ? 's' : 'o', length, name);
}

static void fish_option(const cli_command *command, const cli_option *option)
{
    printf("complete -c quench -n '__fish_seen_subcommand_from %s' -l %s", command->name,
           option->name);
    each_short(option, fish_short);
    if (option->value)
        printf(takes_path(option) ? " -r -F" : " -x");
    printf(" -d ");
    fish_text(option->help);
    if (cli_has_words(option)) {
        printf(" -a '");
        print_values(option);
        putchar('\'');
    }
    putchar('\n');
}

static void fish_command(const cli_command *command)
{
    printf("complete -c quench -n __fish_use_subcommand -f -a %s -d ", command->name);
    fish_text(command->brief);
    putchar('\n');
    each_option(command, fish_option);
    if (!command->word && command->most > 0)
        return;
    printf("complete -c quench -n '__fish_seen_subcommand_from %s' -f", command->name);
    if (command->word)
        fish_words(command->word);
    putchar('\n');
}

static void fish(void)
{
    for (size_t i = 0; cli_cmds[i]; i++)
        fish_command(cli_cmds[i]);
}

/* ---- The shells ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*write)(void);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

const char *cli_shell_name(size_t i)
{
    return i < sizeof shells / sizeof *shells ? shells[i].name : NULL;
}

int cli_completion(const char *shell)
{
    for (size_t i = 0; cli_shell_name(i); i++) {
        if (strcmp(shells[i].name, shell) == 0)
            shells[i].write();
    }
    return cli_written(stdout);
}
