/* Options from a run configuration: a JSON file with a section for each command. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct cli_config {
    qn_context *ctx;
    qn_config *file;
    const char *chip, *default_chip;
    const char *path;
    /* "input-configs", JSON */
    const char *inputs;
    /* That values were split out of */
    char **texts;
    size_t n_texts;
};

static const cli_option config_options[] = {
    {.name = "run-config",
     .field = "configs",
     .shorts = "rc",
     .type = CLI_TEXT,
     .offset = 0,
     .value = "FILE",
     .help = "more options, as JSON: {\"quant\": {\"bit-width\": 8, ...}}; the command line wins"},
};
const cli_group cli_config_group = CLI_GROUP("from a file", config_options);

/* ---- Sections -------------------------------------------------------------------------------- */

static const char *const own_sections[] = {"quant", "compare", NULL};
static const char *const other_sections[] = {"compile", "run", "profiling", NULL};
/* Of the file itself; the last two are for the compiler that the file may be for, too. */
static const char *const own_keys[] = {"chip", "default-chip", "disable-compare",
                                       "disable-model-check", NULL};

static bool is_one_of(const char *const *words, const char *word)
{
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0)
            return true;
    }
    return false;
}

bool cli_is_vendors_option(const char *name)
{
    for (size_t i = 0; other_sections[i]; i++) {
        const size_t length = strlen(other_sections[i]);
        if (strncmp(name, other_sections[i], length) == 0 && name[length] == '.')
            return true;
    }
    return false;
}

static const char *own_section(size_t i)
{
    return own_sections[i];
}

static const char *own_key(size_t i)
{
    return own_keys[i];
}

static const char *own_block(size_t i)
{
    return i == 0 ? "input-configs" : NULL;
}

static bool unknown_name(const char *where, const char *what, const char *best)
{
    cli_error("%s: there is no such %s%s%s%s", where, what, best ? "; did you mean " : "",
              best ? best : "", best ? "?" : "");
    return false;
}

static bool check_sections(const qn_config *file, const char *path, bool told)
{
    const char *name;
    for (size_t i = 0; (name = qn_config_section(file, i)) != NULL; i++) {
        if (is_one_of(other_sections, name)) {
            if (!told)
                cli_note("%s: section \"%s\" is for the vendor's compiler and left out", path,
                         name);
        } else if (!is_one_of(own_sections, name)) {
            char where[512];
            snprintf(where, sizeof where, "%s: \"%s\"", path, name);
            return unknown_name(where, "section", cli_nearest_word(own_section, name));
        }
    }
    return true;
}

/* A key that the file itself has no use for as it stands there. */
static bool refuse_key(const qn_config_entry *entry, cli_word_fn *known)
{
    if (is_one_of(own_sections, entry->key) || is_one_of(other_sections, entry->key))
        cli_error("%s: a section is an object: \"%s\": {...}", entry->where, entry->key);
    else if (strcmp(entry->key, own_block(0)) == 0)
        cli_error("%s: a list of objects is expected, one per input", entry->where);
    else
        unknown_name(entry->where, "key", cli_nearest_word(known, entry->key));
    return false;
}

static bool take_chip(const char **chip, const qn_config_entry *entry)
{
    if (entry->count != 1 || !entry->values[0]) {
        cli_error("%s: the name of one chip is expected", entry->where);
        return false;
    }
    *chip = entry->values[0];
    return cli_check_chip(*chip, entry->where);
}

static bool take_own(struct cli_config *config)
{
    qn_config_entry entry;
    for (size_t i = 0; qn_config_entry_at(&entry, config->file, "", i); i++) {
        if (!is_one_of(own_keys, entry.key))
            return refuse_key(&entry, own_key);
        if (strcmp(entry.key, "chip") == 0 && !take_chip(&config->chip, &entry))
            return false;
        if (strcmp(entry.key, "default-chip") == 0 && !take_chip(&config->default_chip, &entry))
            return false;
    }
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* "0 0 0" as three values: so it stands where others write a list. */
static bool split_text(cli_list *out, struct cli_config *config, const char *text)
{
    char *copy = strdup(text);
    char **texts = realloc(config->texts, (config->n_texts + 1) * sizeof *texts);
    if (texts)
        config->texts = texts;
    if (!copy || !texts) {
        free(copy);
        cli_error("out of memory");
        return false;
    }
    config->texts[config->n_texts++] = copy;
    char *rest = NULL;
    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (!cli_list_push(out, word))
            return false;
    }
    return true;
}

