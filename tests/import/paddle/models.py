"""Models of QUENCH_DATA/paddle and what is peculiar to each (reference.py)."""

import gzip
import lzma
import os
import shutil
import tempfile

import numpy as np
from PIL import Image

from samples import DATA

TEMPORARY = tempfile.TemporaryDirectory()
FOLDER = TEMPORARY.name
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def blazeface():
    """The program is stored compressed."""
    source = os.path.join(DATA, "paddle", "blazeface_nms")
    if not os.path.exists(source):
        return source
    with lzma.open(os.path.join(source, "model.pdmodel.xz")) as file, open(os.path.join(FOLDER, "model.pdmodel"), "wb") as out:
        shutil.copyfileobj(file, out)
    for name in ("model.pdiparams", "ref.npz"):
        shutil.copy(os.path.join(source, name), FOLDER)
    return os.path.join(FOLDER, "model.pdmodel")


def picture(label):
    """The middle 224 x 224 of a picture, [3, 224, 224], as the model wants it."""
    folder = os.path.join(DATA, "imagenet")
    name = next(name for name in sorted(os.listdir(folder)) if name.startswith(f"{label:03d}_"))
    image = Image.open(os.path.join(folder, name)).convert("RGB")
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
    return ((pixels - np.array(MEAN, np.float32)) / np.array(STD, np.float32)).transpose(2, 0, 1)


def digits():
    with gzip.open(os.path.join(DATA, "mnist", "t10k-images-idx3-ubyte.gz")) as file:
        pixels = np.frombuffer(file.read()[16:], np.uint8)
    return (pixels.reshape(-1, 784) / 127.5 - 1).astype(np.float32)


def parameter(name):
    """The numbers stand at the end of a parameter's file, before them its dimensions as varints of one or two bytes."""
    shape = {"fc_0.w_0": (784, 100), "fc_1.w_0": (100, 100), "fc_2.w_0": (100, 10), "fc_0.b_0": (100,), "fc_1.b_0": (100,), "fc_2.b_0": (10,)}[name]
    with open(os.path.join(DATA, "paddle", "mnist_mlp", name), "rb") as file:
        return np.frombuffer(file.read()[-4 * int(np.prod(shape)):], np.float32).reshape(shape)


def mnist_by_numpy():
    """What the network gives, computed here, right for 97.24 % of the digits."""
    x = digits()
    for i in range(3):
        x = x @ parameter(f"fc_{i}.w_0") + parameter(f"fc_{i}.b_0")
        x = np.maximum(x, 0) if i < 2 else x
    x = np.exp(x - x.max(axis=1, keepdims=True))
    with gzip.open(os.path.join(DATA, "mnist", "t10k-labels-idx1-ubyte.gz")) as file:
        labels = np.frombuffer(file.read()[8:], np.uint8)
    assert round(100 * float((x.argmax(axis=1) == labels).mean()), 2) == 97.24
    return {"save_infer_model/scale_0.tmp_4": (x / x.sum(axis=1, keepdims=True)).astype(np.float32)}


def meter():
    """Three pictures' shares, as the manifest has them."""
    return {"save_infer_model/scale_0.tmp_0": np.array(
        [[.58021, .17481, .24498], [.49263, .21439, .29298], [.23637, .36151, .40213]], np.float32)}


MODELS = [
    ("paddle/pp_lcnet_x0_25_textline_ori/inference.json", {}),
    ("paddle/mobilenetv3_small_x0_35_meter/inference.pdmodel",
     {"make": lambda: {"x": np.stack([picture(label) for label in (0, 100, 200)])}, "give": meter}),
    ("paddle/mnist_mlp/__model__", {"make": lambda: {"image": digits().reshape(-1, 1, 28, 28)}, "give": mnist_by_numpy}),
    (blazeface(), {"change": lambda x: x if x.ndim == 2 else (
        (x.transpose(2, 0, 1)[None] - np.array([123, 117, 104.0]).reshape(3, 1, 1)) / 127.502231).astype(np.float32)}),
]
