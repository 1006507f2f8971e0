"""Weights of 4 and 8 bits in blocks: the float product of what DequantizeLinear makes of them, as ONNX's reference has
it. ONNX Runtime 1.31 gives other numbers for the 8 bits."""
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from files import infer

RANDOM = np.random.default_rng(1)


def write(path, dtype, limit):
    """Integers in and blocked weights: [32, 8] with a scale for each 8 rows."""
    weights = RANDOM.integers(-limit, limit, (32, 8))
    constants = [helper.make_tensor("w", dtype, [32, 8], weights.flatten().tolist()),
                 numpy_helper.from_array(RANDOM.uniform(.01, .1, (4, 8)).astype(np.float32), "s"),
                 numpy_helper.from_array(np.float32(.02), "xs"), numpy_helper.from_array(np.uint8(128), "xz")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "s"], ["v"], axis=0, block_size=8),
             helper.make_node("MatMul", ["d", "v"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        np.save("x.npy", RANDOM.standard_normal((4, 32)).astype(np.float32))
        for dtype, limit in ((TensorProto.INT4, 8), (TensorProto.INT8, 128)):
            write("m.onnx", dtype, limit)
            code, said, ours = infer("m.onnx", "-i", "x.npy")
            assert code == 0, said
            theirs = ReferenceEvaluator("m.onnx").run(None, {"x": np.load("x.npy")})[0]
            apart = np.abs(theirs - ours["y"]).max() / np.abs(theirs).max()
            assert apart < 1e-5, apart  # sums of 32 floats in another order
            print(TensorProto.DataType.Name(dtype), "the same")


main()
