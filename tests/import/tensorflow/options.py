"""options.py: the options of TensorFlow's graphs, on the cases beside: where a graph begins and ends, with and without a colon,
what is said where that is open, and pictures whose channels come first."""

import os
import subprocess
import sys
import tempfile

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")
QUENCH = os.environ["QUENCH"]
WRONG = []


def convert(case, *flags):
    """(exit code, message, model or None)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.onnx")
        done = subprocess.run([QUENCH, "convert", os.path.join(CASES, case + ".pb"), path, *flags], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stderr, onnx.load(path) if done.returncode == 0 else None


def check(what, good):
    if not good:
        WRONG.append(what)
        print(f"wrong: {what}")


def names(values):
    return [value.name for value in values]


def ends():
    """Nodes without a colon, and with one."""
    for word in ("Softmax", "Softmax:0"):
        code, _, model = convert("softmax", "-snn", "x0:0", "-enn", word)
        check(f"-enn {word}", code == 0 and names(model.graph.output) == ["Softmax"] and names(model.graph.input) == ["x0"])
    code, _, model = convert("batchmatmul", "-snn", "BatchMatMul", "x0", "-enn", "BatchMatMulV2_1", "-is", "2", "3", "5", "-is", "2", "3", "4")
    check("a graph that begins in the middle", code == 0 and "x0" in names(model.graph.input))


def guesses():
    code, message, _ = convert("shapes")
    check("several ends are listed", code == 1 and "--end-node-names" in message and "'Identity'" in message and "'Identity_4'" in message)
    code, message, _ = convert("softmax", "-enn", "Softmx")
    check("a node that is meant", code == 1 and "did you mean 'Softmax'?" in message)
    code, _, model = convert("add")
    check("the only end", code == 0 and names(model.graph.output) == ["Identity"])
    code, message, _ = convert("add", "-snn", "nothing")
    check("a start that is none", code == 1 and "no node 'nothing'" in message)


def layout():
    for case in ("conv2d_same", "flatten_matmul"):
        code, _, model = convert(case, "-c2chw")
        check(f"{case}: no Transpose with -c2chw" + str(code), code == 0 and (case == "conv2d_same" or not [
            node for node in model.graph.node if node.op_type == "Transpose"]))
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        check(f"{case}: the channels come first", shape[1] == 3)
    code, _, plain = convert("flatten_matmul")
    check("one Transpose without", code == 0 and [n.op_type for n in plain.graph.node].count("Transpose") == 1)


def main():
    ends()
    guesses()
    layout()
    print("options of TensorFlow" + (f": {len(WRONG)} are wrong" if WRONG else ""))
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main()
