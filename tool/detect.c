/* What boxes are found by, for those who measure detection. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option detect_options[] = {
    {.name = "anchors",
     .type = CLI_TEXT,
     .offset = offsetof(cli_detect_texts, anchors),
     .value = "W,H,...",
     .help = "pixels, those of the finest grid first; for outputs that are raw heads"},
    {.name = "names",
     .type = CLI_TEXT,
     .offset = offsetof(cli_detect_texts, names),
     .value = "FILE",
     .help = "names of the classes, one a line"},
};
const cli_group cli_detect_text_group = CLI_GROUP("for detection", detect_options);

/* ---- Texts to options ------------------------------------------------------------------------ */

static bool is_between(char c)
{
    return isspace((unsigned char)c) || strchr(",;/[]", c) != NULL;
}

/* Numbers with anything of ",;/[]" and blanks between them. */
static bool parse_anchors(cli_detection *d, const char *text)
{
    double *numbers = calloc(strlen(text) + 1, sizeof *numbers);
    d->options.anchors = d->numbers = numbers;
    if (!numbers)
        return false;
    while (*text) {
        char *end;
        if (is_between(*text)) {
            text++;
            continue;
        }
        numbers[d->options.n_anchors++] = strtod(text, &end);
        if (end == text || (*end && !is_between(*end))) {
            cli_error("--anchors: '%s' is not a number", text);
            return false;
        }
        text = end;
    }
    return true;
}

/* The whole file, terminated; NULL where it cannot be read. */
static char *read_text(const char *path)
{
    enum { MOST = 16 << 20 };
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(MOST + 1) : NULL;
    if (text)
        text[fread(text, 1, MOST, file)] = 0;
    if (file)
        fclose(file);
    return text;
}

/* Lines, without blanks at their ends; empty ones are passed over. */
static bool parse_names(cli_detection *d, const char *path)
{
    char *save = NULL;
    size_t room = 0;
    d->text = read_text(path);
    if (!d->text) {
        cli_error("--names: cannot read '%s'", path);
        return false;
    }
    for (char *line = strtok_r(d->text, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save)) {
        if (d->options.n_names == room) {
            room = 2 * room + 16;
            const char **more = realloc(d->names, room * sizeof *more);
            if (!more)
                return false;
            d->options.names = d->names = more;
        }
        d->names[d->options.n_names++] = line;
    }
    const long long classes = (long long)d->options.classes;
    if (!classes || !d->options.n_names || (long long)d->options.n_names == classes)
        return true;
    cli_error("--names: %s has %zu names, but --nc is %lld", path, d->options.n_names, classes);
    return false;
}

bool cli_detection_open(cli_detection *out, const qn_detect_options *options,
                        const cli_detect_texts *texts)
{
    *out = (cli_detection){.options = *options};
    return (!texts->anchors || parse_anchors(out, texts->anchors)) &&
           (!texts->names || parse_names(out, texts->names));
}

void cli_detection_close(cli_detection *d)
{
    free(d->numbers);
    free(d->names);
    free(d->text);
}
