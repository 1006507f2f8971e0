"""make.py [CASE...]: makes the cases, small models with what TensorFlow computes. Made with tensorflow-cpu 2.21.0 (oneDNN
off), keras 3.15.1 and tf_keras 2.21.0; the cases are committed, so that testing needs none of them.

A case is a function of tensors. Its graph is written as TensorFlow freezes it (`freeze`), as it traces it with its functions
(`plain`), or as TensorFlow 1 made it (`old`), with the inputs and what TensorFlow gives for them."""

import os
import shutil
import sys

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "cases")
raw, v1 = tf.raw_ops, tf.compat.v1
CASES = {}


def noise(*shape, seed=0, low=-1.0, high=1.0, dtype=np.float32):
    values = np.random.RandomState(seed + len(shape)).uniform(low, high, shape)
    return values.astype(dtype) if np.dtype(dtype).kind == "f" else np.floor(values).astype(dtype)


def write(name, graph, inputs, outputs, flags, text=False):
    with open(os.path.join(OUT, name + (".pbtxt" if text else ".pb")), "wb") as file:
        file.write(text_format.MessageToString(graph).encode() if text else graph.SerializeToString())
    arrays = {f"in:{key}": value for key, value in inputs.items()}
    arrays |= {f"out:{key}": np.asarray(value) for key, value in outputs.items()}
    if flags:
        arrays["flags"] = np.array(flags)
    np.savez_compressed(os.path.join(OUT, name + ".npz"), **arrays)


STATEFUL = {"StatelessIf": "If", "StatelessWhile": "While", "PartitionedCall": "StatefulPartitionedCall"}


def stateful(graph):
    """The operators that graphs with variables have in their place."""
    for nodes in [graph.node] + [function.node_def for function in graph.library.function]:
        for node in nodes:
            node.op = STATEFUL.get(node.op, node.op)
    return graph


def strip(graph):
    """What says where a node came from is no part of a model."""
    for node in graph.node:
        node.ClearField("experimental_debug_info")
        node.attr.pop("_output_shapes", None)
    graph.ClearField("versions")
    return graph


def run(graph, inputs, names):
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(graph, name="")
        values = session.run([n if ":" in n else n + ":0" for n in names],
                             {key + ":0": value for key, value in inputs.items()})
    return dict(zip(names, values))


def case(*inputs, kind="freeze", shapes=None, flags=(), name=None, lower=True):
    """The function under its own name, or `name`; inputs x, y, z, ...; `shapes` where the model says less of them."""
    def add(function):
        CASES[name or function.__name__] = (function, inputs, kind, shapes, list(flags), lower)
        return function
    return add


def traced(function, inputs, shapes):
    names = [f"x{i}" for i in range(len(inputs))]
    specs = [tf.TensorSpec(shapes[i] if shapes else array.shape, array.dtype, name=key)
             for i, (key, array) in enumerate(zip(names, inputs))]
    return tf.function(function).get_concrete_function(*specs), dict(zip(names, inputs))


class Module(tf.Module):
    """A layer with variables in members and lists, and a constant that its function captures."""

    def __init__(self):
        super().__init__()
        self.kernels = [tf.Variable(noise(3, 3, 3, 4)), tf.Variable(noise(2, 2, 4, 5))]
        self.table = tf.Variable(noise(5, 3))
        self.shift = tf.constant(noise(300), name="shift")

    def compute(self, x):
        for kernel in self.kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        rows = raw.ResourceGather(resource=self.table.handle, indices=[1, 3, 2], dtype=tf.float32)
        return tf.matmul(tf.reduce_mean(x, [1, 2]), self.table) + rows[0] + self.shift[:3]


class Served(Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 3], tf.float32, name="pictures")])
    def __call__(self, pictures):
        return self.compute(pictures)


class Bare(Module):
    """Without a shape of its input no signature is made."""

    @tf.function
    def __call__(self, pictures):
        return self.compute(pictures)


def make_saved(name, signature):
    """A folder; with a signature for serving, or its functions alone."""
    module, x = Served() if signature else Bare(), noise(2, 6, 6, 3)
    expected = module(x).numpy()
    tf.saved_model.save(module, os.path.join(OUT, name))
    os.remove(os.path.join(OUT, name, "fingerprint.pb"))
    output = "output_0" if signature else "identity"
    np.savez_compressed(os.path.join(OUT, name + ".npz"), **{"in:pictures": x, f"out:{output}": expected})


def make_saved_old(name):
    """As TensorFlow 1 saved: variables of the graph by their names."""
    x = noise(2, 6, 6, 3)
    with tf.Graph().as_default(), v1.Session() as session:
        holder = v1.placeholder(tf.float32, [None, 6, 6, 3], name="x")
        plain = v1.get_variable("plain", initializer=noise(3, 3, 3, 4), use_resource=False)
        resource = v1.get_variable("scope/resource", initializer=noise(4), use_resource=True)
        y = tf.nn.bias_add(tf.nn.conv2d(holder, plain, 2, "SAME"), resource)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, os.path.join(OUT, name), {"pictures": holder}, {"result": y})
        np.savez_compressed(os.path.join(OUT, name + ".npz"), **{"in:pictures": x, "out:result": session.run(y, {holder: x})})


