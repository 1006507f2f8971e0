/* quench quant: which options go together. */
#include <stdlib.h>
#include <string.h>

#include "quant.h"

/* ---- What excludes each other ---------------------------------------------------------------- */

static bool check_template(const quant_values *v, const cli_command *command)
{
    if (!v->own.make_template || !cli_given(v, command, "load-scale-json"))
        return true;
    cli_error("quant: --load-scale-json and --generate-template exclude each other: the scale file "
              "says the width of every node");
    return false;
}

/* ---- Chips ----------------------------------------------------------------------------------- */

/* The first option given that makes nodes of another width than the standard one, into `out`;
 * false: none. */
static bool find_width_option(char *out, size_t size, const quant_values *v,
                              const cli_command *command)
{
    static const char *const names[] = {"bits", "mix-config", "generate-template", "max-drop"};
    const int bits = quant_options_of(v)->bits;
    if (bits && bits != STANDARD_BITS) {
        snprintf(out, size, "bit-width %d", bits);
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!cli_given(v, command, names[i]))
            continue;
        snprintf(out, size, "%s", names[i]);
        return true;
    }
    return false;
}

/* A target and a chip that was named exclude each other; one that nobody named gives way. */
static bool check_target(quant_values *v, const cli_command *command)
{
    const char *chip = cli_chip(&v->common);
    if (!chip || !cli_given(v, command, "target"))
        return true;
    if (cli_named_chip(&v->common)) {
        cli_error("quant: --target and --chip exclude each other: a chip is a target");
        return false;
    }
    v->common.chipless = true;
    if (!v->common.program->run)
        cli_note("--target %s: the result is not for chip %s, the default",
                 quant_options_of(v)->target, chip);
    return true;
}

static bool check_chip(const quant_values *v, const cli_command *command)
{
    const char *name = cli_chip(&v->common);
    qn_chip_info chip;
    if (!name || !qn_chip_find(&chip, name)) /* all that are given were checked */
        return true;
    char option[32];
    const bool refused = !chip.int16 && find_width_option(option, sizeof option, v, command);
    if (refused)
        cli_error("quant: --%s and --chip %s exclude each other: %s computes with 8 bits only, "
                  "and has no nodes of different widths",
                  option, name, chip.name);
    else if (quant_options_of(v)->dynamic)
        cli_error("quant: --dynamic and --chip %s exclude each other: the scales of a chip's "
                  "model are fixed",
                  name);
    return !refused && !quant_options_of(v)->dynamic;
}

/* ---- Other rules ----------------------------------------------------------------------------- */

static bool quantizes(const quant_values *v)
{
    return strcmp(v->own.mode, "quant") == 0 || strcmp(v->own.mode, "compare") == 0;
}

static bool check_normalization(const quant_values *v, const cli_command *command)
{
    const bool mean = cli_given(v, command, "mean"), std = cli_given(v, command, "std");
    if (mean == std)
        return true;
    cli_error("quant: --%s without --%s: both are needed, (x - mean) / std", mean ? "mean" : "std",
              mean ? "std" : "mean");
    return false;
}

static bool check_numbers(const quant_values *v, const cli_command *command)
{
    const bool limit =
        !cli_given(v, command, "layer-threshold") || quant_options_of(v)->norm_limit > 0;
    char typed[CLI_TYPED_SIZE];
    if (!limit)
        cli_error("quant: %s: it must be more than 0",
                  cli_typed(typed, v, command, "layer-threshold"));
    return limit;
}

static bool check_methods(const quant_values *v)
{
    const bool several = v->strategies.n_methods > 1 ||
                         (v->strategies.n_methods && strcmp(v->strategies.methods[0], "all") == 0);
    const char *option = v->own.make_template       ? "generate-template"
                         : quant_options_of(v)->mix ? "mix-config"
                                                    : NULL;
    if (v->own.make_template && v->strategies.n_methods &&
        strcmp(v->strategies.methods[0], "mean") == 0) {
        cli_error("quant: --generate-template and --quant-mode mean exclude each other: a mix file "
                  "has no such mode");
        return false;
    }
    if (!option || !several)
        return true;
    cli_error("quant: --%s and several values of --quant-mode exclude each other: the file says "
              "the method of every node",
              option);
    return false;
}

/* "PATTERN=16", "PATTERN=w8a16": the width of activations. */
static int activation_bits(const char *text)
{
    const char *equals = strrchr(text, '=');
    const char *after = equals ? strrchr(equals, 'a') : NULL;
    return equals ? (int)strtol(after ? after + 1 : equals + 1, NULL, 10) : 0;
}

/* The width of activations that opset `opset` has no quantizers of, and what asks for it; 0: none,
 * or what follows may take it back. */
