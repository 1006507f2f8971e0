"""models.py: the models that benchmarks and accuracy tests share, where they lie, the data they are calibrated
with, and how fast their integers have to be."""

import lzma
import os
import shutil
import subprocess
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DATA = os.environ.get("QUENCH_DATA", os.path.join(ROOT, "..", "shared", "data"))
# Instrumented code is slow, and a few samples tell as well whether it reports something.
SANITIZED = bool(os.environ.get("QUENCH_SANITIZED"))
FEW = 16
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

IMAGENET = os.path.join(DATA, "imagenet")
COCO = ["-d", os.path.join(DATA, "coco", "images"), "--data-list",
        os.path.join(DATA, "coco", "calib.txt")]
WORDS = os.path.join(DATA, "ocr", "images")
CIFAR_STEPS = "unit,mean=.4914/.4822/.4465,std=.2023/.1994/.2010"
# How a picture becomes an input, in the words of quench --preprocess.
STEPS = {
    "resnet50": "imagenet-caffe",
    "mobilenet_v1": "imagenet-tf",
    "squeezenet": "crop=224,bgr,mean=104/117/123",
    "yolov8n": "yolo",
    "yolox_nano": "yolox",
    "resnet20": "unit,mean=.485/.456/.406,std=.229/.224/.225",
    "se_mobilenet": CIFAR_STEPS,
    "vit": CIFAR_STEPS,
    "pp_ocr": "ppocr",
}
# Quantized models: batch 1, 2 threads. The most that quench's int8 file may take of the time of the better
# peer's int8 file; none may take longer than its float original.
INT8_BOUNDS = {
    "resnet50": 0.95,
    "mobilenet_v1": 0.9,
    "squeezenet": 0.9,
    "yolov8n": 0.9,
    "yolox_nano": 0.9,
    "resnet20": 0.9,
    "se_mobilenet": 1.0,
    "vit": 1.0,
    "pp_ocr": 0.9,
}
# Models of which the file of ONNX Runtime's tool loses more than a point (tests/accuracy/quant.py MODEL peers).
ORT_LOSES = {"mobilenet_v1", "yolov8n"}
# The most that ResNet-50's int8 file may take of the sum of its convolutions as oneDNN's own primitives.
PRIMITIVES_BOUND = 1.12
# ResNet-50 with 16 bits: the options, and the most that it may take of the float time.
WIDE = {("-b", "16"): 1.3, ("--bits", "*=w8a16"): 0.8}


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


def calibration(name):
    """Which samples a quantizer gets to see, as options of quench: never those that accuracy is measured on,
    but for the words of pp_ocr, of which there are no others."""
    if name in ("resnet50", "mobilenet_v1", "squeezenet"):
        return ["-d", IMAGENET, "--samples", "100", "--preprocess", STEPS[name]]
    if name.startswith("yolo"):
        return [*COCO, "--preprocess", STEPS[name]]
    if name == "pp_ocr":
        return ["-d", WORDS, "--samples", "50", "--preprocess", STEPS[name]]
    return ["-d", cifar_training(), "--samples", "256", "--preprocess", STEPS[name]]


def cifar_training():
    """The first 10,000 training pictures as CIFAR's own file, unpacked into build/models."""
    folder = os.path.join(ROOT, "build", "models")
    path = os.path.join(folder, "data_batch_1.bin")
    if not os.path.exists(path):
        part = os.path.join(folder, f"part.{os.getpid()}")
        subprocess.run([sys.executable, os.path.join(DATA, "cifar10", "unpack.py"), part, "1"],
                       check=True)
        os.replace(os.path.join(part, "data_batch_1.bin"), path)
        os.rmdir(part)
    return path


def shapes_of(name, batch):
    return {key: tuple(batch if d == "B" else d for d in dims)
            for key, dims in MODELS[name][1].items()}


def random_inputs(name, batch):
    rng = np.random.default_rng(7)
    values = {key: rng.random(dims, np.float32) for key, dims in shapes_of(name, batch).items()}
    if "sr" in values:
        values["sr"] = np.array(16000, np.int64)
    return values


def lacks_data(name, arguments):
    """None, or the exit code of a bench that cannot run: an error only where numbers are checked."""
    reason = missing()
    if not reason:
        return None
    print(f"{name}: {reason}")
    return 1 if arguments.check else 0
