"""operator_cases.py: the graphs that operators.py measures: operators of vision, text and audio networks with the
attributes and sizes that exporters of PyTorch give them."""

import dataclasses

import numpy as np
from onnx import TensorProto, helper

rng = np.random.default_rng(24)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclasses.dataclass
class Case:
    name: str
    nodes: list
    inputs: dict
    constants: dict
    # Name: element type.
    outputs: dict
    # Constants of floats that stay floats, and results that do.
    kept: set = dataclasses.field(default_factory=set)
    plain: set = dataclasses.field(default_factory=set)
    quantizable: bool = True
    opset: int = 23


def x(*shape):
    return np.clip(rng.normal(size=shape), -3.5, 3.5).astype(np.float32)


def weights(*shape):
    return (x(*shape) * 0.3).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def given(values):
    return {key: value for key, value in values.items() if value is not None}


def one(name, operator, inputs, constants=None, kind=FLOAT, **rest):
    """A graph of a single node with the inputs and constants in this order; None leaves one out."""
    fields = {key: rest.pop(key) for key in ("kept", "plain", "quantizable", "opset", "outputs") if key in rest}
    constants = constants or {}
    count = fields.pop("outputs", 1)
    results = [f"y{i}" for i in range(count)]
    names = [key if value is not None else "" for key, value in {**inputs, **constants}.items()]
    node = helper.make_node(operator, names, results, "n", rest.pop("domain", None), **rest)
    if kind != FLOAT:
        fields["plain"] = set(results)
        fields.setdefault("quantizable", False)
    return Case(name, [node], given(inputs), given(constants), {result: kind for result in results}, **fields)


def convolutions():
    def conv(name, shape, filters, kernel, groups=1, **attributes):
        group = shape[1] // groups
        return one(name, "Conv", {"x": x(*shape)}, {"w": weights(filters, group, *kernel), "b": weights(filters)},
                   kept={"b"}, group=groups, kernel_shape=kernel, **attributes)

    yield conv("conv1d", (1, 64, 1000), 128, [3], pads=[1, 1])
    yield conv("conv1d_stride", (1, 1, 16000), 64, [80], strides=[4], pads=[38, 38])
    yield conv("conv1d_dilated", (1, 64, 1000), 64, [3], pads=[4, 4], dilations=[4])
    yield conv("conv1d_depthwise", (1, 256, 500), 256, [31], 256, pads=[15, 15])
    yield conv("conv1d_pointwise", (1, 256, 500), 256, [1])
    yield conv("conv2d_dilated", (1, 256, 28, 28), 256, [3, 3], pads=[2] * 4, dilations=[2, 2])
    yield conv("conv2d_dilated_far", (1, 256, 20, 20), 256, [3, 3], pads=[12] * 4, dilations=[12, 12])
    yield conv("conv2d_depthwise_dilated", (1, 256, 28, 28), 256, [3, 3], 256, pads=[2] * 4, dilations=[2, 2])
    yield conv("conv2d_depthwise_7", (1, 96, 56, 56), 96, [7, 7], 96, pads=[3] * 4)
    yield conv("conv2d_grouped", (1, 128, 28, 28), 128, [3, 3], 8, pads=[1] * 4)
    yield conv("conv3d", (1, 16, 8, 28, 28), 32, [3, 3, 3], pads=[1] * 6)
    yield conv("conv3d_first", (1, 3, 8, 56, 56), 32, [3, 7, 7], strides=[1, 2, 2], pads=[1, 3, 3, 1, 3, 3])
    yield conv("conv3d_depthwise", (1, 32, 8, 28, 28), 32, [3, 3, 3], 32, pads=[1] * 6)
    yield conv("conv3d_pointwise", (1, 64, 8, 14, 14), 64, [1, 1, 1])
    for name, shape, kernel, stride in (("1d", (1, 64, 250), [4], [2]), ("2d", (1, 64, 28, 28), [2, 2], [2, 2]),
                                        ("3d", (1, 16, 4, 14, 14), [2, 2, 2], [2, 2, 2])):
        yield one(f"conv_transpose{name}", "ConvTranspose", {"x": x(*shape)},
                  {"w": weights(shape[1], 32, *kernel), "b": weights(32)}, kept={"b"}, strides=stride)