def make_wav(name):
    """Features of a file of sound, whose samples are the input."""
    sound = tf.audio.encode_wav(SOUND[:, :1], 16000).numpy()
    with tf.Graph().as_default() as graph, v1.Session() as session:
        contents = v1.placeholder(tf.string, [], name="wav_data")
        audio, rate = raw.DecodeWav(contents=contents, desired_channels=1, desired_samples=1600, name="decoded")
        spectrum = raw.AudioSpectrogram(input=audio, window_size=480, stride=320, magnitude_squared=True)
        features = raw.Mfcc(spectrogram=spectrum, sample_rate=rate, name="features")
        inputs, outputs = session.run([audio, features], {contents: sound})
    write(name, strip(graph.as_graph_def()), {"decoded": inputs}, {"features": outputs}, [])


def make_checkpoint(name):
    """A graph with the variables that a Saver wrote beside it, and a dropout that is off."""
    x = noise(2, 6, 6, 3)
    with tf.Graph().as_default(), v1.Session() as session:
        holder = v1.placeholder(tf.float32, [None, 6, 6, 3], name="pictures")
        keep = v1.placeholder_with_default(1., [], name="keep")
        kernel = v1.get_variable("kernel", initializer=noise(3, 3, 3, 4), use_resource=False)
        y = v1.nn.dropout(tf.nn.conv2d(holder, kernel, 2, "SAME"), keep_prob=keep)
        old = y * tf.floor(keep + v1.random_uniform(tf.shape(y), dtype=tf.float32))
        tf.identity(old, name="result")
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, os.path.join(OUT, name), latest_filename=name + ".latest")
        os.remove(os.path.join(OUT, name + ".latest"))
        np.savez_compressed(os.path.join(OUT, name + ".npz"), flags=["-enn", "result"], **{
            "in:pictures": x, "out:result": session.run("result:0", {holder: x})})


SAVED = {"checkpoint": make_checkpoint, "wav_file": make_wav, "saved_model": lambda name: make_saved(name, True), "saved_functions": lambda name: make_saved(name, False),
         "saved_old": make_saved_old}


def make(name, function, inputs, kind, shapes, flags, lower):
    if kind == "old":
        with tf.Graph().as_default() as graph:
            holders = [v1.placeholder(a.dtype, shapes[i] if shapes else a.shape, name=f"x{i}") for i, a in enumerate(inputs)]
            results = function(*holders)
        feeds = {f"x{i}": a for i, a in enumerate(inputs)}
        results = results if isinstance(results, (list, tuple)) else [results]
        names = [r.name[:-2] if r.name.endswith(":0") else r.name for r in results]
        definition = strip(graph.as_graph_def())
    else:
        concrete, feeds = traced(function, inputs, shapes)
        if kind == "freeze":
            concrete = convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
        definition = strip(concrete.graph.as_graph_def())
        definition = stateful(definition) if kind == "stateful" else definition
        names = [o.name[:-2] if o.name.endswith(":0") else o.name for o in concrete.outputs]
    flags = flags + (["-enn", *names] if "-enn" not in flags else [])
    write(name, definition, feeds, run(definition, feeds, names), flags, name.startswith("text_"))


# ---- Functions of numbers --------------------------------------------------------------------------------------------

def unary(operator, low=-2.0, high=2.0, dtype=np.float32):
    case(noise(2, 3, 4, 5, low=low, high=high, dtype=dtype), name=operator.lower())(
        lambda x: getattr(raw, operator)(**{"features" if operator in FEATURES else
                                            "input" if operator == "Erf_" else "x": x}))


FEATURES = {"Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"}
for op in ("Abs Asinh Atan Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor Neg Relu Relu6 Rint Round Selu Sigmoid Sign Sin Sinh "
           "Softplus Softsign Square Tan Tanh").split():
    unary(op, -7 if op == "Relu6" else -2, 7 if op == "Relu6" else 2)
for op in "Log Log1p Sqrt Rsqrt Reciprocal Inv".split():
    unary(op, 0.1, 4)
for op in "Acos Asin Atanh".split():
    unary(op, -0.9, 0.9)
unary("Acosh", 1.1, 3)
unary("Invert", -100, 100, np.int32)


def binary(operator, a, b, name=None):
    case(a, b, name=name or operator.lower())(lambda x, y: getattr(raw, operator)(x=x, y=y))


