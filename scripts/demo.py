"""demo.py: what `make demo` shows. The embedded network examples/fashion.onnx: its graph, its accuracy
on Fashion-MNIST's 10,000 test images, and its speed beside ONNX Runtime's."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
QUENCH = os.path.join("build", "quench")
MODEL = os.path.join("examples", "fashion.onnx")
DATA = "/usr/share/datasets/fashion-mnist"
THREADS = min(2, os.cpu_count())
ROUNDS = 5


def read_idx(name, skip, shape):
    with gzip.open(os.path.join(DATA, name), "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=skip).reshape(shape)


def quench(*arguments):
    """Runs the command as a user would, and shows how."""
    print("$", QUENCH, *arguments, flush=True)
    result = subprocess.run([QUENCH, *arguments], stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"demo: quench {arguments[0]} ended with exit code {result.returncode}")
    return result.stdout


def quench_logits(images):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "images.npy")
        np.save(path, images)
        start = time.perf_counter()
        quench("infer", MODEL, "-d", path, "--output-dir", folder)
        print(f"  ({time.perf_counter() - start:.2f} s with loading and writing)")
        return np.load(os.path.join(folder, "logits.npy"))


def runtime_session():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])


def runtime_ms(session, image):
    """The median of a second's runs."""
    times = []
    until = time.perf_counter() + 1.0
    while time.perf_counter() < until:
        start = time.perf_counter()
        session.run(None, {"image": image})
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[len(times) // 2]


def compare_accuracy(session):
    images = read_idx("t10k-images-idx3-ubyte.gz", 16, (-1, 1, 28, 28))
    images = images.astype(np.float32) / np.float32(255)
    labels = read_idx("t10k-labels-idx1-ubyte.gz", 8, (-1,))
    ours = quench_logits(images).reshape(len(labels), 10)
    theirs = session.run(None, {"image": images})[0]
    for name, logits in (("quench", ours), ("ONNX Runtime", theirs)):
        hits = int((logits.argmax(1) == labels).sum())
        print(f"  {name:13} {hits} of {len(labels)} right: {100 * hits / len(labels):.2f} %")
    print(f"  largest difference {np.abs(ours - theirs).max():.2g}, "
          f"largest logit {np.abs(theirs).max():.3g}")


def compare_speed(session):
    for batch in (1, 8):
        image = np.random.default_rng(1).random((batch, 1, 28, 28), np.float32)
        ours, theirs = [], []
        for turn in range(ROUNDS):
            arguments = ["bench", MODEL, "--threads", str(THREADS), "--batch", str(batch), "--json"]
            if turn == 0:
                report = quench(*arguments)
            else:
                report = subprocess.run([QUENCH, *arguments], stdout=subprocess.PIPE, check=True,
                                        stderr=subprocess.DEVNULL, text=True).stdout
            ours.append(json.loads(report)["median_ms"])
            theirs.append(runtime_ms(session, image))
        print(f"  batch {batch}, {THREADS} threads: quench {min(ours):.3f} ms, "
              f"ONNX Runtime {min(theirs):.3f} ms, ratio {min(ours) / min(theirs):.2f}")


def main():
    os.chdir(ROOT)
    print(quench("inspect", MODEL))
    session = runtime_session()
    print("Accuracy on the 10,000 test images of Fashion-MNIST")
    compare_accuracy(session)
    print(f"Speed (best of {ROUNDS} rounds, taken in turn)")
    compare_speed(session)


if __name__ == "__main__":
    main()
