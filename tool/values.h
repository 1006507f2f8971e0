/* Values of options: from texts to fields. */
#ifndef QN_CLI_VALUES_H
#define QN_CLI_VALUES_H

#include "cli.h"

bool cli_value_is_list(const cli_option *option);
/* A list of which each time that the option is given counts. */
bool cli_value_is_repeated(const cli_option *option);
/* Takes what the option's text says into the field; a flag has none. False, with a message, where
 * that is no value. */
bool cli_value_set(const cli_option *option, void *field, const char *text);
/* A new time that an option with several values is given. */
bool cli_value_begin(const cli_option *option, void *field);
/* Whether a further word belongs to the values: what is nearly one does, so that a slip is reported
 * and not taken for an argument. */
bool cli_value_goes_on(const cli_option *option, const char *text);
/* A word that can be no value: an option, unless it is a negative number. */
bool cli_value_is_option(const char *text);
/* The message for a text that is no number; returns false. */
bool cli_value_refuse(const cli_option *option, const char *text);
/* Whether the values are numbers, and integers. */
bool cli_value_is_number(const cli_option *option);
bool cli_value_is_whole(const cli_option *option);
/* What messages call it: as it was typed, with its dashes. */
const char *cli_value_called(char out[CLI_TYPED_SIZE], const cli_option *option);
void cli_value_free(const cli_option *option, void *field);

#endif
