/* Finds the files of plug-ins. */
#define _GNU_SOURCE /* dladdr */
#include "base/plugin_files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"

enum { PATH_SIZE = 4096 };

typedef struct finder {
    qn_plugin_is_fn *is_plugin;
    qn_plugin_visit_fn *visit;
    void *user;
} finder;

/* In the order of their names, so that every run prefers the same. */
static qn_status visit_folder(const finder *f, const char *folder)
{
    struct dirent **entries = NULL;
    char path[PATH_SIZE];
    qn_status status = QN_OK;
    const int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (status == QN_OK && f->is_plugin(entries[i]->d_name, false))
            status = f->visit(f->user, path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static qn_status visit_file(const finder *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    return f->is_plugin(slash ? slash + 1 : path, true) ? f->visit(f->user, path) : QN_OK;
}

static qn_status visit_named(const finder *f, const char *list)
{
    char path[PATH_SIZE];
    while (*list) {
        const size_t length = strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", (int)QN_MIN(length, sizeof path - 1), list);
        if (length > 0)
            QN_TRY(qn_folder_is(path) ? visit_folder(f, path) : visit_file(f, path));
        list += length + (list[length] == ':');
    }
    return QN_OK;
}

static qn_status visit_beside_library(const finder *f)
{
    static const char anchor;
    Dl_info info;
    char folder[PATH_SIZE], below[PATH_SIZE + 8];
    if (!dladdr(&anchor, &info) || !info.dli_fname || !strchr(info.dli_fname, '/'))
        return QN_OK;
    snprintf(folder, sizeof folder, "%s", info.dli_fname);
    *strrchr(folder, '/') = '\0';
    snprintf(below, sizeof below, "%s/quench", folder);
    QN_TRY(visit_folder(f, *folder ? folder : "/"));
    return visit_folder(f, below);
}

qn_status qn_plugin_files(qn_plugin_is_fn *is_plugin, qn_plugin_visit_fn *visit, void *user)
{
    const finder f = {is_plugin, visit, user};
    const char *list = getenv("QUENCH_PLUGINS");
    return list ? visit_named(&f, list) : visit_beside_library(&f);
}
