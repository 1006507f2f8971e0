/* Infer functions of files: shared objects are opened, scripts are handed to an interpreter. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* ---- Shared objects -------------------------------------------------------------------------- */

/* ISO C has no cast from an object's address to a function's. */
static qn_infer_fn *find_function(void *object, const char *name)
{
    union {
        void *address;
        qn_infer_fn *function;
    } symbol = {dlsym(object, name)};
    return symbol.function;
}

/* What a function prints that runs many times is hidden; false where that cannot be. */
static bool hide_output(int *kept)
{
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stdout);
    *kept = nowhere >= 0 ? dup(STDOUT_FILENO) : -1;
    const bool hidden = *kept >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0;
    if (!hidden && *kept >= 0)
        close(*kept);
    if (nowhere >= 0)
        close(nowhere);
    return hidden;
}

static void show_output(int kept)
{
    fflush(stdout);
    (void)dup2(kept, STDOUT_FILENO);
    close(kept);
}

/* A qn_infer_fn; `user` is the script. */
static qn_status run_object(void *user, qn_executor *executor, double *metric)
{
    const cli_script *script = user;
    int kept = -1;
    const bool hidden = qn_executor_get(executor)->quiet && hide_output(&kept);
    const qn_status status = script->own(NULL, executor, metric);
    if (hidden)
        show_output(kept);
    return status;
}

static bool is_known(const char *function)
{
    bool known = false;
    for (size_t i = 0; qn_infer_name(i); i++)
        known = known || strcmp(qn_infer_name(i), function) == 0;
    return known;
}

/* What it lacks may be built in. */
static int open_object(cli_script *out, const char *path, const char *function)
{
    char *direct = NULL;
    if (!strchr(path, '/')) { /* a name without a folder would be looked for elsewhere */
        direct = malloc(strlen(path) + 3);
        if (!direct) {
            cli_error("out of memory");
            return CLI_FAILED;
        }
        memcpy(direct, "./", 2);
        strcpy(direct + 2, path);
    }
    out->object = dlopen(direct ? direct : path, RTLD_NOW | RTLD_LOCAL);
    free(direct);
    if (!out->object) {
        cli_error("%s: cannot be loaded: %s", path, dlerror());
        return CLI_FAILED;
    }
    out->own = find_function(out->object, function);
    if (!out->own && is_known(function))
        return CLI_DONE;
    if (!out->own) {
        cli_error("%s has no function '%s' (a qn_infer_fn, see quench/jobs.h)", path, function);
        return CLI_USAGE;
    }
    out->function.run = run_object;
    out->function.user = out;
    return CLI_DONE;
}

/* ---- Scripts --------------------------------------------------------------------------------- */

/* The first of the places that there is, beside the program itself: of an installed one, and of a
 * folder that it was built in. */
static bool find_beside(char *out, size_t size, const char *const *places)
{
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return false;
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (; *places; places++) {
        snprintf(out, size, "%s/%s", self, *places);
        if (access(out, R_OK) == 0)
            return true;
    }
    return false;
}

/* Before what the user has there, which may have packages of the same names. */
static bool put_first(const char *name, const char *folder)
{
    const char *old = getenv(name);
    const size_t size = strlen(folder) + (old ? strlen(old) : 0) + 2;
    char *both = malloc(size);
    bool done = false;
    if (both) {
        snprintf(both, size, old && *old ? "%s:%s" : "%s", folder, old ? old : "");
        done = setenv(name, both, 1) == 0;
    }
    free(both);
    return done;
}

static size_t count_words(char *const *argv)
{
    size_t count = 0;
    while (argv[count])
        count++;
    return count;
}

const char *cli_python(void)
{
    const char *chosen = getenv("QUENCH_PYTHON");
    return chosen && *chosen ? chosen : "python3";
}

bool cli_python_path(void)
{
    static const char *const packages[] = {QUENCH_PYTHON_PLACE, "python/quench/script.py", NULL};
    char package[4200];
    if (!find_beside(package, sizeof package, packages))
        return false;
    *strrchr(package, '/') = '\0'; /* the file, */
    *strrchr(package, '/') = '\0'; /* and its package */
    return put_first("PYTHONPATH", package);
}

/* Does not return where all is well. */
static void start_interpreter(const cli_program *program)
{
    static const char *const modules[] = {QUENCH_MODULE_PLACE, "libquench_command.so", NULL};
    const char *python = cli_python();
    char module[4200];
    const size_t words = count_words(program->argv);
    const char **argv = calloc(words + 4, sizeof *argv);
    if (!argv || !find_beside(module, sizeof module, modules) || !cli_python_path()) {
        cli_error("the Python package of quench is not where it was installed: scripts cannot run");
        free(argv);
        return;
    }
    argv[0] = python;
    argv[1] = "-m";
    argv[2] = "quench.script";
    memcpy(argv + 3, program->argv, words * sizeof *argv);
    if (setenv("QUENCH_COMMAND", module, 1) == 0) {
        union {
            const char **from;
            char *const *to;
        } list = {argv};
        fflush(NULL);
        execvp(python, list.to);
    }
    cli_error("%s cannot be started: %s; scripts (-uds) need Python 3 with numpy "
              "(QUENCH_PYTHON names another interpreter)",
              python, strerror(errno));
    free(argv);
}

static int open_script(cli_script *out, const cli_program *program, const char *function)
{
    if (!program->run) {
        start_interpreter(program);
        return CLI_FAILED;
    }
    out->name = strdup(function);
    if (!out->name)
        cli_error("out of memory");
    out->function.run = program->run;
    out->function.user = out->name;
    return out->name ? CLI_DONE : CLI_FAILED;
}

/* The interpreter makes the model before it calls the command again, which finds it as a file. */
bool cli_script_model(const char **path, const cli_program *program, const char *script,
                      const char *weights)
{
    if (!program->run) {
        if (setenv("QUENCH_MODEL_NAME", *path, 1) == 0 &&
            setenv("QUENCH_MODEL_SCRIPT", script, 1) == 0 &&
            (weights ? setenv("QUENCH_MODEL_WEIGHTS", weights, 1)
                     : unsetenv("QUENCH_MODEL_WEIGHTS")) == 0)
            start_interpreter(program);
        return false;
    }
    const char *made = getenv("QUENCH_MODEL_FILE");
    if (made)
        *path = made;
    return made != NULL;
}

/* ---- Either ---------------------------------------------------------------------------------- */

/* The vendor's files of infer functions need not be there: what they are known for is built in. */
static bool is_built_in(const char *path, const char *function)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return is_known(function) &&
           (strcmp(name, "infer_common.py") == 0 || strcmp(name, "infer_auto.py") == 0) &&
           access(path, F_OK) != 0;
}

bool cli_script_fits(const char *path)
{
    const bool fits = ends_with(path, ".py") || ends_with(path, ".so");
    if (!fits)
        cli_error(
            "quant: --user-defined-script (-uds) %s: a Python script (.py) or a shared object "
            "(.so) is expected",
            path);
    return fits;
}

int cli_script_open(cli_script *out, const cli_program *program, const char *path,
                    const char *function)
{
    *out = (cli_script){.function = {.name = function, .script = path}};
    if (is_built_in(path, function)) {
        out->function.script = NULL;
        return CLI_DONE;
    }
    if (access(path, R_OK) != 0) {
        cli_error("%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    return ends_with(path, ".so") ? open_object(out, path, function)
                                  : open_script(out, program, function);
}

void cli_script_close(cli_script *script)
{
    if (script->object)
        dlclose(script->object);
    free(script->name);
}