for op in "Add AddV2 Sub Mul Div RealDiv Maximum Minimum SquaredDifference DivNoNan MulNoNan FloorDiv FloorMod".split():
    binary(op, noise(2, 3, 4), noise(3, 1, seed=1) * (noise(3, 1, seed=4) > -0.5))if op in ("DivNoNan", "MulNoNan") else binary(
        op, noise(2, 3, 4), noise(3, 1, seed=1, low=0.5, high=2))
for op in "Equal NotEqual Greater GreaterEqual Less LessEqual".split():
    binary(op, noise(2, 3, 4, low=0, high=4, dtype=np.int32), noise(4, low=0, high=4, dtype=np.int32))
for op in "BitwiseAnd BitwiseOr BitwiseXor TruncateDiv TruncateMod Mod".split():
    binary(op, noise(2, 3, 4, low=-90, high=90, dtype=np.int32), noise(4, low=1, high=40, dtype=np.int32))
binary("FloorDiv", noise(4, 5, low=-90, high=90, dtype=np.int32), noise(5, low=-9, high=-1, dtype=np.int32), "floordiv_int")
binary("FloorMod", noise(4, 5, low=-90, high=90, dtype=np.int32), noise(5, low=1, high=9, dtype=np.int32), "floormod_int")
binary("Pow", noise(2, 3, 4, low=0.1, high=3), noise(4, low=-2, high=3))
binary("Xlogy", noise(3, 4, low=0, high=3) * (noise(3, 4, seed=5) > 0), noise(4, low=0.2, high=3))
binary("Atan2", noise(5, 7), noise(5, 7, seed=3))


@case(noise(3, 4))
def logical(x):
    a, b = x > 0, tf.abs(x) > 0.5
    return tf.where(tf.logical_and(a, tf.logical_or(tf.logical_not(b), a)), 1, 2)


@case(np.array([[1, np.nan, np.inf], [-np.inf, 0, 3]], np.float32))
def kinds_of_numbers(x):
    return [tf.cast(raw.IsNan(x=x), tf.int32), tf.cast(raw.IsInf(x=x), tf.int32), tf.cast(raw.IsFinite(x=x), tf.int32)]


case(noise(2, 3), noise(2, 3, seed=1), noise(2, 3, seed=2), name="addn")(lambda x, y, z: raw.AddN(inputs=[x, y, z]))
case(noise(2, 5, low=-3, high=3), name="clipbyvalue")(
    lambda x: raw.ClipByValue(t=x, clip_value_min=-1., clip_value_max=1.5) + raw.ClipByValue(t=x, clip_value_min=x * x - 1, clip_value_max=x * x))
case(noise(2, 5), name="leakyrelu")(lambda x: raw.LeakyRelu(features=x, alpha=0.3) + raw.LeakyRelu(features=-x))
case(noise(2, 5, low=-9, high=9), name="cast")(lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32) / 3 + tf.cast(x > 0, tf.float32))
case(noise(2, 3, 4, 5), name="softmax")(lambda x: raw.Softmax(logits=x) + raw.LogSoftmax(logits=x))

# ---- Along axes ------------------------------------------------------------------------------------------------------

for op in "Mean Sum Max Min Prod EuclideanNorm".split():
    case(noise(2, 3, 4, 5), name=op.lower())(
        lambda x, op=op: [getattr(raw, op)(input=x, axis=[1, 2], keep_dims=False), getattr(raw, op)(input=x, axis=-1, keep_dims=True),
                          getattr(raw, op)(input=x, axis=[0, 1, 2, 3]), getattr(raw, op)(input=x, axis=[])])
case(noise(3, 4), name="all_any")(lambda x: [tf.cast(raw.All(input=x > -0.5, axis=[1]), tf.int32),
                                             tf.cast(raw.Any(input=x > 0.5, axis=[0], keep_dims=True), tf.int32)])
case(noise(2, 3, 4), name="argmax")(lambda x: [raw.ArgMax(input=x, dimension=2), raw.ArgMax(input=x, dimension=0, output_type=tf.int32)])
case(noise(2, 3, 4), name="argmin")(lambda x: raw.ArgMin(input=x, dimension=-1))
case(noise(2, 3, 4), name="cumsum")(lambda x: raw.Cumsum(x=x, axis=1) + raw.Cumsum(x=x, axis=-1, exclusive=True, reverse=True))
case(noise(3, 7), name="topk")(lambda x: list(raw.TopKV2(input=x, k=3)) + list(tf.math.top_k(x[None], 1)))

# ---- Windows ---------------------------------------------------------------------------------------------------------

