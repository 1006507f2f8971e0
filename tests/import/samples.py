"""samples.py: data of QUENCH_DATA that reference values were made of."""

import lzma
import os

import numpy as np

DATA = os.environ.get("QUENCH_DATA", os.path.join("..", "shared", "data"))


def cifar(count):
    """CIFAR-10's first test images, [count, 3, 32, 32] of 0..255."""
    with lzma.open(os.path.join(DATA, "cifar10", "test_first4000.bin.xz")) as file:
        records = np.frombuffer(file.read(3073 * count), np.uint8).reshape(count, 3073)
    return records[:, 1:].reshape(count, 3, 32, 32).astype(np.float32)
