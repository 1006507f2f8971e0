"""make_pytorch.py PATH: PATH, the weights of resnet18.py as torch.save writes a state dict: random ones. PyTorch need not be
installed: a pickle that asks for tensors, and their numbers, in a zip archive."""
import os
import struct
import sys
import zipfile

import numpy as np

WIDTHS, CLASSES = (8, 16, 24, 32), 10
STORAGES = {"float32": "FloatStorage", "int64": "LongStorage"}


# ---- Pickle, protocol 2 ----------------------------------------------------------------------------------------------


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def name(module, word):
    return f"c{module}\n{word}\n".encode()


def integers(numbers):
    return b"(" + b"".join(b"J" + struct.pack("<i", number) for number in numbers) + b"t"


def ordered_dict(items):
    pairs = b"".join(text(key) + value for key, value in items)
    return name("collections", "OrderedDict") + b")R" + (b"(" + pairs + b"u" if pairs else b"")


def tensor(key, array):
    strides = [step // array.itemsize for step in array.strides]
    storage = b"(" + text("storage") + name("torch", STORAGES[array.dtype.name]) + text(key) + text("cpu")
    storage += b"J" + struct.pack("<i", array.size) + b"tQ"
    return (name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + b"J" + struct.pack("<i", 0) + integers(array.shape) +
            integers(strides) + b"\x89" + ordered_dict([]) + b"tR")


def save(path, arrays):
    keys = [str(i) for i in range(len(arrays))]
    pickled = ordered_dict([(word, tensor(key, array)) for key, (word, array) in zip(keys, arrays.items())])
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    folder = os.path.basename(path).rpartition(".")[0]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/data.pkl", b"\x80\x02" + pickled + b".")
        archive.writestr(f"{folder}/byteorder", "little")
        for key, array in zip(keys, arrays.values()):
            archive.writestr(f"{folder}/data/{key}", array.tobytes())
        archive.writestr(f"{folder}/version", "3\n")


# ---- The network -----------------------------------------------------------------------------------------------------


class Weights:
    def __init__(self):
        self.arrays, self.numbers = {}, np.random.default_rng(7)

    def conv(self, word, outputs, inputs, size):
        scale = (2 / (inputs * size * size)) ** 0.5
        self.arrays[word + ".weight"] = (self.numbers.normal(size=(outputs, inputs, size, size)) * scale).astype(np.float32)

    def norm(self, word, width):
        for part, values in (("weight", np.ones(width)), ("bias", np.zeros(width)), ("running_mean", self.numbers.normal(size=width) / 9),
                             ("running_var", self.numbers.uniform(0.5, 1.5, width))):
            self.arrays[f"{word}.{part}"] = values.astype(np.float32)
        self.arrays[word + ".num_batches_tracked"] = np.array(100, np.int64)

    def block(self, word, inputs, width, shortcut):
        self.conv(word + ".conv1", width, inputs, 3)
        self.norm(word + ".bn1", width)
        self.conv(word + ".conv2", width, width, 3)
        self.norm(word + ".bn2", width)
        if shortcut:
            self.conv(word + ".downsample.0", width, inputs, 1)
            self.norm(word + ".downsample.1", width)


def write(path, channels=1):
    weights, inputs = Weights(), WIDTHS[0]
    weights.conv("conv1", inputs, channels, 7)
    weights.norm("bn1", inputs)
    for i, width in enumerate(WIDTHS):
        weights.block(f"layer{i + 1}.0", inputs, width, i > 0)
        weights.block(f"layer{i + 1}.1", width, width, False)
        inputs = width
    weights.arrays["fc.weight"] = (weights.numbers.normal(size=(CLASSES, inputs)) / 6).astype(np.float32)
    weights.arrays["fc.bias"] = np.zeros(CLASSES, np.float32)
    save(path, weights.arrays)


if __name__ == "__main__":
    write(sys.argv[1])
