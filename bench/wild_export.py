"""wild_export.py [NAME...]: writes the structure files of bench/wild: common architectures as PyTorch's exporters
write them, without their weights.

A structure is a model whose larger constants have no numbers: their doc_string says how they were spread (mean,
standard deviation, least, greatest), and wild.py draws them again by seed. Running averages of normalizations are
settled on noise before, so that values stay within sizes that trained networks have. Needs torch and torchvision;
bench/wild.py, which measures the structures, does not."""

import os
import sys
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wild")
SMALL = 16  # constants of so many elements keep their numbers: shapes, scales, axes
MOST_BYTES = 200 * 1024

# ---- Networks that torchvision does not have ---------------------------------------------------------------


def conv_block(channels, filters, conv=nn.Conv2d, norm=nn.BatchNorm2d, **window):
    window = {"kernel_size": 3, "padding": 1, **window}
    return nn.Sequential(conv(channels, filters, bias=False, **window), norm(filters), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(
            nn.Sequential(conv_block(before, after), conv_block(after, after))
            for before, after in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(
            nn.Sequential(conv_block(2 * w, w), conv_block(w, w)) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, join, beside in zip(self.up, self.join, reversed(kept[:-1])):
            x = join(torch.cat([up(x), beside], 1))
        return self.head(x)


class Attention(nn.Module):
    """scaled: through scaled_dot_product_attention, else written out as older models do."""

    def __init__(self, width, heads, scaled):
        super().__init__()
        self.heads, self.scaled = heads, scaled
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask=None, past=None, causal=False):
        n, length, width = x.shape
        q, k, v = (part.view(n, -1, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        if self.scaled:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        else:
            scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
            y = (scores if mask is None else scores + mask).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, length, width)), (k, v)


class Block(nn.Module):
    def __init__(self, width, heads, scaled, first):
        super().__init__()
        self.first = first  # the normalization stands before what it belongs to
        self.attention = Attention(width, heads, scaled)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask=None, past=None):
        if self.first:
            y, cache = self.attention(self.norms[0](x), mask, past)
            x = x + y
            return x + self.mlp(self.norms[1](x)), cache
        y, cache = self.attention(x, mask, past)
        x = self.norms[0](x + y)
        return self.norms[1](x + self.mlp(x)), cache


class Bert(nn.Module):
    def __init__(self, scaled, width=256, heads=4, layers=4, words=4000, most=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, scaled, False) for _ in range(layers))
        self.head = nn.Linear(width, 5)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        shown = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for block in self.blocks:
            x, _ = block(x, shown)
        return self.head(torch.tanh(x[:, 0]))


class Gpt(nn.Module):
    """One step: the new word's scores, and the cache with it."""

    def __init__(self, width=256, heads=4, layers=4, words=4000, most=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.blocks = nn.ModuleList(Block(width, heads, True, True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids, past):
        x = self.words(ids) + self.places(torch.arange(1) + past.shape[4])
        caches = []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, None, (past[i, 0], past[i, 1]))
            caches.append(torch.stack(cache))
        return self.head(self.norm(x)), torch.stack(caches)


class Text(nn.Module):
    def __init__(self, layer, width=128, words=2000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layer = layer(width, width, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 4)

    def forward(self, ids):
        return self.head(self.layer(self.words(ids))[0].mean(1))


class Audio(nn.Module):
    """Dilated 1-D convolutions with residuals on raw sound."""

    def __init__(self, width=64, blocks=4):
        super().__init__()
        one = {"conv": nn.Conv1d, "norm": nn.BatchNorm1d}
        self.stem = conv_block(1, width, **one, kernel_size=80, stride=4, padding=38)
        self.blocks = nn.ModuleList(
            nn.Sequential(conv_block(width, width, **one, dilation=1 << i, padding=1 << i),
                          nn.Conv1d(width, width, 1)) for i in range(blocks))
        self.head = nn.Linear(width, 35)

    def forward(self, x):
        x = F.max_pool1d(self.stem(x), 4)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(x.mean(-1))


class SuperResolution(nn.Module):
    def __init__(self, scale=3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, scale ** 2, 3, padding=1),
            nn.PixelShuffle(scale))

    def forward(self, x):
        return self.body(x)


class Video(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        three = {"conv": nn.Conv3d, "norm": nn.BatchNorm3d}
        self.stem = conv_block(3, width, **three, kernel_size=(3, 7, 7), stride=(1, 2, 2),
                               padding=(1, 3, 3))
        self.body = nn.Sequential(
            conv_block(width, width, **three), conv_block(width, 2 * width, **three, stride=2),
            conv_block(2 * width, 2 * width, **three), conv_block(2 * width, 4 * width, **three, stride=2),
            conv_block(4 * width, 4 * width, **three))
        self.head = nn.Linear(4 * width, 20)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3, 4)))


# ---- What is exported --------------------------------------------------------------------------------------


def vision(name, **options):
    import torchvision
    return lambda: getattr(torchvision.models, name)(weights=None, **options)


def segmentation():
    from torchvision.models import segmentation as models

    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = models.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21)

        def forward(self, x):
            return self.net(x)["out"]

    return Scores()


