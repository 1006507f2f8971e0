/* quench quant: a float model and data in, an integer model out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quant.h"

/* ---- From values to the library's options ---------------------------------------------------- */

static int default_threads(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 5 ? 5 : (int)cores;
}

/* Of a forward, and of a batch of data. */
static int64_t batch_of(const quant_values *v)
{
    return v->strategies.function.batch_size ? v->strategies.function.batch_size : 1;
}

static qn_quantize_options quantize_options(const quant_values *v)
{
    qn_quantize_options o = *quant_options_of(v);
    if (!o.calibrate.threads)
        o.calibrate.threads = default_threads();
    o.calibrate.data.labels = NULL; /* they are for what accuracy is measured on */
    if (cli_chip(&v->common))
        o.target = cli_chip(&v->common);
    return o;
}

/* What --max-drop is measured on: the data of --eval-data, else those that are calibrated with. */
static qn_eval_options eval_options(const quant_values *v)
{
    const qn_calibrate_options *samples = &quant_options_of(v)->calibrate;
    qn_eval_options eval = QN_EVAL_OPTIONS_INIT;
    eval.plan.graph = samples->graph;
    eval.data = samples->data;
    eval.inputs = samples->inputs;
    eval.n_inputs = samples->n_inputs;
    eval.class_offset = v->strategies.class_offset;
    if (v->own.eval_data.count) {
        eval.data.data = v->own.eval_data.at;
        eval.data.n_data = v->own.eval_data.count;
        eval.data.list = v->own.eval_list;
        eval.data.first = eval.data.samples = 0;
    }
    return eval;
}

static const char *save_dir(const quant_values *v)
{
    if (v->strategies.file.save_dir)
        return v->strategies.file.save_dir;
    return v->common.program->knight ? "/TS-KnightOutput/QuantOnnx" : "quench_out";
}

/* The models of all steps are large: whoever asks for a run mode, as users of the Knight tool do,
 * gets them. */
static bool keeps_steps(const quant_values *v)
{
    return cli_chip(&v->common) || v->strategies.dump || cli_given(v, &cli_cmd_quant, "run-mode");
}

typedef struct job_values {
    const quant_values *v;
    qn_function function;
} job_values;

static qn_status run_strategies(qn_report **out, cli_work *cli, qn_model *model,
                                const qn_quantize_options *quantize, const job_values *job)
{
    static const int64_t once = 1;
    const quant_values *v = job->v;
    qn_strategies_options o = v->strategies;
    o.file.quantize = *quantize;
    o.file.save_dir = save_dir(v);
    o.file.batch = quant_file_batch(v, model);
    if (cli_chip(&v->common) && o.n_iterations == 0) {
        o.iterations = &once;
        o.n_iterations = 1;
    }
    o.function = job->function;
    o.run_mode = v->own.mode;
    o.steps = keeps_steps(v);
    o.dump = o.dump || strcmp(v->own.mode, "compare") == 0;
    return qn_strategies_run(out, cli->ctx, model, &o);
}

static qn_status make_template(qn_report **out, cli_work *cli, qn_model *model,
                               const qn_quantize_options *quantize, const quant_values *v)
{
    qn_mix_options o = v->mix;
    o.quantize = *quantize;
    o.quantize.method = v->strategies.n_methods ? v->strategies.methods[0] : NULL;
    o.save_dir = save_dir(v);
    return qn_mix_template(out, cli->ctx, model, &o);
}

static qn_status quant_with(qn_report **out, cli_work *cli, qn_model *model, const job_values *job,
                            const char *given)
{
    const quant_values *v = job->v;
    qn_quantize_options o = quantize_options(v);
    if (*given)
        o.given = given + 1; /* behind a blank */
    const qn_eval_options eval = eval_options(v);
    qn_accuracy_budget budget = v->budget;
    budget.eval = &eval;
    budget.if_labelled = !eval.data.labels && !v->own.eval_data.count;
    if (v->budget.max_drop < 100)
        o.accuracy_budget = &budget;
    if (v->own.make_template)
        return make_template(out, cli, model, &o, v);
    if (v->own.list)
        return qn_quantize_list(out, cli->ctx, model, &o);
    return run_strategies(out, cli, model, &o, job);
}

static qn_status quant(qn_report **out, cli_work *cli, qn_model *model, const job_values *job)
{
    char *given = quant_given(job->v);
    const qn_status status = given ? quant_with(out, cli, model, job, given) : QN_E_NOMEM;
    free(given);
    return status;
}

static qn_status quant_edited(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const job_values *job = parsed;
    qn_model *edited;
    qn_status status = quant_edit(&edited, cli, model, job->v);
    if (status == QN_OK)
        status = quant(out, cli, edited, job);
    qn_model_free(edited);
    return status;
}

/* ---- Run modes ------------------------------------------------------------------------------- */

static qn_status run_function(qn_report **out, cli_work *cli, qn_model *model,
                              const job_values *job, int64_t iteration)
{
    const qn_quantize_options quantize = quantize_options(job->v);
    qn_function_options o = QN_FUNCTION_OPTIONS_INIT;
    o.graph = quantize.calibrate.graph;
    o.function = job->function;
    o.iteration = iteration;
    o.save_dir = save_dir(job->v);
    o.threads = quantize.calibrate.threads;
    o.input_types = quantize.input_types;
    o.n_input_types = quantize.n_input_types;
    return qn_function_run(out, cli->ctx, model, &o);
}

