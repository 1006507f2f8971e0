"""models_made.py: the functions that make.py converts."""

import tempfile

import numpy as np
import tensorflow as tf

from __main__ import case


def weights(seed, *shape):
    return tf.constant(((np.random.RandomState(seed).random_sample(shape) * 2 - 1) / np.sqrt(np.prod(shape[:-1]))).astype("f4"))


def whole(shape, low, high, dtype="int32"):
    return (shape, dtype, low, high)


IMAGE = (1, 9, 8, 3)

# ---- Convolutions and pools --------------------------------------------------------------------


def conv(x, strides=(1, 1), padding="SAME", dilations=(1, 1), kernel=(3, 3), filters=4, act=tf.nn.relu6, groups=1):
    y = tf.nn.conv2d(x, weights(1, *kernel, x.shape[3] // groups, filters), strides, padding, dilations=dilations)
    return act(y + weights(2, filters))


for kind in ("float", "int8", "int16", "dynamic", "float16"):
    big = {"filters": 8, "kernel": (3, 3)} if kind == "dynamic" else {}
    case(f"conv_{kind}", IMAGE if kind != "dynamic" else (1, 9, 8, 16), kind=kind)(
        lambda x, big=big: conv(conv(x, (2, 2), **big), padding="VALID", act=tf.nn.relu, **big))
case("conv_same_odd", (1, 10, 7, 3))(lambda x: conv(x, (2, 3), kernel=(4, 5), act=tf.identity))
case("conv_dilated", (1, 14, 13, 3))(lambda x: conv(x, dilations=(2, 3)))
case("conv_groups", (1, 6, 6, 8))(lambda x: conv(x, groups=4, filters=8, act=tf.identity))
case("conv_batch", (None, 6, 6, 3))(lambda x: conv(x, (2, 2)))
case("conv_open", (None, None, None, 3))(lambda x: conv(x, (2, 2)))
case("conv_int8_per_tensor", IMAGE, kind="int8", per_tensor=True)(lambda x: conv(x, (2, 2)))


def depthwise(x, strides=1, padding="SAME", dilations=(1, 1), multiplier=1, act=tf.nn.relu):
    return act(tf.nn.depthwise_conv2d(x, weights(3, 3, 3, x.shape[3], multiplier), (1, strides, strides, 1), padding,
                                      dilations=dilations) + weights(4, x.shape[3] * multiplier))


for kind in ("float", "int8", "dynamic"):
    case(f"depthwise_{kind}", (1, 9, 8, 40 if kind == "dynamic" else 4), kind=kind)(
        lambda x: depthwise(depthwise(x, 2, multiplier=3)))
case("depthwise_dilated", (1, 9, 10, 4))(lambda x: depthwise(x, dilations=(2, 2), padding="VALID", act=tf.nn.relu6))
case("depthwise_dilated_same", (1, 9, 10, 4))(lambda x: depthwise(x, dilations=(3, 2)))
case("conv_3d", (1, 5, 6, 7, 2))(lambda x: tf.nn.conv3d(x, weights(5, 3, 3, 2, 2, 4), (1, 2, 1, 2, 1), "SAME") + weights(6, 4))


def transposed(x, size, strides, padding):
    return tf.nn.conv2d_transpose(x, weights(7, 3, 4, 5, 3), size, strides, padding) + weights(8, 5)


case("transpose_conv_same", (1, 4, 5, 3))(lambda x: transposed(x, (1, 8, 10, 5), 2, "SAME"))
case("transpose_conv_odd", (1, 4, 5, 3))(lambda x: transposed(x, (1, 7, 9, 5), 2, "SAME"))
case("transpose_conv_valid", (1, 4, 5, 3))(lambda x: transposed(x, (1, 12, 16, 5), 3, "VALID"))
case("transpose_conv_int8", (1, 4, 5, 3), kind="int8")(lambda x: transposed(x, (1, 8, 10, 5), 2, "SAME"))
case("conv_3d_transpose", (1, 3, 4, 3, 2))(
    lambda x: tf.nn.conv3d_transpose(x, weights(9, 2, 3, 3, 4, 2), (1, 6, 8, 6, 4), 2, "SAME"))
for kind in ("float", "int8"):
    case(f"max_pool_{kind}", IMAGE, kind=kind)(lambda x: tf.nn.max_pool2d(tf.nn.max_pool2d(x, (3, 2), (2, 1), "SAME"), 2, 2, "VALID"))
    case(f"average_pool_{kind}", IMAGE, kind=kind)(lambda x: tf.nn.avg_pool2d(tf.nn.avg_pool2d(x, (3, 2), (2, 1), "SAME"), 2, 2, "VALID"))
    case(f"mean_{kind}", (2, 5, 6, 3), kind=kind)(lambda x: tf.reduce_mean(x, (1, 2)))
    case(f"softmax_{kind}", ((3, 7), "float32", -4, 4), kind=kind)(lambda x: tf.nn.softmax(x))
    case(f"log_softmax_{kind}", ((3, 7), "float32", -4, 4), kind=kind)(lambda x: tf.nn.log_softmax(x))
    case(f"logistic_{kind}", ((3, 40), "float32", -8, 8), kind=kind)(lambda x: tf.sigmoid(x))
    case(f"tanh_{kind}", ((3, 40), "float32", -4, 4), kind=kind)(lambda x: tf.tanh(x))
    case(f"leaky_relu_{kind}", (3, 40), kind=kind)(lambda x: tf.nn.leaky_relu(x, 0.3))
    case(f"hard_swish_{kind}", ((1, 4, 4, 3), "float32", -5, 5), kind=kind)(lambda x: x * tf.nn.relu6(x + 3) * (1 / 6))
    case(f"add_{kind}", IMAGE, (1, 9, 8, 3), kind=kind)(lambda x, y: tf.nn.relu(x + y))
    case(f"add_channel_{kind}", IMAGE, (3,), kind=kind)(lambda x, y: x + y)
    case(f"sub_{kind}", IMAGE, (1, 1, 8, 1), kind=kind)(lambda x, y: x - y)
    case(f"mul_{kind}", IMAGE, (1, 1, 1, 3), kind=kind)(lambda x, y: tf.nn.relu6(x * y))
    case(f"dense_{kind}", (3, 12), kind=kind)(lambda x: tf.nn.relu(tf.matmul(x, weights(10, 12, 5)) + weights(11, 5)))
    case(f"concat_{kind}", IMAGE, ((1, 9, 8, 2), "float32", -3, 3), kind=kind)(lambda x, y: tf.concat((x, y, x * 2), 3))
    case(f"batch_matmul_{kind}", (2, 4, 5), (2, 5, 3), kind=kind)(lambda x, y: tf.matmul(x, y))
    case(f"l2_normalization_{kind}", (2, 3, 3, 6), kind=kind)(lambda x: tf.math.l2_normalize(x, 3))
    case(f"maximum_{kind}", (3, 8), (1, 8), kind=kind)(lambda x, y: tf.maximum(x, y))
    case(f"minimum_{kind}", (3, 8), (3, 1), kind=kind)(lambda x, y: tf.minimum(x, y))
    case(f"resize_bilinear_{kind}", (1, 4, 5, 3), kind=kind)(
        lambda x: tf.compat.v1.image.resize_bilinear(x, (7, 11), half_pixel_centers=True))
    case(f"resize_nearest_{kind}", (1, 4, 5, 3), kind=kind)(
        lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, (7, 11), half_pixel_centers=True))
    case(f"pad_{kind}", IMAGE, kind=kind)(lambda x: conv(tf.pad(x, ((0, 0), (1, 2), (0, 3), (0, 1))), padding="VALID", filters=2))
    case(f"strided_slice_{kind}", (3, 6, 7, 4), kind=kind)(lambda x: x[1, ::2, -1:1:-3, 1:3])
    case(f"transpose_{kind}", (2, 3, 4, 5), kind=kind)(lambda x: tf.transpose(x, (0, 3, 1, 2)))
    case(f"split_{kind}", (2, 6, 4), kind=kind)(lambda x: tf.split(x, 3, 1))
    case(f"squared_difference_{kind}", (3, 8), (3, 1), kind=kind)(lambda x, y: tf.math.squared_difference(x, y))
    case(f"reduce_max_{kind}", (2, 5, 6, 3), kind=kind)(lambda x: tf.reduce_max(x, (1, 2), keepdims=True))
    case(f"arg_max_{kind}", (2, 5, 6, 3), kind=kind)(lambda x: tf.argmax(x, 3))
    # The reference kernel of integers computes something else.
    case(f"sum_{kind}", (2, 5, 6, 3), kind=kind, kernels="default")(lambda x: tf.reduce_sum(x, (1, 3)))
    case(f"prelu_{kind}", (1, 4, 4, 3), kind=kind)(
        lambda x: tf.nn.relu(x) + tf.constant([[[.1, .3, -.2]]]) * -tf.nn.relu(-x))
    case(f"elu_{kind}", (3, 8), kind=kind)(lambda x: tf.nn.elu(x * 3))
    case(f"exp_{kind}", (3, 8), kind=kind)(tf.exp)
    case(f"gelu_{kind}", ((3, 30), "float32", -4, 4), kind=kind)(lambda x: tf.nn.gelu(x))
case("gelu_tanh", ((3, 30), "float32", -4, 4))(lambda x: tf.nn.gelu(x, approximate=True))
case("dense_dynamic", (3, 64), kind="dynamic")(lambda x: tf.nn.relu(tf.matmul(x, weights(10, 64, 40)) + weights(11, 40)))
case("dense_float16", (3, 12), kind="float16")(lambda x: tf.nn.relu(tf.matmul(x, weights(10, 12, 5)) + weights(11, 5)))
case("dense_keeps_axes", (2, 3, 12))(
    lambda x: tf.tensordot(x, weights(12, 12, 5), 1) + weights(13, 5))
case("dense_keeps_axes_int8", (2, 3, 12), kind="int8")(
    lambda x: tf.tensordot(x, weights(12, 12, 5), 1) + weights(13, 5))
case("batch_matmul_adjoint", (2, 5, 4), (2, 3, 5))(lambda x, y: tf.matmul(x, y, transpose_a=True, transpose_b=True))

# ---- Functions of one number -------------------------------------------------------------------

for name, function, low, high in (
        ("floor", tf.floor, -4, 4), ("ceil", tf.math.ceil, -4, 4), ("round", tf.round, -4, 4), ("abs", tf.abs, -4, 4),
        ("neg", tf.negative, -4, 4), ("log", tf.math.log, .1, 4), ("sqrt", tf.sqrt, 0, 4), ("rsqrt", tf.math.rsqrt, .1, 4),
        ("sin", tf.sin, -4, 4), ("cos", tf.cos, -4, 4), ("square", tf.square, -4, 4), ("sign", tf.sign, -4, 4),
        ("relu", tf.nn.relu, -2, 2), ("relu6", tf.nn.relu6, -2, 8), ("relu_n1_to_1", lambda x: tf.minimum(tf.maximum(x, -1.), 1.), -2, 2),
        ("relu_0_to_1", lambda x: tf.minimum(tf.maximum(x, 0.), 1.), -2, 2)):
    case(name, ((3, 9), "float32", low, high))(lambda x, function=function: function(x))
case("zeros_like", (None, 9))(lambda x: tf.raw_ops.ZerosLike(x=x) + 1)
case("relu_int8", ((3, 9), "float32", -2, 2), kind="int8")(lambda x: tf.nn.relu(tf.reshape(x, (9, 3))))
case("abs_int32", whole((3, 9), -50, 50))(lambda x: tf.abs(x) - tf.negative(x))
case("fake_quant", (3, 20))(lambda x: tf.quantization.fake_quant_with_min_max_args(x * 3, -1.7, 2.1, 8, False))
case("cast", ((3, 9), "float32", -5, 5))(lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32) + tf.cast(x > 0, tf.float32))

