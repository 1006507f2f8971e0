#!/bin/sh
# completion.sh SHELL: the shell reads the completions that quench writes for it. Skipped without it.
set -eu
command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 77; }
page=$(mktemp)
trap 'rm -f "$page"' EXIT
"$QUENCH" help --completion "$1" >"$page"
[ -s "$page" ]
"$1" -n "$page"
