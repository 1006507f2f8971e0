"""compare.py: quench, ONNX Runtime and OpenVINO in turn on the same models, batches and threads.

Each round lets every engine run for a while after a warm-up and keeps its median; the best round counts.
quench runs as a process of its own (quench bench), the peers inside this one; an engine's turn begins
when the threads of the one before have gone to sleep. Prints milliseconds and quench's share of the
others' times. With --check the exit code tells whether every share is where it has to be, within 3 %.

  float   the float models; in the geometric mean at most 0.85 of ONNX Runtime's time and 1.0 of OpenVINO's
  int8    each engine with the file that its own tool makes, and quench with the float original
  ort     files of quench quant --target ort beside those of ONNX Runtime's tool, both in ONNX Runtime
  wide    ResNet-50 with 16 bits beside its float original
  primitives  ResNet-50's int8 file beside the sum of its convolutions as oneDNN's own primitives"""

import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import int8
import models

REST = 0.15       # seconds after which a peer's spinning threads are asleep
TOLERANCE = 1.03  # what noise may add to a share
SHORT, MORE = 1.0, 3  # below so many milliseconds, so many times the rounds: noise is a larger part of them

# ---- Engines ----------------------------------------------------------------------------------------------


def field_of(arguments):
    """What is taken from the JSON that programs of ours print about a turn."""
    return "min_ms" if arguments.minimum else "median_ms"


