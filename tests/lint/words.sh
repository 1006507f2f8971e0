#!/bin/sh
# words.sh [FILE...]: fails where a committed text file contains something listed in words.txt.
set -eu
cd "$(dirname "$0")/../.."
table=tests/lint/words.txt
if [ $# = 0 ]; then
    files=$(git ls-files --cached --others --exclude-standard)
    files=$(echo "$files" | grep -v -e "^$table\$" -e '^tests/fuzz/corpus/' -e '^LICENSE$')
    # shellcheck disable=SC2086 # one word per file
    set -- $files
fi
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
