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
from onnx import numpy_helper
from torch import nn

import wild_networks as nets

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wild")
SMALL = 16  # constants of so many elements keep their numbers: shapes, scales, axes
MOST_BYTES = 200 * 1024

# ---- What is exported --------------------------------------------------------------------------------------


def vision(name, **options):
    import torchvision
    return lambda: getattr(torchvision.models, name)(weights=None, **options)


class Scores(nn.Module):
    """The picture of classes alone."""

    def __init__(self, name):
        super().__init__()
        from torchvision.models import segmentation
        self.net = getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=21)

    def forward(self, x):
        return self.net(x)["out"]


def vision_video():
    from torchvision.models import video
    return video.r3d_18(weights=None)


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
    "deeplab": (lambda: Scores("deeplabv3_resnet50"), image(224), {"script": True}),
    "ssdlite": (ssd, image(320), {}),
    "unet": (nets.UNet, image(160), {}),
    "resnet18_free": (vision("resnet18"), image(160),
                      {"script": True, "free": {"image": {0: "N", 2: "H", 3: "W"}}}),
    "vit": (vit, image(224), {}),
    "swin": (vision("swin_t"), image(224), {}),
    "bert": (lambda: nets.Bert(False), bert_inputs, {"script": True}),
    "bert_sdpa": (lambda: nets.Bert(True), bert_inputs, {}),
    "bert_attention": (lambda: nets.Bert(True), bert_inputs, {"opset": 23}),
    "gpt": (nets.Gpt, gpt_inputs, {}),
    "lstm": (lambda: nets.Text(nn.LSTM), lambda: {"ids": ids(48, 2000)}, {"script": True}),
    "gru": (lambda: nets.Text(nn.GRU), lambda: {"ids": ids(48, 2000)}, {"script": True}),
    "audio": (nets.Audio, lambda: {"sound": torch.randn(1, 1, 8000)}, {}),
    "video": (nets.Video, lambda: {"clip": torch.randn(1, 3, 8, 56, 56)}, {"script": True}),
    "super_resolution": (nets.SuperResolution, image(96, 1), {"script": True}),
    "resnet50": (vision("resnet50"), image(224), {}),
    "efficientnet_v2": (vision("efficientnet_v2_s"), image(192), {"script": True}),
    "mnasnet": (vision("mnasnet1_0"), image(224), {}),
    "inception": (vision("inception_v3", aux_logits=False), image(299), {"script": True}),
    "lraspp": (lambda: Scores("lraspp_mobilenet_v3_large"), image(224), {}),
    "fcn": (lambda: Scores("fcn_resnet50"), image(160), {}),
    "swin_v2": (vision("swin_v2_t"), image(256), {"script": True}),
    "vit_b": (vision("vit_b_16"), image(224), {"script": True}),
    "video_r3d": (vision_video, lambda: {"clip": torch.randn(1, 3, 8, 112, 112)}, {}),
    "bert_free": (lambda: nets.Bert(True), bert_inputs,
                  {"free": {"ids": {0: "N", 1: "L"}, "mask": {0: "N", 1: "L"}}}),
    "llama": (nets.Llama, lambda: {"ids": ids(32, 4000)}, {}),
    "whisper": (nets.Whisper, lambda: {"spectra": torch.randn(1, 80, 200)}, {}),
    "diffusion": (nets.Diffusion, lambda: {"image": torch.randn(1, 4, 32, 32), "time": torch.ones(1)}, {}),
    "style": (nets.Style, image(128), {"script": True}),
    "crnn": (nets.Crnn, lambda: {"line": torch.randn(1, 1, 32, 160)}, {"script": True}),
    "vocoder": (nets.Vocoder, lambda: {"spectra": torch.randn(1, 80, 64)}, {}),
    "mixer": (nets.Mixer, image(224), {}),
    "points": (nets.Points, lambda: {"cloud": torch.randn(1, 3, 1024)}, {"script": True}),
    "wavenet": (nets.Wavenet, lambda: {"sound": torch.randn(1, 1, 4000)}, {}),
    "detr": (nets.Detr, image(160), {"script": True}),
    "encoder": (nets.Encoder, lambda: {"series": torch.randn(1, 64, 16)}, {}),
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


def is_table(values):
    """Whether neighbours are alike, as in masks and tables of angles, and never in random weights."""
    for axis, length in enumerate(values.shape):
        rest = [np.take(values, places, axis).ravel() for places in (range(length - 1), range(1, length))]
        if length > 2 and min(map(np.ptp, rest)) > 0:
            rest = [(x - x.min()) / np.ptp(x) for x in rest]
            if np.corrcoef(*rest)[0, 1] > 0.5:
                return True
    return False


def strip(model):
    """Leaves of the larger constants how they were spread."""
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.size <= SMALL or not np.issubdtype(values.dtype, np.floating):
            continue
        values = values.astype(np.float64)
        if is_table(values):
            continue
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
