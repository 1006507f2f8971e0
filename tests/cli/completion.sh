#!/bin/sh
# completion.sh SHELL: the shell reads the completions that quench writes for it and offers what the tables
# say: words where a word is wanted, files only where a file is. Skipped without the shell.
set -eu
command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 77; }
page=$(mktemp)
trap 'rm -f "$page"' EXIT
"$QUENCH" help --completion "$1" >"$page"
[ -s "$page" ]
"$1" -n "$page"

offers() { # the words before the cursor; what is offered there, one a line
    case $shell in
        bash) bash -c '. "$0"; COMP_WORDS=("$@" ""); COMP_CWORD=$#; _quench; printf "%s\n" "${COMPREPLY[@]}"' \
            "$page" "$@" ;;
        fish) fish -c 'source $argv[1]; complete -C "$argv[2..] "' "$page" "$@" ;;
        # _arguments itself needs a terminal: its table is shown instead, as it gets it.
        zsh) zsh -c 'functions[_arguments]="print -rl -- \"\$@\""; functions[_describe]="print -rl -- \$commands"
            page=$1; shift; words=("$@" ""); CURRENT=$#words; set --; . $page' zsh "$page" "$@" ;;
    esac
}
shell=$1
wants() { # PATTERN WORDS...: a line that is offered; "no PATTERN": none is
    pattern=$1 absent=
    case $pattern in "no "*) pattern=${pattern#no } absent=yes ;; esac
    shift
    if offers "$@" | grep -q -e "$pattern"; then found=yes; else found=; fi
    [ "$found" != "$absent" ] || { echo "$shell, '$*': '$pattern' expected: ${absent:+not }offered"; exit 1; }
}
wants '^quant' quench
wants 'no ^CMakeLists' quench
wants 'passes' quench help
wants 'calibrate' quench help
wants 'no [:_]files' quench help
case $shell in
    zsh)
        wants '^--target=.*(.*quench.*)$' quench quant
        wants '^-qm\[.*(.*percentile.*)$' quench quant
        wants '^\*--input=.*:_files$' quench infer
        wants '^--threads=.*:$' quench infer
        wants ':_files$' quench inspect
        wants 'no :_files$' quench version ;;
    *)
        wants '^quench' quench quant --target
        wants '^percentile' quench quant -qm
        wants "^percentile" quench quant --quant-mode
        wants 'no ^CMakeLists' quench quant -qm
        wants '^CMakeLists.txt' quench inspect
        wants '^CMakeLists.txt' quench quant -m
        wants 'no ^CMakeLists' quench infer --threads
        wants 'no ^CMakeLists' quench help
        wants 'no ^CMakeLists' quench version ;;
esac
[ "$shell" != bash ] || wants '^quench' quench quant --target =
