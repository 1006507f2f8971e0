"""Mixed widths, inputs of integers, a model in halves: ONNX Runtime gives what quench gives, from the file alone."""
import filecmp
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import runtime

QUENCH = os.environ["QUENCH"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples", "fashion.onnx")
METHODS = ["kl", "min_max", "mse", "percentile", "kl_v2"]


def quench(*arguments):
    subprocess.run([QUENCH, *arguments], check=True, stdout=subprocess.DEVNULL)


def integers(path, x):
    """What the input takes, by the scale that the DequantizeLinear behind it has."""
    graph = onnx.load(path).graph
    name = graph.input[0].name
    reader = next(node for node in graph.node if name in node.input)
    if reader.op_type in ("QuantizeLinear", "Cast"):
        return x
    assert reader.op_type == "DequantizeLinear", reader.op_type
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    scale, zero = constants[reader.input[1]], constants[reader.input[2]]
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(zero.dtype)


def outputs(path, x, folder):
    np.save(os.path.join(folder, "in.npy"), x)
    quench("infer", path, "-i", os.path.join(folder, "in.npy"), "-o", folder, "--quiet")
    session = runtime.session(path)
    return (np.load(os.path.join(folder, "logits.npy")),
            session.run(None, {session.get_inputs()[0].name: x})[0])


def check(what, folder, x, bound, *options, model=MODEL):
    """Both engines on the file that the options make."""
    data = os.path.join(folder, "x.npy")
    np.save(data, x)
    quench("quant", "-m", model, "-d", data, "--save-dir", folder, *options)
    path = os.path.join(folder, "fashion_quantize.onnx")
    ours, theirs = outputs(path, integers(path, x), folder)
    assert ours.dtype == theirs.dtype
    apart = np.abs(ours - theirs).max() / np.abs(ours).max()
    print(f"{what}: quench and ONNX Runtime differ by {apart:.2g} of the largest output")
    return apart <= bound


def write_mix(folder):
    """16 bits at the ends, another method for every node."""
    quench("quant", "-m", MODEL, "-gt", "-ams", "IOhigh", "-amr", "0.6", "--save-dir", folder)
    path = os.path.join(folder, "fashion_mix.json")
    with open(path, encoding="utf-8") as file:
        mix = json.load(file)
    for i, node in enumerate(mix.values()):
        node["mode"] = METHODS[i % len(METHODS)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(mix, file)
    return path


def write_halves(folder):
    """The model with float16 for all its floats."""
    model = onnx.load(MODEL)
    constants = [a.t for node in model.graph.node for a in node.attribute if a.HasField("t")]
    for t in [*model.graph.initializer, *constants]:
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(onnx.numpy_helper.from_array(
                onnx.numpy_helper.to_array(t).astype(np.float16), t.name))
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    os.mkdir(os.path.join(folder, "halves"))
    path = os.path.join(folder, "halves", "fashion.onnx")
    onnx.save(model, path)
    return path


def write_biased(folder):
    """The model with a first bias far larger than all that is added to it."""
    model = onnx.load(MODEL)
    name = next(node.input[2] for node in model.graph.node if node.op_type == "BatchNormalization")
    bias = next(t for t in model.graph.initializer if t.name == name)
    numbers = onnx.numpy_helper.to_array(bias).copy()
    numbers[0] = 1e6
    bias.CopyFrom(onnx.numpy_helper.from_array(numbers, name))
    os.mkdir(os.path.join(folder, "biased"))
    path = os.path.join(folder, "biased", "fashion.onnx")
    onnx.save(model, path)
    return path


def same_by_scales(folder, x, *options):
    """The scale file that quench wrote gives the same model, byte for byte."""
    model, data = write_biased(folder), os.path.join(folder, "x.npy")
    made = [os.path.join(folder, name) for name in ("measured", "loaded")]
    np.save(data, x)
    quench("quant", "-m", model, "-d", data, "-gsj", "--save-dir", made[0], *options)
    quench("quant", "-m", model, "-lsj", os.path.join(made[0], "fashion_scales.json"), "--save-dir", made[1])
    return filecmp.cmp(*(os.path.join(path, "fashion_quantize.onnx") for path in made), shallow=False)


def main():
    random = np.random.default_rng(5)
    real = (random.random((8, 1, 28, 28)) * 3 - 1).astype(np.float32)
    pixels = random.integers(0, 256, (8, 1, 28, 28)).astype(np.float32)
    inside = ["--mean", "127", "--std", "60"]
    with tempfile.TemporaryDirectory() as folder:
        good = [
            check("pixels as they are", folder, pixels, 1e-6, "-b", "8", "-qid", "uint8", *inside),
            check("int8 by a scale", folder, real, 1e-6, "-b", "8", "-qid", "int8"),
            check("uint8 by a scale", folder, real, 1e-6, "-b", "8", "-qid", "uint8"),
            check("pixels into 16 bits", folder, pixels, 1e-3, "-b", "16", "-qid", "uint8", *inside),
            check("int16", folder, real, 1e-3, "-b", "16", "-qid", "int16"),
            check("mixed widths", folder, real, 2e-2, "-mc", write_mix(folder)),
            check("halves", folder, real.astype(np.float16), 1e-3, model=write_halves(folder)),
            same_by_scales(folder, real, "--bits", "Conv=w8a16"),
        ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
