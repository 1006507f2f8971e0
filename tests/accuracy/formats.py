"""formats.py MODEL [OPTION...]: a model quantized by quench (with these options), written in its three formats. All
are valid ONNX; "qdq" and "qoperator" give the same numbers to the last bit in quench, "fake" gives them but for
sums in float; ONNX Runtime loads all three, and its results lie as near as they do to quench's own. The bounds between
formats are what independent errors may do, so that they hold on every CPU."""

import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import known
import models
import runtime

SAMPLES = 16
FORMATS = ("qdq", "qoperator", "fake")
# Sums in float round a few numbers to the neighbouring integer, and what follows carries that on: at worst the errors
# of two formats have nothing in common. Then the square of what is between the formats is the sum of the squares of what is
# between each and float, whatever the errors look like; what they have in common brings them nearer. No bound on what
# is between two formats is smaller on all CPUs: which numbers lie at the edge between two integers depends on the scales,
# and the last digits of these on the CPU that chose them.
UNRELATED = 1.0
# Neither format is farther from float than the other by more than WORSE of it. Where both round independently, chance
# says in every sample which of them is nearer: the mean over samples of the difference is then zero within a few
# times its own standard error, which the samples tell.
WORSE = 0.1
STANDARD_ERRORS = 3
# Models whose integers are ONNX Runtime's own, every one.
EXACT = {"resnet20"}
INTEGER = {"QuantizeLinear", "DequantizeLinear"}


def distances(a, b, real):
    """Of every sample, in units of the length of the float results."""
    rows = [values.reshape(len(real), -1).astype(np.float64) for values in (a, b, real)]
    return np.linalg.norm(rows[0] - rows[1], axis=1) / np.sqrt(np.square(rows[2]).sum(1).mean())


def root_mean_square(values):
    return np.sqrt(np.square(values).mean())


def compare(what, values, real, qdq):
    """What is wrong with the results of a format, beside those of quench's QDQ file."""
    own, other, between = distances(qdq, real, real), distances(values, real, real), distances(values, qdq, real)
    noise, more = root_mean_square(own), other - own
    most = UNRELATED * np.hypot(noise, root_mean_square(other))
    chance = STANDARD_ERRORS * more.std(ddof=1) / len(more) ** 0.5
    print(f"{what}: quantization changes {noise:.2g} of the result; {root_mean_square(between) / noise:.2g} of that from "
          f"qdq, at most {most / noise:.2g}; {more.mean() / own.mean():+.2g} farther from float, at most "
          f"{WORSE + chance / own.mean():.2g}")
    wrong = []
    if root_mean_square(between) > most:
        wrong.append(f"{what}: is as far from qdq as if its errors were another network's")
    if more.mean() > WORSE * own.mean() + chance:
        wrong.append(f"{what}: is farther from float than qdq in quench")
    return wrong


def check_file(file_format, path):
    """The format holds what it should."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    kinds = {node.op_type for node in model.graph.node}
    linear = sum(node.op_type.startswith(("QLinear", "QGemm")) for node in model.graph.node)
    print(f"{file_format}: opset {model.opset_import[0].version}, {len(model.graph.node)} nodes, "
          f"{linear} of integers, {os.path.getsize(path)} bytes")
    types = {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL}
    if file_format == "fake" and (kinds & INTEGER or linear or
                           {t.data_type for t in model.graph.initializer} - types):
        return ["fake: has operators or constants of integers"]
    if file_format == "qdq" and linear:
        return ["qdq: has operators of integers"]
    return []


def check_beside(name, path, data):
    """`verify` beside ONNX Runtime, through its C library."""
    folder = os.path.dirname(onnxruntime.__file__)
    library = glob.glob(os.path.join(folder, "capi", "libonnxruntime.so*"))
    if not library:
        print("verify --ort: this onnxruntime has no shared library")
        return []
    output = subprocess.run([models.QUENCH, "verify", "-q", path, "-d", data, "--ort", library[0],
                             "--samples", "1", "--json"], check=True, capture_output=True).stdout
    found = json.loads(output)["onnx_runtime"]
    equal, differ = found["integer_tensors_equal"], found["integer_tensors_differ"]
    makers = [row["operator"] for row in found["operators"] if row["make_it"]]
    print(f"verify --ort: {equal} tensors equal, {differ} differ, made by {makers}")
    wrong = []
    if found["version"] != onnxruntime.__version__ or not equal + differ:
        wrong.append("verify --ort: compared nothing")
    # Where the first layers stay float their sums are of another order: a number at the edge between two integers may
    # become the other one, by one step and seldom, and all integers behind it may differ.
    if not equal and "saturates" not in found:
        large = [row for row in found["differences_made"] if row["most_steps"] > 1 or row["share"] > 1e-3]
        if large or not makers:
            wrong.append(f"verify --ort: no tensor is equal, and float sums alone do not do that: {large}")
    if "saturates" in found and not runtime.SATURATES:
        wrong.append("verify --ort: nothing saturates on this CPU")
    if differ and "saturates" not in found and (name in EXACT or not makers):
        wrong.append("verify --ort: integers differ")
    return wrong


def run(name, options, folder):
    inputs, _ = known.CASES[name][0]()
    inputs = inputs[:SAMPLES]
    data, source = os.path.join(folder, "in.npy"), known.model_path(name)
    np.save(data, inputs)
    ours, theirs, wrong = {}, {}, []
    real = known.quench_outputs(source, inputs)
    made_with = ["-d", data, "-gsj", *options]  # the first one; its scales are those of all
    for file_format in FORMATS:
        where = os.path.join(folder, file_format)
        subprocess.run([models.QUENCH, "quant", "-q", "-m", source, "--format", file_format, "--save-dir", where, *made_with],
                       check=True, stdout=subprocess.DEVNULL)
        path = glob.glob(os.path.join(where, "*_quantize.onnx"))[0]
        made_with = ["-lsj", *glob.glob(os.path.join(folder, FORMATS[0], "*_scales.json"))]
        wrong += check_file(file_format, path)
        if file_format == "qdq" and not options:
            wrong += check_beside(name, path, data)
        ours[file_format] = known.quench_outputs(path, inputs)
        theirs[file_format] = known.runtime_outputs(path, inputs)
        for engine, results in (("quench", ours), ("ONNX Runtime", theirs)):
            wrong += compare(f"{file_format} in {engine}", results[file_format], real, ours["qdq"])
    if ours["qoperator"].tobytes() != ours["qdq"].tobytes():
        wrong.append("qoperator: differs from qdq")
    return wrong


def main():
    reason = models.missing()
    if reason:
        print("skipped:", reason)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        wrong = run(sys.argv[1], sys.argv[2:], folder)
    for line in wrong:
        print(f"{sys.argv[1]}: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
