"""architectures.py [NAME...]: whole networks of Keras with random weights, converted by TensorFlow to TensorFlow Lite, give in
quench what LiteRT makes of them, and are quantized by one command. Skipped where tensorflow (2.21) or ai-edge-litert (2.3)
is not installed.

Floats: to 1e-4 of the largest output of the reference kernels. Where there are integers (int8, and dynamic: integer
weights with real activations) LiteRT's three sets of kernels round in ways of their own, and in a deep network with random
weights a rounding that falls the other way moves all that follows: quench is to be no further from one of them than they
are from each other, or two steps (2e-3 of the largest output)."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import numpy as np
    import tensorflow as tf
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from imported import QUENCH, by_quench  # noqa: E402

FLOAT, STEPS, DYNAMIC = 1e-4, 2, 2e-3
KERNELS = (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO)


def unet():
    """Two levels down and up again, with skips."""
    layers = tf.keras.layers
    x = start = tf.keras.Input((64, 64, 3), batch_size=1)
    skips = []
    for filters in (8, 16):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    for filters in (16, 8):
        x = layers.Conv2DTranspose(filters, 2, strides=2, padding="same")(x)
        x = layers.Concatenate()([x, skips.pop()])
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return tf.keras.Model(start, layers.Conv2D(2, 1)(x))


def transformer():
    """Two blocks of an encoder over patches of a picture."""
    layers = tf.keras.layers
    start = tf.keras.Input((32, 32, 3), batch_size=1)
    x = layers.Reshape((16, 64))(layers.Conv2D(64, 8, strides=8)(start))
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 16)(y, y)
        y = layers.Dense(128, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(64)(y)
    return tf.keras.Model(start, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def keras(name, size, **options):
    def make():
        picture = tf.keras.Input((size, size, 3), batch_size=1)
        return getattr(tf.keras.applications, name)(weights=None, input_tensor=picture, classes=100, classifier_activation=None, **options)
    return make


NETWORKS = {"MobileNetV2": keras("MobileNetV2", 96, alpha=.5), "MobileNetV3": keras("MobileNetV3Small", 96),
            "EfficientNet": keras("EfficientNetB0", 64), "ResNet50": keras("ResNet50", 64), "DenseNet": keras("DenseNet121", 64),
            "Inception": keras("InceptionV3", 96), "UNet": unet, "Transformer": transformer}
KINDS = ("float", "float16", "dynamic", "int8")


def pictures(shape, seed):
    return np.random.RandomState(seed).random_sample(shape).astype("f4") * 2 - 1


def settle_statistics(model):
    """Statistics of batch normalization that fit the random weights: without them nothing of the input is left behind
    fifty layers."""
    for layer in model.layers:
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = 0.
    model(tf.constant(pictures((8, *model.inputs[0].shape[1:]), 3)), training=True)


def convert(model, kind):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind == "int8":
        shape = [1, *model.inputs[0].shape[1:]]
        converter.representative_dataset = lambda: ([pictures(shape, i)] for i in range(10))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def by_litert(content, x, kernels):
    """The input's name, the input as the model has it, and the output."""
    interpreter = Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    detail, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    if detail["dtype"] == np.int8:
        scale, zero = detail["quantization"]
        x = np.clip(np.round(x / scale) + zero, -128, 127).astype(np.int8)
    interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return detail["name"], x, interpreter.get_tensor(out["index"])


def distance(a, b):
    return np.abs(a.astype(np.float64) - b.astype(np.float64)).max()


def compare(name, kind, model, folder):
    path = os.path.join(folder, f"{name}_{kind}.tflite")
    content, picture = convert(model, kind), pictures([1, *model.inputs[0].shape[1:]], 77)
    with open(path, "wb") as file:
        file.write(content)
    rounds = kind in ("int8", "dynamic")
    given = [by_litert(content, picture, kernels) for kernels in (KERNELS if rounds else KERNELS[:1])]
    wanted = [y for _, _, y in given]
    have = next(iter(by_quench(path, {given[0][0]: given[0][1]}, folder).values()))
    error, largest = min(distance(have, y) for y in wanted), np.abs(wanted[0]).max()
    limit = STEPS if kind == "int8" else (DYNAMIC if rounds else FLOAT) * largest
    limit = max([limit] + [distance(a, b) for a in wanted for b in wanted])
    print(f"{name} {kind}: {error:.3g} of {largest:.3g}, {limit:.3g} are allowed", flush=True)
    if kind == "float":
        subprocess.run([QUENCH, "quant", path, "-s", os.path.join(folder, name), "-q"], check=True, stdout=subprocess.DEVNULL)
    return error <= limit


def main():
    good = []
    for name in sys.argv[1:] or NETWORKS:
        tf.keras.utils.set_random_seed(1)
        model = NETWORKS[name]()
        settle_statistics(model)
        with tempfile.TemporaryDirectory() as folder:
            good += [compare(name, kind, model, folder) for kind in KINDS]
    print(f"{sum(good)} of {len(good)} networks give what they give in LiteRT")
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
