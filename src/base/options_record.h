/* Options told in what was made with them. A row of a table with `.result` says under which key;
 * what is zero, NULL or an empty list is not told. */
#ifndef QN_BASE_OPTIONS_RECORD_H
#define QN_BASE_OPTIONS_RECORD_H

#include "base/json.h"
#include "base/options.h"
#include "base/text.h"

/* The i-th row of the table with a key; NULL past the last. Rows of parts are not looked at. */
const qn_option *qn_options_recorded(const qn_option_table *table, size_t i);
/* The options as members of the object, with lists also where they are empty, so that people see
 * where one may write. False when memory is short. */
bool qn_options_put(qn_json *object, qn_context *ctx, const qn_option_table *table,
                    const void *options);
/* Members that are there, into a struct that has its standards; lists lie in the arena, texts in
 * the document. Fails, with the place, where a value is none that may be. */
QN_MUST_CHECK qn_status qn_options_read(void *options, qn_arena *arena,
                                        const qn_option_table *table, const qn_json_place *object);
/* Adds the row's value as people read it; false, with nothing added, where it is not told. */
bool qn_options_describe(qn_text *text, const qn_option *row, const void *options);

#endif
