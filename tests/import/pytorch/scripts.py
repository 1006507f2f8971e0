"""scripts.py: models of PyTorch that a script registers (-f pytorch -uds): converted, quantized, and as accurate as the
weights' owner says. QUENCH_TORCH_PYTHON names an interpreter with torch where the one at work has none."""

import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from runtime import session  # noqa: E402
from samples import DATA, cifar  # noqa: E402
from torch_python import has_torch, torch_python  # noqa: E402

QUENCH = os.environ["QUENCH"]
SCRIPT = os.path.join(HERE, "resnet20.py")
WEIGHTS = os.path.join(DATA, "pytorch", "resnet20-12fca82f.th")
MEAN, STD = [np.float32(x).reshape(3, 1, 1) for x in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
IMAGES = 4000
# Of the first test images, as the manifest of the data says.
ACCURACY = 91.50


def quench(python, *words):
    done = subprocess.run([QUENCH, "quant", "-f", "pytorch", "-uds", SCRIPT, *words], capture_output=True, text=True,
                          check=False, env={**os.environ, "QUENCH_PYTHON": python})
    return done.returncode, done.stderr


def accuracy(path):
    import lzma

    with lzma.open(os.path.join(DATA, "cifar10", "test_first4000.bin.xz")) as file:
        labels = np.frombuffer(file.read(3073 * IMAGES), np.uint8).reshape(-1, 3073)[:, 0]
    pictures = (cifar(IMAGES) / np.float32(255) - MEAN) / STD
    scores = session(path).run(None, {"input": pictures})[0]
    return 100 * (scores.argmax(1) == labels).mean()


def main():
    code, message = quench(sys.executable, "-m", "resnet20")
    if not has_torch(sys.executable):
        assert code == 3 and "pip install torch" in message and message.count("\n") == 1, message
    python = torch_python()
    if not python:
        print("skipped: no interpreter here has torch; what is said then is right")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        weights = ["-w", WEIGHTS] if os.path.exists(WEIGHTS) else []
        for name in ("resnet20", "resnet20_pair"):
            code, message = quench(python, "-m", name, "-r", "convert", "--save-dir", folder, *weights)
            assert code == 0 and os.path.exists(os.path.join(folder, name + ".onnx")), message
        converted = session(os.path.join(folder, "resnet20.onnx"))
        assert converted.get_inputs()[0].name == "input" and converted.get_inputs()[0].shape[0] == "batch_size"
        assert converted.get_outputs()[0].name == "output"
        code, message = quench(python, "-m", "resnet20", "-r", "quant", "--save-dir", folder, *weights)
        assert code == 0 and os.path.exists(os.path.join(folder, "resnet20_quantize.onnx")), message
        code, message = quench(python, "-m", "nobody", "-r", "convert", "--save-dir", folder)
        assert code == 1 and "registers no model 'nobody'" in message, message
        if not weights:
            print("converted and quantized; there are no weights in QUENCH_DATA to measure")
            return
        measured = accuracy(os.path.join(folder, "resnet20.onnx"))
        print(f"resnet20: {measured:.2f} of {IMAGES} images, {ACCURACY:.2f} are told")
        # One picture may lie at the edge between two classes.
        assert abs(measured - ACCURACY) < 0.03, measured


if __name__ == "__main__":
    main()