# ---- Two tensors -------------------------------------------------------------------------------

for name, function in (("less", tf.less), ("less_equal", tf.less_equal), ("greater", tf.greater),
                       ("greater_equal", tf.greater_equal), ("equal", tf.equal), ("not_equal", tf.not_equal)):
    case(name, whole((2, 3, 4), -3, 3), whole((2, 1, 4), -3, 3))(lambda x, y, function=function: function(x, y))
for name, function in (("logical_and", tf.logical_and), ("logical_or", tf.logical_or)):
    case(name, whole((2, 9), 0, 2, "bool"), whole((2, 1), 0, 2, "bool"))(lambda x, y, function=function: function(x, y))
case("logical_not", whole((2, 9), 0, 2, "bool"))(tf.logical_not)
case("div", IMAGE, ((1, 1, 1, 3), "float32", 1, 3))(lambda x, y: x / y)
case("pow", ((3, 5), "float32", .1, 2), ((3, 1), "float32", -2, 2))(tf.pow)
case("floor_div", ((3, 5), "float32", -9, 9), ((3, 1), "float32", 1, 3))(lambda x, y: x // y)
case("floor_div_int", whole((3, 15), -9, 9), whole((3, 1), 1, 5))(lambda x, y: x // y + x // (-y))
case("floor_mod", ((3, 5), "float32", -9, 9), ((3, 1), "float32", -3, -1))(lambda x, y: x % y)
case("floor_mod_int", whole((3, 15), -9, 9), whole((3, 1), 1, 5))(lambda x, y: x % y + x % (-y))
case("add_n", (3, 5), (3, 5), (3, 5))(lambda x, y, z: tf.add_n((x, y, z)))
case("atan2", (3, 15), (3, 15))(tf.atan2)
case("add_int", whole((3, 5), -9, 9), whole((3, 1), 1, 5))(lambda x, y: (x + y) * (x - y))

# ---- Along axes --------------------------------------------------------------------------------

case("reduce_min", (2, 5, 6, 3))(lambda x: tf.reduce_min(x, -1))
case("reduce_prod", (2, 3, 4))(lambda x: tf.reduce_prod(x, (0, 2), keepdims=True))
case("reduce_any", whole((2, 3, 4), 0, 2, "bool"))(lambda x: tf.reduce_any(x, 1))
case("reduce_all", whole((2, 3, 4), 0, 2, "bool"))(lambda x: tf.reduce_all(x, 1))
case("mean_channels", IMAGE)(lambda x: tf.reduce_mean(tf.nn.max_pool2d(x, 2, 1, "SAME"), 3))
case("mean_keeps", IMAGE)(lambda x: tf.reduce_mean(tf.nn.max_pool2d(x, 2, 1, "SAME"), (1, 2), keepdims=True))
case("mean_batch", (2, 4, 4, 3))(lambda x: tf.reduce_mean(tf.nn.max_pool2d(x, 2, 1, "SAME"), (0, 2)))
case("arg_min", (2, 5, 6))(lambda x: tf.argmin(x, 1, tf.int32))
case("top_k", (2, 9))(lambda x: tf.math.top_k(x, 4))
case("cumsum", (2, 5, 3))(lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True))
# The reference kernel leaves the last channel of each window out.
case("local_response", (1, 3, 3, 9), kernels="default")(lambda x: tf.nn.local_response_normalization(x, 2, 1.5, .3, .6))
case("softmax_4d", (1, 3, 4, 5))(lambda x: tf.nn.softmax(tf.nn.max_pool2d(x, 2, 1, "SAME")))

# ---- Shapes ------------------------------------------------------------------------------------

case("reshape", (2, 3, 4))(lambda x: tf.reshape(x, (4, -1)))
case("reshape_open", (None, 3, 4))(lambda x: tf.reshape(x, (tf.shape(x)[0], 12)) * 2)
case("squeeze", (2, 1, 4, 1))(lambda x: tf.squeeze(x, 1) * 2)
case("expand_dims", (2, 3))(lambda x: tf.expand_dims(tf.expand_dims(x, -1), 1) * 2)
case("space_to_depth", (1, 4, 6, 3))(lambda x: tf.nn.space_to_depth(x, 2))
case("depth_to_space", (1, 2, 3, 12))(lambda x: tf.nn.depth_to_space(x, 2))
case("space_to_batch", (1, 5, 6, 3))(lambda x: tf.space_to_batch(x, (2, 3), ((1, 0), (2, 1))))
case("batch_to_space", (6, 3, 3, 2))(lambda x: tf.batch_to_space(x, (2, 3), ((1, 0), (2, 1))))
case("space_to_batch_3d", (2, 6, 3))(lambda x: tf.space_to_batch(x, (2,), ((1, 1),)))
case("pack", (2, 3), (2, 3))(lambda x, y: tf.stack((x, y), 1))
case("unpack", (2, 3, 4))(lambda x: tf.unstack(x, axis=1))
case("split_v", (2, 6, 4))(lambda x: tf.split(x, (1, 3, 2), 1))
case("slice", (3, 6, 7))(lambda x: tf.slice(x, (1, 0, 2), (1, -1, 3)))
case("slice_computed", (3, 6, 7), whole((3,), 0, 2))(lambda x, y: tf.slice(x, y, (1, 2, 3)))
case("strided_slice_masks", (3, 6, 7))(lambda x: x[..., tf.newaxis, 2:])
case("strided_slice_back", (3, 6, 7))(lambda x: x[::-1, -2, ::-2])
case("strided_slice_channels", IMAGE)(lambda x: tf.nn.max_pool2d(x, 2, 1, "SAME")[:, 1:-1, ::2, 1:])
case("pad_v2", (2, 3, 4))(lambda x: tf.pad(x, ((0, 1), (2, 0), (1, 1)), constant_values=1.5))
case("mirror_pad_reflect", IMAGE)(lambda x: tf.pad(x, ((0, 0), (1, 2), (3, 0), (0, 0)), "REFLECT"))
case("mirror_pad_symmetric", IMAGE)(lambda x: tf.pad(x, ((0, 0), (1, 2), (3, 0), (0, 0)), "SYMMETRIC"))
case("tile", (2, 3))(lambda x: tf.tile(x, (2, 3)))
case("broadcast_to", (2, 1))(lambda x: tf.broadcast_to(x, (3, 2, 4)))
case("shape", (None, 3))(lambda x: tf.shape(x) + 1)
case("rank", (None, 3, 2))(lambda x: tf.raw_ops.Rank(input=x) + tf.shape(x)[0])
case("fill", whole((2,), 1, 4))(lambda x: tf.fill(x, 1.5))

# ---- Pictures ----------------------------------------------------------------------------------

for name, function in (("bilinear", tf.compat.v1.image.resize_bilinear), ("nearest", tf.compat.v1.image.resize_nearest_neighbor)):
    case(f"resize_{name}_corners", (1, 4, 5, 3))(lambda x, function=function: function(x, (7, 10), align_corners=True))
    case(f"resize_{name}_plain", (1, 4, 5, 3))(lambda x, function=function: function(x, (7, 3)))
case("resize_open", (None, None, 5, 3))(lambda x: tf.image.resize(x, tf.shape(x)[1:3] * 2))

# ---- Operators that the converter has other words for, written as a file by hand -----------------

from by_hand import one, quantized, schema, tensor  # noqa: E402

case("l2_pool", IMAGE, raw=True)(lambda: one("L2_POOL_2D", [tensor("x", (1, 9, 8, 3))], [tensor("y", (1, 5, 4, 3))], "Pool2D", padding=0,
                                             strideW=2, strideH=2, filterWidth=3, filterHeight=2, fusedActivationFunction=0))
case("relu_0_to_1_own", (3, 9), raw=True)(lambda: one("RELU_0_TO_1", [tensor("x", (3, 9))], [tensor("y", (3, 9))]))
case("squeeze_own", (2, 1, 4, 1), raw=True)(
    lambda: one("SQUEEZE", [tensor("x", (2, 1, 4, 1))], [tensor("y", (2, 4))], "Squeeze", squeezeDims=[1, -1]))
case("squeeze_all", (2, 1, 4, 1), raw=True)(lambda: one("SQUEEZE", [tensor("x", (2, 1, 4, 1))], [tensor("y", (2, 4))], "Squeeze"))
case("expand_dims_own", (2, 3), raw=True)(
    lambda: one("EXPAND_DIMS", [tensor("x", (2, 3)), tensor("axis", (1,), data=np.int32([-2]))], [tensor("y", (2, 1, 3))]))
case("rank_own", (2, 3, 4), raw=True)(lambda: one("RANK", [tensor("x", (2, 3, 4))], [tensor("y", (), "INT32")]))
case("prelu_own", (2, 3, 3, 4), raw=True)(
    lambda: one("PRELU", [tensor("x", (2, 3, 3, 4)), tensor("slope", (1, 1, 4), data=np.float32([[[.1, .5, -.3, 0]]]))],
                [tensor("y", (2, 3, 3, 4))]))
case("prelu_own_int8", (2, 3, 3, 4), raw=True)(
    lambda: one("PRELU", [quantized("x", (2, 3, 3, 4), .01, 3), quantized("slope", (1, 1, 4), .005, -2,
                                                                         data=np.int8([[[20, 100, -60, 0]]]))],
                [quantized("y", (2, 3, 3, 4), .008, -10)]))
case("fake_quant_own", ((3, 40), "float32", -3, 3), raw=True)(
    lambda: one("FAKE_QUANT", [tensor("x", (3, 40))], [tensor("y", (3, 40))], "FakeQuant", min=-1.7, max=2.1, numBits=8, narrowRange=False))


def biased(name, constants, **options):
    """MediaPipe's operator, which LiteRT lacks, and the built-in one that computes the same with a constant more."""
    filters = tensor("w", (5, 3, 4, 3), data=weights(7, 5, 3, 4, 3).numpy())
    bias = tensor("b", (5,), data=weights(8, 5).numpy())
    x = tensor("x", (1, 4, 5, 3))
    return one(name, [*constants, x, filters, bias] if not constants else [*constants, filters, x, bias],
               [tensor("y", (1, 8, 10, 5))], **options)


case("mediapipe_transposed", (1, 4, 5, 3), raw=True, twin=lambda: biased(
    "TRANSPOSE_CONV", [tensor("size", (4,), data=np.int32([1, 8, 10, 5]))], options="TransposeConv", version=3, padding=0,
    strideW=2, strideH=2))(
        lambda: biased("Convolution2DTransposeBias", [], custom=np.int32([1, 2, 2]).tobytes()))

# ---- Places ------------------------------------------------------------------------------------

case("gather", (4, 5, 3), whole((2, 3), 0, 5))(lambda x, y: tf.gather(x, y, axis=1))
case("gather_int8", (4, 5, 3), kind="int8")(lambda x: tf.gather(x, (3, 0, 2), axis=1))
case("gather_batches", (2, 5, 3), whole((2, 4), 0, 5))(lambda x, y: tf.gather(x, y, axis=1, batch_dims=1))
case("gather_nd", (4, 5, 3), whole((6, 2), 0, 4))(tf.gather_nd)
case("scatter_nd", whole((4, 1), 0, 3), (4, 3))(lambda x, y: tf.scatter_nd(x, y, (6, 3)))
case("embedding", whole((6,), 0, 9))(lambda x: tf.nn.embedding_lookup(weights(20, 9, 4), x))
case("embedding_own", whole((6,), 0, 9), raw=True)(
    lambda: one("EMBEDDING_LOOKUP", [tensor("x", (6,), "INT32"), tensor("w", (9, 4), data=weights(20, 9, 4).numpy())],
                [tensor("y", (6, 4))]))
case("one_hot", whole((2, 3), -2, 7))(lambda x: tf.one_hot(x, 5, 2., -1., axis=1))
case("reverse", (3, 4, 5))(lambda x: tf.reverse(x, (1,)))
case("reverse_sequence", (3, 4, 5), whole((3,), 0, 5))(lambda x, y: tf.reverse_sequence(x, y, seq_axis=1, batch_axis=0))
case("reverse_sequence_inside", (3, 4, 5), whole((4,), 0, 6))(lambda x, y: tf.reverse_sequence(x, y, seq_axis=2, batch_axis=1))
case("matrix_diag", (2, 4))(lambda x: tf.raw_ops.MatrixDiag(diagonal=x))
case("matrix_set_diag", (2, 4, 3), (2, 3))(lambda x, y: tf.raw_ops.MatrixSetDiag(input=x, diagonal=y))
case("segment_sum", (5, 3))(lambda x: tf.math.segment_sum(x, (0, 0, 1, 2, 2)))
case("sparse_to_dense", (4,))(lambda x: tf.raw_ops.SparseToDense(sparse_indices=[1, 3, 4, 6], output_shape=[8], sparse_values=x,
                                                             default_value=-.5))
for word in ("sum", "prod", "max", "min"):
    case(f"unsorted_segment_{word}", (5, 3))(
        lambda x, word=word: getattr(tf.math, "unsorted_segment_" + word)(x, (2, 0, 1, 0, 2), 3))
case("update_slice", (4, 5), (2, 3), whole((2,), 0, 4), raw=True)(
    lambda: one("DYNAMIC_UPDATE_SLICE", [tensor("x", (4, 5)), tensor("y", (2, 3)), tensor("z", (2,), "INT32")], [tensor("w", (4, 5))]))
case("select_v2", whole((3, 1), 0, 2, "bool"), (3, 4), (1, 4))(tf.where)
case("select", whole((3,), 0, 2, "bool"), (3, 4), (3, 4))(lambda x, y, z: tf.compat.v1.where(x, y, z))
case("select_int8", (3, 4), (3, 4), kind="int8")(lambda x, y: tf.where(x > y, x * 2, y))
case("where", whole((3, 4), 0, 2, "bool"))(lambda x: tf.where(x))
case("unique", whole((9,), 0, 5))(lambda x: tf.unique(x))
case("range", whole((), 3, 9))(lambda x: tf.range(1, x * 3, 2))
case("broadcast_args", whole((3,), 2, 3), whole((1,), 1, 2))(tf.broadcast_dynamic_shape)
case("bucketize", ((3, 9), "float32", -2, 12))(lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[0., 1.5, 10.]))


