"""models.py: the float models that benchmarks and accuracy tests share, and where they lie."""

import lzma
import os
import shutil

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DATA = os.environ.get("QUENCH_DATA", os.path.join(ROOT, "..", "shared", "data"))
QUENCH = os.environ.get("QUENCH", os.path.join(ROOT, "build", "quench"))

# file, shapes of its inputs (B stands for the batch), batches it can be run with
MODELS = {
    "fashion": ("fashion.onnx", {"image": ("B", 1, 28, 28)}, (1, 8)),
    "resnet50": ("resnet50_keras_bf16w.onnx", {"input_1": ("B", 3, 224, 224)}, (1, 8)),
    "mobilenet_v1": ("mobilenet_v1_1.0_224.onnx", {"input": ("B", 3, 224, 224)}, (1, 8)),
    "squeezenet": ("squeezenet_v1.1.onnx", {"data": ("B", 3, 224, 224)}, (1, 8)),
    "yolov8n": ("yolov8n.onnx", {"images": (1, 3, 640, 640)}, (1,)),
    "yolox_nano": ("yolox_nano.onnx", {"images": (1, 3, 416, 416)}, (1,)),
    "resnet20": ("resnet20_cifar10.onnx", {"input": ("B", 3, 32, 32)}, (1, 8)),
    "se_mobilenet": ("tiny_se_mobilenet_cifar10.onnx", {"input": ("B", 3, 32, 32)}, (1, 8)),
    "vit": ("vit_cifar10.onnx", {"input": (1, 3, 32, 32)}, (1,)),
    "pp_ocr": ("en_PP-OCRv4_rec.onnx", {"x": ("B", 3, 48, 320)}, (1, 8)),
    "silero_vad": ("silero_vad_16k_op15.onnx",
                   {"input": ("B", 576), "state": (2, "B", 128), "sr": ()}, (1, 8)),
}


def missing():
    """Why the models cannot be used, or None."""
    if not os.path.isdir(os.path.join(DATA, "onnx")):
        return f"no models: {DATA}/onnx is missing (QUENCH_DATA names another folder)"
    return None


def all_names():
    """What there is to measure: the shared models, or else the embedded one."""
    return ["fashion"] if missing() else [name for name in MODELS if name != "fashion"]


def path_of(name):
    """The model's file; one that is stored packed is unpacked into build/models first."""
    if name == "fashion":
        return os.path.join(ROOT, "examples", MODELS[name][0])
    stored = os.path.join(DATA, "onnx", MODELS[name][0])
    if os.path.exists(stored):
        return stored
    unpacked = os.path.join(ROOT, "build", "models", MODELS[name][0])
    if not os.path.exists(unpacked):
        os.makedirs(os.path.dirname(unpacked), exist_ok=True)
        part = f"{unpacked}.{os.getpid()}"
        with lzma.open(stored + ".xz") as source, open(part, "wb") as target:
            shutil.copyfileobj(source, target)
        os.replace(part, unpacked)
    return unpacked


def shapes_of(name, batch):
    return {key: tuple(batch if d == "B" else d for d in dims)
            for key, dims in MODELS[name][1].items()}


def random_inputs(name, batch):
    rng = np.random.default_rng(7)
    values = {key: rng.random(dims, np.float32) for key, dims in shapes_of(name, batch).items()}
    if "sr" in values:
        values["sr"] = np.array(16000, np.int64)
    return values