static int width_beyond(const char **option, const char **value, const quant_values *v,
                        int64_t opset)
{
    const qn_quantize_options *o = quant_options_of(v);
    int found = qn_bits_opset(o->bits) > opset ? o->bits : 0;
    *option = "-b";
    *value = NULL;
    for (size_t i = 0; i < o->n_widths; i++) {
        const int bits = activation_bits(o->widths[i]);
        if (bits == STANDARD_BITS)
            found = 0;
        if (qn_bits_opset(bits) <= opset)
            continue;
        found = bits;
        *option = "--bits";
        *value = o->widths[i];
    }
    return o->scales || o->mix ? 0 : found;
}

/* What the file could not say is not calibrated first. Form "fake" has no quantizers. */
static bool check_opset(const quant_values *v)
{
    const qn_quantize_file_options *file = &v->strategies.file;
    const char *option, *value;
    char number[16];
    const int bits = file->opset ? width_beyond(&option, &value, v, file->opset) : 0;
    const bool writes = !v->own.list && !v->own.make_template && quantizes(v) &&
                        (!file->form || strcmp(file->form, "fake") != 0);
    if (!bits || !writes)
        return true;
    snprintf(number, sizeof number, "%d", bits);
    cli_error("quant: --opset %d and %s %s exclude each other: files have quantizers of %d bits "
              "since opset %d; leave out --opset, or use -b %d or --format fake",
              file->opset, option, value ? value : number, bits, qn_bits_opset(bits),
              STANDARD_BITS);
    return false;
}

/* Which node reads an input is not known yet; that all of them have 8 bits is. */
static bool check_input_types(const quant_values *v, const cli_command *command)
{
    for (size_t i = 0; i < quant_options_of(v)->n_input_types; i++) {
        if (strcmp(quant_options_of(v)->input_types[i], "int16") != 0 ||
            quant_options_of(v)->bits > STANDARD_BITS || quant_options_of(v)->n_widths ||
            quant_options_of(v)->mix || quant_options_of(v)->scales)
            continue;
        cli_error(
            "quant: --quantize-input-dtype int16 and --bit-width 8%s exclude each other: nodes "
            "of 8 bits read no int16",
            cli_given(v, command, "bit-width") ? "" : " (the default)");
        return false;
    }
    return true;
}

/* A model of whose first input the batch is said runs batches of that size. */
static bool check_batch(const quant_values *v, const cli_command *command)
{
    const qn_input_shape *shape = v->origin.n_shapes ? v->origin.shapes : NULL;
    const int64_t batch = v->strategies.function.batch_size;
    if (!shape || !cli_given(v, command, "batch-size") || shape->dims[0] == batch)
        return true;
    cli_error("quant: --batch-size %lld and --input-shapes %lld ... exclude each other: the first "
              "dimension is the batch",
              (long long)batch, (long long)shape->dims[0]);
    return false;
}

/* ---- What "input-configs" say ---------------------------------------------------------------- */

static bool set_from(quant_values *v, const cli_command *command, const char *option,
                     const qn_config_entry *entry)
{
    cli_list texts = {.count = 0};
    bool good = true;
    for (size_t i = 0; good && i < entry->count; i++)
        good = cli_list_push(&texts, entry->values[i]);
    good = good && cli_set(v, command, option, &texts, entry->where);
    cli_list_free(&texts);
    return good;
}

/* Pixels as they are need a model that does what the function does else: (x - mean) / std, or x /
 * 255. */
static bool fold_input(quant_values *v, const cli_command *command, const qn_config_entry *type)
{
    const char *zero = "0", *most = "255";
    qn_config_entry mean = {.key = "mean", .where = type->where, .values = &zero, .count = 1};
    qn_config_entry std = {.key = "std", .where = type->where, .values = &most, .count = 1};
    qn_config_entry own_mean, own_std;
    if (cli_given(v, command, "mean") || cli_given(v, command, "std"))
        return true;
    if (cli_config_input(&own_mean, &v->common, 0, "mean") && own_mean.count &&
        cli_config_input(&own_std, &v->common, 0, "std") && own_std.count) {
        mean = own_mean;
        std = own_std;
    }
    return set_from(v, command, "mean", &mean) && set_from(v, command, "std", &std);
}

/* One for each object, all of which have a data_dir; false: no object has one. */
static bool list_types(cli_list *types, qn_config_entry *first, const quant_values *v)
{
    qn_config_entry entry;
    bool any = false;
    for (size_t i = 0; cli_config_input(&entry, &v->common, i, "data_dir"); i++) {
        const bool own = cli_config_input(&entry, &v->common, i, "quantize_input_dtype");
        if (own && !any)
            *first = entry;
        any = any || own;
        if (!cli_list_push(types, own && entry.count == 1 ? entry.values[0] : "float32"))
            return false;
    }
    return any;
}

/* Types of the inputs, unless --quantize-input-dtype was given. */
static bool take_input_types(quant_values *v, const cli_command *command)
{
    const bool own =
        v->strategies.function.name && strcmp(v->strategies.function.name, "infer_default") == 0;
    cli_list types = {.count = 0};
    qn_config_entry first = {.key = NULL};
    bool good = true;
    if (!own || !quantizes(v) || cli_given(v, command, "quantize-input-dtype"))
        return true;
    if (list_types(&types, &first, v)) {
        good = cli_set(v, command, "quantize-input-dtype", &types, first.where);
        if (good && strcmp(types.at[0], "uint8") == 0)
            good = fold_input(v, command, &first);
    }
    cli_list_free(&types);
    return good;
}

