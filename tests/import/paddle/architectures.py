"""architectures.py [NAME...]: whole networks with random weights, made by PaddlePaddle and saved in both forms, give in quench what
they give there, to 1e-4 of the largest output; then one command quantizes each. Skipped where PaddlePaddle is missing:
QUENCH_PADDLE_PYTHON names a Python that has it."""

import os
import subprocess
import sys
import tempfile

import numpy as np

QUENCH = os.environ["QUENCH"]
TOLERANCE = 1e-4
FORMS = {"pdmodel": "0", "json": "1"}
# PaddlePaddle 3.3 makes attention and recurrent layers as PIR alone.
PIR_ALONE = ("crnn", "segformer")


# ---- In PaddlePaddle's Python -----------------------------------------------------------------------


def networks():
    import paddle
    import paddle.nn.functional as F
    from paddle import nn
    from paddle.vision import models

    class Block(nn.Layer):
        """Of PP-LCNet: depthwise, squeeze and excitation, one by one."""

        def __init__(self, inputs, outputs, size, stride):
            super().__init__()
            self.depth = nn.Sequential(nn.Conv2D(inputs, inputs, size, stride, size // 2, groups=inputs, bias_attr=False),
                                       nn.BatchNorm2D(inputs), nn.Hardswish())
            self.gate = nn.Sequential(nn.AdaptiveAvgPool2D(1), nn.Conv2D(inputs, inputs // 4, 1), nn.ReLU(),
                                      nn.Conv2D(inputs // 4, inputs, 1), nn.Hardsigmoid())
            self.point = nn.Sequential(nn.Conv2D(inputs, outputs, 1, bias_attr=False), nn.BatchNorm2D(outputs), nn.Hardswish())

        def forward(self, x):
            x = self.depth(x)
            return self.point(x * self.gate(x))

    def lcnet():
        return nn.Sequential(nn.Conv2D(3, 16, 3, 2, 1), nn.BatchNorm2D(16), nn.Hardswish(), Block(16, 32, 3, 1), Block(32, 64, 3, 2),
                             Block(64, 128, 5, 2), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(128, 10), nn.Softmax())

    class Reader(nn.Layer):
        """CRNN: columns of a picture of text as a sequence."""

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2D(3, 16, 3, 2, 1), nn.BatchNorm2D(16), nn.ReLU(), nn.Conv2D(16, 32, 3, (2, 1), 1),
                                      nn.BatchNorm2D(32), nn.ReLU(), nn.MaxPool2D((8, 2), (8, 2)))
            self.sequence = nn.LSTM(32, 24, num_layers=2, direction="bidirect")
            self.head = nn.Linear(48, 37)

        def forward(self, x):
            x = self.body(x).squeeze(2).transpose([0, 2, 1])
            return F.softmax(self.head(self.sequence(x)[0]), axis=2)

    class Segmenter(nn.Layer):
        """Like SegFormer: overlapping patches, attention, a decoder that sizes up."""

        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2D(3, 32, 7, 4, 3)
            self.norm = nn.LayerNorm(32)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu"), 2)
            self.mix = nn.Conv2D(32, 32, 3, padding=1, groups=32)
            self.head = nn.Conv2D(32, 5, 1)

        def forward(self, x):
            x = self.patch(x)
            shape = x.shape
            y = self.encoder(self.norm(x.flatten(2).transpose([0, 2, 1])))
            y = y.transpose([0, 2, 1]).reshape([-1, 32, shape[2], shape[3]])
            return F.interpolate(self.head(F.gelu(self.mix(y)) + x), scale_factor=4, mode="bilinear")

    class Unet(nn.Layer):
        def __init__(self):
            super().__init__()
            def double(a, b):
                return nn.Sequential(nn.Conv2D(a, b, 3, padding=1), nn.BatchNorm2D(b), nn.ReLU(), nn.Conv2D(b, b, 3, padding=1), nn.ReLU())
            self.down, self.middle, self.up = double(3, 8), double(8, 16), double(16, 8)
            self.larger, self.head = nn.Conv2DTranspose(16, 8, 2, 2), nn.Conv2D(8, 2, 1)

        def forward(self, x):
            x = self.down(x)
            y = self.larger(self.middle(F.max_pool2d(x, 2)))
            return self.head(self.up(paddle.concat([x, y], axis=1)))

    class Detector(nn.Layer):
        """A YOLO head behind a small body, with the boxes that it means."""

        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2D(3, 16, 3, 2, 1), nn.BatchNorm2D(16), nn.LeakyReLU(0.1), nn.Conv2D(16, 32, 3, 2, 1),
                                      nn.BatchNorm2D(32), nn.LeakyReLU(0.1), nn.Conv2D(32, 21, 1))

        def forward(self, x):
            return paddle.vision.ops.yolo_box(self.body(x), paddle.full([1, 2], 64, "int32"), [10, 13, 16, 30, 33, 23], 2, 0.3, 4)

    made = {name: (getattr(models, name), [1, 3, size, size]) for name, size in (
        ("resnet18", 64), ("resnet50", 64), ("mobilenet_v2", 64), ("mobilenet_v3_small", 64), ("mobilenet_v3_large", 64),
        ("densenet121", 64), ("inception_v3", 128), ("squeezenet1_1", 64), ("shufflenet_v2_x0_5", 64), ("googlenet", 224),
        ("vgg11", 64), ("alexnet", 224), ("resnext50_32x4d", 64))}
    made.update(lcnet=(lcnet, [1, 3, 64, 64]), crnn=(Reader, [1, 3, 32, 64]), segformer=(Segmenter, [1, 3, 32, 32]),
                unet=(Unet, [1, 3, 32, 32]), yolo=(Detector, [1, 3, 64, 64]))
    return made


def make(name, form, folder):
    os.environ["FLAGS_enable_pir_api"] = FORMS[form]
    import paddle
    paddle.seed(5)
    maker, shape = networks()[name]
    network = maker()
    network.eval()
    for layer in network.sublayers():
        if isinstance(layer, paddle.nn.BatchNorm2D):
            layer._mean.set_value(paddle.uniform(layer._mean.shape, min=-0.1, max=0.1))
            layer._variance.set_value(paddle.uniform(layer._variance.shape, min=0.8, max=1.2))
    x = np.random.RandomState(3).random_sample(shape).astype(np.float32)
    given = network(paddle.to_tensor(x))
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    paddle.jit.save(network, os.path.join(folder, "net"), input_spec=[paddle.static.InputSpec([None, *shape[1:]], "float32", "x")])
    np.savez(os.path.join(folder, "net.npz"), x=x, **{f"y{i}": y.numpy() for i, y in enumerate(given)})


# ---- In the tests' Python ---------------------------------------------------------------------------


def order_of_outputs(model):
    listing = subprocess.run([QUENCH, "inspect", model, "--json", "-q"], capture_output=True, text=True, check=False)
    import json
    return [row["name"] for row in json.loads(listing.stdout)["outputs"]]


def check(name, form, folder):
    model = next(os.path.join(folder, "net" + end) for end in (".pdmodel", ".json") if os.path.exists(os.path.join(folder, "net" + end)))
    with np.load(os.path.join(folder, "net.npz")) as arrays:
        np.save(os.path.join(folder, "x.npy"), arrays["x"])
        wanted = [arrays[f"y{i}"] for i in range(len(arrays.files) - 1)]
    done = subprocess.run([QUENCH, "infer", model, "-i", f"x={folder}/x.npy", "-o", f"{folder}/out", "-q"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        return f"{name} ({form}): {done.stderr.strip()}"
    for output, want in zip(order_of_outputs(model), wanted):
        have = np.load(os.path.join(folder, "out", output.replace("/", "_") + ".npy"))
        error = np.abs(have - want).max() / np.abs(want).max() if have.shape == want.shape else np.inf
        if not error <= TOLERANCE:
            return f"{name} ({form}): {output}: {have.shape} for {want.shape}, differs by {error:.3g} of the largest"
    done = subprocess.run([QUENCH, "quant", model, "-i", "2", "-bs", "2", "--save-dir", f"{folder}/quantized", "-q"], capture_output=True,
                          text=True, check=False)
    return f"{name} ({form}): quant: {done.stderr.strip()}" if done.returncode else None


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--make":
        make(*sys.argv[2:])
        return
    python = os.environ.get("QUENCH_PADDLE_PYTHON", sys.executable)
    listing = subprocess.run([python, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import os; os.environ.setdefault('QUENCH', '');"
                              "from architectures import networks; print(*networks())", os.path.dirname(os.path.abspath(__file__))],
                             capture_output=True, text=True, check=False)
    if listing.returncode:
        print(f"skipped: {python} has no paddle; QUENCH_PADDLE_PYTHON names another one")
        sys.exit(77)
    wrong = []
    for name in sys.argv[1:] or listing.stdout.split():
        for form in [form for form in FORMS if form == "json" or name not in PIR_ALONE]:
            with tempfile.TemporaryDirectory() as folder:
                made = subprocess.run([python, __file__, "--make", name, form, folder], capture_output=True, text=True, check=False)
                message = f"{name} ({form}): not made: {made.stderr[-500:]}" if made.returncode else check(name, form, folder)
            print(message or f"{name} ({form}): equal, quantized", flush=True)
            wrong += [message] if message else []
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
