#!/bin/sh
# format.sh [--fix] [FILE...]: fails where clang-format would change a file (default: all of ours).
# Versions of clang-format disagree, so only the one that .clang-format was written for counts.
set -eu
cd "$(dirname "$0")/../.."
fix=
[ "${1:-}" != --fix ] || { fix=yes; shift; }

for tool in clang-format-14 clang-format build/venv/bin/clang-format; do
    "$tool" --version 2>/dev/null | grep -q 'version 14\.' && break
    tool=
done
if [ -z "$tool" ]; then
    scripts/venv >&2
    tool=build/venv/bin/clang-format
fi
if [ $# = 0 ]; then
    files=$(git ls-files --cached --others --exclude-standard '*.c' '*.h')
    # shellcheck disable=SC2086 # one word per file
    set -- $files
fi
[ $# -gt 0 ] || exit 0
work=$(mktemp)
trap 'rm -f "$work"' EXIT
# From standard input under a name that ends in .c: clang-format takes some headers for Objective-C.
status=0
for file; do
    "$tool" --assume-filename="${file%.*}.c" < "$file" > "$work"
    cmp -s "$work" "$file" && continue
    if [ -n "$fix" ]; then
        cat "$work" > "$file"
    else
        echo "$file: clang-format would change it (tests/lint/format.sh --fix)"
        status=1
    fi
done
exit $status
