"""What goes into `quench infer` and comes out of it, beyond one file of numbers for each tensor."""
import json
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


def names_that_cannot_be_fed():
    """Exit code 2, and the reason."""
    model("m.onnx", [helper.make_node("Add", ["x", "k"], ["y"])], {"x": (FLOAT, ["N", 3]), "k": (FLOAT, [3])},
          {"y": (FLOAT, ["N", 3])}, {"k": np.float32([1, 2, 3])})
    np.save("x.npy", np.zeros((4, 3), np.float32))
    np.save("k.npy", np.zeros(3, np.float32))
    for arguments, reason in ((["-i", "k=k.npy"], "'k' is an initializer of the model: its value is fixed at load"),
                              (["--input-shape", "k:3"], "'k' is an initializer of the model"),
                              (["--input-shape", "foo:3"], "the model has no input 'foo'"),
                              (["-i", "foo=x.npy"], "the model has no input 'foo'")):
        code, said, _ = infer("m.onnx", *arguments)
        assert code == 2 and reason in said, (arguments, code, said)
    code, said, _ = infer("m.onnx", "-i", "x=x.npy", "--batch", "2")
    assert code == 2 and "input 'x' begins with 4 in its file or the shape given for it" in said, said
    np.save("x.npy", np.zeros((4, 3)))
    code, said, _ = infer("m.onnx", "-i", "x=x.npy")
    assert code == 1 and ".astype(np.float32)" in said, said


def extremes_of_integers():
    """The report tells them as integers."""
    model("m.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": (TensorProto.INT32, [2])},
          {"y": (TensorProto.INT32, [2])})
    np.save("x.npy", np.int32([-2**31, 2**31 - 1]))
    done = subprocess.run([QUENCH, "infer", "m.onnx", "-i", "x.npy"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-3:-1] == ["-2147483648", "2147483647"], done.stdout


def strings():
    """Both of numpy's kinds in, <U out, letters of one to four bytes; in any order of bytes and axes."""
    model("m.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": (TensorProto.STRING, None)},
          {"y": (TensorProto.STRING, None)})
    words = np.array([["", "caf\u00e9", "\u65e5\u672c"], ["\U0001f600!", "a b", "longest of all"]])
    for x in (words, words.astype(">U14"), np.asfortranarray(words), words.T, words[:0]):
        np.save("x.npy", x)
        code, said, out = infer("m.onnx", "-i", "x.npy")
        assert code == 0 and np.array_equal(out["y"], x) and out["y"].dtype.kind == "U", (said, out)
    np.save("x.npy", np.array([b"ab", b"", b"abc"]))
    assert list(infer("m.onnx", "-i", "x.npy")[2]["y"]) == ["ab", "", "abc"]
    np.save("x.npy", np.array(["ab"]))
    with open("x.npy", "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\0\xd8\0\0")  # half of a pair
    code, said, _ = infer("m.onnx", "-i", "x.npy")
    assert code == 1 and "has a letter that is none" in said, said


def strings_of_samples():
    """As wide as the longest of all runs needs, run in turn or side by side; no numbers are told of them."""
    model("m.onnx", [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {"x": (TensorProto.INT64, ["N", 2])},
          {"y": (TensorProto.STRING, ["N", 2])})
    x = np.int64([[0, 1], [20, 300], [-4000, 5], [1234567890123, 6], [7, 8]])
    np.save("x.npy", x)
    for threads in ("1", "2"):
        code, said, out = infer("m.onnx", "-d", "x.npy", "--batch", "2", "--threads", threads)
        assert code == 0 and not said and np.array_equal(out["y"], x.astype(str)), (said, out)
        assert out["y"].dtype == "<U13", out["y"].dtype
    for options, wanted in (([], "  y       string[5,2]\n"), (["--markdown"], "| y | string[5,2] |  |  |  |\n")):
        done = subprocess.run([QUENCH, "infer", "m.onnx", "-d", "x.npy", *options], capture_output=True, text=True,
                              check=True)
        assert done.stdout.endswith(wanted), done.stdout
    done = subprocess.run([QUENCH, "infer", "m.onnx", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["outputs"] == [{"output": "y", "type": "string[1,2]"}], done.stdout


def sequences():
    model("m.onnx", [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0, keepdims=0)], {"x": (FLOAT, [3, 2])},
          {"y": helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))})
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save("x.npy", x)
    code, said, out = infer("m.onnx", "-i", "x.npy")
    assert code == 0 and sorted(out) == ["y.0", "y.1", "y.2"], (said, out)
    assert all(np.array_equal(out[f"y.{i}"], x[i]) for i in range(3)), out


def types_that_numpy_lacks():
    """What is written of them can be read again; a number that the type cannot hold is refused."""
    for name, file in (("BFLOAT16", "float32"), ("FLOAT8E4M3FN", "float32"), ("INT4", "int8"), ("UINT4", "uint8")):
        dtype = getattr(TensorProto, name)
        model("m.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": (dtype, [2, 3])}, {"y": (dtype, [2, 3])},
              opset=21)
        x = np.array([[0, 1, 2], [3, 5, 7]], file)
        np.save("x.npy", x)
        code, said, out = infer("m.onnx", "-i", "x.npy")
        assert code == 0 and out["y"].dtype == file and np.array_equal(out["y"], x), (name, said, out)
        np.save("x.npy", np.stack([x, x, x]).reshape(6, 3))
        code, said, out = infer("m.onnx", "-d", "x.npy")
        assert code == 0 and np.array_equal(out["y"], np.load("x.npy")), (name, said)
    np.save("x.npy", x + 100)
    code, said, _ = infer("m.onnx", "-i", "x.npy")
    assert code == 1 and "100 is no uint4" in said, said


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (outputs_without_samples, names_that_cannot_be_fed, extremes_of_integers, strings,
                     strings_of_samples, sequences, types_that_numpy_lacks):
            test()
            print(f"{test.__name__}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
