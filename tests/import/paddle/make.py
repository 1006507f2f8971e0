"""make.py [CASE...]: makes the golden cases in cases/ with PaddlePaddle itself: small programs, saved in both forms,
NAME.pdmodel (ProgramDesc) and NAME_pir.json (PIR), with their inputs and the outputs that PaddlePaddle computed.

Made with paddlepaddle 3.3.1 (CPU) and numpy 2. What a ProgramDesc says of the lines of Python that made it is cut out."""

import builtins
import os
import shutil
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")
MAKERS = {}
# A process makes one form; the flag is read when paddle is imported.
FORM = os.environ.get("PADDLE_FORM", "")
PIR = FORM == "pir"
if FORM:
    os.environ["FLAGS_enable_pir_api"] = "1" if PIR else "0"
    import paddle
    import paddle.nn.functional as F
    from paddle import nn
    FEEDS = {}


def case(forms="pdmodel pir"):
    def keep(function):
        MAKERS[function.__name__] = (function, forms.split())
        return function
    return keep


# ---- Inputs -----------------------------------------------------------------------------------------

def give(name, array, dynamic=()):
    """An input with these contents; dimensions of `dynamic` are left open."""
    array = np.ascontiguousarray(array)
    FEEDS[name] = array
    shape = [-1 if i in dynamic else d for i, d in enumerate(array.shape)]
    return paddle.static.data(name, shape, str(array.dtype))


def floats(name, shape, dynamic=(), low=-2.0, high=2.0):
    random = np.random.RandomState(sum(name.encode()) + len(FEEDS))
    return give(name, (random.random_sample(shape) * (high - low) + low).astype(np.float32), dynamic)


def ints(name, shape, below, dtype="int64", dynamic=()):
    random = np.random.RandomState(sum(name.encode()) + len(FEEDS))
    return give(name, random.randint(0, below, shape).astype(dtype), dynamic)


def weights(shape, low=-1.0, high=1.0):
    return paddle.create_parameter(shape, "float32", default_initializer=nn.initializer.Uniform(low, high))


# ---- Saving -----------------------------------------------------------------------------------------

def strip(path):
    """Cuts what a ProgramDesc says of its makers."""
    from paddle.base.proto import framework_pb2
    with open(path, "rb") as file:
        program = framework_pb2.ProgramDesc.FromString(file.read())
    for block in program.blocks:
        for op in block.ops:
            kept = [attr for attr in op.attrs if attr.name not in ("op_callstack", "op_namescope", "op_device")]
            del op.attrs[:]
            op.attrs.extend(kept)
    with open(path, "wb") as file:
        file.write(program.SerializeToString())


def output_names(prefix, fetches):
    if not PIR:
        return [value.name for value in fetches]
    import json
    with open(prefix + ".json", encoding="utf-8") as file:
        block = json.load(file)["program"]["regions"][0]["blocks"][0]
    found = [{a["N"]: a["AT"].get("D") for a in op["A"]} for op in block["ops"] if op["#"].endswith(".fetch")]
    return [row["name"] for row in sorted(found, key=lambda row: row["col"])]


def make(name):
    paddle.enable_static()
    FEEDS.clear()
    if not PIR:
        use_old_operators()
    program, startup = paddle.static.Program(), paddle.static.Program()
    executor = paddle.static.Executor(paddle.CPUPlace())
    prefix = os.path.join(CASES, name + ("_pir" if PIR else ""))
    with paddle.static.scope_guard(paddle.static.Scope()), paddle.static.program_guard(program, startup):
        paddle.seed(7)
        results = MAKERS[name][0]()
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        feeds = [program.global_block().var(key) for key in FEEDS] if not PIR else [
            value for value in map(lambda k: next(op.result(0) for op in program.global_block().ops
                                                  if op.name() == "pd_op.data" and op.attrs()["name"] == k), FEEDS)]
        executor.run(startup)
        paddle.static.save_inference_model(prefix, feeds, results, executor, program=program)
    with paddle.static.scope_guard(paddle.static.Scope()):
        loaded, names, fetches = paddle.static.load_inference_model(prefix, executor)
        arrays = [np.asarray(value) for value in executor.run(loaded, feed={key: FEEDS[key] for key in names}, fetch_list=fetches, return_numpy=False)]
        kept = {f"in:{key}": FEEDS[key] for key in names}
        kept.update({f"out:{key}": value for key, value in zip(output_names(prefix, fetches), arrays)})
    if name.startswith("folder_"):
        shutil.rmtree(prefix, ignore_errors=True)
        os.makedirs(prefix)
        if name.endswith("separate"):
            with paddle.static.scope_guard(paddle.static.Scope()):
                loaded = paddle.static.load_inference_model(prefix, executor)[0]
                paddle.static.io.save_vars(executor, prefix, loaded, predicate=lambda v: v.persistable and v.name not in ("feed", "fetch"))
            os.remove(prefix + ".pdiparams")
        else:
            os.rename(prefix + ".pdiparams", os.path.join(prefix, "__params__"))
        strip(prefix + ".pdmodel")
        os.rename(prefix + ".pdmodel", os.path.join(prefix, "__model__"))
    np.savez_compressed(prefix + ".npz", **kept)
    if os.path.exists(prefix + ".pdmodel") and not PIR:
        strip(prefix + ".pdmodel")


# ---- ProgramDesc's operators ------------------------------------------------------------------------
# PaddlePaddle 3.3 still runs and saves ProgramDesc, but many of its functions make PIR alone: here they make the
# operator of that name again.

def append(kind, inputs, attrs=None, outputs=("Out",), dtype=None):
    first = next(iter(inputs.values()))
    helper = paddle.base.layer_helper.LayerHelper(kind)
    first = first[0] if isinstance(first, list) else first
    made = [helper.create_variable_for_type_inference(dtype or first.dtype) for _ in outputs]
    helper.append_op(type=kind, inputs=inputs, outputs={name: [value] for name, value in zip(outputs, made)}, attrs=attrs or {})
    return made[0] if len(made) == 1 else made


def reducer(kind, dtype=None):
    def reduce(x, axis=None, keepdim=False):
        axes = [] if axis is None else axis if isinstance(axis, list) else [axis]
        return append(kind, {"X": x}, {"dim": axes or [0], "keep_dim": keepdim, "reduce_all": not axes}, dtype=dtype)
    return reduce


def arg(kind):
    def find(x, axis=None, keepdim=False, dtype="int64"):
        code = {"int64": 3, "int32": 2}[dtype]
        return append(kind, {"X": x}, {"axis": 0 if axis is None else axis, "keepdims": keepdim, "flatten": axis is None, "dtype": code},
                      dtype=dtype)
    return find


def unary(kind, **names):
    """A function whose further arguments are the attributes of these names, with their defaults."""
    def function(x, *values, **named):
        attrs = {**names, **dict(zip(names, values)), **named}
        return append(kind, {"X": x}, attrs)
    return function


