"""nets.py: the networks that make.py makes cases of."""

import zlib

import numpy as np

CASES = []


class Case:
    """A network: its text, weights (name, type, blobs), inputs, and the names of its outputs."""

    def __init__(self, name, text, layers, inputs, outputs):
        self.name, self.text, self.layers, self.inputs, self.outputs = name, text, layers, inputs, outputs
        self.how, self.flags, self.formula, self.oracle = "", [], None, "opencv"
        # What OpenCV reads in another way.
        self.swap = []


def rand(name, *shape):
    """Numbers that belong to a name, from -1 to 1."""
    return np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape).astype(np.float32)


def inputs_text(shapes):
    return "".join(f'input: "{name}"\ninput_shape {{ {" ".join(f"dim: {n}" for n in dims)} }}\n' for name, dims in shapes.items())


def layer(kind, bottoms, tops, params="", name=None):
    words = [f'name: "{name or tops.split()[0]}"', f'type: "{kind}"']
    words += [f'bottom: "{b}"' for b in bottoms.split()] + [f'top: "{t}"' for t in tops.split()]
    return "layer {\n  " + "\n  ".join(words) + (f"\n  {params}" if params else "") + "\n}\n"


def case(name, body, shapes, weights=(), outputs=("y",), **more):
    """`shapes`: of the input x, or of several by name. `weights`: (layer, type, blobs)."""
    shapes = shapes if isinstance(shapes, dict) else {"x": shapes}
    text = f'name: "{name}"\n' + more.pop("head", inputs_text(shapes)) + body
    inputs = {key: rand(name + key, *dims) for key, dims in shapes.items()}
    made = Case(name, text, list(weights), inputs, list(outputs))
    for key, value in more.items():
        setattr(made, key, value)
    CASES.append(made)
    return made


def one(name, kind, shape, params="", blobs=(), **more):
    """One layer from x to y."""
    return case(name, layer(kind, "x", "y", params), shape, [("y", kind, blobs)] if blobs else [], **more)


def y_of(function):
    """A formula of the input x for the output y."""
    return lambda inputs: {"y": function(inputs["x"].astype(np.float64))}


# ---- Layers with weights ------------------------------------------------------------------------------------------------

one("convolution", "Convolution", (2, 3, 9, 8), "convolution_param { num_output: 5 kernel_size: 3 pad: 1 stride: 2 }",
    [rand("cw", 5, 3, 3, 3), rand("cb", 5)])
one("convolution_group", "Convolution", (1, 4, 7, 7),
    "convolution_param { num_output: 6 kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2 group: 2 bias_term: false }",
    [rand("cgw", 6, 2, 3, 2)])
one("convolution_dilation", "Convolution", (1, 2, 10, 10), "convolution_param { num_output: 3 kernel_size: 3 dilation: 2 pad: 2 }",
    [rand("cdw", 3, 2, 3, 3), rand("cdb", 3)])
one("convolution_3d", "Convolution", (1, 2, 5, 6, 7),
    "convolution_param { num_output: 3 kernel_size: 3 kernel_size: 2 kernel_size: 3 pad: 1 pad: 0 pad: 1 stride: 1 stride: 2 stride: 1 }",
    [rand("c3w", 3, 2, 3, 2, 3), rand("c3b", 3)])
case("convolution_two", layer("Convolution", "x z", "y w", "convolution_param { num_output: 2 kernel_size: 3 }", "c"),
     {"x": (1, 2, 5, 5), "z": (1, 2, 6, 7)}, [("c", "Convolution", [rand("c2w", 2, 2, 3, 3), rand("c2b", 2)])], ["y", "w"],
     oracle="formula", formula=lambda i: {n: conv(i[k], rand("c2w", 2, 2, 3, 3), rand("c2b", 2)) for n, k in (("y", "x"), ("w", "z"))})
# OpenCV has no layer of these types, and the plain one with groups is the same.
for kind in ("ConvolutionDepthwise", "DepthwiseConvolution"):
    one(kind.lower(), kind, (1, 4, 6, 6), "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }",
        [rand("dww", 4, 1, 3, 3), rand("dwb", 4)], oracle="formula",
        formula=y_of(lambda x: np.concatenate([conv(np.pad(x[:, c:c + 1], ((0, 0), (0, 0), (1, 1), (1, 1))),
                                                    rand("dww", 4, 1, 3, 3)[c:c + 1], rand("dwb", 4)[c:c + 1]) for c in range(4)], 1)))
