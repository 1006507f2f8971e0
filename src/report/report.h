/* What a call found out, as a tree that reads as text for people and as JSON for programs.
 *
 * A report is filled without a check after every line: when memory runs short it remembers so, what
 * is added afterwards goes nowhere, and qn_report_finish says it once. */
#ifndef QN_REPORT_H
#define QN_REPORT_H

#include "base/base.h"
#include "base/text.h"

typedef enum qn_item_kind {
    /* Items with keys: a JSON object. */
    QN_ITEM_GROUP,
    /* Rows, which are groups with the same keys: a JSON array of objects. */
    QN_ITEM_TABLE,
    QN_ITEM_TEXT,
    QN_ITEM_INT,
    QN_ITEM_REAL,
    /* Two numbers: a JSON array. */
    QN_ITEM_RANGE,
    QN_ITEM_BOOL,
    /* A cell without a value: empty in text, missing in JSON. */
    QN_ITEM_NONE
} qn_item_kind;

/* The readers of a group or table; values are for all. */
typedef enum qn_audience {
    QN_FOR_ALL,
    /* Text and Markdown. */
    QN_FOR_PEOPLE,
    /* JSON. */
    QN_FOR_PROGRAMS
} qn_audience;

typedef struct qn_item qn_item;
struct qn_item {
    qn_report *report;
    qn_item_kind kind;
    qn_audience audience;
    /* The key of JSON, which text shows with blanks for underscores; NULL for the root and for
     * rows. */
    const char *key;
    /* The children of a group or table. */
    qn_item *first, *last;
    qn_item *next, *parent;
    const char *text;
    /* The value of an integer or a bool. */
    int64_t integer;
    /* The value of a real; a range goes from `real` to `end`. */
    double real, end;
    /* The decimals of a real in text. */
    int decimals;
};

struct qn_report {
    qn_context *ctx;
    qn_arena arena;
    /* The root, a group. */
    qn_item root;
    /* The item that is filled instead when memory is short. */
    qn_item spare;
    bool failed;
};

QN_MUST_CHECK qn_status qn_report_create(qn_report **out, qn_context *ctx);
/* Fails with QN_E_NOMEM where something could not be added. */
QN_MUST_CHECK qn_status qn_report_finish(const qn_report *report);

/* Add items. Keys must outlive the report; texts are copied. A NULL text stands for one that memory
 * was short for: the report has failed then, and qn_report_finish says so. */
qn_item *qn_item_group(qn_item *parent, const char *key);
qn_item *qn_item_table(qn_item *parent, const char *key);
qn_item *qn_item_row(qn_item *table);
void qn_item_text(qn_item *parent, const char *key, const char *text);
void qn_item_int(qn_item *parent, const char *key, int64_t value);
void qn_item_real(qn_item *parent, const char *key, double value, int decimals);
void qn_item_range(qn_item *parent, const char *key, double first, double last);
void qn_item_bool(qn_item *parent, const char *key, bool value);
void qn_item_none(qn_item *parent, const char *key);

/* ---- For the writers ------------------------------------------------------------------------- */

enum { QN_ITEM_TEXT_SIZE = 48 };
/* Whether the item is neither a group nor a table. */
bool qn_item_is_value(const qn_item *item);
/* The value as text for people; `room` is for numbers. */
const char *qn_item_format(char room[QN_ITEM_TEXT_SIZE], const qn_item *item);
/* The cells of a row, with those of groups in it; NULL past the last. */
const qn_item *qn_row_first(const qn_item *row);
const qn_item *qn_row_next(const qn_item *row, const qn_item *cell);
/* Appends a key with blanks for underscores. */
void qn_report_key(qn_text *out, const char *key);
/* Appends the title of a cell: its key, behind that of the group around it; and the title's
 * width. */
void qn_report_title(qn_text *out, const qn_item *cell);
size_t qn_report_title_width(const qn_item *cell);

#endif