def binary(kind, dtype=None, first="X", second="Y", **attrs):
    return lambda x, y: append(kind, {first: x, second: y}, attrs, dtype=dtype)


def old_norm(x, p=2, axis=None, keepdim=False):
    if p == "fro":
        return append("frobenius_norm", {"X": x}, {"dim": axis, "keep_dim": keepdim, "reduce_all": False})
    return append("p_norm", {"X": x}, {"porder": float(p), "axis": -1 if axis is None else axis, "keepdim": keepdim,
                                       "asvector": axis is None, "epsilon": 1e-12})


def use_old_operators():
    def sort(x, axis=-1, descending=False):
        return append("argsort", {"X": x}, {"axis": axis, "descending": descending}, ("Out", "Indices"))
    for name in ("exp log sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf log2 log10 log1p "
                 "expm1 floor ceil round sign abs").split():
        setattr(paddle, name, unary(name))
    for name in "sigmoid silu softsign".split():
        setattr(F, name, unary(name))
    for name in "max min".split():
        setattr(paddle, name, reducer("reduce_" + name))
        setattr(paddle, "a" + name, reducer("reduce_a" + name))
    for name in "and or xor".split():
        setattr(paddle, "logical_" + name, binary("logical_" + name, "bool"))
        setattr(paddle, "bitwise_" + name, binary("bitwise_" + name))
    paddle.logical_not = lambda x: append("logical_not", {"X": x}, dtype="bool")
    paddle.bitwise_not = unary("bitwise_not")
    for name, kind in (("maximum", "elementwise_max"), ("minimum", "elementwise_min"), ("fmax", "elementwise_fmax"),
                       ("fmin", "elementwise_fmin"), ("bmm", "bmm"), ("dot", "dot"), ("remainder", "elementwise_mod"),
                       ("floor_divide", "elementwise_floordiv"), ("multiply", "elementwise_mul")):
        setattr(paddle, name, binary(kind))
    paddle.mv = binary("mv", second="Vec")
    paddle.matmul = lambda x, y, transpose_x=False, transpose_y=False: append(
        "matmul_v2", {"X": x, "Y": y}, {"trans_x": transpose_x, "trans_y": transpose_y})
    paddle.addmm = lambda i, x, y, beta, alpha: append("addmm", {"Input": i, "X": x, "Y": y}, {"Alpha": alpha, "Beta": beta})
    paddle.pow = lambda x, y: append("pow", {"X": x}, {"factor": y}) if isinstance(y, float) else binary("elementwise_pow")(x, y)
    paddle.sum = lambda x, axis=None, keepdim=False: reducer("reduce_sum", None if x.dtype == paddle.float32 else "int64")(x, axis, keepdim)
    paddle.prod = reducer("reduce_prod")
    paddle.all, paddle.any = reducer("reduce_all", "bool"), reducer("reduce_any", "bool")
    paddle.argmax, paddle.argmin = arg("arg_max"), arg("arg_min")
    paddle.sort = lambda *a, **k: sort(*a, **k)[0]
    paddle.argsort = lambda *a, **k: sort(*a, **k)[1]
    paddle.logsumexp = lambda x, axis: append("logsumexp", {"X": x}, {"axis": [axis], "keepdim": False, "reduce_all": False})
    paddle.norm = old_norm
    F.normalize = lambda x, axis: x / paddle.maximum(old_norm(x, 2, axis, True), paddle.full([1], 1e-12))
    paddle.stanh = unary("stanh", scale_a=0.67, scale_b=1.7159)
    paddle.isnan, paddle.isinf, paddle.isfinite = [lambda x, k=k: append(k, {"X": x}, dtype="bool")
                                                   for k in ("isnan_v2", "isinf_v2", "isfinite_v2")]
    paddle.expand_as = lambda x, y: append("expand_as_v2", {"X": x, "Y": y}, {"target_shape": list(y.shape)})
    paddle.roll = lambda x, shifts, axis=None: append("roll", {"X": x}, {
        "shifts": shifts if isinstance(shifts, list) else [shifts], "axis": axis if isinstance(axis, list) else [] if axis is None else [axis]})
    paddle.tril = lambda x, diagonal=0: append("tril_triu", {"X": x}, {"diagonal": diagonal, "lower": True})
    paddle.triu = lambda x, diagonal=0: append("tril_triu", {"X": x}, {"diagonal": diagonal, "lower": False})
    paddle.index_select = lambda x, i, axis: append("index_select", {"X": x, "Index": i}, {"dim": axis})
    paddle.gather_nd, paddle.index_sample = binary("gather_nd", second="Index"), binary("index_sample", second="Index")
    F.softplus = unary("softplus", beta=1.0, threshold=20.0)
    F.thresholded_relu = unary("thresholded_relu", threshold=1.0, value=0.0)
    F.log_sigmoid, F.tanhshrink, F.mish, F.swish = unary("logsigmoid"), unary("tanh_shrink"), unary("mish", threshold=20.0), unary("swish")
    F.gelu = unary("gelu", approximate=False)
    F.softshrink = lambda x, threshold: append("softshrink", {"X": x}, {"lambda": threshold})
    F.hardshrink = unary("hard_shrink", threshold=0.5)
    F.pixel_shuffle = unary("pixel_shuffle", upscale_factor=1, data_format="NCHW")
    F.grid_sample = lambda x, grid, mode="bilinear", padding_mode="zeros", align_corners=True: append(
        "grid_sampler", {"X": x, "Grid": grid}, {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}, ("Output",))


# ---- Convolutions -----------------------------------------------------------------------------------

@case()
def conv2d():
    x = floats("x", [2, 4, 9, 8], dynamic=[0, 2])
    return [F.conv2d(x, weights([6, 4, 3, 3]), weights([6]), stride=2, padding=1),
            F.conv2d(x, weights([6, 2, 3, 2]), None, padding=[0, 1, 2, 0], dilation=[2, 1], groups=2)]


@case()
def conv2d_same():
    x = floats("x", [1, 3, 9, 8])
    return [F.conv2d(x, weights([4, 3, 3, 4]), None, stride=2, padding="SAME"),
            F.conv2d(x, weights([4, 3, 3, 3]), None, padding="SAME", dilation=2),
            F.conv2d(x, weights([4, 3, 3, 3]), None, padding="VALID")]


@case()
def conv2d_nhwc():
    x = floats("x", [1, 7, 6, 3], dynamic=[0])
    return F.conv2d(x, weights([4, 3, 3, 3]), weights([4]), padding=1, data_format="NHWC")


@case()
def depthwise_conv2d():
    x = floats("x", [1, 4, 8, 8])
    return nn.Conv2D(4, 4, 3, stride=2, padding=1, groups=4)(x), nn.Conv2D(4, 8, 5, padding=2, groups=4)(x)


@case()
def conv1d():
    return nn.Conv1D(3, 5, 3, padding=1, stride=2)(floats("x", [2, 3, 11]))


