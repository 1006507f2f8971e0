"""Ctrl-C ends a run in the middle of a kernel that would take long."""
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper

from files import FLOAT, QUENCH, model

CASES = {
    "DFT": ({"axis": 1}, {"x": [60, 61**3, 1]}, {}),  # in rounds of the largest factor, which take longest
    "LRN": ({"size": 2001}, {"x": [1, 2000, 60, 60]}, {}),
    "LpPool": ({"kernel_shape": [300, 300]}, {"x": [1, 1, 900, 900]}, {}),
    "Det": ({}, {"x": [4000, 4000]}, {}),
    "NonMaxSuppression": ({}, {"b": [1, 40000, 4], "s": [1, 40, 40000]},
                          {"most": np.int64([40000]), "iou": np.float32([0.99])}),
}


def is_answered(op):
    attributes, inputs, constants = CASES[op]
    dtype = TensorProto.INT64 if op == "NonMaxSuppression" else FLOAT
    model("m.onnx", [helper.make_node(op, [*inputs, *constants], ["y"], **attributes)],
          {name: (FLOAT, shape) for name, shape in inputs.items()}, {"y": (dtype, None)}, constants)
    with subprocess.Popen([QUENCH, "infer", "m.onnx", "--backend", "ref"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as run:
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        began = time.monotonic()
        try:
            said = run.communicate(timeout=5)[1]
        except subprocess.TimeoutExpired:
            run.kill()
            said = "no answer"
    print(f"{op}: {said.strip()} after {time.monotonic() - began:.2f} s, exit code {run.returncode}")
    return run.returncode == 1 and said == "quench: cancelled\n"


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return 0 if all([is_answered(op) for op in CASES]) else 1


if __name__ == "__main__":
    sys.exit(main())
