"""accuracy.py: frozen graphs have the accuracy that is known of them, and quantized they keep it: MobileNet v1 as its ONNX
twin does, which has the same weights, quantized by the same command."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "bench"))
import models  # noqa: E402

MNIST, IMAGENET = os.path.join(models.DATA, "mnist"), models.IMAGENET
FROZEN = os.path.join(models.DATA, "tensorflow")
# What the manifest says of all of MNIST's test pictures, and of the 500 of ImageNet. Rounding in float changes no hit: the
# scores of two classes lie within 1e-5 of each other for one picture in 10,000.
KNOWN = {"mnist": 9920, "mobilenet": 441}
DIGITS = ["-d", os.path.join(MNIST, "t10k-images-idx3-ubyte.gz"), "--labels", os.path.join(MNIST, "t10k-labels-idx1-ubyte.gz"),
          "--preprocess", "unit", "-b", "100"]
PICTURES = ["-d", IMAGENET, "--labels", os.path.join(IMAGENET, "labels.txt"), "--class-offset", "1", "--preprocess",
            models.STEPS["mobilenet_v1"]]
# Pictures whose best class 8 bits change are won as often as lost, by chance: of n such the loss has a spread of sqrt(n). With
# 1 % of MNIST's, and 10 % of ImageNet's, three times that is allowed; between two such networks sqrt(2) times as much.
LOST = {"mnist": 30, "mobilenet": 18, "twins": 26}
FIRST = 100  # pictures before are for calibration


def run(*words):
    done = subprocess.run([models.QUENCH, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:2])}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def hits(model, data):
    return run("eval", model, *data)["models"][0]["top_1_hits"]


def quantized(model, data, folder):
    run("quant", model, "-s", folder, *data)
    found = [name for name in os.listdir(folder) if name.endswith("_quantized.onnx")] or [
        name for name in os.listdir(folder) if name.endswith(".onnx")]
    return os.path.join(folder, sorted(found)[0])


def mnist(folder):
    model = os.path.join(FROZEN, "mnist_cnn_frozen.pb")
    have = hits(model, DIGITS)
    train = ["-d", os.path.join(MNIST, "train-images-idx3-ubyte.gz"), "--samples", "200", "--preprocess", "unit"]
    integers = hits(quantized(model, train, folder), DIGITS)
    print(f"mnist: {have} of 10000, known {KNOWN['mnist']}; 8 bits {integers}", flush=True)
    return have == KNOWN["mnist"] and integers >= have - LOST["mnist"]


def mobilenet(folder):
    model, twin = os.path.join(FROZEN, "mobilenet_v1_1.0_224_frozen.pb"), models.path_of("mobilenet_v1")
    have = hits(model, PICTURES)
    calibration = ["-d", IMAGENET, "--samples", str(FIRST), "--preprocess", models.STEPS["mobilenet_v1"]]
    rest = [*PICTURES, "--first", str(FIRST)]
    integers = [hits(quantized(path, calibration, os.path.join(folder, str(i))), rest) for i, path in enumerate((model, twin))]
    plain = hits(model, rest)
    print(f"mobilenet: {have} of 500, known {KNOWN['mobilenet']}; of 400 float {plain}, 8 bits {integers[0]}, of the ONNX twin {integers[1]}")
    return have == KNOWN["mobilenet"] and integers[0] >= plain - LOST["mobilenet"] and abs(integers[0] - integers[1]) <= LOST["twins"]


def main():
    reason = models.missing()
    if reason:
        print("skipped:", reason)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        good = [check(os.path.join(folder, check.__name__)) for check in (mnist, mobilenet)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