@case()
def conv3d():
    x = floats("x", [1, 3, 5, 6, 7])
    return nn.Conv3D(3, 4, 3, stride=[1, 2, 1], padding=1)(x), F.conv3d(x, weights([4, 3, 2, 2, 2]), padding="SAME")


@case()
def conv2d_transpose():
    x = floats("x", [1, 4, 5, 6])
    return [F.conv2d_transpose(x, weights([4, 3, 3, 3]), weights([3]), stride=2, padding=1, output_padding=1),
            F.conv2d_transpose(x, weights([4, 2, 4, 2]), None, stride=[2, 1], padding=[1, 0, 0, 1], groups=2),
            F.conv2d_transpose(x, weights([4, 3, 3, 3]), None, stride=2, output_size=[12, 14])]


@case()
def conv2d_transpose_same():
    return F.conv2d_transpose(floats("x", [1, 3, 5, 6]), weights([3, 2, 3, 3]), None, stride=2, padding="SAME")


@case()
def depthwise_conv2d_transpose():
    return F.conv2d_transpose(floats("x", [1, 4, 5, 5]), weights([4, 1, 4, 4]), None, stride=2, padding=1, groups=4)


@case()
def conv3d_transpose():
    return nn.Conv3DTranspose(3, 2, 3, stride=2, padding=1)(floats("x", [1, 3, 4, 4, 3]))


@case()
def deformable_conv():
    x, offset = floats("x", [1, 4, 6, 6]), floats("offset", [1, 18, 6, 6])
    mask = floats("mask", [1, 9, 6, 6], low=0, high=1)
    return [paddle.vision.ops.deform_conv2d(x, offset, weights([5, 4, 3, 3]), None, padding=1, mask=mask),
            paddle.vision.ops.deform_conv2d(x, offset, weights([5, 4, 3, 3]), weights([5]), padding=1)]


# ---- Pools ------------------------------------------------------------------------------------------

@case()
def pool2d_max():
    x = floats("x", [1, 3, 9, 10], dynamic=[0, 3])
    return [F.max_pool2d(x, 3, stride=2, padding=1), F.max_pool2d(x, 2, stride=2, ceil_mode=True),
            F.max_pool2d(x, [3, 2], stride=[2, 1], padding="SAME"), F.max_pool2d(x, 3, stride=3, padding="VALID")]


@case()
def pool2d_avg():
    x = floats("x", [1, 3, 9, 10])
    return [F.avg_pool2d(x, 3, stride=2, padding=1), F.avg_pool2d(x, 3, stride=2, padding=1, exclusive=False),
            F.avg_pool2d(x, 3, stride=2, ceil_mode=True), F.avg_pool2d(x, 3, stride=2, padding="SAME"),
            F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, exclusive=False)]


@case()
def pool2d_adaptive():
    x = floats("x", [1, 3, 8, 10])
    return [F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1), F.adaptive_avg_pool2d(x, [4, 5]),
            F.adaptive_avg_pool2d(x, [3, 7]), F.adaptive_max_pool2d(x, [4, 3])]


@case()
def pool2d_nhwc():
    return F.avg_pool2d(floats("x", [1, 6, 6, 3]), 2, data_format="NHWC")


@case()
def pool3d():
    x = floats("x", [1, 2, 4, 6, 6])
    return [F.max_pool3d(x, 2, stride=2), F.avg_pool3d(x, 3, stride=1, padding=1), F.adaptive_avg_pool3d(x, [2, 3, 3])]


@case()
def pool1d():
    x = floats("x", [2, 3, 10])
    return F.max_pool1d(x, 3, stride=2, padding=1), F.avg_pool1d(x, 2), F.adaptive_avg_pool1d(x, 5)


@case()
def max_pool2d_with_index():
    return F.max_pool2d(floats("x", [2, 3, 8, 8]), 2, stride=2, return_mask=True)


# ---- Normalizations ---------------------------------------------------------------------------------

@case()
def batch_norm():
    x = floats("x", [2, 4, 5, 5], dynamic=[0])
    layer = nn.BatchNorm2D(4, weight_attr=nn.initializer.Uniform(0.5, 1.5), bias_attr=nn.initializer.Uniform(-1, 1))
    plain = nn.BatchNorm2D(4, weight_attr=False, bias_attr=False, data_format="NCHW")
    last = nn.BatchNorm2D(5, data_format="NHWC")
    for one in (layer, plain, last):
        one.eval()
    return layer(x), plain(x), last(x)


@case()
def layer_norm():
    x = floats("x", [2, 5, 6])
    return [F.layer_norm(x, [6], weights([6]), weights([6]), 1e-5),
            F.layer_norm(x, [5, 6], weights([30]), weights([30])),
            F.layer_norm(x, [6])]


@case()
def group_norm():
    x = floats("x", [2, 6, 4, 5])
    return nn.GroupNorm(3, 6)(x), nn.GroupNorm(2, 6, weight_attr=False, bias_attr=False)(x)


@case()
def instance_norm():
    x = floats("x", [2, 3, 4, 5])
    return nn.InstanceNorm2D(3)(x), F.instance_norm(x)


@case()
def local_response_norm():
    return F.local_response_norm(floats("x", [1, 7, 4, 4]), 5, alpha=0.01, beta=0.75, k=1.0)


@case()
def normalize():
    x = floats("x", [2, 6, 5])
    return F.normalize(x, axis=1), paddle.norm(x, p=2, axis=-1), paddle.norm(x, p=1, axis=1, keepdim=True), \
        paddle.norm(x, p=float("inf"), axis=2), paddle.norm(x, p=3, axis=0), paddle.norm(x)


# ---- Products ---------------------------------------------------------------------------------------

@case()
def matmul():
    x, y = floats("x", [2, 3, 4, 5], dynamic=[0]), floats("y", [2, 3, 6, 5], dynamic=[0])
    return [paddle.matmul(x, y, transpose_y=True), paddle.matmul(x, weights([5, 7])),
            paddle.matmul(x, weights([4, 3]), transpose_x=True)]


@case()
def products():
    x, y = floats("x", [2, 3, 4]), floats("y", [2, 4, 5])
    a, b = floats("a", [3, 4]), floats("b", [3, 4])
    return [paddle.bmm(x, y), paddle.dot(a, b), paddle.mv(a, weights([4])),
            paddle.addmm(weights([3, 5]), a, weights([4, 5]), beta=0.5, alpha=2.0), paddle.einsum("bij,bjk->bik", x, y)]


@case()
def linear():
    return nn.Linear(6, 4)(floats("x", [3, 6], dynamic=[0])), nn.Linear(6, 4)(floats("y", [2, 3, 6]))


# ---- Two tensors ------------------------------------------------------------------------------------

@case()
def elementwise():
    x, y = floats("x", [2, 3, 4, 5], dynamic=[0]), floats("y", [3, 1, 5], low=0.5)
    return [x + y, x - y, x * y, x / y, paddle.pow(paddle.abs(x) + 0.1, y), paddle.maximum(x, y), paddle.minimum(x, y),
            paddle.fmax(x, y), paddle.fmin(x, y)]