def boxes(x):
    corner, size = x[:, :2] * 3, tf.abs(x[:, 2:]) + .5
    return tf.concat((corner, corner + size), 1)


case("suppression_v4", (12, 4), ((12,), "float32", 0, 1))(
    lambda x, y: tf.raw_ops.NonMaxSuppressionV4(boxes=boxes(x), scores=y, max_output_size=8, iou_threshold=.2,
                                                score_threshold=.3, pad_to_max_output_size=True))
case("suppression_v5", (12, 4), ((12,), "float32", 0, 1))(
    lambda x, y: tf.raw_ops.NonMaxSuppressionV5(boxes=boxes(x), scores=y, max_output_size=8, iou_threshold=.2,
                                                score_threshold=.3, soft_nms_sigma=0., pad_to_max_output_size=True))

# ---- Recurrent layers --------------------------------------------------------------------------


def keras(layer, shape):
    """A function of the layer with weights of its own seed."""
    layer.build((None, *shape[1:]))
    layer.set_weights([weights(30 + i, *w.shape).numpy() for i, w in enumerate(layer.get_weights())])
    return lambda x: layer(x)


case("lstm_while", (2, 5, 4))(keras(tf.keras.layers.LSTM(6), (2, 5, 4)))


def gates(first, *shape):
    return [tensor(f"w{first + i}", shape, data=weights(first + i, *(shape if len(shape) > 1 else (*shape, 1))).numpy().reshape(shape))
            for i in range(4)]


