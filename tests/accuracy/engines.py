"""engines.py: small networks with what engines are known to stumble over, quantized for every target. ONNX Runtime
and OpenVINO must load each file as they do by default, and give what ONNX Runtime gives without its rewriting."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from known import models
import quant
import runtime

TARGETS = ("quench", "ort", "openvino", "tensorrt", "qdq-generic")
# Of the largest number: a few integers are rounded the other way, by a step of 1/127 of it, and the layer behind adds up
# a few of these.
LIMIT = 0.03
RANDOM = np.random.default_rng(0)


def conv(x, w, y):
    return [helper.make_node("Conv", [x, w], [y])]


def image(between, **constants):
    """A convolution, a Relu, the nodes between "r" and "u", and another convolution."""
    nodes = conv("x", "w1", "a") + [helper.make_node("Relu", ["a"], ["r"])] + between + conv("u", "w2", "y")
    return nodes, (1, 3, 16, 16), {"w1": (8, 3, 3, 3), "w2": (16, 8, 1, 1)}, constants


def tokens(between, **constants):
    """The same of matrices, between "f" and "g"."""
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["f"]), *between,
             helper.make_node("MatMul", ["g", "w2"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "w3"], ["y"])]
    return nodes, (1, 6, 16), {"w1": (16, 16), "w2": (16, 16), "w3": (16, 16)}, constants


AXES = np.array([1], np.int64)


def behind_float(reduction):
    """A reduction that no target computes with integers: what it reads is float."""
    return tokens([helper.make_node("Sin", ["f"], ["s"]),
                   helper.make_node(reduction, ["s", "axes"], ["g"], keepdims=0)], axes=AXES)


def pooled(read, window, **attributes):
    """A pool that counts its border, of numbers on both sides of 0, which `read` = "v" adds to the result."""
    attributes.setdefault("pads", [k // 2 for k in 2 * window])
    nodes = conv("x", "w1", "a") + [
        helper.make_node("AveragePool", ["a"], ["u"], kernel_shape=window, count_include_pad=1, **attributes),
        helper.make_node("Add", ["a", "u"], ["v"])]
    return (nodes[:2 if read == "u" else 3] + conv(read, "w2", "y"), (1, 3, 16, 16),
            {"w1": (8, 3, 3, 3), "w2": (16, 8, 1, 1)}, {})


# What engines get wrong in files for other targets, which docs/quantization.md says.
WRONG = {(name, target, "OpenVINO") for name in ("pool that counts its border", "pool beside another reader")
         for target in ("quench", "ort")}
NETWORKS = {
    "mean": tokens([helper.make_node("ReduceMean", ["f", "axes"], ["g"], keepdims=0)], axes=AXES),
    "sum": tokens([helper.make_node("ReduceSum", ["f", "axes"], ["g"], keepdims=0)], axes=AXES),
    "max": behind_float("ReduceMax"),
    "min": behind_float("ReduceMin"),
    "norm": behind_float("ReduceL2"),
    "pool with gaps": image([helper.make_node("AveragePool", ["r"], ["u"], kernel_shape=[2, 2],
                                              dilations=[2, 2])]),
    "pool that counts its border": pooled("u", [3, 3]),
    "pool beside another reader": pooled("v", [3, 1]),
    "pool that rounds up": pooled("u", [3, 3], strides=[2, 2], ceil_mode=1),
    "pool that rounds up without a border": pooled("u", [3, 3], strides=[2, 2], ceil_mode=1, pads=[0] * 4),
    "cubic": image([helper.make_node("Resize", ["r", "", "scales"], ["u"], mode="cubic")],
                   scales=np.array([1, 1, 1.5, 0.7], np.float32)),
}


def write(path, nodes, shape, weights, constants):
    data = {name: (0.3 * RANDOM.standard_normal(dims)).astype(np.float32)
            for name, dims in weights.items()} | constants
    graph = helper.make_graph(nodes, "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(a, name) for name, a in data.items()])
    opset = [helper.make_opsetid("", 19)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def run_session(path, inputs, level):
    session = runtime.session(path, level=level, exact=False)
    return np.concatenate([session.run(None, {"x": x[None]})[0] for x in inputs])


def check(name, folder):
    path = os.path.join(folder, "net.onnx")
    data = os.path.join(folder, "data")
    write(path, *NETWORKS[name])
    inputs = RANDOM.standard_normal((4, *NETWORKS[name][1][1:])).astype(np.float32)
    os.makedirs(data, exist_ok=True)
    for i, x in enumerate(inputs):
        np.save(os.path.join(data, f"{i}.npy"), x[None])
    level = onnxruntime.GraphOptimizationLevel
    wrong = []
    for target in TARGETS:
        subprocess.run([models.QUENCH, "quant", "-q", "-m", path, "-d", data, "-s", folder, "-b", "8",
                        "--target", target, *runtime.PORTABLE], check=True, stdout=subprocess.DEVNULL)
        made = os.path.join(folder, "net_quantize.onnx")
        plain = run_session(made, inputs, level.ORT_DISABLE_ALL)
        for engine, run in (("ONNX Runtime", lambda: run_session(made, inputs, level.ORT_ENABLE_ALL)),
                            ("OpenVINO", lambda: quant.openvino_outputs(made, inputs))):
            try:
                off = np.abs(run() - plain).max() / np.abs(plain).max()
            except Exception as error:  # an engine's own, of any kind
                off = np.inf
                print(str(error).splitlines()[0])
            print(f"{name}, for {target}: {engine} is off by {off:.4f}")
            if not off <= LIMIT and (name, target, engine) not in WRONG:
                wrong.append(f"{name}, for {target}: {engine} is off by {off:.4f}")
    return wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = [line for name in NETWORKS for line in check(name, folder)]
    print("\n".join(wrong) or "all engines agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
