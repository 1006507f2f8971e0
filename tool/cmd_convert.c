/* quench convert: the model after the passes, as ONNX. */
#include <sys/stat.h>

#include "cli.h"

typedef struct values {
    cli_common common;
    qn_model_load_options origin;
    const char *output;
    qn_convert_options convert;
} values;

static const cli_option options[] = {
    {.name = "output",
     .shorts = "o",
     .type = CLI_TEXT,
     .offset = offsetof(values, output),
     .value = "FILE",
     .help = "where to write; the same as the second argument"},
};
static const cli_group own = CLI_GROUP("of convert", options);

static const char *output_of(const values *v)
{
    return v->common.arguments.count > 1 ? v->common.arguments.at[1] : v->output;
}

static qn_status convert(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const values *v = parsed;
    qn_model_load_options from = v->origin;
    qn_convert_options wanted = v->convert;
    wanted.runtime = cli_runtime_run;
    wanted.runtime_user = &from;
    return qn_convert_file(out, cli->ctx, model, output_of(v), &wanted);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

static int run(cli_work *cli, const void *parsed)
{
    const values *v = parsed;
    if (!output_of(v) || (v->common.arguments.count > 1 && v->output)) {
        cli_error("convert: name one output file: quench convert MODEL OUTPUT");
        return CLI_USAGE;
    }
    if (is_same_file(v->common.arguments.at[0], output_of(v))) {
        cli_error("convert: %s is the model itself, which is not written over: choose another name",
                  output_of(v));
        return CLI_USAGE;
    }
    cli->aside = is_same_file(output_of(v), "/dev/stdout");
    return cli_model_run(cli, convert, &v->origin, v);
}

const cli_command cli_cmd_convert = {
    .name = "convert",
    .arguments = "MODEL OUTPUT",
    .least = 1,
    .most = 2,
    .brief = "write a model as ONNX after the passes",
    .notes = "The file appears under its name only when it is complete. Where the opset asked for "
             "cannot say what the graph does, the node that prevents it is named (exit code 3).",
    .parts = {{.group = &own},
              {.group = &cli_convert_group, .offset = offsetof(values, convert)},
              {.group = &cli_save_group, .offset = offsetof(values, convert.save)},
              {.group = &cli_graph_group, .offset = offsetof(values, convert.graph)},
              {.group = &cli_origin_group, .offset = offsetof(values, origin)}},
    .makes_files = true,
    .values_size = sizeof(values),
    .run = run,
};