def lstm_inputs(seed, cells, inputs, coupled=False, peepholes=False):
    """Weights, recurrent weights, peepholes, biases, no projection."""
    parts = gates(seed, cells, inputs) + gates(seed + 4, cells, cells)
    parts += gates(seed + 8, cells)[:3] if peepholes else [None] * 3
    parts += gates(seed + 12, cells) + [None] * 2
    if coupled:
        for i in (0, 4, 11):
            parts[i] = None
        parts[8] = None
    return parts


def states(name, cells, batch=2):
    return [tensor(f"{name}_{word}", (batch, cells), variable=True) for word in ("h", "c")]


LSTM = {"fusedActivationFunction": 4, "cellClip": 0., "projClip": 0.}
case("lstm_time_major", (5, 2, 3), raw=True)(
    lambda: one("UNIDIRECTIONAL_SEQUENCE_LSTM", [tensor("x", (5, 2, 3)), *lstm_inputs(40, 4, 3, peepholes=True), *states("s", 4)],
                [tensor("y", (5, 2, 4))], "UnidirectionalSequenceLSTM", timeMajor=True, **LSTM))
case("lstm_coupled", (2, 5, 3), raw=True)(
    lambda: one("UNIDIRECTIONAL_SEQUENCE_LSTM", [tensor("x", (2, 5, 3)), *lstm_inputs(40, 4, 3, coupled=True), *states("s", 4)],
                [tensor("y", (2, 5, 4))], "UnidirectionalSequenceLSTM", timeMajor=False, **LSTM))
