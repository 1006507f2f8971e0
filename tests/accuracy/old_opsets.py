"""old_opsets.py: models of opsets 7 to 12 become valid quantized files, that ONNX Runtime runs as quench does."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import known
import models


def check(opset, folder):
    old, data = os.path.join(folder, f"opset{opset}.onnx"), os.path.join(folder, "in.npy")
    subprocess.run([models.QUENCH, "convert", "-q", models.path_of("fashion"), old, "--opset", str(opset)],
                   check=True, stdout=subprocess.DEVNULL)
    inputs = np.random.default_rng(opset).random((4, 1, 28, 28), np.float32)
    np.save(data, inputs)
    wrong = []
    for file_format in ("qdq", "qoperator", "fake"):
        where = os.path.join(folder, file_format)
        subprocess.run([models.QUENCH, "quant", "-q", "-m", old, "-d", data, "--format", file_format, "--save-dir",
                        where], check=True, stdout=subprocess.DEVNULL)
        path = os.path.join(where, f"opset{opset}_quantize.onnx")
        onnx.checker.check_model(onnx.load(path), full_check=True)
        ours, theirs = known.quench_outputs(path, inputs), known.runtime_outputs(path, inputs)
        far = np.abs(ours - theirs).max() / np.abs(theirs).max()
        print(f"opset {opset}, {file_format}: {far:.2g} from ONNX Runtime")
        if not far < 0.05:  # integers rounded the other way are steps of 1/127; a wrong operator is off by all
            wrong.append(f"opset {opset}, {file_format}: ONNX Runtime gives other results")
    return wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = [line for opset in range(7, 13) for line in check(opset, folder)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