one("deconvolution", "Deconvolution", (1, 3, 5, 4), "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 }",
    [rand("tw", 3, 4, 4, 4), rand("tb", 4)])
one("deconvolution_group", "Deconvolution", (1, 4, 4, 4),
    "convolution_param { num_output: 4 kernel_size: 4 stride: 2 pad: 1 group: 4 bias_term: false }", [rand("tgw", 4, 1, 4, 4)])
one("inner_product", "InnerProduct", (3, 2, 4, 5), "inner_product_param { num_output: 7 }", [rand("iw", 7, 40), rand("ib", 7)])
one("inner_product_axis", "InnerProduct", (2, 3, 4, 5), "inner_product_param { num_output: 6 axis: 2 bias_term: false }",
    [rand("iaw", 6, 20)])
# OpenCV has no `transpose`.
one("inner_product_transpose", "InnerProduct", (3, 8), "inner_product_param { num_output: 4 transpose: true }",
    [rand("itw", 8, 4), rand("itb", 4)], oracle="formula", formula=y_of(lambda x: x @ rand("itw", 8, 4) + rand("itb", 4)))
# OpenCV has no such layer.
case("embed", layer("Embed", "x", "y", "embed_param { input_dim: 7 num_output: 3 }"), (2, 4),
     [("y", "Embed", [rand("ew", 7, 3), rand("eb", 3)])], inputs={"x": np.array([[0, 6, 2, 2], [5, 1, 3, 4]], np.float32)},
     oracle="formula", formula=lambda i: {"y": rand("ew", 7, 3)[i["x"].astype(int)] + rand("eb", 3)})

# ---- Pooling ------------------------------------------------------------------------------------------------------------

one("pool_max", "Pooling", (1, 3, 8, 7), "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")
one("pool_max_pad", "Pooling", (1, 2, 9, 10), "pooling_param { pool: MAX kernel_size: 3 stride: 2 pad: 1 }")
one("pool_average", "Pooling", (1, 2, 8, 7), "pooling_param { pool: AVE kernel_size: 3 stride: 2 }")


def pool(x, kernel, stride, pad, outputs, take):
    """Caffe's windows: clipped at the padded input for the count, at the input for the numbers."""
    n, c, h, w = x.shape
    y = np.zeros((n, c, *outputs))
    for i in range(outputs[0]):
        for k in range(outputs[1]):
            top, left = i * stride - pad, k * stride - pad
            bottom, right = min(top + kernel, h + pad), min(left + kernel, w + pad)
            window = x[:, :, max(top, 0):min(bottom, h), max(left, 0):min(right, w)]
            y[:, :, i, k] = take(window, (bottom - top) * (right - left))
    return y


def average(window, count):
    return window.sum((2, 3)) / count


def stochastic(window, _):
    return (window ** 2).sum((2, 3)) / window.sum((2, 3))


one("pool_average_pad", "Pooling", (1, 2, 7, 7), "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }",
    formula=y_of(lambda x: pool(x, 3, 2, 1, (4, 4), average)), oracle="formula")
# The last windows reach beyond the padding, of which OpenCV counts another part.
one("pool_average_beyond", "Pooling", (1, 2, 8, 8), "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }",
    formula=y_of(lambda x: pool(x, 3, 2, 1, (5, 5), average)), oracle="formula")
one("pool_floor", "Pooling", (1, 2, 8, 7), "pooling_param { pool: MAX kernel_size: 3 stride: 2 round_mode: FLOOR }",
    formula=y_of(lambda x: pool(x, 3, 2, 0, (3, 3), lambda w, _: w.max((2, 3)))), oracle="formula")
one("pool_no_ceil", "Pooling", (1, 2, 8, 7), "pooling_param { pool: MAX kernel_size: 3 stride: 2 ceil_mode: false }")
one("pool_global", "Pooling", (2, 3, 5, 6), "pooling_param { pool: AVE global_pooling: true }")
one("pool_global_max", "Pooling", (2, 3, 5, 6), "pooling_param { pool: MAX global_pooling: true }")
# The training's choice by chance is its expectation in use; OpenCV has no such pooling.
one("pool_stochastic", "Pooling", (1, 2, 7, 7), "pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }", oracle="formula",
    inputs={"x": np.abs(rand("ps", 1, 2, 7, 7))}, formula=y_of(lambda x: pool(x, 3, 2, 0, (3, 3), stochastic)))
