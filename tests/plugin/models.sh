#!/bin/sh
# models.sh MODEL float|int8 PLUGIN: the model gives the same bytes from the plug-in, whose memory is inverted, as from
# the reference kernels.
set -eu
data=${QUENCH_DATA:-../shared/data}
kind=$2
case $1 in
resnet50) model=resnet50_keras_bf16w samples=imagenet steps=imagenet-caffe ;;
yolov8n) model=yolov8n samples=coco/images steps=yolo ;;
*)
    echo "models.sh: no case for '$1'"
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
if [ "$kind" = int8 ]; then
    "$QUENCH" quant -q -m "$file" -d "$data/$samples" --preprocess "$steps" -i 2 --save-dir "$folder" >"$folder/report"
    file=$folder/${model}_quantize.onnx
fi
export QUENCH_PLUGINS=$3
for backend in ref inverted; do
    "$QUENCH" infer -v "$file" --backend $backend -d "$data/$samples" --preprocess "$steps" --first 1 \
        --samples 1 -o "$folder/$backend" >/dev/null 2>"$folder/log"
done
for output in "$folder"/ref/*; do
    cmp "$output" "$folder/inverted/${output##*/}"
done
# Nearly all of the work is the plug-in's.
grep -o 'backend inverted: .*' "$folder/log"
awk '/backend inverted: / { own = $(NF - 3); all = $(NF - 1) } END { exit !(own > 0.9 * all) }' "$folder/log" ||
    { echo "too much is not done by the plug-in"; exit 1; }
