"""make_paddle.py FOLDER: resnet18.pdmodel and resnet18.pdiparams, a small residual network with random weights that
stands in for ResNet-18. PaddlePaddle need not be installed: both files are simple enough to be written by hand."""
import os
import random
import struct
import sys

FLOAT32, DENSE, FEED, FETCH = 5, 7, 9, 10
INT, FLOAT, TEXT, INTS, BOOL = 0, 1, 2, 3, 6


# ---- Protocol buffers -------------------------------------------------------------------------------


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, value):
    """An integer, a float, or bytes (text, a message)."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(dims):
    return field(1, FLOAT32) + b"".join(field(2, dim) for dim in dims)


def attribute(name, value):
    kinds = {bool: (BOOL, 10), int: (INT, 3), float: (FLOAT, 4), str: (TEXT, 5), list: (INTS, 6)}
    kind, number = kinds[type(value)]
    parts = value if isinstance(value, list) else [int(value) if isinstance(value, bool) else value]
    return field(1, name) + field(2, kind) + b"".join(field(number, part) for part in parts)


# ---- A program --------------------------------------------------------------------------------------


class Program:
    """Operators over named variables; parameters have random contents."""

    def __init__(self):
        self.variables, self.operators, self.parameters, self.count = [], [], {}, 0

    def variable(self, name, dims, kind=DENSE, lives_on=False):
        kind = field(1, kind) + (field(3, field(1, tensor(dims))) if kind == DENSE else b"")
        self.variables.append(field(1, name) + field(2, kind) + field(3, int(lives_on)))
        return name

    def parameter(self, name, dims, low, high):
        count = 1
        for dim in dims:
            count *= dim
        self.parameters[name] = (dims, [random.uniform(low, high) for _ in range(count)])
        return self.variable(name, dims, lives_on=True)

    def add(self, kind, inputs, output, **attributes):
        """Returns the output's variable."""
        slot, name = output, f"{kind}_{self.count}.tmp_0"
        self.count += 1
        self.variable(name, [-1])
        self.operator(kind, inputs, {slot: name}, attributes)
        return name

    def operator(self, kind, inputs, outputs, attributes):
        message = b"".join(field(1, field(1, slot) + field(2, name)) for slot, name in inputs.items())
        message += b"".join(field(2, field(1, slot) + field(2, name)) for slot, name in outputs.items())
        message += field(3, kind) + b"".join(field(4, attribute(*item)) for item in attributes.items())
        self.operators.append(message)

    def conv(self, x, inputs, filters, stride):
        number = self.count
        weights = self.parameter(f"conv2d_{number}.w_0", [filters, inputs, 3, 3], -0.3, 0.3)
        y = self.add("conv2d", {"Input": x, "Filter": weights}, "Output", strides=[stride, stride], paddings=[1, 1],
                     dilations=[1, 1], groups=1, padding_algorithm="EXPLICIT", data_format="NCHW")
        parts = {slot: self.parameter(f"batch_norm_{number}.{word}", [filters], low, high) for slot, word, low, high in (
            ("Scale", "w_0", 0.5, 1.5), ("Bias", "b_0", -0.5, 0.5), ("Mean", "w_1", -0.5, 0.5), ("Variance", "w_2", 0.5, 1.5))}
        return self.add("batch_norm", {"X": y, **parts}, "Y", is_test=True, epsilon=1e-5, data_layout="NCHW")

    def save(self, path):
        block = field(1, 0) + field(2, -1) + b"".join(field(3, v) for v in self.variables)
        block += b"".join(field(4, operator) for operator in self.operators)
        with open(path + ".pdmodel", "wb") as file:
            file.write(field(1, block) + field(4, field(1, 0)))
        with open(path + ".pdiparams", "wb") as file:
            for _, (dims, numbers) in sorted(self.parameters.items()):
                description = tensor(dims)
                file.write(struct.pack("<IQIi", 0, 0, 0, len(description)) + description)
                file.write(struct.pack(f"<{len(numbers)}f", *numbers))


def write(folder, classes=10):
    random.seed(7)
    p = Program()
    p.variable("feed", [], FEED, True)
    p.variable("fetch", [], FETCH, True)
    image = p.variable("image", [-1, 3, -1, -1])
    p.operator("feed", {"X": "feed"}, {"Out": image}, {"col": 0})
    x = p.add("relu", {"X": p.conv(image, 3, 16, 2)}, "Out")
    y = p.conv(p.add("relu", {"X": p.conv(x, 16, 16, 1)}, "Out"), 16, 16, 1)
    x = p.add("relu", {"X": p.add("elementwise_add", {"X": x, "Y": y}, "Out", axis=-1)}, "Out")
    x = p.add("pool2d", {"X": x}, "Out", pooling_type="avg", ksize=[1, 1], strides=[1, 1], paddings=[0, 0], adaptive=True)
    x = p.add("flatten_contiguous_range", {"X": x}, "Out", start_axis=1, stop_axis=3)
    x = p.add("matmul_v2", {"X": x, "Y": p.parameter("linear.w_0", [16, classes], -0.5, 0.5)}, "Out", trans_x=False, trans_y=False)
    x = p.add("elementwise_add", {"X": x, "Y": p.parameter("linear.b_0", [classes], -0.5, 0.5)}, "Out", axis=-1)
    p.operator("fetch", {"X": x}, {"Out": "fetch"}, {"col": 0})
    os.makedirs(folder, exist_ok=True)
    p.save(os.path.join(folder, "resnet18"))


if __name__ == "__main__":
    write(sys.argv[1])