def products():
    yield one("gemm", "Gemm", {"x": x(16, 256)}, {"w": weights(256, 256), "b": weights(256)}, kept={"b"}, transB=1)
    yield one("matmul", "MatMul", {"x": x(1, 128, 256)}, {"w": weights(256, 256)})
    yield one("matmul_batched", "MatMul", {"a": x(1, 8, 128, 64), "b": x(1, 8, 64, 128)})
    yield one("matmul_float", "MatMul", {"a": x(1, 8, 128, 64), "b": x(1, 8, 64, 128)}, plain={"y0"})
    yield one("matmul_vector", "MatMul", {"a": x(1, 8, 1, 64), "b": x(1, 8, 64, 512)})
    yield one("einsum", "Einsum", {"a": x(1, 8, 128, 64), "b": x(1, 8, 128, 64)}, equation="bhid,bhjd->bhij")


def attention():
    heads = {"q": x(1, 8, 128, 64), "k": x(1, 8, 128, 64), "v": x(1, 8, 128, 64)}
    yield one("attention", "Attention", heads, quantizable=False)
    for name, mask in (("float", x(1, 1, 128, 128)), ("row", x(1, 1, 1, 128)), ("heads", x(1, 8, 128, 128)),
                       ("bool", np.tril(np.ones((128, 128), bool)))):
        yield one(f"attention_mask_{name}", "Attention", {**heads, "mask": mask}, quantizable=False)
    yield one("attention_causal", "Attention", heads, quantizable=False, is_causal=1)
    yield one("attention_softcap", "Attention", heads, quantizable=False, softcap=30.0)
    past = {"past_k": x(1, 8, 96, 64), "past_v": x(1, 8, 96, 64)}
    step = {"q": x(1, 8, 1, 64), "k": x(1, 8, 1, 64), "v": x(1, 8, 1, 64)}
    yield one("attention_cache", "Attention", {**step, "mask": None, **past}, quantizable=False, outputs=3)
    nodes = [helper.make_node("MatMul", ["q", "k"], ["s"]), helper.make_node("Add", ["s", "mask"], ["m"]),
             helper.make_node("Softmax", ["m"], ["p"], axis=-1), helper.make_node("IsNaN", ["p"], ["n"]),
             helper.make_node("Where", ["n", "zero", "p"], ["w"]), helper.make_node("MatMul", ["w", "v"], ["y"])]
    inputs = {"q": x(1, 8, 128, 64), "k": x(1, 8, 64, 128), "v": x(1, 8, 128, 64)}
    mask = np.where(np.tril(np.ones((128, 128), bool)), 0, -np.inf).astype(np.float32)[None, None]
    yield Case("sdpa", nodes, inputs, {"mask": mask, "zero": np.float32(0)}, {"y": FLOAT}, kept={"mask", "zero"},
               plain={"s", "m", "n", "p"})
    yield Case("softmax_is_nan", nodes[2:5], {"m": x(1, 8, 128, 128)}, {"zero": np.float32(0)}, {"w": FLOAT},
               kept={"zero"}, plain={"n", "p"})


