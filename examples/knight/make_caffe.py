"""make_caffe.py PATH: PATH.prototxt and PATH.caffemodel, a stand-in of ResNet-18 as a network of Caffe, with fewer channels and
random weights: convolutions with BatchNorm and Scale, sums, an average and a product. Caffe need not be installed."""
import os
import sys

import numpy as np


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, contents):
    """A field of bytes: text, bytes or a message."""
    contents = contents.encode() if isinstance(contents, str) else contents
    return varint(number << 3 | 2) + varint(len(contents)) + contents


class Net:
    def __init__(self, size):
        self.text = f'name: "ResNet-18"\ninput: "data"\ninput_dim: 1 input_dim: 3 input_dim: {size} input_dim: {size}\n'
        self.weights, self.numbers, self.count = b"", np.random.default_rng(7), 0

    def layer(self, kind, bottoms, params="", blobs=(), in_place=False):
        self.count += 1
        name = f"{kind.lower()}{self.count}"
        top = bottoms[0] if in_place else name
        self.text += f'layer {{ name: "{name}" type: "{kind}" ' + " ".join(f'bottom: "{b}"' for b in bottoms) + f' top: "{top}" {params} }}\n'
        if blobs:
            shapes = [field(7, field(1, b"".join(varint(n) for n in b.shape))) for b in blobs]
            self.weights += field(100, field(1, name) + field(2, kind) + b"".join(
                field(7, shape + field(5, b.astype("<f4").tobytes())) for shape, b in zip(shapes, blobs)))
        return top

    def conv(self, bottom, inputs, outputs, stride, relu=True):
        weights = self.numbers.normal(size=(outputs, inputs, 3, 3)) / (3 * inputs ** 0.5)
        top = self.layer("Convolution", [bottom], f"convolution_param {{ num_output: {outputs} kernel_size: 3 pad: 1 stride: {stride} "
                         "bias_term: false }", [weights])
        numbers = self.numbers.uniform(0.5, 1.5, (4, outputs))
        self.layer("BatchNorm", [top], "batch_norm_param { use_global_stats: true }", [numbers[0] - 1, numbers[1], np.ones(1)], True)
        self.layer("Scale", [top], "scale_param { bias_term: true }", [numbers[2], numbers[3] - 1], True)
        return self.layer("ReLU", [top], in_place=True) if relu else top

    def save(self, path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path + ".prototxt", "w", encoding="utf-8") as file:
            file.write(self.text)
        with open(path + ".caffemodel", "wb") as file:
            file.write(field(1, "ResNet-18") + self.weights)


def write(path, size=32, classes=10):
    net, channels = Net(size), 8
    x = net.conv("data", 3, channels, 2)
    for outputs, stride in ((8, 1), (16, 2), (32, 2)):
        side = x if stride == 1 else net.conv(x, channels, outputs, stride, relu=False)
        y = net.conv(net.conv(x, channels, outputs, stride), outputs, outputs, 1, relu=False)
        x, channels = net.layer("ReLU", [net.layer("Eltwise", [side, y])], in_place=True), outputs
    x = net.layer("Pooling", [x], "pooling_param { pool: AVE global_pooling: true }")
    x = net.layer("InnerProduct", [x], f"inner_product_param {{ num_output: {classes} }}",
                  [net.numbers.normal(size=(classes, channels)) / channels ** 0.5, np.zeros(classes)])
    net.layer("Softmax", [x])
    net.save(path)


if __name__ == "__main__":
    write(sys.argv[1])