/* The model as it is: through the function, or with the data. */
static qn_status infer(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const job_values *job = parsed;
    const quant_values *v = job->v;
    const size_t n = v->strategies.n_iterations;
    const int64_t iteration = n ? v->strategies.iterations[n - 1] : 0;
    if (job->function.name)
        return run_function(out, cli, model, job, iteration);
    qn_eval_options eval = eval_options(v);
    eval.data.samples = iteration ? iteration * batch_of(v) : eval.data.samples;
    if (eval.data.labels)
        return qn_eval_run(out, cli->ctx, model, NULL, &eval);
    qn_infer_options o = QN_INFER_OPTIONS_INIT;
    o.plan = eval.plan;
    o.inputs = eval.inputs;
    o.n_inputs = eval.n_inputs;
    o.data = eval.data;
    o.seed = quant_options_of(v)->calibrate.seed;
    if (!o.data.n_data && !o.n_inputs)
        cli_note("no data were given: random numbers stand in for them");
    cli_note("no infer function and no labels: there is no accuracy to tell");
    return qn_infer_files(out, cli->ctx, model, &o);
}

static qn_status convert(qn_report **out, cli_work *cli, qn_model *model, const void *parsed)
{
    const quant_values *v = ((const job_values *)parsed)->v;
    qn_model_load_options from = v->origin;
    qn_convert_options o = QN_CONVERT_OPTIONS_INIT;
    o.graph = quant_options_of(v)->calibrate.graph;
    o.save.opset = v->strategies.file.opset;
    o.runtime = cli_runtime_run;
    o.runtime_user = &from;
    return qn_convert_model(out, cli->ctx, model, save_dir(v), &o);
}

static const struct {
    const char *name;
    cli_job *job;
    bool needs_function;
} modes[] = {{"quant", quant_edited, true},
             {"compare", quant_edited, true},
             {"infer", infer, true},
             {"convert", convert, false}};

/* A model of PyTorch that no file has: its name is one that a script registers. */
static bool is_made_by_script(const quant_values *v, const char *path)
{
    const char *framework = v->origin.framework;
    const char *ending =
        v->strategies.function.script ? strrchr(v->strategies.function.script, '.') : NULL;
    return framework && strcmp(framework, "pytorch") == 0 && path && access(path, F_OK) != 0 &&
           ending && strcmp(ending, ".py") == 0;
}

/* Nothing feeds the model. */
static bool makes_no_run(const quant_values *v)
{
    return v->own.make_template || v->own.list;
}

/* A script without the name of a function: to quantize, others feed the model; to infer, none
 * could. */
static bool check_function(const quant_values *v)
{
    if (v->strategies.function.name)
        return true;
    if (strcmp(v->own.mode, "infer") == 0) {
        cli_error("quant: --user-defined-script needs --infer-func: which function of %s is meant?",
                  v->strategies.function.script);
        return false;
    }
    if (!makes_no_run(v) && !v->common.program->run)
        cli_note("--user-defined-script has no effect here without --infer-func: %s",
                 quant_options_of(v)->calibrate.data.n_data
                     ? "the data of --data feed the model"
                     : "infer_auto feeds the model with random numbers");
    return true;
}

int quant_run(cli_work *cli, const void *parsed)
{
    const quant_values *v = parsed;
    const qn_function *asked = &v->strategies.function;
    const qn_data_options *data = &quant_options_of(v)->calibrate.data;
    const char *path = v->common.arguments.count ? v->common.arguments.at[0] : v->own.model;
    cli_script script = {.function = {.name = asked->name}};
    const bool made = is_made_by_script(v, path);
    if (made && !cli_script_model(&path, v->common.program, asked->script, v->origin.weights))
        return CLI_FAILED;
    int code = CLI_DONE;
    size_t mode = 0;
    while (strcmp(modes[mode].name, v->own.mode) != 0)
        mode++;
    const bool wanted = asked->script && modes[mode].needs_function && (!made || asked->name);
    if (wanted && (!cli_script_fits(asked->script) || !check_function(v)))
        return CLI_USAGE;
    if (wanted && asked->name && !makes_no_run(v))
        code = cli_script_open(&script, v->common.program, asked->script, asked->name);
    job_values job = {v, script.function};
    job.function.dataset = data->n_data ? data->data[0] : NULL;
    job.function.batch_size = batch_of(v);
    job.function.strict = data->strict;
    cli_config_inputs(&job.function, &v->common);
    if (code == CLI_DONE)
        code = cli_model_file_run(cli, path, modes[mode].job, &v->origin, &job);
    cli_script_close(&script);
    return code;
}

const cli_command cli_cmd_quant = {
    .name = "quant",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .brief = "quantize a model",
    .notes =
        "Calibrates with the data, chooses scales, and writes an ONNX file with QuantizeLinear "
        "and DequantizeLinear nodes (or in another form, see --format). Without data the inputs "
        "are random numbers: the file "
        "is good for measuring speed only.",
    .parts = QUANT_PARTS,
    .makes_files = true,
    .values_size = sizeof(quant_values),
    .check = quant_check,
    .run = quant_run,
    .section = "quant",
};