@case()
def elementwise_scalars():
    x = floats("x", [2, 3])
    return [2.0 - x, x * 1.25 + 1.5, x * 0.5, x / 3.0, 1.0 / (x + 5.0), -x, x ** 2, paddle.scale(x, 2.0, 1.0, False)]


@case()
def remainders():
    x, y = floats("x", [3, 4], low=-9, high=9), floats("y", [4], low=1, high=4)
    i = give("i", np.arange(-6, 6).reshape(3, 4).astype("int64"))
    j = give("j", np.array([3, -3, 4, -4], "int64"))
    return [paddle.remainder(x, y), paddle.floor_divide(x, y), paddle.remainder(i, j), paddle.floor_divide(i, j)]


@case()
def comparisons():
    x, y = ints("x", [3, 4], 3), ints("y", [4], 3)
    a, b = x > y, x == y
    results = [a, b, x < y, x <= y, x >= y, x != y, paddle.logical_and(a, b), paddle.logical_or(a, b),
               paddle.logical_xor(a, b), paddle.logical_not(a)]
    return [paddle.cast(value, "int32") for value in results]


@case()
def bits():
    x, y = ints("x", [3, 4], 100, "int32"), ints("y", [4], 100, "int32")
    a = paddle.bitwise_and(x > 50, y > 50)
    return [paddle.bitwise_and(x, y), paddle.bitwise_or(x, y), paddle.bitwise_xor(x, y), paddle.bitwise_not(x),
            paddle.cast(a, "int32"), paddle.cast(paddle.bitwise_not(a), "int32")]


@case()
def add_n():
    return paddle.add_n([floats("x", [2, 3]), floats("y", [2, 3]), floats("z", [2, 3])])


# ---- Functions --------------------------------------------------------------------------------------

@case()
def activations():
    x = floats("x", [2, 3, 4], low=-5, high=5)
    return [F.relu(x), F.sigmoid(x), F.relu6(x), F.hardswish(x), F.hardsigmoid(x), F.hardsigmoid(x, 0.2, 0.4), F.swish(x),
            F.silu(x), F.mish(x), F.gelu(x), F.gelu(x, True), F.leaky_relu(x, 0.1), F.elu(x, 0.7), F.celu(x, 1.3), F.selu(x)]


@case()
def activations_rare():
    x = floats("x", [2, 3, 4], low=-5, high=5)
    return [F.softplus(x), F.softplus(x, 2.0, 15.0), F.softsign(x), F.hardshrink(x, 1.0), F.softshrink(x, 1.0), F.tanhshrink(x),
            F.thresholded_relu(x, 1.5), F.hardtanh(x, -1.5, 2.0), F.log_sigmoid(x), paddle.stanh(x, 0.5, 1.2)]


@case()
def prelu():
    x = floats("x", [2, 3, 4, 4])
    return F.prelu(x, weights([1])), F.prelu(x, weights([3])), F.prelu(x, weights([4]), data_format="NHWC")


@case()
def maxout():
    return F.maxout(floats("x", [2, 6, 3, 4]), 2, axis=1)


@case()
def functions():
    x = floats("x", [3, 4], low=0.1, high=0.9)
    return [paddle.exp(x), paddle.log(x), paddle.sqrt(x), paddle.rsqrt(x), paddle.square(x), paddle.reciprocal(x), paddle.sin(x),
            paddle.cos(x), paddle.tan(x), paddle.asin(x), paddle.acos(x), paddle.atan(x), paddle.sinh(x), paddle.cosh(x),
            paddle.tanh(x), paddle.asinh(x), paddle.acosh(x + 1), paddle.atanh(x), paddle.erf(x), paddle.log2(x),
            paddle.log10(x), paddle.log1p(x), paddle.expm1(x), paddle.pow(x, 2.5)]


@case()
def rounding():
    x = give("x", np.array([-2.5, -1.7, -0.5, 0.0, 0.5, 1.2, 1.5, 2.5], "float32"))
    y = give("y", np.array([1.0, np.inf, -np.inf, np.nan], "float32"))
    return [paddle.floor(x), paddle.ceil(x), paddle.round(x), paddle.sign(x), paddle.abs(x), paddle.cast(paddle.isnan(y), "int32"),
            paddle.cast(paddle.isinf(y), "int32"), paddle.cast(paddle.isfinite(y), "int32")]


@case()
def softmax():
    x = floats("x", [2, 3, 4], dynamic=[0])
    return F.softmax(x), F.softmax(x, axis=1), F.log_softmax(x, axis=-1)


# ---- Along axes -------------------------------------------------------------------------------------

@case()
def reductions():
    x = floats("x", [2, 3, 4, 5], dynamic=[0])
    return [paddle.mean(x, axis=[2, 3], keepdim=True), paddle.sum(x, axis=1), paddle.max(x, axis=-1), paddle.min(x, axis=[0, 1]),
            paddle.prod(x, axis=2), paddle.amax(x, axis=2), paddle.amin(x, axis=3, keepdim=True), paddle.logsumexp(x, axis=1),
            paddle.mean(x), paddle.sum(x), paddle.norm(x, p="fro", axis=[2, 3])]


@case()
def reductions_of_integers():
    x = ints("x", [3, 4], 2, "int32")
    truth = x > 0
    return [paddle.sum(x, axis=1), paddle.sum(truth), paddle.cast(paddle.all(truth, axis=1), "int32"),
            paddle.cast(paddle.any(truth, axis=0, keepdim=True), "int32"), paddle.max(x, axis=0)]


@case()
def extremes():
    x = floats("x", [3, 4, 5])
    return [paddle.argmax(x, axis=1), paddle.argmax(x, axis=-1, keepdim=True), paddle.argmax(x), paddle.argmin(x, axis=0, dtype="int32"),
            *paddle.topk(x, 3), *paddle.topk(x, 2, axis=1, largest=False), paddle.sort(x, axis=1), paddle.argsort(x, descending=True)]


@case()
def cumsum():
    x = floats("x", [3, 4])
    return paddle.cumsum(x, axis=0), paddle.cumsum(x, axis=-1), paddle.cumsum(x)


# ---- Shapes -----------------------------------------------------------------------------------------

@case()
def reshape():
    x = floats("x", [2, 3, 4, 5], dynamic=[0])
    n = paddle.shape(x)[0]
    return [paddle.reshape(x, [0, -1, 5]), paddle.reshape(x, [-1, 60]), paddle.reshape(x, [n, 12, 5]), paddle.flatten(x, 1),
            paddle.flatten(x, 1, 2), paddle.transpose(x, [0, 2, 3, 1]), paddle.flatten(x)]


@case()
def squeeze():
    x = floats("x", [2, 1, 4, 1])
    return [paddle.squeeze(x, [1]), paddle.squeeze(x), paddle.squeeze(x, [0, -1]), paddle.unsqueeze(x, [0]), paddle.unsqueeze(x, [1, 3]),
            paddle.unsqueeze(x, -1)]


