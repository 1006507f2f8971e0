"""Weights that several nodes read: ONNX Runtime loads the quantized files, with exact products and without, and gives
what quench gives."""
import os
import sys
import tempfile

import numpy as np
from onnx import helper

from files import FLOAT, infer, model, quench
from runtime import session

RANDOM = np.random.default_rng(7)


def write_model():
    """Two convolutions and two products, each pair with one set of weights."""
    def floats(*shape):
        return RANDOM.standard_normal(shape).astype(np.float32)
    model("m.onnx", [helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1] * 4), helper.make_node("Relu", ["a"], ["c"]),
                     helper.make_node("Conv", ["c", "w", "b"], ["d"], pads=[1] * 4), helper.make_node("Relu", ["d"], ["e"]),
                     helper.make_node("MatMul", ["e", "m"], ["f"]), helper.make_node("Relu", ["f"], ["g"]),
                     helper.make_node("MatMul", ["g", "m"], ["y"])],
          {"x": (FLOAT, ["N", 4, 8, 8])}, {"y": (FLOAT, ["N", 4, 8, 8])},
          {"w": floats(4, 4, 3, 3), "b": floats(4), "m": floats(8, 8)}, 13)
    np.save("x.npy", floats(16, 4, 8, 8))


def check(*options):
    quench("quant", "m.onnx", "-d", "x.npy", "-b", "8", "--save-dir", ".", *options)
    code, said, ours = infer("m_quantize.onnx", "-i", "x.npy")
    assert code == 0, said
    session("m_quantize.onnx", exact=False)
    theirs = session("m_quantize.onnx").run(None, {"x": np.load("x.npy")})[0]
    apart = np.abs(theirs - ours["y"]).max() / np.abs(theirs).max()
    print(*options, f"{apart:.2g} of the largest output apart")
    assert apart < 0.02


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model()
        for target in ("quench", "ort", "openvino", "tensorrt"):
            check("--target", target)
        check("--format", "qoperator")
    return 0


if __name__ == "__main__":
    sys.exit(main())
