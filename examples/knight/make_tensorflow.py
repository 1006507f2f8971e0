"""make_tensorflow.py PATH: a stand-in of ResNet-18 as a frozen graph of TensorFlow, with fewer channels and random weights:
`data_input` [N,3,32,32], which it turns to [N,32,32,3] as TensorFlow wants it, to `output` [N,10]."""
import os
import struct
import sys

import numpy as np

FLOAT, INT32 = 1, 3


# ---- Protocol buffers ------------------------------------------------------------------------------------------------


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a message: an integer, a text, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    return field(5, field(1, name) + field(2, value))


def shape_of(sizes):
    return b"".join(field(2, field(1, size)) for size in sizes)


class Graph:
    """GraphDef, node by node."""

    def __init__(self):
        self.nodes, self.numbers = [], np.random.default_rng(7)

    def add(self, kind, name, inputs, *attributes):
        names = b"".join(field(3, source) for source in inputs)
        self.nodes.append(field(1, field(1, name) + field(2, kind) + names + b"".join(attributes)))
        return name

    def constant(self, name, array):
        kind = FLOAT if array.dtype == np.float32 else INT32
        tensor = field(1, kind) + field(2, shape_of(array.shape)) + field(4, array.tobytes())
        return self.add("Const", name, [], attribute("dtype", field(6, kind)), attribute("value", field(8, tensor)))

    def conv(self, name, x, filters, stride, kernel=3):
        inputs = self.channels
        weights = self.numbers.normal(size=(kernel, kernel, inputs, filters)) * (2 / (kernel * kernel * inputs)) ** 0.5
        steps = field(1, field(3, b"".join(varint(n) for n in (1, stride, stride, 1))))
        y = self.add("Conv2D", name + "/conv", [x, self.constant(name + "/weights", weights.astype(np.float32))],
                     attribute("strides", steps), attribute("padding", field(2, "SAME")))
        stats = [self.constant(f"{name}/bn/{word}", values.astype(np.float32)) for word, values in (
            ("gamma", np.ones(filters)), ("beta", np.zeros(filters)), ("mean", self.numbers.normal(size=filters) / 9),
            ("variance", self.numbers.uniform(0.5, 1.5, filters)))]
        return self.add("FusedBatchNormV3", name + "/bn", [y, *stats], attribute("is_training", field(5, 0)),
                        attribute("epsilon", varint(4 << 3 | 5) + struct.pack("<f", 1e-3)))

    def block(self, name, x, filters, stride):
        y = self.add("Relu", name + "/relu1", [self.conv(name + "/1", x, filters, stride)])
        own, self.channels = self.channels, filters
        y = self.conv(name + "/2", y, filters, 1)
        if stride > 1:
            self.channels = own
            x = self.conv(name + "/short", x, filters, stride, 1)
            self.channels = filters
        return self.add("Relu", name + "/relu2", [self.add("AddV2", name + "/add", [x, y])])


def main():
    graph, path = Graph(), sys.argv[1]
    x = graph.add("Placeholder", "data_input", [], attribute("dtype", field(6, FLOAT)),
                  attribute("shape", field(7, shape_of([-1, 3, 32, 32]))))
    x = graph.add("Transpose", "to_nhwc", [x, graph.constant("perm", np.array([0, 2, 3, 1], np.int32))])
    graph.channels = 3
    x = graph.add("Relu", "relu", [graph.conv("first", x, 8, 1)])
    graph.channels = 8
    for stage, filters in enumerate((8, 16, 24, 32)):
        x = graph.block(f"stage{stage}/0", x, filters, 1 if stage == 0 else 2)
        x = graph.block(f"stage{stage}/1", x, filters, 1)
    x = graph.add("Mean", "mean", [x, graph.constant("axes", np.array([1, 2], np.int32))])
    weights = graph.numbers.normal(size=(32, 10)).astype(np.float32) / 6
    x = graph.add("MatMul", "dense", [x, graph.constant("dense/weights", weights)])
    graph.add("BiasAdd", "output", [x, graph.constant("dense/bias", np.zeros(10, np.float32))])
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"".join(graph.nodes))


main()
