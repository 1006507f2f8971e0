"""make.py [CASE...]: makes the cases, small models with what Keras computes. Made with keras 3.15.1 (.keras, .h5) and
tf_keras 2.21.0 (.h5 as Keras 2 writes them) on tensorflow-cpu 2.21.0 (oneDNN off); the cases are committed, so that testing
needs none of them. Weights are random, those of normalizations too."""

import os
import sys
import zipfile

os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")

import keras as keras3  # noqa: E402
import numpy as np  # noqa: E402
import tf_keras as keras2  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "cases")
CASES = {}


def noise(*shape, seed=0):
    return np.random.RandomState(seed + len(shape)).uniform(-1, 1, shape).astype(np.float32)


def settle(model):
    """Random weights; variances and the like stay positive."""
    numbers = np.random.RandomState(5)
    for weight in model.weights:
        if not np.dtype(getattr(weight, "dtype", "float32") if isinstance(weight.dtype, str) else weight.dtype.as_numpy_dtype).kind == "f":
            continue
        low, high = (0.3, 2) if "variance" in weight.name or "gamma" in weight.name else (-0.6, 0.6)
        weight.assign(numbers.uniform(low, high, weight.shape).astype(np.float32))


# Keras stores what is in its archives as it is; the others are packed, to be small.
STORED = ("dense", "conv2d", "flatten_dense")


def pack(path):
    with zipfile.ZipFile(path) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in entries:
            archive.writestr(name, contents)


def make(name, build, inputs, kind):
    keras = keras2 if kind == "h5_2" else keras3
    keras.backend.clear_session()
    model = build(keras, keras.layers)
    settle(model)
    outputs = model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    model.save(os.path.join(OUT, name + (".keras" if kind == "keras" else ".h5")), **({} if kind == "keras" else {"include_optimizer": False}))
    if kind == "keras" and name not in STORED:
        pack(os.path.join(OUT, name + ".keras"))
    if name == "windows":
        as_windows(os.path.join(OUT, name + ".keras"))
    arrays = {f"in:{tensor.name.split(':')[0]}": array for tensor, array in zip(model.inputs, inputs)}
    names = [tensor.name for tensor in model.outputs] if keras is keras2 else [
        tensor._keras_history.operation.name for tensor in model.outputs]
    layers = model.output_names if keras is keras2 else names
    for i, array in enumerate(outputs):
        label = layers[i] if len(set(layers)) == len(layers) or i == 0 else f"{layers[i]}:{i}"
        arrays[f"out:{label}"] = np.asarray(array)
    np.savez_compressed(os.path.join(OUT, name + ".npz"), **arrays)


def as_windows(path):
    """The groups of weights as Keras calls them on Windows: one name with the other slash in it."""
    import h5py
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with open(path + ".old", "wb") as file:
        file.write(entries["model.weights.h5"])
    with h5py.File(path + ".old") as old, h5py.File(path + ".new", "w") as new:
        def copy(name, thing):
            if isinstance(thing, h5py.Dataset):
                group, _, rest = name.partition("/vars/")
                new.create_dataset(group.replace("/", "\\") + "/vars/" + rest, data=thing[...])
        old.visititems(copy)
    with open(path + ".new", "rb") as file:
        entries["model.weights.h5"] = file.read()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in entries.items():
            archive.writestr(name, contents)
    os.remove(path + ".old")
    os.remove(path + ".new")


def case(*inputs, kind="keras", name=None):
    def add(build):
        CASES[name or build.__name__] = (build, inputs, kind)
        return build
    return add


def chain(name, inputs, *layers, kinds=("keras",)):
    """A sequence of layers, each (class, parameters)."""
    for kind in kinds:
        def build(keras, L, layers=layers):
            return keras.Sequential([keras.Input(inputs.shape[1:], name="x", batch_size=None)] + [
                getattr(L, cls)(**{k: v(L) if callable(v) else v for k, v in parameters.items()}) for cls, parameters in layers])
        CASES[name if kind == "keras" else f"{name}_{kind}"] = (build, (inputs,), kind)