@case()
def expand():
    x, y = floats("x", [1, 3, 1], dynamic=[0]), floats("y", [2, 3, 4])
    return [paddle.expand(x, [2, 3, 4]), paddle.expand(x, [-1, -1, 4]), paddle.expand_as(x, y), paddle.tile(x, [2, 1, 3]), paddle.tile(x, [2, 2, 1, 1]),
            paddle.broadcast_to(y, [2, 2, 3, 4])]


@case()
def shape():
    x = floats("x", [2, 3, 4], dynamic=[0, 2])
    return paddle.shape(x), paddle.numel(x), paddle.reshape(x, [paddle.shape(x)[2], -1])


@case()
def concat():
    x, y = floats("x", [2, 3, 4]), floats("y", [2, 1, 4])
    return paddle.concat([x, y, x], axis=1), paddle.concat([x, x], axis=-1), paddle.stack([x, x], axis=0), paddle.stack([x, x], axis=-1)


@case()
def split():
    x = floats("x", [2, 6, 4], dynamic=[0])
    return [*paddle.split(x, 3, axis=1), *paddle.split(x, [1, 2, -1], axis=1), *paddle.unstack(x, axis=1)[:2], *paddle.unbind(x, axis=2)[:2],
            *paddle.chunk(x, 2, axis=-1)]


@case()
def meshgrid():
    return paddle.meshgrid(floats("x", [3]), floats("y", [4]))


@case()
def slice():
    x = floats("x", [4, 6, 8], dynamic=[0])
    n = paddle.shape(x)[0]
    return [x[1:3], x[:, 2], x[..., -3:], x[:, ::2], x[:, 4:1:-1], x[0:n, 1], paddle.slice(x, [1, 2], [1, -4], [5, 100]),
            paddle.strided_slice(x, [1, 2], [5, 0], [0, 8], [-2, 3])]


@case()
def set_value():
    x, y = floats("x", [4, 6]), floats("y", [2, 3])
    whole = builtins.slice
    return [paddle.static.setitem(paddle.assign(x), (whole(1, 3), whole(0, 6, 2)), y),
            paddle.static.setitem(paddle.assign(x), 2, 1.5)]


@case()
def gather():
    x, i = floats("x", [5, 6]), ints("i", [4], 5)
    return [paddle.gather(x, i), paddle.gather(x, i, axis=1), paddle.index_select(x, i, axis=1), paddle.gather_nd(x, ints("j", [3, 2], 5)),
            paddle.index_sample(x, ints("k", [5, 2], 6)), paddle.take_along_axis(x, ints("l", [2, 6], 5), 0)]


@case()
def scatter():
    x, i, u = floats("x", [5, 3]), give("i", np.array([3, 1, 3], "int64")), floats("u", [3, 3])
    unique = give("j", np.array([4, 0, 2], "int64"))
    return [paddle.scatter(x, unique, u), paddle.scatter(x, i, u, overwrite=False),
            paddle.scatter_nd_add(x, paddle.unsqueeze(i, -1), u),
            paddle.put_along_axis(x, ints("k", [1, 3], 5), u[0:1], 0),
            paddle.put_along_axis(x, ints("l", [1, 3], 5), u[0:1], 0, reduce="add")]


@case()
def embedding():
    i = ints("i", [2, 5], 7)
    return F.embedding(i, weights([7, 4])), F.embedding(i, weights([7, 4]), padding_idx=3)


@case()
def where():
    x, y = floats("x", [3, 4]), floats("y", [3, 4])
    return [paddle.where(x > y, x, y), paddle.nonzero(x > 0), paddle.masked_select(x, x > y)]


@case()
def one_hot():
    return F.one_hot(give("i", np.array([[0, 2], [4, 1]], "int64")), 5)


@case()
def flip():
    x = floats("x", [3, 4, 5])
    return paddle.flip(x, [1]), paddle.flip(x, [0, -1]), paddle.roll(x, 2, 1), paddle.roll(x, [1, -2], [0, 2]), paddle.roll(x, 7)


# ---- Constants --------------------------------------------------------------------------------------

@case()
def constants():
    x = floats("x", [2, 3], dynamic=[0])
    return [x + paddle.full([3], 1.5), x + paddle.zeros([2, 3]), paddle.full_like(x, 2.0), paddle.zeros_like(x), paddle.ones([paddle.shape(x)[0], 4]),
            paddle.arange(0, 10, 3), paddle.arange(1.0, 2.0, 0.3), paddle.linspace(0, 1, 5), paddle.eye(3, 4),
            paddle.assign(np.array([[1.0, -2.0], [3.5, 0.0]], "float32")), paddle.assign(np.array([5, -7], "int64"))]


@case()
def ranges():
    x = floats("x", [2, 5], dynamic=[1])
    return paddle.arange(paddle.shape(x)[1]), paddle.full([paddle.shape(x)[1]], 3, "int64")


@case()
def fill_batch_size_like():
    x = floats("x", [3, 2], dynamic=[0])
    if PIR:
        from paddle import _C_ops
        return _C_ops.full_batch_size_like(x, [1, 4], paddle.float32, 0.5, 0, 0, paddle.CPUPlace())
    return append("fill_constant_batch_size_like", {"Input": x}, {"shape": [1, 4], "value": 0.5, "dtype": 5, "input_dim_idx": 0,
                                                                  "output_dim_idx": 0, "str_value": "0.5"})


@case()
def casts():
    x, i = floats("x", [3, 4], low=-3, high=3), ints("i", [3], 9)
    return [paddle.cast(x, "int32"), paddle.cast(x, "int64"), paddle.cast(paddle.cast(x, "bool"), "float32"), paddle.cast(i, "float32"),
            paddle.cast(x, "float64"), i * 2 + 1, paddle.clip(i, 2, 5)]


@case()
def clip():
    x = floats("x", [3, 4])
    return paddle.clip(x, -0.5, 1.0), paddle.clip(x, min=0.2), paddle.clip(x, max=0.3)


@case()
def dropout():
    x = floats("x", [2, 3])
    return F.dropout(x, 0.3, training=False), F.dropout(x, 0.3, training=False, mode="downscale_in_infer")


@case()
def triangle():
    x = floats("x", [4, 5])
    return paddle.tril(x), paddle.triu(x, 1), paddle.tril(x, -1)


@case()
def increment():
    return paddle.increment(paddle.exp(floats("x", [1])), 2.5)


# ---- Pictures ---------------------------------------------------------------------------------------

@case()
def interpolate_nearest():
    x = floats("x", [1, 2, 4, 5], dynamic=[0])
    return [F.interpolate(x, [8, 10]), F.interpolate(x, scale_factor=2), F.interpolate(x, [7, 9]), F.interpolate(x, scale_factor=[1.5, 2.5]),
            F.interpolate(x, [3, 3])]


@case()
def interpolate_bilinear():
    x = floats("x", [1, 2, 4, 5])
    return [F.interpolate(x, [8, 10], mode="bilinear"), F.interpolate(x, [7, 9], mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=2, mode="bilinear", align_mode=1), F.interpolate(x, [3, 3], mode="bilinear"),
            F.interpolate(x, scale_factor=1.7, mode="bilinear")]


