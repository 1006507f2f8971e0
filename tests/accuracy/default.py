"""default.py MODEL: infer_default by a run configuration alone: the float model's accuracy is what is known of it, and what
8 and 16 bits may lose of it is bounded."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import models  # noqa: E402

COCO = os.path.join(models.DATA, "coco")
IMAGENET = os.path.join(models.DATA, "imagenet")
BOXES = {"data_dir": os.path.join(COCO, "images"), "data_list": os.path.join(COCO, "val.txt"),
         "label_dir": os.path.join(COCO, "labels"), "is_yolo": True, "augment": True, "calculate_acc": True,
         "conf_thres": 0.01, "max_det": 100}
CLASSES = {"data_dir": IMAGENET, "label_dir": IMAGENET, "is_yolo": False, "crop": 224, "calculate_acc": True}

# configuration, forwards, batch, known accuracy (three digits) and how near, what each width may lose: of the measure on
# 64 pictures 0.007 are luck, either way (32 with 16 bits), which boxes that pass each other have.
CASES = {
    "yolov8n": ({**BOXES, "color_space": "RGB"}, 64, 1, 0.449, 0.005, {8: 0.02, 16: 0.01}),
    "yolox_nano": ({**BOXES, "color_space": "BGR", "mean": [0, 0, 0], "std": [1, 1, 1], "letterbox": "top-left"},
                   64, 1, 0.346, 0.005, {8: 0.02, 16: 0.01}),
    "mobilenet_v1": ({**CLASSES, "color_space": "RGB", "mean": [127.5] * 3, "std": [127.5] * 3, "class_offset": 1},
                     50, 10, 88.2, 0.001, {8: 1}),
    # The float pass of this one takes a minute: it is only judged.
    "resnet50": ({**CLASSES, "color_space": "BGR", "mean": [103.939, 116.779, 123.68], "std": [1, 1, 1]},
                 50, 10, 89.0, 0.001, {}),
}


def run(*words):
    done = subprocess.run([models.QUENCH, "quant", "-rc", "c.json", "--json", *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout)


def main(name):
    config, iteration, batch, known, near, widths = CASES[name]
    with open("c.json", "w", encoding="utf-8") as file:
        json.dump({"quant": {"model": models.path_of(name), "infer-func": "infer_default", "iteration": iteration,
                             "batch-size": batch, "user-defined-script": "infer_common.py",
                             "input-configs": [config]}}, file)
    wrong = []
    accuracy = None
    for bits, loss in widths.items():  # all samples with 8 bits, half of them with 16, which take longer
        options = ["-b", str(bits), "-i", str(iteration // 2)] if bits != 8 else []
        report = run("-s", f"out{bits}", *options)
        before, got = report["float_accuracy"], report["strategies"][0]["accuracy"]
        print(f"{name}: float {before}, {bits} bits {got}, may lose {loss}", flush=True)
        accuracy = before if bits == 8 else accuracy
        if got < before - loss:
            wrong.append(f"{bits} bits lose {before - got:.4f}")
    if accuracy is None:
        accuracy = run("-r", "infer")["accuracy"]
    print(f"{name}: float {accuracy}, known {known}")
    if abs(accuracy - known) > near:
        wrong.append(f"float accuracy {accuracy}, known is {known}")
    print("; ".join(wrong))
    return bool(wrong)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    code = main(sys.argv[1])
    os.chdir(HERE)
sys.exit(code)