X = noise(2, 7, 9, 3)
for padding in ("SAME", "VALID"):
    case(X, name=f"conv2d_{padding.lower()}")(lambda x, p=padding: tf.nn.bias_add(
        tf.nn.conv2d(x, noise(3, 2, 3, 4), [1, 2, 3, 1], p), noise(4)))
    case(X, name=f"depthwise_{padding.lower()}")(lambda x, p=padding: tf.nn.depthwise_conv2d(x, noise(3, 3, 3, 2), [1, 2, 2, 1], p))
    case(noise(1, 5, 6, 7, 2), name=f"conv3d_{padding.lower()}")(
        lambda x, p=padding: tf.nn.conv3d(x, noise(2, 3, 2, 2, 3), [1, 1, 2, 2, 1], p))
    case(X, name=f"maxpool_{padding.lower()}")(lambda x, p=padding: tf.nn.max_pool2d(x, [3, 2], [2, 3], p))
    case(X, name=f"avgpool_{padding.lower()}")(lambda x, p=padding: tf.nn.avg_pool2d(x, 3, 2, p))
    case(noise(2, 4, 5, 3), name=f"conv2d_transpose_{padding.lower()}")(
        lambda x, p=padding: tf.nn.conv2d_transpose(x, noise(3, 2, 4, 3), [2, 8, 10, 4] if p == "SAME" else [2, 9, 10, 4], 2, p))
case(X, name="conv2d_dilated")(lambda x: tf.nn.conv2d(x, noise(3, 3, 3, 4), 1, "SAME", dilations=[1, 2, 3, 1]))
case(noise(1, 6, 6, 4), name="conv2d_groups")(lambda x: tf.nn.conv2d(x, noise(3, 3, 2, 6), 1, "SAME"))
case(X, name="conv2d_explicit")(lambda x: tf.nn.conv2d(x, noise(3, 3, 3, 4), 2, [[0, 0], [2, 1], [0, 3], [0, 0]]))
case(X, name="conv2d_open_batch", shapes=[[None, 7, 9, 3]])(lambda x: tf.nn.relu(tf.nn.conv2d(x, noise(3, 3, 3, 4), 2, "SAME")))
case(X, name="conv2d_open_sizes", shapes=[[None, None, None, 3]])(lambda x: tf.nn.conv2d(x, noise(3, 3, 3, 4), 2, "SAME"))
case(noise(2, 9, 3), name="conv1d")(lambda x: tf.nn.conv1d(tf.nn.relu(tf.nn.conv1d(x, noise(3, 3, 4), 2, "SAME")), noise(2, 4, 5), 1, "VALID"))
case(noise(1, 3, 4, 2, 3), name="conv3d_transpose")(lambda x: tf.nn.conv3d_transpose(x, noise(3, 3, 2, 2, 3), [1, 6, 8, 4, 2], 2, "SAME"))
case(X, name="pools3d")(lambda x: [tf.nn.max_pool3d(x[None], 2, 2, "SAME"), tf.nn.avg_pool3d(x[None], [1, 3, 2], [1, 2, 2], "SAME")])
case(X, name="maxpool_explicit")(lambda x: tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 0], [0, 2], [0, 0]]))
case(noise(1, 6, 6, 2), noise(1, 3, 3, 2, seed=1), name="maxpoolgrad")(
    lambda x, g: raw.MaxPoolGrad(orig_input=x, orig_output=tf.nn.max_pool2d(x, 2, 2, "VALID"), grad=g, ksize=[1, 2, 2, 1],
                                 strides=[1, 2, 2, 1], padding="VALID"))
case(X, name="atrous")(lambda x: raw.BatchToSpaceND(
    input=tf.nn.conv2d(raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 3], [2, 3]]), noise(3, 3, 3, 4), 1, "VALID"),
    block_shape=[2, 2], crops=[[0, 1], [0, 1]]))
case(noise(2, 4, 6, 3), name="spacetobatch")(lambda x: [raw.SpaceToBatch(input=x, paddings=[[1, 1], [0, 0]], block_size=2),
                                                       raw.SpaceToBatchND(input=x, block_shape=[2], paddings=[[0, 2]])])
case(noise(8, 4, 3, 2), name="batchtospace")(lambda x: [raw.BatchToSpace(input=x, crops=[[1, 0], [0, 2]], block_size=2),
                                                       raw.BatchToSpaceND(input=x, block_shape=[4], crops=[[3, 2]])])

# ---- Normalization ---------------------------------------------------------------------------------------------------

STATS = (noise(3, low=0.5), noise(3, seed=1), noise(3, seed=2), noise(3, seed=3, low=0.2, high=2))


def batch_norm(operator, training, x):
    scale, offset, mean, variance = STATS
    empty = np.zeros(0, np.float32)
    return getattr(raw, operator)(x=x, scale=scale, offset=offset, mean=empty if training else mean,
                                  variance=empty if training else variance, epsilon=1e-3, is_training=training)[0]


for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    case(X, name=op.lower())(lambda x, op=op: batch_norm(op, False, x))
case(X, name="batchnorm_training")(lambda x: batch_norm("FusedBatchNormV3", True, x))
case(X[:1], name="batchnorm_training_one")(lambda x: batch_norm("FusedBatchNormV3", True, x))
case(noise(1, 3, 3, 8), name="lrn")(lambda x: raw.LRN(input=x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.75))

# ---- Shapes ----------------------------------------------------------------------------------------------------------