@case()
def interpolate_to_another():
    x, y = floats("x", [1, 2, 4, 5], dynamic=[2, 3]), floats("y", [1, 2, 6, 9], dynamic=[2, 3])
    return F.interpolate(x, paddle.shape(y)[2:], mode="bilinear"), F.interpolate(x, [paddle.shape(y)[2], 7], mode="nearest")


@case()
def interpolate_bicubic():
    x = floats("x", [1, 2, 5, 6])
    return F.interpolate(x, [9, 11], mode="bicubic"), F.interpolate(x, [9, 11], mode="bicubic", align_corners=True)


@case()
def interpolate_other_ranks():
    x, y = floats("x", [1, 2, 6]), floats("y", [1, 2, 3, 4, 5])
    return [F.interpolate(x, [11], mode="linear", data_format="NCW"), F.interpolate(y, [5, 6, 7], mode="trilinear", data_format="NCDHW"),
            F.interpolate(floats("z", [1, 4, 5, 2]), [8, 10], mode="bilinear", data_format="NHWC")]


@case()
def pixel_shuffle():
    x = floats("x", [1, 8, 4, 6])
    return F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 4)


@case()
def pad():
    x, y = floats("x", [1, 2, 4, 5]), floats("y", [1, 2, 3, 4, 5])
    return [F.pad(x, [1, 2, 0, 3], value=0.5), F.pad(x, [1, 2, 2, 1], mode="reflect"), F.pad(x, [1, 0, 2, 1], mode="replicate"),
            F.pad(x, [1, 2, 2, 1], mode="circular"), F.pad(x, [0, 0, 1, 0, 0, 2, 1, 1], value=-1.0), F.pad(y, [1, 2, 3, 0, 1, 1]),
            F.pad(x, [1, 2, 0, 3], data_format="NHWC")]


@case()
def grid_sample():
    x, grid = floats("x", [1, 2, 5, 6]), floats("grid", [1, 4, 3, 2], low=-1.2, high=1.2)
    return [F.grid_sample(x, grid), F.grid_sample(x, grid, align_corners=False, padding_mode="border"),
            F.grid_sample(x, grid, mode="nearest", align_corners=False), F.grid_sample(x, grid, padding_mode="reflection")]


@case()
def affine_grid():
    theta = floats("theta", [2, 2, 3])
    return F.affine_grid(theta, [2, 3, 4, 5]), F.affine_grid(theta, [2, 3, 4, 5], align_corners=False)


@case()
def roi_align():
    x = floats("x", [2, 3, 12, 12])
    boxes = give("boxes", np.array([[0, 0, 6, 7], [2, 3, 10, 9], [1.5, 2.5, 8, 11]], "float32"))
    count = give("count", np.array([1, 2], "int32"))
    return [paddle.vision.ops.roi_align(x, boxes, count, 3, 0.9, 2, aligned=True),
            paddle.vision.ops.roi_align(x, boxes, count, (2, 3), 1.0, aligned=False)]


# ---- Detectors --------------------------------------------------------------------------------------

@case()
def prior_box():
    x, image = floats("x", [1, 2, 3, 4], dynamic=[2, 3]), floats("image", [1, 3, 24, 40], dynamic=[2, 3])
    from paddle.vision.ops import prior_box as make_boxes
    return [*make_boxes(x, image, [4.0, 8.0], [9.0, 16.0], [2.0, 3.0], [0.1, 0.1, 0.2, 0.2], True, True),
            *make_boxes(x, image, [4.0], [9.0], [0.5], flip=False, clip=False, steps=[8.0, 6.0], offset=0.4, min_max_aspect_ratios_order=True)]


@case()
def box_coder():
    prior, variance = floats("prior", [5, 4], low=0, high=1), floats("variance", [5, 4], low=0.1, high=0.3)
    target, other = floats("target", [2, 5, 4]), floats("other", [5, 3, 4])
    from paddle.vision.ops import box_coder as decode
    return [decode(prior, variance, target, "decode_center_size", axis=0), decode(prior, [0.1, 0.1, 0.2, 0.2], target, "decode_center_size", False, axis=0),
            decode(prior, variance, other, "decode_center_size", axis=1)]


@case()
def yolo_box():
    x, sizes = floats("x", [2, 21, 4, 5], dynamic=[0, 2, 3]), give("sizes", np.array([[64, 80], [100, 90]], "int32"))
    from paddle.vision.ops import yolo_box as decode
    anchors = [10, 13, 16, 30, 33, 23]
    return [*decode(x, sizes, anchors, 2, 0.5, 16), *decode(x, sizes, anchors, 2, 0.3, 16, clip_bbox=False, scale_x_y=1.2)]


@case()
def yolo_box_iou_aware():
    x, sizes = floats("x", [1, 24, 3, 3]), give("sizes", np.array([[48, 48]], "int32"))
    from paddle.vision.ops import yolo_box as decode
    return decode(x, sizes, [10, 13, 16, 30, 33, 23], 2, 0.2, 16, iou_aware=True, iou_aware_factor=0.4)


def boxes_and_scores(pictures, classes, count):
    random = np.random.RandomState(3)
    corner, size = random.random_sample((pictures, count, 2)), random.random_sample((pictures, count, 2)) * 0.5
    boxes = give("boxes", np.concatenate([corner, corner + size], axis=2).astype("float32"), [0, 1])
    scores = random.permutation(pictures * classes * count).reshape(pictures, classes, count) / (pictures * classes * count)
    return boxes, give("scores", scores.astype("float32"), [0, 2])


def suppress(boxes, scores, **attrs):
    attrs = {"score_threshold": 0.3, "nms_top_k": 100, "keep_top_k": 100, "nms_threshold": 0.4, "normalized": True, "nms_eta": 1.0,
             "background_label": -1, **attrs}
    if PIR:
        from paddle import _C_ops
        return _C_ops.multiclass_nms3(boxes, scores, None, *(attrs[key] for key in (
            "score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized", "nms_eta", "background_label")))
    helper = paddle.base.layer_helper.LayerHelper("nms")
    made = [helper.create_variable_for_type_inference(dtype) for dtype in ("float32", "int32", "int32")]
    helper.append_op(type="multiclass_nms3", inputs={"BBoxes": boxes, "Scores": scores},
                     outputs=dict(zip(("Out", "Index", "NmsRoisNum"), map(lambda v: [v], made))), attrs=attrs)
    return made


@case()
def multiclass_nms():
    boxes, scores = boxes_and_scores(2, 3, 20)
    return [*suppress(boxes, scores), *suppress(boxes * 100.0, scores, background_label=0, normalized=False)]


@case()
def multiclass_nms_few():
    boxes, scores = boxes_and_scores(2, 3, 20)
    return [*suppress(boxes, scores, nms_top_k=8, keep_top_k=7), *suppress(boxes, scores, keep_top_k=3, background_label=2)]


