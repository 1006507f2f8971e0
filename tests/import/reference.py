"""reference.py FRAMEWORK [MODEL...]: real models of QUENCH_DATA give in quench, and converted in ONNX Runtime, the outputs
that their framework gave (ref.npz). FRAMEWORK/models.py has a row for each; what a ref.npz holds, `read_reference` knows."""

import importlib.util
import os
import re
import sys

import numpy as np

from imported import check
from samples import DATA

HERE = os.path.dirname(os.path.abspath(__file__))


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


def models_of(framework):
    """The rows of FRAMEWORK/models.py. A row: the model below QUENCH_DATA, and what differs from the plain case:
      ref     NAME/ in front of its keys
      npz     the reference file, where it is not ref.npz
      make    a function that makes the inputs, where the file does not hold them
      change  what is done to each input
      give    a function that makes the outputs, where the file's are not those to compare with
      give_once  the same for ONNX Runtime alone, which rounds sums of products once
      rename  the file's name of an output or input -> the model's; None: the model does not have it as an output
      flags   of the commands
      labels  the outputs are labels: the share of them that may be others
      one_by_one  the samples of the reference are run one after the other"""
    spec = importlib.util.spec_from_file_location("models", os.path.join(HERE, framework, "models.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MODELS


def sliced(inputs, i):
    """Sample i alone."""
    return {name: array[i:i + 1] for name, array in inputs.items()}


def outputs_of(outputs, i):
    return {name: (array[i:i + 1], part) for name, (array, part) in outputs.items()}


def run(framework, path, own):
    model = os.path.join(DATA, path)
    if not os.path.exists(model):
        return None
    inputs, outputs = {}, {}
    if not ("make" in own and "give" in own):
        inputs, outputs = read_reference(os.path.join(os.path.dirname(model), own.get("npz", "ref.npz")), own)
    if "make" in own:
        inputs = own["make"]()
    if "give" in own:
        outputs = {name: (array, None) for name, array in own["give"]().items()}
    names = own.get("rename", {})
    inputs = {names.get(name, name): own.get("change", lambda x: x)(array) for name, array in inputs.items()}
    outputs = {names.get(name, name): value for name, value in outputs.items() if names.get(name, name) is not None}
    assert outputs, f"{path}: its ref.npz has no output for it"
    of_ort = {name: (array, None) for name, array in own["give_once"]().items()} if "give_once" in own else outputs
    count = len(next(iter(inputs.values()))) if own.get("one_by_one") else 0
    samples = [(sliced(inputs, i), outputs_of(outputs, i), outputs_of(of_ort, i)) for i in range(count)]
    return all([check(path, model, given, wanted, own.get("flags", []), own.get("labels"), once)
                for given, wanted, once in samples or [(inputs, outputs, of_ort)]])


def main():
    framework, chosen = sys.argv[1], sys.argv[2:]
    rows = [row for row in models_of(framework) if not chosen or any(word in row[0] for word in chosen)]
    done = [run(framework, *row) for row in rows]
    done = [good for good in done if good is not None]
    if not done:
        print(f"skipped: there are no models of {framework} in {DATA}")
        sys.exit(77)
    print(f"{sum(done)} of {len(done)} models of {framework} give what they gave there")
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