case(noise(2, 3, 4), name="shape_open", shapes=[[None, 3, 4]])(lambda x: tf.reshape(x * 2, [tf.shape(x)[0], -1]) + tf.cast(tf.size(x), tf.float32))
case(noise(2, 3, 4), name="shapes")(lambda x: [raw.Shape(input=x), raw.Size(input=x), raw.Rank(input=x)] + list(raw.ShapeN(input=[x, x[0]])))
case(noise(2, 1, 3, 1), name="squeeze")(lambda x: [raw.Squeeze(input=x), raw.Squeeze(input=x, axis=[-1])])
case(noise(2, 3, 4), name="expanddims")(lambda x: [raw.ExpandDims(input=x, axis=-1), raw.ExpandDims(input=x, axis=1)])
case(X, name="transpose")(lambda x: [tf.transpose(x, [0, 3, 1, 2]), tf.transpose(tf.nn.relu(tf.nn.max_pool2d(x, 2, 2, "SAME")), [3, 1, 0, 2])])
case(noise(2, 3, 4), name="reverse")(lambda x: raw.ReverseV2(tensor=x, axis=[0, -1]))
case(noise(2, 3), name="tile")(lambda x: [raw.Tile(input=x, multiples=[2, 3]), raw.BroadcastTo(input=x, shape=[4, 2, 3])])
case(noise(2, 3), name="fill")(lambda x: raw.Fill(dims=[2, 3], value=2.5) + x + raw.ZerosLike(x=x) + raw.OnesLike(x=x))
case(noise(3), name="range")(lambda x: x + tf.cast(raw.Range(start=1, limit=7, delta=2), tf.float32) + raw.Range(start=0.5, limit=2., delta=0.5))
case(X, noise(2, 7, 9, 2), name="concat")(lambda x, y: [raw.ConcatV2(values=[x, y], axis=-1), raw.Concat(concat_dim=1, values=[x, x])])
case(noise(2, 3), noise(2, 3, seed=1), name="pack")(lambda x, y: [raw.Pack(values=[x, y]), raw.Pack(values=[x, y], axis=-1)])
case(noise(2, 6), name="split")(lambda x: list(raw.Split(axis=1, value=x, num_split=3)) + list(raw.SplitV(value=x, size_splits=[1, -1, 2], axis=-1, num_split=3)))
case(noise(3, 2), name="unpack")(lambda x: list(raw.Unpack(value=x, num=3)) + list(raw.Unpack(value=x, num=2, axis=1)))
case(noise(4, 5, 6), name="slice")(lambda x: raw.Slice(input=x, begin=[1, 0, 2], size=[2, -1, 3]))
case(noise(4, 5, 6), np.array([1, 2, 0], np.int32), name="slice_computed")(lambda x, b: raw.Slice(input=x, begin=b, size=[2, -1, 3]))
case(noise(4, 5, 6), name="strided_slice")(lambda x: [x[1:, ::-1, 1:5:2], x[..., 2], x[:, None, 3, -1], x[-1, ..., None], x[2:0:-1, -2]])
case(noise(4, 5, 6), np.array(2, np.int32), name="strided_slice_computed")(lambda x, i: x[i])
case(X, name="strided_slice_pictures")(lambda x: tf.nn.relu(tf.nn.max_pool2d(x, 2, 1, "SAME"))[:, 1:-1, ::2, :2])
case(X, name="pad")(lambda x: [raw.Pad(input=x, paddings=[[0, 0], [1, 2], [3, 0], [0, 1]]),
                               raw.PadV2(input=x, paddings=[[1, 0], [0, 0], [0, 0], [0, 0]], constant_values=7.)])
case(noise(3, 4), name="mirrorpad")(lambda x: [raw.MirrorPad(input=x, paddings=[[1, 2], [0, 3]], mode="REFLECT"),
                                               raw.MirrorPad(input=x, paddings=[[1, 3], [4, 0]], mode="SYMMETRIC")])
case(noise(1, 2, 3, 8), name="depthtospace")(lambda x: tf.nn.space_to_depth(tf.nn.depth_to_space(x, 2), 2) * 2)
case(noise(1, 2, 3, 8), name="depthtospace_plain")(lambda x: tf.nn.depth_to_space(x, 2))
case(noise(1, 4, 6, 3), name="spacetodepth")(lambda x: tf.nn.space_to_depth(x, 2))

# ---- Resizing --------------------------------------------------------------------------------------------------------

P = noise(1, 5, 6, 2)
for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
    for mode in ("asymmetric", "align_corners", "half_pixel_centers"):
        for word, size in (("up", [10, 18]), ("other", [7, 4])):
            case(P, name=f"{op.lower()}_{mode}_{word}")(lambda x, op=op, m=mode, s=size: getattr(raw, op)(
                images=x, size=s, align_corners=m == "align_corners", half_pixel_centers=m == "half_pixel_centers"))