/* ---- What has no effect ---------------------------------------------------------------------- */

typedef bool needs_fn(const quant_values *v);

static bool runs(const quant_values *v)
{
    return strcmp(v->own.mode, "convert") != 0;
}

/* Data beside a scale file serve the comparison. */
static bool takes_samples(const quant_values *v)
{
    return !quant_options_of(v)->scales || quant_options_of(v)->calibrate.data.n_data ||
           v->strategies.function.name;
}

static bool has_percentile(const quant_values *v)
{
    for (size_t i = 0; i < v->strategies.n_methods; i++) {
        if (strcmp(v->strategies.methods[i], "percentile") == 0 ||
            strcmp(v->strategies.methods[i], "all") == 0)
            return true;
    }
    return quant_options_of(v)->mix != NULL;
}

/* Nodes may have more than the standard width. */
static bool has_other_widths(const quant_values *v)
{
    return quant_options_of(v)->bits > STANDARD_BITS || quant_options_of(v)->n_widths ||
           quant_options_of(v)->mix || v->own.make_template;
}

static bool has_chip(const quant_values *v)
{
    return cli_chip(&v->common) != NULL;
}

static bool has_budget(const quant_values *v)
{
    return v->budget.max_drop < 100;
}

static bool makes_template(const quant_values *v)
{
    return v->own.make_template != 0;
}

static bool makes_ends(const quant_values *v)
{
    return makes_template(v) && v->mix.strategy && strcmp(v->mix.strategy, "initial") != 0;
}

static bool has_one_width(const quant_values *v)
{
    return !quant_options_of(v)->mix || makes_template(v);
}

typedef struct condition {
    const char *option;
    needs_fn *needs;
    /* It needs */
    const char *what;
} condition;

static const condition conditions[] = {
    {"quant-mode", runs, "a run mode other than convert"},
    {"generate-scale-json", quantizes, "run mode quant or compare"},
    {"generate-template", quantizes, "run mode quant or compare"},
    {"mean", quantizes, "run mode quant or compare"},
    {"std", quantizes, "run mode quant or compare"},
    {"quantize-input-dtype", runs, "a run mode other than convert"},
    {"dump", quantizes, "run mode quant or compare"},
    {"bit-width", quantizes, "run mode quant or compare"},
    {"data", runs, "a run mode other than convert"},
    {"iteration", runs, "a run mode other than convert"},
    {"iteration", takes_samples, "data or --infer-func beside --load-scale-json"},
    {"batch-size", takes_samples, "data or --infer-func beside --load-scale-json"},
    {"percent", has_percentile, "method percentile"},
    {"labels", has_budget, "--max-drop"},
    {"class-offset", has_budget, "--max-drop"},
    {"eval-data", has_budget, "--max-drop"},
    {"eval-list", has_budget, "--max-drop"},
    {"output-dequant", has_chip, "a chip: outputs are real numbers anyway"},
    {"lut-len", has_other_widths, "nodes of 16 bits"},
    {"bit-width", has_one_width, "a run without --mix-config, which says the width of every node"},
    {"quant-mode", has_one_width,
     "a run without --mix-config, which says the method of every node"},
    {"auto-mix-ratio", makes_ends, "--generate-template and --auto-mix-strategy IOhigh"},
    {"auto-mix-strategy", makes_template, "--generate-template"},
};

/* In an interpreter it was told before that was started. */
static void note_idle(const quant_values *v, const cli_command *command)
{
    if (v->common.program->run)
        return;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        const condition *c = &conditions[i];
        if (cli_given(v, command, c->option) && !c->needs(v))
            cli_note("--%s has no effect here: it needs %s", c->option, c->what);
    }
}

/* ---- The door -------------------------------------------------------------------------------- */

static bool check_model(const quant_values *v)
{
    const size_t named = v->common.arguments.count + (v->own.model != NULL);
    if (named != 1 && (!named || !cli_refuse_stray(&v->common, &cli_cmd_quant)))
        cli_error("quant: name one model: quench quant -m MODEL");
    return named == 1;
}

bool quant_check(void *values, const cli_command *command)
{
    static const qn_log_level levels[] = {QN_LOG_DEBUG, QN_LOG_INFO, QN_LOG_WARN, QN_LOG_NOTE};
    quant_values *v = values;
    if (cli_given(v, command, "log-level") || v->common.program->knight)
        v->common.log_level = &levels[v->own.log_level];
    if (!check_model(v) || !take_input_types(v, command) || !cli_check_rules(v, command) ||
        !check_template(v, command) || !check_target(v, command) || !check_numbers(v, command) ||
        !check_normalization(v, command) || !check_methods(v) || !check_input_types(v, command) ||
        !check_batch(v, command) || !check_chip(v, command) || !check_opset(v))
        return false;
    note_idle(v, command);
    return true;
}
