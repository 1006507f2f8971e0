"""demo.py: what `make demo` shows on the embedded network examples/fashion.onnx and Fashion-MNIST: one line makes it
integers; its accuracy before and after, the proof that the fast kernels are right, its speed; and, where ONNX Runtime
is installed, the same file there. Everything but that last part needs the command alone."""

import gzip
import json
import os
import subprocess
import sys
import textwrap
import time

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    onnxruntime = None
    why_alone = error

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
QUENCH = os.path.join("build", "quench")
FLOAT = os.path.join("examples", "fashion.onnx")
FOLDER = os.path.join("build", "demo")
INT8 = os.path.join(FOLDER, "fashion_quantize.onnx")
DATA = "/usr/share/datasets/fashion-mnist"
TRAIN = os.path.join(DATA, "train-images-idx3-ubyte.gz")
TEST = [os.path.join(DATA, "t10k-images-idx3-ubyte.gz"),
        os.path.join(DATA, "t10k-labels-idx1-ubyte.gz")]
THREADS = min(2, os.cpu_count())
ROUNDS, SECONDS = 5, 0.5
EXACT = "session.x64quantprecision"


def title(text):
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def run(*arguments):
    result = subprocess.run([QUENCH, *arguments], stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"demo: quench {arguments[0]} ended with exit code {result.returncode}")
    return result.stdout


def show(*arguments):
    """Runs the command as a user would, and shows how."""
    lines = textwrap.wrap(" ".join([QUENCH, *arguments]), 96, break_long_words=False,
                          break_on_hyphens=False)
    print("$ " + " \\\n    ".join(lines), flush=True)
    return run(*arguments)


def network():
    title("The network")
    facts = json.loads(show("inspect", FLOAT, "--json"))
    kinds = ", ".join(f"{row['count']} {row['operator']}" for row in facts["operators"])
    print(f"  {facts['parameters']:,} parameters, {facts['macs'] / 1e6:.1f} million multiply-accumulates")
    print(f"  {facts['nodes']} nodes: {kinds}")


def quantize():
    title("Integers, in one line (calibrated with 500 training pictures)")
    print(show("quant", "-q", "-m", FLOAT, "-d", TRAIN, "--preprocess", "unit", "--samples", "500",
               "--save-dir", FOLDER), end="")


def accuracy():
    title("Accuracy on the 10,000 test pictures, before and after")
    report = json.loads(show("eval", "-q", INT8, "--float", FLOAT, "-d", TEST[0], "--labels", TEST[1],
                             "--preprocess", "unit", "--batch", "64", "--json"))
    after, before = report["models"]
    for name, row in (("float", before), ("int8", after)):
        print(f"  {name:6} {row['top_1_hits']} right: {row['top_1']:.2f} %")
    print(f"  the same answer for {report['agreed']} pictures, KL to float {report['mean_kl']:.6f}")


def proof():
    title("Proof: the fast kernels give the reference's integers")
    print(show("verify", "-q", INT8, "-d", TEST[0], "--preprocess", "unit", "--samples", "100"), end="")


# ---- Beside ONNX Runtime --------------------------------------------------------------------------------------


def read_idx(path, skip, shape):
    with gzip.open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=skip).reshape(shape)


def session_of(path, exact=False):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(EXACT, str(int(exact)))
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def runtime_ms(session):
    """The median of half a second's runs."""
    image, times = np.random.default_rng(1).random((1, 1, 28, 28), np.float32), []
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        start = time.perf_counter()
        session.run(None, {"image": image})
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[len(times) // 2]


def quench_ms(path):
    return json.loads(run("bench", path, "--threads", str(THREADS), "--seconds", str(SECONDS),
                          "--json"))["median_ms"]


def speed():
    title(f"Speed: milliseconds for one picture, {THREADS} threads, best of {ROUNDS} rounds in turn")
    print(f"$ {QUENCH} bench {INT8} --threads {THREADS}")
    engines = {"quench": [lambda path=path: quench_ms(path) for path in (FLOAT, INT8)]}
    if onnxruntime:
        engines["ONNX Runtime"] = [lambda session=session_of(path): runtime_ms(session)
                                   for path in (FLOAT, INT8)]
    best = {name: [float("inf")] * 2 for name in engines}
    for _ in range(ROUNDS):
        for name, turns in engines.items():
            best[name] = [min(ms, turn()) for ms, turn in zip(best[name], turns)]
    print(f"  {'':14}{'float':>8}{'int8':>8}")
    for name, (before, after) in best.items():
        print(f"  {name:14}{before:8.3f}{after:8.3f}")


def count_right(session):
    images = read_idx(TEST[0], 16, (-1, 1, 28, 28)).astype(np.float32) / np.float32(255)
    labels = read_idx(TEST[1], 8, (-1,))
    return int((session.run(None, {"image": images})[0].argmax(1) == labels).sum())


def elsewhere():
    title("The same file in ONNX Runtime")
    if not onnxruntime:
        print(f"  left out: {why_alone} (scripts/venv installs what is needed)")
        return
    usual, exact = count_right(session_of(INT8)), count_right(session_of(INT8, exact=True))
    print(f"  {usual} of 10000 right: {usual / 100:.2f} %")
    if usual != exact:
        print(f"  {exact} of 10000 right: {exact / 100:.2f} % with its session option {EXACT} = 1;\n"
              "  on this CPU, which has no VNNI, its products saturate without it (docs/numerics.md)")


def main():
    os.chdir(ROOT)
    for step in (network, quantize, accuracy, proof, speed, elsewhere):
        step()


if __name__ == "__main__":
    main()