def elementwise():
    large = {"x": x(1, 96, 56, 56)}
    for operator in ("Add", "Mul", "Sub", "Div"):
        second = x(1, 96, 56, 56)
        yield one(operator.lower(), operator, {**large, "b": np.where(abs(second) < 0.5, 0.5, second)})
    yield one("mul_channel", "Mul", large, {"c": weights(96, 1, 1)})
    yield one("add_channel", "Add", large, {"c": weights(96, 1, 1)})
    yield one("mul_last", "Mul", {"x": x(1, 56, 56, 96)}, {"c": weights(96)})
    yield one("mul_gate", "Mul", {**large, "g": x(1, 96, 1, 1)})
    yield one("mul_gate_rows", "Mul", {**large, "g": x(1, 1, 56, 56)})
    yield one("add_scalar", "Add", large, {"c": np.float32(0.5)})
    yield one("add_outer", "Add", {"x": x(1, 8, 128, 1), "b": x(1, 1, 1, 128)})
    yield one("add_tokens", "Add", {"x": x(4, 197, 192)}, {"c": weights(1, 197, 192)})
    for operator in ("Relu", "Sigmoid", "Tanh", "Erf", "Gelu", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Softplus",
                     "Mish", "Exp", "Sqrt", "Abs", "Neg", "Floor", "Round", "Sign", "Sin", "Cos", "Reciprocal", "Log"):
        yield one(operator.lower(), operator, {"x": abs(x(1, 64, 28, 28)) + np.float32(0.1)})
    yield one("clip", "Clip", large, {"low": np.float32(0), "high": np.float32(6)}, kept={"low", "high"})
    yield one("prelu", "PRelu", large, {"slope": weights(96, 1, 1)}, kept={"slope"})
    yield one("pow", "Pow", large, {"e": np.float32(2)}, kept={"e"})
    yield one("max", "Max", {**large, "b": x(1, 96, 56, 56)})
    yield one("min", "Min", {**large, "b": x(1, 96, 56, 56)})
    yield one("sum3", "Sum", {**large, "b": x(1, 96, 56, 56), "c": x(1, 96, 56, 56)})
    yield one("mean2", "Mean", {**large, "b": x(1, 96, 56, 56)})
    yield one("mod", "Mod", large, {"c": np.float32(0.7)}, kept={"c"}, fmod=1)
    yield one("where", "Where", {"c": rng.random((1, 1, 128, 128)) > 0.5, "a": x(1, 8, 128, 128)},
              {"b": np.float32(-3)}, kept={"b"})
    yield one("where_two", "Where", {"c": rng.random((1, 8, 128, 128)) > 0.5, "a": x(1, 8, 128, 128),
                                     "b": x(1, 8, 128, 128)})
    yield one("batch_norm", "BatchNormalization", large,
              {key: abs(weights(96)) for key in ("s", "b", "m", "v")}, kept={"s", "b", "m", "v"})
    yield one("cast_half", "Cast", large, kind=TensorProto.FLOAT16, to=TensorProto.FLOAT16)
    yield one("cast_long", "Cast", {"x": x(1, 512)}, kind=INT64, to=INT64)
    yield one("cast_from_long", "Cast", {"i": rng.integers(0, 9, (1, 512))}, quantizable=False, to=FLOAT)
    yield one("cast_from_bool", "Cast", {"i": rng.random((1, 1, 128, 128)) > 0.5}, quantizable=False, to=FLOAT)


def logic():
    wide = {"x": x(1, 1, 128, 128), "b": x(1, 1, 128, 128)}
    for operator in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        yield one(operator.lower(), operator, wide, kind=BOOL)
    a, b = (rng.random((1, 1, 128, 128)) > 0.5 for _ in range(2))
    for operator in ("And", "Or", "Xor"):
        yield one(operator.lower(), operator, {"a": a, "b": b}, kind=BOOL)
    yield one("not", "Not", {"a": a}, kind=BOOL)
    yield one("is_nan", "IsNaN", {"x": x(1, 8, 128, 128)}, kind=BOOL)
    yield one("is_inf", "IsInf", {"x": x(1, 8, 128, 128)}, kind=BOOL)
    long = rng.integers(1, 100, (1, 4096))
    for operator in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"):
        yield one(f"{operator.lower()}_long", operator, {"a": long, "b": long}, kind=INT64)
    yield one("equal_long", "Equal", {"a": long}, {"b": ints(1)}, kind=BOOL)
    yield one("less_long", "Less", {"a": long}, {"b": ints(9)}, kind=BOOL)
    yield one("where_long", "Where", {"c": long > 9, "a": long}, {"b": ints(9)}, kind=INT64)