static bool take_entry(void *values, const cli_command *command, const qn_config_entry *entry)
{
    struct cli_config *config = ((cli_common *)values)->config;
    const bool many = cli_takes_many(command, entry->key);
    cli_list texts = {.count = 0};
    bool good = true;
    for (size_t i = 0; good && i < entry->count; i++) {
        if (many && entry->values[i])
            good = split_text(&texts, config, entry->values[i]);
        else
            good = cli_list_push(&texts, entry->values[i]);
    }
    good = good && cli_set(values, command, entry->key, &texts, entry->where);
    cli_list_free(&texts);
    return good;
}

static bool take_section(void *values, const cli_command *command)
{
    const qn_config *file = ((cli_common *)values)->config->file;
    qn_config_entry entry;
    for (size_t i = 0; qn_config_entry_at(&entry, file, command->section, i); i++) {
        if (strcmp(entry.key, own_block(0)) == 0) {
            cli_error("%s: a list of objects is expected, one per input", entry.where);
            return false;
        }
        if (!take_entry(values, command, &entry))
            return false;
    }
    return true;
}

/* Blocks of JSON: of inputs, in the section or, as some write it, beside it. */
static bool take_blocks(struct cli_config *config, const char *section)
{
    qn_config_entry entry;
    for (size_t i = 0; qn_config_block_at(&entry, config->file, section, i); i++) {
        if (strcmp(entry.key, own_block(0)) != 0)
            return *section
                       ? unknown_name(entry.where, "key", cli_nearest_word(own_block, entry.key))
                       : refuse_key(&entry, own_block);
        config->inputs = entry.values[0];
    }
    return true;
}

/* ---- The door -------------------------------------------------------------------------------- */

static bool load(struct cli_config *config, const char *path)
{
    if (qn_context_create(&config->ctx, NULL) != QN_OK) {
        cli_error("out of memory");
        return false;
    }
    if (qn_config_load(&config->file, config->ctx, path) == QN_OK)
        return true;
    cli_error("%s", qn_context_error(config->ctx));
    return false;
}

bool cli_config_apply(void *values, const cli_command *command, const char *path)
{
    cli_common *common = values;
    common->config = calloc(1, sizeof *common->config);
    if (!common->config) {
        cli_error("out of memory");
        return false;
    }
    common->config->path = path;
    return load(common->config, path) &&
           check_sections(common->config->file, path, common->program->run) &&
           take_own(common->config) && take_blocks(common->config, "") &&
           take_blocks(common->config, command->section) && take_section(values, command);
}

void cli_config_inputs(qn_function *function, const cli_common *common)
{
    if (!common->config)
        return;
    const bool own = function->name && strcmp(function->name, "infer_default") == 0;
    if (common->config->inputs && !function->run && !own)
        cli_note("%s: \"input-configs\" has no effect here: it needs infer function infer_default",
                 common->config->path);
    function->configs = common->config->inputs;
    function->config_file = common->config->path;
}

bool cli_config_input(qn_config_entry *out, const cli_common *common, size_t i, const char *key)
{
    char section[64];
    snprintf(section, sizeof section, "%s[%zu]", own_block(0), i);
    for (size_t e = 0; common->config && common->config->inputs &&
                       qn_config_entry_at(out, common->config->file, section, e);
         e++) {
        if (strcmp(out->key, key) == 0)
            return true;
    }
    return false;
}

bool cli_config_blamed(const cli_common *common, const char *message)
{
    const size_t length = common->config ? strlen(common->config->path) : 0;
    return length && strncmp(message, common->config->path, length) == 0 && message[length] == ':';
}

bool cli_check_chip(const char *name, const char *where)
{
    char names[512] = "";
    size_t at = 0;
    qn_chip_info chip;
    if (qn_chip_find(&chip, name))
        return true;
    for (size_t i = 0; qn_chip_name(i) && at < sizeof names; i++)
        at +=
            (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", qn_chip_name(i));
    cli_error("%s: there is no chip '%s': it is one of %s, or the full name of one (TX5368AV200)",
              where, name, names);
    return false;
}

const char *cli_named_chip(const cli_common *common)
{
    if (common->program->chip)
        return common->program->chip;
    return common->config ? common->config->chip : NULL;
}

const char *cli_chip(const cli_common *common)
{
    const cli_program *program = common->program;
    const char *named = cli_named_chip(common);
    if (named || common->chipless)
        return named;
    if (program->default_chip)
        return program->default_chip;
    if (common->config && common->config->default_chip)
        return common->config->default_chip;
    return program->knight ? "TX5368AV200" : NULL;
}

void cli_config_free(struct cli_config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->n_texts; i++)
        free(config->texts[i]);
    free(config->texts);
    qn_config_free(config->file);
    qn_context_free(config->ctx);
    free(config);
}