# Caffe's last column lies behind the input, and is the lowest number; OpenCV leaves it out.
one("pool_outside", "Pooling", (1, 2, 4, 4), "pooling_param { pool: MAX kernel_size: 1 stride: 2 }", oracle="formula",
    formula=y_of(lambda x: np.pad(x[:, :, ::2, ::2], ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-np.finfo(np.float32).max)))

# ---- Normalization ------------------------------------------------------------------------------------------------------

one("lrn", "LRN", (1, 7, 4, 4), "lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 k: 2 }", oracle="formula",
    formula=y_of(lambda x: x / (2 + 0.1 * sum(np.pad(x ** 2, ((0, 0), (2, 2), (0, 0), (0, 0)))[:, i:i + 7] for i in range(5))) ** 0.75))
one("lrn_across", "LRN", (1, 7, 4, 4), "lrn_param { local_size: 3 alpha: 0.7 beta: 0.6 }")
one("lrn_within", "LRN", (1, 3, 6, 5), "lrn_param { local_size: 3 alpha: 0.9 beta: 0.75 norm_region: WITHIN_CHANNEL }")
one("batch_norm", "BatchNorm", (2, 3, 4, 5), "batch_norm_param { eps: 0.001 }",
    [rand("bm", 3), np.abs(rand("bv", 3)) + 0.5, np.array([2.0], np.float32)])
one("batch_norm_local", "BatchNorm", (3, 2, 4, 4), "batch_norm_param { use_global_stats: false }",
    [np.zeros(2, np.float32), np.ones(2, np.float32), np.ones(1, np.float32)], oracle="formula",
    formula=y_of(lambda x: (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)))
case("batch_norm_scale", layer("BatchNorm", "x", "b") + layer("Scale", "b", "b", "scale_param { bias_term: true }", "s") +
     layer("ReLU", "b", "b", name="r") + layer("Pooling", "b", "y", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }"), (1, 4, 6, 6),
     [("b", "BatchNorm", [rand("sm", 4), np.abs(rand("sv", 4)) + 0.1, np.array([0.999], np.float32)]),
      ("s", "Scale", [rand("sg", 4), rand("sb", 4)])])
one("bn", "BN", (1, 3, 4, 4), "bn_param { eps: 0.001 frozen: true }",
    [rand("ns", 1, 3, 1, 1), rand("nb", 1, 3, 1, 1), rand("nm", 1, 3, 1, 1), np.abs(rand("nv", 1, 3, 1, 1)) + 0.2], oracle="formula",
    formula=y_of(lambda x: (x - rand("nm", 1, 3, 1, 1)) / np.sqrt(np.abs(rand("nv", 1, 3, 1, 1)) + 0.2 + 1e-3) * rand("ns", 1, 3, 1, 1) +
                 rand("nb", 1, 3, 1, 1)))
one("bn_segnet", "BN", (1, 3, 4, 4), "bn_param { bn_mode: INFERENCE }", [rand("gs", 1, 3, 1, 1), rand("gb", 1, 3, 1, 1)], oracle="formula",
    formula=y_of(lambda x: x * rand("gs", 1, 3, 1, 1) + rand("gb", 1, 3, 1, 1)))
one("scale", "Scale", (2, 3, 4, 5), "scale_param { axis: 1 num_axes: 2 bias_term: true }", [rand("lw", 3, 4), rand("lb", 3, 4)],
    oracle="formula", formula=y_of(lambda x: x * rand("lw", 3, 4)[..., None] + rand("lb", 3, 4)[..., None]))
case("scale_two", layer("Scale", "x z", "y", "scale_param { axis: 0 }"), {"x": (2, 3, 4, 4), "z": (2, 3)}, oracle="formula",
     formula=lambda i: {"y": i["x"] * i["z"][..., None, None]})
one("bias", "Bias", (2, 3, 4, 5), "bias_param { axis: 1 num_axes: -1 }", [rand("aw", 3, 4, 5)], oracle="formula",
    formula=y_of(lambda x: x + rand("aw", 3, 4, 5)))
case("bias_two", layer("Bias", "x z", "y", "bias_param { axis: 1 }"), {"x": (2, 3, 4, 4), "z": (3,)}, oracle="formula",
     formula=lambda i: {"y": i["x"] + i["z"][:, None, None]})