def reductions():
    for operator in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2", "ReduceSumSquare", "ReduceProd",
                     "ReduceLogSumExp", "ReduceL1"):
        yield one(f"{operator.lower()}_last", operator, {"x": x(1, 197, 192)}, {"axes": ints(-1)}, keepdims=1)
    for operator in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"):
        yield one(f"{operator.lower()}_spatial", operator, {"x": x(1, 96, 56, 56)}, {"axes": ints(2, 3)}, keepdims=1)
        yield one(f"{operator.lower()}_channels", operator, {"x": x(1, 96, 56, 56)}, {"axes": ints(1)}, keepdims=1)
        yield one(f"{operator.lower()}_tokens", operator, {"x": x(1, 197, 192)}, {"axes": ints(1)}, keepdims=0)
    yield one("arg_max", "ArgMax", {"x": x(1, 21, 64, 64)}, kind=INT64, axis=1, keepdims=0)
    yield one("arg_max_last", "ArgMax", {"x": x(1, 40, 6625)}, kind=INT64, axis=-1)
    yield Case("top_k", [helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=-1)], {"x": x(1, 8400)}, {"k": ints(300)},
               {"v": FLOAT, "i": INT64}, plain={"v", "i"}, quantizable=False)
    yield one("cum_sum", "CumSum", {"x": x(1, 197, 192)}, {"axis": np.int64(1)})
    yield one("cum_sum_long", "CumSum", {"a": rng.integers(0, 2, (1, 512))}, {"axis": np.int64(1)}, kind=INT64)
    for name, axis, shape in (("last", -1, (1, 8, 128, 128)), ("channels", 1, (1, 21, 64, 64))):
        yield one(f"softmax_{name}", "Softmax", {"x": x(*shape)}, axis=axis)
        yield one(f"log_softmax_{name}", "LogSoftmax", {"x": x(*shape)}, axis=axis)


def norms():
    gamma, beta = {"g": abs(weights(192))}, {"b": weights(192)}
    yield one("layer_norm", "LayerNormalization", {"x": x(1, 197, 192)}, {**gamma, **beta}, kept={"g", "b"}, axis=-1)
    yield one("rms_norm", "RMSNormalization", {"x": x(1, 197, 192)}, gamma, kept={"g"}, axis=-1)
    small = {"g": abs(weights(96)), "b": weights(96)}
    yield one("instance_norm", "InstanceNormalization", {"x": x(1, 96, 28, 28)}, small, kept={"g", "b"})
    yield one("group_norm", "GroupNormalization", {"x": x(1, 96, 28, 28)}, small, kept={"g", "b"}, num_groups=8)
    yield one("lrn", "LRN", {"x": x(1, 96, 28, 28)}, size=5)
    yield one("lp_norm", "LpNormalization", {"x": x(1, 197, 192)}, axis=-1)


def pools():
    for name, shape in (("1d", (1, 64, 1000)), ("2d", (1, 64, 56, 56)), ("3d", (1, 32, 8, 28, 28))):
        rank = len(shape) - 2
        square = dict(kernel_shape=[2] * rank, strides=[2] * rank)
        yield one(f"max_pool{name}", "MaxPool", {"x": x(*shape)}, **square)
        yield one(f"average_pool{name}", "AveragePool", {"x": x(*shape)}, **square)
        yield one(f"global_average_pool{name}", "GlobalAveragePool", {"x": x(*shape)})
        yield one(f"global_max_pool{name}", "GlobalMaxPool", {"x": x(*shape)})
    yield one("max_pool_dilated", "MaxPool", {"x": x(1, 64, 28, 28)}, kernel_shape=[3, 3], dilations=[2, 2])
    yield one("lp_pool", "LpPool", {"x": x(1, 64, 28, 28)}, kernel_shape=[2, 2], strides=[2, 2])


