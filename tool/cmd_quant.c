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

static int threads_of(const quant_values *v)
{
    return v->subject.threads ? (int)v->subject.threads : default_threads();
}

static qn_quantize_options quantize_options(const quant_values *v, const qn_graph_options *graph)
{
    qn_quantize_options o = v->quantize;
    o.calibrate = cli_calibrate_options(&v->data, &v->subject.inputs, v->subject.seed, graph);
    o.calibrate.threads = threads_of(v);
    if (cli_chip(&v->common))
        o.target = cli_chip(&v->common);
    return o;
}

/* What --max-drop is measured on: the data of --eval-data, else those that are calibrated with. */
static qn_eval_options eval_options(const quant_values *v, const qn_graph_options *graph)
{
    qn_eval_options eval = QN_EVAL_OPTIONS_INIT;
    qn_data_options data = v->data;
    if (v->eval_data.count) {
        data.data = v->eval_data.at;
        data.n_data = v->eval_data.count;
        data.list = v->eval_list;
        data.first = data.samples = 0;
    }
    eval.plan.graph = *graph;
    eval.data = cli_data_options(&data, &eval.plan.graph);
    eval.data.labels = v->classes.labels;
    eval.inputs = v->subject.inputs.at;
    eval.n_inputs = v->subject.inputs.count;
    eval.class_offset = v->classes.offset;
    return eval;
}

static const char *save_dir(const quant_values *v)
{
    if (v->file.save_dir)
        return v->file.save_dir;
    return v->common.program->knight ? "/TS-KnightOutput/QuantOnnx" : "quench_out";
}

static size_t count_methods(void)
{
    size_t count = 0;
    while (qn_method_name(count))
        count++;
    return count;
}

/* The methods asked for; "all" are those of the Knight tool, which has no mean. */
static bool is_of_all(const char *name)
{
    return strcmp(name, "mean") != 0;
}

static size_t list_methods(const char **out, const quant_values *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->methods.count; i++) {
        const bool every = strcmp(v->methods.at[i], "all") == 0;
        for (size_t k = 0; k < (every ? count_methods() : 1); k++) {
            const char *name = every ? qn_method_name(k) : v->methods.at[i];
            bool known = every && !is_of_all(name);
            for (size_t n = 0; n < count; n++)
                known = known || strcmp(out[n], name) == 0;
            if (!known)
                out[count++] = name;
        }
    }
    return count;
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
                                const qn_quantize_file_options *file, const job_values *job)
{
    const quant_values *v = job->v;
    const size_t room = v->methods.count * count_methods() + v->iterations.count + 1;
    const char **methods = calloc(room, sizeof *methods);
    int64_t *iterations = calloc(room, sizeof *iterations);
    qn_strategies_options o = v->strategies;
    qn_status status = QN_E_NOMEM;
    if (methods && iterations) {
        o.file = *file;
        o.methods = methods;
        o.n_methods = list_methods(methods, v);
        o.iterations = iterations;
        for (size_t i = 0; i < v->iterations.count; i++)
            iterations[o.n_iterations++] = strtoll(v->iterations.at[i], NULL, 10);
        if (cli_chip(&v->common) && o.n_iterations == 0)
            iterations[o.n_iterations++] = 1;
        o.function = job->function;
        o.class_offset = v->classes.offset;
        o.run_mode = v->run.mode;
        o.steps = keeps_steps(v);
        o.dump = v->strategies.dump || strcmp(v->run.mode, "compare") == 0;
        status = qn_strategies_run(out, cli->ctx, model, &o);
    }
    free(methods);
    free(iterations);
    return status;
}

static qn_status make_template(qn_report **out, cli_work *cli, qn_model *model,
                               const qn_quantize_options *quantize, const quant_values *v)
{
    qn_mix_options o = v->mix;
    o.quantize = *quantize;
    o.quantize.method = v->methods.count ? v->methods.at[0] : NULL;
    o.save_dir = save_dir(v);
    return qn_mix_template(out, cli->ctx, model, &o);
}

static qn_status quant_with(qn_report **out, cli_work *cli, qn_model *model,
                            const qn_graph_options *graph, qn_quantize_options o,
                            const job_values *job)
{
    const quant_values *v = job->v;
    const qn_eval_options eval = eval_options(v, graph);
    qn_goal goal = v->goal;
    goal.eval = &eval;
    goal.if_labelled = !v->classes.labels && !v->eval_data.count;
    if (v->goal.max_drop < 100)
        o.goal = &goal;
    if (v->make_template)
        return make_template(out, cli, model, &o, v);
    if (v->list)
        return qn_quantize_list(out, cli->ctx, model, &o);
    qn_quantize_file_options file = v->file;
    file.quantize = o;
    file.save_dir = save_dir(v);
    file.batch = quant_file_batch(v, model);
    return run_strategies(out, cli, model, &file, job);
}

static qn_status quant(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const job_values *job = parsed;
    qn_quantize_options o = quantize_options(job->v, graph);
    char *given = quant_given(job->v);
    o.given = given;
    const qn_status status = given ? quant_with(out, cli, model, graph, o, job) : QN_E_NOMEM;
    free(given);
    return status;
}

