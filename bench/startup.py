"""startup.py: from process start to the first result of ResNet-50, and the peak resident memory of the
process, of quench and of Python with ONNX Runtime. They take turns; the best of each counts. With --check
the exit code tells whether quench needs at most half of the other's time and memory, and at most 1.3
times the bytes of its weights and planned activations."""

import argparse
import json
import os
import subprocess
import sys
import time

import models

RUNTIME = """
import sys, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
image = numpy.random.default_rng(0).random((1, 3, 224, 224), numpy.float32)
print(session.run(None, {session.get_inputs()[0].name: image})[0].shape)
"""


def run(command):
    """Seconds and peak resident bytes (VmHWM) of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"startup: {command[0]} ended with exit code {process.returncode}")
    return seconds, usage.ru_maxrss * 1024


def planned_bytes(path, threads):
    """Weights and planned activations, as quench tells them."""
    report = subprocess.run([models.QUENCH, "bench", path, "--threads", str(threads), "--seconds",
                             "0.01", "--json"], stdout=subprocess.PIPE, check=True).stdout
    numbers = json.loads(report)
    return numbers["weight_bytes"] + numbers["arena_bytes"] + numbers["scratch_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="fail where quench needs too much")
    arguments = parser.parse_args()
    lacks = models.lacks_data("startup", arguments)
    if lacks is not None:
        return lacks
    path, threads = models.path_of("resnet50"), str(arguments.threads)
    commands = [[models.QUENCH, "infer", path, "--threads", threads],
                [sys.executable, "-c", RUNTIME, path, threads]]
    best = [[float("inf")] * 2 for _ in commands]
    for _ in range(arguments.rounds):
        for i, command in enumerate(commands):
            best[i] = [min(a, b) for a, b in zip(best[i], run(command))]
    planned = planned_bytes(path, arguments.threads)
    print(f"{'':24}{'seconds':>10}{'peak MiB':>10}")
    for name, (seconds, peak) in zip(("quench", "Python + ONNX Runtime"), best):
        print(f"{name:24}{seconds:10.3f}{peak / 2**20:10.1f}")
    ratios = [best[0][0] / best[1][0], best[0][1] / best[1][1], best[0][1] / planned]
    print(f"quench's share          {ratios[0]:10.2f}{ratios[1]:10.2f}")
    print(f"peak / (weights + planned activations, {planned / 2**20:.1f} MiB): {ratios[2]:.2f}")
    reached = ratios[0] <= 0.5 and ratios[1] <= 0.5 and ratios[2] <= 1.3
    return 1 if arguments.check and not reached else 0


if __name__ == "__main__":
    sys.exit(main())