ALL = ("keras", "h5", "h5_2")
X = noise(2, 8, 9, 4)
for d, x in ((1, noise(2, 9, 3)), (2, noise(2, 6, 7, 3)), (3, noise(1, 3, 4, 3, 2))):
    chain(f"conv{d}d", x, (f"Conv{d}D", {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"}),
          (f"Conv{d}D", {"filters": 2, "kernel_size": 2, "use_bias": False}), kinds=ALL if d == 2 else ("keras",))
    chain(f"conv{d}d_transpose", x, (f"Conv{d}DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"}),
          (f"Conv{d}DTranspose", {"filters": 2, "kernel_size": 2, "strides": 3, "padding": "valid", "activation": "tanh"}))
    chain(f"max_pooling{d}d", x, (f"MaxPooling{d}D", {"pool_size": 2, "padding": "same"}), (f"MaxPooling{d}D", {"pool_size": 2, "strides": 1}))
    chain(f"average_pooling{d}d", x, (f"AveragePooling{d}D", {"pool_size": 3, "strides": 2, "padding": "same"}))
    chain(f"global_max_pooling{d}d", x, (f"GlobalMaxPooling{d}D", {}))
    chain(f"global_average_pooling{d}d", x, (f"GlobalAveragePooling{d}D", {"keepdims": True}), ("Flatten", {}))
    chain(f"edges{d}d", x, (f"ZeroPadding{d}D", {"padding": 2}), (f"Cropping{d}D", {"cropping": 1}), (f"UpSampling{d}D", {"size": 2}),
          (f"SpatialDropout{d}D", {"rate": 0.5}))
chain("conv1d_causal", noise(2, 9, 3), ("Conv1D", {"filters": 4, "kernel_size": 3, "dilation_rate": 2, "padding": "causal"}))
chain("conv2d_groups", X, ("Conv2D", {"filters": 6, "kernel_size": 3, "groups": 2, "dilation_rate": 2, "padding": "same"}))
chain("conv2d_transpose_padded", X, ("Conv2DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 0}))
chain("edges_pairs", X, ("ZeroPadding2D", {"padding": ((1, 0), (2, 3))}), ("Cropping2D", {"cropping": ((0, 2), (1, 0))}),
      ("UpSampling2D", {"size": (2, 3), "interpolation": "bilinear"}))
chain("depthwise1d", noise(2, 9, 3), ("DepthwiseConv1D", {"kernel_size": 3, "depth_multiplier": 2, "padding": "same"}))
chain("depthwise2d", X, ("DepthwiseConv2D", {"kernel_size": 3, "strides": 2, "padding": "same", "depth_multiplier": 2}), kinds=ALL)
chain("separable1d", noise(2, 9, 3), ("SeparableConv1D", {"filters": 4, "kernel_size": 3}))
chain("separable2d", X, ("SeparableConv2D", {"filters": 5, "kernel_size": 3, "padding": "same", "activation": "relu6"}), kinds=ALL)
chain("dense", noise(3, 5), ("Dense", {"units": 4, "activation": "softmax"}), ("Dropout", {"rate": 0.5}), ("Dense", {"units": 2, "use_bias": False}), kinds=ALL)
chain("windows", noise(3, 5), ("Dense", {"units": 4, "activation": "softmax"}), ("Dense", {"units": 2, "use_bias": False}))
chain("dense_wide", noise(2, 3, 5), ("Dense", {"units": 4, "activation": "gelu"}))
chain("flatten_dense", noise(2, 4, 5, 3), ("Conv2D", {"filters": 4, "kernel_size": 3}), ("Flatten", {}), ("Dropout", {"rate": 0.2}), ("Dense", {"units": 3}), kinds=ALL)
chain("batch_normalization", X, ("BatchNormalization", {}), ("BatchNormalization", {"scale": False}), ("BatchNormalization", {"center": False, "epsilon": 0.01}), kinds=ALL)
chain("layer_normalization", noise(2, 3, 5), ("LayerNormalization", {}), ("LayerNormalization", {"scale": False, "epsilon": 1e-5}))
chain("group_normalization", X, ("GroupNormalization", {"groups": 2}), ("GroupNormalization", {"groups": -1}))
chain("unit_normalization", noise(2, 5), ("UnitNormalization", {}))
chain("rescaling", noise(2, 4, 5, 3), ("Rescaling", {"scale": 0.5, "offset": -1.}), ("Rescaling", {"scale": [1., 2., 3.]}))
chain("normalization", noise(2, 4, 5, 3), ("Normalization", {"mean": [0.1, 0.2, 0.3], "variance": [1., 4., 0.5]}))
chain("relu_layers", noise(2, 7), ("ReLU", {"max_value": 0.8, "negative_slope": 0.1}), ("LeakyReLU", {}), ("ELU", {"alpha": 0.7}), ("Softmax", {}))
chain("relu_layers2", noise(2, 7), ("LeakyReLU", {"alpha": 0.2}), ("ThresholdedReLU", {"theta": 0.3}), ("ReLU", {"max_value": 6.}), kinds=("h5_2",))
chain("prelu", X, ("PReLU", {"shared_axes": [1, 2]}), ("MaxPooling2D", {}), ("PReLU", {}))
for word in ("linear relu sigmoid tanh softmax softplus softsign elu selu exponential hard_sigmoid silu gelu leaky_relu relu6 mish hard_silu "
             "log_softmax celu").split():
    chain(f"activation_{word}", noise(2, 3, 6) * 4, ("Activation", {"activation": word}))
chain("activation_old", noise(2, 6) * 4, ("Activation", {"activation": "hard_sigmoid"}), ("Activation", {"activation": "swish"}), kinds=("h5_2",))
chain("noise_layers", noise(2, 6), ("GaussianNoise", {"stddev": 1.}), ("GaussianDropout", {"rate": 0.2}), ("AlphaDropout", {"rate": 0.2}), ("ActivityRegularization", {}))
chain("reshape", X, ("Reshape", {"target_shape": (9, -1, 4)}), ("Permute", {"dims": (3, 1, 2)}))
chain("repeat_vector", noise(2, 5), ("RepeatVector", {"n": 3}))
chain("resizing", X, ("Resizing", {"height": 12, "width": 7}), ("Resizing", {"height": 24, "width": 14, "interpolation": "nearest"}))
for cls in ("LSTM", "GRU", "SimpleRNN"):
    chain(cls.lower(), noise(2, 5, 3), (cls, {"units": 4, "return_sequences": True}), (cls, {"units": 3, "go_backwards": True}), kinds=ALL)
    chain(f"bidirectional_{cls.lower()}", noise(2, 5, 3), ("Bidirectional", {"layer": lambda L, c=cls: getattr(L, c)(4, return_sequences=True)}),
          ("Bidirectional", {"layer": lambda L, c=cls: getattr(L, c)(3), "merge_mode": "sum"}), kinds=ALL if cls == "LSTM" else ("keras",))
chain("lstm_backwards", noise(2, 5, 3), ("LSTM", {"units": 4, "return_sequences": True, "go_backwards": True, "use_bias": False,
                                                  "activation": "relu", "recurrent_activation": "hard_sigmoid"}))
chain("gru_before", noise(2, 5, 3), ("GRU", {"units": 4, "reset_after": False}), kinds=("keras", "h5_2"))
chain("time_distributed", noise(2, 3, 6, 7, 2), ("TimeDistributed", {"layer": lambda L: L.Conv2D(3, 3, padding="same")}),
      ("TimeDistributed", {"layer": lambda L: L.Flatten()}), ("TimeDistributed", {"layer": lambda L: L.Dense(4)}), kinds=("keras", "h5_2"))


@case(np.array([[1, 4, 0], [2, 2, 5]], np.int32))
def embedding(keras, L):
    x = keras.Input((3,), dtype="int32", name="words")
    return keras.Model(x, L.Embedding(6, 4)(x))


def joined(keras, L):
    x, y = keras.Input((4, 5, 3), name="left"), keras.Input((4, 5, 3), name="right")
    made = [getattr(L, cls)(name=cls.lower())([x, y]) for cls in ("Add", "Multiply", "Maximum", "Minimum", "Average", "Subtract")]
    return keras.Model([x, y], L.Concatenate(name="all")(made))


def joined_pictures(keras, L):
    x = keras.Input((6, 6, 3), name="x")
    y = L.Conv2D(4, 3, padding="same")(x)
    z = L.Conv2D(4, 1, strides=2)(x)
    up = L.UpSampling2D()(z)
    return keras.Model(x, [L.Concatenate(axis=1, name="rows")([y, up]), L.Add(name="sum")([y, up, y])])


def dot(keras, L):
    x, y = keras.Input((4, 5), name="left"), keras.Input((3, 5), name="right")
    a, b = L.GlobalMaxPooling1D()(x), L.GlobalMaxPooling1D()(y)
    return keras.Model([x, y], [L.Dot(axes=2, name="wide")([x, y]), L.Dot(axes=1, normalize=True, name="flat")([a, b])])


def shared(keras, L):
    """A layer used twice, and a model used twice with a model in it."""
    x = keras.Input((6, 6, 3), name="x")
    conv = L.Conv2D(3, 3, padding="same", name="twice")
    inner = keras.Sequential([keras.Input((6, 6, 3)), L.Conv2D(3, 1, name="inside"), L.BatchNormalization()], name="inner")
    outer_in = keras.Input((6, 6, 3))
    outer = keras.Model(outer_in, L.Add()([inner(outer_in), outer_in]), name="outer")
    y = outer(conv(conv(x)))
    return keras.Model(x, L.Flatten(name="end")(outer(y)))


def states(keras, L):
    x, y = keras.Input((5, 3), name="left"), keras.Input((4, 3), name="right")
    _, h, c = L.LSTM(4, return_state=True, name="encoder")(x)
    return keras.Model([x, y], L.LSTM(4, return_sequences=True, name="decoder")(y, initial_state=[h, c]))


def attention(keras, L):
    x, y = keras.Input((5, 6), name="left"), keras.Input((4, 6), name="right")
    z = L.MultiHeadAttention(2, 3, name="own")(x, x)
    z = L.LayerNormalization(name="norm")(L.Add(name="sum")([x, z]))
    return keras.Model([x, y], L.MultiHeadAttention(2, 3, value_dim=4, name="cross")(z, y))


chain("training_layers", noise(1, 9, 8, 3), *[(f"Random{name}", parameters) for name, parameters in (
    ("Flip", {}), ("Rotation", {"factor": 0.1}), ("Zoom", {"height_factor": 0.1}), ("Contrast", {"factor": 0.1}),
    ("Translation", {"height_factor": 0.1, "width_factor": 0.1}), ("Brightness", {"factor": 0.1}))],
      ("CenterCrop", {"height": 6, "width": 5}), ("Conv2D", {"filters": 2, "kernel_size": 3}))
chain("einsum_dense", noise(2, 5, 6), ("EinsumDense", {"equation": "abc,cde->abde", "output_shape": (None, 2, 4), "bias_axes": "de"}),
      ("EinsumDense", {"equation": "...x,xy->...y", "output_shape": 3, "activation": "relu"}), ("RMSNormalization", {}))
chain("rnn_cell", noise(2, 5, 3), ("RNN", {"cell": lambda L: L.LSTMCell(4), "return_sequences": True}), ("RNN", {"cell": lambda L: L.GRUCell(3)}),
      kinds=ALL)


def attention_plain(keras, L):
    x, y, z = keras.Input((5, 6), name="query"), keras.Input((4, 3), name="value"), keras.Input((4, 6), name="key")
    return keras.Model([x, y, z], L.Attention(use_scale=True, name="scaled")([x, L.Attention(name="plain")([y, y]), z]))


CASES["attention_plain"] = (attention_plain, (noise(2, 5, 6), noise(2, 4, 3, seed=1), noise(2, 4, 6, seed=2)), "keras")


def convnext(keras, L):
    """The block of ConvNeXt, whose layers are its own."""
    from keras.src.applications.convnext import LayerScale, StochasticDepth
    x = keras.Input((6, 6, 4), name="x")
    y = L.DepthwiseConv2D(3, padding="same")(x)
    y = L.Dense(4)(L.Dense(8, activation="gelu")(L.LayerNormalization()(y)))
    y = StochasticDepth(0.1)(LayerScale(0.5, 4, name="scaled")(y))
    return keras.Model(x, LayerScale(0.5, 4, name="end")(L.Conv2D(4, 1)(L.Add()([x, y]))))


CASES["convnext"] = (convnext, (noise(1, 6, 6, 4),), "keras")

# ---- Steps that do not count -----------------------------------------------------------------------------------------

WORDS = np.array([[1, 4, 0, 0, 0], [0, 0, 2, 2, 5], [3, 0, 1, 0, 2], [1, 2, 3, 4, 5]], np.int32)
STEPS = noise(4, 5, 3) * (WORDS != 0)[:, :, None]


def masking(keras, L):
    x = keras.Input((5, 3), name="x")
    y = L.Masking(name="masked")(x)
    z = L.LSTM(4, return_sequences=True, name="long")(L.Dropout(0.1)(y))
    z = L.GRU(3, return_sequences=True, go_backwards=True, name="gated")(L.Dense(3, activation="relu")(z))
    return keras.Model(x, [z, L.SimpleRNN(2, name="plain")(y), L.LSTM(3, go_backwards=True, name="backwards")(y)])


def words(keras, L):
    x = keras.Input((5,), dtype="int32", name="words")
    y = L.Embedding(6, 4, mask_zero=True)(x)
    y = L.Bidirectional(L.LSTM(3, return_sequences=True), name="both")(y)
    z = L.TimeDistributed(L.Dense(4))(L.LayerNormalization()(y))
    last = L.Bidirectional(L.GRU(2), merge_mode="mul", name="last")(z)
    return keras.Model(x, [y, L.GlobalAveragePooling1D(name="mean")(z), last])


def masks_joined(keras, L):
    x, y = keras.Input((5, 3), name="left"), keras.Input((5, 3), name="right")
    a, b = L.Masking()(x), L.Masking()(y)
    ends = [L.LSTM(2, name=name)(z) for name, z in (("sum", L.Add()([a, b])), ("wide", L.Concatenate()([a, b])),
                                                    ("long", L.Concatenate(axis=1)([a, b])))]
    return keras.Model([x, y], ends)


def attention_masked(keras, L):
    x = keras.Input((5,), dtype="int32", name="words")
    y = L.Embedding(6, 4, mask_zero=True)(x)
    z = L.Dense(4)(y)  # Keras 3 takes the mask away from what it has attended to
    z = L.MultiHeadAttention(2, 2, name="causal")(z, z, use_causal_mask=True)
    y = L.MultiHeadAttention(2, 3, name="masked")(y, y)
    return keras.Model(x, [L.GlobalAveragePooling1D(name="mean")(y), z])


def attention_causal(keras, L):
    x, y = keras.Input((5, 6), name="left"), keras.Input((5, 5), name="mask")
    z = L.MultiHeadAttention(2, 3, name="causal")(x, x, use_causal_mask=True)
    return keras.Model([x, y], L.MultiHeadAttention(2, 3, name="given")(x, z, attention_mask=y))


# ---- Functions in the place of layers ----------------------------------------------------------------------------------

def functions(keras, L):
    o, x = keras.ops, keras.Input((6, 8), name="x")
    y = 1 - o.mean(x, axis=[1], keepdims=True) / 2.
    y = x[:, 0] + x[:, 1:5:2][:, -1] - o.squeeze(y, 1)
    y = o.relu(o.expand_dims(o.transpose(o.reshape(y, (-1, 4, 2)), (0, 2, 1)), 1))[:, 0]
    y = o.softmax(o.matmul(y, o.transpose(y, (0, 2, 1)) * 2))
    y = o.power(o.clip(o.concatenate([y, y], axis=-1), 0.1, 0.9), 2)
    y = o.where(o.maximum(y, 0.1) > 0.2, y, 0.)
    a, b = o.split(y, 2, axis=-1)
    picks = o.cast(o.logical_and(o.not_equal(a, b), o.any(x > 0, axis=[1, 2], keepdims=True)), "float32")
    return keras.Model(x, [L.Identity(name="stacked")(o.stack([o.sum(a, -1), o.max(b, -1)], axis=1)), L.Identity(name="picks")(picks + a)])


def functions_more(keras, L):
    o, x = keras.ops, keras.Input((3, 4), name="x")
    y = [getattr(o, name)(x) for name in ("abs", "exp", "sin", "cos", "square", "tanh", "sigmoid", "silu", "gelu", "relu6", "elu", "selu",
                                          "softplus", "hard_sigmoid", "hard_silu", "log_softmax", "negative")]
    z = [o.ones_like(x) - x, o.sqrt(y[0]), o.log(y[1] + 1), o.rsqrt(y[4] + 0.5), o.divide(x, 3.), o.min(x, -1, keepdims=True) + x]
    w = o.logical_or(o.equal(x, y[0]), o.logical_not(o.less(x, 0.5)))
    w = o.logical_and(w, o.greater_equal(x, -0.9)) & o.less_equal(x, 0.9)
    return keras.Model(x, L.Identity(name="joined")(o.concatenate(y + z + [o.cast(w, "float32"), o.cast(o.all(w, -1, keepdims=True), "float32") + x], -1)))


def functions_old(keras, L):
    import tensorflow as tf
    x = keras.Input((6, 8), name="x")
    y = 1 - tf.reduce_mean(x, axis=[1], keepdims=True) / 2.
    y = x[:, 0] + x[:, 1:5:2][:, -1] - tf.squeeze(y, 1)
    y = tf.nn.relu(tf.expand_dims(tf.transpose(tf.reshape(y, (-1, 4, 2)), (0, 2, 1)), 1))[:, 0]
    y = tf.nn.softmax(tf.matmul(y, y * 2, transpose_b=True))
    y = tf.clip_by_value(tf.concat([y, y], axis=-1), 0.1, 0.9) ** 2
    z = tf.nn.relu6(x + 3.) * (1. / 6.) * x
    return keras.Model(x, [L.Activation("linear", name="first")(tf.math.maximum(y, 0.2)), L.Activation("linear", name="second")(
        tf.cast(x > 0.1, tf.float32) * tf.nn.silu(z) - tf.sqrt(tf.abs(x)))])


SMALL = noise(2, 4, 5, 3), noise(2, 4, 5, 3, seed=9)
for kind in ALL:
    suffix = "" if kind == "keras" else "_" + kind
    CASES["joined" + suffix] = (joined, SMALL, kind)
    CASES["joined_pictures" + suffix] = (joined_pictures, (noise(2, 6, 6, 3),), kind)
    CASES["shared" + suffix] = (shared, (noise(2, 6, 6, 3),), kind)
    CASES["states" + suffix] = (states, (noise(2, 5, 3), noise(2, 4, 3, seed=1)), kind)
    CASES["attention" + suffix] = (attention, (noise(2, 5, 6), noise(2, 4, 6, seed=1)), kind)
for kind in ALL:
    suffix = "" if kind == "keras" else "_" + kind
    CASES["masking" + suffix] = (masking, (STEPS,), kind)
    CASES["words" + suffix] = (words, (WORDS,), kind)
    CASES["masks_joined" + suffix] = (masks_joined, (STEPS, STEPS[[2, 1, 0, 3]]), kind)
    CASES["attention_masked" + suffix] = (attention_masked, (WORDS,), kind)
CASES["attention_causal"] = (attention_causal, (noise(2, 5, 6), (noise(2, 5, 5) > -0.5).astype("f4")), "keras")
CASES["functions"] = (functions, (noise(3, 6, 8),), "keras")
CASES["functions_more"] = (functions_more, (noise(2, 3, 4),), "keras")
CASES["functions_old_h5_2"] = (functions_old, (noise(3, 6, 8),), "h5_2")
CASES["dot"] = (dot, (noise(2, 4, 5), noise(2, 3, 5, seed=1)), "keras")


def main():
    os.makedirs(OUT, exist_ok=True)
    for name in sys.argv[1:] or CASES:
        try:
            make(name, *CASES[name])
        except Exception as error:
            print(name, repr(error)[:300])
    print(len(sys.argv[1:] or CASES), "cases")


if __name__ == "__main__":
    main()
