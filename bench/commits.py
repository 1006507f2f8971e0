"""commits.py A [B]: proves that commit B (the working tree's build unless given) makes what commit A made, as fast.

  files  `quench quant` writes files with the same nodes, constants and scales for all models, metadata aside:
         by default, with -b 16, with --target ort and, for some, for a chip. Each difference is named.
  speed  the float models and these files run as fast, A and B in turn: the median over the rounds of B's time divided by
         A's is at most 1.03, or its standard error says that it may be.

    bench/commits.py 163cc71                     what the working tree's build/quench makes beside that commit
    bench/commits.py v1.0 HEAD --only files      without measuring times, for which a machine has to be idle
    bench/commits.py v1.0 HEAD --only speed --models resnet50,yolov8n
    bench/commits.py /somewhere/quench --fast    a few models and samples, minutes of one core

Commits are checked out and built under build/commits (release, without tests), once each. A path of a program may stand
for a commit. The Python of build/venv runs it (scripts/venv). Exit code 1: something differs or is slower."""

import argparse
import difflib
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

import models

FOLDER = os.path.join(models.ROOT, "build", "commits")
CHIP = "TX5368AV200"
# What is made of a model: words in front of `quant`, and options behind it.
VARIANTS = {
    "default": ([], []),
    "16 bits": ([], ["-b", "16"]),
    "for ort": ([], ["--target", "ort"]),
    "for a chip": (["--chip", CHIP], []),
}
FOR_CHIP = {"mobilenet_v1", "resnet20", "se_mobilenet", "vit", "yolov8n", "pp_ocr"}
FAST = ("resnet20", "se_mobilenet", "vit", "squeezenet", "mobilenet_v1")
FAST_SAMPLES = 8
SHOWN = 12          # differences of one file that are printed
SLOWER = 1.03
UNSURE = 2          # standard errors that a ratio above may lie from it

