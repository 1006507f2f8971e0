"""operators.py [CASE...]: single operators as exporters of PyTorch write them, in float and as integers: which kernel
runs each, and how long it takes beside our float kernel and beside ONNX Runtime with the same file.

A case is a small graph. Its integer form has QuantizeLinear and DequantizeLinear around every number, and bytes at both
ends, so that what is timed is the operator alone. All rounds go through all files in turn and the least time of each
counts; only ratios mean something on a machine with other work. --list prints only who computes what; --check fails
where a step runs in the reference that docs/operators.md does not name."""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models
import operator_cases

DOCS = os.path.join(models.ROOT, "docs", "operators.md")
SCALE = np.float32(0.03)
OPSET = 23

# ---- Files -------------------------------------------------------------------------------------------------


class Maker:
    """One file of a case; with `integers` every float value is a quantized one."""

    def __init__(self, case, integers):
        self.case, self.integers = case, integers
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def parameters(self, name, dtype):
        zero = dtype(0 if dtype == np.int8 else 128)
        return [self.constant(f"{name}_scale", SCALE), self.constant(f"{name}_zero", zero)]

    def weight(self, name, array):
        """Of floats: where the integers have a place for them, bytes behind a DequantizeLinear."""
        if not self.integers or name in self.case.kept or array.dtype != np.float32:
            return self.constant(name, array)
        parameters = self.parameters(name, np.int8)
        bytes_ = np.clip(np.rint(array / SCALE), -127, 127).astype(np.int8)
        self.nodes.append(helper.make_node("DequantizeLinear", [self.constant(f"{name}_q", bytes_), *parameters], [name]))
        return name

    def pair(self, source, name, is_output):
        """Q behind `source`; where somebody reads it as floats, D behind that."""
        parameters = self.parameters(name, np.uint8)
        bytes_ = name if is_output else f"{name}_q"
        self.nodes.append(helper.make_node("QuantizeLinear", [source, *parameters], [bytes_]))
        if not is_output:
            self.nodes.append(helper.make_node("DequantizeLinear", [bytes_, *parameters], [name]))

    def input(self, name, array):
        floats = array.dtype == np.float32 and self.integers
        given = f"{name}_in" if floats else name
        if floats:
            self.nodes.append(helper.make_node("DequantizeLinear", [given, *self.parameters(name, np.uint8)], [name]))
        dtype = TensorProto.UINT8 if floats else helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(given, dtype, array.shape)

    def operator(self, node):
        """With a pair behind each result that is quantized."""
        made = onnx.NodeProto()
        made.CopyFrom(node)
        pairs = []
        for i, name in enumerate(node.output):
            if self.integers and name not in self.case.plain:
                made.output[i] = f"{name}_f"
                pairs.append((f"{name}_f", name, name in self.case.outputs))
        self.nodes.append(made)
        for pair in pairs:
            self.pair(*pair)

    def save(self, path):
        case = self.case
        inputs = [self.input(*item) for item in case.inputs.items()]
        for name, array in case.constants.items():
            self.weight(name, np.asarray(array))
        for node in case.nodes:
            self.operator(node)
        kinds = {name: TensorProto.UINT8 if self.integers and name not in case.plain else kind
                 for name, kind in case.outputs.items()}
        outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
        graph = helper.make_graph(self.nodes, case.name, inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
        return path


def feeds_of(case, integers):
    return {name + ("_in" if integers and array.dtype == np.float32 else ""):
            np.clip(np.rint(array / SCALE) + 128, 0, 255).astype(np.uint8)
            if integers and array.dtype == np.float32 else array for name, array in case.inputs.items()}


# ---- Engines -----------------------------------------------------------------------------------------------


def of_quench(path, feeds, arguments):
    """The report of one turn; None where it cannot run the file."""
    words = [models.QUENCH, "bench", path, "--json", "--profile", "--threads", str(arguments.threads), "--seconds",
             str(arguments.seconds)]
    for name, array in feeds.items():
        file = f"{path}.{name}.npy"
        if not os.path.exists(file):
            np.save(file, array)
        words += ["--input", f"{name}={file}"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{os.path.basename(path)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


class Runtime:
    """ONNX Runtime with one file; its least time is NaN where it cannot run it."""

    def __init__(self, path, feeds, arguments):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = arguments.threads, 4
        self.feeds, self.seconds, self.session = feeds, arguments.seconds, None
        try:
            self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            self.session.run(None, feeds)
        except Exception:  # whatever it throws
            self.session = None

    def turn(self):
        least, end = np.inf, time.perf_counter() + self.seconds
        while self.session and time.perf_counter() < end:
            start = time.perf_counter()
            self.session.run(None, self.feeds)
            least = min(least, time.perf_counter() - start)
        return 1e3 * least if self.session else np.nan


# ---- Rows --------------------------------------------------------------------------------------------------


def kernels_of(report):
    """`operators=kernel` of every step, 'ref' where the reference computes it."""
    return [(row["operators"], row["kernel"]) for row in report["operators"]] if report else []


def row_of(case, folder, arguments):
    forms = [False, True] if case.quantizable else [False]
    lanes = []
    for integers in forms:
        path = Maker(case, integers).save(os.path.join(folder, f"{case.name}{'_int8' if integers else ''}.onnx"))
        feeds = feeds_of(case, integers)
        lanes.append((path, feeds, None if arguments.list or arguments.check else Runtime(path, feeds, arguments)))
    times, reports = np.full((len(lanes), 2), np.inf), [None] * len(lanes)
    for _, (i, (path, feeds, runtime)) in itertools.product(range(arguments.rounds), enumerate(lanes)):
        reports[i] = of_quench(path, feeds, arguments)
        times[i, 0] = min(times[i, 0], reports[i]["min_ms"] if reports[i] else np.nan)
        times[i, 1] = min(times[i, 1], runtime.turn()) if runtime else np.nan
    return times, [kernels_of(report) for report in reports]


def show_times(case, times, kernels):
    cells = f"{times[0][0]:8.3f} {times[0][1]:8.3f} {times[0][0] / times[0][1]:6.2f}"
    if len(times) > 1:
        cells += f" {times[1][0]:8.3f} {times[1][1]:8.3f} {times[1][0] / times[1][1]:6.2f} {times[1][0] / times[0][0]:6.2f}"
    else:
        cells += " " * 33
    print(f"{case.name:26} {cells}  " + " | ".join(
        ", ".join(kernel if kernel != "ref" else f"ref({operators})" for operators, kernel in steps)
        for steps in kernels), flush=True)


def references(case, kernels):
    """(form, operators) of the steps that run in the reference."""
    return [(form, operators) for form, steps in zip(("float", "int8"), kernels) for operators, kernel in steps
            if kernel == "ref"]


def documented():
    """Of the table in docs/operators.md: (operator, form)."""
    with open(DOCS, encoding="utf-8") as file:
        rows = re.findall(r"^\| (\w+) \| (float|int8|float, int8) \|", file.read(), re.M)
    return {(name, form) for name, forms in rows for form in forms.split(", ")}


def check(found, arguments):
    known = documented()
    wrong = [f"{name} ({form}) runs in the reference, docs/operators.md does not say so"
             for form, name in sorted(found) if (name, form) not in known]
    if not arguments.cases:
        wrong += [f"docs/operators.md says that {name} ({form}) runs in the reference, it does not"
                  for name, form in sorted(known) if (form, name) not in found]
    print("\n".join(wrong))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="beginnings of names; default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.list or arguments.check:
        arguments.rounds, arguments.seconds = 1, 0.001
    found = set()
    print(f"{'':26} {'float':>8} {'ORT':>8} {'ratio':>6} {'int8':>8} {'ORT':>8} {'ratio':>6} {'/float':>6}  kernels")
    with tempfile.TemporaryDirectory() as folder:
        for case in operator_cases.cases():
            if arguments.cases and not any(case.name.startswith(name) for name in arguments.cases):
                continue
            times, kernels = row_of(case, folder, arguments)
            found.update(references(case, kernels))
            if not arguments.check:
                show_times(case, times, kernels)
    return check(found, arguments) if arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
