#!/bin/sh
# words.sh [FILE...]: fails where a committed text file contains something listed in words.txt.
set -eu
cd "$(dirname "$0")/../.."
table=tests/lint/words.txt
[ $# -gt 0 ] || set -- $(git ls-files --cached --others --exclude-standard |
    grep -v -e "^$table\$" -e '^tests/fuzz/corpus/' -e '^LICENSE$')
rc=0
tab=$(printf '\t')
while IFS=$tab read -r pattern reason; do
    case $pattern in '#'*) continue ;; esac
    if grep -InE -e "$pattern" /dev/null "$@"; then
        echo "  ^ $reason" >&2
        rc=1
    fi
done <"$table"
exit $rc
