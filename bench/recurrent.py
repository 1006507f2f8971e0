"""recurrent.py: what LSTM and GRU take as integers, beside our float kernel and ONNX Runtime's.

Layers of one item with random weights, quantized statically and, LSTM, while running. All rounds go through all files in
turn, and the least time of each counts; only ratios mean something on a machine with other work. It fails where a
layer of 128 to 512 units and 16 steps or more takes more than .7 of float's time with static integers, or more than
float's with dynamic ones."""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models

STATIC, DYNAMIC, INPUTS, ITEMS = 0.7, 1.0, 64, 8
GATES = {"LSTM": 4, "GRU": 3}


def layer(path, operator, hidden, steps, both):
    rng, directions = np.random.default_rng(hidden), 2 if both else 1
    rows, size = GATES[operator] * hidden, 1 / np.sqrt(hidden)
    shapes = {"W": (directions, rows, INPUTS), "R": (directions, rows, hidden), "B": (directions, 2 * rows)}
    weights = [numpy_helper.from_array(rng.uniform(-size, size, shape).astype(np.float32), name)
               for name, shape in shapes.items()]
    node = helper.make_node(operator, ["x", "W", "R", "B"], ["y"], "layer", hidden_size=hidden,
                            direction="bidirectional" if both else "forward")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 1, INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, directions, 1, hidden])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(path[:-5] + ".npy", rng.standard_normal((ITEMS, steps, 1, INPUTS)).astype(np.float32))


def quantized(path, folder, *options):
    words = [models.QUENCH, "quant", "-m", path, "--save-dir", folder, *options]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made, kept = path[:-5] + "_quantize.onnx", path[:-5] + options[0].strip("-") + ".onnx"
    os.replace(made, kept)
    return kept


def of_quench(path, arguments):
    words = [models.QUENCH, "bench", path, "--json", "--threads", str(arguments.threads), "--seconds",
             str(arguments.seconds)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)["min_ms"]


def of_runtime(path, arguments):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {"x": np.zeros([d for d in session.get_inputs()[0].shape], np.float32)}
    least, end = np.inf, time.perf_counter() + arguments.seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        least = min(least, time.perf_counter() - start)
    return 1e3 * least


def measured(folder, case, arguments):
    operator, hidden, steps, both = case
    path = os.path.join(folder, f"{operator}{hidden}_{steps}{'_both' if both else ''}.onnx")
    layer(path, *case)
    lanes = {"float": (of_quench, path), "int8": (of_quench, quantized(path, folder, "-b", "8", "-d", path[:-5] + ".npy")),
             "ort": (of_runtime, path)}
    if operator == "LSTM":
        lanes["dynamic"] = (of_quench, quantized(path, folder, "--dynamic"))
        lanes["ort dynamic"] = (of_runtime, lanes["dynamic"][1])
    times = {name: np.inf for name in lanes}
    for _, (name, (run, file)) in itertools.product(range(arguments.rounds), lanes.items()):
        times[name] = min(times[name], run(file, arguments))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1)
    arguments, wrong = parser.parse_args(), []
    print("layer                    float ms   int8  ratio  dynamic  ratio    ort  ort dynamic")
    with tempfile.TemporaryDirectory() as folder:
        for case in itertools.product(GATES, (128, 256, 512), (1, 16, 64), (False, True)):
            times = measured(folder, case, arguments)
            ratio = times["int8"] / times["float"]
            dynamic = times.get("dynamic", np.nan) / times["float"]
            name = f"{case[0]} {case[1]} units, {case[2]} steps{', both' if case[3] else ''}"
            print(f"{name:30} {times['float']:.3f}  {times['int8']:.3f}   {ratio:.2f}  {times.get('dynamic', np.nan):7.3f}"
                  f"   {dynamic:.2f}  {times['ort']:.3f}  {times.get('ort dynamic', np.nan):.3f}", flush=True)
            if case[2] >= 16 and ratio > STATIC:
                wrong.append(f"{name}: integers take {ratio:.2f} of float's time")
            if case[2] >= 16 and dynamic > DYNAMIC:
                wrong.append(f"{name}: quantized while running it takes {dynamic:.2f} of float's time")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