def resizes():
    def resize(name, shape, scales, **attributes):
        return one(f"resize_{name}", "Resize", {"x": x(*shape)}, {"roi": None, "s": np.array(scales, np.float32)},
                   kept={"s"}, **attributes)

    image = (1, 64, 28, 28)
    yield resize("nearest", image, [1, 1, 2, 2], mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
    yield resize("linear", image, [1, 1, 2, 2], mode="linear")
    yield resize("linear_corners", image, [1, 1, 4, 4], mode="linear", coordinate_transformation_mode="align_corners")
    yield resize("cubic", image, [1, 1, 2, 2], mode="cubic", cubic_coeff_a=-0.75)
    yield resize("nearest1d", (1, 64, 250), [1, 1, 2], mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")
    yield resize("linear1d", (1, 64, 250), [1, 1, 2], mode="linear")
    yield resize("nearest3d", (1, 16, 4, 14, 14), [1, 1, 2, 2, 2], mode="nearest",
                 coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield resize("linear3d", (1, 16, 4, 14, 14), [1, 1, 2, 2, 2], mode="linear")
    grid = np.clip(x(1, 28, 28, 2) / 3, -1, 1)
    yield one("grid_sample", "GridSample", {"x": x(1, 64, 28, 28), "grid": grid}, quantizable=False)


def moves():
    image = {"x": x(1, 64, 28, 28)}
    yield one("depth_to_space_dcr", "DepthToSpace", image, blocksize=2, mode="DCR")
    yield one("depth_to_space_crd", "DepthToSpace", image, blocksize=2, mode="CRD")
    yield one("space_to_depth", "SpaceToDepth", image, blocksize=2)
    yield one("transpose_last", "Transpose", image, perm=[0, 2, 3, 1])
    yield one("transpose_heads", "Transpose", {"x": x(1, 128, 8, 64)}, perm=[0, 2, 1, 3])
    yield one("slice", "Slice", image, {"b": ints(2, 2), "e": ints(20, 20), "a": ints(2, 3)})
    yield one("slice_step", "Slice", image, {"b": ints(0, 0), "e": ints(28, 28), "a": ints(2, 3), "s": ints(2, 2)})
    yield one("slice_back", "Slice", image, {"b": ints(-1), "e": ints(-99), "a": ints(3), "s": ints(-1)})
    yield one("split", "Split", image, {"s": ints(32, 32)}, outputs=2, axis=1)
    yield one("split_last", "Split", {"x": x(1, 197, 192)}, {"s": ints(64, 64, 64)}, outputs=3, axis=-1)
    yield one("concat", "Concat", {**image, "b": x(1, 32, 28, 28)}, axis=1)
    yield one("concat_last", "Concat", {"x": x(1, 197, 96), "b": x(1, 197, 96)}, axis=-1)
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield one(f"pad_{mode}", "Pad", image, {"p": ints(0, 0, 3, 3, 0, 0, 3, 3)}, mode=mode)
    yield one("pad_reflect1d", "Pad", {"x": x(1, 1, 16000)}, {"p": ints(0, 0, 200, 0, 0, 200)}, mode="reflect")
    yield one("expand", "Expand", {"x": x(1, 1, 197, 1)}, {"s": ints(1, 8, 197, 64)})
    yield one("tile", "Tile", {"x": x(1, 64, 28)}, {"r": ints(1, 2, 4)})
    yield one("gather_rows", "Gather", {"x": x(2000, 128), "i": rng.integers(0, 2000, (1, 128))})
    yield one("gather_one", "Gather", {"x": x(1, 197, 192)}, {"i": np.int64(0)}, axis=1)
    yield one("gather_axis", "Gather", {"x": x(1, 64, 56, 56)}, {"i": ints(*range(0, 56, 2))}, axis=3)
    yield one("gather_elements", "GatherElements", {"x": x(1, 8, 128, 128), "i": rng.integers(0, 128, (1, 8, 128, 128))},
              axis=-1)
    yield one("gather_nd", "GatherND", {"x": x(128, 256), "i": rng.integers(0, 128, (512, 1))})
    yield one("scatter_nd", "ScatterND", {"x": x(128, 256), "i": rng.integers(0, 128, (16, 1)), "u": x(16, 256)})
    yield one("scatter_elements", "ScatterElements", {"x": x(128, 256), "i": rng.integers(0, 128, (16, 256)),
                                                      "u": x(16, 256)}, axis=0)
    yield one("trilu", "Trilu", {"x": x(1, 1, 128, 128)}, upper=0)
    yield one("one_hot", "OneHot", {"i": rng.integers(0, 100, (1, 128))},
              {"d": np.int64(100), "v": np.array([0, 1], np.float32)}, quantizable=False)
    yield one("gather_long", "Gather", {"i": rng.integers(0, 9, (1, 512))}, {"j": ints(*range(128))}, kind=INT64, axis=1)
    yield one("concat_long", "Concat", {"a": rng.integers(0, 9, (1, 512)), "b": rng.integers(0, 9, (1, 512))}, kind=INT64,
              axis=1)
    yield one("expand_long", "Expand", {"i": rng.integers(0, 9, (1, 1, 1, 128))}, {"s": ints(1, 1, 128, 128)}, kind=INT64)
    yield one("reverse_sequence", "ReverseSequence", {"x": x(64, 4, 128)}, {"l": ints(64, 32, 16, 8)}, batch_axis=1,
              time_axis=0)


def recurrent():
    def layer(operator, gates):
        hidden = 128
        return one(operator.lower(), operator, {"x": x(64, 1, 64)},
                   {"w": weights(1, gates * hidden, 64), "r": weights(1, gates * hidden, hidden),
                    "b": weights(1, 2 * gates * hidden)}, kept={"b"}, hidden_size=hidden)

    yield from (layer("LSTM", 4), layer("GRU", 3), layer("RNN", 1))


def signals():
    yield one("stft", "STFT", {"x": x(1, 16000, 1)}, {"step": np.int64(160), "window": abs(x(400))}, quantizable=False)
    yield one("dft", "DFT", {"x": x(1, 64, 512, 1)}, {"n": None, "axis": np.int64(2)}, quantizable=False)
    yield one("rotary", "RotaryEmbedding", {"x": x(1, 8, 128, 64), "c": x(1, 128, 32), "s": x(1, 128, 32)},
              quantizable=False)


def detection():
    boxes = abs(x(1, 1000, 4)) * 100
    boxes[..., 2:] += boxes[..., :2]
    yield one("nms", "NonMaxSuppression", {"b": boxes, "s": abs(x(1, 4, 1000)) / 4},
              {"n": np.int64(100), "iou": np.float32(0.5), "t": np.float32(0.3)}, kind=INT64)
    rois = np.sort(abs(x(64, 4)) * 8, -1)
    yield one("roi_align", "RoiAlign", {"x": x(1, 64, 28, 28), "r": rois, "i": np.zeros(64, np.int64)}, quantizable=False,
              output_height=7, output_width=7, sampling_ratio=2)
    yield one("deform_conv", "DeformConv", {"x": x(1, 32, 28, 28)},
              {"w": weights(32, 32, 3, 3), "o": weights(1, 18, 28, 28)}, pads=[1] * 4, quantizable=False)


def cases():
    for group in (convolutions, products, attention, elementwise, logic, reductions, norms, pools, resizes, moves, recurrent,
                  signals, detection):
        yield from group()
