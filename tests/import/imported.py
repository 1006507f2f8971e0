"""imported.py: a model of a framework as quench reads it, and as ONNX Runtime runs the file that quench converts it to."""

import os
import subprocess
import tempfile

import numpy as np
import onnx

from runtime import session

QUENCH = os.environ["QUENCH"]
# Of the largest output; integers may be two steps apart.
TOLERANCE = 2e-4
STEPS = 2
# Halves have 11 bits: engines that round after each operator or only once are two units of the last of them apart.
HALVES = 2 ** -10


def command(*words):
    """Runs quench; its message on stderr is the error."""
    done = subprocess.run([QUENCH, *words, "-q"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def by_quench(model, inputs, folder, flags=()):
    """Runs the model on the inputs; name -> array, as the files are called."""
    words, out = [], os.path.join(folder, "out")
    for i, (name, array) in enumerate(inputs.items()):
        path = os.path.join(folder, f"in{i}.npy")
        np.save(path, array)
        words += ["-i", f"{name}={path}"]
    command("infer", model, *flags, *words, "-o", out)
    return {name[:-4]: np.load(os.path.join(out, name)) for name in os.listdir(out)}


def by_ort(model, inputs, folder, flags=()):
    """Converts the model, has ONNX's checker look at the file, and runs it in ONNX Runtime."""
    path = os.path.join(folder, "converted.onnx")
    command("convert", model, path, "--no-compare", *flags)
    onnx.checker.check_model(path, full_check=True)
    runtime = session(path)
    names = [value.name for value in runtime.get_outputs()]
    wanted = {value.name for value in runtime.get_inputs()}
    arrays = runtime.run(names, {name: array for name, array in inputs.items() if name in wanted})
    return {name.replace("/", "_"): array for name, array in zip(names, arrays)}


def difference(have, want, labels=None):
    """How far an output is from the recorded one, in parts of what is allowed: above 1 is wrong. Of labels that share may be
    others."""
    if have.shape != want.shape:
        return float("inf")
    if want.size == 0:
        return 0.0
    if labels:
        return (have != want).mean() / labels
    if want.dtype.kind in "iub":
        return np.abs(have.astype(np.int64) - want.astype(np.int64)).max() / STEPS
    wide = want.astype(np.float64)
    if not np.isfinite(have[np.isfinite(wide)]).all():
        return float("inf")
    allowed = HALVES if want.dtype == np.float16 else TOLERANCE
    return np.nanmax(np.abs(have.astype(np.float64) - wide)) / (allowed * max(np.abs(wide).max(), 1e-30))


def check(name, model, inputs, outputs, flags=(), labels=None, of_ort=None):
    """Whether both give the outputs: name -> (array, slice or None), ONNX Runtime those `of_ort` where they are given. Prints
    a line for each that does not."""
    good = True
    for who, run, outputs in (("quench", by_quench, outputs), ("ONNX Runtime", by_ort, of_ort or outputs)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                have = run(model, inputs, folder, flags)
            except Exception as error:  # whatever an engine says belongs into the report
                print(f"{name}: {who}: {error}")
                return False
        for output, (want, part) in outputs.items():
            array = have.get(output.replace("/", "_"))
            if array is None:
                print(f"{name}: {who} has no output {output}, only {sorted(have)}")
                good = False
                continue
            array = array[part] if part is not None else array
            error = difference(array, want, labels)
            if not error <= 1:
                print(f"{name}: {who}: {output}: {array.shape} for {want.shape}, {error:.3g} times what is allowed")
                good = False
    return good