case("lstm_step", (2, 3), raw=True)(
    lambda: one("LSTM", [tensor("x", (2, 3)), *lstm_inputs(40, 4, 3), *states("s", 4)], [tensor("y", (2, 4))], "LSTM", kernelType=0, **LSTM))
case("lstm_basic", (2, 3), (2, 4), (2, 4), raw=True)(
    lambda: one("LSTM", [tensor("x", (2, 3)), tensor("y", (2, 4)), tensor("w", (16, 7), data=weights(40, 16, 7).numpy()),
                         tensor("b", (16,), data=weights(41, 16).numpy()), tensor("z", (2, 4))],
                [tensor("h", (2, 4)), tensor("c", (2, 4)), tensor("t", (2, 7)), tensor("u", (2, 16))], "LSTM", kernelType=1, kept=2, **LSTM))
# (Merged outputs of sequences with the batch first are not the same in every run of LiteRT.)
for merged in (True, False):
    case(f"lstm_both{'_merged' if merged else ''}", (2, 5, 3), raw=True)(lambda merged=merged: one(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        [tensor("x", (2, 5, 3)), *lstm_inputs(40, 4, 3), *lstm_inputs(60, 4, 3), *states("s", 4, 5 if merged else 2),
         *states("t", 4, 5 if merged else 2), *[None] * 9],
        [tensor("y", (2, 5, 8))] if merged else [tensor("y", (2, 5, 4)), tensor("z", (2, 5, 4))],
        "BidirectionalSequenceLSTM", timeMajor=merged, mergeOutputs=merged, **LSTM))


