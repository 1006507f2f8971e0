"""Chips: models whose layers other targets leave in float are integers from input to output, what is not is said, and
defaults are what the manual says."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

QUENCH = os.environ["QUENCH"]
CHIP = "TX5368AV200"
random = np.random.RandomState(0)


def model(path, nodes, ins, outs, constants):
    """nodes: (operator, inputs, output, attributes)"""
    made = [helper.make_node(op, reads, [writes], name=f"n{i}_{op}", **attributes)
            for i, (op, reads, writes, attributes) in enumerate(nodes)]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in side.items()]
            for side in (ins, outs)]
    kept = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(made, "g", *ends, kept)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    for name, shape in ins.items():
        np.save(path.replace(".onnx", f".{name}.npy"), random.randn(8, *shape).astype(np.float32))


def weights(*shape):
    return (random.randn(*shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)


def make_models():
    """A detection head: few weights behind all others, scores beside boxes, and Concats at the end."""
    model("head.onnx",
          [("Conv", ["x", "w1"], "c1", {"pads": [1] * 4}), ("Relu", ["c1"], "r1", {}),
           ("Conv", ["r1", "w2"], "scores", {}), ("Sigmoid", ["scores"], "p", {}),
           ("Conv", ["r1", "w3"], "b", {}), ("Softmax", ["b"], "s", {"axis": 1}), ("Conv", ["s", "w4"], "e", {}),
           ("Mul", ["e", "hundred"], "boxes", {}), ("Concat", ["boxes", "p"], "out", {"axis": 1})],
          {"x": [1, 3, 8, 8]}, {"out": [1, 4, 8, 8]},
          {"w1": weights(8, 3, 3, 3), "w2": weights(3, 8, 1, 1), "w3": weights(8, 8, 1, 1),
           "w4": np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1), "hundred": np.float32(100)})
    model("first.onnx",
          [("Sigmoid", ["x"], "a", {}), ("Pow", ["a", "two"], "q", {}), ("MatMul", ["q", "w"], "m", {}),
           ("LayerNormalization", ["m", "g"], "n", {}), ("Softmax", ["n"], "y", {})],
          {"x": [4, 16]}, {"y": [4, 16]},
          {"two": np.int64(2), "w": weights(16, 16), "g": np.ones(16, np.float32)})
    model("software.onnx",
          [("MatMul", ["x", "w"], "m", {}), ("CumSum", ["m", "axis"], "c", {}), ("MatMul", ["c", "w2"], "y", {})],
          {"x": [4, 16]}, {"y": [4, 4]}, {"w": weights(16, 16), "w2": weights(16, 4), "axis": np.int64(1)})
    model("gru.onnx",
          [("GRU", ["x", "w", "r"], "h", {"hidden_size": 8}), ("Squeeze", ["h", "one"], "s", {}),
           ("MatMul", ["s", "m"], "y", {})],
          {"x": [6, 1, 4]}, {"y": [6, 1, 5]},
          {"w": weights(1, 24, 4), "r": weights(1, 24, 8), "one": np.array([1]), "m": weights(8, 5)})


def quant(name, *options, code=0, chip=CHIP):
    """The report, and what was said on stderr."""
    done = subprocess.run([QUENCH, "--chip", chip, "quant", "--json", f"{name}.onnx", "-d", f"{name}.x.npy", *options,
                           "--save-dir", name], capture_output=True, text=True)
    assert done.returncode == code, (name, options, done)
    return json.loads(done.stdout or "{}"), done.stderr


def floats(report):
    return [row["operator"] for row in report["left_in_float"]]


def output_of(path, samples):
    subprocess.run([QUENCH, "infer", path, "-d", samples, "--output-dir", "o"], check=True, capture_output=True)
    (name,) = os.listdir("o")
    values = np.load(os.path.join("o", name))
    os.remove(os.path.join("o", name))
    return values


def check_integers():
    """No rule that serves speed or accuracy elsewhere leaves a layer of a chip in float."""
    for name in ("head", "first"):
        for bits in ([], ["-b", "8"], ["-b", "16"], ["-b", "8", "-qm", "min_max"]):
            report, notes = quant(name, "-i", "8", *bits)
            assert not floats(report), (name, bits, report["left_in_float"])
            assert report["integer_nodes"] == report["nodes"], report
            assert "software" not in notes, notes
            (row,) = report["output_scales"]
            integers = output_of(report["file"], f"{name}.x.npy")
            assert (integers == np.rint(integers)).all() and float(row["scale"]) != 1, (name, bits, row)
            real = output_of(f"{name}.onnx", f"{name}.x.npy")
            error = np.abs(integers * float(row["scale"]) - real).sum() / np.abs(real).sum()
            assert error < (0.02 if bits == ["-b", "16"] else 0.2), (name, bits, error)


def check_mix():
    """The template has every layer, and its entries take effect."""
    subprocess.run([QUENCH, "--chip", CHIP, "quant", "head.onnx", "-gt", "--save-dir", "t"], check=True,
                   capture_output=True)
    with open("t/head_mix.json", encoding="utf-8") as file:
        mix = json.load(file)
    assert {"n6_Conv", "n5_Softmax", "n3_Sigmoid", "n8_Concat"} <= set(mix), mix
    for entry in mix.values():
        entry["bitwidth"] = 16
    with open("mix.json", "w", encoding="utf-8") as file:
        json.dump(mix, file)
    report, notes = quant("head", "-mc", "mix.json", "-i", "8")
    assert not floats(report) and "no effect" not in notes, (report, notes)


def check_software():
    """What the chip cannot is named in one note; what is recurrent is no reason to fail."""
    report, notes = quant("software", "-i", "8")
    assert floats(report) == ["CumSum"] and notes.count("software") == 1 and "CumSum 'n1_CumSum'" in notes, notes
    quant("gru", "-i", "8")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_models()
        for check in [value for name, value in globals().items() if name.startswith("check_")]:
            check()
    return 0


if __name__ == "__main__":
    sys.exit(main())
