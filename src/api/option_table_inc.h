/* One table of options: include with OWNER (the struct), ROWS (the macro of its rows) and, where it
 * has some, RULES defined; all are forgotten afterwards. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

static const OWNER JOIN(OWNER, _standard) = {QN_OPTIONS_VERSION, ROWS(QN_OPTION_STANDARD)};
static const qn_option JOIN(OWNER, _rows)[] = {ROWS(ROW)};
#ifdef RULES
static const qn_option_rule JOIN(OWNER, _rules)[] = {RULES(RULE)};
#endif
const qn_option_table JOIN(OWNER, _table) = {
    .name = TEXT_OF(OWNER),
    .size = sizeof(OWNER),
    .standard = &JOIN(OWNER, _standard),
    .rows = JOIN(OWNER, _rows),
    .n_rows = QN_COUNT_OF(JOIN(OWNER, _rows)),
#ifdef RULES
    .rules = JOIN(OWNER, _rules),
    .n_rules = QN_COUNT_OF(JOIN(OWNER, _rules)),
#endif
};

#undef JOIN_
#undef JOIN
#undef OWNER
#undef ROWS
#undef RULES