def rnn_inputs(seed, units, inputs):
    return [tensor(f"w{seed}", (units, inputs), data=weights(seed, units, inputs).numpy()),
            tensor(f"r{seed}", (units, units), data=weights(seed + 1, units, units).numpy()),
            tensor(f"b{seed}", (units,), data=weights(seed + 2, units).numpy()), tensor(f"h{seed}", (2, units), variable=True)]


case("rnn_step", (2, 3), raw=True)(
    lambda: one("RNN", [tensor("x", (2, 3)), *rnn_inputs(80, 4, 3)], [tensor("y", (2, 4))], "RNN", fusedActivationFunction=4))
case("rnn_sequence", (2, 5, 3), raw=True)(
    lambda: one("UNIDIRECTIONAL_SEQUENCE_RNN", [tensor("x", (2, 5, 3)), *rnn_inputs(80, 4, 3)], [tensor("y", (2, 5, 4))],
                "SequenceRNN", timeMajor=False, fusedActivationFunction=1))
case("rnn_both", (5, 2, 3), raw=True)(
    lambda: one("BIDIRECTIONAL_SEQUENCE_RNN",
                [tensor("x", (5, 2, 3)), *rnn_inputs(80, 4, 3), *rnn_inputs(84, 4, 3), None, None, None], [tensor("y", (5, 2, 8))],
                "BidirectionalSequenceRNN", timeMajor=True, mergeOutputs=True, fusedActivationFunction=4))
