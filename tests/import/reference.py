"""reference.py FRAMEWORK [MODEL...]: real models of QUENCH_DATA give in quench, and converted in ONNX Runtime, the outputs
that their framework gave (ref.npz). MODELS has a row for each; what a ref.npz holds, `read_reference` knows."""

import lzma
import os
import re
import sys

import numpy as np

from imported import check

DATA = os.environ.get("QUENCH_DATA", os.path.join("..", "shared", "data"))


def seeded(spec):
    return np.random.RandomState(int(spec[0])).random_sample(tuple(spec[1:]))


# Kinds of inputs: how the array that is stored becomes the input.
KINDS = {
    "in": lambda a: a,
    "seed_f32": lambda a: (seeded(a) * 2 - 1).astype(np.float32),
    "seed01_f32": lambda a: (((seeded(a) * 2 - 1).astype(np.float32)) + 1) / 2,
    "seed_u8": lambda a: np.random.RandomState(int(a[0])).randint(0, 256, tuple(a[1:])).astype(np.uint8),
    "seed_i8": lambda a: np.random.RandomState(int(a[0])).randint(-128, 128, tuple(a[1:])).astype(np.int8),
    "fill_u8": lambda a: np.full(tuple(a[1:]), a[0], np.uint8),
}
KEY = re.compile(r"^(?:(?P<model>[^:]+?)/)?(?P<kind>in|out|seed\w*?_[fiu]\d+|fill_u8|u8\w*)"
                 r"(?::(?P<name>[^\[]*?))?(?: \([^)]*\))?(?P<part>\[[^\]]*\])?$")


def slice_of(text):
    """"[..., ::4]" as an index."""
    parts = [part.strip() for part in text[1:-1].split(",")]
    return tuple(Ellipsis if part == "..." else slice(*(int(n) if n else None for n in part.split(":"))) for part in parts)


def enlarge(picture, kind, own):
    """A small picture: `repeatN` in its key, or the row, enlarges it; `hwc`: its axes are height, width, channels."""
    found = re.search(r"repeat(\d+)", kind)
    times = int(found.group(1)) if found else own.get("repeat", 1)
    first = 0 if "hwc" in kind else own.get("height_axis", 1)
    return np.repeat(np.repeat(picture, times, first), times, first + 1)


def read_reference(path, own):
    """Inputs, and outputs with the part of them that is stored, of the row's `ref` among the models of the file."""
    inputs, outputs = {}, {}
    with np.load(path) as arrays:
        for key in arrays.files:
            found = KEY.match(key)
            if key == "note" or not found or (found["model"] or "") != own.get("ref", ""):
                continue
            kind, name, array = found["kind"], found["name"] or "", arrays[key]
            if kind == "out":
                outputs[name] = (array, slice_of(found["part"]) if found["part"] else None)
            elif kind.startswith("u8"):
                inputs[name] = enlarge(array, kind, own)
            else:
                inputs[name] = KINDS[kind](array)
    return inputs, outputs


def cifar(count):
    """CIFAR-10's first test images, [count, 3, 32, 32] of 0..255."""
    with lzma.open(os.path.join(DATA, "cifar10", "test_first4000.bin.xz")) as file:
        records = np.frombuffer(file.read(3073 * count), np.uint8).reshape(count, 3073)
    return records[:, 1:].reshape(count, 3, 32, 32).astype(np.float32)


def caffe_mean():
    """The mean image of a binaryproto, whose data are the last 3 * 32 * 32 floats but for nothing."""
    with open(os.path.join(DATA, "caffe", "cifar10_quick", "mean.binaryproto"), "rb") as file:
        content = file.read()
    at = content.index(b"\x2a\x80\x60") + 3  # field 5, 12288 bytes
    return np.frombuffer(content[at:at + 12288], "<f4").reshape(3, 32, 32)


# A row: the model below QUENCH_DATA, and what differs from the plain case:
#   ref     NAME/ in front of its keys
#   make    the inputs, where the file does not hold them
#   change  what is done to each input
#   rename  the file's name of an output or input -> the model's; None: the model does not have it as an output
#   flags   of the commands
MODELS = {
    "caffe": [
        ("cifar10_full_v1/cifar10_full.prototxt",
         {"make": lambda: {"data": cifar(32) - caffe_mean()}, "flags": ["-is", "32", "3", "32", "32"],
          "rename": {"ip1": None}}),
        ("hyperlpr_finemapping/HorizonalFinemapping.prototxt", {"rename": {"relu4": "dense"}}),
        ("hyperlpr_ssd/mininet_ssd_v1.prototxt",
         {"repeat": 4, "height_axis": 2, "change": lambda x: ((x - np.float32(127.5)) * np.float32(0.017)),
          "rename": {"ssd0_concat1": None, "flatten0": None, "concat0": None}}),
        ("mtcnn/det1.prototxt", {"ref": "det1", "flags": ["-is", "1", "3", "37", "50"]}),
        ("mtcnn/det2.prototxt", {"ref": "det2", "flags": ["-is", "2", "3", "24", "24"]}),
    ] + [(f"opencv_layers/{name}.prototxt", {"ref": name, "rename": rename}) for name, rename in (
        ("layer_convolution", {}), ("layer_batch_norm", {}), ("layer_concat", {}), ("layer_concat_optim", {}),
        ("layer_dropout", {}), ("layer_eltwise", {}), ("layer_lrn_channels", {}), ("layer_pooling_max", {}),
        ("layer_prelu_fc", {}), ("layer_softmax", {}), ("shared_weights", {"concat": "sum"}),
        ("channel_norm", {"reshape_back": "out"}), ("layer_interp", {}))],
}


def run(framework, path, own):
    model = os.path.join(DATA, framework, path)
    if not os.path.exists(model):
        return None
    inputs, outputs = read_reference(os.path.join(os.path.dirname(model), own.get("npz", "ref.npz")), own)
    if "make" in own:
        inputs = own["make"]()
    names = own.get("rename", {})
    inputs = {names.get(name, name): own.get("change", lambda x: x)(array) for name, array in inputs.items()}
    outputs = {names.get(name, name): value for name, value in outputs.items() if names.get(name, name) is not None}
    assert outputs, f"{path}: its ref.npz has no output for it"
    return check(path, model, inputs, outputs, own.get("flags", []))


def main():
    framework, chosen = sys.argv[1], sys.argv[2:]
    rows = [row for row in MODELS[framework] if not chosen or any(word in row[0] for word in chosen)]
    done = [run(framework, *row) for row in rows]
    done = [good for good in done if good is not None]
    if not done:
        print(f"skipped: there are no models of {framework} in {DATA}")
        sys.exit(77)
    print(f"{sum(done)} of {len(done)} models of {framework} give what they gave there")
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
