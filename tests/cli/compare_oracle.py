"""quench compare against numpy and ONNX Runtime: every number of the CSV from the files of the dump, every single error
of a convolution from that convolution alone, cut out of the quantized file and fed with exact integers."""
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import numpy as np
import onnx
from onnx import numpy_helper

import runtime

QUENCH = os.environ["QUENCH"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples", "fashion.onnx")


def quench(*arguments):
    done = subprocess.run([QUENCH, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")


def measures(left, right):
    l, r = left.astype(np.float64).ravel(), right.astype(np.float64).ravel()
    d = r - l
    return {"mre": np.abs(d).sum() / np.abs(l).sum(),
            "cos": 0.5 + 0.5 * (l @ r) / np.sqrt((l @ l) * (r @ r)),
            "rmse": np.sqrt((d @ d) / (l @ l)),
            "maxdiff_rel": np.abs(d).max() / np.abs(l).max(), "maxdiff_abs": np.abs(d).max(),
            "bias_above": (d > 0).mean(), "bias_below": (d < 0).mean()}


def check_csv(folder, dump, layers):
    rows = list(csv.DictReader(open(os.path.join(folder, "compare.csv"), newline="")))
    assert len(rows) == len(layers) > 10, len(rows)
    for row, layer in zip(rows, layers):
        assert row["tensor"] == layer["tensor"] and row["operator"] == layer["operator"]
        sides = {s: np.load(os.path.join(dump, layer[s])) for s in ("float", "fixed", "single")}
        for prefix, side in (("", "fixed"), ("single_", "single")):
            for name, wanted in measures(sides["float"], sides[side]).items():
                got = float(row[prefix + name])
                assert abs(got - wanted) <= 1e-9 * max(abs(wanted), 1), (row["tensor"], name, got, wanted)


def scales_of(model, node):
    constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    return constants[node.input[1]], constants[node.input[2]]


def exact_integers(real, model, node, factor):
    scale, zero = scales_of(model, node)
    info = np.iinfo(zero.dtype)
    q = np.rint((real / factor).astype(np.float32) / scale) + int(zero)
    return np.clip(q, info.min, info.max).astype(zero.dtype)


def factor_of(metadata, name):
    factor = np.array(metadata.get(name, {}).get("factor", []), dtype=np.float32)
    return factor.reshape(1, -1, 1, 1) if factor.size else np.float32(1)


def check_single(quantized, dump, layers, image):
    model = onnx.shape_inference.infer_shapes(onnx.load(quantized))
    metadata = json.loads({p.key: p.value for p in model.metadata_props}.get("quench.tensors", "{}"))
    producers = {o: n for n in model.graph.node for o in n.output}
    checked = 0
    for layer in layers:
        quantize = producers.get(layer["tensor"] + "_QuantizeLinear_Output")
        conv = producers.get(quantize.input[0]) if quantize else None
        if conv is not None and conv.op_type in ("Clip", "Relu"):
            conv = producers.get(conv.input[0])
        if conv is None or conv.op_type != "Conv":
            continue
        before = producers[producers[conv.input[0]].input[0]]
        source = before.output[0][:-len("_QuantizeLinear_Output")]
        real = {l["tensor"]: l["float"] for l in layers}.get(source)
        real = np.load(os.path.join(dump, real)) if real else image
        part = onnx.utils.Extractor(model).extract_model([before.output[0]], [quantize.output[0]])
        session = runtime.session(part.SerializeToString())
        integers = exact_integers(real, model, before, factor_of(metadata, source))
        got = session.run(None, {before.output[0]: integers})[0]
        scale, zero = scales_of(model, quantize)
        numbers = (got.astype(np.float64) - int(zero)) * float(scale)
        kept = np.load(os.path.join(dump, layer["single"])) / factor_of(metadata, layer["tensor"])
        steps = np.abs(numbers - kept) / float(scale)
        assert steps.max() < 1.01 and (steps > 0.01).mean() < 0.01, (layer["tensor"], steps.max())
        checked += 1
    assert checked >= 5, checked


def main():
    with tempfile.TemporaryDirectory() as folder:
        data, out = os.path.join(folder, "d.npy"), os.path.join(folder, "out")
        image = np.random.default_rng(3).random((4, 1, 28, 28), dtype=np.float32)
        np.save(data, image)
        quench("quant", "-m", MODEL, "-d", data, "-r", "compare", "-b", "8", "--save-dir", out)
        dump = os.path.join(out, "dump")
        layers = json.load(open(os.path.join(dump, "index.json")))["layers"]
        quench("compare", "-qd", out, "-sh", "-sn", "2", "--save-dir", out)
        check_csv(out, dump, layers)
        check_single(os.path.join(out, "fashion_quantize.onnx"), dump, layers, image[:1])
        assert json.load(open(os.path.join(out, "compare.json")))["layers_compared"] == len(layers)
        pictures = glob.glob(os.path.join(out, "*.svg"))
        assert len(pictures) == 3, pictures
        for picture in pictures:
            assert len(xml.etree.ElementTree.parse(picture).getroot()) > 20
    print("compare: as numpy and ONNX Runtime have it")


main()