case("svdf", (2, 3), raw=True)(
    lambda: one("SVDF", [tensor("x", (2, 3)), tensor("f", (8, 3), data=weights(90, 8, 3).numpy()),
                         tensor("t", (8, 5), data=weights(91, 8, 5).numpy()), tensor("b", (4,), data=weights(92, 4).numpy()),
                         tensor("s", (2, 40), variable=True)], [tensor("y", (2, 4))], "SVDF", rank=2, fusedActivationFunction=1))


# ---- Subgraphs ---------------------------------------------------------------------------------

case("while", (3, 4), whole((), 2, 5))(
    lambda x, y: tf.while_loop(lambda i, a: i < y, lambda i, a: (i + 1, a * 1.5 + tf.cast(i, tf.float32)), (0, x))[1])
case("if_then", whole((), 5, 9), (3, 4))(lambda x, y: tf.cond(x > 3, lambda: y * 2 + 1, lambda: tf.nn.relu(y)))
case("if_else", whole((), 0, 3), (3, 4))(lambda x, y: tf.cond(x > 3, lambda: y * 2 + 1, lambda: tf.nn.relu(y)))

# ---- Sparse weights ----------------------------------------------------------------------------


def sparse_by_rows():
    """y = relu of a constant that is dense in rows and sparse within them: [4, 6]."""
    dense = np.zeros((4, 6), "f4")
    dense[0, 1], dense[0, 4], dense[2, 0], dense[3, 5] = 1.5, -2, 3, .5
    t, _ = tensor("w", (4, 6), data=np.float32([1.5, -2, 3, .5]))
    t.sparsity = schema.SparsityParametersT()
    t.sparsity.traversalOrder, t.sparsity.blockMap = [0, 1], []
    rows, columns = schema.DimensionMetadataT(), schema.DimensionMetadataT()
    rows.format, rows.denseSize = 0, 4
    columns.format = 1
    columns.arraySegmentsType = columns.arrayIndicesType = schema.SparseIndexVector.Uint8Vector
    columns.arraySegments, columns.arrayIndices = schema.Uint8VectorT(), schema.Uint8VectorT()
    columns.arraySegments.values, columns.arrayIndices.values = [0, 2, 2, 3, 4], [1, 4, 0, 5]
    t.sparsity.dimMetadata = [rows, columns]
    return t, np.float32([1.5, -2, 3, .5]).tobytes()


