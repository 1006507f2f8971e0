#!/bin/sh
# header.sh c11|c17|c++17: the public header compiles alone, without a warning.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
case $1 in
    c++*) compiler=${CXX:-c++} language=c++ ;;
    *) compiler=${CC:-cc} language=c ;;
esac
command -v "$compiler" >/dev/null || { echo "skipped: no compiler named $compiler"; exit 77; }
"$compiler" -std="$1" -x "$language" -Wall -Wextra -pedantic-errors -Werror -fsyntax-only - <<END
#include "$root/include/quench.h"
int main(void) { return 0; }
END
