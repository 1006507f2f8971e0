/* PyTorch: what its files look like, and which of them is read how. */
#include <stdio.h>
#include <string.h>

#include "import/detect.h"
#include "import/pytorch/aten.h"

/* A pickle of protocol 2 to 5, which is what torch.save wrote before it made archives. */
static bool is_pickle(const uint8_t *data, size_t size)
{
    return size > 2 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5;
}

static const char *detect(const qn_model_source *source)
{
    if (qn_detect_zipped(source, "serialized_exported_program.json") ||
        qn_detect_zipped(source, "archive_format"))
        return "an exported program of PyTorch (.pt2)";
    if (qn_detect_zipped(source, "constants.pkl"))
        return "a TorchScript file";
    if (qn_detect_zipped(source, "data.pkl"))
        return "weights of PyTorch";
    return is_pickle(source->map.data, source->map.size) ? "a pickle, as PyTorch makes them" : NULL;
}

/* ---- Weights alone --------------------------------------------------------------------------- */

/* Tensors in a dictionary, or in one that lies in it under a key of its own. */
static size_t count_tensors(const qn_torch_value *value, int depth)
{
    size_t count = 0;
    for (size_t i = 0; value->kind == QN_TORCH_DICT && depth < 3 && i + 1 < value->list->count;
         i += 2) {
        const qn_torch_value *item = &value->list->at[i + 1];
        count += item->kind == QN_TORCH_TENSOR ? 1 : count_tensors(item, depth + 1);
    }
    return count;
}

static qn_status fail_weights(qn_torch *t, qn_string data)
{
    qn_torch_value value;
    size_t tensors;
    QN_TRY(qn_torch_archive_saved(&value, &t->archive, t->b.model, data, "data.pkl", UINT64_MAX));
    tensors = count_tensors(&value, 0);
    return qn_fail(
        t->ctx, QN_E_UNSUPPORTED,
        "has weights (%zu tensors) and no layers: their architecture is missing. Ways: a "
        "script that makes the model (`framework` pytorch, its NAME for the file, `weights`, "
        "`script`), a file "
        "of torch.export.save (.pt2), or one of torch.jit.save (.pt)",
        tensors);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status read(qn_torch *t, qn_string data)
{
    if (!data.text)
        return qn_fail(t->ctx, QN_E_UNSUPPORTED,
                       "no such file; a model that a script registers under this name needs the "
                       "script (`script`)");
    if (!is_pickle((const uint8_t *)data.text, data.length) &&
        !qn_zip_is_archive((const uint8_t *)data.text, data.length))
        return qn_fail(t->ctx, QN_E_FORMAT, "not a file of PyTorch");
    if (!qn_zip_is_archive((const uint8_t *)data.text, data.length))
        return fail_weights(t, data);
    QN_TRY(qn_torch_archive_open(&t->archive, t->b.model, data, UINT64_MAX));
    if (qn_torch_archive_has(&t->archive, "serialized_exported_program.json") ||
        qn_torch_archive_has(&t->archive, "models/model.json"))
        return qn_torch_load_program(t);
    if (qn_torch_archive_has(&t->archive, "constants.pkl"))
        return qn_torch_load_script(t);
    if (qn_torch_archive_has(&t->archive, "data.pkl")) {
        qn_torch_archive_close(&t->archive);
        return fail_weights(t, data);
    }
    return qn_fail(t->ctx, QN_E_FORMAT, "the archive has no model");
}

/* One attempt; *asked has what it learnt of an input that it cannot go on without. The map goes
 * back to the source where it fails. */
static qn_status attempt(qn_model **out, qn_torch_guess *asked, qn_model_source *source,
                         const qn_torch_guess *guesses, size_t n_guesses)
{
    qn_torch t = {.ctx = source->ctx,
                  .options = source->options,
                  .hint = {.rank = -1},
                  .expected = {.rank = -1},
                  .guesses = guesses,
                  .n_guesses = n_guesses};
    const qn_string data = {(const char *)source->map.data, source->map.size};
    qn_status status;
    asked->name[0] = 0;
    QN_TRY_OR_DONE(qn_graph_builder_open(&t.b, source, "PyTorch"));
    t.arena = &t.b.model->arena;
    QN_TRY_OR_DONE(read(&t, data));
    *out = qn_graph_builder_take(&t.b);
done:
    if (status != QN_OK && t.unranked && strlen(t.unranked->name) < sizeof asked->name) {
        snprintf(asked->name, sizeof asked->name, "%s", t.unranked->name);
        asked->type = t.hint;
    }
    if (t.b.model && t.b.model->n_maps) {
        source->map = t.b.model->maps[0];
        t.b.model->n_maps = 0;
    }
    qn_torch_archive_close(&t.archive);
    qn_graph_builder_close(&t.b);
    return status;
}

/* TorchScript does not say what its inputs are. The first layer of each that needs to know tells;
 * nobody else does better than a batch of pictures. */
static qn_status load(qn_model **out, qn_model_source *source)
{
    qn_torch_guess guesses[QN_TORCH_INPUTS];
    char shape[128];
    size_t n = 0;
    *out = NULL;
    for (;;) {
        qn_torch_guess *asked = &guesses[n];
        const qn_status status = attempt(out, asked, source, guesses, n);
        if (status == QN_OK || !asked->name[0] || n + 1 == QN_TORCH_INPUTS)
            return status;
        if (asked->type.rank < 0)
            asked->type = (qn_type){.kind = QN_TYPE_TENSOR,
                                    .dtype = QN_FLOAT32,
                                    .rank = 4,
                                    .dims = {{-1, NULL}, {-1, NULL}, {-1, NULL}, {-1, NULL}}};
        for (size_t i = 0; i < n; i++) {
            if (strcmp(guesses[i].name, asked->name) == 0)
                return status;
        }
        qn_type_format(shape, sizeof shape, &asked->type);
        qn_log(source->ctx, QN_LOG_NOTE,
               "the file does not say what '%s' is: taken as %s; `load.shapes` says another "
               "shape",
               asked->name, shape);
        n++;
    }
}

const qn_importer qn_importer_pytorch = {.name = "pytorch",
                                         .title = "PyTorch",
                                         .takes = QN_IMPORT_WEIGHTS | QN_IMPORT_SHAPES,
                                         .detect = detect,
                                         .names = true,
                                         .load = load,
                                         .brief = "exported programs, TorchScript files, scripts",
                                         .operators = qn_aten_listing,
                                         .n_operators = QN_ATEN_COUNT};
