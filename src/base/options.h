/* Options as the tables of include/quench/options declare them: read from structs of any version,
 * checked, set and shown by name. */
#ifndef QN_BASE_OPTIONS_H
#define QN_BASE_OPTIONS_H

#include "base/base.h"

/* The tables, one for each struct of options. They are made in api/options.c, since words that
 * options may be are those of many rooms. */
#define QN_OPTION_TABLE_OF(table, type) extern const qn_option_table type##_table;
QN_OPTION_TABLES(QN_OPTION_TABLE_OF)

/* *out (a struct of this version) from what a program gave, NULL for all standards: every public
 * call that takes options begins with this. Fails where a number or a text is none that may be, or
 * where two options exclude each other. */
QN_MUST_CHECK qn_status qn_options_take(void *out, qn_context *ctx, const qn_option_table *table,
                                        const void *given);
/* `const type name` and what was given in it; for functions that return qn_status. */
#define QN_TAKE_OPTIONS(type, name, ctx, given)                                                    \
    type name;                                                                                     \
    QN_TRY(qn_options_take(&(name), (ctx), &type##_table, (given)))

QN_MUST_CHECK qn_status qn_options_set(qn_context *ctx, const qn_option_table *table, void *options,
                                       const char *name, const char *text);
QN_MUST_CHECK qn_status qn_options_get(char **out, qn_context *ctx, const qn_option_table *table,
                                       const void *options, const char *name);
/* A row, the table that it stands in, and where its field lies in a struct of the outermost one. */
typedef struct qn_option_place {
    const qn_option *row;
    const qn_option_table *table;
    size_t offset;
} qn_option_place;
/* The first row with this name, or "part.name"; those of parts come last. False: there is none. */
bool qn_options_find(qn_option_place *out, const qn_option_table *table, const char *name);
/* Whether what the field has may be. */
QN_MUST_CHECK qn_status qn_options_check_field(qn_context *ctx, const qn_option_place *at,
                                               const void *options);
/* Whether the field has another value than its standard. */
bool qn_options_is_given(const qn_option_table *table, const void *options, const char *name);

#endif
