/* The folder that "-du" leaves: a folder for each side, and an index that names their files. */
#ifndef QN_DUMP_H
#define QN_DUMP_H

#include "compare/layer_comparison.h"

#define QN_DUMP_INDEX "index.json"
/* Folders, and members of a row of the index. */
extern const char *const qn_dump_sides[QN_SIDES];

#endif
