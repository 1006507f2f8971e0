#!/usr/bin/env python3
"""make_train_values.py: writes train_values.h, what PyTorch's autograd says of the networks of test_train_networks.c.

Needs torch; the test does not. Inputs and weights are made by the same few lines there and here, so that only
the loss and, for each of them, the norm of its gradient and its product with random numbers are kept."""

import os

import numpy
import torch
import torch.nn.functional as F


def numbers(seed, *dims, scale=1.0):
    count = int(numpy.prod(dims)) if dims else 1
    state, out = seed * 2654435761 + 1 & 0xFFFFFFFF, numpy.empty(count)
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = (state >> 8) / (1 << 23) - 1
    return out.reshape(dims) * scale


class Maker:
    def __init__(self):
        self.tensors = []

    def __call__(self, *dims, scale=1.0):
        data = numbers(len(self.tensors) + 1, *dims, scale=scale)
        self.tensors.append(torch.tensor(data, dtype=torch.float64, requires_grad=True))
        return self.tensors[-1]


def mnist(new):
    """NNI's example, with fewer channels."""
    x = new(2, 1, 16, 16)
    x = F.max_pool2d(F.relu6(F.conv2d(x, new(4, 1, 5, 5), new(4)) * 3), 2)
    x = F.max_pool2d(F.relu6(F.conv2d(x, new(6, 4, 3, 3), new(6))), 2)
    x = F.relu6(F.linear(x.flatten(1), new(8, 24, scale=.3), new(8)))
    return F.linear(x, new(5, 8, scale=.5), new(5))


def residual(new):
    """Batch normalization with the statistics of the batch, a shortcut of its own."""
    x = new(3, 4, 8, 8)
    y = F.conv2d(x, new(6, 4, 3, 3, scale=.3), None, 2, 1)
    y = F.relu(F.batch_norm(y, None, None, new(6), new(6), True))
    y = F.batch_norm(F.conv2d(y, new(6, 6, 3, 3, scale=.3), None, 1, 1), None, None, new(6), new(6), True)
    y = F.relu(y + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1)))
    return F.linear(F.avg_pool2d(y, 4).flatten(1), new(5, 6), new(5))


def transformer(new):
    x = new(2, 5, 8)
    q, k, v = (torch.matmul(x, new(8, 8, scale=.5)) + new(8) for _ in range(3))
    heads = [t.reshape(2, 5, 2, 4).permute(0, 2, 1, 3) for t in (q, k, v)]
    scores = torch.matmul(heads[0], heads[1].transpose(2, 3)) / 2
    y = torch.matmul(F.softmax(scores, -1), heads[2]).permute(0, 2, 1, 3).reshape(2, 5, 8)
    y = F.layer_norm(x + y, (8,), new(8), new(8))
    y = y + torch.matmul(F.gelu(torch.matmul(y, new(8, 12, scale=.5))), new(12, 8, scale=.5))
    return torch.matmul(y.mean(1), new(8, 5))


def detector(new):
    """SiLU, Split, Concat, a depthwise convolution, nearest resizing, squeeze and excitation."""
    x = F.silu(F.conv2d(new(2, 3, 8, 8), new(8, 3, 3, 3, scale=.4), new(8), 2, 1))
    a, b = x.split(4, 1)
    b = F.silu(F.conv2d(b, new(4, 1, 3, 3, scale=.5), None, 1, 1, 1, 4))
    y = F.interpolate(torch.cat((a, b, a + b), 1), scale_factor=2, mode="nearest")
    y = y * torch.sigmoid(F.conv2d(y.mean((2, 3), keepdim=True), new(12, 12, 1, 1, scale=.4)))
    y = F.max_pool2d(y, 3, 1, 1)
    return F.conv2d(y, new(5, 12, 8, 8, scale=.05)).flatten(1)


def main():
    lines = ["/* What PyTorch %s says of the networks of test_train_networks.c; written by" % torch.__version__.split("+")[0],
             " * make_train_values.py. */", "#ifndef QN_TRAIN_VALUES_H", "#define QN_TRAIN_VALUES_H", "",
             "/* The loss, and of each tensor in the order in which they are made the norm of its gradient and",
             " * the gradient's product with random numbers. */"]
    for network in (mnist, residual, transformer, detector):
        new = Maker()
        scores = network(new)
        labels = torch.tensor([(2 * i + 1) % 5 for i in range(len(scores))])
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        values = ["%.9g" % loss.item()]
        for i, tensor in enumerate(new.tensors):
            gradient = tensor.grad.numpy()
            values += ["%.9g" % numpy.linalg.norm(gradient), "%.9g" % (gradient * numbers(100 + i, *gradient.shape)).sum()]
        lines.append("static const double %s_values[] = {" % network.__name__)
        lines += ["    " + ", ".join(values[i:i + 5]) + "," for i in range(0, len(values), 5)]
        lines[-1] = lines[-1][:-1] + "};"
    lines += ["", "#endif", ""]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train_values.h"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


main()