# ---- Products, choosing ----------------------------------------------------------------------------------------------

case(noise(3, 4), noise(5, 4, seed=1), name="matmul")(lambda x, y: [raw.MatMul(a=x, b=y, transpose_b=True), raw.MatMul(a=x, b=noise(3, 2), transpose_a=True)])
case(noise(2, 3, 4), noise(2, 4, 5, seed=1), name="batchmatmul")(lambda x, y: [raw.BatchMatMul(x=x, y=y), raw.BatchMatMulV2(x=x, y=y[0] * 1), raw.BatchMatMulV2(x=x, y=x, adj_y=True)])
case(noise(2, 3, 4), noise(4, 5, seed=1), name="einsum")(lambda x, y: [tf.einsum("abc,cd->abd", x, y), raw.Einsum(inputs=[x, x], equation="abc,adc->abd")])
case(noise(2, 4, 6, 3), name="flatten_matmul")(lambda x: tf.matmul(tf.reshape(tf.nn.relu(tf.nn.conv2d(x, noise(3, 3, 3, 4), 1, "SAME")), [-1, 96]), noise(96, 5)))
case(noise(2, 4, 6, 3), name="flatten_matmul_c2chw_", shapes=[[None, 4, 6, 3]])(lambda x: tf.matmul(tf.reshape(tf.nn.max_pool2d(x, 2, 2, "SAME"), [-1, 18]), noise(18, 5)))
case(noise(3, 4), noise(3, 4, seed=1), name="select")(lambda x, y: [raw.SelectV2(condition=x > 0, t=x, e=0. * y[0]), raw.Select(condition=x[:, 0] > 0, x=x, y=y)])
case(noise(3, 4), name="where")(lambda x: raw.Where(condition=x > 0))
I = np.array([[2, 0], [1, 1]], np.int32)
case(noise(3, 4, 5), I, name="gather")(lambda x, i: [raw.GatherV2(params=x, indices=i, axis=1), raw.Gather(params=x, indices=i)])
case(noise(2, 4, 5), I, name="gather_batched")(lambda x, i: tf.gather(x, i, axis=1, batch_dims=1))
case(noise(3, 4, 5), I, name="gathernd")(lambda x, i: raw.GatherNd(params=x, indices=i))
case(I, noise(2, 3), name="scatternd")(lambda i, u: raw.ScatterNd(indices=i[:, :1], updates=u, shape=[4, 3]))
case(noise(4, 3), I[:, :1], noise(2, 3), name="tensorscatter")(lambda x, i, u: [getattr(raw, f"TensorScatter{k}")(tensor=x, indices=i, updates=u)
                                                                              for k in ("Update", "Add", "Max", "Min")])
case(np.array([[1, 0], [3, 2]], np.int32), name="onehot")(lambda i: [raw.OneHot(indices=i, depth=4, on_value=2., off_value=-1.), raw.OneHot(indices=i, depth=3, on_value=1., off_value=0., axis=0)])



def block_lstm(x, peephole, clip=-1.):
    return raw.BlockLSTM(seq_len_max=np.int64(4), x=x, cs_prev=noise(2, 5), h_prev=noise(2, 5, seed=1), w=noise(8, 20), wci=noise(5),
                         wcf=noise(5, seed=1), wco=noise(5, seed=2), b=noise(20), forget_bias=0.7, cell_clip=clip, use_peephole=peephole)[6]


case(noise(4, 2, 3), name="blocklstm")(lambda x: [block_lstm(x, False), block_lstm(x, True), block_lstm(x, True, 0.3)])

case(noise(2, 3, 4, low=-3, high=3), name="fakequant")(lambda x: [
    raw.FakeQuantWithMinMaxArgs(inputs=x, min=-1.3, max=2.1), raw.FakeQuantWithMinMaxVars(inputs=x, min=-2., max=1.),
    raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=[-1., -2., 0., -0.5], max=[1., 1.5, 2., 0.25])])
BOXES = np.abs(noise(12, 4)) + np.array([0, 0, 1, 1], np.float32)
case(BOXES, np.abs(noise(12)), name="nonmaxsuppression")(lambda x, s: raw.NonMaxSuppressionV3(
    boxes=x, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.1))
case(BOXES, noise(12), name="nonmaxsuppression_old")(lambda x, s: [
    raw.NonMaxSuppression(boxes=x, scores=s, max_output_size=5, iou_threshold=0.3),
    raw.NonMaxSuppressionV2(boxes=x, scores=s, max_output_size=20, iou_threshold=0.4)])
case(BOXES, noise(12), name="nonmaxsuppression_v4")(lambda x, s: [*raw.NonMaxSuppressionV4(
    boxes=x, scores=s, max_output_size=9, iou_threshold=0.4, score_threshold=0.1, pad_to_max_output_size=True)])