# ---- Programs ------------------------------------------------------------------------------------------------


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        sys.exit(f"commits: {' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout


def program_of(commit):
    """The program that is named, or that of a commit, built if it is not there yet."""
    if os.path.isfile(commit):
        return os.path.abspath(commit)
    digest = run(["git", "-C", models.ROOT, "rev-parse", "--verify", commit + "^{commit}"]).strip()[:12]
    tree = os.path.abspath(os.path.join(FOLDER, digest))
    program = os.path.join(tree, "build", "quench")
    if not os.path.exists(program):
        print(f"building {commit} in {os.path.relpath(tree)}", flush=True)
        run(["git", "-C", models.ROOT, "worktree", "prune"])
        if not os.path.isdir(tree):
            run(["git", "-C", models.ROOT, "worktree", "add", "--detach", tree, digest])
        run(["cmake", "--preset", "release", "-DQUENCH_TESTS=OFF"], cwd=tree)
        run(["cmake", "--build", "build"], cwd=tree)
    return program


# ---- Files ---------------------------------------------------------------------------------------------------


def calibration(name, fast):
    """Options of the data: small ones for the embedded network, which has none."""
    if name == "fashion":
        path = os.path.join(FOLDER, "fashion.npy")
        if not os.path.exists(path):
            np.save(path, np.random.default_rng(0).random((16, 1, 28, 28), np.float32))
        return ["-d", path]
    words = models.calibration(name)
    if fast and "--samples" in words:
        words = words[:words.index("--samples")] + words[words.index("--samples") + 2:]
    return words + (["--samples", str(FAST_SAMPLES)] if fast else [])


def quantize(program, name, variant, fast, folder):
    """The file that the program makes, or None with the reason printed."""
    before, behind = VARIANTS[variant]
    os.makedirs(folder)
    command = [program, *before, "quant", "-q", "-m", models.path_of(name), *calibration(name, fast), "--save-dir",
               folder, *behind]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        return None
    return glob.glob(os.path.join(folder, "*_quantize.onnx"))[0]


def text_of(value):
    """An attribute's value, of graphs their nodes: without what is metadata."""
    if isinstance(value, onnx.GraphProto):
        return "; ".join([*map(text_of_node, value.node), *map(text_of_tensor, value.initializer)])
    if isinstance(value, onnx.TensorProto):
        return text_of_tensor(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    return repr(value)


def text_of_tensor(tensor):
    array = numpy_helper.to_array(tensor)
    return f"{array.dtype}{list(array.shape)} {array.ravel().tolist()}"


def text_of_node(node):
    attributes = sorted(f"{a.name}={text_of(onnx.helper.get_attribute_value(a))}" for a in node.attribute)
    return (f"{node.domain or 'ai.onnx'}.{node.op_type} '{node.name}' ({', '.join(node.input)}) -> "
            f"({', '.join(node.output)}) {' '.join(attributes)}")


def text_of_end(end):
    kind = end.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in kind.shape.dim]
    return f"{end.name}: type {kind.elem_type} {dims}"


def short(text):
    return text if len(text) < 200 else text[:160] + f" ... ({len(text)} letters)"


def different_lines(what, a, b):
    return [f"{what} {'only in A' if line[0] == '-' else 'only in B'}: {short(line[2:])}"
            for line in difflib.ndiff(a, b) if line[0] in "-+"] if a != b else []


def different_constants(a, b):
    """Of two dictionaries from names to arrays."""
    wrong = [f"constant only in A: '{name}'" for name in a if name not in b]
    wrong += [f"constant only in B: '{name}'" for name in b if name not in a]
    for name in (name for name in a if name in b):
        x, y = a[name], b[name]
        if x.dtype != y.dtype or x.shape != y.shape:
            wrong.append(f"constant '{name}': {x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}")
        elif x.tobytes() != y.tobytes():
            off = np.abs(x.astype(np.float64) - y.astype(np.float64))
            wrong.append(f"constant '{name}': {np.count_nonzero(off)} of {off.size} numbers differ, by at most {off.max():.3g} "
                         f"(of {np.abs(x.astype(np.float64)).max():.3g})")
    return wrong


def differences(path_a, path_b):
    """Lines that say what differs in two files beside their metadata; nodes in their order."""
    a, b = (onnx.load(path) for path in (path_a, path_b))
    wrong = []
    for what, lines in (
            ("opset", [sorted(f"{o.domain or 'ai.onnx'} {o.version}" for o in m.opset_import) for m in (a, b)]),
            ("input", [[text_of_end(e) for e in m.graph.input] for m in (a, b)]),
            ("output", [[text_of_end(e) for e in m.graph.output] for m in (a, b)]),
            ("function", [[f.name + ": " + "; ".join(map(text_of_node, f.node)) for f in m.functions] for m in (a, b)]),
            ("node", [[text_of_node(n) for n in m.graph.node] for m in (a, b)])):
        wrong += different_lines(what, *lines)
    return wrong + different_constants(*({t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
                                         for m in (a, b)))


def compare_files(name, variant, programs, fast, folder):
    """Whether both programs make the same file; the paths of both."""
    paths = [quantize(program, name, variant, fast, os.path.join(folder, letter, name, variant.replace(" ", "_")))
             for letter, program in zip("AB", programs)]
    if None in paths:
        print(f"{name}, {variant}: " + ("NEITHER can" if paths == [None, None] else "only one CAN"))
        return paths == [None, None], paths
    wrong = differences(*paths)
    print(f"{name}, {variant}: " + (f"{len(wrong)} DIFFERENCES" if wrong else "the same"), flush=True)
    for line in wrong[:SHOWN]:
        print("   ", line)
    return not wrong, paths


# ---- Speed ---------------------------------------------------------------------------------------------------


def write_inputs(name, folder):
    words = []
    for i, (key, value) in enumerate(models.random_inputs(name, 1).items()):
        path = os.path.join(folder, f"{name}.{i}.npy")
        np.save(path, value)
        words += ["--input", f"{key}={path}"]
    return words


def time_of(program, path, words, arguments):
    out = run([program, "bench", path, *words, "--threads", str(arguments.threads), "--seconds", str(arguments.seconds),
               "--json"])
    return json.loads(out)["min_ms" if arguments.minimum else "median_ms"]


def ratio_of(turns):
    """The median of the rounds' B/A and its standard error (1.25 times that of a mean)."""
    ratios = [b / a for a, b in turns]
    return statistics.median(ratios), 1.25 * statistics.stdev(ratios) / math.sqrt(len(ratios))


def compare_speed(label, programs, paths, words, arguments):
    """Whether B is as fast, after as many rounds as the noise asks for."""
    turns = []
    while True:
        order = (0, 1) if len(turns) % 2 == 0 else (1, 0)
        turn = [0.0, 0.0]
        for i in order:
            turn[i] = time_of(programs[i], paths[i], words, arguments)
        turns.append(turn)
        if len(turns) < arguments.rounds:
            continue
        ratio, error = ratio_of(turns)
        if error < (SLOWER - 1) / 3 or len(turns) >= arguments.most_rounds:
            break
    best = [min(turn[i] for turn in turns) for i in (0, 1)]
    slower = ratio > SLOWER and ratio - UNSURE * error > 1 and best[1] > best[0] * SLOWER
    unsure = error * UNSURE > SLOWER - 1
    print(f"{label:28}{best[0]:10.3f}{best[1]:10.3f}{ratio:9.3f} +-{error:6.3f}{best[1] / best[0]:9.3f}"
          f"{len(turns):5}  {'SLOWER' if slower else 'the machine is too noisy to say' if unsure else ''}", flush=True)
    return not slower


# ---- All -----------------------------------------------------------------------------------------------------


def names_of(arguments):
    if arguments.models:
        return arguments.models.split(",")
    names = models.all_names()
    return [name for name in names if name in FAST] or names if arguments.fast else names


def check_name(name, arguments, programs, folder):
    """What is not as it was."""
    wrong, files = [], None
    quantized = name in models.INT8_BOUNDS or name == "fashion"
    for variant in VARIANTS if quantized else ():
        if variant == "for a chip" and name not in FOR_CHIP:
            continue
        if arguments.only == "speed" and variant != "default":
            continue
        same, paths = compare_files(name, variant, programs, arguments.fast, folder)
        if not same and arguments.only != "speed":
            wrong.append(f"{name}, {variant}: another file")
        files = paths if variant == "default" else files
    if arguments.only != "files":
        words = write_inputs(name, folder)
        rows = [(f"{name}, float", [models.path_of(name)] * 2)]
        rows += [(f"{name}, int8", files)] if files and None not in files else []
        wrong += [f"{label}: slower" for label, paths in rows
                  if not compare_speed(label, programs, paths, words, arguments)]
    return wrong


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("a", metavar="A", help="a commit, or a path of quench")
    parser.add_argument("b", metavar="B", nargs="?", default=models.QUENCH, help="the same")
    parser.add_argument("--only", choices=("files", "speed"))
    parser.add_argument("--fast", action="store_true", help=f"the models {', '.join(FAST)} with {FAST_SAMPLES} samples")
    parser.add_argument("--models", help="names of bench/models.py, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--most-rounds", type=int, default=21, help="where times are noisy")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minimum", action="store_true", help="the fastest run of a turn instead of its median")
    return parser.parse_args()


def main():
    arguments = parse()
    os.makedirs(FOLDER, exist_ok=True)
    programs = [program_of(commit) for commit in (arguments.a, arguments.b)]
    if arguments.only != "files":
        print(f"{'times of A and B in ms':28}{'A':>10}{'B':>10}{'B/A':>9} error {'of best':>11} rounds")
    wrong = []
    for name in names_of(arguments):
        with tempfile.TemporaryDirectory() as folder:
            wrong += check_name(name, arguments, programs, folder)
    for line in wrong:
        print("not as it was:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