one("mvn", "MVN", (2, 3, 4, 5), "mvn_param { eps: 0.01 }", oracle="formula",
    formula=y_of(lambda x: (x - x.mean((2, 3), keepdims=True)) / (x.std((2, 3), keepdims=True) + 0.01)))
one("mvn_across", "MVN", (2, 3, 4, 5), "mvn_param { across_channels: true }")
one("mvn_mean", "MVN", (2, 3, 4, 5), "mvn_param { normalize_variance: false }")
one("normalize", "Normalize", (2, 4, 3, 3), "norm_param { across_spatial: false channel_shared: false }", [rand("zw", 4) + 2])
one("normalize_across", "Normalize", (2, 4, 3, 3), "norm_param { across_spatial: true channel_shared: true eps: 0.1 }",
    [np.array([3], np.float32)], oracle="formula",
    formula=y_of(lambda x: 3 * x / np.sqrt((x ** 2).sum((1, 2, 3), keepdims=True) + 0.1)))

# ---- Functions ----------------------------------------------------------------------------------------------------------

one("relu", "ReLU", (2, 3, 4, 4))
one("relu_slope", "ReLU", (2, 3, 4, 4), "relu_param { negative_slope: 0.1 }")
one("relu6", "ReLU6", (2, 3, 4, 4), inputs={"x": 9 * rand("r6", 2, 3, 4, 4)})
one("clip", "Clip", (2, 3, 4, 4), "clip_param { min: -0.25 max: 0.5 }", oracle="formula", formula=y_of(lambda x: np.clip(x, -0.25, 0.5)))
one("prelu", "PReLU", (2, 3, 4, 4), "", [rand("pw", 3)])
one("prelu_shared", "PReLU", (2, 3, 4, 4), "prelu_param { channel_shared: true }", [np.array([0.3], np.float32)])
one("elu", "ELU", (2, 3, 4, 4), "elu_param { alpha: 0.7 }")
one("sigmoid", "Sigmoid", (2, 3, 4))
one("tanh", "TanH", (2, 3, 4))
one("absval", "AbsVal", (2, 3, 4))
one("bnll", "BNLL", (2, 3, 4))
one("power", "Power", (2, 3, 4), "power_param { power: 3 scale: 0.5 shift: 2 }")
one("power_root", "Power", (2, 3, 4), "power_param { power: 0.5 shift: 2 }")
one("exp", "Exp", (2, 3, 4), "exp_param { base: 2 scale: 0.5 shift: 1 }")
one("exp_e", "Exp", (2, 3, 4), "exp_param { shift: -1 }")
one("log", "Log", (2, 3, 4), "log_param { base: 10 scale: 0.5 shift: 2 }", oracle="formula", formula=y_of(lambda x: np.log10(0.5 * x + 2)))
one("log_e", "Log", (2, 3, 4), "log_param { shift: 3 }", oracle="formula", formula=y_of(lambda x: np.log(x + 3)))
one("threshold", "Threshold", (2, 3, 4), "threshold_param { threshold: 0.2 }", oracle="formula", formula=y_of(lambda x: x > np.float32(0.2)))
one("swish", "Swish", (2, 3, 4), "swish_param { beta: 1.5 }", oracle="formula", formula=y_of(lambda x: x / (1 + np.exp(-1.5 * x))))
one("mish", "Mish", (2, 3, 4), oracle="formula", formula=y_of(lambda x: x * np.tanh(np.log1p(np.exp(x)))))

THREE = {"x": (2, 3, 4), "z": (2, 3, 4), "w": (2, 3, 4)}
case("eltwise_sum", layer("Eltwise", "x z w", "y", "eltwise_param { operation: SUM coeff: 0.5 coeff: -1 coeff: 2 }"), THREE)
case("eltwise_prod", layer("Eltwise", "x z w", "y", "eltwise_param { operation: PROD }"), THREE)
case("eltwise_max", layer("Eltwise", "x z", "y", "eltwise_param { operation: MAX }"), {"x": (2, 3, 4), "z": (2, 3, 4)})


def conv(x, weights, bias):
    """A convolution without padding, stride 1."""
    h, w = weights.shape[2:]
    rows = [[np.einsum("nchw,ochw->no", x[:, :, i:i + h, k:k + w], weights) for k in range(x.shape[3] - w + 1)]
            for i in range(x.shape[2] - h + 1)]
    return np.moveaxis(np.array(rows), (0, 1), (2, 3)) + bias[:, None, None]
