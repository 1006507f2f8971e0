"""Dynamic quantization beside ONNX Runtime: small models of every operator that it changes, the ViT and the
LSTM of real use. The quantized file must load there, give what quench gives, and stay near the float model;
quench's fast kernels must agree with its reference kernels."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from runtime import session

QUENCH = os.environ["QUENCH"]
MODELS = os.path.join(os.environ.get("QUENCH_DATA", os.path.join("..", "shared", "data")), "onnx")
random = np.random.RandomState(7)


def floats(*shape, scale=1.0):
    return (random.randn(*shape) * scale).astype(np.float32)


def model(nodes, inputs, outputs, constants, opset=14):
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    onnx.checker.check_model(made)
    return made


def product():
    """Two products of one input, with and without bias, one behind the other."""
    nodes = [helper.make_node("MatMul", ["x", "a"], ["p"], "matmul"),
             helper.make_node("MatMul", ["x", "b"], ["r"], "other"),
             helper.make_node("Relu", ["p"], ["q"]),
             helper.make_node("MatMul", ["q", "c"], ["s"], "last"),
             helper.make_node("Add", ["s", "bias"], ["t"]),
             helper.make_node("Add", ["t", "r"], ["y"])]
    constants = {"a": floats(33, 70), "b": floats(33, 9), "c": floats(70, 9), "bias": floats(9)}
    return model(nodes, {"x": [2, 5, 33]}, {"y": [2, 5, 9]}, constants), {"x": floats(2, 5, 33)}


def gemm():
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"], "one", transB=1),
             helper.make_node("Gemm", ["h", "v"], ["y"], "two")]
    constants = {"w": floats(40, 300), "b": floats(40), "v": floats(40, 7)}
    return model(nodes, {"x": [6, 300]}, {"y": [6, 7]}, constants), {"x": floats(6, 300)}


def recurrent(kind, gates, direction, **extra):
    both = 2 if direction == "bidirectional" else 1
    time, batch, inputs, hidden = 7, 2, 20, 24
    constants = {"w": floats(both, gates * hidden, inputs, scale=0.3),
                 "r": floats(both, gates * hidden, hidden, scale=0.3),
                 "b": floats(both, 2 * gates * hidden, scale=0.3)}
    outputs = {"y": [time, both, batch, hidden], "yh": [both, batch, hidden]}
    if kind == "LSTM":
        outputs["yc"] = [both, batch, hidden]
    node = helper.make_node(kind, ["x", "w", "r", "b"], list(outputs), "cell", hidden_size=hidden,
                            direction=direction, **extra)
    return model([node], {"x": [time, batch, inputs]}, outputs, constants), {
        "x": floats(time, batch, inputs)}


def real(name, feeds):
    path = os.path.join(MODELS, name)
    return (onnx.load(path), feeds) if os.path.exists(path) else None


# Largest difference of the outputs, relative to the largest number: from float, and from ONNX Runtime. Where
# a number that is float in between is rounded the other way, a unit of 8 bits is carried on.
CASES = {
    "product": (product, 0.03, 1e-6),
    "gemm": (gemm, 0.03, 1e-6),
    "lstm": (lambda: recurrent("LSTM", 4, "forward"), 0.05, 0.02),
    "lstm_both": (lambda: recurrent("LSTM", 4, "bidirectional"), 0.05, 0.02),
    "lstm_reverse": (lambda: recurrent("LSTM", 4, "reverse"), 0.05, 0.02),
    "gru": (lambda: recurrent("GRU", 3, "forward", linear_before_reset=1), 0.05, 1e-5),
    "gru_both": (lambda: recurrent("GRU", 3, "bidirectional"), 0.05, 1e-5),
    "vit": (lambda: real("vit_cifar10.onnx",
                         {"input": random.rand(1, 3, 32, 32).astype(np.float32)}), 0.05, 0.02),
    "silero_vad": (lambda: real("silero_vad_16k_op15.onnx",
                                {"input": floats(1, 576, scale=0.1),
                                 "state": floats(2, 1, 128, scale=0.1),
                                 "sr": np.array(16000)}), 0.1, 0.02),
}


def run(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise RuntimeError(" ".join(command) + ": " + done.stderr)
    return done.stdout


def distance(a, b):
    return max(float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-9)) for x, y in zip(a, b))


def check(name, folder):
    make, from_float, from_ort = CASES[name]
    made = make()
    if made is None:
        return f"{name}: left out, the model is not here"
    path = os.path.join(folder, name + ".onnx")
    onnx.save(made[0], path)
    run(QUENCH, "quant", path, "--dynamic", "--save-dir", folder)
    quantized = os.path.join(folder, name + "_quantize.onnx")
    arguments = []
    for key, value in made[1].items():
        np.save(os.path.join(folder, key + ".npy"), value)
        arguments += ["--input", f"{key}={os.path.join(folder, key + '.npy')}"]
    nothing_to_prove = 3  # the arithmetic of a GRU stays float
    run(QUENCH, "verify", quantized, *arguments, code=nothing_to_prove if "gru" in name else 0)
    run(QUENCH, "infer", quantized, "--output-dir", folder, *arguments)
    names = [o.name for o in session(quantized).get_outputs()]
    ours = [np.load(os.path.join(folder, n.replace("/", "_") + ".npy")) for n in names]
    theirs = session(quantized).run(None, made[1])
    real_ones = session(path).run(None, made[1])
    errors = distance(real_ones, theirs), distance(theirs, ours)
    line = f"{name}: from float {errors[0]:.2g}, from ONNX Runtime {errors[1]:.2g}"
    if errors[0] > from_float or errors[1] > from_ort or errors[0] == 0 and "gru" not in name:
        raise RuntimeError(line + f"; at most {from_float} and {from_ort}")
    return line


def main():
    failed = False
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(check(name, folder))
            except RuntimeError as error:
                print("FAILED", error)
                failed = True
    sys.exit(failed)


main()
