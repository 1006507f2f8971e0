"""Files of old opsets, written again in their own: what checks, runs and gives the same as before."""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

from files import FLOAT, infer, model, quench
from runtime import session

SEED = np.random.default_rng(3)


def floats(*shape):
    return SEED.standard_normal(shape).astype(np.float32)


def case(op, opset, shapes, constants=None, outputs=("y",), **attributes):
    return op, opset, shapes, constants or {}, outputs, attributes


BROADCAST = [(op, b, axis) for op in ("Add", "Mul", "Sub", "Div", "Pow")
             for b, axis in ((floats(3), 1), (floats(3, 4), -3), (np.float32([2]), None), (floats(5), None))]
CASES = [
    case("Upsample", 7, {"x": [1, 2, 3, 4]}, scales=[1.0, 1.0, 2.0, 3.0]),
    case("Upsample", 8, {"x": [1, 2, 3, 4]}, scales=[1.0, 1.0, 2.0, 2.0], mode="linear"),
    case("Upsample", 9, {"x": [1, 2, 3, 4]}, {"s": np.float32([1, 1, 2, 2])}),
    case("Upsample", 9, {"x": [1, 1, 3, 4], "s": np.float32([1, 1, 2, 3])}),
    case("Resize", 10, {"x": [1, 1, 4, 5]}, {"s": np.float32([1, 1, 2, 1.5])}, mode="nearest"),
    case("Resize", 10, {"x": [1, 1, 4, 7]}, {"s": np.float32([1, 1, 0.6, 0.45])}, mode="nearest"),
    case("Resize", 10, {"x": [1, 1, 4, 7]}, {"s": np.float32([1, 1, 0.6, 2])}, mode="linear"),
    case("Dropout", 6, {"x": [2, 3]}, outputs=("y", "m"), is_test=1),
    case("Dropout", 7, {"x": [2, 3]}, outputs=("y", "m")),
    case("GroupNormalization", 18, {"x": [1, 4, 8, 8]}, {"s": floats(2), "b": floats(2)}, num_groups=2),
    case("Add", 6, {"x": [2, 3, 4, 5], "b": [3]}, broadcast=1, axis=1),
    case("Tile", 1, {"x": [2, 3, 4]}, {"tiles": np.float32(3), "axis": np.float32(1)}),
] + [case(op, 6, {"x": [2, 3, 4, 5]}, {"b": b}, broadcast=1, **({} if axis is None else {"axis": axis}))
     for op, b, axis in BROADCAST]


NUMPY = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Div": np.divide, "Pow": np.power,
         "Dropout": lambda x: x}


def run_other(path, opset, feeds):
    """By ONNX Runtime, or where that does not know the opset by what ONNX says of the file's only node."""
    if opset >= 7:
        return session(path).run(None, feeds)[0]
    graph = onnx.load(path).graph
    values = {**feeds, **{t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}}
    for node in graph.node:
        said = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        x, *rest = [values[name] for name in node.input]
        if node.op_type in ("Squeeze", "Unsqueeze"):
            change = np.squeeze if node.op_type == "Squeeze" else np.expand_dims
            values[node.output[0]] = change(x, tuple(said["axes"]))
            continue
        if node.op_type == "Tile":
            values[node.output[0]] = np.concatenate([x] * int(rest[0]), int(rest[1]))
            continue
        if rest and said.get("broadcast") and "axis" in said:
            end = said["axis"] % x.ndim + rest[0].ndim
            rest = [rest[0].reshape(rest[0].shape + (1,) * (x.ndim - end))]
        assert not rest or said.get("broadcast") or rest[0].shape == x.shape
        values[node.output[0]] = NUMPY[node.op_type](x, *rest)
    return values[graph.output[0].name]


def check(op, opset, shapes, constants, outputs, attributes, *options):
    feeds = {k: v if isinstance(v, np.ndarray) else np.abs(floats(*v)) for k, v in shapes.items()}
    model("m.onnx", [helper.make_node(op, [*shapes, *constants], outputs, **attributes)],
          {name: (FLOAT, x.shape) for name, x in feeds.items()}, {"y": (FLOAT, None)}, constants, opset)
    for name, x in feeds.items():
        np.save(f"{name}.npy", x)
    quench("convert", "m.onnx", "out.onnx", "--opset", str(opset), *options)
    if op != "GroupNormalization":  # whose opset 18 the checker calls deprecated
        onnx.checker.check_model("out.onnx", full_check=True)
    written = onnx.load("out.onnx")
    assert written.opset_import[0].version == opset
    assert op in [node.op_type for node in written.graph.node] or op == "Dropout", written.graph.node
    inputs = [word for name in feeds for word in ("-i", f"{name}={name}.npy")]
    ours = infer("m.onnx", *inputs)[2]["y"]
    np.testing.assert_array_equal(infer("out.onnx", *inputs)[2]["y"], ours)
    np.testing.assert_allclose(run_other("out.onnx", opset, feeds), ours, rtol=1e-5, atol=1e-6)


