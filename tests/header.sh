#!/bin/sh
# header.sh c11|c17|c++17: each public header compiles alone, without a warning.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
case $1 in
    c++*) compiler=${CXX:-c++} language=c++ ;;
    *) compiler=${CC:-cc} language=c ;;
esac
command -v "$compiler" >/dev/null || { echo "skipped: no compiler named $compiler"; exit 77; }
for header in quench.h quench/quantize.h quench/jobs.h quench/backend.h quench/options.h; do
    "$compiler" -std="$1" -x "$language" -Wall -Wextra -pedantic-errors -Werror -fsyntax-only - <<END
#include "$root/include/$header"
#include "$root/include/quench.h"
qn_quantize_options quantize = QN_QUANTIZE_OPTIONS_INIT;
qn_strategies_options strategies = QN_STRATEGIES_OPTIONS_INIT;
int main(void) { return 0; }
END
done
