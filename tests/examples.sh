#!/bin/sh
# examples.sh FOLDER: the programs of examples/, built into FOLDER, do what their first comment says and tell
# what is wrong; three of them stay below thirty lines, and the README shows one as it is.
set -eu
folder=$1
model=examples/fashion.onnx
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
fail() { echo "$*"; exit 1; }

says() { # PATTERN PROGRAM ARGUMENTS...: what it prints
    pattern=$1 program=$2
    shift 2
    "$folder/$program" "$@" >"$box/out" 2>&1 || fail "$program failed: $(cat "$box/out")"
    grep -q "$pattern" "$box/out" || fail "$program says: $(cat "$box/out")"
}
refuses() { # CODE PATTERN PROGRAM ARGUMENTS...: its exit code and message
    code=$1 pattern=$2 program=$3 got=0
    shift 3
    "$folder/$program" "$@" >"$box/out" 2>&1 || got=$?
    [ "$got" = "$code" ] || fail "$program gave exit code $got, not $code: $(cat "$box/out")"
    grep -q "^$program: $pattern" "$box/out" || fail "$program says: $(cat "$box/out")"
}

tests/cli/make-npy "$box/black.npy" '<f4' 1,1,28,28
tests/cli/make-npy "$box/many.npy" '<f4' 9,1,28,28 0.5
says '^class [0-9] with score' classify "$model" "$box/black.npy"
says '^ *logits ' named "$model" "image=$box/black.npy"
says 'fashion_quantize.onnx' quantize "$model" "$box/many.npy" "$box"
[ -s "$box/fashion_quantize.onnx" ] || fail "quantize wrote nothing"
says '^class [0-9] with score' classify "$box/fashion_quantize.onnx" "$box/black.npy"
printf '%s\n' 0 1 2 3 4 5 6 7 8 >"$box/labels"
says '"loss"' train "$model" "$box/many.npy" "$box/labels" "$box/trained"
[ -s "$box/trained/fashion_trained.onnx" ] || fail "train wrote nothing"
says '^four threads ran one plan' threads "$model"

for program in classify named quantize threads train; do
    refuses 2 'usage: ' "$program"
done
refuses 1 'none.onnx: ' classify none.onnx "$box/black.npy"
refuses 1 'none.npy: ' classify "$model" none.npy
refuses 1 'none.onnx: ' named none.onnx
refuses 1 'none.npy: ' quantize "$model" none.npy "$box"
refuses 1 'the model has 2 inputs' threads tests/cli/add.onnx

for program in classify named quantize; do
    lines=$(wc -l <"examples/$program.c")
    [ "$lines" -lt 30 ] || fail "examples/$program.c has $lines lines: the README promises less than 30"
done
# Blank lines apart: in the README they end the indentation.
sed -n '/^## From your own program/,/^    }/s/^    //p' README.md >"$box/readme"
grep . examples/classify.c | diff - "$box/readme" || fail "README.md does not show examples/classify.c"
echo "the examples do what they say"