CHANNELS = {"s": floats(2), "b": floats(2), "m": floats(2), "v": np.abs(floats(2))}
WINDOW = {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}
# Nodes of opset 22, and what they become.
LOWERED = [
    ("Tile", 5, [2, 3, 4, 5], {"r": np.int64([2, 1, 3, 2])}, {}, ["Tile"] * 3),
    ("Tile", 5, [2, 3], {"r": np.int64([1, 1])}, {}, ["Tile"]),
    ("BatchNormalization", 5, [1, 2, 3, 3], CHANNELS, {}, ["BatchNormalization"]),
    ("Pad", 1, [2, 3], {"p": np.int64([0, 1, 2, 0])}, {}, ["Pad"]),
    ("AveragePool", 12, [1, 2, 2, 2], {}, WINDOW, ["AveragePool"]),
    ("MaxPool", 12, [1, 2, 2, 2], {}, WINDOW, ["MaxPool"]),
] + [(f"Reduce{how}", 12, [2, 3], {"a": np.int64([1])}, {"noop_with_empty_axes": 1}, [f"Reduce{how}"])
     for how in ("Max", "Sum", "L2")]


def check_lowered(op, opset, shape, constants, attributes, becomes):
    model("m.onnx", [helper.make_node(op, ["x", *constants], ["y"], **attributes)], {"x": (FLOAT, shape)},
          {"y": (FLOAT, None)}, constants, 22)
    np.save("x.npy", floats(*shape))
    quench("convert", "m.onnx", "out.onnx", "--opset", str(opset), "--no-pass", "all")
    onnx.checker.check_model("out.onnx", full_check=True)
    assert [node.op_type for node in onnx.load("out.onnx").graph.node] == becomes
    ours = infer("m.onnx", "-i", "x.npy")[2]["y"]
    np.testing.assert_array_equal(infer("out.onnx", "-i", "x.npy")[2]["y"], ours)
    np.testing.assert_allclose(session("m.onnx").run(None, {"x": np.load("x.npy")})[0], ours, rtol=1e-5, atol=1e-6)


def check_batched_scan(direction):
    """Of opset 8: a batch in front of everything; the body reads a value from outside."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Mul", ["t", "w"], ["u"]),
         helper.make_node("Identity", ["u"], ["v"])], "body",
        [helper.make_tensor_value_info(name, FLOAT, [3]) for name in "sx"],
        [helper.make_tensor_value_info(name, FLOAT, [3]) for name in "uv"])
    feeds = {"s0": floats(2, 3), "x0": floats(2, 5, 3), "w0": floats(3)}
    model("m.onnx", [helper.make_node("Abs", ["w0"], ["w"]),
                     helper.make_node("Scan", ["", "s0", "x0"], ["last", "y"], body=body, num_scan_inputs=1,
                                      directions=[direction])],
          {name: (FLOAT, x.shape) for name, x in feeds.items()},
          {"last": (FLOAT, [2, 3]), "y": (FLOAT, [2, 5, 3])}, {}, 8)
    for name, x in feeds.items():
        np.save(f"{name}.npy", x)
    quench("convert", "m.onnx", "out.onnx", "--opset", "9")
    onnx.checker.check_model("out.onnx", full_check=True)
    expected = session("m.onnx").run(None, feeds)
    inputs = [word for name in feeds for word in ("-i", f"{name}={name}.npy")]
    for path in ("m.onnx", "out.onnx"):
        ours = infer(path, *inputs)[2]
        for name, value in zip(("last", "y"), expected):
            np.testing.assert_allclose(ours[name], value, rtol=1e-6)
            np.testing.assert_allclose(session(path).run([name], feeds)[0], value, rtol=1e-6)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for one in CASES:
            check(*one)
            check(*one, "--no-pass", "all")
            print(f"{one[0]} of opset {one[1]}: good")
        for direction in (0, 1):
            check_batched_scan(direction)
            print(f"Scan of opset 8, direction {direction}: good")
        for one in LOWERED:
            check_lowered(*one)
            print(f"{one[0]} to opset {one[1]}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
