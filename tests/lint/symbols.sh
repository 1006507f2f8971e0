#!/bin/sh
# symbols.sh LIBRARY...: fails where a static or shared library defines an external symbol without
# the prefix qn_. Of a shared library only what it exports counts.
set -eu
rc=0
for library; do
    [ -r "$library" ] || { echo "$library: no such file"; rc=1; continue; }
    case $library in
        *.so | *.so.*) nm -D --defined-only --format=posix "$library" ;;
        *) nm -g --defined-only --format=posix "$library" ;;
    esac | awk -v library="$library" '
        NF >= 2 && $2 ~ /^[A-Z]$/ && $1 !~ /^qn_/ {
            print library ": external symbol without qn_: " $1; bad = 1
        }
        END { exit bad }' || rc=1
done
exit $rc
