/* Help and man page from the tables. */
#include <stdio.h>
#include <string.h>

#include "values.h"

enum { WIDTH = 96, LEFT = 28, LABEL_SIZE = 128 };

/* Words of `text` wrapped to the width, the first line begun at column `at`, others at `left`. */
static void wrap(const char *text, int at, int left)
{
    const char *between = "";
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (at + (int)strlen(between) + length > WIDTH && at > left) {
            printf("\n%*s", left, "");
            at = left;
            between = "";
        }
        at += printf("%s%.*s", between, length, text);
        text += length + (text[length] == ' ');
        between = " ";
    }
    putchar('\n');
}

/* "-d, --data FILE" */
static void option_label(char out[LABEL_SIZE], const cli_option *option)
{
    size_t length = 0;
    out[0] = 0;
    for (const char *s = option->shorts; s && *s;) {
        const int own = (int)strcspn(s, " ");
        length += (size_t)snprintf(out + length, LABEL_SIZE - length, "-%.*s, ", own, s);
        s += own + (int)strspn(s + own, " ");
    }
    length += (size_t)snprintf(out + length, LABEL_SIZE - length, "--%s", option->name);
    for (const char *s = option->also; s && *s;) {
        const int own = (int)strcspn(s, " ");
        length += (size_t)snprintf(out + length, LABEL_SIZE - length, ", --%.*s", own, s);
        s += own + (int)strspn(s + own, " ");
    }
    snprintf(out + length, LABEL_SIZE - length, "%s%s", option->value ? " " : "",
             option->value ? option->value : "");
}

/* " (a, b, c)"; nothing where there are so many that a command lists them. */
static size_t add_words(char *out, size_t size, const cli_option *option)
{
    enum { MOST = 8 };
    size_t length = 0, count = 0;
    while (cli_word_at(option, count))
        count++;
    for (size_t i = 0; i < count && count <= MOST && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%s%s", i ? ", " : " (",
                                   cli_word_at(option, i), i + 1 == count ? ")" : "");
    return length;
}

/* Nobody wants to know a limit from here on. */
static const double endless = 1e9;

/* Zero and NULL are what the help calls the default, if anything does. */
static bool has_standard(const cli_option *option)
{
    return option->standard && !strstr(option->help, "default:") &&
           !(option->library &&
             (strcmp(option->standard, "0") == 0 || strcmp(option->standard, "NULL") == 0));
}

/* The help with words, range and default. */
static void option_text(char *out, size_t size, const cli_option *option)
{
    size_t length = (size_t)snprintf(out, size, "%s", option->help);
    if (cli_has_words(option))
        length += add_words(out + length, size - length, option);
    const bool whole = cli_value_is_whole(option) && !cli_has_words(option);
    if (whole && option->most < endless)
        length += (size_t)snprintf(out + length, size - length, " (%.0f to %.0f)", option->least,
                                   option->most);
    else if (whole)
        length += (size_t)snprintf(out + length, size - length, " (%.0f or more)", option->least);
    if (option->type == CLI_REAL)
        length += (size_t)snprintf(out + length, size - length, " (%.15g to %.15g)", option->least,
                                   option->most);
    if (cli_value_is_repeated(option))
        length += (size_t)snprintf(out + length, size - length, "; may be repeated");
    if (has_standard(option))
        snprintf(out + length, size - length, "; default: %s", option->standard);
}

static void print_options(const cli_part *part)
{
    const cli_group *group = part->group;
    for (size_t i = 0; i < group->count; i++) {
        char label[LABEL_SIZE], text[512];
        if (!cli_part_has(part, &group->options[i]))
            continue;
        option_label(label, &group->options[i]);
        option_text(text, sizeof text, &group->options[i]);
        if (strlen(label) > LEFT - 4)
            printf("  %s\n%*s", label, LEFT, "");
        else
            printf("  %-*s", LEFT - 2, label);
        wrap(text, LEFT, LEFT);
    }
}

/* "quench bench [options] MODEL" */
static void print_usage(const cli_command *command)
{
    printf("quench %s [options]%s%s", command->name, *command->arguments ? " " : "",
           command->arguments);
}

static void help_command(const cli_command *command)
{
    const cli_part *part;
    const char *title = "";
    printf("usage: ");
    print_usage(command);
    printf("\n\n");
    wrap(command->brief, 0, 0);
    if (command->notes) {
        putchar('\n');
        wrap(command->notes, 0, 0);
    }
    for (size_t i = 0; (part = cli_part_at(command, i)) != NULL; i++) {
        if (strcmp(part->group->title, title) != 0)
            printf("\noptions %s:\n", part->group->title);
        title = part->group->title;
        print_options(part);
    }
}

static void help_all(void)
{
    printf("usage: quench COMMAND [options] [arguments]\n\n"
           "quench quantizes neural networks and runs them on CPUs; models come as ONNX or from\n"
           "PyTorch, TensorFlow, Keras, TensorFlow Lite, PaddlePaddle and Caffe, and go as ONNX."
           "\n\ncommands:\n");
    for (size_t i = 0; cli_cmds[i]; i++)
        printf("  %-10s%s\n", cli_cmds[i]->name, cli_cmds[i]->brief);
    printf(
        "\n'quench COMMAND --help' explains one. Results go to stdout, everything else to stderr.\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 model or feature not supported, 4 a goal "
        "missed.\n");
}

int cli_help(const cli_command *command)
{
    if (command)
        help_command(command);
    else
        help_all();
    return cli_written(stdout);
}

/* ---- Man page -------------------------------------------------------------------------------- */

/* Dashes stay dashes, and no line begins a request by accident. */
static void man_text(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            putchar('\\');
        putchar(*text == '\\' ? 'e' : *text);
    }
    putchar('\n');
}