class Quench:
    name = "quench"

    def __init__(self, path, inputs, arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.command = [models.QUENCH, "bench", path, "--threads", str(arguments.threads),
                        "--seconds", str(arguments.seconds), "--json"]
        self.field = field_of(arguments)
        for i, (key, value) in enumerate(inputs.items()):
            file = os.path.join(self.folder.name, f"{i}.npy")
            np.save(file, value)
            self.command += ["--input", f"{key}={file}"]

    def turn(self):
        result = subprocess.run(self.command, stdout=subprocess.PIPE, text=True)
        if result.returncode != 0:
            sys.exit(f"compare: {' '.join(self.command)} ended with exit code {result.returncode}")
        return json.loads(result.stdout)[self.field]


class OneDnn:
    """oneDNN's own int8 convolution primitives, one after another: the path is a list of layers."""
    name = "oneDNN"

    def __init__(self, path, _, arguments):
        build = os.path.dirname(models.QUENCH)
        made = subprocess.run(["cmake", "--build", build, "--target", "onednn_conv"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if made.returncode != 0:
            raise RuntimeError("built without oneDNN")
        self.command = [os.path.join(build, "onednn_conv"), path, str(arguments.seconds)]
        self.field = field_of(arguments)
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}

    def turn(self):
        result = subprocess.run(self.command, stdout=subprocess.PIPE, text=True, check=True,
                                env=self.environment)
        return json.loads(result.stdout)[self.field]


class Peer:
    """run() computes once."""

    def __init__(self, arguments):
        self.seconds = arguments.seconds
        self.choose = np.min if arguments.minimum else np.median

    def turn(self):
        """The chosen time of `seconds` of runs after a tenth of that as warm-up."""
        until = time.perf_counter() + self.seconds / 10
        while True:
            self.run()
            if time.perf_counter() >= until:
                break
        times, until = [], time.perf_counter() + self.seconds
        while len(times) < 5 or time.perf_counter() < until:
            start = time.perf_counter()
            self.run()
            times.append(time.perf_counter() - start)
        time.sleep(REST)
        return 1e3 * float(self.choose(times))


class OnnxRuntime(Peer):
    name = "ONNX Runtime"

    def __init__(self, path, inputs, arguments):
        super().__init__(arguments)
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = inputs

    def run(self):
        self.session.run(None, self.inputs)


class OpenVino(Peer):
    name = "OpenVINO"

    def __init__(self, path, inputs, arguments):
        super().__init__(arguments)
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({key: list(value.shape) for key, value in inputs.items()})
        # It would compute with bfloat16 where the CPU can.
        options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": arguments.threads,
                   "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        self.request = core.compile_model(model, "CPU", options).create_infer_request()
        for key, value in inputs.items():
            self.request.set_tensor(key, openvino.Tensor(value))

    def run(self):
        self.request.infer()


def start(engine, path, inputs, arguments):
    """None where there is no file, or the engine cannot take or run it."""
    if not path:
        return None
    try:
        started = engine(path, inputs, arguments)
        if isinstance(started, Peer):
            started.run()
        return started
    except Exception:  # whatever an engine throws
        return None


def measure(lanes, inputs, arguments):
    """Best round of each lane (an engine and its file) in milliseconds; None: cannot run it."""
    engines = [start(engine, path, inputs, arguments) for engine, path in lanes]
    best = [math.inf] * len(engines)
    done, rounds = 0, arguments.rounds
    while done < rounds:
        for i, engine in enumerate(engines):
            if engine:
                best[i] = min(best[i], engine.turn())
        done += 1
        if min(best) < SHORT:
            rounds = arguments.rounds * MORE
    return [ms if math.isfinite(ms) else None for ms in best]


# ---- Suites: columns, and rows of lanes (one per column) and shares ----------------------------------------------

# The time of column `ours` divided by the least of the columns `theirs`, and the most that it may be.
Share = collections.namedtuple("Share", "heading ours theirs bound")
Row = collections.namedtuple("Row", "label inputs lanes shares")


def float_rows(names, batches):
    for name in names:
        for batch in models.MODELS[name][2]:
            if batch in batches:
                yield Row(f"{name}, {batch}", models.random_inputs(name, batch),
                          [(engine, models.path_of(name)) for engine in (Quench, OnnxRuntime, OpenVino)],
                          [Share("/ONNX", 0, [1], 1.0), Share("/OpenVINO", 0, [2], None)])


def int8_rows(names, _):
    for name, bound in models.INT8_BOUNDS.items():
        if name in names:
            yield Row(name, models.random_inputs(name, 1),
                      [(Quench, int8.quench_file(name)), (OnnxRuntime, int8.ort_file(name)),
                       (OpenVino, int8.nncf_file(name)), (Quench, models.path_of(name))],
                      [Share("/better", 0, [1, 2], bound), Share("/float", 0, [3], 1.0)])


def ort_rows(names, _):
    for name in models.INT8_BOUNDS:
        if name in names:
            bound = None if name in models.ORT_LOSES else 1.0
            yield Row(name, models.random_inputs(name, 1),
                      [(OnnxRuntime, int8.quench_file(name, "--target", "ort")),
                       (OnnxRuntime, int8.ort_file(name))], [Share("share", 0, [1], bound)])


def wide_rows(names, _):
    if "resnet50" in names:
        yield Row("resnet50", models.random_inputs("resnet50", 1),
                  [(Quench, models.path_of("resnet50"))] +
                  [(Quench, int8.quench_file("resnet50", *options)) for options in models.WIDE],
                  [Share(heading, i, [0], bound) for heading, i, bound in
                   zip(("/float", "/float"), (1, 2), models.WIDE.values())])


def primitive_rows(names, _):
    if "resnet50" in names:
        layers = os.path.join(models.ROOT, "bench", "resnet50.layers")
        yield Row("resnet50", models.random_inputs("resnet50", 1),
                  [(Quench, int8.quench_file("resnet50")), (OneDnn, layers)],
                  [Share("/primitives", 0, [1], models.PRIMITIVES_BOUND)])


Suite = collections.namedtuple("Suite", "columns rows means")
SUITES = {
    "float": Suite(["quench", "ONNX Runtime", "OpenVINO"], float_rows, [0.85, 1.0]),
    "int8": Suite(["quench int8", "ONNX Runtime", "OpenVINO", "quench float"], int8_rows, []),
    "ort": Suite(["by quench", "by its tool"], ort_rows, []),
    "wide": Suite(["float", "W16A16", "W8A16"], wide_rows, []),
    "primitives": Suite(["quench int8", "convolutions"], primitive_rows, []),
}


def shares_of(row, best):
    """None where one side could not run."""
    result = []
    for share in row.shares:
        theirs = [best[i] for i in share.theirs if best[i]]
        result.append(best[share.ours] / min(theirs) if theirs and best[share.ours] else None)
    return result


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def cells(values, width, digits):
    return "".join(f"{v:{width}.{digits}f}" if v else f"{'-':>{width}}" for v in values)


def mark(share, value):
    """A bound behind a share, with a cross where it is missed."""
    if share.bound is None or value is None:
        return f"{value:10.2f}        " if value else f"{'-':>10}        "
    return f"{value:10.2f} {'x' if value > share.bound * TOLERANCE else ' '}<={share.bound:<4} "


def run_suite(name, arguments):
    """Prints the table. Returns milliseconds by label, and what is wrong."""
    suite, rows, all_shares, wrong = SUITES[name], {}, [], []
    for row in suite.rows(arguments.names, arguments.batch):
        if not rows:
            print(f"\n{name:20}" + "".join(f"{column:>14}" for column in suite.columns) + "   " +
                  "".join(f"{share.heading:>10}{'':8}" for share in row.shares), flush=True)
        best = rows[row.label] = measure(row.lanes, row.inputs, arguments)
        shares = shares_of(row, best)
        all_shares.append(shares)
        print(f"{row.label:20}{cells(best, 14, 3)}   " + "".join(map(mark, row.shares, shares)),
              flush=True)
        wrong += [f"{name}: {row.label}: {share.heading} is {value:.3f}, wanted {share.bound}"
                  for share, value in zip(row.shares, shares)
                  if value and share.bound and value > share.bound * TOLERANCE]
    if not rows:
        return rows, wrong
    means = [geometric_mean([v for v in column if v]) for column in zip(*all_shares)]
    print(f"{'geometric mean':{20 + 14 * len(suite.columns)}}   " +
          "".join(f"{cells([mean], 10, 2)}{'':8}" for mean in means))
    wrong += [f"{name}: geometric mean is {mean:.3f}, wanted {bound}"
              for mean, bound in zip(means, suite.means) if mean and mean > bound]
    return rows, wrong


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODEL", help=" ".join(models.MODELS))
    parser.add_argument("--suite", action="append", choices=SUITES, help="all unless given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one engine's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, action="append",
                        help="of the float models; 1 and 8 unless given")
    parser.add_argument("--minimum", action="store_true",
                        help="take the fastest run of a turn instead of the median")
    parser.add_argument("--json", help="write the numbers to this file as well")
    parser.add_argument("--check", action="store_true", help="fail where quench is too slow")
    arguments = parser.parse_args()
    arguments.names = arguments.names or models.all_names()
    arguments.batch = arguments.batch or [1, 8]
    return arguments


def main():
    arguments = parse()
    reason = models.missing()
    if reason:
        print(f"compare: {reason}; comparing on the embedded network")
    print(f"{arguments.threads} threads, best of {arguments.rounds} rounds, ms and shares")
    result, wrong = {}, []
    for name in arguments.suite or SUITES:
        rows, missed = run_suite(name, arguments)
        result[name] = {"columns": SUITES[name].columns, "ms": rows}
        wrong += missed
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    for line in wrong if arguments.check else []:
        print("not reached:", line)
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
