"""Models and data of the examples: model/fashion.onnx and pictures of clothes (Debian's dataset-fashion-mnist, or noise
where it is not installed), model/squares.onnx, which finds coloured squares, and pictures with such squares."""
import gzip
import os
import shutil
import struct
import zlib

import numpy as np

FASHION = "/usr/share/datasets/fashion-mnist"
STEPS, BATCH, PICTURES = 5, 10, 40


# ---- Files -------------------------------------------------------------------------------------------------------


def write_png(path, pixels):
    """pixels: [height, width] grey or [height, width, 3] RGB, uint8."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    colour = 0 if pixels.ndim == 2 else 2

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a protobuf message: an integer, a text, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, array):
    dims = b"".join(field(1, size) for size in array.shape)
    return field(5, dims + field(2, 1) + field(8, name) + field(9, array.astype("<f4").tobytes()))


def ints(name, values):
    numbers = b"".join(field(8, value) for value in values)
    return field(5, field(1, name) + numbers + field(20, 7))


def node(kind, inputs, output, attributes=b""):
    names = b"".join(field(1, name) for name in inputs)
    return field(1, names + field(2, output) + field(3, output) + field(4, kind) + attributes)


def value(number, name, shape):
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, dims))))


# ---- A detector of squares ------------------------------------------------------------------------------------------


def write_detector(path):
    """[1,3,64,64] to a head of YOLOv5's form [1,7,8,8] for one anchor of 8 x 8 pixels: the means of the colours of every
    cell say whether something is there, and whether it is red or green. Sizes and places are the anchor's and cell's."""
    red, green, blue = np.eye(3)
    head = np.zeros((7, 3, 8, 8))
    head[4] = (red + green - 2 * blue)[:, None, None] * 16 / 64
    head[5] = (red - green)[:, None, None] * 16 / 64
    head[6] = -head[5]
    nodes = node("Conv", ["images", "sharp"], "colours") + node("Relu", ["colours"], "clean")
    nodes += node("Conv", ["clean", "head", "bias"], "output", ints("strides", [8, 8]))
    weights = tensor("sharp", np.eye(3).reshape(3, 3, 1, 1)) + tensor("head", head)
    weights += tensor("bias", np.array([0, 0, 0, 0, -8, 0, 0]))
    ends = value(11, "images", [1, 3, 64, 64]) + value(12, "output", [1, 7, 8, 8])
    graph = nodes + field(2, "squares") + weights + ends
    with open(path, "wb") as file:
        file.write(field(1, 8) + field(2, "make_data.py") + field(7, graph) + field(8, field(2, 13)))


def write_squares(numbers, i):
    """A picture with up to six squares in cells of their own, and YOLO's label file."""
    pixels = numbers.integers(0, 40, (64, 64, 3), np.uint8)
    lines = []
    for cell in numbers.choice(64, numbers.integers(1, 7), replace=False):
        row, column, kind = cell // 8, cell % 8, int(numbers.integers(2))
        pixels[8 * row : 8 * row + 8, 8 * column : 8 * column + 8, kind] += np.uint8(200)
        lines.append(f"{kind} {(column + .5) / 8} {(row + .5) / 8} 0.125 0.125\n")
    write_png(f"data/squares/images/{i:03}.png", pixels)
    with open(f"data/squares/labels/{i:03}.txt", "w", encoding="utf-8") as file:
        file.writelines(lines)


# ---- Clothes ----------------------------------------------------------------------------------------------------------


def clothes(numbers):
    """Pictures [n, 28, 28] and classes."""
    count = STEPS * BATCH
    try:
        with gzip.open(f"{FASHION}/t10k-images-idx3-ubyte.gz") as file:
            pictures = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
        with gzip.open(f"{FASHION}/t10k-labels-idx1-ubyte.gz") as file:
            return pictures[:count], np.frombuffer(file.read(), np.uint8, offset=8)[:count]
    except OSError:
        print(f"{FASHION} is not there: noise takes the place of clothes, and accuracy means nothing")
        return numbers.integers(0, 256, (count, 28, 28), np.uint8), numbers.integers(0, 10, count)


def write_clothes(numbers):
    pictures, classes = clothes(numbers)
    with open("data/clothes/labels/labels.txt", "w", encoding="utf-8") as file:
        for i, (picture, kind) in enumerate(zip(pictures, classes)):
            write_png(f"data/clothes/images/{i:03}.png", picture)
            file.write(f"{i:03}.png {kind}\n")
    x = pictures.astype(np.float32).reshape(STEPS, BATCH, 1, 28, 28) / 255
    np.save("data/fashion_input_b10_s5.npy", x)
    np.save("data/fashion_label_b10_s5.npy", classes.reshape(STEPS, BATCH))


def main():
    numbers = np.random.default_rng(1)
    for folder in ("clothes/images", "clothes/labels", "squares/images", "squares/labels"):
        os.makedirs(f"data/{folder}", exist_ok=True)
    os.makedirs("model", exist_ok=True)
    shutil.copyfile("../fashion.onnx", "model/fashion.onnx")
    write_clothes(numbers)
    write_detector("model/squares.onnx")
    for i in range(PICTURES):
        write_squares(numbers, i)


main()
