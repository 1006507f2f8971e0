#!/bin/sh
# verify_quant.sh MODEL [OPTION...]: a float model quantized by quench (with these options, for $CHIP) gives the same integers
# from the fast kernels as from the reference, on every instruction set (or $ISAS) and number of threads; its scale file
# gives the same file again.
set -eu
data=${QUENCH_DATA:-../shared/data}
norm=unit,mean=.4914/.4822/.4465,std=.2023/.1994/.2010
name=$1
shift
case $name in
resnet50) model=resnet50_keras_bf16w samples=imagenet steps=imagenet-caffe ;;
squeezenet) model=squeezenet_v1.1 samples=imagenet steps=crop=224,bgr,mean=104/117/123 ;;
yolov8n) model=yolov8n samples=coco/images steps=yolo ;;
yolox_nano) model=yolox_nano samples=coco/images steps=yolox ;;
mobilenet_v1) model=mobilenet_v1_1.0_224 samples=imagenet steps=imagenet-tf ;;
resnet20) model=resnet20_cifar10 samples=cifar10 steps=unit,mean=.485/.456/.406,std=.229/.224/.225 ;;
se_mobilenet) model=tiny_se_mobilenet_cifar10 samples=cifar10 steps=$norm ;;
vit) model=vit_cifar10 samples=cifar10 steps=$norm ;;
pp_ocr) model=en_PP-OCRv4_rec samples=ocr/images steps=ppocr ;;
*)
    echo "verify_quant.sh: no case for '$name'"
    exit 2
    ;;
esac
file=$data/onnx/$model.onnx
[ -f "$file" ] || [ -f "$file.xz" ] || { echo "skipped: no $file (QUENCH_DATA names the folder)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ ! -f "$file" ]; then
    command -v xz >/dev/null || { echo "skipped: no xz to unpack $file.xz"; exit 77; }
    xz -dc "$file.xz" >"$folder/$model.onnx"
    file=$folder/$model.onnx
fi
samples=$data/$samples
if [ -f "$samples/test_first4000.bin.xz" ]; then
    command -v xz >/dev/null || { echo "skipped: no xz to unpack $samples"; exit 77; }
    xz -dc "$samples/test_first4000.bin.xz" >"$folder/test.bin"
    samples=$folder/test.bin
fi
"$QUENCH" ${CHIP:+--chip "$CHIP"} quant -m "$file" -d "$samples" --preprocess "$steps" -i 4 -gsj --save-dir "$folder" "$@" >"$folder/report"
"$QUENCH" ${CHIP:+--chip "$CHIP"} quant -q -m "$file" -lsj "$folder/${model}_scales.json" --save-dir "$folder/again" >/dev/null
cmp "$folder/${model}_quantize.onnx" "$folder/again/${model}_quantize.onnx"
# One sample: every kernel makes thousands of numbers of it, with all values that integers of 8 bits have, and the reference
# takes seconds for each. Instrumented code is slow, and one way tells whether it reports something.
all_isas=${ISAS:-SSE41 AVX2 AVX512_CORE AVX512_CORE_VNNI}
[ -z "${QUENCH_SANITIZED:-}" ] || all_isas=AVX512_CORE_VNNI
for isa in $all_isas; do
    result=$(ONEDNN_MAX_CPU_ISA=$isa "$QUENCH" verify -q "$folder/${model}_quantize.onnx" -d "$samples" \
        --preprocess "$steps" --first 4 --samples 1 --threads 2)
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
