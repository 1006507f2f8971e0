"""architectures.py [NAME...]: whole networks with random weights, made by Keras and TensorFlow, as .keras, .h5, SavedModel and
frozen graph: quench gives what they give to 1e-4 of the largest output; one command quantizes each, and with --convert2chw no
Transpose is left of those that only have convolutions. Skipped where they are not installed
(tensorflow-cpu 2.21.0, keras 3.15.1; QUENCH_TENSORFLOW names a Python that has them)."""

import json
import os
import subprocess
import sys
import tempfile

PYTHON = os.environ.get("QUENCH_TENSORFLOW", sys.executable)
os.environ.update(TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
QUENCH = os.environ["QUENCH"]
TOLERANCE = 1e-4
NAMES = ("ResNet50", "MobileNetV2", "MobileNetV3Small", "EfficientNetB0", "InceptionV3", "DenseNet121", "unet", "ssd", "encoder")
# Networks that end with maps or boxes, or have no pictures: their outputs keep TensorFlow's order.
WITH_TRANSPOSES = ("unet", "ssd", "encoder")
# One form of all: the others are the same network.
QUANTIZED = ("keras",)


def unet(keras, L):
    x = keras.Input((32, 32, 3), name="x")
    a = L.Conv2D(8, 3, padding="same", activation="relu")(x)
    b = L.Conv2D(16, 3, padding="same", activation="relu")(L.MaxPooling2D()(a))
    c = L.Conv2D(16, 3, padding="same", activation="relu")(L.MaxPooling2D()(b))
    b = L.Concatenate()([L.Conv2DTranspose(16, 2, strides=2)(c), b])
    a = L.Concatenate()([L.UpSampling2D(interpolation="bilinear")(L.Conv2D(8, 3, padding="same")(b)), a])
    return keras.Model(x, L.Conv2D(2, 1, activation="sigmoid", name="mask")(a))


def ssd(keras, L):
    x = keras.Input((64, 64, 3), name="x")
    y = L.Conv2D(16, 3, strides=2, padding="same", activation="relu6")(x)
    ends = {"boxes": [], "classes": []}
    for filters in (24, 32):
        y = L.BatchNormalization()(L.SeparableConv2D(filters, 3, strides=2, padding="same")(y))
        for name, width in (("boxes", 4), ("classes", 5)):
            ends[name].append(L.Reshape((-1, width))(L.Conv2D(3 * width, 3, padding="same")(y)))
    return keras.Model(x, [L.Concatenate(axis=1, name=name)(parts) for name, parts in ends.items()])


def encoder(keras, L):
    words = keras.Input((16,), dtype="int32", name="words")
    x = L.Embedding(100, 24)(words)
    for _ in range(2):
        x = L.LayerNormalization()(L.Add()([x, L.MultiHeadAttention(4, 6)(x, x)]))
        x = L.LayerNormalization()(L.Add()([x, L.Dense(24)(L.Dense(48, activation="gelu")(x))]))
    return keras.Model(words, L.Dense(3, activation="softmax", name="class")(L.GlobalAveragePooling1D()(x)))


def build(name):
    import keras
    import numpy as np
    if name in globals():
        model = globals()[name](keras, keras.layers)
    else:
        size = 96 if name != "InceptionV3" else 107
        model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=20)
    numbers = np.random.RandomState(1)
    for weight in model.weights:
        if "moving_mean" in weight.path or "beta" in weight.path:
            weight.assign(numbers.uniform(-0.2, 0.2, weight.shape))
        if "moving_variance" in weight.path or "gamma" in weight.path:
            weight.assign(numbers.uniform(0.7, 1.3, weight.shape))
    shape = (1,) + tuple(model.inputs[0].shape[1:])
    return model, numbers.randint(0, 100, shape).astype("i4") if name == "encoder" else numbers.uniform(-1, 1, shape).astype("f4")


def files(model, x, folder):
    """(kind, path, flags) of each form."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    for ending in ("keras", "h5"):
        model.save(f"{folder}/model.{ending}", **({"include_optimizer": False} if ending == "h5" else {}))
        yield ending, f"{folder}/model.{ending}"
    model.export(f"{folder}/saved", verbose=False)
    yield "SavedModel", f"{folder}/saved"
    concrete = tf.function(lambda x: model(x, training=False)).get_concrete_function(tf.TensorSpec([None, *x.shape[1:]], x.dtype, name="x"))
    frozen = convert_variables_to_constants_v2(concrete)
    with open(f"{folder}/frozen.pb", "wb") as file:
        file.write(frozen.graph.as_graph_def().SerializeToString())
    yield "frozen", f"{folder}/frozen.pb", "-enn", *[tensor.name for tensor in frozen.outputs]


def quantizes(path, flags, x, folder):
    """One command, on samples that vary."""
    import numpy as np
    numbers = np.random.RandomState(7)
    samples = numbers.randint(0, 100, (8,) + x.shape[1:]).astype(x.dtype) if x.dtype == "i4" else numbers.uniform(
        -1, 1, (8,) + x.shape[1:]).astype(x.dtype)
    np.save(f"{folder}/samples.npy", samples)
    done = subprocess.run([QUENCH, "quant", path, *flags, "-d", f"{folder}/samples.npy", "-s", f"{folder}/quantized", "-q"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"quant: exit code {done.returncode}: {done.stderr.strip()[:300]}")
    return done.returncode == 0


def transposes(path, flags, folder):
    """How many are left of a plain network whose input is in the order of ONNX."""
    done = subprocess.run([QUENCH, "convert", path, f"{folder}/chw.onnx", *flags, "-c2chw", "--no-compare", "--json"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        print(f"-c2chw: exit code {done.returncode}: {done.stderr.strip()[:300]}")
        return None
    return sum(row["count"] for row in json.loads(done.stdout)["operators"] if row["operator"] == "Transpose")


def check(name):
    import numpy as np
    good = True
    model, x = build(name)
    want = model(x, training=False)
    want = [np.asarray(array) for array in (want if isinstance(want, (list, tuple)) else [want])]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", x)
        for kind, path, *flags in files(model, x, folder):
            out = f"{folder}/out_{kind}"
            done = subprocess.run([QUENCH, "infer", path, *flags, "-i", f"{folder}/x.npy", "-o", out, "-q"], capture_output=True, text=True,
                                  check=False)
            have = [np.load(f"{out}/{file}") for file in sorted(os.listdir(out))] if done.returncode == 0 else []
            error = 0 if len(have) == len(want) else np.inf
            for array in have:
                error = max(error, min(np.abs(array - w).max() / np.abs(w).max() if array.shape == w.shape else np.inf for w in want))
            print(f"{name} {kind}: {error:.2g} {done.stderr.strip()[:300]}", flush=True)
            good &= bool(error <= TOLERANCE)
            if kind in ("keras", "frozen"):
                left = 0 if name in WITH_TRANSPOSES else transposes(path, flags, folder)
                print(f"{name} {kind} with -c2chw: {left} Transposes" * (left != 0), end="\n" * (left != 0))
                good &= left == 0
            if kind in QUANTIZED:
                good &= quantizes(path, flags, x, folder)
    return good


def main():
    if subprocess.run([PYTHON, "-c", "import keras, tensorflow"], capture_output=True, check=False).returncode:
        print(f"skipped: {PYTHON} has no keras and tensorflow")
        sys.exit(77)
    if PYTHON != sys.executable:
        sys.exit(subprocess.run([PYTHON, *sys.argv], check=False).returncode)
    sys.exit(not all([check(name) for name in sys.argv[1:] or NAMES]))


if __name__ == "__main__":
    main()
