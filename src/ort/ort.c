/* ONNX Runtime's shared library, opened while running. */
#include "ort/ort.h"

#include <dlfcn.h>
#include <string.h>

/* ---- The library's table of functions -----------------------------------------------------------
 * The library has one entry, which gives a table whose first places never change. These are the
 * places. */

enum place {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_LOG_SEVERITY = 22,
    SET_THREADS = 24,
    CREATE_TENSOR = 49,
    GET_DATA = 51,
    GET_ELEMENT_TYPE = 60,
    GET_RANK = 61,
    GET_DIMS = 62,
    GET_TYPE_AND_SHAPE = 65,
    CREATE_CPU_MEMORY_INFO = 69,
    RELEASE_ENV = 92,
    RELEASE_STATUS = 93,
    RELEASE_MEMORY_INFO = 94,
    RELEASE_SESSION = 95,
    RELEASE_VALUE = 96,
    RELEASE_TYPE_AND_SHAPE = 99,
    RELEASE_SESSION_OPTIONS = 100
};

enum { FIRST_VERSION = 1, ONLY_FATAL = 4, ARENA = 1, DEFAULT_MEMORY = 0, ONE_THREAD = 1 };

typedef void any_fn(void);
typedef struct outcome outcome;

typedef struct entry {
    any_fn *const *(*table)(uint32_t version);
    const char *(*version)(void);
} entry;

typedef const char *message_fn(const outcome *);
typedef outcome *create_env_fn(int severity, const char *id, void **out);
typedef outcome *create_fn(void **out);
typedef outcome *set_int_fn(void *options, int value);
typedef outcome *create_session_fn(void *env, const char *path, const void *options, void **out);
typedef outcome *memory_info_fn(int allocator, int memory, void **out);
typedef outcome *create_tensor_fn(const void *info, void *data, size_t size, const int64_t *dims,
                                  size_t rank, int type, void **out);
typedef outcome *run_fn(void *session, const void *options, const char *const *in_names,
                        const void *const *in, size_t n_in, const char *const *out_names,
                        size_t n_out, void **out);
typedef outcome *get_fn(const void *object, void **out);
typedef outcome *get_int_fn(const void *object, int *out);
typedef outcome *get_size_fn(const void *object, size_t *out);
typedef outcome *get_dims_fn(const void *object, int64_t *dims, size_t count);
typedef void release_fn(void *object);

struct qn_ort {
    qn_context *ctx;
    void *library;
    const entry *entry;
    any_fn *const *table;
    void *env, *options, *session, *memory;
};

#define CALL(ort, place, type) ((type *)(ort)->table[place])

static void release(const qn_ort *ort, enum place place, void *object)
{
    if (object)
        CALL(ort, place, release_fn)(object);
}

static qn_status check(const qn_ort *ort, outcome *s)
{
    if (!s)
        return QN_OK;
    const qn_status failed = qn_fail(ort->ctx, QN_E_FORMAT, "ONNX Runtime: %s",
                                     CALL(ort, GET_ERROR_MESSAGE, message_fn)(s));
    release(ort, RELEASE_STATUS, s);
    return failed;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qn_status find_table(qn_ort *ort, const char *library)
{
    const entry *(*base)(void) = NULL;
    ort->library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!ort->library)
        return qn_fail(ort->ctx, QN_E_UNSUPPORTED, "cannot open the library '%s': %s", library,
                       dlerror());
    void *symbol = dlsym(ort->library, "OrtGetApiBase");
    memcpy(&base, &symbol, sizeof base); /* C has no conversion for it */
    ort->entry = base ? base() : NULL;
    ort->table = ort->entry ? ort->entry->table(FIRST_VERSION) : NULL;
    if (!ort->table)
        return qn_fail(ort->ctx, QN_E_UNSUPPORTED, "'%s' is not ONNX Runtime's library", library);
    return QN_OK;
}

static qn_status load(qn_ort *ort, const char *path)
{
    QN_TRY(check(ort, CALL(ort, CREATE_ENV, create_env_fn)(ONLY_FATAL, "quench", &ort->env)));
    QN_TRY(check(ort, CALL(ort, CREATE_SESSION_OPTIONS, create_fn)(&ort->options)));
    QN_TRY(check(ort, CALL(ort, SET_LOG_SEVERITY, set_int_fn)(ort->options, ONLY_FATAL)));
    QN_TRY(check(ort, CALL(ort, SET_THREADS, set_int_fn)(ort->options, ONE_THREAD)));
    QN_TRY(check(ort, CALL(ort, CREATE_CPU_MEMORY_INFO, memory_info_fn)(ARENA, DEFAULT_MEMORY,
                                                                        &ort->memory)));
    return check(ort, CALL(ort, CREATE_SESSION, create_session_fn)(ort->env, path, ort->options,
                                                                   &ort->session));
}

