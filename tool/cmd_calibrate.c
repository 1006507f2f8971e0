/* quench calibrate: statistics of a model's activations on data. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    qn_calibrate_options calibrate;
    const char *model, *output;
    int64_t number, batch;
    int merge, show;
} values;

static const cli_option options[] = {
    {.name = "output",
     .shorts = "o",
     .type = CLI_TEXT,
     .offset = offsetof(values, output),
     .value = "FILE",
     .help = "where to write the statistics"},
    {.name = "iteration",
     .shorts = "i",
     .type = CLI_INT,
     .offset = offsetof(values, number),
     .value = "N",
     .least = 1,
     .most = 1e9,
     .help = "batches of samples to use; default: all, of random numbers 8"},
    {.name = "batch-size",
     .shorts = "bs",
     .type = CLI_INT,
     .offset = offsetof(values, batch),
     .value = "N",
     .standard = "1",
     .least = 1,
     .most = 65536,
     .help = "samples of a batch; they are run one by one, whatever it is"},
    {.name = "merge",
     .type = CLI_FLAG,
     .offset = offsetof(values, merge),
     .help = "join the statistics in the files named into one"},
    {.name = "show",
     .type = CLI_FLAG,
     .offset = offsetof(values, show),
     .help =
         "show the ranges of every tensor by every method, of the statistics in the file named"},
};
static const cli_group own = CLI_GROUP("of calibrate", options);

/* ---- Files of statistics --------------------------------------------------------------------- */

static qn_status load_all(qn_stats **parts, cli_work *cli, const cli_list *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        const qn_status status = qn_stats_load(&parts[i], cli->ctx, paths->at[i]);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status merge_files(qn_report **out, cli_work *cli, qn_stats **parts, const values *v)
{
    qn_stats *all = NULL;
    qn_status status = load_all(parts, cli, &v->common.arguments);
    if (status == QN_OK)
        status = qn_stats_merge(&all, cli->ctx, (const qn_stats *const *)parts,
                                v->common.arguments.count);
    if (status == QN_OK)
        status = qn_stats_brief(out, cli->ctx, all);
    if (status == QN_OK)
        status = qn_stats_save(cli->ctx, all, v->output);
    qn_stats_free(all);
    return status;
}

static int merge(cli_work *cli, const values *v)
{
    const size_t count = v->common.arguments.count;
    if (count == 0 || !v->output) {
        cli_error("calibrate: usage: quench calibrate --merge A B ... -o FILE");
        return CLI_USAGE;
    }
    qn_stats **parts = calloc(count, sizeof *parts);
    qn_report *report = NULL;
    if (!parts)
        return cli_fail(cli, QN_E_NOMEM);
    const qn_status status = merge_files(&report, cli, parts, v);
    const int code = status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
    if (status != QN_OK)
        qn_report_free(report);
    for (size_t i = 0; i < count; i++)
        qn_stats_free(parts[i]);
    free(parts);
    return code;
}

static int show(cli_work *cli, const values *v)
{
    qn_stats *stats = NULL;
    qn_report *report = NULL;
    if (v->common.arguments.count != 1) {
        cli_error("calibrate: usage: quench calibrate --show FILE");
        return CLI_USAGE;
    }
    qn_status status = qn_stats_load(&stats, cli->ctx, v->common.arguments.at[0]);
    if (status == QN_OK)
        status = qn_stats_report(&report, cli->ctx, stats);
    const int code = status == QN_OK ? cli_show(cli, report) : cli_fail(cli, status);
    qn_stats_free(stats);
    return code;
}

/* ---- Calibration ----------------------------------------------------------------------------- */

/* Better said now than after hours. */
static bool can_create(const char *path)
{
    struct stat status;
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (stat(path, &status) == 0) {
        errno = EISDIR;
        return !S_ISDIR(status.st_mode) && access(path, W_OK) == 0;
    }
    if (slash)
        snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    return access(folder, W_OK | X_OK) == 0;
}

/* "<output>.part", where a killed run goes on. */
static char *checkpoint_name(const char *output)
{
    const size_t size = strlen(output) + sizeof ".part";
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%s.part", output);
    return name;
}

static qn_status collect(qn_report **out, cli_work *cli, qn_model *model,
                         const qn_calibrate_options *wanted, const char *output)
{
    qn_stats *stats = NULL;
    qn_status status = qn_calibrate(&stats, out, cli->ctx, model, wanted);
    if (status == QN_OK && output && cli->rank == 0)
        status = qn_stats_save(cli->ctx, stats, output);
    if (status == QN_OK && wanted->checkpoint && cli->rank == 0)
        remove(wanted->checkpoint);
    if (status != QN_OK) {
        qn_report_free(*out);
        *out = NULL;
    }
    qn_stats_free(stats);
    return status;
}

static qn_status calibrate(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    char *checkpoint = v->output ? checkpoint_name(v->output) : NULL;
    qn_calibrate_options wanted = v->calibrate;
    wanted.checkpoint = checkpoint;
    cli_move_batch(&wanted.data, &wanted.graph);
    const int64_t asked = v->number * v->batch;
    if (wanted.data.samples && asked > wanted.data.samples)
        cli_note("%lld samples in so many iterations, but no more than %lld are to be used",
                 (long long)asked, (long long)wanted.data.samples);
    else if (asked)
        wanted.data.samples = asked;
    const qn_status status = collect(out, cli, model, &wanted, v->output);
    free(checkpoint);
    return status;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    if (v->merge && v->show) {
        cli_error("calibrate: --merge and --show are two things");
        return CLI_USAGE;
    }
    if (v->merge)
        return merge(cli, v);
    if (v->show)
        return show(cli, v);
    if (v->common.arguments.count + (v->model != NULL) != 1) {
        cli_error("calibrate: name one model: quench calibrate -m MODEL -d DATA -o FILE");
        return CLI_USAGE;
    }
    if (!v->output)
        cli_note("nothing is saved: -o FILE keeps the statistics");
    if (v->output && !can_create(v->output)) {
        cli_error("%s: cannot create: %s", v->output, strerror(errno));
        return CLI_FAILED;
    }
    return cli_model_file_run(cli, v->model ? v->model : v->common.arguments.at[0], calibrate,
                              &v->origin, v);
}

const cli_command cli_cmd_calibrate = {
    .name = "calibrate",
    .arguments = "[MODEL | FILE...]",
    .least = 0,
    .most = 1024,
    .brief = "collect statistics of a model's activations on data",
    .notes = "The statistics depend on model and data only, not on the order of the samples or on "
             "threads. A run that was killed goes on from FILE.part when it is started again. "
             "`mpirun -n N quench calibrate ...` shares the samples among N processes. "
             "docs/calibration.md tells what each method makes of them.",
    .parts = {{.group = &own},
              {.group = &cli_subject_group, .offset = offsetof(values, model)},
              {.group = &cli_calibrate_group, .offset = offsetof(values, calibrate)},
              {.group = &cli_data_group,
               .offset = offsetof(values, calibrate.data),
               .without = "labels"},
              {.group = &cli_graph_group, .offset = offsetof(values, calibrate.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .makes_files = true,
    .values_size = sizeof(values),
    .is_shared = true,
    .run = run,
};
