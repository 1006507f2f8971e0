"""preprocess.py: labelled data as the arrays that each model wants."""

import lzma
import os
import wave

import numpy as np
from PIL import Image

from models import DATA


def read_pairs(*path):
    with open(os.path.join(DATA, *path), encoding="utf-8") as file:
        return [line.rstrip("\n").split(" ", 1) for line in file if line.strip()]


# ---- ImageNet -------------------------------------------------------------------------------------------


def crop(name):
    image = Image.open(os.path.join(DATA, "imagenet", name)).convert("RGB")
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    return np.asarray(image.crop((left, top, left + 224, top + 224)))


def imagenet(order, mean, std):
    """Crops of all images, channels first, and their labels. order: "RGB" or "BGR"."""
    pairs = read_pairs("imagenet", "labels.txt")
    pixels = np.stack([crop(name) for name, _ in pairs]).astype(np.float32)
    if order == "BGR":
        pixels = pixels[..., ::-1]
    pixels = (pixels - np.float32(mean)) / np.float32(std)
    labels = np.array([int(label) for _, label in pairs])
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)), labels


# ---- CIFAR-10 -------------------------------------------------------------------------------------------


def cifar10(mean, std):
    with lzma.open(os.path.join(DATA, "cifar10", "test_first4000.bin.xz")) as file:
        records = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / np.float32(255)
    column = (3, 1, 1)
    pixels = (pixels - np.float32(mean).reshape(column)) / np.float32(std).reshape(column)
    return pixels, records[:, 0].astype(int)


# ---- COCO -----------------------------------------------------------------------------------------------


def letterbox(image, size, centred):
    """The image scaled to fit a square filled with grey; also scale and offset."""
    scale = size / max(image.size)
    width, height = (round(side * scale) for side in image.size)
    left, top = ((size - width) // 2, (size - height) // 2) if centred else (0, 0)
    canvas = Image.new("RGB", (size, size), (114, 114, 114))
    canvas.paste(image.resize((width, height), Image.BILINEAR), (left, top))
    return np.asarray(canvas), scale, left, top


def boxes_of(name, width, height):
    """Rows of class, x0, y0, x1, y1 in pixels of the image."""
    path = os.path.join(DATA, "coco", "labels", name + ".txt")
    rows = np.loadtxt(path, ndmin=2) if os.path.getsize(path) else np.zeros((0, 5))
    centre, half = rows[:, 1:3] * (width, height), rows[:, 3:5] * (width, height) / 2
    return np.hstack([rows[:, :1], centre - half, centre + half])


def coco(size, centred):
    """Letterboxed images (N, size, size, 3), and for each its boxes, scale and offset."""
    names = [line[0] for line in read_pairs("coco", "val.txt")]
    pixels, truth = [], []
    for name in names:
        image = Image.open(os.path.join(DATA, "coco", "images", name + ".jpg")).convert("RGB")
        canvas, *place = letterbox(image, size, centred)
        pixels.append(canvas)
        truth.append((boxes_of(name, *image.size), place))
    return np.stack(pixels), truth


# ---- Words and sound ----------------------------------------------------------------------------------------


def words():
    """Rendered words in 48 x 320, and what they say."""
    pairs = read_pairs("ocr", "labels.txt")
    pixels = np.zeros((len(pairs), 3, 48, 320), np.float32)
    for i, (name, _) in enumerate(pairs):
        image = Image.open(os.path.join(DATA, "ocr", "images", name)).convert("L")
        grey = np.asarray(image).astype(np.float32) / np.float32(127.5) - 1
        pixels[i, :, :, :grey.shape[1]] = grey[:, :320]
    return pixels, [text for _, text in pairs]


def alphabet():
    with open(os.path.join(DATA, "ocr", "en_dict.txt"), encoding="utf-8") as file:
        return [""] + [line.rstrip("\n") for line in file]


def speech(size=512, context=64):
    """Chunks of `size` samples, each with the end of the one before in front of it."""
    with wave.open(os.path.join(DATA, "audio", "silero_test_30s.wav")) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    sound = sound.astype(np.float32) / np.float32(32768)
    count = len(sound) // size
    padded = np.concatenate([np.zeros(context, np.float32), sound[:count * size]])
    return np.stack([padded[i * size:i * size + size + context] for i in range(count)])
