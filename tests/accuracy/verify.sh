#!/bin/sh
# verify.sh MODEL: the fast kernels equal the reference, on every instruction set and number of threads.
set -eu
data=${QUENCH_DATA:-../shared/data}
model=$data/quantized/$1.onnx
[ -f "$model" ] || { echo "skipped: no $model (QUENCH_DATA names the folder)"; exit 77; }
for isa in SSE41 AVX2 AVX512_CORE AVX512_CORE_VNNI; do
    result=$(ONEDNN_MAX_CPU_ISA=$isa "$QUENCH" verify "$model" --threads 2)
    echo "$isa: ${result%%
*}"
    case $result in
    *"also with threads"*) ;;
    *)
        echo "verify did not compare with one thread too"
        exit 1
        ;;
    esac
done
