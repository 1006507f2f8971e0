/* --input-shape and --no-pass, which several commands share. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool bad_shape(const char *text)
{
    cli_error("--input-shape: '%s' is not NAME:DIM,DIM,... with dimensions from 0 on", text);
    return false;
}

/* The last ':' ends the name, which may hold others. */
static bool parse_shape(qn_input_shape *out, char **names, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return bad_shape(text);
    const size_t length = (size_t)(colon - text);
    memcpy(*names, text, length);
    out->name = *names;
    *names += length + 1;
    for (const char *at = colon + 1; *at;) {
        char *end;
        errno = 0;
        const long long dim = strtoll(at, &end, 10);
        if (end == at || errno || dim < 0 || out->rank == QN_MAX_RANK || (*end && *end != ',') ||
            (*end == ',' && !end[1]))
            return bad_shape(text);
        out->dims[out->rank++] = dim;
        at = *end ? end + 1 : end;
    }
    return true;
}

bool cli_graph_make(cli_graph *out, const cli_graph_values *values)
{
    size_t bytes = 1;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < values->shapes.count; i++)
        bytes += strlen(values->shapes.at[i]) + 1;
    out->shapes = calloc(values->shapes.count + 1, sizeof *out->shapes);
    out->names = calloc(bytes, 1);
    if (!out->shapes || !out->names) {
        cli_error("out of memory");
        return false;
    }
    char *names = out->names;
    for (size_t i = 0; i < values->shapes.count; i++) {
        if (!parse_shape(&out->shapes[i], &names, values->shapes.at[i]))
            return false;
    }
    out->options = (qn_graph_options){.shapes = out->shapes,
                                      .n_shapes = values->shapes.count,
                                      .batch = values->batch,
                                      .skip = values->skip.at,
                                      .n_skip = values->skip.count};
    return true;
}

void cli_graph_free(cli_graph *graph)
{
    free(graph->shapes);
    free(graph->names);
}