@case("pdmodel")
def multiclass_nms_old():
    boxes, scores = boxes_and_scores(1, 2, 12)
    attrs = {"score_threshold": 0.2, "nms_top_k": 9, "keep_top_k": 5, "nms_threshold": 0.5, "normalized": True, "nms_eta": 1.0,
             "background_label": 0}
    return append("multiclass_nms", {"BBoxes": boxes, "Scores": scores}, attrs)


def matrix_suppress(boxes, scores, **attrs):
    attrs = {"score_threshold": 0.2, "nms_top_k": 100, "keep_top_k": 100, "post_threshold": 0.1, "use_gaussian": False,
             "gaussian_sigma": 2.0, "background_label": -1, "normalized": True, **attrs}
    if PIR:
        from paddle import _C_ops
        return _C_ops.matrix_nms(boxes, scores, *attrs.values())
    helper = paddle.base.layer_helper.LayerHelper("nms")
    made = [helper.create_variable_for_type_inference(dtype) for dtype in ("float32", "int32", "int32")]
    helper.append_op(type="matrix_nms", inputs={"BBoxes": boxes, "Scores": scores},
                     outputs=dict(zip(("Out", "Index", "RoisNum"), map(lambda v: [v], made))), attrs=attrs)
    return made


@case()
def matrix_nms():
    boxes, scores = boxes_and_scores(2, 3, 20)
    return [*matrix_suppress(boxes, scores), *matrix_suppress(boxes * 100.0, scores, background_label=0, normalized=False)]


@case()
def matrix_nms_few():
    boxes, scores = boxes_and_scores(2, 3, 20)
    return [*matrix_suppress(boxes, scores, nms_top_k=8, keep_top_k=7, use_gaussian=True), *matrix_suppress(boxes, scores, keep_top_k=3)]


def with_outputs(kind, inputs, attrs, outputs):
    """An operator of ProgramDesc with these outputs, name -> (type, how many), in order."""
    helper = paddle.base.layer_helper.LayerHelper(kind)
    made = {name: [helper.create_variable_for_type_inference(dtype) for _ in range(count)] for name, (dtype, count) in outputs.items()}
    helper.append_op(type=kind, inputs=inputs, outputs=made, attrs=attrs)
    return [value for values in made.values() for value in values]


def propose(scores, deltas, sizes, anchors, variances, before, after, threshold, least, offset):
    if PIR:
        from paddle import _C_ops
        return _C_ops.generate_proposals(scores, deltas, sizes, anchors, variances, before, after, threshold, least, 1.0, offset)
    return with_outputs("generate_proposals_v2", {"Scores": scores, "BboxDeltas": deltas, "ImShape": sizes, "Anchors": anchors, "Variances": variances},
                   {"pre_nms_topN": before, "post_nms_topN": after, "nms_thresh": threshold, "min_size": least, "eta": 1.0, "pixel_offset": offset},
                   {"RpnRois": ("float32", 1), "RpnRoiProbs": ("float32", 1), "RpnRoisNum": ("int32", 1)})


@case()
def generate_proposals():
    random = np.random.RandomState(4)
    scores = give("scores", (random.permutation(2 * 3 * 20).reshape(2, 3, 4, 5) / 120).astype("float32"), [2, 3])
    deltas, sizes = floats("deltas", [2, 12, 4, 5], [2, 3], -.5, .5), give("sizes", np.array([[60, 70], [64, 80]], "float32"))
    low = random.random_sample((4, 5, 3, 2)) * 50
    anchors = give("anchors", np.concatenate([low, low + 8 + random.random_sample((4, 5, 3, 2)) * 20], 3).astype("float32"), [0, 1])
    variances = floats("variances", [4, 5, 3, 4], [0, 1], .5, 1.)
    return [*propose(scores, deltas, sizes, anchors, variances, 30, 8, 0.5, 4.0, False),
            *propose(scores, deltas, sizes, anchors, variances, 1000, 1000, 0.7, 9.0, True)]


def boxes_of_sizes():
    random = np.random.RandomState(6)
    low, size = random.random_sample((12, 2)) * 100, np.exp(random.random_sample((12, 2)) * 4 + 2.5)
    return give("boxes", np.concatenate([low, low + size], 1).astype("float32"), [0]), give("counts", np.array([5, 7], "int32"))


@case()
def distribute_proposals():
    boxes, counts = boxes_of_sizes()
    levels, restore, numbers = paddle.vision.ops.distribute_fpn_proposals(boxes, 2, 5, 4, 224, False, counts)
    other = paddle.vision.ops.distribute_fpn_proposals(boxes, 3, 4, 3, 50, True, counts)
    return [*levels, restore, *numbers, *other[0], other[1]]


@case()
def collect_proposals():
    boxes = [floats(f"boxes{i}", [n, 4], [0]) for i, n in enumerate((6, 9))]
    scores = [floats(f"scores{i}", [n, 1], [0]) for i, n in enumerate((6, 9))]
    counts = [give(f"counts{i}", np.array(n, "int32")) for i, n in enumerate(([2, 4], [5, 4]))]
    if PIR:
        from paddle import _C_ops
        return _C_ops.collect_fpn_proposals(boxes, scores, counts, 8)
    return with_outputs("collect_fpn_proposals", {"MultiLevelRois": boxes, "MultiLevelScores": scores, "MultiLevelRoIsNum": counts},
                   {"post_nms_topN": 8}, {"FpnRois": ("float32", 1), "RoisNum": ("int32", 1)})


# ---- Recurrent layers -------------------------------------------------------------------------------

@case()
def lstm():
    x = floats("x", [2, 5, 4])
    out, (h, c) = nn.LSTM(4, 3)(x)
    return out, h, c


@case()
def lstm_both_directions():
    x = floats("x", [2, 5, 4], dynamic=[0, 1])
    out, (h, c) = nn.LSTM(4, 3, num_layers=2, direction="bidirect")(x)
    return out, h, c


@case()
def gru():
    x = floats("x", [2, 5, 4])
    out, h = nn.GRU(4, 3, num_layers=2, direction="bidirect")(x)
    return out, h


@case()
def gru_time_first():
    return nn.GRU(4, 3, time_major=True)(floats("x", [5, 2, 4]))[0], nn.SimpleRNN(4, 3)(floats("y", [2, 5, 4]))[0]


# ---- Scales of a training for integers --------------------------------------------------------------

def several(kind, inputs, attrs, outputs, dtypes):
    helper = paddle.base.layer_helper.LayerHelper(kind)
    made = [helper.create_variable_for_type_inference(dtype) for dtype in dtypes]
    helper.append_op(type=kind, inputs=inputs, outputs={name: [value] for name, value in zip(outputs, made)}, attrs=attrs)
    return made[0]


def constant(numbers):
    numbers = np.array(numbers, "float32")
    return paddle.create_parameter(list(numbers.shape), "float32", default_initializer=nn.initializer.Assign(numbers))