static void man_options(const cli_part *part)
{
    const cli_group *group = part->group;
    for (size_t i = 0; i < group->count; i++) {
        char label[LABEL_SIZE], text[512];
        if (!cli_part_has(part, &group->options[i]))
            continue;
        option_label(label, &group->options[i]);
        option_text(text, sizeof text, &group->options[i]);
        printf(".TP\n.B ");
        man_text(label);
        man_text(text);
    }
}

static void man_command(const cli_command *command)
{
    printf(".SS \"");
    print_usage(command);
    printf("\"\n");
    man_text(command->brief);
    if (command->notes) {
        printf(".PP\n");
        man_text(command->notes);
    }
    for (size_t i = 0; command->parts[i].group; i++)
        man_options(&command->parts[i]);
}

int cli_man_page(void)
{
    static const cli_command none; /* has only the options of every command */
    static const char *const exit_codes[][2] = {{"0", "done"},
                                                {"1", "failed"},
                                                {"2", "wrong usage"},
                                                {"3",
                                                 "model or feature not supported, or nothing for "
                                                 "verify to prove"},
                                                {"4", "a goal missed: lint found something, or "
                                                      "quant \\-\\-max\\-drop kept no budget"}};
    printf(".TH QUENCH 1 \"\" \"quench %s\" \"User Commands\"\n", qn_version());
    printf(".SH NAME\nquench \\- quantize neural networks and run them on CPUs\n");
    printf(".SH SYNOPSIS\n.B quench\n.I command\n[options] [arguments]\n");
    printf(
        ".SH DESCRIPTION\nReads ONNX models, shows, times, runs and rewrites them. Results go to "
        "the standard output, everything else to the standard error.\n");
    printf(".SH COMMANDS\n");
    for (size_t i = 0; cli_cmds[i]; i++)
        man_command(cli_cmds[i]);
    printf(".SH OPTIONS OF EVERY COMMAND\n");
    man_options(cli_part_at(&none, 0));
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++)
        printf(".TP\n.B %s\n%s\n", exit_codes[i][0], exit_codes[i][1]);
    return cli_written(stdout);
}