def sparse_by_blocks():
    """[4, 4] in blocks of 2 x 2, of which two are there."""
    numbers = np.float32([1, 2, 3, 4, 5, 6, 7, 8])
    t, _ = tensor("w", (4, 4), data=numbers)
    t.sparsity = schema.SparsityParametersT()
    t.sparsity.traversalOrder, t.sparsity.blockMap = [0, 1, 2, 3], [0, 1]
    dims = [schema.DimensionMetadataT() for _ in range(4)]
    for dim in (dims[0], dims[2], dims[3]):
        dim.format, dim.denseSize = 0, 2
    dims[1].format = 1
    dims[1].arraySegmentsType = dims[1].arrayIndicesType = schema.SparseIndexVector.Int32Vector
    dims[1].arraySegments, dims[1].arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
    dims[1].arraySegments.values, dims[1].arrayIndices.values = [0, 1, 2], [1, 0]
    t.sparsity.dimMetadata = dims
    return t, numbers.tobytes()


case("densify_rows", raw=True)(lambda: one("DENSIFY", [sparse_by_rows()], [tensor("Densify_output", (4, 6))]))
case("densify_blocks", raw=True)(lambda: one("DENSIFY", [sparse_by_blocks()], [tensor("Densify_output", (4, 4))]))


# ---- Detection ---------------------------------------------------------------------------------


def detection(regular, background):
    from flatbuffers import flexbuffers
    options = {"max_detections": 7, "max_classes_per_detection": 1, "detections_per_class": 3, "num_classes": 3,
               "use_regular_nms": regular, "nms_score_threshold": .2, "nms_iou_threshold": .4, "y_scale": 10., "x_scale": 10.,
               "h_scale": 5., "w_scale": 5.}
    anchors = np.random.RandomState(7).random_sample((20, 4)).astype("f4") * .4 + .2
    return one("TFLite_Detection_PostProcess",
               [tensor("x", (1, 20, 4)), tensor("y", (1, 20, 3 + background)), tensor("anchors", (20, 4), data=anchors)],
               [tensor("boxes", (1, 7, 4)), tensor("classes", (1, 7)), tensor("scores", (1, 7)), tensor("count", (1,))],
               custom=bytes(flexbuffers.Dumps(options)))


case("detection_fast", (1, 20, 4), ((1, 20, 4), "float32", 0, 1), raw=True)(lambda: detection(False, 1))
case("detection_regular", (1, 20, 4), ((1, 20, 3), "float32", 0, 1), raw=True)(lambda: detection(True, 0))


# ---- Variables ---------------------------------------------------------------------------------

class Counter(tf.Module):
    def __init__(self):
        super().__init__()
        self.sum = tf.Variable(weights(95, 3, 4))

    @tf.function(input_signature=[tf.TensorSpec((3, 4), tf.float32, name="x")])
    def __call__(self, x):
        self.sum.assign_add(x)
        return self.sum * 2


def counter():
    """A saved model whose variable keeps a sum."""
    with tempfile.TemporaryDirectory() as folder:
        module = Counter()
        tf.saved_model.save(module, folder, signatures=module.__call__.get_concrete_function())
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.experimental_enable_resource_variables = True
        return converter.convert()


case("variable", (3, 4), raw=True)(counter)
case("bitwise_xor", whole((3, 4), 0, 99), whole((3, 1), 0, 99))(tf.bitwise.bitwise_xor)
