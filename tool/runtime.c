/* A model run by its framework's own runtime, in a Python of its own: python/quench/runtimes.py. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

extern char **environ;

enum { PATH_SIZE = 1024 };

/* "<folder>/<name><i>.npy" */
static const char *array_path(char out[PATH_SIZE], const char *folder, const char *name, size_t i)
{
    snprintf(out, PATH_SIZE, "%s/%s%zu.npy", folder, name, i);
    return out;
}

/* ---- What Python is told --------------------------------------------------------------------- */

/* Lines "key<TAB>value": names may have anything else in them. */
static bool write_job(const char *folder, const qn_runtime_run *run, const qn_model_load_options *o)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/job", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file, "framework\t%s\nmodel\t%s\n", run->framework, run->model);
    if (o->weights)
        fprintf(file, "weights\t%s\n", o->weights);
    if (o->channels_first)
        fprintf(file, "channels_first\t1\n");
    for (size_t i = 0; i < run->n_inputs; i++)
        fprintf(file, "input\t%s\n", run->input_names[i]);
    for (size_t i = 0; i < run->n_outputs; i++)
        fprintf(file, "output\t%s\n", run->output_names[i]);
    return fclose(file) == 0;
}

static qn_status save_inputs(qn_context *ctx, const char *folder, const qn_runtime_run *run)
{
    char path[PATH_SIZE];
    qn_status status = QN_OK;
    for (size_t i = 0; i < run->n_inputs && status == QN_OK; i++)
        status = qn_tensor_save(ctx, &run->inputs[i], array_path(path, folder, "in", i));
    return status;
}

/* What Python says, one line: who ran, or why nobody did. */
static void read_words(char words[QN_RUNTIME_VERSION], const char *folder)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/words", folder);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(words, QN_RUNTIME_VERSION, file))
        snprintf(words, QN_RUNTIME_VERSION,
                 "the framework's runtime cannot be asked: no Python 3 "
                 "with numpy");
    words[strcspn(words, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* Runs it without a word; -1 where it cannot be started. */
static int run_python(char *folder)
{
    char *words[] = {strdup(cli_python()), strdup("-m"), strdup("quench.runtimes"), folder, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    int code = -1;
    if (words[0] && words[1] && words[2] && posix_spawn_file_actions_init(&actions) == 0) {
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&child, words[0], &actions, NULL, words, environ) == 0) {
            while (waitpid(child, &code, 0) < 0 && errno == EINTR)
                ;
            code = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    for (size_t i = 0; i < 3; i++)
        free(words[i]);
    return code;
}

/* ---- What comes back ------------------------------------------------------------------------- */

static qn_status take_outputs(qn_context *ctx, const char *folder, const qn_runtime_run *run)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < run->n_outputs; i++) {
        qn_tensor *tensor;
        if (access(array_path(path, folder, "out", i), R_OK) != 0)
            continue;
        const qn_status status = qn_tensor_load(&tensor, ctx, path, NULL);
        if (status != QN_OK)
            return status;
        run->take(run->taker, i, tensor);
        qn_tensor_free(tensor);
    }
    return QN_OK;
}

static void remove_folder(const char *folder, const qn_runtime_run *run)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < run->n_inputs; i++)
        unlink(array_path(path, folder, "in", i));
    for (size_t i = 0; i < run->n_outputs; i++)
        unlink(array_path(path, folder, "out", i));
    snprintf(path, sizeof path, "%s/job", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/words", folder);
    unlink(path);
    rmdir(folder);
}

qn_status cli_runtime_run(void *user, qn_context *ctx, char version[QN_RUNTIME_VERSION],
                          const qn_runtime_run *run)
{
    const char *place = getenv("TMPDIR");
    char folder[PATH_SIZE / 2];
    snprintf(folder, sizeof folder, "%s/quench-XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder))
        return qn_runtime_fail(ctx, QN_E_UNSUPPORTED,
                               "the framework's runtime is not asked: there is no folder for its "
                               "data in $TMPDIR, or /tmp");
    qn_status status = save_inputs(ctx, folder, run);
    if (status == QN_OK && write_job(folder, run, user) && cli_python_path()) {
        const int code = run_python(folder);
        read_words(version, folder);
        status = code == 0 ? take_outputs(ctx, folder, run)
                           : qn_runtime_fail(ctx, QN_E_UNSUPPORTED, version);
    } else if (status == QN_OK) {
        status = qn_runtime_fail(ctx, QN_E_UNSUPPORTED,
                                 "the framework's runtime is not asked: quench's Python package is "
                                 "not where it was installed");
    }
    remove_folder(folder, run);
    return status;
}
