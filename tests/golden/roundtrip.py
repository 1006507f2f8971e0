"""roundtrip.py PROGRAM FOLDER...: every .onnx file below the folders goes through PROGRAM (read, write)
in its own opset, in a lower and in the latest one. What comes out must pass ONNX's checker, and ONNX
Runtime must compute from it what it computes from the original."""
import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

import runtime

LATEST = 23
# Pairs of model and target opset that the program may refuse: training operators
# everywhere, and in lower opsets what came later. Counted with the 1,073 models of Debian 12 and examples/.
REFUSED = {"own": 9, "latest": 9, "lower": 429}


def session(path):
    return runtime.session(str(path), threads=1, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)


def read_input(path, kind):
    data = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def random_inputs(path, size):
    """Seeded numbers; open dimensions get `size`."""
    rng, values = np.random.default_rng(0), {}
    for value in session(path).get_inputs():
        if value.type != "tensor(float)":
            return None
        shape = [d if isinstance(d, int) else size for d in value.shape]
        values[value.name] = rng.standard_normal(shape).astype(np.float32)
    return values


def inputs_of(model, path):
    """The first test case's inputs by name, else random ones that the model can be run with, or None."""
    case = pathlib.Path(path).parent / "test_data_set_0"
    constants = {t.name for t in model.graph.initializer}
    if not case.is_dir():
        for size in (1, 64, 320):
            try:
                values = random_inputs(path, size)
                run(path, values)
                return values
            except Exception:
                continue
        return None
    values = {}
    for i, value in enumerate(model.graph.input):
        path = case / f"input_{i}.pb"
        if path.exists():
            values[value.name] = read_input(path, value.type)
        elif value.name not in constants:
            return None
    return values


def same(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "fc":
        return np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
    return np.array_equal(a, b)


def run(path, values):
    runner = session(path)
    names = {i.name for i in runner.get_inputs()}
    return runner.run(None, {k: v for k, v in values.items() if k in names})


def uses_random(model):
    return any(n.op_type.startswith(("Random", "Multinomial", "Bernoulli")) for n in model.graph.node)


def check(program, path, opset, out, counts):
    """None, or what is wrong."""
    model = onnx.load(path, load_external_data=False)
    done = subprocess.run([program, path, out, str(opset)], capture_output=True, text=True)
    if done.returncode == 3:
        counts["refused: " + kind_of(opset)] += 1
        return None
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    try:
        onnx.checker.check_model(str(out), full_check=False)
    except Exception as error:
        return f"checker: {error}"
    counts["written"] += 1
    values = inputs_of(model, path)
    if values is None or uses_random(model):
        return None
    try:
        expected = run(path, values)
    except Exception:
        counts["ONNX Runtime cannot run the original"] += 1
        return None
    try:
        found = run(out, values)
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):  # valid, but newer than its kernels (RoiAlign of 22)
            counts["ONNX Runtime has no kernel for the copy"] += 1
            return None
        return f"ONNX Runtime: {str(error)[:300]}"
    counts["same results"] += 1
    return None if all(map(same, expected, found)) else "different results"


def opsets(path):
    model = onnx.load(path, load_external_data=False)
    own = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=1)
    return [0] + [o for o in (LATEST, own - 3) if 6 < o <= LATEST and o != own]


def kind_of(opset):
    return "own" if opset == 0 else "latest" if opset == LATEST else "lower"


def main():
    program, folders = sys.argv[1], sys.argv[2:]
    models = sorted(p for f in map(pathlib.Path, folders) for p in ([f] if f.is_file() else f.rglob("*.onnx")))
    if not models:
        sys.exit("no models found")
    counts, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.onnx"
        for path in models:
            for opset in opsets(path):
                problem = check(program, str(path), opset, out, counts)
                if problem:
                    wrong.append(f"{path.parent.name}/{path.name} (opset {opset or 'own'}): {problem}")
    for line in wrong:
        print(line)
    for kind, most in REFUSED.items():
        refused = counts["refused: " + kind]
        if refused > most:
            wrong.append(f"{refused} refused in the {kind} opset, no more than {most} should be")
            print(wrong[-1])
    print(f"{len(models)} models:", ", ".join(f"{n} {what}" for what, n in counts.items()))
    if wrong or not counts["same results"]:
        sys.exit(f"{len(wrong)} wrong")


main()
