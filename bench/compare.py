"""compare.py: quench, ONNX Runtime and OpenVINO in turn on the same models, batches and threads.

Each round lets every engine run for a while after a warm-up and keeps its median; the best round counts.
quench runs as a process of its own (quench bench), the peers inside this one; an engine's turn begins
when the threads of the one before have gone to sleep. Prints milliseconds and quench's time relative to
each peer's, and the geometric means. With --check the exit code tells whether quench is where it has to
be: on every model at most 3 % slower than ONNX Runtime, in the mean at most 0.85 of ONNX Runtime's time
and 1.0 of OpenVINO's."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import models

REST = 0.15  # seconds after which a peer's spinning threads are asleep


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, path, inputs, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = inputs

    def run(self):
        self.session.run(None, self.inputs)


class OpenVino:
    name = "OpenVINO"

    def __init__(self, path, inputs, threads):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({key: list(value.shape) for key, value in inputs.items()})
        # It would compute with bfloat16 where the CPU can.
        options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads,
                   "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        self.request = core.compile_model(model, "CPU", options).create_infer_request()
        for key, value in inputs.items():
            self.request.set_tensor(key, openvino.Tensor(value))

    def run(self):
        self.request.infer()


def peer_ms(run, seconds, choose):
    """The chosen time of `seconds` of runs after a tenth of that as warm-up."""
    until = time.perf_counter() + seconds / 10
    while True:
        run()
        if time.perf_counter() >= until:
            break
    times, until = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < until:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * float(choose(times))


def quench_ms(path, files, arguments):
    command = [models.QUENCH, "bench", path, "--threads", str(arguments.threads), "--seconds",
               str(arguments.seconds), "--json"]
    for key, file in files.items():
        command += ["--input", f"{key}={file}"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"compare: {' '.join(command)} ended with exit code {result.returncode}")
    return json.loads(result.stdout)["min_ms" if arguments.minimum else "median_ms"]


def save_inputs(inputs, folder):
    files = {}
    for i, (key, value) in enumerate(inputs.items()):
        files[key] = os.path.join(folder, f"{i}.npy")
        np.save(files[key], value)
    return files


def start(peer, path, inputs, threads):
    """None where the engine cannot take the model."""
    try:
        return peer(path, inputs, threads)
    except RuntimeError:
        return None


def measure(name, batch, arguments):
    """Best round of each engine in milliseconds: quench, then the peers; None: cannot run it."""
    path, inputs = models.path_of(name), models.random_inputs(name, batch)
    peers = [start(peer, path, inputs, arguments.threads) for peer in arguments.peers]
    best = [math.inf] * (1 + len(peers))
    choose = np.min if arguments.minimum else np.median
    with tempfile.TemporaryDirectory() as folder:
        files = save_inputs(inputs, folder)
        for _ in range(arguments.rounds):
            best[0] = min(best[0], quench_ms(path, files, arguments))
            for i, peer in enumerate(peers):
                if not peer:
                    continue
                best[1 + i] = min(best[1 + i], peer_ms(peer.run, arguments.seconds, choose))
                time.sleep(REST)
    return [ms if math.isfinite(ms) else None for ms in best]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def shares(rows, peer):
    """quench's time divided by the peer's, where both ran."""
    return {label: best[0] / best[peer] for label, best in rows.items() if best[peer]}


def cells(values, width, digits):
    return "".join(f"{v:{width}.{digits}f}" if v else f"{'-':>{width}}" for v in values)


def print_line(label, best):
    ratios = [best[0] / ms if ms else None for ms in best[1:]]
    print(f"{label:20}{cells(best, 14, 3)}   {cells(ratios, 10, 2)}", flush=True)


def verdict(rows, peers):
    """What --check finds wrong."""
    wrong = []
    limits = {"ONNX Runtime": 0.85, "OpenVINO": 1.0}
    for i, peer in enumerate(peers):
        ratios = shares(rows, 1 + i)
        mean = geometric_mean(ratios.values())
        if mean > limits[peer.name]:
            wrong.append(f"geometric mean {mean:.3f} of {peer.name}'s time, wanted "
                         f"{limits[peer.name]}")
        if peer is OnnxRuntime:
            wrong += [f"{label}: {ratio:.3f} of ONNX Runtime's time"
                      for label, ratio in ratios.items() if ratio > 1.03]
    return wrong


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help=" ".join(models.MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one engine's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, action="append", help="1 and 8 unless given")
    parser.add_argument("--minimum", action="store_true",
                        help="take the fastest run of a turn instead of the median")
    parser.add_argument("--json", help="write the numbers to this file as well")
    parser.add_argument("--no-openvino", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail where quench is too slow")
    arguments = parser.parse_args()
    arguments.peers = [OnnxRuntime] if arguments.no_openvino else [OnnxRuntime, OpenVino]
    return arguments


def main():
    arguments = parse()
    reason = models.missing()
    if reason:
        print(f"compare: {reason}; comparing on the embedded network")
    print(f"{arguments.threads} threads, best of {arguments.rounds} rounds, ms and quench's share")
    print(f"{'model, batch':20}{'quench':>14}" + "".join(f"{p.name:>14}" for p in arguments.peers) +
          "   " + "".join(f"{'/' + p.name.split()[0]:>10}" for p in arguments.peers), flush=True)
    rows = {}
    for name in arguments.names or models.all_names():
        for batch in models.MODELS[name][2]:
            if batch in (arguments.batch or (1, 8)):
                label = f"{name}, {batch}"
                rows[label] = measure(name, batch, arguments)
                print_line(label, rows[label])
    means = [geometric_mean(shares(rows, 1 + i).values()) for i in range(len(arguments.peers))]
    print(f"{'geometric mean':{20 + 14 * (1 + len(means))}}   {cells(means, 10, 2)}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"engines": ["quench"] + [p.name for p in arguments.peers], "ms": rows}, file,
                      indent=2)
    wrong = verdict(rows, arguments.peers) if arguments.check else []
    for line in wrong:
        print("not reached:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
