"""eval.py MODEL: the accuracy that stands in the table below, measured by the command alone, from files as they
are; no Python between a picture and the number."""

import json
import lzma
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import models  # noqa: E402

IMAGENET = ["-d", models.IMAGENET, "--labels", os.path.join(models.IMAGENET, "labels.txt")]
CIFAR = os.path.join(models.DATA, "cifar10", "test_first4000.bin.xz")

# Hits are integers that rounding in float does not change: the scores of two classes lie within 1e-5 of each other for
# one picture in 10,000, and none of these is one on CPUs with and without VNNI.
# further options, hits among the best and the best five (None: not stated)
CASES = {
    "resnet50": (IMAGENET, 445, 491),
    "mobilenet_v1": ([*IMAGENET, "--class-offset", "1"], 441, 490),
    "squeezenet": (IMAGENET, 300, 403),
    "resnet20": (None, 3660, None),
    "se_mobilenet": (None, 3629, None),
    "vit": (None, 2931, None),
}


def evaluate(name, folder):
    data, top1, top5 = CASES[name]
    if data is None:
        data = ["-d", os.path.join(folder, "test.bin")]
        with lzma.open(CIFAR) as packed, open(data[1], "wb") as file:
            file.write(packed.read())
    if models.SANITIZED:
        data = [*data, "--samples", str(models.FEW)]
    done = subprocess.run([models.QUENCH, "eval", models.path_of(name), *data, "--preprocess",
                           models.STEPS[name], "--json"], check=True, capture_output=True, text=True)
    row = json.loads(done.stdout)["models"][0]
    if models.SANITIZED:
        return 0 < row["top_1_hits"] <= models.FEW
    print(f"top-1 {row['top_1_hits']}, expected {top1}; top-5 {row['top_5_hits']}, expected {top5}")
    return row["top_1_hits"] == top1 and top5 in (None, row["top_5_hits"])


def main():
    reason = models.missing()
    if reason:
        print("skipped:", reason)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        return 0 if evaluate(sys.argv[1], folder) else 1


if __name__ == "__main__":
    sys.exit(main())