@case("pdmodel")
def quantize_linear():
    x = floats("x", [2, 4, 3], low=-1, high=1)
    scale, zero, scales = constant([1.1]), constant([0.0]), constant([0.5, 1.0, 1.5, 2.0])
    attrs = {"quant_axis": -1, "bit_length": 8, "qmin": -128, "qmax": 127, "round_type": 0, "is_test": True, "only_observer": False}
    weights_of_channels = constant(np.arange(-60, 60, 5).reshape(4, 6))
    y = several("quantize_linear", {"X": x, "Scale": scale, "ZeroPoint": zero}, attrs, ["Y"], ["float32"])
    return [several("dequantize_linear", {"X": y, "Scale": scale, "ZeroPoint": zero}, attrs, ["Y"], ["float32"]),
            several("dequantize_linear", {"X": weights_of_channels, "Scale": scales, "ZeroPoint": constant([0.0] * 4)},
                    {**attrs, "quant_axis": 0}, ["Y"], ["float32"])]


@case()
def fake_quantize():
    x, scale, w = floats("x", [2, 4, 3], low=-1, high=1), constant([1.2]), weights([4, 3, 2])
    names = ["Out", "OutScale", "OutState", "OutAccum"]
    if PIR:
        from paddle import _C_ops
        return [_C_ops.fake_quantize_dequantize_moving_average_abs_max(x, scale, None, None, 0.9, 8, True, 1)[0],
                _C_ops.fake_channel_wise_quantize_dequantize_abs_max(w, 8, 1, 1)[0] * paddle.mean(x)]
    return [several("fake_quantize_dequantize_moving_average_abs_max", {"X": x, "InScale": scale},
                    {"moving_rate": 0.9, "bit_length": 8, "is_test": True, "round_type": 1}, names[:2], ["float32"] * 2),
            several("fake_channel_wise_quantize_dequantize_abs_max", {"X": w}, {"bit_length": 8, "quant_axis": 1, "round_type": 1}, names[:2],
                    ["float32"] * 2) * paddle.mean(x)]


# ---- Folders with __model__ -------------------------------------------------------------------------

@case("pdmodel")
def folder_separate():
    return nn.Linear(4, 3)(F.relu(nn.Linear(5, 4)(floats("x", [2, 5]))))


@case("pdmodel")
def folder_combined():
    return nn.Linear(4, 3)(F.relu(nn.Linear(5, 4)(floats("x", [2, 5]))))


# ---- Operators that no function makes any more ------------------------------------------------------

@case("pdmodel")
def old_elementwise_axis():
    x = floats("x", [2, 3, 4, 5])
    return [append("elementwise_add", {"X": x, "Y": weights([3])}, {"axis": 1}),
            append("elementwise_mul", {"X": x, "Y": weights([3, 4])}, {"axis": 1}),
            append("elementwise_sub", {"X": x, "Y": weights([2])}, {"axis": 0})]


@case("pdmodel")
def old_products():
    x = floats("x", [2, 3, 4], dynamic=[0])
    return [append("mul", {"X": x, "Y": weights([12, 5])}, {"x_num_col_dims": 1, "y_num_col_dims": 1}),
            append("mul", {"X": x, "Y": weights([4, 2, 3])}, {"x_num_col_dims": 2, "y_num_col_dims": 1}),
            append("matmul", {"X": x, "Y": weights([5, 4])}, {"transpose_X": False, "transpose_Y": True, "alpha": 0.5}),
            append("fc", {"Input": x, "W": weights([12, 5]), "Bias": weights([5])}, {"in_num_col_dims": 1, "activation_type": "relu"})]


@case("pdmodel")
def old_shapes():
    x = floats("x", [2, 3, 4])
    ids = ints("ids", [4, 1], 6)
    return [append("flatten2", {"X": x}, {"axis": 2}, ("Out", "XShape"))[0], append("expand", {"X": x}, {"expand_times": [1, 2, 1]}),
            append("reverse", {"X": x}, {"axis": [1]}), append("lookup_table", {"Ids": ids, "W": weights([6, 3])}, {"padding_idx": -1}),
            append("mean", {"X": x}), append("reshape", {"X": x}, {"shape": [6, 4]}), append("transpose", {"X": x}, {"axis": [2, 0, 1]})]


@case("pdmodel")
def old_pictures():
    x = floats("x", [1, 4, 6, 6])
    sizes = {"interp_method": "nearest", "align_corners": False, "out_h": 9, "out_w": 12, "data_layout": "NCHW", "align_mode": 1}
    return [append("nearest_interp", {"X": x}, sizes),
            append("bilinear_interp", {"X": x}, {**sizes, "interp_method": "bilinear", "align_corners": True}),
            append("bilinear_interp", {"X": x}, {**sizes, "interp_method": "bilinear", "out_h": -1, "out_w": -1, "scale": 2.0}),
            append("affine_channel", {"X": x, "Scale": weights([4]), "Bias": weights([4])}, {"data_layout": "NCHW"}),
            append("shuffle_channel", {"X": x}, {"group": 2}),
            append("norm", {"X": x}, {"axis": 1, "epsilon": 1e-10}, ("Out", "Norm"))[0],
            append("lrn", {"X": x}, {"n": 3, "k": 2.0, "alpha": 0.1, "beta": 0.6}, ("Out", "MidOut"))[0],
            append("top_k", {"X": x}, {"k": 2}, ("Out", "Indices"))[0],
            append("brelu", {"X": x}, {"t_min": -1.0, "t_max": 0.5})]


@case("pir")
def operators_without_functions():
    from paddle import _C_ops
    x = floats("x", [1, 4, 6, 6])
    made = [_C_ops.affine_channel(x, weights([4]), weights([4]), "NCHW"), _C_ops.shuffle_channel(x, 2), _C_ops.norm(x, 1, 1e-10, False),
            _C_ops.mean_all(x), _C_ops.reverse(x, [1]), _C_ops.shape(x),
            _C_ops.increment(paddle.mean(x), 2.5), _C_ops.fc(x, weights([144, 5]), weights([5]), 1, "relu", False)]
    return [value[0] if isinstance(value, (list, tuple)) else value for value in made]


def main():
    if FORM:
        failed = []
        for name in sys.argv[1:] or [name for name, (_, forms) in MAKERS.items() if FORM in forms]:
            if FORM not in MAKERS[name][1]:
                continue
            try:
                make(name)
            except Exception as error:  # the other cases shall be made nevertheless
                failed.append(f"{name}: {FORM}: {type(error).__name__}: {str(error).strip()[-600:]}")
        print("\n".join(failed) or f"{FORM}: made", flush=True)
        sys.exit(bool(failed))
    os.makedirs(CASES, exist_ok=True)
    done = [subprocess.run([sys.executable, __file__, *sys.argv[1:]], env={**os.environ, "PADDLE_FORM": form}, check=False)
            for form in ("pdmodel", "pir")]
    sys.exit(any(one.returncode for one in done))


if __name__ == "__main__":
    main()
