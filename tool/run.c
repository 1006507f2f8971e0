/* A command at work: context, messages, progress, signals. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

/* What a signal handler can reach. */
static qn_context *volatile interruptible;

/* The first time the work in progress is asked to stop; the second time the process ends. */
static void on_signal(int number)
{
    if (interruptible)
        qn_context_cancel(interruptible);
    signal(number, SIG_DFL);
}

/* What asks for an end: Ctrl-C, a terminal that goes away, kill, a limit of time. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGHUP, SIGTERM, SIGXCPU};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        /* nohup: the work outlives its terminal */
        const bool outlives = numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
                              before.sa_handler == SIG_IGN;
        if (!outlives)
            sigaction(numbers[i], &action, NULL);
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

void cli_error(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    va_start(args, format);
    fputs("quench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void cli_note(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    va_start(args, format);
    fputs("quench: note: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static void end_progress(cli_work *cli)
{
    if (cli->showing)
        fputs("\r\033[K", stderr);
    cli->showing = false;
}

static void on_log(void *user, qn_log_level level, const char *line)
{
    static const char *const words[] = {[QN_LOG_ERROR] = "error: ",
                                        [QN_LOG_NOTE] = "note: ",
                                        [QN_LOG_WARN] = "warning: ",
                                        [QN_LOG_INFO] = "",
                                        [QN_LOG_DEBUG] = ""};
    const cli_work *cli = user;
    char *text = cli_in_words(cli->command, NULL, line, false);
    end_progress(user);
    fprintf(stderr, "quench: %s%s\n", words[level], text ? text : line);
    free(text);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Six times a second is enough for an eye. */
static void on_progress(void *user, const char *what, int64_t done, int64_t total)
{
    cli_work *cli = user;
    const double now = now_ms();
    if (!cli->doing || strcmp(cli->doing, what) != 0) {
        cli->doing = what;
        cli->began_ms = now;
    }
    if (now - cli->shown_ms < 160 || now <= cli->began_ms)
        return;
    const double rate = (double)done / (now - cli->began_ms) * 1e3;
    fprintf(stderr, "\r\033[K%s", what);
    if (total > 0)
        fprintf(stderr, "  %3.0f %%  %lld of %lld", 100.0 * (double)done / (double)total,
                (long long)done, (long long)total);
    fprintf(stderr, "  %.1f/s", rate);
    if (total > done && rate > 0)
        fprintf(stderr, "  %.0f s left", (double)(total - done) / rate);
    fflush(stderr);
    cli->shown_ms = now;
    cli->showing = true;
}

/* A line a minute where no eye follows: what takes that long is seen to go on. */
static void on_slow_progress(void *user, const char *what, int64_t done, int64_t total)
{
    enum { MINUTE_MS = 60000 };
    cli_work *cli = user;
    const double now = now_ms();
    if (cli->shown_ms == 0)
        cli->shown_ms = now;
    if (now - cli->shown_ms < MINUTE_MS)
        return;
    cli->shown_ms = now;
    if (total > 0)
        cli_note("%s: %lld of %lld", what, (long long)done, (long long)total);
    else
        cli_note("%s: %lld", what, (long long)done);
}

static bool is_misused(const cli_work *cli)
{
    return cli->misused || cli_config_blamed(cli->common, qn_context_error(cli->ctx));
}

int cli_fail(cli_work *cli, qn_status status)
{
    end_progress(cli);
    char *text =
        cli_in_words(cli->command, cli->common, qn_context_error(cli->ctx), status == QN_E_OPTION);
    cli_error("%s", status == QN_E_CANCELLED ? "cancelled" : text ? text : "out of memory");
    free(text);
    switch (status) {
    case QN_OK: return CLI_DONE;
    case QN_E_UNSUPPORTED: return CLI_UNSUPPORTED;
    case QN_E_GOAL: return CLI_GOAL;
    case QN_E_OPTION: return CLI_USAGE;
    case QN_E_INVALID:
    case QN_E_FORMAT: return is_misused(cli) ? CLI_USAGE : CLI_FAILED;
    default: return CLI_FAILED;
    }
}

int cli_written(FILE *to)
{
    const bool written = !ferror(to) && fflush(to) == 0;
    if (!written)
        cli_error("cannot write to the standard output");
    return written ? CLI_DONE : CLI_FAILED;
}

/* A report that nobody wants to read: -q beside what only makes files, unless it has a form for
 * programs. */
static bool is_left_out(const cli_work *cli)
{
    const cli_common *common = cli->common;
    return common->quiet && cli->command->makes_files && !common->json && !common->markdown;
}

int cli_show(cli_work *cli, qn_report *report)
{
    char *text;
    if (is_left_out(cli)) {
        end_progress(cli);
        qn_report_free(report);
        return CLI_DONE;
    }
    const qn_status status = cli->common->json       ? qn_report_json(&text, report)
                             : cli->common->markdown ? qn_report_markdown(&text, report)
                                                     : qn_report_text(&text, report);
    end_progress(cli);
    qn_report_free(report);
    if (status != QN_OK)
        return cli_fail(cli, status);
    FILE *to = cli->aside ? stderr : stdout;
    char *worded = cli_in_words(cli->command, NULL, text, false);
    fputs(worded ? worded : text, to);
    free(worded);
    qn_text_free(cli->ctx, text);
    return cli_written(to);
}

/* ---- The frame ------------------------------------------------------------------------------- */

static qn_log_level log_level(const cli_common *common)
{
    if (common->quiet)
        return QN_LOG_ERROR;
    if (common->log_level)
        return *common->log_level;
    return common->verbose > 1 ? QN_LOG_DEBUG : common->verbose ? QN_LOG_INFO : QN_LOG_WARN;
}

/* What rank 0 says is said; the others find nobody to speak to. */
static bool fall_silent(void)
{
    fflush(stdout);
    return freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
}

static int run_shared(cli_work *cli, const void *values)
{
    int count;
    if (cli->command->is_shared) {
        const qn_status status = qn_context_join(cli->ctx, &cli->rank, &count);
        if (cli->rank > 0 && !fall_silent())
            return CLI_FAILED;
        if (status != QN_OK)
            return cli_fail(cli, status);
    }
    return cli->command->run(cli, values);
}

static int run_with_context(const cli_command *command, const cli_common *values)
{
    cli_work cli = {
        .command = command, .common = values, .terminal = isatty(STDERR_FILENO) && !values->quiet};
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    options.log_level = log_level(values);
    options.log = on_log;
    options.log_user = &cli;
    options.progress = cli.terminal ? on_progress : values->quiet ? NULL : on_slow_progress;
    options.progress_user = &cli;
    if (qn_context_create(&cli.ctx, &options) != QN_OK) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    interruptible = cli.ctx;
    catch_signals();
    const int code = run_shared(&cli, values);
    end_progress(&cli);
    interruptible = NULL;
    qn_context_free(cli.ctx);
    return code;
}

/* The command line, and the file that it names. */
static bool read_options(void *values, const cli_command *command, int argc, char **argv)
{
    cli_field field;
    if (!cli_parse(values, command, argc, argv))
        return false;
    if (!command->section || ((const cli_common *)values)->help)
        return true;
    for (size_t i = 0; cli_field_at(&field, command, i); i++) {
        const char *path = NULL;
        if (field.option == cli_config_group.options)
            memcpy(&path, (const char *)values + field.offset, sizeof path);
        if (path)
            return cli_config_apply(values, command, path);
    }
    return true;
}

int cli_run(const cli_program *program, const cli_command *command, int argc, char **argv)
{
    int code = CLI_USAGE;
    signal(SIGXFSZ, SIG_IGN); /* a write past the limit of file sizes fails, as any other does */
    void *values = calloc(1, command->values_size);
    if (!values) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    ((cli_common *)values)->program = program;
    if (read_options(values, command, argc, argv) &&
        (((const cli_common *)values)->help || !command->check ||
         command->check(values, command))) {
        const cli_common *common = values;
        code = common->help ? cli_help(command) : run_with_context(command, common);
    }
    cli_values_free(values, command);
    free(values);
    return code;
}
