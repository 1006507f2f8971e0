"""wild.py [MODEL...]: common architectures as PyTorch's exporters write them, with random weights: quench, ONNX Runtime
and OpenVINO on the float file, each also on the int8 file that its own tool makes of the same samples with its defaults,
and how far each int8 file is from float.

The structures lie in bench/wild (wild_export.py made them); weights and samples are drawn by seed. Errors are the root
of the mean square difference from the float model, over the root mean square of its outputs, the worst output counts.
With --check the exit code tells whether every row reaches

  int8 ms     at most those of quench's own float, and 1.05 of the better peer's int8
  float ms    at most 1.05 of the better peer's
  error       at most 1.1 of the better tool's
  seconds     to quantize: at most 1.5 of NNCF's
  ref         no integers in reference kernels that float does not run there too
  verify      with --verify: the fast kernels are exact

or has its reason in EXPLAINED."""

import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile
import zlib

import numpy as np

import compare
import int8
import models

FOLDER = os.path.join(models.ROOT, "bench", "wild")
FILLED = os.path.join(models.ROOT, "build", "wild")
WORDS = 2000
FREE = {"N": 1, "H": 160, "W": 160, "L": 64}  # dimensions that a structure leaves open
CALIBRATION, HELD_OUT = 16, 4
TOLERANCE = 1.03

# What misses, and why: name: {heading: reason}.
EXPLAINED = {}

# ---- Models and samples ------------------------------------------------------------------------------------


def drawn(tensor):
    """Numbers spread as a structure says, for a constant without them."""
    import onnx
    mean, spread, least, most = map(float, tensor.doc_string.split())
    rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    values = np.clip(rng.normal(mean, spread, tensor.dims), least, most)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return onnx.numpy_helper.from_array(values.astype(dtype), tensor.name)


def filled(name):
    """The model's file, made once."""
    import onnx
    source, path = os.path.join(FOLDER, name + ".onnx"), os.path.join(FILLED, name + ".onnx")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
        os.makedirs(FILLED, exist_ok=True)
        model = onnx.load(source)
        for tensor in model.graph.initializer:
            if tensor.doc_string:
                tensor.CopyFrom(drawn(tensor))
        onnx.save(model, path)
    return path


def samples(path, count, seed):
    """A list of {input: array}: smooth noise, words, and masks that hide an end."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    rng, feeds = np.random.default_rng(seed), []
    for _ in range(count):
        feed = {}
        for value in graph.input:
            if value.name in constants:
                continue
            kind = value.type.tensor_type
            shape = [d.dim_value or FREE[d.dim_param] for d in kind.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            feed[value.name] = sample(rng, value.name, shape).astype(dtype)
        feeds.append(feed)
    return feeds


def sample(rng, name, shape):
    if name == "ids":
        return rng.integers(0, WORDS, shape)
    if name == "mask":
        return np.arange(shape[-1])[None] < rng.integers(shape[-1] // 2, shape[-1] + 1)
    noise = rng.normal(size=shape)
    if name == "time":
        return rng.uniform(0, 1000, shape)
    if name == "past":
        return noise
    for axis in range(2, len(shape)):  # neighbours are alike, as in pictures and sounds
        wave = np.cumsum(rng.normal(size=shape), axis) / np.sqrt(shape[axis])
        noise = noise * 0.7 + wave
    return noise / noise.std()


# ---- Files -------------------------------------------------------------------------------------------------


def save_samples(path, feeds):
    """One sample along the first axis, whatever the inputs' own axes are."""
    np.savez(path, **{key: np.stack([feed[key] for feed in feeds]) for key in feeds[0]})


def key_of(path):
    with open(path, "rb") as file:
        return f"{zlib.crc32(file.read()):08x}"


