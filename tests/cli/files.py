"""What goes into `quench infer` and comes out of it, beyond one file of numbers for each tensor."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

QUENCH = os.environ["QUENCH"]


def model(path, nodes, inputs, outputs, constants=None, opset=19):
    """inputs and outputs: {name: (type, shape)}, or {name: type} of anything that is no tensor."""
    def infos(types):
        return [helper.make_tensor_value_info(name, *of) if isinstance(of, tuple) else
                helper.make_value_info(name, of) for name, of in types.items()]
    initializers = [onnx.numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                                 ir_version=9), path)


def quench(*arguments):
    subprocess.run([QUENCH, *arguments], check=True, stdout=subprocess.DEVNULL)


def infer(*arguments):
    """Exit code, stderr, and the files as {name: array}."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([QUENCH, "infer", *arguments, "-o", out], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        files = {}
        if os.path.isdir(out):
            files = {f[:-4]: np.load(os.path.join(out, f)) for f in os.listdir(out)}
    return done.returncode, done.stderr, files


FLOAT = TensorProto.FLOAT


def outputs_without_samples():
    """A constant and a scalar beside an output that counts samples."""
    model("m.onnx", [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Identity", ["k"], ["c"]),
                     helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)],
          {"x": (FLOAT, ["N", 3])}, {"y": (FLOAT, ["N", 3]), "c": (FLOAT, [2]), "s": (FLOAT, [])},
          {"k": np.float32([7, 8])})
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    np.save("x.npy", x)
    code, said, out = infer("m.onnx", "-d", "x.npy", "--batch", "1")
    assert code == 0 and not said, said
    assert np.array_equal(out["c"], [[7, 8]] * 5) and np.array_equal(out["s"], x.sum(1)), out
    code, said, out = infer("m.onnx", "-d", "x.npy", "--batch", "4")
    assert code == 0 and sorted(out) == ["y"] and np.array_equal(out["y"], x), (said, out)
    assert said.count("is left out") == 2 and "output 's'" in said and "output 'c'" in said, said


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (outputs_without_samples,):
            test()
            print(f"{test.__name__}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
