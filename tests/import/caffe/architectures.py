"""architectures.py [NAME...]: whole networks as prototxt with random weights: quench gives what OpenCV's dnn gives, and quantizes
each by one command. Skipped where OpenCV's dnn is not importable."""

import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

try:
    import cv2
    cv2.dnn.readNetFromCaffe  # noqa: B018: builds without the module
except (ImportError, AttributeError) as error:
    print(f"skipped: OpenCV's dnn is not importable: {error}")
    sys.exit(77)

from write import caffemodel  # noqa: E402

QUENCH = os.environ["QUENCH"]
# Of the largest output.
TOLERANCE = 1e-4


class Net:
    """Layers one after the other; `at` is the blob at work, `channels` those it has."""

    def __init__(self, size, channels=3):
        self.text = f'input: "data"\ninput_dim: 1 input_dim: {channels} input_dim: {size} input_dim: {size}\n'
        self.layers, self.shape, self.at, self.channels, self.count = [], (1, channels, size, size), "data", channels, 0
        self.numbers = np.random.default_rng(5)

    def layer(self, kind, bottoms=None, params="", blobs=(), in_place=False):
        self.count += 1
        name = f"{kind.lower()}{self.count}"
        bottoms = [self.at] if bottoms is None else bottoms
        top = bottoms[0] if in_place else name
        self.text += f'layer {{ name: "{name}" type: "{kind}" ' + "".join(f'bottom: "{b}" ' for b in bottoms)
        self.text += f'top: "{top}" {params} }}\n'
        if blobs:
            self.layers.append((name, kind, [b.astype(np.float32) for b in blobs]))
        self.at = top
        return top

    def normal(self, *shape):
        return self.numbers.normal(size=shape) * (2 / np.prod(shape[1:])) ** 0.5

    def conv(self, outputs, kernel, stride=1, pad=None, group=1, bias=True, relu=True, norm=False):
        pad = kernel // 2 if pad is None else pad
        blobs = [self.normal(outputs, self.channels // group, kernel, kernel)] + ([self.numbers.normal(size=outputs) / 10] if bias else [])
        self.layer("Convolution", None, f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} pad: {pad} "
                   f"group: {group} bias_term: {'true' if bias else 'false'} }}", blobs)
        self.channels = outputs
        if norm:
            self.norm()
        return self.relu() if relu else self.at

    def norm(self):
        c = self.channels
        self.layer("BatchNorm", None, "batch_norm_param { use_global_stats: true }",
                   [self.numbers.normal(size=c) / 10, self.numbers.uniform(0.5, 2, c), np.ones(1)], in_place=True)
        self.layer("Scale", None, "scale_param { bias_term: true }", [self.numbers.uniform(0.5, 1.5, c), self.numbers.normal(size=c) / 10],
                   in_place=True)

    def relu(self):
        return self.layer("ReLU", in_place=True)

    def pool(self, kind, kernel, stride, pad=0):
        return self.layer("Pooling", None, f"pooling_param {{ pool: {kind} kernel_size: {kernel} stride: {stride} pad: {pad} }}")

    def head(self, outputs=20, whole=True):
        if whole:
            self.layer("Pooling", None, "pooling_param { pool: AVE global_pooling: true }")
        self.dense(outputs, self.channels)
        return self.at

    def dense(self, outputs, inputs):
        self.layer("InnerProduct", None, f"inner_product_param {{ num_output: {outputs} }}",
                   [self.normal(outputs, inputs), self.numbers.normal(size=outputs) / 10])

    def branches(self, at, *functions):
        """What each gives of the same blob, joined by channels."""
        channels, ends, total = self.channels, [], 0
        for function in functions:
            self.at, self.channels = at, channels
            function()
            ends.append(self.at)
            total += self.channels
        self.channels = total
        return self.layer("Concat", ends)


def residual(net, outputs, stride, bottleneck):
    start, channels = net.at, net.channels
    side = start
    if stride != 1 or channels != outputs:
        side = net.conv(outputs, 1, stride, bias=False, relu=False, norm=True)
    net.at, net.channels = start, channels
    if bottleneck:
        net.conv(outputs // 4, 1, bias=False, norm=True)
        net.conv(outputs // 4, 3, stride, bias=False, norm=True)
        net.conv(outputs, 1, bias=False, relu=False, norm=True)
    else:
        net.conv(outputs, 3, stride, bias=False, norm=True)
        net.conv(outputs, 3, bias=False, relu=False, norm=True)
    net.layer("Eltwise", [side, net.at])
    net.relu()


def resnet(blocks, bottleneck):
    net = Net(64)
    net.conv(16, 7, 2, bias=False, norm=True)
    net.pool("MAX", 3, 2)
    for stage, count in enumerate(blocks):
        for i in range(count):
            residual(net, 16 * 2 ** stage * (4 if bottleneck else 1), 2 if stage and i == 0 else 1, bottleneck)
    net.head()
    return net


def mobilenet_v1():
    net = Net(64)
    net.conv(8, 3, 2, bias=False, norm=True)
    for outputs, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        net.conv(net.channels, 3, stride, group=net.channels, bias=False, norm=True)
        net.conv(outputs, 1, bias=False, norm=True)
    net.head()
    return net


def mobilenet_v2():
    net = Net(64)
    net.conv(8, 3, 2, bias=False, norm=True)
    for outputs, stride in ((8, 1), (16, 2), (16, 1), (24, 2), (24, 1)):
        start, channels = net.at, net.channels
        net.conv(6 * channels, 1, bias=False, norm=True)
        net.conv(6 * channels, 3, stride, group=6 * channels, bias=False, norm=True)
        net.conv(outputs, 1, bias=False, relu=False, norm=True)
        if stride == 1 and outputs == channels:
            net.layer("Eltwise", [start, net.at])
    net.head()
    return net


LRN = "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }"


def googlenet():
    net = Net(64)
    net.conv(16, 7, 2, 3)
    net.pool("MAX", 3, 2)
    net.layer("LRN", None, LRN)
    net.conv(24, 3)
    for width in (8, 12, 16):
        net.branches(net.at, lambda w=width: net.conv(w, 1), lambda w=width: (net.conv(w, 1), net.conv(2 * w, 3)),
                     lambda w=width: (net.conv(w // 2, 1), net.conv(w, 5)), lambda w=width: (net.pool("MAX", 3, 1, 1), net.conv(w, 1)))
    net.pool("MAX", 3, 2)
    net.layer("Dropout", None, "dropout_param { dropout_ratio: 0.4 }")
    net.head()
    return net


def alexnet():
    net = Net(99)
    net.conv(16, 11, 4, 0)
    net.layer("LRN", None, LRN)
    net.pool("MAX", 3, 2)
    net.conv(32, 5, group=2)
    net.layer("LRN", None, LRN)
    net.pool("MAX", 3, 2)
    net.conv(48, 3)
    net.conv(32, 3, group=2)
    net.pool("MAX", 3, 2)
    net.dense(64, 32 * 2 * 2)
    net.relu()
    net.layer("Dropout", None, "", in_place=True)
    net.dense(20, 64)
    return net


def vgg():
    net = Net(32)
    for outputs, count in ((16, 2), (32, 2), (48, 3)):
        for _ in range(count):
            net.conv(outputs, 3)
        net.pool("MAX", 2, 2)
    net.dense(64, 48 * 4 * 4)
    net.relu()
    net.dense(20, 64)
    return net


def densenet():
    net = Net(32)
    net.conv(16, 3, bias=False)
    for _ in range(2):
        for _ in range(3):
            start, channels = net.at, net.channels
            net.layer("BatchNorm", None, "", [net.numbers.normal(size=channels) / 10, net.numbers.uniform(0.5, 2, channels), np.ones(1)])
            net.layer("Scale", None, "scale_param { bias_term: true }",
                      [net.numbers.uniform(0.5, 1.5, channels), net.numbers.normal(size=channels) / 10], in_place=True)
            net.relu()
            net.conv(32, 1, bias=False, norm=True)
            net.conv(8, 3, bias=False, relu=False)
            net.layer("Concat", [start, net.at])
            net.channels = channels + 8
        net.conv(net.channels // 2, 1, bias=False, norm=True)
        net.pool("AVE", 2, 2)
    net.head()
    return net


def u_net():
    net = Net(32)
    skips = []
    for outputs in (8, 16):
        net.conv(outputs, 3)
        skips.append((net.at, net.channels))
        net.pool("MAX", 2, 2)
    net.conv(32, 3)
    for skip, channels in reversed(skips):
        net.layer("Deconvolution", None, f"convolution_param {{ num_output: {channels} kernel_size: 4 stride: 2 }}",
                  [net.normal(net.channels, channels, 4, 4), np.zeros(channels)])
        net.layer("Crop", [net.at, skip], "crop_param { axis: 2 offset: 1 }")
        net.layer("Concat", [skip, net.at])
        net.channels = 2 * channels
        net.conv(channels, 3)
    net.conv(2, 1, relu=False)
    net.layer("Softmax")
    return net


def ssd_mobilenet():
    net = Net(64)
    net.conv(8, 3, 2, bias=False, norm=True)
    parts = {"loc": [], "conf": [], "prior": []}
    for k, (outputs, stride) in enumerate(((16, 2), (32, 2), (32, 2))):
        net.conv(net.channels, 3, stride, group=net.channels, bias=False, norm=True)
        at, channels = net.conv(outputs, 1, bias=False, norm=True), outputs
        for part, numbers in (("loc", 4), ("conf", 4)):
            net.at, net.channels = at, channels
            net.conv(6 * numbers, 1, relu=False)
            net.layer("Permute", None, "permute_param { order: 0 order: 2 order: 3 order: 1 }")
            parts[part].append(net.layer("Flatten", None, "flatten_param { axis: 1 }"))
        low = 12 + 14 * k
        parts["prior"].append(net.layer("PriorBox", [at, "data"], f"prior_box_param {{ min_size: {low} max_size: {low + 14} aspect_ratio: 2 "
                                        "aspect_ratio: 3 flip: true clip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }"))
        net.at, net.channels = at, channels
    loc, conf = net.layer("Concat", parts["loc"]), net.layer("Concat", parts["conf"])
    prior = net.layer("Concat", parts["prior"], "concat_param { axis: 2 }")
    net.layer("Reshape", [conf], "reshape_param { shape { dim: 0 dim: -1 dim: 4 } }")
    net.layer("Softmax", None, "softmax_param { axis: 2 }")
    conf = net.layer("Flatten", None, "flatten_param { axis: 1 }")
    net.layer("DetectionOutput", [loc, conf, prior], """detection_output_param { num_classes: 4 share_location: true background_label_id: 0
        nms_param { nms_threshold: 0.45 top_k: 100 } code_type: CENTER_SIZE keep_top_k: 50 confidence_threshold: 0.25 }""")
    return net


def rpn():
    """The head that proposes, up to its two outputs: OpenCV's Proposal is another one than py-faster-rcnn's."""
    net = Net(64)
    for outputs in (8, 16, 24):
        net.conv(outputs, 3)
        net.pool("MAX", 2, 2)
    at = net.conv(24, 3)
    net.conv(36, 1, relu=False)
    boxes = net.at
    net.at, net.channels = at, 24
    net.conv(18, 1, relu=False)
    net.layer("Reshape", None, "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } }")
    net.layer("Softmax")
    scores = net.layer("Reshape", None, "reshape_param { shape { dim: 0 dim: 18 dim: -1 dim: 0 } }")
    net.layer("Concat", [scores, boxes])
    return net


NETWORKS = {"resnet18": lambda: resnet((2, 2, 2, 2), False), "resnet50": lambda: resnet((3, 4, 6, 3), True), "mobilenet_v1": mobilenet_v1,
            "mobilenet_v2": mobilenet_v2, "googlenet": googlenet, "alexnet": alexnet, "vgg": vgg, "densenet": densenet, "u_net": u_net,
            "ssd_mobilenet": ssd_mobilenet, "rpn": rpn}


def by_opencv(net, path, x):
    loaded = cv2.dnn.readNetFromCaffe(path + ".prototxt", path + ".caffemodel")
    loaded.enableFusion(False)
    loaded.enableWinograd(False)
    loaded.setInput(x, "data")
    return loaded.forward(net.at)


def quench(*words):
    done = subprocess.run([QUENCH, *words, "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check(name, folder):
    net, path = NETWORKS[name](), os.path.join(folder, name)
    with open(path + ".prototxt", "w", encoding="utf-8") as file:
        file.write(net.text)
    with open(path + ".caffemodel", "wb") as file:
        file.write(caffemodel(net.layers))
    x = np.random.RandomState(1).uniform(-1, 1, net.shape).astype(np.float32)
    want = by_opencv(net, path, x)
    np.save(path + ".npy", x)
    quench("infer", path + ".prototxt", "-i", f"data={path}.npy", "-o", path)
    have = np.load(os.path.join(path, net.at + ".npy"))
    assert have.shape == want.shape, f"{name}: {have.shape} for {want.shape}"
    worst = np.abs(have - want).max() / np.abs(want).max()
    quench("quant", path + ".prototxt", "-d", path + ".npy", "--save-dir", path)
    assert os.path.exists(os.path.join(path, name + "_quantize.onnx")), name
    print(f"{name}: {worst:.2g}", flush=True)
    return worst <= TOLERANCE


def main():
    with tempfile.TemporaryDirectory() as folder:
        good = [check(name, folder) for name in sys.argv[1:] or NETWORKS]
    print(f"{sum(good)} of {len(good)} networks give what OpenCV gives, and are quantized")
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
