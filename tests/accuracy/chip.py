"""chip.py MODEL: what the default command makes of a float model for a chip (TX5368AV200). No layer is float, outputs are
integers in float tensors, and the accuracy is what stands in the table below."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import known
import models

CHIP = "TX5368AV200"
# Iterations, of one sample each: as many as the other targets are calibrated with.
ITERATIONS = {"yolov8n": 48, "yolox_nano": 48, "pp_ocr": 50, "vit": 100, "mobilenet_v1": 100, "squeezenet": 100}
# What has to be reached, or what may be lost beside float where it is a number of points.
LEAST = {"yolov8n": ("mAP50-95", 0.430), "yolox_nano": ("mAP50-95", 0.34), "pp_ocr": ("words", 222)}
LOST = {"vit": 1.5, "mobilenet_v1": 1.5, "squeezenet": 1.5}


def quantize(name, folder):
    data = models.calibration(name)
    if "--samples" in data:
        del data[data.index("--samples"):data.index("--samples") + 2]
    done = subprocess.run([models.QUENCH, "--chip", CHIP, "quant", "--json", "-m", models.path_of(name), *data, "-i",
                           str(ITERATIONS[name]), "--save-dir", folder], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def real_outputs(path, inputs, name):
    """The integers of the only output times its scale, which the file tells."""
    (scale,) = (float(p.value) for p in onnx.load(path).metadata_props if p.key.startswith("quench.output_scale."))
    integers = known.quench_outputs(path, inputs, *known.OPTIONS[name])
    assert np.array_equal(integers, np.rint(integers)), "the output is not in fixed point"
    return integers * np.float32(scale)


def check(name):
    data, judge, expected, _ = known.CASES[name]
    inputs, truth = data()
    with tempfile.TemporaryDirectory() as folder:
        report = quantize(name, folder)
        score = judge(real_outputs(report["file"], inputs, name), truth)
    print(", ".join(f"{key} {value:.4g}" for key, value in score.items()))
    wrong = [f"{row['operator']} '{row['node']}' is float: {row['why']}" for row in report["left_in_float"]]
    if report["integer_nodes"] < report["nodes"]:
        print(f"{report['integer_nodes']} of {report['nodes']} nodes are integers, the rest computes shapes")
    key, least = LEAST[name] if name in LEAST else ("top-1", expected["top-1"] - LOST[name])
    return wrong + ([f"{key} is {score[key]:.4g}, wanted {least:.4g}"] if score[key] < least else [])


def main():
    reason = models.missing()
    if reason:
        print("skipped:", reason)
        return 77
    wrong = check(sys.argv[1])
    for line in wrong:
        print(f"{sys.argv[1]}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
