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


    model("moved.onnx",
          [("Conv", ["x", "w"], "c", {}), ("Relu", ["c"], "r", {}), ("Transpose", ["r"], "y", {"perm": [0, 2, 3, 1]})],
          {"x": [1, 3, 4, 4]}, {"y": [1, 4, 4, 5]}, {"w": weights(5, 3, 1, 1)})


def make_spread():
    """Channels that differ by 100, of which the network tells the difference: 8 bits are too few for it."""
    spread, join = np.zeros((2, 2, 1, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    spread[0, 0], spread[1, 1] = 100, 1
    join[:, 0], join[0, 1] = 1 / 100, -1
    model("spread.onnx",
          [("Conv", ["x", "spread"], "a", {}), ("Sigmoid", ["a"], "p", {}), ("Mul", ["a", "p"], "s", {}),
           ("Conv", ["s", "join"], "b", {}), ("Conv", ["b", "large"], "c", {"pads": [1] * 4}),
           ("Conv", ["c", "last"], "y", {})],
          {"x": [1, 2, 8, 8]}, {"y": [1, 8, 8, 8]},
          {"spread": spread, "join": join, "large": weights(32, 2, 3, 3), "last": weights(8, 32, 1, 1)})


def quant(name, *options, code=0, chip=CHIP):
    """The report, and what was said on stderr."""
    done = subprocess.run([QUENCH, "--chip", chip, "quant", "--json", f"{name}.onnx", *(() if "-uds" in options else ("-d", f"{name}.x.npy")), *options,
                           "--save-dir", name], capture_output=True, text=True, env={**os.environ, "QUENCH_PYTHON": sys.executable})
    assert done.returncode == code, (name, options, done)
    return json.loads(done.stdout or "{}"), done.stderr


def content(path):
    with open(path, "rb") as file:
        return file.read()


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


def check_compare():
    """Outputs are found by their names, also where an operator only moves the integers there, and fused layers by the
    operators and names that the model has."""
    quant("moved", "-i", "8", "-du")
    for layers in (["moved.onnx", "moved/moved_quantize.onnx", "-d", "moved.x.npy"], ["-qd", "moved"]):
        for option, wanted, found in (("-on", "y", "y"), ("-on", "c", "r"), ("-on", "n0_Conv", "r"),
                                      ("--op-type", "Conv", "r"), ("--op-type", "Relu", "r"),
                                      ("--op-type", "Transpose", "y")):
            done = subprocess.run([QUENCH, "compare", *layers, option, wanted, "--rmse", "--json"], check=True,
                                  capture_output=True)
            (row,) = json.loads(done.stdout)["layers"]
            assert row["tensor"] == found, (layers, option, wanted, row)
            assert row["operator"] == {"r": "Conv+Relu", "y": "Transpose"}[found] and row["rmse"] < .05, row


def check_software():
    """What the chip cannot is named in one note; what is recurrent is no reason to fail."""
    report, notes = quant("software", "-i", "8")
    assert floats(report) == ["CumSum"] and notes.count("software") == 1 and "CumSum 'n1_CumSum'" in notes, notes
    quant("gru", "-i", "8")


def check_steps():
    """A sequence that is open does not become one step without a word."""
    net = onnx.load("gru.onnx")
    for value in (*net.graph.input, *net.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "T"
    onnx.save(net, "open.onnx")
    os.symlink("gru.x.npy", "open.x.npy")
    report, notes = quant("open", "-i", "1")
    assert "open dimension 'T' is the steps of GRU" in notes and "--input-shape" in notes, notes
    report, notes = quant("open", "-i", "1", "--input-shape", "x:6,1,4")
    dims = onnx.load(report["file"]).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [6, 1, 4] and "steps of GRU" not in notes, (dims, notes)


def check_defaults():
    """8 bits with kl, unless that loses the outputs: then a note and the rows say what was done."""
    make_spread()
    script = "@onnx_infer_func.register('f')\ndef f(e):\n    for i in range(e.iteration):\n" \
             "        e.forward(np.load('%s.x.npy')[i])\n"
    for name, raised in (("head", True), ("spread", True), ("first", False)):
        with open("f.py", "w", encoding="utf-8") as file:
            file.write("import numpy as np\nfrom onnx_quantize_tool.common.register import onnx_infer_func\n"
                       + script % name)
        report, notes = quant(name, "-i", "8", "-uds", "f.py", "-if", "f")
        (row,) = report["strategies"]
        method = [p.value for p in onnx.load(report["file"]).metadata_props if p.key == "quench.method"]
        assert [row["quant_mode"]] == method and row["bits"] == ("8/16" if raised else "8"), (name, row, method)
        assert ("left too much noise" in notes) == ("mended" in report) == raised, (name, notes)
        assert not raised or ("nodes have 16 bits" in notes and f"ranges are by {method[0]}" in notes), notes
        assert raised or method == ["kl"], method
    report, notes = quant("spread", "-i", "8", chip="TX5101")
    assert "--bit-width 8" not in notes and "--quant-mode kl keeps kl" in notes and "--bit-width 16" not in notes, notes


def check_trained():
    """A model that was trained with 16 bits keeps them, one with 8 bits these, however much noise they leave."""
    for bits in ("8", "16"):
        folder = f"trained{bits}"
        subprocess.run([QUENCH, "quant", "spread.onnx", "-d", "spread.x.npy", "-b", bits, "-qm", "min_max", "--save-dir", folder],
                       check=True, capture_output=True)
        os.rename(f"{folder}/spread_quantize.onnx", f"{folder}.onnx")
        os.rename("spread.x.npy", f"{folder}.x.npy")
        assert {row["bits"] for row in quant(folder, "--list")[0]["list"]} == {int(bits)}
        report, notes = quant(folder, "-i", "8", "-gsj")
        assert "mended" not in report and "left too much" not in notes, (report, notes)
        wanted = content(report["file"])
        assert content(quant(folder, "-lsj", f"{folder}/{folder}_scales.json")[0]["file"]) == wanted
        quant(folder, "-i", "8", "-b", "8", "-gsj")
        narrow = content(f"{folder}/{folder}_quantize.onnx")
        assert (narrow == wanted) == (bits == "8")
        quant(folder, "-lsj", f"{folder}/{folder}_scales.json")
        assert content(f"{folder}/{folder}_quantize.onnx") == narrow
        os.rename(f"{folder}.x.npy", "spread.x.npy")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_models()
        for check in [value for name, value in globals().items() if name.startswith("check_")]:
            check()
    return 0


if __name__ == "__main__":
    sys.exit(main())
