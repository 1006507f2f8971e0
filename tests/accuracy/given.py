"""given.py MODEL: a file that another tool quantized (QDQ or QOperator) is quantized again. Without data, the scales of its
activations must be the file's own, its weights nearly all the same integers, and the accuracy what the file has; also with
data, and for a chip, whose integers do not end at 0 where the file's do."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import known
import models

CHANGED = 0.1  # of the tensors of weights: those that use -128, which ours do not
# Of top-1 beside the file, whose float islands are integers now: 0.5, and the square root of the pictures on which both
# disagree (about six of 500), which of them is right there being chance.
POINTS = 1
RESULT = {"QLinearConv": 6, "QLinearAdd": 6, "QGemm": 7}  # inputs that are the scales of results
WEIGHTS = {"DequantizeLinear": 0, "QLinearConv": 3, "QGemm": 3}
CHIP_POINTS = 3  # beside the file, whose uint8 become seven bits and a sign


def tensors_of(model):
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            known[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return known


def scales_and_weights(path):
    model = onnx.load(path)
    known = tensors_of(model)
    scales = {n.input[0]: known[n.input[1]] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    scales.update({n.output[0].removesuffix("_quantized"): known[n.input[RESULT[n.op_type]]]
                   for n in model.graph.node if n.op_type in RESULT})
    stored = [n.input[WEIGHTS[n.op_type]] for n in model.graph.node if n.op_type in WEIGHTS]
    weights = {known[name].tobytes() for name in stored if name in known and known[name].ndim > 1}
    return scales, weights


def check_parameters(path, made):
    scales, weights = scales_and_weights(path)
    own_scales, own_weights = scales_and_weights(made)
    every = {scale.tobytes() for scale in scales.values()}  # a number that was moved has another name
    other = [name for name, scale in own_scales.items()
             if not (np.array_equal(scale, scales[name]) if name in scales else scale.tobytes() in every)]
    changed = len(own_weights - weights)
    print(f"{len(own_scales)} scales, {len(other)} not the file's; {changed} of {len(own_weights)} weights changed")
    wrong = [f"scale of '{name}' is not the file's" for name in other]
    return wrong + (["weights are other integers"] if changed > CHANGED * len(own_weights) else [])


def quantize(path, folder, *options, before=()):
    subprocess.run([models.QUENCH, *before, "quant", path, "--save-dir", folder, *options], check=True,
                   stdout=subprocess.DEVNULL)
    name = os.path.splitext(os.path.basename(path))[0]
    return os.path.join(folder, name + "_quantize.onnx")


def check_accuracy(name, path, folder):
    data, judge, _, _ = known.CASES[name]
    inputs, truth = data()
    judged = models.FEW if models.SANITIZED else 4000 if "cifar10" in name else 500
    samples = os.path.join(folder, "in.npy")
    np.save(samples, inputs[:16])
    made = {"the file": path, "without data": quantize(path, os.path.join(folder, "none")),
            "with data": quantize(path, os.path.join(folder, "data"), "-d", samples),
            "for a chip": quantize(path, os.path.join(folder, "chip"), "-d", samples, "-i", "16", "-od",
                                   before=("--chip", "TX5368AV200"))}
    scores = {what: judge(known.quench_outputs(p, inputs[-judged:], "--batch", "8"), truth[-judged:])["top-1"]
              for what, p in made.items()}
    print("top-1:", ", ".join(f"{what} {score:.2f}" for what, score in scores.items()))
    if models.SANITIZED:
        return []  # a few samples tell nothing of accuracy
    return [f"{what}: accuracy is lost" for what, score in scores.items()
            if score < scores["the file"] - (CHIP_POINTS if what == "for a chip" else POINTS)]


def main():
    reason = models.missing()
    if reason:
        print("skipped:", reason)
        return 77
    name = sys.argv[1]
    path = os.path.join(models.DATA, "quantized", name + ".onnx")
    with tempfile.TemporaryDirectory() as folder:
        made = quantize(path, folder)
        wrong = check_parameters(path, made) + check_accuracy(name, path, folder)
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
