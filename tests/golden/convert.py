"""convert.py: what `quench convert` writes gives the results of the original in ONNX Runtime, to 1e-4 of
the output's largest magnitude, under the same names, in fewer nodes or as many. The embedded network
always, the float models of QUENCH_DATA where they are."""

import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from runtime import session

QUENCH = os.environ["QUENCH"]
DATA = os.environ.get("QUENCH_DATA", os.path.join("..", "shared", "data"))
SHAPES = {("en_PP-OCRv4_rec", "x"): [1, 3, 48, 320], ("silero_vad_16k_op15", "input"): [1, 576],
          ("silero_vad_16k_op15", "state"): [2, 1, 128]}


def inputs(name, runtime):
    random = np.random.default_rng(1)
    feeds = {}
    for value in runtime.get_inputs():
        shape = SHAPES.get((name, value.name),
                           [d if isinstance(d, int) else 2 for d in value.shape])
        feeds[value.name] = (np.full(shape, 16000, np.int64) if "int64" in value.type
                             else random.standard_normal(shape).astype(np.float32))
    return feeds


def difference(a, b):
    return max(np.abs(x.astype(np.float64) - y).max() / np.abs(x).max() for x, y in zip(a, b))


def check(path, folder):
    name = os.path.splitext(os.path.basename(path))[0]
    written = os.path.join(folder, name + ".onnx")
    subprocess.run([QUENCH, "convert", path, written, "-q"], check=True, stdout=subprocess.DEVNULL)
    onnx.checker.check_model(written, full_check=True)
    before, after = onnx.load(path), onnx.load(written)
    for field in ("input", "output"):
        names = [[v.name for v in getattr(m.graph, field)] for m in (before, after)]
        initializers = {t.name for t in before.graph.initializer}
        assert [n for n in names[0] if n not in initializers] == names[1], f"{name}: {field}s {names}"
    assert len(after.graph.node) <= len(before.graph.node), f"{name}: more nodes than before"
    original = session(path)
    feeds = inputs(name, original)
    error = difference(original.run(None, feeds), session(written).run(None, feeds))
    print(f"{name}: {len(before.graph.node)} -> {len(after.graph.node)} nodes, error {error:.1e}")
    return error <= 1e-4


def main():
    models = ["examples/fashion.onnx"] + sorted(glob.glob(os.path.join(DATA, "onnx", "*.onnx")))
    with tempfile.TemporaryDirectory() as folder:
        good = [check(path, folder) for path in models]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    if len(models) == 1:
        print(f"(no models in {DATA}: only the embedded one was converted)")
    sys.exit(not all(good))


main()
