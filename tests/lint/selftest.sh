#!/bin/sh
# selftest.sh: every lint is fed one good and one bad sample; it must tell them apart.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
rc=0

expect() { # pass|fail WHAT COMMAND...
    wanted=$1 what=$2
    shift 2
    if "$@" >"$box/log" 2>&1; then got=pass; else got=fail; fi
    [ "$got" = "$wanted" ] && return
    echo "selftest: $what: expected $wanted, got $got"
    cat "$box/log"
    rc=1
}

# params: six are allowed, in prototypes, bodies and pointers to functions; a call may have more
printf 'int f(int a, int b, const char *c, int *d, int e, int (*g)(int, int));\nint x(void) { return y(1, 2, 3, 4, 5, 6, 7); }\n' \
    >"$box/p.c"
expect pass "params: six" python3 "$here/params.py" "$box/p.c"
for line in 'int f(int a, int b, const char *c, int *d, int e,\n    int g, int h);' \
    'static int f(int a, int b, int c, int d, int e, int g, const int *h)\n{\n}' \
    'int (*f)(int a, int b, int c, int d, int e, int g, int h);'; do
    # shellcheck disable=SC2059 # the line has its own newlines
    printf "$line\n" >"$box/p.c"
    expect fail "params: $line" python3 "$here/params.py" "$box/p.c"
done

# rooms: ir may not know ops, however the include is spelt; a room must have its row
mkdir -p "$box/src/ir" "$box/src/ops" "$box/src/base" "$box/include" "$box/tool"
touch "$box/include/quench.h" "$box/src/ops/ops.h" "$box/src/base/base.h"
printf '#include <stdio.h>\n#include "quench.h"\n#include "base/base.h"\n' >"$box/src/ir/a.c"
printf '#include "quench.h"\n' >"$box/tool/main.c"
expect pass "rooms: allowed includes" python3 "$here/rooms.py" "$box"
for line in '#include "ops/ops.h"' '#include "../ops/ops.h"' '#  include <ops/ops.h>'; do
    printf '%s\n' "$line" >"$box/src/ir/b.c"
    expect fail "rooms: $line in ir" python3 "$here/rooms.py" "$box"
done
rm "$box/src/ir/b.c"
mkdir "$box/docs"
printf '| `ir` | graphs | base ops |\n' >"$box/docs/architecture.md"
expect fail "rooms: another room in the map" python3 "$here/rooms.py" "$box"
printf '| `ir` | graphs | base |\n' >"$box/docs/architecture.md"
expect pass "rooms: the map as it is" python3 "$here/rooms.py" "$box"
printf '#include "../src/base/base.h"\n' >"$box/tool/main.c"
expect fail "rooms: private header in tool" python3 "$here/rooms.py" "$box"
rm "$box/tool/main.c"
mkdir "$box/src/attic" && touch "$box/src/attic/a.c"
expect fail "rooms: room without a row" python3 "$here/rooms.py" "$box"

# types: a name has one declaration, whatever kind of type it is; without a prefix it is private
types="$box/types"
mkdir -p "$types/src/ir" "$types/src/ops" "$types/tool"
printf 'typedef struct qn_a qn_a;\nstruct qn_a {\n    int x;\n};\ntypedef struct place {\n    int x;\n} place;\n' >"$types/src/ir/a.h"
printf 'typedef struct qn_a qn_a;\n/* struct qn_a { */\ntypedef struct place {\n    int y;\n} place;\n' >"$types/src/ops/b.c"
expect pass "types: one declaration" python3 "$here/types.py" "$types"
for line in 'struct qn_a {\n    int y;\n};' 'typedef enum qn_a { QN_X } qn_a;' 'typedef int qn_a;' 'typedef int qn_a(int x);'; do
    # shellcheck disable=SC2059 # the line has its own newlines
    printf "$line\n" >"$types/src/ops/b.c"
    expect fail "types: $line" python3 "$here/types.py" "$types"
done

# options: every name and field has one row, every table is listed and a group of the command, the library names fields
options="$box/options"
mkdir -p "$options/include/quench/options" "$options/src/api" "$options/tool"
row='#define QN_X_OPTIONS(ROW) ROW(INT, depth, 1, 0, .name = "deep", .shorts = "d", .help = "how deep")'
echo "$row" >"$options/include/quench/options/x.def"
echo 'TABLE(QN_X_OPTIONS, qn_x_options)' >"$options/include/quench/options.h"
echo '#define ROWS QN_X_OPTIONS' >"$options/src/api/options.c"
echo 'TABLE(cli_x_group, "of x", QN_X_OPTIONS, NO_RULES)' >"$options/tool/tables.c"
echo 'static const char text[] = "`depth` is too much";' >"$options/src/api/x.c"
expect pass "options: a row" python3 "$here/options.py" "$options"
for line in '{.name = "deep", .type = CLI_INT},' '{.name = "low", .field = "depth"},'; do
    echo "$line" >"$options/tool/x.c"
    expect fail "options: $line" python3 "$here/options.py" "$options"
done
rm "$options/tool/x.c"
for text in 'see --deep' 'give it (-d)'; do
    echo "static const char text[] = \"$text\";" >"$options/src/api/x.c"
    expect fail "options: $text" python3 "$here/options.py" "$options"
done
rm "$options/src/api/x.c"
echo >"$options/tool/tables.c"
expect fail "options: no group" python3 "$here/options.py" "$options"