static qn_status quant_edited(qn_report **out, cli_work *cli, qn_model *model,
                              const qn_graph_options *graph, const void *parsed)
{
    const job_values *job = parsed;
    qn_model *edited;
    qn_status status = quant_edit(&edited, cli, model, job->v);
    if (status == QN_OK)
        status = quant(out, cli, edited, graph, parsed);
    qn_model_free(edited);
    return status;
}

/* ---- Run modes ------------------------------------------------------------------------------- */

/* The model as it is: through the function, or with the data. */
static qn_status infer(qn_report **out, cli_work *cli, qn_model *model,
                       const qn_graph_options *graph, const void *parsed)
{
    const job_values *job = parsed;
    const quant_values *v = job->v;
    const int64_t iteration =
        v->iterations.count ? strtoll(v->iterations.at[v->iterations.count - 1], NULL, 10) : 0;
    if (job->function.name) {
        const qn_function_options o = {QN_OPTIONS_VERSION,
                                       .graph = *graph,
                                       .function = job->function,
                                       .iteration = iteration,
                                       .save_dir = save_dir(v),
                                       .threads = threads_of(v),
                                       .input_types = v->quantize.input_types,
                                       .n_input_types = v->quantize.n_input_types};
        return qn_function_run(out, cli->ctx, model, &o);
    }
    qn_eval_options eval = eval_options(v, graph);
    eval.data.samples = iteration ? iteration * v->batch : eval.data.samples;
    if (v->classes.labels)
        return qn_eval_run(out, cli->ctx, model, NULL, &eval);
    const qn_infer_options o = {QN_OPTIONS_VERSION,    .plan = eval.plan,
                                .inputs = eval.inputs, .n_inputs = eval.n_inputs,
                                .data = eval.data,     .seed = (uint64_t)v->subject.seed};
    if (!v->data.n_data && !v->subject.inputs.count)
        cli_note("no data were given: random numbers stand in for them");
    cli_note("no infer function and no labels: there is no accuracy to tell");
    return qn_infer_files(out, cli->ctx, model, &o);
}

static qn_status convert(qn_report **out, cli_work *cli, qn_model *model,
                         const qn_graph_options *graph, const void *parsed)
{
    const job_values *job = parsed;
    cli_origin_values from = job->v->graph.origin;
    const qn_convert_options o = {QN_OPTIONS_VERSION, .graph = *graph,
                                  .save = {.opset = job->v->file.opset}, .runtime = cli_runtime_run,
                                  .runtime_user = &from};
    return qn_convert_model(out, cli->ctx, model, save_dir(job->v), &o);
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
    const char *framework = v->graph.origin.framework;
    const char *ending = v->run.script ? strrchr(v->run.script, '.') : NULL;
    return framework && strcmp(framework, "pytorch") == 0 && path && access(path, F_OK) != 0 &&
           ending && strcmp(ending, ".py") == 0;
}

/* Nothing feeds the model. */
static bool makes_no_run(const quant_values *v)
{
    return v->make_template || v->list;
}

/* A script without the name of a function: to quantize, others feed the model; to infer, none
 * could. */
static bool check_function(const quant_values *v)
{
    if (v->run.function)
        return true;
    if (strcmp(v->run.mode, "infer") == 0) {
        cli_error("quant: --user-defined-script needs --infer-func: which function of %s is meant?",
                  v->run.script);
        return false;
    }
    if (!makes_no_run(v) && !v->common.program->run)
        cli_note("--user-defined-script has no effect here without --infer-func: %s",
                 v->data.n_data ? "the data of --data feed the model"
                                : "infer_auto feeds the model with random numbers");
    return true;
}

int quant_run(cli_work *cli, const void *parsed)
{
    const quant_values *v = parsed;
    const char *path = v->common.arguments.count ? v->common.arguments.at[0] : v->subject.model;
    cli_script script = {.function = {.name = v->run.function}};
    const bool made = is_made_by_script(v, path);
    if (made && !cli_script_model(&path, v->common.program, v->run.script, v->graph.origin.weights))
        return CLI_FAILED;
    int code = CLI_DONE;
    size_t mode = 0;
    while (strcmp(modes[mode].name, v->run.mode) != 0)
        mode++;
    const bool wanted = v->run.script && modes[mode].needs_function && (!made || v->run.function);
    if (wanted && (!cli_script_fits(v->run.script) || !check_function(v)))
        return CLI_USAGE;
    if (wanted && v->run.function && !makes_no_run(v))
        code = cli_script_open(&script, v->common.program, v->run.script, v->run.function);
    job_values job = {v, script.function};
    job.function.dataset = v->data.n_data ? v->data.data[0] : NULL;
    job.function.batch_size = v->batch;
    job.function.strict = v->data.strict;
    cli_config_inputs(&job.function, &v->common);
    if (code == CLI_DONE)
        code = cli_model_file_run(cli, path, modes[mode].job, &v->graph, &job);
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
    .values_size = sizeof(quant_values),
    .check = quant_check,
    .run = quant_run,
    .section = "quant",
};