case(BOXES, noise(12), name="nonmaxsuppression_v5")(lambda x, s: [*raw.NonMaxSuppressionV5(
    boxes=x, scores=s, max_output_size=9, iou_threshold=0.4, score_threshold=0.1, soft_nms_sigma=0., pad_to_max_output_size=True),
    *raw.NonMaxSuppressionV5(boxes=x, scores=s, max_output_size=3, iou_threshold=0.2, score_threshold=0.3, soft_nms_sigma=0.)])


def combined(own, per_class, clip):
    boxes = np.abs(noise(2, 7, 3 if own else 1, 4)) * 0.4 + np.array([0, 0, 0.5, 0.7], np.float32)
    case(boxes, noise(2, 7, 3, low=0, seed=3), name=f"nonmaxsuppression_combined{'_own' if own else ''}")(
        lambda x, s: [*raw.CombinedNonMaxSuppression(
            boxes=x, scores=s, max_output_size_per_class=3, max_total_size=30 if own else 5, iou_threshold=0.5,
            score_threshold=0.3, pad_per_class=per_class, clip_boxes=clip)])


combined(False, True, True)
combined(True, False, False)
PARTS = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], [-0.2, 0.3, 1.1, 0.4], [0.8, 0.7, 0.2, 0.1], [0.3, 0.3, 0.32, 0.31]], np.float32)
for rows, columns in ((3, 4), (1, 2)):
    case(noise(2, 7, 6, 3), PARTS, name=f"cropandresize_{rows}")(lambda x, boxes, rows=rows, columns=columns: raw.CropAndResize(
        image=x, boxes=boxes, box_ind=[0, 1, 1, 0, 1], crop_size=[rows, columns], extrapolation_value=0.5))
FEW = {"narrow_range": True, "num_bits": 8}
case(noise(2, 3, 4, low=-3, high=3), name="fakequant_narrow")(lambda x: [
    raw.FakeQuantWithMinMaxArgs(inputs=x, min=-1.3, max=2.1, **FEW), raw.FakeQuantWithMinMaxVars(inputs=x, min=-2., max=2., **FEW),
    raw.FakeQuantWithMinMaxVars(inputs=x, min=-2., max=1., num_bits=4),
    raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=[-1., -2., 0., -0.5], max=[1., 1.5, 2., 0.25], num_bits=5, narrow_range=True)])


def dequantize(name, dtype, modes, low, high, axis=-1):
    plain = tf.uint8 if dtype == tf.quint8 else tf.int8
    integers = noise(2, 3, 4, low=plain.min, high=plain.max, dtype=plain.as_numpy_dtype)

    @case(noise(2, 3, 4), name=name)
    def function(x):
        numbers = tf.constant(integers.astype(dtype.as_numpy_dtype), dtype)
        return [x + raw.Dequantize(input=numbers, min_range=low, max_range=high, mode=mode, axis=axis) for mode in modes]


dequantize("dequantize_first", tf.quint8, ["MIN_FIRST"], -1.3, 2.1)
dequantize("dequantize_first_int8", tf.qint8, ["MIN_FIRST"], 0.2, 2.1)
dequantize("dequantize_combined", tf.quint8, ["MIN_COMBINED", "SCALED"], -1.3, 2.1)
dequantize("dequantize_scaled", tf.qint8, ["MIN_COMBINED", "SCALED"], -3.3, 2.1)
dequantize("dequantize_axis", tf.qint8, ["SCALED"], [-1., -2., -0.5], [1., 1.5, 2.], axis=1)
dequantize("dequantize_tiny", tf.quint8, ["MIN_FIRST"], 0., 1e-39)

SOUND = np.sin(np.arange(1600) ** 1.3 / 9).astype(np.float32)[:, None] * 0.5 + noise(1600, 2) * 0.1
for window, squared in ((400, True), (256, False)):
    case(SOUND, name=f"audiospectrogram_{window}")(lambda x, window=window, squared=squared: raw.AudioSpectrogram(
        input=x, window_size=window, stride=160, magnitude_squared=squared))
case(SOUND, name="mfcc")(lambda x: [raw.Mfcc(
    spectrogram=raw.AudioSpectrogram(input=x, window_size=480, stride=320, magnitude_squared=True), sample_rate=16000,
    dct_coefficient_count=count, filterbank_channel_count=bands, lower_frequency_limit=low) for count, bands, low in ((10, 40, 20), (13, 20, 300))])

# ---- Names and control -----------------------------------------------------------------------------------------------


@case(noise(2, 3))
def passing(x):
    with tf.control_dependencies([tf.debugging.assert_less(x, 9.)]):
        y = raw.Identity(input=x)
    y, z = raw.IdentityN(input=[y, y * 2])
    y = raw.PreventGradient(input=raw.StopGradient(input=y))
    y = raw.CheckNumerics(tensor=y, message="")
    return raw.EnsureShape(input=y, shape=[2, 3]) + z