# fields: 25 are allowed, inner ones counted; options and tables of kernels may have more; the list has no stale names
fields="$box/fields"
mkdir -p "$fields/src/ir" "$fields/tests/lint"
numbers() { seq -s ';' 1 "$1" | sed 's/[0-9][0-9]*/int a&/g'; }
printf 'struct qn_a { %s; int b, c[2]; int (*f)(int, int); };\n' "$(numbers 22)" >"$fields/src/ir/a.h"
expect pass "fields: 25" python3 "$here/fields.py" "$fields"
printf 'struct qn_a { %s; struct { int b, c; } s; union { int d; }; };\n' "$(numbers 23)" >"$fields/src/ir/b.h"
expect fail "fields: inner ones" python3 "$here/fields.py" "$fields"
printf 'typedef struct { %s; } qn_b;\n' "$(numbers 26)" >"$fields/src/ir/b.h"
expect fail "fields: 26" python3 "$here/fields.py" "$fields"
echo qn_b >"$fields/tests/lint/fields.txt"
expect pass "fields: in the list" python3 "$here/fields.py" "$fields"
printf 'typedef struct qn_b_kernels { %s; } qn_b_kernels;\n' "$(numbers 26)" >"$fields/src/ir/b.h"
expect fail "fields: a stale name" python3 "$here/fields.py" "$fields"
: >"$fields/tests/lint/fields.txt"
expect pass "fields: kernels" python3 "$here/fields.py" "$fields"

# transcripts: every line can be read, and says what comes out
transcript() { env QUENCH=/bin/true python3 "$here/../cli/transcript.py" "$box/t.txt"; }
printf '$ echo a\n> a\n' >"$box/t.txt"
expect pass "transcript" transcript
printf '$ echo a\n> *\n' >"$box/t.txt"
expect fail "transcript: matches anything" transcript
printf '$ true %0200d\n' 0 >"$box/t.txt"
expect fail "transcript: a long line" transcript

# comments: above fields, within 100 columns, one at the head of every source; --fix moves what stands beside
comments="$box/comments"
mkdir -p "$comments"
cat >"$comments/good.c" <<'EOT'
/* What it is. */
struct point {
    /* From the left. */
    int x;
    struct {
        /* The unit. */
        int unit;
    } of;
};
enum axis {
    /* To the right. */
    AXIS_X
};
static int next(int x)
{
    const int y[] = {1 /* one */, 2}; /* beside a statement */
    return x + y[0];                  /* the next */
}
EOT
expect pass "comments: good" python3 "$here/comments.py" "$comments/good.c"
long=$(printf '%0101d' 0)
for line in 'struct s {\n    int x; /* from the left */\n};' 'enum e {\n    A, /* one */\n    B\n};' \
    'struct s {\n    union {\n        int x; /* or */\n    } u;\n};' "/* $long */" "int x$long;" '/* Of a root. */' \
    '/* That writes it. */' '/* Done by no_such_file.c. */'; do
    # shellcheck disable=SC2059 # the line has its own newlines
    printf "/* What it is. */\n$line\n" >"$comments/bad.c"
    expect fail "comments: $line" python3 "$here/comments.py" "$comments/bad.c"
done
printf '#include <stdio.h>\n' >"$comments/bad.c"
expect fail "comments: no head" python3 "$here/comments.py" "$comments/bad.c"
printf '/* What it is. */\nstruct s {\n    int x; /* from the left,\n            * or not */\n};\n' >"$comments/fix.c"
printf '/* What it is. */\nstruct s {\n    /* From the left, or not */\n    int x;\n};\n' >"$comments/fixed.c"
expect pass "comments: fixed" python3 "$here/comments.py" --fix "$comments/fix.c"
expect pass "comments: as it should be" cmp "$comments/fix.c" "$comments/fixed.c"

# symbols
printf 'int qn_good(void) { return own; }\n' | sed '1i static int own;' >"$box/good.c"
printf 'int bad(void) { return 0; }\n' >"$box/bad.c"
for name in good bad; do
    cc -c -fPIC -o "$box/$name.o" "$box/$name.c"
    cc -shared -o "$box/$name.so" "$box/$name.o"
done
expect pass "symbols: object" "$here/symbols.sh" "$box/good.o"
expect pass "symbols: shared" "$here/symbols.sh" "$box/good.so"
expect fail "symbols: object" "$here/symbols.sh" "$box/bad.o"
expect fail "symbols: shared" "$here/symbols.sh" "$box/good.so" "$box/bad.so"
expect fail "symbols: no such file" "$here/symbols.sh" "$box/none.so"

# format
printf 'int qn_f(int a)\n{\n    return a;\n}\n' >"$box/good.c"
printf 'int qn_f( int a ) {\n  return a; }\n' >"$box/bad.c"
cp "$here/../../.clang-format" "$box"
expect pass "format" "$here/format.sh" "$box/good.c"
expect fail "format" "$here/format.sh" "$box/bad.c"

# words: the samples are put together here so that this file passes the lint itself
printf 'see /usr/share/doc and ${HOME}/work\n' >"$box/good.txt"
expect pass "words" "$here/words.sh" "$box/good.txt"
for word in "open /ho""me/me/model" "TO""DO: later" "pip --index""-url x" "<<<<""<<< HEAD"; do
    printf 'text\n%s\n' "$word" >"$box/bad.txt"
    expect fail "words: $word" "$here/words.sh" "$box/good.txt" "$box/bad.txt"
done

[ $rc = 0 ] && echo "lint selftest: all samples told apart"
exit $rc