def quench_file(name, path, feeds):
    def make(folder):
        data = os.path.join(folder, "data.npz")
        save_samples(data, feeds)
        shapes = [word for key, value in feeds[0].items()
                  for word in ("--input-shape", f"{key}:{','.join(map(str, value.shape))}")]
        done = subprocess.run([models.QUENCH, "quant", "-q", "-m", path, "-d", data, "--save-dir", folder, *shapes],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")

    folder = int8.cached(int8.of_this_build("wild"), f"{name}-{key_of(path)}", make)
    return folder and glob.glob(os.path.join(folder, "*_quantize.onnx"))[0]


def peer_file(name, path, tool, ending, make):
    folder = int8.cached(tool, f"wild-{name}-{key_of(path)}",
                         lambda folder: make(os.path.join(folder, name + ending)))
    return folder and os.path.join(folder, name + ending)


def has_attention(path):
    import onnx
    return any(node.op_type in ("Softmax", "Attention") for node in onnx.load(path).graph.node)


def files_of(name, path, feeds):
    """The int8 files of quench, ONNX Runtime and OpenVINO."""
    return [quench_file(name, path, feeds),
            peer_file(name, path, int8.ort_tool(), ".onnx",
                      lambda made: int8.ort_quantize(path, made, feeds)),
            peer_file(name, path, int8.nncf_tool(), ".xml",
                      lambda made: int8.nncf_quantize(path, made, feeds, has_attention(path)))]


# ---- Steps ----------------------------------------------------------------------------------------------


def steps_of(path):
    """Rows of quench bench --profile, by one thread."""
    done = subprocess.run([models.QUENCH, "bench", path, "--profile", "--json", "--threads", "1", "--seconds", ".2"],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["steps"]


def in_reference(steps):
    return {step["operators"] for step in steps if step["backend"].startswith("ref")}


def integers_in_reference(path, allowed):
    """Operators of integers that run in reference kernels, but for those allowed."""
    return {step["operators"] for step in steps_of(path) if step["backend"].startswith("ref") and
            (step["operators"].startswith("Q") or "int" in step["output"])} - allowed


# ---- Errors ------------------------------------------------------------------------------------------------


def quench_outputs(path, feeds):
    result = []
    for feed in feeds:
        with tempfile.TemporaryDirectory() as folder:
            words = []
            for i, (key, value) in enumerate(feed.items()):
                np.save(os.path.join(folder, f"in{i}.npy"), value)
                words += ["-i", f"{key}={folder}/in{i}.npy"]
            subprocess.run([models.QUENCH, "infer", "-q", path, *words, "-o", os.path.join(folder, "out")],
                           stdout=subprocess.DEVNULL, check=True)
            result.append({os.path.basename(f)[:-4]: np.load(f)
                           for f in glob.glob(os.path.join(folder, "out", "*.npy"))})
    return result


def ort_outputs(path, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name.replace("/", "_") for output in session.get_outputs()]
    return [dict(zip(names, session.run(None, feed))) for feed in feeds]


def openvino_outputs(path, feeds):
    import openvino
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    result = []
    for feed in feeds:
        values = compiled(feed)
        result.append({min(port.get_names()).replace("/", "_"): values[port] for port in compiled.outputs})
    return result


def outputs_of(tool, path, feeds):
    """None where there is no file or the engine cannot run it."""
    try:
        return tool(path, feeds) if path else None
    except Exception:  # whatever an engine throws
        return None


def error(outputs, truth):
    """The worst output's; those that only one side has a name for do not count."""
    worst = None
    for key in truth[0]:
        if key not in outputs[0]:
            continue
        t = np.concatenate([sample[key].astype(np.float64).ravel() for sample in truth])
        y = np.concatenate([sample[key].astype(np.float64).ravel() for sample in outputs])
        here = float(np.sqrt(np.mean((y - t) ** 2) / max(np.mean(t ** 2), 1e-30)))
        worst = here if worst is None else max(worst, here)
    return worst


def errors_of(path, files):
    feeds = samples(path, HELD_OUT, seed=99)
    truth = outputs_of(ort_outputs, path, feeds) or openvino_outputs(path, feeds)
    tools = (quench_outputs, ort_outputs, openvino_outputs)
    values = [outputs_of(outputs, file, feeds) for outputs, file in zip(tools, files)]
    return [here and error(here, truth) for here in values]


# ---- Rows --------------------------------------------------------------------------------------------------

Measure = collections.namedtuple("Measure", "heading value bound")
Figures = collections.namedtuple("Figures", "ms errors seconds reference exact")


def share(ours, theirs):
    theirs = [value for value in theirs if value]
    return ours / min(theirs) if ours and theirs else None


def row_of(name, arguments):
    path = filled(name)
    files = files_of(name, path, samples(path, CALIBRATION, seed=7))
    engines = (compare.Quench, compare.OnnxRuntime, compare.OpenVino)
    lanes = [*zip(engines, files), *zip(engines, [path] * 3)]
    times = compare.measure(lanes, samples(path, 1, seed=1)[0], arguments) if arguments.rounds else [None] * 6
    errors = errors_of(path, files)
    seconds = [int8.seconds_of(file) for file in files]
    slow = integers_in_reference(files[0], in_reference(steps_of(path))) if files[0] else None
    return Figures(times, errors, seconds, sorted(slow or []), is_exact(files[0]) if arguments.verify else None), [Measure("int8/float", share(times[0], times[3:4]), 1.0),
                           Measure("int8/peer", share(times[0], times[1:3]), 1.05),
                           Measure("float/peer", share(times[3], times[4:]), 1.05),
                           Measure("error/tool", share(errors[0], errors[1:]), 1.1),
                           Measure("s/NNCF", share(seconds[0], seconds[2:]), 1.5)]


def is_missed(measure):
    return measure.value is not None and measure.value > measure.bound * TOLERANCE


def is_exact(path):
    """Whether quench verify agrees; None without a file."""
    return path and subprocess.run([models.QUENCH, "verify", "-q", path], stdout=subprocess.DEVNULL,
                                   check=False).returncode == 0


def show(name, figures, measures):
    print(f"{name:18}{compare.cells(figures.ms, 8, 2)} {compare.cells(figures.errors, 8, 4)} "
          f"{compare.cells(figures.seconds, 6, 1)} " + " ".join(
              f"{m.value:6.2f}{'x' if is_missed(m) else ' '}" if m.value else f"{'-':>6} " for m in measures) +
          {None: "", True: " exact", False: " NOT EXACT"}[figures.exact] + "".join(f" ref:{op}" for op in figures.reference),
        flush=True)


def complaints(name, figures, measures):
    lines = [f"{name}: quench cannot quantize or run it"] if figures.errors[0] is None else []
    if figures.reference:
        lines.append(f"{name}: integers in reference kernels: {' '.join(figures.reference)}")
    if figures.exact is False:
        lines.append(f"{name}: the fast kernels are not exact")
    for m in measures:
        if is_missed(m) and m.heading not in EXPLAINED.get(name, {}):
            lines.append(f"{name}: {m.heading} is {m.value:.3f}, wanted {m.bound}")
    return lines


def parse():
    names = sorted(os.path.basename(path)[:-5] for path in glob.glob(os.path.join(FOLDER, "*.onnx")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODEL", help=" ".join(names))
    parser.add_argument("--rounds", type=int, default=5, help="0: errors only")
    parser.add_argument("--quick", action="store_true", help="two short rounds, their fastest runs")
    parser.add_argument("--verify", action="store_true", help="run quench verify on the int8 files")
    parser.add_argument("--seconds", type=float, default=0.4, help="of one engine's turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minimum", action="store_true", help="take the fastest run of a turn instead of the median")
    parser.add_argument("--json", help="write the numbers to this file as well")
    parser.add_argument("--check", action="store_true", help="fail where something is missed and not explained")
    arguments = parser.parse_args()
    arguments.names = arguments.names or names
    if arguments.quick:
        arguments.rounds, arguments.seconds, arguments.minimum = 2, 0.1, True
    return arguments


def main():
    arguments = parse()
    rows, wrong = {}, []
    print(f"{arguments.threads} threads, best of {arguments.rounds} rounds; ms, errors and seconds: quench, ONNX Runtime, "
          "OpenVINO with NNCF")
    print(f"{'':18}{'int8':>8}{'':16}{'float':>8}{'':17}{'error':>8}{'':17}{'quantize':>8}{'':10}"
          " int8/fl int8/pr flt/pr error/tl s/NNCF")
    for name in arguments.names:
        figures, measures = row_of(name, arguments)
        rows[name] = figures._asdict()
        show(name, figures, measures)
        wrong += complaints(name, figures, measures)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)
    for name in rows:
        for heading, reason in EXPLAINED.get(name, {}).items():
            print(f"{name}: {heading}: {reason}")
    for line in wrong if arguments.check else []:
        print("not reached:", line)
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
