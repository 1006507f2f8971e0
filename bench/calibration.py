"""calibration.py: what calibrating and quantizing ResNet-50 with 100 pictures costs, beside running the float model on
them, and the peak resident memory with few and with many pictures; with --peers also what the tools of ONNX Runtime
(min-max) and OpenVINO (NNCF) take for the same. They take turns; the best of each counts. With --check the exit code
tells whether calibrating takes at most 1.5 times the time of the float run, the whole of quant at most 3 times, by
every method, and never more than 400 MiB."""

import argparse
import os
import sys
import tempfile

import models
from startup import run

MODEL = "resnet50"
METHODS = ("mse", "min_max", "kl", "kl_v2", "percentile", "mean")  # the default first
CALIBRATE, QUANT, MEMORY = 1.5, 3.0, 400 * 2**20
TOLERANCE = 1.03


def commands(folder):
    """Name, command, and the most that it may take of the first one's time."""
    path, data = models.path_of(MODEL), models.calibration(MODEL)
    yield "infer, float", [models.QUENCH, "infer", "-q", path, *data, "-o", folder], None
    stats = os.path.join(folder, "stats")
    yield "calibrate", [models.QUENCH, "calibrate", "-q", "-m", path, *data, "-o", stats], CALIBRATE
    for method in METHODS:
        yield f"quant -qm {method}", [models.QUENCH, "quant", "-q", "-m", path, *data, "-qm", method,
                                      "--save-dir", folder], QUANT


def peer_commands():
    for name, tool in (("ONNX Runtime's tool", "ort_file"), ("NNCF", "nncf_file")):
        script = ("import sys, tempfile\n"
                  f"sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
                  "import int8\n"
                  "with tempfile.TemporaryDirectory() as int8.FOLDER:\n"
                  f"    int8.{tool}({MODEL!r})\n")
        yield name, [sys.executable, "-c", script], None


def many_pictures(folder, count):
    """A list that names the pictures again and again."""
    names = sorted(n for n in os.listdir(models.IMAGENET) if n.endswith(".JPEG"))
    path = os.path.join(folder, "many.txt")
    with open(path, "w", encoding="utf-8") as file:
        for i in range(count):
            file.write(os.path.abspath(os.path.join(models.IMAGENET, names[i % len(names)])) + "\n")
    return path


def measure_times(rows, rounds):
    best = [[float("inf"), 0] for _ in rows]
    for _ in range(rounds):
        for i, (_, command, _) in enumerate(rows):
            seconds, peak = run(command)
            best[i] = [min(best[i][0], seconds), max(best[i][1], peak)]
    return best


def print_times(rows, best):
    wrong = []
    print(f"{'':24}{'seconds':>10}{'/float':>10}{'peak MiB':>10}")
    for (name, command, bound), (seconds, peak) in zip(rows, best):
        share = seconds / best[0][0]
        print(f"{name:24}{seconds:10.2f}{share:10.2f}{peak / 2**20:10.1f}")
        if bound and share > bound * TOLERANCE:
            wrong.append(f"{name}: {share:.2f} times the float run, wanted {bound}")
        if bound and peak > MEMORY:
            wrong.append(f"{name}: {peak / 2**20:.0f} MiB, wanted {MEMORY / 2**20:.0f}")
    return wrong


def measure_memory(folder, counts):
    wrong = []
    for count in counts:
        command = [models.QUENCH, "calibrate", "-q", "-m", models.path_of(MODEL), "-d",
                   many_pictures(folder, count), "--preprocess", models.STEPS[MODEL], "-o",
                   os.path.join(folder, f"{count}.stats")]
        seconds, peak = run(command)
        print(f"calibrate {count:6} pictures: {seconds:.1f} s, {peak / 2**20:.1f} MiB", flush=True)
        if peak > MEMORY:
            wrong.append(f"calibrate {count} pictures: {peak / 2**20:.0f} MiB")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(";", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=10000, help="for the memory; 0: not at all")
    parser.add_argument("--peers", action="store_true", help="once, since they take long")
    parser.add_argument("--check", action="store_true", help="fail where quench takes too much")
    arguments = parser.parse_args()
    lacks = models.lacks_data("calibration", arguments)
    if lacks is not None:
        return lacks
    with tempfile.TemporaryDirectory() as folder:
        rows = list(commands(folder))
        best = measure_times(rows, arguments.rounds)
        if arguments.peers:
            rows += peer_commands()
            best += measure_times(rows[len(best):], 1)
        wrong = print_times(rows, best)
        if arguments.pictures:
            wrong += measure_memory(folder, (10, arguments.pictures))
    for line in wrong if arguments.check else []:
        print("not reached:", line)
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