qn_status qn_ort_open(qn_ort **out, qn_context *ctx, const char *library, const char *model_path)
{
    qn_ort *ort = qn_alloc_zero(ctx, 1, sizeof *ort);
    *out = NULL;
    QN_TRY_ALLOC(ctx, ort);
    ort->ctx = ctx;
    qn_status status = find_table(ort, library);
    if (status == QN_OK)
        status = load(ort, model_path);
    if (status == QN_OK)
        *out = ort;
    else
        qn_ort_close(ort);
    return status;
}

const char *qn_ort_version(const qn_ort *ort)
{
    return ort->entry->version();
}

void qn_ort_close(qn_ort *ort)
{
    if (!ort)
        return;
    if (ort->table) {
        release(ort, RELEASE_SESSION, ort->session);
        release(ort, RELEASE_SESSION_OPTIONS, ort->options);
        release(ort, RELEASE_MEMORY_INFO, ort->memory);
        release(ort, RELEASE_ENV, ort->env);
    }
    if (ort->library)
        dlclose(ort->library);
    qn_free(ort->ctx, ort);
}

/* ---- Running --------------------------------------------------------------------------------- */

static qn_status make_input(void **out, const qn_ort *ort, const qn_tensor *tensor)
{
    const size_t size = (size_t)qn_tensor_count(tensor) * qn_dtype_size(tensor->dtype);
    return check(ort, CALL(ort, CREATE_TENSOR, create_tensor_fn)(ort->memory, tensor->data, size,
                                                                 tensor->dims, (size_t)tensor->rank,
                                                                 (int)tensor->dtype, out));
}

/* Element types have the numbers of ONNX on both sides. */
static qn_status read_output(qn_tensor *out, const qn_ort *ort, void *value)
{
    void *info = NULL, *data = NULL;
    int type = 0;
    size_t rank = 0;
    QN_TRY(check(ort, CALL(ort, GET_TYPE_AND_SHAPE, get_fn)(value, &info)));
    qn_status status = check(ort, CALL(ort, GET_ELEMENT_TYPE, get_int_fn)(info, &type));
    if (status == QN_OK)
        status = check(ort, CALL(ort, GET_RANK, get_size_fn)(info, &rank));
    if (status == QN_OK && rank > QN_MAX_RANK)
        status = qn_fail(ort->ctx, QN_E_UNSUPPORTED, "ONNX Runtime gives %zu dimensions", rank);
    if (status == QN_OK)
        status = check(ort, CALL(ort, GET_DIMS, get_dims_fn)(info, out->dims, rank));
    if (status == QN_OK)
        status = check(ort, CALL(ort, GET_DATA, get_fn)(value, &data));
    release(ort, RELEASE_TYPE_AND_SHAPE, info);
    out->dtype = (qn_dtype)type;
    out->rank = (int32_t)rank;
    out->data = data;
    return status;
}

static qn_status run_with(const qn_ort *ort, const qn_ort_run *run, void **in, void **out)
{
    for (size_t i = 0; i < run->n_in; i++)
        QN_TRY(make_input(&in[i], ort, &run->in[i]));
    QN_TRY(check(ort,
                 CALL(ort, RUN, run_fn)(ort->session, NULL, run->in_names, (const void *const *)in,
                                        run->n_in, run->out_names, run->n_out, out)));
    for (size_t i = 0; i < run->n_out; i++) {
        qn_tensor tensor = {.rank = 0};
        QN_TRY(read_output(&tensor, ort, out[i]));
        QN_TRY(run->seen(run->user, i, &tensor));
    }
    return QN_OK;
}

qn_status qn_ort_compute(qn_ort *ort, const qn_ort_run *run)
{
    void **values = qn_alloc_zero(ort->ctx, run->n_in + run->n_out + 1, sizeof *values);
    QN_TRY_ALLOC(ort->ctx, values);
    const qn_status status = run_with(ort, run, values, values + run->n_in);
    for (size_t i = 0; i < run->n_in + run->n_out; i++)
        release(ort, RELEASE_VALUE, values[i]);
    qn_free(ort->ctx, values);
    return status;
}
