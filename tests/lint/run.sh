#!/bin/sh
# run.sh BUILD-FOLDER: all lints, each named with its verdict.
cd "$(dirname "$0")/../.." || exit 1
rc=0
lint() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then
        echo "lint $name: ok"
    else
        echo "lint $name: FAILED"
        rc=1
    fi
}
lint rooms python3 tests/lint/rooms.py
lint symbols tests/lint/symbols.sh "$1/libquench.so" "$1/libquench_static.a"
lint params python3 tests/lint/params.py
lint types python3 tests/lint/types.py
lint comments python3 tests/lint/comments.py
lint fields python3 tests/lint/fields.py
lint options python3 tests/lint/options.py
lint format tests/lint/format.sh
lint words tests/lint/words.sh
lint selftest tests/lint/selftest.sh
exit $rc