@case(noise(2, 3), kind="old", flags=["-snn", "x0:0", "-enn", "result:0"])
def learning_phase(x):
    phase = v1.placeholder_with_default(False, [], name="keras_learning_phase")
    kept = v1.cond(phase, lambda: tf.nn.dropout(x, 0.5), lambda: x * 3)
    flag = v1.placeholder_with_default(False, [], name="is_training")
    return tf.identity(v1.cond(flag, lambda: kept * 0, lambda: kept + 1), name="result")


@case(noise(2, 3), kind="old")
def condition(x):
    return v1.cond(tf.reduce_sum(x) > 0, lambda: x * 3, lambda: x - 1)


@case(noise(4, 2, 3), kind="old")
def old_loop(x):
    rows = tf.TensorArray(tf.float32, 4, infer_shape=False).unstack(x)
    done = tf.TensorArray(tf.float32, 4)

    def turn(i, state, done):
        state = tf.tanh(state * 0.5 + rows.read(i))
        state.set_shape([2, 3])
        return i + 1, state, done.write(i, state)
    i, state, done = v1.while_loop(lambda i, *_: i < done.size(), turn, [0, tf.zeros([2, 3]), done])
    return [state, done.stack(), tf.cast(i, tf.float32) + tf.cast(raw.TensorArraySizeV3(handle=done.handle, flow_in=done.flow), tf.float32)]


case(noise(4, 2, 3), kind="old", name="text_loop")(old_loop)
case(noise(1, 6, 5, 3), name="text_conv")(lambda x: tf.nn.relu(tf.nn.conv2d(x, noise(3, 3, 3, 4), 2, "SAME") + noise(4)))


@case(noise(4, 2, 3), kind="old")
def nested_loops(x):
    def inner(i, y):
        return v1.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, y + x[0] * tf.cast(j, tf.float32)), [0, y])[1]
    return v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner(i, y) * 0.5), [0, x[1]])[1]


def loop_over_lists(x):
    rows, done = tf.TensorArray(tf.float32, 4).unstack(x), tf.TensorArray(tf.float32, 4)
    state = tf.zeros([2, 3])
    for i in tf.range(4):
        state = tf.tanh(state * 0.5 + rows.read(i))
        done = done.write(i, state)
    return done.stack()


case(noise(4, 2, 3), name="while_functions", lower=False)(loop_over_lists)
case(noise(4, 2, 3), name="while_plain", kind="plain")(loop_over_lists)
case(noise(4, 2, 3), name="while_stateful", kind="stateful")(loop_over_lists)


@case(noise(2, 3), kind="plain")
@case(noise(2, 3), kind="stateful", name="calls_stateful")
def calls(x):
    inner = tf.function(lambda a, b: (a * b, raw.TopKV2(input=a, k=2)[0]))
    middle = tf.function(lambda a: inner(a, a + 1))
    y, z = middle(x)
    return [y, z, middle(y)[0]]


@case(noise(2, 3), kind="plain")
@case(noise(2, 3), kind="stateful", name="if_stateful")
def if_functions(x):
    y = tf.cond(tf.constant(True), lambda: x * 2, lambda: x[:1])
    return tf.cond(tf.reduce_sum(x) > 0, lambda: y + 1, lambda: y - 1)


@case(noise(3, 2), kind="plain")
def lists(x):
    made = raw.TensorListFromTensor(tensor=x, element_shape=[2])
    made = raw.TensorListSetItem(input_handle=made, index=1, item=x[0] * 5)
    made = raw.TensorListPushBack(input_handle=made, tensor=x[2] - 1)
    shorter, last = raw.TensorListPopBack(input_handle=made, element_shape=[2], element_dtype=tf.float32)
    empty = raw.EmptyTensorList(element_shape=[1, 2], max_num_elements=-1, element_dtype=tf.float32)
    empty = raw.TensorListPushBack(input_handle=empty, tensor=x[:1])
    empty = raw.TensorListPushBack(input_handle=empty, tensor=x[1:2])
    joined = raw.TensorListConcatV2(input_handle=empty, element_shape=[1, 2], leading_dims=tf.constant([], tf.int64),
                                    element_dtype=tf.float32)[0]
    return [raw.TensorListStack(input_handle=shorter, element_shape=[2], element_dtype=tf.float32), last, joined,
            tf.cast(raw.TensorListLength(input_handle=made), tf.float32) + x]


def main():
    chosen = sys.argv[1:] or list(CASES) + list(SAVED)
    os.makedirs(OUT, exist_ok=True)
    for name in chosen:
        if name in SAVED:
            shutil.rmtree(os.path.join(OUT, name), ignore_errors=True)
            SAVED[name](name)
            continue
        if CASES[name][2] == "old":
            v1.disable_control_flow_v2()
        else:
            v1.enable_control_flow_v2()
        try:
            make(name, *CASES[name])
        except Exception as error:
            print(name, repr(error)[:300])
    print(len(chosen), "cases")


if __name__ == "__main__":
    main()