def ssd():
    from torchvision.models import detection as models

    class Heads(nn.Module):
        """Scores and boxes of all anchors; what chooses among them is no network."""

        def __init__(self):
            super().__init__()
            self.net = models.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)

        def forward(self, x):
            heads = self.net.head(list(self.net.backbone(x).values()))
            return heads["bbox_regression"], heads["cls_logits"].softmax(-1)

    return Heads()


def vit():
    from torchvision.models import VisionTransformer
    return VisionTransformer(224, 16, 6, 6, 384, 1536)


def image(size, channels=3):
    return lambda: {"image": torch.randn(1, channels, size, size)}


def ids(length, words):
    return torch.randint(0, words, (1, length))


def bert_inputs():
    mask = torch.ones(1, 64, dtype=torch.int64)
    mask[:, 56:] = 0
    return {"ids": ids(64, 4000), "mask": mask}


def gpt_inputs():
    return {"ids": ids(1, 4000), "past": torch.randn(4, 2, 1, 4, 63, 64)}


# name: network, inputs, options: opset, script (the older exporter), free (dimensions left open), half
STRUCTURES = {
    "resnet18": (vision("resnet18"), image(224), {"script": True}),
    "mobilenet_v2_half": (vision("mobilenet_v2"), image(224), {"half": True}),
    "mobilenet_v3": (vision("mobilenet_v3_large"), image(224), {"script": True}),
    "efficientnet_b0": (vision("efficientnet_b0"), image(224), {}),
    "convnext_tiny": (vision("convnext_tiny"), image(224), {}),
    "regnet_y": (vision("regnet_y_400mf"), image(224), {"script": True}),
    "shufflenet": (vision("shufflenet_v2_x1_0"), image(224), {}),
    "densenet": (vision("densenet121"), image(160), {"script": True}),
    "deeplab": (segmentation, image(224), {"script": True}),
    "ssdlite": (ssd, image(320), {}),
    "unet": (UNet, image(160), {}),
    "resnet18_free": (vision("resnet18"), image(160),
                      {"script": True, "free": {"image": {0: "N", 2: "H", 3: "W"}}}),
    "vit": (vit, image(224), {}),
    "swin": (vision("swin_t"), image(224), {}),
    "bert": (lambda: Bert(False), bert_inputs, {"script": True}),
    "bert_sdpa": (lambda: Bert(True), bert_inputs, {}),
    "bert_attention": (lambda: Bert(True), bert_inputs, {"opset": 23}),
    "gpt": (Gpt, gpt_inputs, {}),
    "lstm": (lambda: Text(nn.LSTM), lambda: {"ids": ids(48, 2000)}, {"script": True}),
    "gru": (lambda: Text(nn.GRU), lambda: {"ids": ids(48, 2000)}, {"script": True}),
    "audio": (Audio, lambda: {"sound": torch.randn(1, 1, 8000)}, {}),
    "video": (Video, lambda: {"clip": torch.randn(1, 3, 8, 56, 56)}, {"script": True}),
    "super_resolution": (SuperResolution, image(96, 1), {"script": True}),
}


def settle(model, inputs):
    """Running averages as they are on noise."""
    if not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        return model.eval()
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = None
    model.train()
    with torch.no_grad():
        more = [torch.cat([x, torch.randn_like(x)]) if x.is_floating_point() else x
                for x in inputs.values()]
        model(*more)
    return model.eval()


def strip(model):
    """Leaves of the larger constants how they were spread."""
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.size <= SMALL or not np.issubdtype(values.dtype, np.floating):
            continue
        values = values.astype(np.float64)
        tensor.doc_string = " ".join(
            f"{x:.6g}" for x in (values.mean(), values.std(), values.min(), values.max()))
        for field in ("raw_data", "float_data", "int32_data"):
            tensor.ClearField(field)
    for owner in (model, model.graph, *model.graph.node):
        owner.doc_string = ""
        del owner.metadata_props[:]
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        value.doc_string = ""
        del value.metadata_props[:]
    del model.graph.value_info[:]
    return model


def export(name):
    make, make_inputs, options = STRUCTURES[name]
    torch.manual_seed(7)
    inputs = make_inputs()
    model = settle(make(), inputs)
    if options.get("half"):
        model, inputs = model.half(), {key: x.half() for key, x in inputs.items()}
    path = os.path.join(FOLDER, name + ".onnx")
    script = options.get("script", False)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, tuple(inputs.values()), path, input_names=list(inputs), dynamo=not script, verbose=False,
                          opset_version=options.get("opset", 17 if script else 18),
                          **({"dynamic_axes": options["free"]} if "free" in options else {}),
                          **({} if script else {"external_data": False}))
    onnx.save(strip(onnx.load(path)), path)
    size = os.path.getsize(path)
    print(f"{name}: {size} bytes", flush=True)
    return size <= MOST_BYTES


def main():
    os.makedirs(FOLDER, exist_ok=True)
    large = [name for name in sys.argv[1:] or STRUCTURES if not export(name)]
    if large:
        sys.exit(f"wild_export: larger than {MOST_BYTES} bytes: {', '.join(large)}")


if __name__ == "__main__":
    main()
