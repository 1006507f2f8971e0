"""Tools strip metadata: a chip's model gives the same numbers without any, its outputs have the same scale, and ONNX
Runtime loads what says so. With the imports gone too, files of older versions still say it in their metadata."""
import os
import tempfile

import numpy as np
import onnx
from onnx import helper

from files import FLOAT, infer, model, quench
from runtime import session

RANDOM = np.random.default_rng(11)


def write_model():
    def floats(*shape):
        return RANDOM.standard_normal(shape).astype(np.float32)
    model("m.onnx", [helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1] * 4), helper.make_node("Sigmoid", ["a"], ["c"]),
                     helper.make_node("Conv", ["c", "v", "b"], ["y"], pads=[1] * 4)],
          {"x": (FLOAT, ["N", 4, 8, 8])}, {"y": (FLOAT, ["N", 8, 8, 8])},
          {"w": floats(8, 4, 3, 3), "v": floats(8, 8, 3, 3), "b": floats(8)}, 13)
    np.save("x.npy", floats(1, 4, 8, 8))


def outputs(path):
    code, said, found = infer(path, "-i", "x.npy")
    assert code == 0, said
    return found["y"]


def check(*options):
    quench("--chip", "TX5368AV200", "quant", "m.onnx", "-d", "x.npy", "--save-dir", ".", *options)
    whole = outputs("m_quantize.onnx")
    session("m_quantize.onnx", exact=False)
    stripped = onnx.load("m_quantize.onnx")
    kept = list(stripped.metadata_props)
    del stripped.metadata_props[:]
    onnx.save(stripped, "stripped.onnx")
    assert np.array_equal(outputs("stripped.onnx"), whole), "results differ without metadata"
    # The test can fail: with neither the numbers are others, where they are fine enough to show it.
    own = [i for i in stripped.opset_import if i.domain.startswith("quench.")]
    assert own, "no import says how the file is computed"
    for entry in own:
        stripped.opset_import.remove(entry)
    onnx.save(stripped, "bare.onnx")
    if "16" in options:
        assert not np.array_equal(outputs("bare.onnx"), whole), "the file does not depend on it"
    stripped.metadata_props.extend(kept)
    onnx.save(stripped, "older.onnx")
    assert np.array_equal(outputs("older.onnx"), whole), "metadata alone are not enough"
    print(*options, "same numbers")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model()
        check("-b", "8")
        check("-b", "16")
        # Quantized again for another target the file is computed as that target does it.
        quench("quant", "m_quantize.onnx", "-d", "x.npy", "-b", "8", "--save-dir", "again")
        again = onnx.load("again/m_quantize_quantize.onnx")
        assert not [i for i in again.opset_import if i.domain.startswith("quench.")]


main()
